// Layers of dropout.
#include <volta/nn/dropout.h>

#include <volta/ops.h>

#include "core/arguments.h"

namespace volta::nn {

Dropout::Dropout(double chance) : AnyDropout("Dropout", dropout, chance) {}
Dropout1d::Dropout1d(double chance) : AnyDropout("Dropout1d", feature_dropout, chance, 3) {}
Dropout2d::Dropout2d(double chance) : AnyDropout("Dropout2d", feature_dropout, chance, 4, false) {}
Dropout3d::Dropout3d(double chance) : AnyDropout("Dropout3d", feature_dropout, chance, 5) {}
AlphaDropout::AlphaDropout(double chance) : AnyDropout("AlphaDropout", alpha_dropout, chance) {}
FeatureAlphaDropout::FeatureAlphaDropout(double chance)
    : AnyDropout("FeatureAlphaDropout", feature_alpha_dropout, chance) {}

AnyDropout::AnyDropout(const char* type, Function function, double chance, int rank, bool single)
    : Layer(type), p(probability(chance, type)), function_(function), rank_(rank), single_(single) {}

Tensor AnyDropout::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    const bool fewer = rank_ && in.checked(type()).dim() == rank_ - 1;
    if (rank_ && !fewer && in.dim() != rank_)
      throw Error(
          Error::Kind::shape, type(),
          "needs " + std::to_string(rank_ - 1) + " or " + std::to_string(rank_) + " axes, got " + in.shape().str());
    return fewer && single_ ? function_(in.unsqueeze(0), p, training).squeeze(0) : function_(in, p, training);
  });
}

}  // namespace volta::nn

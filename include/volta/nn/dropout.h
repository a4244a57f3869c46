// Layers of dropout. Active in training mode only. The bool is PyTorch's `inplace`; the input is left as it is all the same.
#pragma once
#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

class AnyDropout : public Layer {
 public:
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double p;

 protected:
  using Function = Tensor (*)(const Tensor&, double, bool);
  // A rank of 0 takes any input; else the channels are axis 1 of that many axes. Of one fewer there is a single sample,
  // or as many as axis 0 is long.
  AnyDropout(const char* type, Function function, double probability, int rank = 0, bool single = true);

 private:
  Function function_;
  int rank_;
  bool single_;
};

// nn::Dropout(0.1)(x); whole channels: nn::Dropout2d(0.2) for [n, c, h, w] or, as in PyTorch, [n, c, l]; after selu:
// nn::AlphaDropout(). Of one sample: nn::Dropout1d for [c, l], nn::Dropout3d for [c, d, h, w].
// clang-format off
struct Dropout : AnyDropout { explicit Dropout(double probability = 0.5); Dropout(double probability, bool) : Dropout(probability) {} };
struct Dropout1d : AnyDropout { explicit Dropout1d(double probability = 0.5); Dropout1d(double probability, bool) : Dropout1d(probability) {} };
struct Dropout2d : AnyDropout { explicit Dropout2d(double probability = 0.5); Dropout2d(double probability, bool) : Dropout2d(probability) {} };
struct Dropout3d : AnyDropout { explicit Dropout3d(double probability = 0.5); Dropout3d(double probability, bool) : Dropout3d(probability) {} };
struct AlphaDropout : AnyDropout { explicit AlphaDropout(double probability = 0.5); AlphaDropout(double probability, bool) : AlphaDropout(probability) {} };
struct FeatureAlphaDropout : AnyDropout { explicit FeatureAlphaDropout(double probability = 0.5); FeatureAlphaDropout(double probability, bool) : FeatureAlphaDropout(probability) {} };
// clang-format on

}  // namespace volta::nn

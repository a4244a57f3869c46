// Dropout of elements or of whole channels. Active in training mode only.
#pragma once
#include <volta/nn/layer.h>

namespace volta {

// Zeroes elements with probability p and scales the others by 1 / (1 - p): dropout(x, 0.1, training).
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);
Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true);  // whole channels of [n, c, ...]
// Keeps mean and variance of what selu gives: alpha_dropout(x, 0.1).
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true);
Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true);  // whole channels

namespace nn {

// nn::Dropout(0.1)(x).
class Dropout : public Layer {
 public:
  explicit Dropout(double probability = 0.5) : Dropout("Dropout", dropout, probability, 0) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double p;

 protected:
  using Function = Tensor (*)(const Tensor&, double, bool);
  // A rank of 0 takes any input; else the channels are axis 1 of that many axes, or axis 0 of one fewer.
  Dropout(const char* type, Function function, double probability, int rank);

 private:
  Function function_;
  int rank_;
};

// Whole channels: nn::Dropout2d(0.2) for [n, c, h, w] or [c, h, w].
struct Dropout1d : Dropout {
  explicit Dropout1d(double probability = 0.5) : Dropout("Dropout1d", feature_dropout, probability, 3) {}
};
struct Dropout2d : Dropout {
  explicit Dropout2d(double probability = 0.5) : Dropout("Dropout2d", feature_dropout, probability, 4) {}
};
struct Dropout3d : Dropout {
  explicit Dropout3d(double probability = 0.5) : Dropout("Dropout3d", feature_dropout, probability, 5) {}
};
// After selu: nn::AlphaDropout(0.1)(x).
struct AlphaDropout : Dropout {
  explicit AlphaDropout(double probability = 0.5) : Dropout("AlphaDropout", alpha_dropout, probability, 0) {}
};
struct FeatureAlphaDropout : Dropout {
  explicit FeatureAlphaDropout(double probability = 0.5)
      : Dropout("FeatureAlphaDropout", feature_alpha_dropout, probability, 0) {}
};

}  // namespace nn
}  // namespace volta

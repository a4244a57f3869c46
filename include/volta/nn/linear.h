// Linear and bilinear maps.
#pragma once
#include <concepts>

#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

struct BiasOptions {
  bool bias = true;
};

// y = x W^T + b on the last axis: nn::Linear fc(784, 10); fc(x). Weight [out, in].
class Linear : public Layer {
 public:
  Linear(Int in_features, Int out_features, const BiasOptions& options = {});
  Linear(Int in_features, Int out_features, std::same_as<bool> auto with_bias)  // nn::Linear(784, 10, false)
      : Linear(in_features, out_features, BiasOptions{.bias = with_bias}) {}
  Tensor operator()(const Tensor& x) const { return with_weight(x, weight); }
  Tensor with_weight(const Tensor& x, const Tensor& w) const;  // with another weight in place of its own
  void reset_parameters();                                     // draws new ones
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;
  Parameter weight, bias;
};

// y_o = a W_o b + bias_o: nn::Bilinear mix(4, 5, 3); mix(a, b). Weight [out, in1, in2].
class Bilinear : public Layer {
 public:
  Bilinear(Int in1_features, Int in2_features, Int out_features, const BiasOptions& options = {});
  Tensor operator()(const Tensor& a, const Tensor& b) const;
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;
  Parameter weight, bias;
};

}  // namespace volta::nn

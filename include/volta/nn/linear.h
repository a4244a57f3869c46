// Linear maps and layers that only rearrange.
#pragma once
#include <volta/nn/layer.h>

namespace volta::nn {

struct BiasOptions {
  bool bias = true;
};

// y = x W^T + b on the last axis: nn::Linear fc(784, 10); fc(x). Weight [out, in].
class Linear : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, const BiasOptions& options = {});
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
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const BiasOptions& options = {});
  Tensor operator()(const Tensor& a, const Tensor& b) const;
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;
  Parameter weight, bias;
};

// Gives back what it gets: nn::Identity()(x).
class Identity : public Layer {
 public:
  Identity() : Layer("Identity") {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
};

// Joins axes into one, all but the first by default: nn::Flatten()(images).
class Flatten : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : Layer("Flatten"), start(start_dim), end(end_dim) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  int64_t start, end;
};

// Splits an axis: nn::Unflatten(1, {3, 32, 32})(x).
class Unflatten : public Layer {
 public:
  Unflatten(int64_t axis, const Shape& into) : Layer("Unflatten"), dim(axis), sizes(into) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  int64_t dim;
  Shape sizes;
};

// [n, c r^2, h, w] to [n, c, h r, w r] and back: nn::PixelShuffle(2)(x).
class PixelShuffle : public Layer {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : Layer("PixelShuffle"), factor(upscale_factor) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  int64_t factor;
};
class PixelUnshuffle : public Layer {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : Layer("PixelUnshuffle"), factor(downscale_factor) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  int64_t factor;
};

}  // namespace volta::nn

namespace volta {
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {});  // bilinear(a, b, w)
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);      // pixel_shuffle(x, 2)
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);  // pixel_unshuffle(x, 2)
}  // namespace volta

// Lambda, a function as a layer, and layers that only rearrange.
#pragma once
#include <volta/given.h>
#include <volta/nn/layer.h>

namespace volta::nn {

// A function as a layer: nn::Lambda("Double", [](const Tensor& x) { return x * 2; }). What it captures is no part of the
// model: capturing a layer by value is an Error.
class Lambda : public Layer {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  Lambda(const char* type, Function function, double flops_per_output = 1)
      : Layer(type), function_(std::move(function)), flops_(flops_per_output) {
    check_captures(detail::given(function_, type), type);
  }
  Tensor operator()(const Tensor& x) const {
    return call(x, [&](const Tensor& in) { return detail::given(function_, type())(in); });
  }
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor& y) const override { return flops_ * double(y.numel()); }

 private:
  Function function_;
  double flops_;
};

// clang-format off
struct Identity : Lambda { Identity(); };
struct Flatten : Lambda { explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1); };  // all but the batch into one axis
struct Unflatten : Lambda { Unflatten(int64_t dim, const Shape& sizes); };  // nn::Unflatten(1, {3, 32, 32})
struct ChannelShuffle : Lambda { explicit ChannelShuffle(Int groups); };
struct PixelShuffle : Lambda { explicit PixelShuffle(Int upscale_factor); };
struct PixelUnshuffle : Lambda { explicit PixelUnshuffle(Int downscale_factor); };
// clang-format on

}  // namespace volta::nn

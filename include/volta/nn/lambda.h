// Layers without state: every activation, padding, and what only rearranges. One line each.
#pragma once
#include <string>
#include <vector>

#include <volta/nn/layer.h>
#include <volta/ops/activation.h>

namespace volta::nn {

// A function as a layer: nn::Lambda("Double", [](const Tensor& x) { return x * 2; }). What it captures is no part of the
// model: capturing a layer by value is an Error.
class Lambda : public Layer {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  Lambda(const char* type, Function function, double flops_per_output = 1)
      : Layer(type), function_(std::move(function)), flops_(flops_per_output) {
    if (!function_) throw Error(Error::Kind::argument, type, "the function is empty");
    check_captures(function_, type);
  }
  Tensor operator()(const Tensor& x) const { return call(x, function_); }
  void fields(Fields&) override {}
  double flops(const Tensor&, const Tensor& y) const override { return flops_ * double(y.numel()); }

 private:
  Function function_;
  double flops_;
};

// How much to pad: one number for every side, or two per axis from the last axis on.
struct Sides {
  Sides(std::integral auto all) : list{Int(all)} {}
  Sides(std::initializer_list<Int> each) : list(Ints(each)) {}
  std::vector<int64_t> list;
};

// Used as nn::ReLU()(x), nn::ZeroPad2d(1)(x); the numbers are PyTorch's.
// clang-format off
struct ReLU : Lambda { ReLU(); };
struct ReLU6 : Lambda { ReLU6(); };
struct LeakyReLU : Lambda { explicit LeakyReLU(double negative_slope = 0.01); };
struct ELU : Lambda { explicit ELU(double alpha = 1); };
struct SELU : Lambda { SELU(); };
struct CELU : Lambda { explicit CELU(double alpha = 1); };
struct GELU : Lambda { explicit GELU(const Choice<GeluApproximation>& approximate = GeluApproximation::none); GELU(const GELUOptions& options) : GELU(options.approximate) {} };
struct Sigmoid : Lambda { Sigmoid(); };
struct SiLU : Lambda { SiLU(); };
struct Mish : Lambda { Mish(); };
struct Tanh : Lambda { Tanh(); };
struct Softplus : Lambda { explicit Softplus(double beta = 1, double threshold = 20); };
struct Softsign : Lambda { Softsign(); };
struct Hardtanh : Lambda { explicit Hardtanh(double min_val = -1, double max_val = 1); };
struct Hardsigmoid : Lambda { Hardsigmoid(); };
struct Hardswish : Lambda { Hardswish(); };
struct LogSigmoid : Lambda { LogSigmoid(); };
struct Threshold : Lambda { Threshold(double threshold, double value); };
struct Tanhshrink : Lambda { Tanhshrink(); };
struct Softshrink : Lambda { explicit Softshrink(double lambda = 0.5); };
struct Hardshrink : Lambda { explicit Hardshrink(double lambda = 0.5); };
struct Softmax : Lambda { explicit Softmax(int64_t dim); };
struct LogSoftmax : Lambda { explicit LogSoftmax(int64_t dim); };
struct Softmin : Lambda { explicit Softmin(int64_t dim); };
struct Softmax2d : Lambda { Softmax2d(); };  // over the channels of [n, c, h, w] or [c, h, w]
struct GLU : Lambda { explicit GLU(int64_t dim = -1); };

struct Identity : Lambda { Identity(); };
struct Flatten : Lambda { explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1); };  // all but the batch into one axis
struct Unflatten : Lambda { Unflatten(int64_t dim, const Shape& sizes); };  // nn::Unflatten(1, {3, 32, 32})
struct PixelShuffle : Lambda { explicit PixelShuffle(Int upscale_factor); };
struct PixelUnshuffle : Lambda { explicit PixelUnshuffle(Int downscale_factor); };
struct LocalResponseNorm : Lambda { explicit LocalResponseNorm(Int size, double alpha = 1e-4, double beta = 0.75, double k = 1); };

struct ConstantPad1d : Lambda { ConstantPad1d(const Sides& sides, double value); };  // a value
struct ConstantPad2d : Lambda { ConstantPad2d(const Sides& sides, double value); };
struct ConstantPad3d : Lambda { ConstantPad3d(const Sides& sides, double value); };
struct ZeroPad1d : Lambda { explicit ZeroPad1d(const Sides& sides); };  // zeros
struct ZeroPad2d : Lambda { explicit ZeroPad2d(const Sides& sides); };
struct ZeroPad3d : Lambda { explicit ZeroPad3d(const Sides& sides); };
struct ReflectionPad1d : Lambda { explicit ReflectionPad1d(const Sides& sides); };  // the mirror image, without the edge
struct ReflectionPad2d : Lambda { explicit ReflectionPad2d(const Sides& sides); };
struct ReflectionPad3d : Lambda { explicit ReflectionPad3d(const Sides& sides); };
struct ReplicationPad1d : Lambda { explicit ReplicationPad1d(const Sides& sides); };  // the edge
struct ReplicationPad2d : Lambda { explicit ReplicationPad2d(const Sides& sides); };
struct ReplicationPad3d : Lambda { explicit ReplicationPad3d(const Sides& sides); };
struct CircularPad1d : Lambda { explicit CircularPad1d(const Sides& sides); };  // the other end
struct CircularPad2d : Lambda { explicit CircularPad2d(const Sides& sides); };
struct CircularPad3d : Lambda { explicit CircularPad3d(const Sides& sides); };
// clang-format on

// x above 0, a learned slope times x below; one slope or one per channel: nn::PReLU(64)(x).
class PReLU : public Layer {
 public:
  explicit PReLU(Int num_parameters = 1, double init = 0.25);
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  Parameter weight;
};

// A slope drawn from [lower, upper] per element in training, their mean in eval: nn::RReLU()(x).
class RReLU : public Layer {
 public:
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3);
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double lower, upper;
};

}  // namespace volta::nn

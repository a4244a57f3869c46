// Activations as layers, used as nn::ReLU()(x); the numbers are PyTorch's. The bool that some take last is PyTorch's
// `inplace`; the input is left as it is all the same.
#pragma once
#include <volta/nn/lambda.h>
#include <volta/ops.h>

namespace volta::nn {

// clang-format off
struct ReLU : Lambda { ReLU(); explicit ReLU(bool) : ReLU() {} };
struct ReLU6 : Lambda { ReLU6(); explicit ReLU6(bool) : ReLU6() {} };
struct LeakyReLU : Lambda { explicit LeakyReLU(double negative_slope = 0.01); LeakyReLU(double negative_slope, bool) : LeakyReLU(negative_slope) {} };
struct ELU : Lambda { explicit ELU(double alpha = 1); ELU(double alpha, bool) : ELU(alpha) {} };
struct SELU : Lambda { SELU(); explicit SELU(bool) : SELU() {} };
struct CELU : Lambda { explicit CELU(double alpha = 1); CELU(double alpha, bool) : CELU(alpha) {} };
struct GELU : Lambda { explicit GELU(const Choice<GeluApproximation>& approximate = GeluApproximation::none); GELU(const GELUOptions& options) : GELU(options.approximate) {} };
struct Sigmoid : Lambda { Sigmoid(); };
struct SiLU : Lambda { SiLU(); explicit SiLU(bool) : SiLU() {} };
struct Mish : Lambda { Mish(); explicit Mish(bool) : Mish() {} };
struct Tanh : Lambda { Tanh(); };
struct Softplus : Lambda { explicit Softplus(double beta = 1, double threshold = 20); };
struct Softsign : Lambda { Softsign(); };
struct Hardtanh : Lambda { explicit Hardtanh(double min_val = -1, double max_val = 1); Hardtanh(double min_val, double max_val, bool) : Hardtanh(min_val, max_val) {} };
struct Hardsigmoid : Lambda { Hardsigmoid(); explicit Hardsigmoid(bool) : Hardsigmoid() {} };
struct Hardswish : Lambda { Hardswish(); explicit Hardswish(bool) : Hardswish() {} };
struct LogSigmoid : Lambda { LogSigmoid(); };
struct Threshold : Lambda { Threshold(double threshold, double value); Threshold(double threshold, double value, bool) : Threshold(threshold, value) {} };
struct Tanhshrink : Lambda { Tanhshrink(); };
struct Softshrink : Lambda { explicit Softshrink(double lambda = 0.5); };
struct Hardshrink : Lambda { explicit Hardshrink(double lambda = 0.5); };
struct Softmax : Lambda { explicit Softmax(int64_t dim); };
struct LogSoftmax : Lambda { explicit LogSoftmax(int64_t dim); };
struct Softmin : Lambda { explicit Softmin(int64_t dim); };
struct Softmax2d : Lambda { Softmax2d(); };  // over the channels of [n, c, h, w] or [c, h, w]
struct GLU : Lambda { explicit GLU(int64_t dim = -1); };
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
  RReLU(double low, double high, bool) : RReLU(low, high) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  double lower, upper;
};

}  // namespace volta::nn

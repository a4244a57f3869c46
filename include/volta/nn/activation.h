// Activations as layers, used as nn::ReLU()(x); the numbers are PyTorch's.
#pragma once
#include <volta/nn/lambda.h>
#include <volta/ops.h>

namespace volta::nn {

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

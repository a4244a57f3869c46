// Every activation as a layer: nn::Sequential(nn::Linear(4, 8), nn::GELU()). Their functions are relu(x), gelu(x), …
#pragma once
#include <string>

#include <volta/nn/layer.h>

namespace volta::nn {

// A function of a tensor and two numbers.
class Activation : public Layer {
 public:
  using Function = Tensor (*)(const Tensor& x, double a, double b);
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}

 protected:
  Activation(const char* type, Function function, double a = 0, double b = 0)
      : Layer(type), function_(function), a_(a), b_(b) {}

 private:
  Function function_;
  double a_, b_;
};

// Each is used as nn::ReLU()(x); the numbers are PyTorch's.
// clang-format off
struct ReLU : Activation { ReLU(); };
struct ReLU6 : Activation { ReLU6(); };
struct LeakyReLU : Activation { explicit LeakyReLU(double negative_slope = 0.01); };
struct ELU : Activation { explicit ELU(double alpha = 1); };
struct SELU : Activation { SELU(); };
struct CELU : Activation { explicit CELU(double alpha = 1); };
struct GELU : Activation { explicit GELU(const std::string& approximate = "none"); };  // or "tanh"
struct Sigmoid : Activation { Sigmoid(); };
struct SiLU : Activation { SiLU(); };
struct Mish : Activation { Mish(); };
struct Tanh : Activation { Tanh(); };
struct Softplus : Activation { explicit Softplus(double beta = 1, double threshold = 20); };
struct Softsign : Activation { Softsign(); };
struct Hardtanh : Activation { explicit Hardtanh(double min_val = -1, double max_val = 1); };
struct Hardsigmoid : Activation { Hardsigmoid(); };
struct Hardswish : Activation { Hardswish(); };
struct LogSigmoid : Activation { LogSigmoid(); };
struct Threshold : Activation { Threshold(double threshold, double value); };
struct Tanhshrink : Activation { Tanhshrink(); };
struct Softshrink : Activation { explicit Softshrink(double lambda = 0.5); };
struct Hardshrink : Activation { explicit Hardshrink(double lambda = 0.5); };
struct Softmax : Activation { explicit Softmax(int64_t dim); };
struct LogSoftmax : Activation { explicit LogSoftmax(int64_t dim); };
struct Softmin : Activation { explicit Softmin(int64_t dim); };
struct Softmax2d : Activation { Softmax2d(); };  // over the channels of [n, c, h, w] or [c, h, w]
struct GLU : Activation { explicit GLU(int64_t dim = -1); };
// clang-format on

// x above 0, a learned slope times x below; one slope or one per channel: nn::PReLU(64)(x).
class PReLU : public Layer {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25);
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

namespace volta {
Tensor glu(const Tensor& x, int64_t dim = -1);        // a * sigmoid(b) of the halves a and b of an axis: glu(x)
Tensor softmin(const Tensor& x, int64_t dim);         // softmax of -x: softmin(x, -1)
Tensor prelu(const Tensor& x, const Tensor& weight);  // slopes below 0, one or one per channel: prelu(x, w)
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false);  // rrelu(x)
}  // namespace volta

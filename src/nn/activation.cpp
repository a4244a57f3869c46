// Activations as layers, and the functions that are not pointwise ops of their own.
#include <volta/nn/activation.h>

#include <volta/create.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "nn/check.h"

namespace volta {

Tensor glu(const Tensor& x, int64_t dim) {
  const int64_t n = x.checked("glu").size(dim);
  if (n % 2)
    throw Error(Error::Kind::shape, "glu",
                "axis " + std::to_string(dim) + " of " + x.shape().str() + " has an odd size");
  return x.narrow(dim, 0, n / 2) * sigmoid(x.narrow(dim, n / 2, n / 2));
}
Tensor softmin(const Tensor& x, int64_t dim) { return softmax(-x, dim); }

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const int64_t n = weight.checked("prelu").numel(), channels = x.checked("prelu").dim() > 1 ? x.size(1) : 1;
  if (weight.dim() > 1 || (n != 1 && n != channels))
    throw Error(Error::Kind::shape, "prelu",
                "a weight of shape " + weight.shape().str() + " for an input of shape " + x.shape().str() +
                    ": needs one slope or one per channel");
  Shape shape = Shape::filled(int(x.dim()), 1);
  if (n != 1) shape[1] = n;
  return where(x > 0, x, x * weight.reshape(shape));
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training) {
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Options like{.dtype = x.checked("rrelu").dtype(), .device = x.device()};
  return where(x > 0, x, x * uniform(x.shape(), lower, upper, like));
}

namespace nn {

Tensor Activation::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return function_(in, a_, b_); });
}

namespace {
template <Tensor (*f)(const Tensor&)> Tensor plain(const Tensor& x, double, double) { return f(x); }

Tensor softmax_of_channels(const Tensor& x, double, double) {
  if (x.dim() != 3 && x.dim() != 4)
    throw Error(Error::Kind::shape, "softmax", "needs [n, c, h, w] or [c, h, w], got " + x.shape().str());
  return softmax(x, -3);
}
Activation::Function gelu_named(const std::string& approximate) {
  if (approximate == "none") return plain<gelu>;
  if (approximate == "tanh") return plain<gelu_tanh>;
  throw Error(Error::Kind::argument, "GELU", "approximate is '" + approximate + "', neither none nor tanh");
}
}  // namespace

// One line per layer reads best.
// clang-format off
ReLU::ReLU() : Activation("ReLU", plain<relu>) {}
ReLU6::ReLU6() : Activation("ReLU6", plain<relu6>) {}
LeakyReLU::LeakyReLU(double slope) : Activation("LeakyReLU", [](const Tensor& x, double a, double) { return leaky_relu(x, a); }, slope) {}
ELU::ELU(double alpha) : Activation("ELU", [](const Tensor& x, double a, double) { return elu(x, a); }, alpha) {}
SELU::SELU() : Activation("SELU", plain<selu>) {}
CELU::CELU(double alpha) : Activation("CELU", [](const Tensor& x, double a, double) { return celu(x, a); }, alpha) {}
GELU::GELU(const std::string& approximate) : Activation("GELU", gelu_named(approximate)) {}
Sigmoid::Sigmoid() : Activation("Sigmoid", plain<sigmoid>) {}
SiLU::SiLU() : Activation("SiLU", plain<silu>) {}
Mish::Mish() : Activation("Mish", plain<mish>) {}
Tanh::Tanh() : Activation("Tanh", plain<tanh>) {}
Softplus::Softplus(double beta, double top) : Activation("Softplus", [](const Tensor& x, double a, double b) { return softplus(x, a, b); }, beta, top) {}
Softsign::Softsign() : Activation("Softsign", plain<softsign>) {}
Hardtanh::Hardtanh(double low, double high) : Activation("Hardtanh", [](const Tensor& x, double a, double b) { return hardtanh(x, a, b); }, low, high) {}
Hardsigmoid::Hardsigmoid() : Activation("Hardsigmoid", plain<hardsigmoid>) {}
Hardswish::Hardswish() : Activation("Hardswish", plain<hardswish>) {}
LogSigmoid::LogSigmoid() : Activation("LogSigmoid", plain<logsigmoid>) {}
Threshold::Threshold(double limit, double value) : Activation("Threshold", [](const Tensor& x, double a, double b) { return threshold(x, a, b); }, limit, value) {}
Tanhshrink::Tanhshrink() : Activation("Tanhshrink", plain<tanhshrink>) {}
Softshrink::Softshrink(double lambda) : Activation("Softshrink", [](const Tensor& x, double a, double) { return softshrink(x, a); }, lambda) {}
Hardshrink::Hardshrink(double lambda) : Activation("Hardshrink", [](const Tensor& x, double a, double) { return hardshrink(x, a); }, lambda) {}
Softmax::Softmax(int64_t dim) : Activation("Softmax", [](const Tensor& x, double a, double) { return softmax(x, int64_t(a)); }, double(dim)) {}
LogSoftmax::LogSoftmax(int64_t dim) : Activation("LogSoftmax", [](const Tensor& x, double a, double) { return log_softmax(x, int64_t(a)); }, double(dim)) {}
Softmin::Softmin(int64_t dim) : Activation("Softmin", [](const Tensor& x, double a, double) { return softmin(x, int64_t(a)); }, double(dim)) {}
Softmax2d::Softmax2d() : Activation("Softmax2d", softmax_of_channels) {}
GLU::GLU(int64_t dim) : Activation("GLU", [](const Tensor& x, double a, double) { return glu(x, int64_t(a)); }, double(dim)) {}
// clang-format on

PReLU::PReLU(int64_t num_parameters, double init)
    : Layer("PReLU"),
      weight(full({positive(num_parameters, "PReLU", "num_parameters")}, init, {.dtype = default_dtype()})) {}
Tensor PReLU::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return prelu(in, weight); });
}
void PReLU::fields(Fields& f) { f("weight", weight); }

RReLU::RReLU(double low, double high) : Layer("RReLU"), lower(low), upper(high) {
  if (!(low <= high)) throw Error(Error::Kind::argument, "RReLU", "lower is above upper");
}
Tensor RReLU::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return rrelu(in, lower, upper, training); });
}

}  // namespace nn
}  // namespace volta

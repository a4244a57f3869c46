// Activations as layers.
#include <volta/nn/activation.h>

#include <volta/create.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/check.h"

namespace volta::nn {
namespace {

void require(bool holds, const char* layer, const char* rule) {
  if (!holds) throw Error(Error::Kind::argument, layer, rule);
}
Tensor softmax_of_channels(const Tensor& x) {
  if (x.dim() != 3 && x.dim() != 4)
    throw Error(Error::Kind::shape, "softmax", "needs [n, c, h, w] or [c, h, w], got " + x.shape().str());
  return softmax(x, -3);
}
Lambda::Function gelu_named(const Choice<GeluApproximation>& approximate) {
  Tensor (*const exact)(const Tensor&) = gelu;
  return approximate.of("GELU", "approximate") == GeluApproximation::tanh ? gelu_tanh : exact;
}

}  // namespace

// One line per layer reads best.
// clang-format off
ReLU::ReLU() : Lambda("ReLU", relu) {}
ReLU6::ReLU6() : Lambda("ReLU6", relu6) {}
LeakyReLU::LeakyReLU(double slope) : Lambda("LeakyReLU", [slope = finite(slope, "LeakyReLU", "negative_slope")](const Tensor& x) { return leaky_relu(x, slope); }) {}
ELU::ELU(double alpha) : Lambda("ELU", [alpha = finite(alpha, "ELU", "alpha")](const Tensor& x) { return elu(x, alpha); }) {}
SELU::SELU() : Lambda("SELU", selu) {}
CELU::CELU(double alpha) : Lambda("CELU", [alpha = finite(alpha, "CELU", "alpha")](const Tensor& x) { return celu(x, alpha); }) { require(alpha != 0, "CELU", "alpha must not be 0"); }
GELU::GELU(const Choice<GeluApproximation>& approximate) : Lambda("GELU", gelu_named(approximate)) {}
Sigmoid::Sigmoid() : Lambda("Sigmoid", sigmoid) {}
SiLU::SiLU() : Lambda("SiLU", silu) {}
Mish::Mish() : Lambda("Mish", mish) {}
Tanh::Tanh() : Lambda("Tanh", static_cast<Tensor (*)(const Tensor&)>(tanh)) {}
Softplus::Softplus(double beta, double top) : Lambda("Softplus", [=](const Tensor& x) { return softplus(x, beta, top); }) { require(std::isfinite(beta) && beta != 0, "Softplus", "beta must be finite and not 0"), require(top == top, "Softplus", "threshold is not a number"); }
Softsign::Softsign() : Lambda("Softsign", softsign) {}
Hardtanh::Hardtanh(double low, double high) : Lambda("Hardtanh", [=](const Tensor& x) { return hardtanh(x, low, high); }) { require(low < high, "Hardtanh", "min_val must be below max_val"); }
Hardsigmoid::Hardsigmoid() : Lambda("Hardsigmoid", hardsigmoid) {}
Hardswish::Hardswish() : Lambda("Hardswish", hardswish) {}
LogSigmoid::LogSigmoid() : Lambda("LogSigmoid", logsigmoid) {}
Threshold::Threshold(double limit, double value) : Lambda("Threshold", [=](const Tensor& x) { return threshold(x, limit, value); }) { require(limit == limit, "Threshold", "threshold is not a number"); }
Tanhshrink::Tanhshrink() : Lambda("Tanhshrink", tanhshrink) {}
Softshrink::Softshrink(double lambda) : Lambda("Softshrink", [lambda = not_negative(lambda, "Softshrink", "lambda")](const Tensor& x) { return softshrink(x, lambda); }) {}
Hardshrink::Hardshrink(double lambda) : Lambda("Hardshrink", [lambda = not_negative(lambda, "Hardshrink", "lambda")](const Tensor& x) { return hardshrink(x, lambda); }) {}
Softmax::Softmax(int64_t dim) : Lambda("Softmax", [=](const Tensor& x) { return softmax(x, dim); }) {}
LogSoftmax::LogSoftmax(int64_t dim) : Lambda("LogSoftmax", [=](const Tensor& x) { return log_softmax(x, dim); }) {}
Softmin::Softmin(int64_t dim) : Lambda("Softmin", [=](const Tensor& x) { return softmin(x, dim); }) {}
Softmax2d::Softmax2d() : Lambda("Softmax2d", softmax_of_channels) {}
GLU::GLU(int64_t dim) : Lambda("GLU", [=](const Tensor& x) { return glu(x, dim); }) {}
// clang-format on

PReLU::PReLU(Int num_parameters, double init)
    : Layer("PReLU"), weight(blamed_on("PReLU", [&] {
        positive(num_parameters, "PReLU", "num_parameters"), finite(init, "PReLU", "init");
        return full({num_parameters}, init, {.dtype = default_dtype()});
      })) {}
Tensor PReLU::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return prelu(in, weight); });
}
void PReLU::fields(Fields& f) { f("weight", weight); }

RReLU::RReLU(double low, double high) : Layer("RReLU"), lower(low), upper(high) {
  finite(low, "RReLU", "lower"), finite(high, "RReLU", "upper");
  if (!(low <= high)) throw Error(Error::Kind::argument, "RReLU", "lower is above upper");
}
Tensor RReLU::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return rrelu(in, lower, upper, training); });
}

}  // namespace volta::nn

// Initialisation of weights.
#include <volta/nn/init.h>

#include <cmath>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "core/arguments.h"

namespace volta::nn::init {
namespace {

// Writes into a leaf, too; that is what initialising is.
Tensor fill(const Tensor& x, const Tensor& values) {
  const NoGrad off;
  Tensor handle = x;
  return handle.copy_(values);
}
Options like(const Tensor& x, const char* op, Generator* generator = nullptr) {
  x.checked(op);
  if (!is_floating(x.dtype()))
    throw Error(Error::Kind::dtype, op, "needs a floating tensor, got " + std::string(name(x.dtype())));
  return {.dtype = x.dtype(), .device = x.device(), .generator = generator};
}
void require(bool holds, const char* op, const Tensor& x, const char* rule) {
  if (!holds) throw Error(Error::Kind::shape, op, "a tensor of shape " + x.shape().str() + ": " + rule);
}

}  // namespace

Tensor uniform_(const Tensor& x, double low, double high, Generator* generator) {
  return fill(x, uniform(x.shape(), low, high, like(x, "uniform_", generator)));
}
Tensor normal_(const Tensor& x, double mean, double std, Generator* generator) {
  return fill(x, normal(x.shape(), mean, std, like(x, "normal_", generator)));
}
Tensor trunc_normal_(const Tensor& x, double mean, double std, double low, double high, Generator* generator) {
  return fill(x, truncated_normal(x.shape(), mean, std, low, high, like(x, "trunc_normal_", generator)));
}
Tensor constant_(const Tensor& x, double value) { return fill(x, full({}, value, like(x, "constant_"))); }
Tensor zeros_(const Tensor& x) { return constant_(x, 0); }
Tensor ones_(const Tensor& x) { return constant_(x, 1); }

Tensor eye_(const Tensor& x) {
  require(x.checked("eye_").dim() == 2, "eye_", x, "needs a matrix");
  return fill(x, eye(x.size(0), x.size(1), like(x, "eye_")));
}

Tensor dirac_(const Tensor& x, int64_t groups) {
  const Options options = like(x, "dirac_");
  require(x.dim() >= 3 && x.dim() <= 5, "dirac_", x, "needs a weight [out, in, kernel...]");
  require(groups > 0 && x.size(0) % groups == 0, "dirac_", x, "the groups do not divide the outputs");
  if (x.numel() == 0) return x;
  const int64_t per_group = x.size(0) / groups;
  Tensor values = zeros(x.shape(), options);
  for (int64_t g = 0; g < groups; ++g) {
    Tensor block = values.narrow(0, g * per_group, per_group);
    for (int64_t axis = 2; axis < x.dim(); ++axis) block = block.select(2, block.size(2) / 2);
    block.diagonal().fill_(1);
  }
  return fill(x, values);
}

// Gram-Schmidt on the rows, each made orthogonal to the former ones twice (once loses digits).
Tensor orthogonal_(const Tensor& x, double gain, Generator* generator) {
  require(like(x, "orthogonal_").dtype.has_value() && x.dim() >= 2, "orthogonal_", x, "needs at least two axes");
  finite(gain, "orthogonal_", "gain");
  if (x.numel() == 0) return x;
  const NoGrad off;
  const int64_t rows = x.size(0), columns = x.numel() / rows;
  const bool tall = rows > columns;
  Tensor q = randn({std::min(rows, columns), std::max(rows, columns)}, {.dtype = f64, .generator = generator});
  for (int64_t i = 0; i < q.size(0); ++i) {
    Tensor row = q.select(0, i);
    const Tensor former = q.narrow(0, 0, i);
    for (int pass = 0; i > 0 && pass < 2; ++pass) row.sub_(former.t().mv(former.mv(row)));
    row.div_(row.norm());
  }
  return fill(x, ((tall ? q.t() : q) * gain).reshape(x.shape()));
}

Tensor sparse_(const Tensor& x, double sparsity, double std, Generator* generator) {
  require(x.checked("sparse_").dim() == 2, "sparse_", x, "needs a matrix");
  if (!(sparsity >= 0 && sparsity <= 1))
    throw Error(Error::Kind::argument, "sparse_", "sparsity " + std::to_string(sparsity) + " is not within [0, 1]");
  const int64_t zeros_per_column = int64_t(std::ceil(sparsity * double(x.size(0))));
  normal_(x, 0, std, generator);
  if (zeros_per_column == 0 || x.numel() == 0) return x;
  const Tensor rank = rand(x.shape(), {.device = x.device(), .generator = generator}).argsort(0).argsort(0);
  return fill(x, x.detach().masked_fill(rank < zeros_per_column, 0));
}

Fan calculate_fan(const Tensor& weight) {
  require(weight.checked("calculate_fan").dim() >= 2, "calculate_fan", weight, "needs at least two axes");
  int64_t field = 1;
  for (int64_t axis = 2; axis < weight.dim(); ++axis) field *= weight.size(axis);
  return {weight.size(1) * field, weight.size(0) * field};
}

namespace {
double gain_of(const Choice<Gain>& nonlinearity, double parameter, const char* op) {
  switch (nonlinearity.of(op, "nonlinearity")) {
    case Gain::tanh: return 5.0 / 3;
    case Gain::relu: return std::sqrt(2.0);
    case Gain::leaky_relu: return std::sqrt(2 / (1 + parameter * parameter));
    case Gain::selu: return 0.75;
    default: return 1;
  }
}
}  // namespace

double calculate_gain(const Choice<Gain>& nonlinearity, double parameter) {
  finite(parameter, "calculate_gain", "parameter");
  return gain_of(nonlinearity, parameter, "calculate_gain");
}

namespace {
double xavier_std(const Tensor& x, double gain, const char* op) {
  not_negative(gain, op, "gain");
  const Fan fan = calculate_fan(x);
  return gain * std::sqrt(2.0 / double(fan.in + fan.out));
}
double kaiming_std(const Tensor& x, const KaimingOptions& options, const char* op) {
  finite(options.a, op, "a");
  const Fan fan = calculate_fan(x);
  const int64_t n = options.mode.of(op, "mode") == FanMode::fan_in ? fan.in : fan.out;
  return gain_of(options.nonlinearity, options.a, op) / std::sqrt(double(n));
}
// A uniform variable within +-sqrt(3) s has deviation s.
Tensor uniform_with(const Tensor& x, double std, Generator* generator) {
  const double bound = std::sqrt(3.0) * std;
  return x.numel() ? uniform_(x, -bound, bound, generator) : x;
}
Tensor normal_with(const Tensor& x, double std, Generator* generator) {
  return x.numel() ? normal_(x, 0, std, generator) : x;
}
}  // namespace

Tensor xavier_uniform_(const Tensor& x, double gain, Generator* g) {
  return uniform_with(x, xavier_std(x, gain, "xavier_uniform_"), g);
}
Tensor xavier_normal_(const Tensor& x, double gain, Generator* g) {
  return normal_with(x, xavier_std(x, gain, "xavier_normal_"), g);
}
Tensor kaiming_uniform_(const Tensor& x, const KaimingOptions& o) {
  return uniform_with(x, kaiming_std(x, o, "kaiming_uniform_"), o.generator);
}
Tensor kaiming_normal_(const Tensor& x, const KaimingOptions& o) {
  return normal_with(x, kaiming_std(x, o, "kaiming_normal_"), o.generator);
}

}  // namespace volta::nn::init

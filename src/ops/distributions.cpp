// Random numbers made of uniform and normal ones: in-place fillings, Poisson, gamma, beta, Dirichlet.
#include <cmath>
#include <numbers>

#include <volta/create.h>
#include <volta/ops.h>

#include "graph/record.h"
#include "ops/check.h"

namespace volta {
namespace {

// On (0, 1): the least is half the distance of neighbours.
Tensor open_uniform(const Shape& shape, Device device, Generator* generator) {
  return rand(shape, {f64, device, false, generator}).add_(0x1p-54);
}
Tensor open_uniform(const Tensor& x, Generator* generator) { return open_uniform(x.shape(), x.device(), generator); }

const Tensor& fillable(const Tensor& x, const char* op, bool floating) {
  require_writable(x.checked(op), op);
  if (floating) require_floating(x, op);
  return x;
}

void require_all(const Tensor& truth, const char* op, const char* what) {
  require(truth.numel() == 0 || read_for<bool>(op, truth.all()), ErrorKind::argument, op, what);
}

Tensor drawable(const Tensor& x, const char* op) {
  require_floating(x, op);
  refuse_grad(op, {x});
  return x.detach().to(f64);
}

// Draws candidates until each element has taken one; `draw` gives {candidates, whether they are taken}.
template <class Draw> Tensor rejection(const Tensor& like, Draw draw) {
  Tensor y = zeros(like.shape(), {f64, like.device()}), open = ones(like.shape(), {boolean, like.device()});
  while (open.any().item<bool>()) {
    const auto [candidate, taken] = draw();
    y = where(logical_and(open, taken), candidate, y);
    open = logical_and(open, logical_not(taken));
  }
  return y;
}

// The logarithm: for small a most numbers are below what f64 holds. Marsaglia and Tsang (2000), for a of 1 and more;
// below, that of a + 1 times u^(1/a).
Tensor log_gamma_of(const Tensor& a, Generator* generator) {
  const Tensor small = a < 1, d = where(small, a + 1, a) - 1.0 / 3, c = 1 / sqrt(d * 9);
  const Tensor g = rejection(a, [&] {
    const Tensor x = randn(a.shape(), {f64, a.device(), false, generator}), v = pow(c * x + 1, 3);
    const Tensor u = open_uniform(a, generator), inside = v > 0;
    const Tensor bound = x * x * 0.5 + d - d * v + d * log(where(inside, v, 1));
    return std::pair(d * v, logical_and(inside, log(u) < bound));
  });
  // Below 1e-300 the quotient is infinite, and the difference of two such no number.
  return log(g) + where(small, log(open_uniform(a, generator)) / where(small, clamp_min(a, 1e-300), 1), 0);
}

// Uniform numbers are multiplied until they fall below e^-rate.
Tensor poisson_by_product(const Tensor& rate, Generator* generator) {
  const Tensor least = exp(-rate);
  Tensor count = zeros(rate.shape(), {f64, rate.device()}), product = open_uniform(rate, generator);
  for (Tensor open = product > least; open.any().item<bool>(); open = product > least) {
    count = count + open.to(f64);
    product = where(open, product * open_uniform(rate, generator), product);
  }
  return count;
}

// Hoermann's transformed rejection (PTRS, 1993), for rates of 10 and more.
Tensor poisson_by_rejection(const Tensor& rate, Generator* generator) {
  const Tensor b = sqrt(rate) * 2.53 + 0.931, a = b * 0.02483 - 0.059, root = log(rate);
  const Tensor inverse = 1.1328 / (b - 3.4) + 1.1239, squeeze = 0.9277 - 3.6224 / (b - 2);
  return rejection(rate, [&] {
    const Tensor u = open_uniform(rate, generator) - 0.5, v = open_uniform(rate, generator), us = 0.5 - abs(u);
    const Tensor k = floor((a * 2 / us + b) * u + rate + 0.43);
    const Tensor quick = logical_and(us >= 0.07, v <= squeeze);
    const Tensor possible = logical_and(k >= 0, logical_or(us >= 0.013, v <= us));
    const Tensor slow = log(v * inverse / (a / (us * us) + b)) <= k * root - rate - lgamma(clamp_min(k, 0) + 1);
    return std::pair(k, logical_or(quick, logical_and(possible, slow)));
  });
}

}  // namespace

Tensor& Tensor::exponential_(double rate, Generator* generator) & {
  const char* op = "exponential_";
  fillable(*this, op, true);
  require(rate > 0 && std::isfinite(rate), ErrorKind::argument, op, "the rate ", rate, " is not positive");
  return copy_(volta::log(open_uniform(*this, generator)).mul_(-1 / rate));
}

Tensor& Tensor::bernoulli_(double p, Generator* generator) & {
  const char* op = "bernoulli_";
  fillable(*this, op, false);
  require(p >= 0 && p <= 1, ErrorKind::argument, op, "the probability ", p, " is not between 0 and 1");
  return copy_(rand(shape(), {f64, device(), false, generator}) < p);
}
Tensor& Tensor::bernoulli_(const Tensor& p, Generator* generator) & {
  const char* op = "bernoulli_";
  fillable(*this, op, false);
  require_floating(p, op);
  refuse_grad(op, {p});
  common_device(*this, p, op);
  const Tensor each = blamed_on(op, [&] { return p.detach().expand(shape()); });
  require_all(volta::logical_and(p >= 0, p <= 1), op, "probabilities must be between 0 and 1");
  return copy_(rand(shape(), {f64, device(), false, generator}) < each);
}

Tensor& Tensor::geometric_(double p, Generator* generator) & {
  const char* op = "geometric_";
  fillable(*this, op, false);
  require(dtype() != boolean, ErrorKind::dtype, op, "is not defined for booleans");
  require(p > 0 && p < 1, ErrorKind::argument, op, "the probability ", p, " is not between 0 and 1");
  return copy_(volta::ceil(volta::log(open_uniform(*this, generator)) / std::log1p(-p)).clamp_min(1));
}

Tensor& Tensor::cauchy_(double median, double sigma, Generator* generator) & {
  const char* op = "cauchy_";
  fillable(*this, op, true);
  require(sigma > 0 && std::isfinite(median), ErrorKind::argument, op, "the width ", sigma, " is not positive");
  return copy_(volta::tan((open_uniform(*this, generator) - 0.5) * std::numbers::pi) * sigma + median);
}

Tensor& Tensor::log_normal_(double mean, double deviation, Generator* generator) & {
  const char* op = "log_normal_";
  fillable(*this, op, true);
  require(deviation > 0, ErrorKind::argument, op, "the standard deviation ", deviation, " is not positive");
  return copy_(volta::exp(volta::normal(shape(), mean, deviation, {f64, device(), false, generator})));
}

Tensor poisson(const Tensor& rate, Generator* generator) {
  const char* op = "poisson";
  const Tensor wide = drawable(rate, op);
  const NoGrad off;
  require_all(logical_and(wide >= 0, isfinite(wide)), op, "rates must be finite and not negative");
  const Tensor large = wide >= 10;
  return where(large, poisson_by_rejection(where(large, wide, 10), generator),
               poisson_by_product(where(large, 0, wide), generator))
      .to(rate.dtype());
}

Tensor sample_gamma(const Tensor& concentration, const Operand& rate, Generator* generator) {
  const char* op = "sample_gamma";
  const Tensor a = drawable(concentration, op);
  const Tensor b = rate.tensor ? drawable(*rate.tensor, op) : full({}, rate.scalar.as<double>(), {f64, a.device()});
  const NoGrad off;
  require_all(logical_and(a > 0, isfinite(a)), op, "concentrations must be finite and positive");
  require_all(b > 0, op, "rates must be positive");
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), op);
  return (exp(log_gamma_of(a.expand(shape), generator)) / b).to(concentration.dtype());
}

Tensor sample_beta(const Tensor& concentration1, const Tensor& concentration0, Generator* generator) {
  const char* op = "sample_beta";
  const Tensor a = drawable(concentration1, op), b = drawable(concentration0, op);
  const NoGrad off;
  common_device(a, b, op);
  require_all(logical_and(a > 0, isfinite(a)), op, "concentrations must be finite and positive");
  require_all(logical_and(b > 0, isfinite(b)), op, "concentrations must be finite and positive");
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), op);
  const Tensor x = log_gamma_of(a.expand(shape), generator), y = log_gamma_of(b.expand(shape), generator);
  return sigmoid(x - y).to(concentration1.dtype());
}

Tensor sample_dirichlet(const Tensor& concentration, Generator* generator) {
  const char* op = "sample_dirichlet";
  const Tensor a = drawable(concentration, op);
  const NoGrad off;
  require(a.dim() >= 1, ErrorKind::shape, op, "needs rows of concentrations");
  require_all(logical_and(a > 0, isfinite(a)), op, "concentrations must be finite and positive");
  return softmax(log_gamma_of(a, generator), -1).to(concentration.dtype());
}

}  // namespace volta

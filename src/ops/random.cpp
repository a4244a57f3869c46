// Random tensors, and the generator behind them.
#include <cmath>
#include <numbers>

#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/create.h"

namespace volta {
namespace {

Generator& generator_of(Generator* given) { return given ? *given : default_generator(); }

// Checks the call, then draws a tensor of it; `call` says what, the options where.
Tensor draw(RandomCall call, const Shape& shape, const Options& options, const char* op) {
  call.n = checked_numel(shape, op);
  call.dtype = checked_dtype(options, default_dtype(), op);
  check(call);
  const Tensor x = allocate(shape, call.dtype, options.device, op);
  if (call.n == 0) return x;
  const auto at = generator_of(options.generator).take(counters_used(call.kind, call.dtype, call.n));
  call.seed = at.seed;
  call.offset = at.offset;
  call.out = address(x);
  backend(options.device).random(call);
  return x;
}

RandomCall real(Distribution kind, double a, double b) {
  RandomCall call{};
  call.kind = kind;
  call.a = a;
  call.b = b;
  return call;
}

RandomCall integers(int64_t low, uint64_t range) {
  RandomCall call{};
  call.kind = Distribution::randint;
  call.low = low;
  call.range = range;
  return call;
}

Tensor draw_real(Distribution kind, double a, double b, const Shape& shape, const Options& options, const char* op) {
  const DType dtype = checked_dtype(options, default_dtype(), op);
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, op, "needs a floating dtype, got " + std::string(name(dtype)));
  if (!std::isfinite(a) || !std::isfinite(b))
    throw Error(Error::Kind::argument, op,
                "parameters " + std::to_string(a) + " and " + std::to_string(b) + " must be finite");
  return finished(draw(real(kind, a, b), shape, options, op), options);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

void check_weights(const Tensor& weights, int64_t samples, bool replacement) {
  const auto refuse = [&](Error::Kind kind, const std::string& why) {
    throw Error(kind, "multinomial", "weights of shape " + weights.shape().str() + ": " + why);
  };
  if (weights.dim() < 1 || weights.dim() > 2) refuse(Error::Kind::shape, "must be [n] or [rows, n]");
  if (!is_floating(weights.dtype()))
    refuse(Error::Kind::dtype, "must be floating, got " + std::string(name(weights.dtype())));
  if (samples < 0) refuse(Error::Kind::argument, std::to_string(samples) + " samples");
  if (weights.numel() == 0) {
    if (weights.size(-1) == 0 && samples > 0) refuse(Error::Kind::argument, "there is nothing to draw from");
    return;
  }
  if (!logical_and(ge(weights, 0), isfinite(weights)).all().item<bool>())
    refuse(Error::Kind::argument, "must be finite and not negative");
  const int64_t fewest = count_nonzero(weights, -1).min().item<int64_t>();
  if (fewest == 0) refuse(Error::Kind::argument, "some row is all zero");
  if (!replacement && samples > fewest)
    refuse(Error::Kind::argument,
           std::to_string(samples) + " samples without replacement of " + std::to_string(fewest) + " non-zero weights");
}

}  // namespace

Generator::State Generator::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Generator::set_state(const State& state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}

void Generator::manual_seed(uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::take(uint64_t counters) {
  const std::lock_guard lock(mutex_);
  const State before = state_;
  state_.offset += counters;
  return before;
}

Generator& default_generator() {
  static auto* generator = new Generator;
  return *generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

Tensor rand(const Shape& shape, const Options& options) {
  return draw_real(Distribution::uniform, 0, 1, shape, options, "rand");
}
Tensor randn(const Shape& shape, const Options& options) {
  return draw_real(Distribution::normal, 0, 1, shape, options, "randn");
}
Tensor rand_like(const Tensor& x, Options options) {
  options = options_like(x, options, "rand_like");
  return draw_real(Distribution::uniform, 0, 1, x.shape(), options, "rand_like");
}
Tensor randn_like(const Tensor& x, Options options) {
  options = options_like(x, options, "randn_like");
  return draw_real(Distribution::normal, 0, 1, x.shape(), options, "randn_like");
}
Tensor uniform(const Shape& shape, double low, double high, const Options& options) {
  return draw_real(Distribution::uniform, low, high, shape, options, "uniform");
}
Tensor normal(const Shape& shape, double mean, double std, const Options& options) {
  return draw_real(Distribution::normal, mean, std, shape, options, "normal");
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const Options& options) {
  if (low >= high)
    throw Error(Error::Kind::argument, "randint",
                "nothing lies between " + std::to_string(low) + " and " + std::to_string(high) + " (exclusive)");
  Options whole = options;
  whole.dtype = options.dtype.value_or(i64);
  return finished(draw(integers(low, uint64_t(high) - uint64_t(low)), shape, whole, "randint"), options);
}

// The inverse of the normal distribution function, of a uniform number between its values at the ends.
Tensor truncated_normal(const Shape& shape, double mean, double std, double low, double high, const Options& options) {
  const auto refuse = [](const std::string& why) { throw Error(Error::Kind::argument, "truncated_normal", why); };
  const DType dtype = checked_dtype(options, default_dtype(), "truncated_normal");
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, "truncated_normal", "needs a floating dtype, got " + std::string(name(dtype)));
  if (!(std > 0) || !std::isfinite(std)) refuse("the standard deviation " + std::to_string(std) + " is not positive");
  if (!std::isfinite(mean)) refuse("the mean " + std::to_string(mean) + " is not finite");
  if (!(low < high))
    refuse("the lower bound " + std::to_string(low) + " is not below the upper bound " + std::to_string(high));
  const double below = normal_cdf((low - mean) / std), above = normal_cdf((high - mean) / std);
  Options plain = options;
  plain.requires_grad = false;
  plain.dtype = traits(dtype).compute;
  const NoGrad off;
  const Tensor u = draw(real(Distribution::uniform, 2 * below - 1, 2 * above - 1), shape, plain, "truncated_normal");
  const Tensor x = clamp(erfinv(u) * (std * std::numbers::sqrt2) + mean, low, high);
  return finished(x.to(dtype), options);
}

Tensor bernoulli(const Tensor& probability, Generator* generator) {
  const Tensor& p = probability.checked("bernoulli");
  if (!is_floating(p.dtype()))
    throw Error(Error::Kind::dtype, "bernoulli", "needs floating probabilities, got " + std::string(name(p.dtype())));
  refuse_grad("bernoulli", {p});
  if (p.numel() > 0 && !logical_and(ge(p, 0), le(p, 1)).all().item<bool>())
    throw Error(Error::Kind::argument, "bernoulli", "probabilities must be between 0 and 1");
  const Options options{traits(p.dtype()).compute, p.device(), false, generator};
  return lt(rand(p.shape(), options), p).to(p.dtype());
}

// Sorts random keys of 64 bits; equal keys are too rare to matter.
Tensor randperm(int64_t n, const Options& options) {
  const DType dtype = checked_dtype(options, i64, "randperm");
  if (n < 0)
    throw Error(Error::Kind::argument, "randperm", "the length must not be negative, got " + std::to_string(n));
  checked_numel({n}, "randperm");
  if (n > 0) arange(n - 1, n, 1, {dtype});
  Options keys = options;
  keys.dtype = i64;
  keys.requires_grad = false;
  const Tensor order = argsort(draw(integers(INT64_MIN, 0), {n}, keys, "randperm"));
  return finished(order.to(dtype), options);
}

// Without replacement: an exponential race, whose winners come in the order of successive draws.
// With replacement: where uniform numbers fall among the running sums.
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, Generator* generator) {
  refuse_grad("multinomial", {weights.checked("multinomial")});
  check_weights(weights, samples, replacement);
  const NoGrad off;
  Shape shape = weights.shape();
  shape[shape.size() - 1] = samples;
  if (shape.numel() == 0) return empty(shape, {i64, weights.device()});
  const Tensor w = weights.to(f64).contiguous();
  const Options options{f64, w.device(), false, generator};
  if (!replacement) {
    const Tensor times = draw(real(Distribution::exponential, 1, 1), w.shape(), options, "multinomial");
    return topk(w / times, samples, -1).indices;
  }
  const Tensor sums = cumsum(w / w.amax(-1, true), -1);
  const Tensor total = sums.narrow(-1, w.size(-1) - 1, 1);
  return searchsorted(sums, rand(shape, options) * total, {.right = true});
}

}  // namespace volta

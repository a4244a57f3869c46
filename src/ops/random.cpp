// Random tensors, the checks of a call for random numbers, and the generator behind them.
#include <cmath>
#include <numbers>

#include <volta/ops.h>

#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/create.h"

namespace volta {
namespace {

// Both ends of the range must be values of the dtype; of a floating one, every integer between them too.
bool holds_integers(const RandomCall& call) {
  const int64_t low = call.low;
  const uint64_t steps = call.range - 1;
  return visit(call.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      return uint64_t(low) + steps >= uint64_t(low);
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
      return low >= least && low <= most && steps <= uint64_t(most) - uint64_t(low);
    } else {
      constexpr int digits = std::is_same_v<T, float16> ? 11 : sizeof(T) == 2 ? 8 : std::numeric_limits<T>::digits;
      constexpr int64_t exact = int64_t(1) << digits;
      return low >= -exact && low <= exact && steps <= uint64_t(exact - low);
    }
  });
}

// Draws into x, of the call's kind and parameters.
Tensor draw(RandomCall call, const Shape& shape, const Options& options, const char* op) {
  call.dtype = *options.dtype;
  check(call, op);
  const Tensor x = allocate(shape, call.dtype, *options.device, op);
  call.n = x.numel();
  if (call.n == 0) return x;
  Generator& generator = options.generator ? *options.generator : default_generator();
  const auto at = generator.take(counters_used(call.kind, call.dtype, call.n));
  call.seed = at.seed;
  call.offset = at.offset;
  call.out = address(x);
  backend(x.device()).random(call);
  return x;
}

Tensor draw_real(Distribution kind, double a, double b, const Shape& shape, const Options& given, const char* op) {
  const Options options = resolved(given, default_dtype(), op);
  return finished(draw({kind, f32, a, b}, shape, options, op), options);
}
Tensor draw_like(Distribution kind, const Tensor& x, const Options& given, const char* op) {
  return draw_real(kind, 0, 1, x.checked(op).shape(), resolved_like(x, given, op), op);
}

RandomCall integers(int64_t low, uint64_t range) { return {Distribution::randint, i64, 0, 1, low, range}; }

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

void check_weights(const Tensor& weights, int64_t samples, bool replacement) {
  const auto refuse = [&](Error::Kind kind, const std::string& why) {
    throw Error(kind, "multinomial", "weights of shape " + weights.shape().str() + ": " + why);
  };
  if (weights.dim() < 1 || weights.dim() > 2) refuse(Error::Kind::shape, "must be [n] or [rows, n]");
  if (!is_floating(weights.dtype()))
    refuse(Error::Kind::dtype, "must be floating, got " + std::string(name(weights.dtype())));
  if (samples < 0) refuse(Error::Kind::argument, std::to_string(samples) + " samples");
  if (weights.size(-1) == 0 && samples > 0) refuse(Error::Kind::argument, "there is nothing to draw from");
  if (weights.numel() == 0) return;
  if (!logical_and(ge(weights, 0), isfinite(weights)).all().item<bool>())
    refuse(Error::Kind::argument, "must be finite and not negative");
  const int64_t fewest = count_nonzero(weights, -1).min().item<int64_t>();
  if (fewest == 0) refuse(Error::Kind::argument, "some row is all zero");
  if (!replacement && samples > fewest)
    refuse(Error::Kind::argument,
           std::to_string(samples) + " samples without replacement of " + std::to_string(fewest) + " non-zero weights");
}

}  // namespace

void check(const RandomCall& call, const char* op) {
  const auto refuse = [&](const std::string& why, Error::Kind kind = Error::Kind::argument) {
    throw Error(kind, op ? std::string_view(op) : name(call.kind), why);
  };
  const auto number = [](double x) { return std::to_string(x); };
  const std::string dtype(name(call.dtype));
  const double a = call.a, b = call.b, most = largest_finite(call.dtype);
  switch (call.kind) {
    case Distribution::bernoulli:
      if (!(a >= 0 && a <= 1)) refuse("the probability " + number(a) + " is not between 0 and 1");
      return;
    case Distribution::randint:
      if (!holds_integers(call)) refuse(dtype + " does not hold every integer of the range");
      return;
    default: break;
  }
  if (!is_floating(call.dtype)) refuse("needs a floating dtype, got " + dtype, Error::Kind::dtype);
  if (!std::isfinite(a) || !std::isfinite(b))
    refuse("parameters " + number(a) + " and " + number(b) + " must be finite");
  if (call.kind == Distribution::normal && b < 0) refuse("the standard deviation " + number(b) + " is negative");
  if (call.kind == Distribution::exponential && a <= 0) refuse("the rate " + number(a) + " is not positive");
  if (call.kind != Distribution::uniform) return;
  if (a > b) refuse("the lower bound " + number(a) + " is not below the upper bound " + number(b));
  if (a < -most || b > most || b - a > most)
    refuse("bounds " + number(a) + " and " + number(b) + " are beyond " + dtype);
}

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
Tensor uniform(const Shape& shape, double low, double high, const Options& options) {
  return draw_real(Distribution::uniform, low, high, shape, options, "uniform");
}
Tensor normal(const Shape& shape, double mean, double std, const Options& options) {
  return draw_real(Distribution::normal, mean, std, shape, options, "normal");
}
Tensor& Tensor::uniform_(double low, double high, Generator* generator) {
  const Options options = {.dtype = checked("uniform_").dtype(), .device = device(), .generator = generator};
  return copy_(draw_real(Distribution::uniform, low, high, shape(), options, "uniform_"));
}
Tensor& Tensor::normal_(double mean, double deviation, Generator* generator) {
  const Options options = {.dtype = checked("normal_").dtype(), .device = device(), .generator = generator};
  return copy_(draw_real(Distribution::normal, mean, deviation, shape(), options, "normal_"));
}
Tensor rand_like(const Tensor& x, Options options) { return draw_like(Distribution::uniform, x, options, "rand_like"); }
Tensor randn_like(const Tensor& x, Options options) {
  return draw_like(Distribution::normal, x, options, "randn_like");
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const Options& given) {
  if (low >= high)
    throw Error(Error::Kind::argument, "randint",
                "nothing lies between " + std::to_string(low) + " and " + std::to_string(high) + " (exclusive)");
  const Options options = resolved(given, i64, "randint");
  return finished(draw(integers(low, uint64_t(high) - uint64_t(low)), shape, options, "randint"), options);
}

// The inverse of the normal distribution function, of a uniform number between its values at the ends.
Tensor truncated_normal(const Shape& shape, double mean, double std, double low, double high, const Options& given) {
  const char* op = "truncated_normal";
  const auto refuse = [&](const std::string& why) { throw Error(Error::Kind::argument, op, why); };
  const Options options = resolved(given, default_dtype(), op);
  const DType dtype = *options.dtype;
  if (!is_floating(dtype))
    throw Error(Error::Kind::dtype, op, "needs a floating dtype, got " + std::string(name(dtype)));
  if (!(std > 0) || !std::isfinite(std)) refuse("the standard deviation " + std::to_string(std) + " is not positive");
  if (!std::isfinite(mean)) refuse("the mean " + std::to_string(mean) + " is not finite");
  if (!(low < high))
    refuse("the lower bound " + std::to_string(low) + " is not below the upper bound " + std::to_string(high));
  const double below = 2 * normal_cdf((low - mean) / std) - 1, above = 2 * normal_cdf((high - mean) / std) - 1;
  const Options plain{traits(dtype).compute, options.device, false, options.generator};
  const Tensor u = draw({Distribution::uniform, f32, below, above}, shape, plain, op);
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
  return lt(rand(p.shape(), {traits(p.dtype()).compute, p.device(), false, generator}), p).to(p.dtype());
}

// Sorts random keys of 64 bits; equal keys are too rare to matter.
Tensor randperm(int64_t n, const Options& given) {
  const Options options = resolved(given, i64, "randperm");
  if (n < 0)
    throw Error(Error::Kind::argument, "randperm", "the length must not be negative, got " + std::to_string(n));
  if (options.dtype == boolean) throw Error(Error::Kind::dtype, "randperm", "is not defined for booleans");
  require_held(n - (n > 0), *options.dtype, "randperm");
  const Options keys{i64, options.device, false, options.generator};
  return finished(argsort(draw(integers(INT64_MIN, 0), {n}, keys, "randperm")).to(*options.dtype), options);
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
    const Tensor times = draw({Distribution::exponential, f64, 1, 1}, w.shape(), options, "multinomial");
    return topk(w / times, samples, -1).indices;
  }
  const Tensor sums = cumsum(w / w.amax(-1, true), -1);
  const Tensor total = sums.narrow(-1, w.size(-1) - 1, 1);
  return searchsorted(sums, rand(shape, options) * total, {.right = true});
}

}  // namespace volta

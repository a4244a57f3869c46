// Random tensors, and the generator behind them.
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>

#include <volta/ops.h>

#include "backend/allocate.h"
#include "backend/backend.h"
#include "core/draws.h"
#include "core/fork.h"
#include "core/integer_range.h"
#include "core/recording.h"
#include "core/thread_generator.h"
#include "graph/record.h"
#include "ops/check.h"

namespace volta {
namespace {

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
// The result has the shape of x, and its dtype and device unless the options say otherwise.
Tensor draw_like(Distribution kind, double a, double b, const Tensor& x, const Options& given, const char* op) {
  const Options options = resolved_like(x, given, op);
  return draw_real(kind, a, b, x.shape(), options, op);
}

RandomCall integers(int64_t low, uint64_t range) { return {Distribution::randint, i64, 0, 1, low, range}; }

Tensor draw_integers(int64_t low, int64_t high, const Shape& shape, const Options& options, const char* op) {
  require(low < high, ErrorKind::argument, op, "nothing lies between ", low, " and ", high, " (exclusive)");
  return finished(draw(integers(low, uint64_t(high) - uint64_t(low)), shape, options, op), options);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

void check_weights(const Tensor& weights, int64_t samples, bool replacement) {
  const auto check = [&](bool fine, ErrorKind kind, const auto&... why) {
    require(fine, kind, "multinomial", "weights of shape ", weights, ": ", why...);
  };
  check(weights.dim() == 1 || weights.dim() == 2, ErrorKind::shape, "must be [n] or [rows, n]");
  check(is_floating(weights.dtype()), ErrorKind::dtype, "must be floating, got ", weights.dtype());
  check(samples >= 0, ErrorKind::argument, samples, " samples");
  check(weights.size(-1) > 0 || samples == 0, ErrorKind::argument, "there is nothing to draw from");
  if (weights.numel() == 0) return;
  const bool proper = read_for<bool>("multinomial", logical_and(ge(weights, 0), isfinite(weights)).all());
  check(proper, ErrorKind::argument, "must be finite and not negative");
  const int64_t fewest = read_for<int64_t>("multinomial", count_nonzero(weights, -1).min());
  check(fewest > 0, ErrorKind::argument, "some row is all zero");
  check(replacement || samples <= fewest, ErrorKind::argument, samples, " samples without replacement of ", fewest,
        " non-zero weights");
}

// One mutex guards all generators: it is held for a few additions, and a fork can wait for one alone.
std::mutex generators;
[[maybe_unused]] const bool fork_watched = fork_waits_for(generators);

Generator& process_generator() {
  static auto* generator = new Generator;
  return *generator;
}

}  // namespace

Generator::~Generator() {
  if (Recording* const recording = Recording::current()) [[unlikely]]
    recording->lose(*this);
}

Generator::State Generator::state() const {
  const std::lock_guard lock(generators);
  return state_;
}

void Generator::set_state(const State& state) {
  const std::lock_guard lock(generators);
  state_ = state;
}

void Generator::manual_seed(uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::take(uint64_t counters) {
  const auto fresh = [&] {
    const std::lock_guard lock(generators);
    const State before = state_;
    state_.offset += counters;
    if (Recording* const recording = Recording::current()) [[unlikely]]
      recording->draws.push_back({this, counters, before, before});
    return before;
  };
  DrawScope* const scope = DrawScope::innermost();
  return scope ? scope->draw(fresh) : fresh();
}

Generator& default_generator() {
  Generator* const own = ThreadGenerator::get();
  return own ? *own : process_generator();
}
void manual_seed(uint64_t seed) { process_generator().manual_seed(seed); }

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
Tensor& Tensor::uniform_(double low, double high, Generator* generator) & {
  require_writable(checked("uniform_"), "uniform_");  // before the generator moves
  return copy_(draw_like(Distribution::uniform, low, high, *this, {.generator = generator}, "uniform_"));
}
Tensor& Tensor::normal_(double mean, double deviation, Generator* generator) & {
  require_writable(checked("normal_"), "normal_");
  return copy_(draw_like(Distribution::normal, mean, deviation, *this, {.generator = generator}, "normal_"));
}
Tensor rand_like(const Tensor& x, Options options) {
  return draw_like(Distribution::uniform, 0, 1, x, options, "rand_like");
}
Tensor randn_like(const Tensor& x, Options options) {
  return draw_like(Distribution::normal, 0, 1, x, options, "randn_like");
}

Tensor randint(Int low, Int high, const Shape& shape, const Options& options) {
  return draw_integers(low, high, shape, resolved(options, i64, "randint"), "randint");
}
Tensor randint(Int high, const Shape& shape, const Options& options) { return randint(0, high, shape, options); }
Tensor randint_like(const Tensor& x, Int low, Int high, Options options) {
  return draw_integers(low, high, x.checked("randint_like").shape(), resolved_like(x, options, "randint_like"),
                       "randint_like");
}
Tensor randint_like(const Tensor& x, Int high, Options options) { return randint_like(x, 0, high, options); }

// The inverse of the normal distribution function, of a uniform number between its values at the ends.
Tensor truncated_normal(const Shape& shape, double mean, double std, double low, double high, const Options& given) {
  const char* op = "truncated_normal";
  const Options options = resolved(given, default_dtype(), op);
  const DType dtype = *options.dtype;
  require(is_floating(dtype), ErrorKind::dtype, op, "needs a floating dtype, got ", dtype);
  require(std > 0 && std::isfinite(std), ErrorKind::argument, op, "the standard deviation ", std, " is not positive");
  require(std::isfinite(mean), ErrorKind::argument, op, "the mean ", mean, " is not finite");
  require(low < high, ErrorKind::argument, op, "the lower bound ", low, " is not below the upper bound ", high);
  const double below = 2 * normal_cdf((low - mean) / std) - 1, above = 2 * normal_cdf((high - mean) / std) - 1;
  const Options plain{traits(dtype).compute, options.device, false, options.generator};
  const Tensor u = draw({Distribution::uniform, f32, below, above}, shape, plain, op);
  const Tensor x = clamp(erfinv(u) * (std * std::numbers::sqrt2) + mean, low, high);
  return finished(x.to(dtype), options);
}

Tensor bernoulli(const Tensor& probability, Generator* generator) {
  const Tensor& p = probability;
  require_floating(p, "bernoulli");
  refuse_grad("bernoulli", {p});
  require(p.numel() == 0 || read_for<bool>("bernoulli", logical_and(ge(p, 0), le(p, 1)).all()), ErrorKind::argument,
          "bernoulli", "probabilities must be between 0 and 1");
  return lt(rand(p.shape(), {traits(p.dtype()).compute, p.device(), false, generator}), p).to(p.dtype());
}

Tensor Tensor::bernoulli(Generator* generator) const { return volta::bernoulli(*this, generator); }

// Sorts random keys of 64 bits; equal keys are too rare to matter.
Tensor randperm(Int n, const Options& given) {
  const Options options = resolved(given, i64, "randperm");
  require(n >= 0, ErrorKind::argument, "randperm", "the length must not be negative, got ", n);
  require(options.dtype != boolean, ErrorKind::dtype, "randperm", "is not defined for booleans");
  require(n == 0 || holds_integers(*options.dtype, 0, uint64_t(n)), ErrorKind::argument, "randperm", *options.dtype,
          " does not hold every integer below ", n);
  const Options keys{i64, options.device, false, options.generator};
  return finished(argsort(draw(integers(INT64_MIN, 0), {n}, keys, "randperm")).to(*options.dtype), options);
}

// Without replacement: an exponential race, whose winners come in the order of successive draws.
// With replacement: where uniform numbers fall among the running sums.
Tensor multinomial(const Tensor& weights, Int samples, bool replacement, Generator* generator) {
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
    // By logarithms: quotients of extreme weights leave the range, and would tie with those of weight 0.
    const Tensor keys = where(w > 0, log(w) - log(times), -std::numeric_limits<double>::infinity());
    return topk(keys, samples, -1).indices;
  }
  const Tensor sums = cumsum(w / w.amax(-1, true), -1);
  const Tensor total = sums.narrow(-1, w.size(-1) - 1, 1);
  const Tensor drawn = blamed_on("multinomial", [&] { return rand(shape, options); });
  return searchsorted(sums, drawn * total, {.right = true});
}

Tensor Tensor::multinomial(Int samples, bool replacement, Generator* generator) const {
  return volta::multinomial(*this, samples, replacement, generator);
}

}  // namespace volta

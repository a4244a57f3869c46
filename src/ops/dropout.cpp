// Dropout of elements or of whole channels.
#include <volta/ops.h>
#include <volta/plain.h>

#include <cmath>
#include <optional>

#include <volta/create.h>
#include <volta/random.h>

#include "backend/dropout.h"
#include "core/arguments.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/fused.h"

namespace volta {
namespace {

void check_dropout(const Tensor& x, double p, bool channels, const char* op) {
  probability(p, op);
  require_floating(x, op);
  if (channels && x.dim() < 2) throw Error(Error::Kind::shape, op, "needs [n, channels, ...], got " + x.shape().str());
}

// 1 with probability 1 - p, else 0; one number per element, or per channel.
Tensor keep(const Tensor& x, double p, bool channels) {
  Shape shape = x.shape();
  for (int i = 2; channels && i < shape.size(); ++i) shape[i] = 1;
  return ge(rand(shape, {.dtype = f32, .device = x.device()}), p).to(x.dtype());
}

// In one pass, by numbers from a state that the gradient draws from again: no mask is kept.
Tensor drop_fused(const Tensor& x, double p, std::optional<Generator::State> drawn, const char* op) {
  const Tensor in = unrecorded([&] { return x.contiguous(); }), out = allocate(x.shape(), x.dtype(), x.device(), op);
  const auto from = drawn ? *drawn : default_generator().take((uint64_t(x.numel()) + 3) / 4);
  backend(x.device()).dropout({arg(out), arg(in), p, from.seed, from.offset});
  return record(op, out, {x}, [p, from, op](const Tensor& g) { return drop_fused(g, p, from, op); });
}

Tensor drop(const Tensor& x, double p, bool training, bool channels, const char* op) {
  check_dropout(x, p, channels, op);
  if (!training || p == 0) return x;
  if (p == 1) return x * 0;
  if (!channels && offered(x.device(), DropoutCall{{}, arg(x), p, 0, 0})) return drop_fused(x, p, {}, op);
  return x * keep(x, p, channels).mul_(1 / (1 - p));
}

// What is dropped becomes the value selu saturates at; a and b restore mean 0 and variance 1.
Tensor alpha_drop(const Tensor& x, double p, bool training, bool channels, const char* op) {
  check_dropout(x, p, channels, op);
  if (!training || p == 0) return x;
  if (p == 1) return x * 0;
  const double saturated = -1.7580993408473766;
  const double a = 1 / std::sqrt((1 - p) * (1 + p * saturated * saturated)), b = -a * p * saturated;
  const Tensor mask = keep(x, p, channels);
  return x * (mask * a) + ((1 - mask) * (saturated * a) + b);
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) { return drop(x, p, training, false, "dropout"); }
Tensor feature_dropout(const Tensor& x, double p, bool training) {
  return drop(x, p, training, true, "feature_dropout");
}
Tensor alpha_dropout(const Tensor& x, double p, bool training) {
  return alpha_drop(x, p, training, false, "alpha_dropout");
}
Tensor feature_alpha_dropout(const Tensor& x, double p, bool training) {
  return alpha_drop(x, p, training, true, "feature_alpha_dropout");
}

Tensor Plain::gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  const char* op = "gumbel_softmax";
  require_floating(logits, op);
  axis_of(logits, dim, op);
  require(tau > 0, ErrorKind::argument, op, "the temperature must be positive, got ", tau);
  Tensor waiting = empty(logits.shape(), {.dtype = f64, .device = logits.device()});
  waiting.exponential_();
  const Tensor soft = softmax((logits - log(waiting).to(logits.dtype())) / tau, dim);
  if (!hard || soft.numel() == 0) return soft;
  const Tensor index = soft.detach().argmax(dim, true);
  const Tensor chosen = zeros_like(soft.detach()).scatter(dim, index, 1.0);
  return chosen - soft.detach() + soft;
}

}  // namespace volta

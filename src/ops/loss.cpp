// Losses of numbers, probabilities, margins and distances.
#include "ops/loss.h"

#include <cmath>
#include <numbers>

#include <volta/plain.h>

#include "core/arguments.h"
#include "graph/record.h"

namespace volta {
namespace {

using loss::reduced;
using loss::reduction;
using loss::require_pair;
using loss::widened;
using loss::with_weight;

// What the losses of a pair are. Those of halves are computed in f32: squares and quotients need not fit a half, and
// what is rounded at every step is not what is rounded once.
DType dtype_of(const Tensor& input, const Tensor& target, const char* op) {
  require_pair(input, target, op);
  return promote(input.dtype(), target.dtype());
}

// A weight may be broadcast, the losses are not.
void require_weight(const Tensor& weight, const Tensor& input, const char* op, const char* name) {
  require(!weight.defined() || broadcast_shapes(weight.shape(), input.shape(), op) == input.shape(), ErrorKind::shape,
          op, name, " ", weight, " does not fit the input ", input);
}

Tensor weighted(const Tensor& losses, const Tensor& weight, const char* op) {
  return weight.defined() ? blamed_on(op, [&] { return losses * weight; }) : losses;
}

// The square where it counts: elsewhere its gradient, 0 times a difference, must not see an infinite one.
Tensor square_where(const Tensor& counts, const Tensor& e) { return square(where(counts, e, 0)); }

// t log t, and 0 at 0, with a finite gradient there.
Tensor entropy(const Tensor& t) {
  const Tensor safe = where(t == 0, 1, t);
  return safe * log(safe);
}

// Targets that are only compared with 1 and -1 are choices, not values.
void refuse_target_grad(const Tensor& target, const char* op) {
  require(!any_needs_grad(target), ErrorKind::autograd, op,
          "has no derivative by its target, which is a choice; detach() it");
}

}  // namespace

Tensor Plain::mse_loss(const Tensor& input, const Tensor& target, const LossOptions& o) {
  const Reduce how = reduction(o.reduction, "mse_loss");
  const DType dtype = dtype_of(input, target, "mse_loss");
  return reduced(square(widened(input) - widened(target)), how).to(dtype);
}

Tensor Plain::l1_loss(const Tensor& input, const Tensor& target, const LossOptions& o) {
  const Reduce how = reduction(o.reduction, "l1_loss");
  const DType dtype = dtype_of(input, target, "l1_loss");
  return reduced(abs(widened(input) - widened(target)), how).to(dtype);
}

Tensor Plain::smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& o) {
  const Reduce how = reduction(o.reduction, "smooth_l1_loss");
  if (!(o.beta >= 0)) throw Error(Error::Kind::argument, "smooth_l1_loss", "beta must be at least 0");
  if (const DType dtype = dtype_of(input, target, "smooth_l1_loss"); is_half(dtype))
    return smooth_l1_loss(input.to(f32), target.to(f32), o).to(dtype);
  // The square is of the difference itself: |d| would lose the second derivative at 0.
  const Tensor e = input - target, d = abs(e);
  if (o.beta == 0) return reduced(d, how);
  const Tensor near = d < o.beta;
  return reduced(where(near, 0.5 / o.beta * square_where(near, e), d - 0.5 * o.beta), how);
}

Tensor Plain::huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& o) {
  const Reduce how = reduction(o.reduction, "huber_loss");
  if (!(o.delta > 0)) throw Error(Error::Kind::argument, "huber_loss", "delta must be above 0");
  if (const DType dtype = dtype_of(input, target, "huber_loss"); is_half(dtype))
    return huber_loss(input.to(f32), target.to(f32), o).to(dtype);
  const Tensor e = input - target, d = abs(e);
  const Tensor near = d <= o.delta;
  return reduced(where(near, 0.5 * square_where(near, e), o.delta * (d - 0.5 * o.delta)), how);
}

// -(y log p + (1 - y) log(1 - p)), the logarithms held at or above -100.
Tensor Plain::binary_cross_entropy(const Tensor& input, const Tensor& target, const WeightedLossOptions& o) {
  const Reduce how = reduction(o.reduction, "binary_cross_entropy");
  const char* op = "binary_cross_entropy";
  require_floating(input, op);
  require_pair(input, target, op);
  require_weight(o.weight, input, op, "weight");
  if (const DType dtype = input.dtype(); is_half(dtype))
    return binary_cross_entropy(input.to(f32), target.to(f32), o).to(with_weight(dtype, o.weight));
  const Tensor y = target.to(input.dtype());
  Tensor losses;
  {
    const NoGrad off;
    if (read_for<bool>(op, any((input < 0) | (input > 1))))
      throw Error(Error::Kind::argument, op, "the input must be probabilities, between 0 and 1");
    losses = (y - 1) * clamp_min(log1p(-input), -100) - y * clamp_min(log(input), -100);
  }
  losses = record(op, losses, {input, y}, [p = save(input), y = save(y)](const Tensor& g, Gradients& d) {
    const Tensor x = d.take(p), t = d.take(y);
    if (d.needs(0)) d[0] = g * (x - t) / clamp_min(x * (1 - x), 1e-12);
    if (d.needs(1)) d[1] = g * (clamp_min(log1p(-x), -100) - clamp_min(log(x), -100));
  });
  return reduced(weighted(losses, o.weight, op), how);
}

// (1 - y) x - (1 + (pos_weight - 1) y) log(sigmoid(x)): no exponential of a positive number.
Tensor Plain::binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                               const BCEWithLogitsOptions& o) {
  const char* op = "binary_cross_entropy_with_logits";
  const Reduce how = reduction(o.reduction, op);
  require_floating(input, op);
  require_pair(input, target, op);
  require_weight(o.weight, input, op, "weight"), require_weight(o.pos_weight, input, op, "pos_weight");
  if (const DType dtype = input.dtype(); is_half(dtype))
    return binary_cross_entropy_with_logits(input.to(f32), target.to(f32), o)
        .to(with_weight(with_weight(dtype, o.weight), o.pos_weight));
  const Tensor y = target.to(input.dtype());
  Tensor of_positive = logsigmoid(input);
  if (o.pos_weight.defined()) of_positive = blamed_on(op, [&] { return of_positive * (1 + (o.pos_weight - 1) * y); });
  return reduced(weighted((1 - y) * input - of_positive, o.weight, op), how);
}

Tensor Plain::sigmoid_focal_loss(const Tensor& input, const Tensor& target, const FocalLossOptions& o) {
  const char* op = "sigmoid_focal_loss";
  const Reduce how = reduction(o.reduction, op);
  finite(o.alpha, op, "alpha"), not_negative(o.gamma, op, "gamma");
  require_floating(input, op);
  require_pair(input, target, op);
  if (const DType dtype = input.dtype(); is_half(dtype))
    return sigmoid_focal_loss(input.to(f32), target.to(f32), o).to(dtype);
  const Tensor cost = binary_cross_entropy_with_logits(input, target, {.reduction = Reduce::none});
  const Tensor y = target.to(input.dtype());
  const Tensor missing = sigmoid(input) * (1 - y) + sigmoid(-input) * y;  // 1 - the probability of the right answer
  Tensor losses = cost * pow(missing, o.gamma);
  if (o.alpha >= 0) losses = losses * (o.alpha * y + (1 - o.alpha) * (1 - y));
  return reduced(losses, how);
}

Tensor Plain::kl_div(const Tensor& input, const Tensor& target, const KLDivOptions& o) {
  const bool by_batch = o.batchmean || o.reduction.of("kl_div", "reduction") == Reduce::batchmean;
  require_floating(input, "kl_div");
  const DType dtype = dtype_of(input, target, "kl_div");
  if (by_batch && input.dim() == 0)
    throw Error(Error::Kind::shape, "kl_div", "a mean over the batch needs a batch axis");
  const Tensor x = widened(input), t = widened(target);
  const Tensor losses = o.log_target ? exp(t) * (t - x) : entropy(t) - t * x;
  return (by_batch ? sum(losses) / input.size(0) : reduced(losses, o.reduction)).to(dtype);
}

Tensor Plain::gaussian_kl(const Tensor& mean, const Tensor& log_variance, const LossOptions& o) {
  const Reduce how = reduction(o.reduction, "gaussian_kl");
  require_floating(mean, "gaussian_kl"), require_floating(log_variance, "gaussian_kl");
  const DType dtype = dtype_of(mean, log_variance, "gaussian_kl");
  const Tensor m = widened(mean), v = widened(log_variance);
  return reduced(0.5 * (square(m) + expm1(v) - v), how).to(dtype);
}

Tensor Plain::gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                const GaussianNLLOptions& o) {
  const Reduce how = reduction(o.reduction, "gaussian_nll_loss");
  const char* op = "gaussian_nll_loss";
  require_pair(input, target, op);
  if (!(o.eps > 0)) throw Error(Error::Kind::argument, op, "eps must be above 0");
  if (const DType dtype = promote(promote(input.dtype(), target.dtype()), var.checked(op).dtype()); is_half(dtype))
    return gaussian_nll_loss(input.to(f32), target.to(f32), var.to(f32), o).to(dtype);
  // One for each element, or for each row of the last axis.
  Tensor variance = var.checked(op).dim() == input.dim() - 1 ? var.unsqueeze(-1) : var;
  Shape rows = input.shape();
  if (!rows.empty()) rows[rows.size() - 1] = 1;
  require(variance.shape() == input.shape() || variance.shape() == rows, ErrorKind::shape, op, "var ", var,
          " does not fit the input ", input);
  {
    const NoGrad off;
    if (read_for<bool>(op, any(variance < 0))) throw Error(Error::Kind::argument, op, "a variance is negative");
  }
  const Tensor clamped = unrecorded([&] { return clamp_min(variance, o.eps); });
  variance = record(op, clamped, {variance}, [](const Tensor& g) { return g; });  // the gradient passes the clamp
  Tensor losses = blamed_on(op, [&] { return 0.5 * (log(variance) + square(input - target) / variance); });
  if (o.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(losses, how);
}

Tensor Plain::poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLOptions& o) {
  const Reduce how = reduction(o.reduction, "poisson_nll_loss");
  not_negative(o.eps, "poisson_nll_loss", "eps");
  const DType dtype = dtype_of(input, target, "poisson_nll_loss");
  const Tensor x = widened(input), t = widened(target);
  Tensor losses = o.log_input ? exp(x) - t * x : x - t * log(x + o.eps);
  if (o.full) {  // Stirling's approximation of log(target!)
    const Tensor n = clamp_min(t.to(x.dtype()), 1);
    losses = losses + where(t > 1, n * log(n) - n + 0.5 * log(2 * std::numbers::pi * n), 0);
  }
  return reduced(losses, how).to(dtype);
}

Tensor Plain::hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingOptions& o) {
  const Reduce how = reduction(o.reduction, "hinge_embedding_loss");
  finite(o.margin, "hinge_embedding_loss", "margin");
  require_floating(input, "hinge_embedding_loss");
  require_pair(input, target, "hinge_embedding_loss");
  refuse_target_grad(target, "hinge_embedding_loss");
  const Tensor x = widened(input), y = target.to(f64);  // -1 is no number of unsigned dtypes
  const Tensor apart = where(y == 1, 0, clamp_min(o.margin - x, 0));
  return reduced(apart + where(y == -1, 0, x), how).to(input.dtype());
}

Tensor Plain::soft_margin_loss(const Tensor& input, const Tensor& target, const LossOptions& o) {
  const Reduce how = reduction(o.reduction, "soft_margin_loss");
  const DType dtype = dtype_of(input, target, "soft_margin_loss");
  return reduced(-logsigmoid(widened(target) * widened(input)), how).to(dtype);
}

Tensor Plain::margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  const MarginOptions& o) {
  const Reduce how = reduction(o.reduction, "margin_ranking_loss");
  finite(o.margin, "margin_ranking_loss", "margin");
  const DType pair = dtype_of(input1, input2, "margin_ranking_loss");
  require_pair(input1, target, "margin_ranking_loss");
  const Tensor apart = widened(input2) - widened(input1);
  return reduced(clamp_min(widened(target) * apart + o.margin, 0), how).to(promote(pair, target.dtype()));
}

Tensor Plain::cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                    const MarginOptions& o) {
  const Reduce how = reduction(o.reduction, "cosine_embedding_loss");
  const char* op = "cosine_embedding_loss";
  finite(o.margin, op, "margin");
  require_floating(input1, op), require_floating(input2, op);
  require_pair(input1, input2, op);
  const Shape rows = input1.dim() == 2 ? Shape{input1.size(0)} : Shape();
  require((input1.dim() == 1 || input1.dim() == 2) && target.checked(op).shape() == rows, ErrorKind::shape, op,
          "inputs ", input1, " and target ", target, ", not [N, D] and [N]");
  refuse_target_grad(target, op);
  common_device(input1, target, op);
  const DType dtype = promote(input1.dtype(), input2.dtype());
  if (is_half(dtype)) return cosine_embedding_loss(input1.to(f32), input2.to(f32), target, o).to(dtype);
  constexpr double least = 1e-12;
  const Tensor squares = (sum(square(input1), -1) + least) * (sum(square(input2), -1) + least);
  const Tensor cosine = sum(input1 * input2, -1) / sqrt(squares);
  const Tensor y = target.to(f64), apart = where(y == -1, clamp_min(cosine - o.margin, 0), 0);
  return reduced(where(y == 1, 1 - cosine, apart), how);
}

Tensor Plain::triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  const TripletMarginOptions& o) {
  const Reduce how = reduction(o.reduction, "triplet_margin_loss");
  const char* op = "triplet_margin_loss";
  above_zero(o.margin, op, "margin"), finite(o.eps, op, "eps");
  if (!(o.p >= 0)) throw Error(Error::Kind::argument, op, "p must be at least 0, not " + std::to_string(o.p));
  require_pair(anchor, positive, op);
  require_pair(anchor, negative, op);
  if (const DType dtype = promote(promote(anchor.dtype(), positive.dtype()), negative.dtype()); is_half(dtype))
    return triplet_margin_loss(anchor.to(f32), positive.to(f32), negative.to(f32), o).to(dtype);
  const auto distance = [&](const Tensor& a, const Tensor& b) { return norm(a - b + o.eps, o.p, -1); };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap) far = minimum(far, distance(positive, negative));
  return reduced(clamp_min(near - far + o.margin, 0), how);
}

Tensor check_finite(const Tensor& loss) {
  const NoGrad off;
  const char* op = "check_finite";
  const int64_t bad = loss.checked(op).numel() - read_for<int64_t>(op, count_nonzero(isfinite(loss)));
  if (bad == 0) return loss;
  const std::string what =
      loss.numel() == 1 ? "the loss is " + std::to_string(loss.item<double>())
                        : std::to_string(bad) + " of " + std::to_string(loss.numel()) + " losses are NaN or infinite";
  throw Error(Error::Kind::argument, op, what);
}

}  // namespace volta

// Normalisation: what shares its statistics, and the running ones.
#include <volta/ops.h>
#include <volta/plain.h>

#include <volta/create.h>
#include <volta/grad_mode.h>

#include "core/arguments.h"
#include "graph/composed.h"
#include "ops/normalize.h"
#include "ops/reduce.h"

namespace volta {
namespace {

void check_vector(const Tensor& v, int64_t channels, const char* op, const char* what, const Tensor& x) {
  if (!v.defined()) return;
  require(v.dim() == 1 && v.numel() == channels, ErrorKind::shape, op, what, " of shape ", v, " does not fit the ",
          channels, " channels of ", x);
  require(is_floating(v.dtype()), ErrorKind::dtype, op, what, " must be of floats, got ", v.dtype());
}
void check_channels(const Tensor& x, const char* op, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                    const Tensor& var) {
  require(x.dim() >= 2, ErrorKind::shape, op, "needs [n, channels, ...], got ", x);
  check_vector(weight, x.size(1), op, "a weight", x);
  check_vector(bias, x.size(1), op, "a bias", x);
  check_vector(mean, x.size(1), op, "a running mean", x);
  check_vector(var, x.size(1), op, "a running variance", x);
  require(mean.defined() == var.defined(), ErrorKind::argument, op, "the running mean and variance come together");
}

// Rows of the last axes, which are to be of this shape.
NormSets row_sets(const Tensor& x, const Shape& shape, const char* op, const Tensor& weight, const Tensor& bias,
                  double eps) {
  require_floating(x, op);
  const int from = int(x.dim()) - shape.size();
  bool fits = from >= 0 && !shape.empty();
  for (int i = 0; fits && i < shape.size(); ++i) fits = x.shape()[from + i] == shape[i];
  require(fits, ErrorKind::shape, op, "the last axes of ", x, " are not the normalised shape ", shape);
  for (const Tensor& v : {weight, bias})
    if (v.defined())
      require(v.shape() == shape, ErrorKind::shape, op, "a weight or bias of shape ", v, " for the normalised shape ",
              shape);
  int64_t rows = 1;
  for (int i = 0; i < from; ++i) rows *= x.shape()[i];
  return {op, rows, 1, shape.numel(), 1, eps};
}

// Channels of [n, channels, ...] as groups of one.
NormSets channel_sets(const Tensor& x, const char* op, double eps) {
  int64_t inner = 1;
  for (int i = 2; i < int(x.dim()); ++i) inner *= x.shape()[i];
  return {op, x.size(0), x.size(1), 1, inner, eps};
}

// running += momentum * (value - running)
void move_towards(Tensor running, const Tensor& value, double momentum) {
  running.mul_(1 - momentum).add_((value * momentum).to(running.dtype()));
}

Tensor by_given(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                double eps) {
  Shape shape = Shape::filled(int(x.dim()), 1);
  shape[1] = x.size(1);
  const DType wide = x.dtype() == f64 ? f64 : f32;
  const auto along = [&](const Tensor& v) { return v.to(wide).reshape(shape); };
  Tensor y = (x.to(wide) - along(mean)) * rsqrt(along(var) + eps);
  if (weight.defined()) y = y * along(weight);
  return (bias.defined() ? y + along(bias) : y).to(x.dtype());
}

// By statistics that have a gradient themselves.
Tensor by_recorded(const NormSets& sets, const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight,
                   const Tensor& bias) {
  NormStatistics given{mean, var, true};
  const Tensor y = unrecorded([&] { return normalized(sets, x, weight, bias, given); });
  const Tensor inputs[] = {x, mean, var, weight, bias};
  std::vector<Saved> kept;
  for (const Tensor& t : inputs) kept.push_back(save(t));
  return record(sets.op, y, std::span(inputs), [kept, eps = sets.eps](const Tensor& g, Gradients& d) {
    std::vector<Tensor> at;
    for (const Saved& s : kept) at.push_back(s ? d.take(s) : Tensor());
    through_composed(at, std::span(&g, 1), d, [&](const std::vector<Tensor>& in) {
      return std::vector{by_given(in[0], in[1], in[2], in[3], in[4], eps)};
    });
  });
}

// Normalises channels by their own statistics, and keeps the running ones; or by the running ones.
Tensor channel_norm(const NormSets& sets, const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight,
                    const Tensor& bias, bool own, double momentum) {
  finite(momentum, sets.op, "momentum");
  NormStatistics statistics;
  if (!own) {
    require(mean.defined(), ErrorKind::argument, sets.op,
            "needs running statistics to normalise by, or the input's own");
    NormSets of_channels = sets;
    of_channels.over_outer = true;
    if (any_needs_grad(mean, var)) return by_recorded(of_channels, x, mean, var, weight, bias);
    statistics = {mean, var, true};
    return normalized(of_channels, x, weight, bias, statistics);
  }
  const int64_t n = sets.inner * (sets.over_outer ? sets.outer : 1);
  require(n != 1 || x.numel() == 0, ErrorKind::shape, sets.op, "an input of shape ", x,
          " has one value per channel: nothing to normalise by; use eval");
  require(!any_needs_grad(mean, var), ErrorKind::autograd, sets.op,
          "running statistics that require grad cannot be updated; detach() them or use eval");
  const Tensor y = normalized(sets, x, weight, bias, statistics);
  if (mean.defined() && n > 1 && x.numel() > 0 && !is_replaying()) {
    const NoGrad off;
    const auto each = [&](const Tensor& s) { return (s.size(0) == 1 ? s : s.mean(0)).flatten(); };  // over the samples
    move_towards(mean, each(statistics.mean), momentum);
    move_towards(var, each(statistics.var) * (double(n) / double(n - 1)), momentum);
  }
  return y;
}

}  // namespace

Tensor Plain::layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias, double eps) {
  NormStatistics statistics;
  return normalized(row_sets(x, shape, "layer_norm", weight, bias, eps), x, weight, bias, statistics);
}

Tensor Plain::rms_norm(const Tensor& x, const Shape& shape, const Tensor& weight, std::optional<double> eps) {
  NormSets sets = row_sets(x, shape, "rms_norm", weight, {}, 0);
  sets.eps = eps.value_or(x.dtype() == f64 ? 0x1p-52 : 0x1p-23);
  sets.centered = false;
  NormStatistics statistics;
  return normalized(sets, x, weight, {}, statistics);
}

Tensor Plain::group_norm(const Tensor& x, Int groups, const Tensor& weight, const Tensor& bias, double eps) {
  require_floating(x, "group_norm");
  check_channels(x, "group_norm", weight, bias, {}, {});
  require(groups > 0 && x.size(1) % groups == 0, ErrorKind::shape, "group_norm", groups,
          " groups do not divide the channels of ", x);
  NormSets sets = channel_sets(x, "group_norm", eps);
  sets.channels = x.size(1) / groups, sets.groups = groups;
  NormStatistics statistics;
  return normalized(sets, x, weight, bias, statistics);
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                  bool training, double momentum, double eps) {
  require_floating(x, "batch_norm");
  check_channels(x, "batch_norm", weight, bias, mean, var);
  NormSets sets = channel_sets(x, "batch_norm", eps);
  sets.over_outer = true;
  return channel_norm(sets, x, mean, var, weight, bias, training, momentum);
}

Tensor instance_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                     bool use_input_stats, double momentum, double eps) {
  require_floating(x, "instance_norm");
  check_channels(x, "instance_norm", weight, bias, mean, var);
  if (x.dim() < 3) throw Error(Error::Kind::shape, "instance_norm", "needs [n, c, ...], got " + x.shape().str());
  return channel_norm(channel_sets(x, "instance_norm", eps), x, mean, var, weight, bias, use_input_stats, momentum);
}

Tensor Plain::local_response_norm(const Tensor& x, Int size, double alpha, double beta, double k) {
  const char* op = "local_response_norm";
  require_floating(x, op);
  require(size > 0 && x.dim() > 2, ErrorKind::shape, op, "needs [n, c, ...] and a positive size, got ", x, " and ",
          size);
  finite(alpha, op, "alpha"), finite(beta, op, "beta"), finite(k, op, "k");
  if (is_half(x.dtype())) return local_response_norm(x.to(f32), size, alpha, beta, k).to(x.dtype());
  const Tensor means = blamed_on(op, [&] {
    const Tensor squares = pad(x.square().movedim(1, -1), {size / 2, (size - 1) / 2});
    return squares.unfold(-1, size, 1).mean(-1).movedim(-1, 1);
  });
  return x / pow(means * alpha + k, beta);
}

// Halves are divided and multiplied in f32: quotients of small ones, in the gradients above all, leave their range.
Tensor Plain::normalize(const Tensor& x, double p, int64_t dim, double eps) {
  not_negative(eps, "normalize", "eps");
  require_floating(x, "normalize");
  if (is_half(x.dtype())) return normalize(x.to(f32), p, dim, eps).to(x.dtype());
  return x / clamp_min(blamed_on("normalize", [&] { return norm(x, p, dim, true); }), eps);
}
Tensor Plain::renorm(const Tensor& x, double p, int64_t dim, double maxnorm) {
  const char* op = "renorm";
  const int axis = axis_of(x, dim, op, 2);
  require_floating(x, op);
  require(p > 0, ErrorKind::argument, op, "p must be positive, got ", p);
  not_negative(maxnorm, op, "maxnorm");
  if (is_half(x.dtype())) return renorm(x.to(f32), p, axis, maxnorm).to(x.dtype());
  Shape others;
  for (int i = 0; i < x.dim(); ++i)
    if (i != axis) others.push_back(i);
  return blamed_on(op, [&] {
    const Tensor length = norm(x, p, others, true);
    return x * where(length > maxnorm, maxnorm / (length + 1e-7), 1);
  });
}
Tensor Plain::cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  not_negative(eps, "cosine_similarity", "eps");
  const DType dtype = promote(a.checked("cosine_similarity").dtype(), b.checked("cosine_similarity").dtype());
  if (is_half(dtype)) return cosine_similarity(a.to(f32), b.to(f32), dim, eps).to(dtype);
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "cosine_similarity");
  return blamed_on("cosine_similarity", [&] {
    // Lengths are those of the broadcast rows; along other axes broadcasting changes none.
    const auto unit = [&](const Tensor& x) {
      Shape wide = joined(Shape::filled(shape.size() - int(x.dim()), 1), x.shape());
      const Tensor rows = x.reshape(wide);
      if (!shape.empty()) {
        const int axis = axis_of(rows, dim, "cosine_similarity");
        wide[axis] = shape[axis];
      }
      return normalize(rows.expand(wide), 2, dim, eps);
    };
    return (unit(a) * unit(b)).sum(dim);
  });
}
Tensor Plain::pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  finite(eps, "pairwise_distance", "eps");
  const DType dtype = promote(a.checked("pairwise_distance").dtype(), b.checked("pairwise_distance").dtype());
  require(is_floating(dtype), ErrorKind::dtype, "pairwise_distance", "needs floats, got ", dtype);
  if (is_half(dtype)) return pairwise_distance(a.to(f32), b.to(f32), p, eps, keepdim).to(dtype);
  return blamed_on("pairwise_distance", [&] { return norm(a - b + eps, p, -1, keepdim); });
}

}  // namespace volta

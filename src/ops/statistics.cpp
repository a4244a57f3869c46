// Statistics made of reductions, sorting and products: quantiles, what NaN leaves, covariances, integrals.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "graph/record.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"
#include "ops/reduce.h"

namespace volta {
namespace {

using Between = QuantileInterpolation;

// The shares as a vector of the dtype that is computed in; throws unless all lie in [0, 1].
Tensor shares(const Operand& q, const Tensor& x, const char* op) {
  if (q.tensor) {
    common_device(x, q.tensor->checked(op), op);
    require_floating(*q.tensor, op);
    require(q.tensor->dim() <= 1, ErrorKind::shape, op, "q must be a number or a vector, got shape ", *q.tensor);
  }
  // f32 does not count beyond 2^24.
  const DType dtype = x.numel() > int64_t(1) << 24 ? f64 : x.dtype();
  const Tensor list = q.tensor ? q.tensor->to(dtype).reshape({q.tensor->numel()})
                               : full({1}, q.scalar.as<double>(), {dtype, x.device()});
  const NoGrad off;
  require(list.numel() == 0 || read_for<bool>(op, logical_and(list >= 0, list <= 1).all()), ErrorKind::argument, op,
          "every q must lie between 0 and 1");
  return list;
}

// Positions in sorted rows [..., n] that the shares fall on: [..., Q]. A row with NaN, which stands last, gives that;
// or the NaN are left out.
Tensor positions(const Tensor& sorted, const Tensor& q, bool skip_nan) {
  const double last = double(sorted.size(-1) - 1);
  const Tensor holes = isnan(sorted);
  if (skip_nan) return clamp_min(logical_not(holes).to(i64).sum(-1, true) - 1, 0).to(q.dtype()) * q;
  return where(holes.narrow(-1, sorted.size(-1) - 1, 1), last, q * last);
}

Tensor between(const Tensor& sorted, const Tensor& place, Between how) {
  const auto at = [&](const Tensor& i) { return gather(sorted, -1, i.detach().to(i64)); };
  if (how == Between::lower) return at(floor(place));
  if (how == Between::higher) return at(ceil(place));
  if (how == Between::nearest) return at(round(place));
  const Tensor below = floor(place), low = at(below), high = at(ceil(place));
  return how == Between::midpoint ? lerp(low, high, 0.5) : lerp(low, high, place - below);
}

Tensor quantile_of(const char* op, const Tensor& x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                   const QuantileOptions& options, bool skip_nan) {
  require_floating(x, op);
  const Between how = options.interpolation.of(op, "interpolation");
  const int axis = dim ? axis_of(x, *dim, op) : 0;
  const Tensor wide = x.to(traits(x.dtype()).compute), share = shares(q, wide, op);
  const Tensor rows = dim && x.dim() > 0 ? movedim(wide, axis, -1) : wide.reshape({x.numel()});
  require(rows.size(-1) > 0, ErrorKind::shape, op, "no result over zero elements, for shape ", x);
  const Tensor sorted = blamed_on(op, [&] { return sort(rows, -1).values; });
  const Tensor found = between(sorted, positions(sorted, share, skip_nan), how).to(x.dtype());  // [..., Q]
  Shape kept = dim ? x.shape() : Shape::filled(int(x.dim()), 1);
  if (dim && x.dim() > 0) kept[axis] = 1;
  Tensor y = movedim(found, -1, 0);
  if (keepdim) y = blamed_on(op, [&] { return y.reshape(joined({share.numel()}, kept)); });
  return q.tensor && q.tensor->dim() == 1 ? y : y.select(0, 0);
}

// Where the lower median of the numbers in each row [..., n] stands in its order; 0 where all are NaN.
Tensor middle(const Tensor& x, int axis) {
  const NoGrad off;
  const Tensor many = logical_not(isnan(x)).to(i64).sum(axis, true);
  return floor_divide(clamp_min(many - 1, 0), 2);
}

Tensor weights_for(const Tensor& w, const Tensor& x, int64_t n, const char* op, const char* what) {
  common_device(x, w, op);
  require(w.dim() == 1 && w.numel() == n, ErrorKind::shape, op, what, " of shape ", w, " do not fit ", n,
          " observations");
  require(w.numel() == 0 || read_for<bool>(op, (w >= 0).all()), ErrorKind::argument, op, what, " must not be negative");
  return w;
}

// Sums and distances of neighbours need not fit a half: both are taken in f32, and the result is rounded to what it was.
bool in_halves(const Tensor& y, const Tensor& x, const char* op) {
  return is_half(y.checked(op).dtype()) || (x.defined() && is_half(x.dtype()));
}
Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(f32) : x; }
DType trapezoid_dtype(const Tensor& y, const Tensor& x) {
  const DType ordinate = is_floating(y.dtype()) ? y.dtype() : default_dtype();
  return x.defined() && is_floating(x.dtype()) ? promote(ordinate, x.dtype()) : ordinate;
}

// Heights of neighbours added, times half their distance.
Tensor trapezoids(const Tensor& y, const Tensor& x, const TrapezoidOptions& o, int& axis, const char* op) {
  axis = axis_of(y, o.dim, op, 1);
  const int64_t n = y.size(axis);
  const Tensor ordinate = is_floating(y.dtype()) ? y : y.to(default_dtype());
  if (n == 0) return ordinate;
  const Tensor sums = narrow(ordinate, axis, 1, n - 1) + narrow(ordinate, axis, 0, n - 1);
  if (!x.defined()) return sums * (o.dx / 2);
  common_device(y, x, op);
  Tensor places = is_floating(x.dtype()) ? x : x.to(ordinate.dtype());
  if (x.dim() == 1) {
    require(x.numel() == n, ErrorKind::shape, op, "places of shape ", x, " do not fit axis ", axis, " of shape ", y);
    Shape along = Shape::filled(int(y.dim()), 1);
    along[axis] = n;
    places = places.reshape(along);
  }
  require(places.dim() <= y.dim(), ErrorKind::shape, op, "places of shape ", x, " do not fit shape ", y);
  const int own = axis - int(y.dim() - places.dim());
  require(own >= 0 && places.size(own) == n, ErrorKind::shape, op, "places of shape ", x, " do not fit shape ", y);
  const Tensor widths = (narrow(places, own, 1, n - 1) - narrow(places, own, 0, n - 1)) * 0.5;
  return blamed_on(op, [&] { return sums * widths; });
}

}  // namespace

Tensor quantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                const QuantileOptions& options) {
  return quantile_of("quantile", x, q, dim, keepdim, options, false);
}
Tensor nanquantile(const Tensor& x, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                   const QuantileOptions& options) {
  return quantile_of("nanquantile", x, q, dim, keepdim, options, true);
}

Tensor nanmean(const Tensor& x, const Axes& dim, bool keepdim) {
  require_floating(x, "nanmean");
  const Tensor many =
      unrecorded([&] { return blamed_on("nanmean", [&] { return logical_not(isnan(x)).to(i64).sum(dim, keepdim); }); });
  const DType wide = traits(x.dtype()).compute;
  return (nansum(x.to(wide), dim, keepdim) / many.to(wide)).to(x.dtype());
}

Tensor nanmedian(const Tensor& x) {
  const char* op = "nanmedian";
  const int64_t n = x.checked(op).numel();
  if (n == 0 || !is_floating(x.dtype())) return blamed_on(op, [&] { return median(x); });
  const Tensor y = unrecorded([&] { return nanmedian(x.reshape({n}), 0).values; });
  const Saved kept = save_output(y);
  return record(op, y, {x}, [in = save(x), kept](const Tensor& g, Gradients& d) {
    const Tensor equals = unrecorded([&] { return d.take(in) == d.take(kept); });
    const DType wide = traits(g.dtype()).compute;
    d[0] = where(equals, g.to(wide) / equals.to(i64).sum().clamp_min(1).to(wide), 0);
  });
}

ValuesIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  const char* op = "nanmedian";
  const int axis = axis_of(x, dim, op);
  if (!is_floating(x.dtype()) || x.dim() == 0) return blamed_on(op, [&] { return median(x, dim, keepdim); });
  const Reduction r(x, axis, keepdim, op);
  require(r.count > 0 || r.kept.numel() == 0, ErrorKind::shape, op, "no result over zero elements, for shape ", x);
  if (r.kept.numel() == 0) return median(x, dim, keepdim);
  const auto [sorted, order] = blamed_on(op, [&] { return sort(x, axis); });
  const Tensor place = middle(x, axis);
  return {reshape(gather(sorted, axis, place), r.to), reshape(gather(order, axis, place), r.to)};
}

ValuesIndices mode(const Tensor& x, int64_t dim, bool keepdim) {
  const char* op = "mode";
  const int axis = axis_of(x, dim, op);
  const Reduction r(x, axis, keepdim, op);
  require(r.count > 0 || r.kept.numel() == 0, ErrorKind::shape, op, "no result over zero elements, for shape ", x);
  if (r.kept.numel() == 0 || x.dim() == 0) return blamed_on(op, [&] { return median(x, dim, keepdim); });
  const Tensor index = unrecorded([&] {
    const auto [sorted, order] = blamed_on(op, [&] { return sort(x, axis); });
    const int64_t n = x.size(axis);
    const Tensor place = spread_index(counting(n, x), x.shape(), axis);
    // The place where each element's run of equal neighbours begins. Lengths grow along a run: the largest one ends it.
    Tensor begins = place.clone();
    const Tensor same = sorted.narrow(axis, 1, n - 1) == sorted.narrow(axis, 0, n - 1);
    begins.narrow(axis, 1, n - 1).masked_fill_(same, 0);
    const Tensor length = place - cummax(begins, axis).values;
    return gather(order, axis, argmax(length, axis, true));
  });
  return {reshape(gather(x, axis, index), r.to), reshape(index, r.to)};
}

MinMax aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const char* op = "aminmax";
  const Axes axes = dim ? Axes(axis_of(x, *dim, op)) : Axes();
  const Reduction r(x, axes, keepdim, op);
  require(r.count > 0 || r.kept.numel() == 0, ErrorKind::shape, op, "no result over zero elements, for shape ", x);
  return {amin(x, axes, keepdim), amax(x, axes, keepdim)};
}

VarMean Plain::var_mean(const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, "var_mean");
  return blamed_on("var_mean", [&] { return VarMean{var(x, dim, options), mean(x, dim, options.keepdim)}; });
}
StdMean Plain::std_mean(const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, "std_mean");
  return blamed_on("std_mean", [&] { return StdMean{std_dev(x, dim, options), mean(x, dim, options.keepdim)}; });
}

Tensor Plain::cov(const Tensor& x, const CovOptions& options) {
  const char* op = "cov";
  require(x.checked(op).dim() <= 2, ErrorKind::shape, op, "needs at most two axes, got shape ", x);
  require(x.dtype() != boolean, ErrorKind::dtype, op, "is not defined for booleans");
  // Sums and products of halves need not fit into one.
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : default_dtype();
  if (is_half(dtype)) return cov(x.to(f32), options).to(dtype);
  Tensor in = x.to(dtype);
  if (in.dim() < 2) in = in.reshape({1, in.numel()});
  const int64_t n = in.size(1);
  Tensor w;
  if (options.fweights.defined()) {
    w = weights_for(options.fweights, x, n, op, "fweights");
    require(is_integral(w.dtype()), ErrorKind::dtype, op, "fweights must be of integers, got ", w.dtype());
    w = w.to(in.dtype());
  }
  if (options.aweights.defined()) {
    const Tensor a = weights_for(options.aweights, x, n, op, "aweights").to(in.dtype());
    w = w.defined() ? w * a : a;
  }
  const Tensor total = w.defined() ? w.sum() : full({}, double(n), {in.dtype(), x.device()});
  const auto weighed = [&](const Tensor& t) { return w.defined() ? t * w : t; };
  Tensor divisor = total - double(options.correction);
  if (options.aweights.defined() && options.correction != 0)
    divisor = total - (w * options.aweights.to(in.dtype())).sum() / total * double(options.correction);
  const Tensor apart = in - weighed(in).sum(1, true) / total;
  return (matmul(apart, weighed(apart).mT()) / clamp_min(divisor, 0)).squeeze();
}
Tensor Tensor::cov() const { return volta::cov(*this); }
Tensor Tensor::cov(const CovOptions& options) const { return volta::cov(*this, options); }

Tensor Plain::corrcoef(const Tensor& x) {
  const DType dtype = is_floating(x.checked("corrcoef").dtype()) ? x.dtype() : default_dtype();
  if (is_half(dtype) && x.dtype() != boolean) return corrcoef(x.to(f32)).to(dtype);
  const Tensor c = blamed_on("corrcoef", [&] { return cov(x); });
  if (c.dim() == 0) return c / c;
  const Tensor deviation = sqrt(c.diagonal());
  return clamp(c / deviation.unsqueeze(1) / deviation.unsqueeze(0), -1, 1);  // rounding may leave the range
}

Tensor Plain::trapezoid(const Tensor& y, const Tensor& x, const TrapezoidOptions& options) {
  if (in_halves(y, x, "trapezoid")) return trapezoid(widened(y), widened(x), options).to(trapezoid_dtype(y, x));
  int axis = 0;
  return trapezoids(y, x, options, axis, "trapezoid").sum(axis);
}
Tensor Plain::cumulative_trapezoid(const Tensor& y, const Tensor& x, const TrapezoidOptions& options) {
  if (in_halves(y, x, "cumulative_trapezoid"))
    return cumulative_trapezoid(widened(y), widened(x), options).to(trapezoid_dtype(y, x));
  int axis = 0;
  const Tensor parts = trapezoids(y, x, options, axis, "cumulative_trapezoid");
  return cumsum(parts, axis);
}

}  // namespace volta

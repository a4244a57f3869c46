// Ops along axes: reductions, norms and medians; softmax; running sums, products and extremes; differences.
#include "ops/reduce.h"

#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>

#include "graph/record.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"

namespace volta {
namespace {

Tensor run_fold(ReduceOp fold, const Tensor& x, const Reduction& r, DType result, double parameter = 0,
                Tensor* indices = nullptr) {
  Tensor y = allocate(r.to, result, x.device(), r.op);
  if (indices) *indices = allocate(r.to, i64, x.device(), r.op);
  const Layout out = Layout::contiguous(r.kept);
  ReduceCall call{fold, traits(x.dtype()).compute, arg(y), {}, arg(x), r.mask, parameter};
  if (is_integral(result) && (fold == ReduceOp::sum || fold == ReduceOp::prod || fold == ReduceOp::nansum))
    call.compute = result;
  call.out.layout = &out;
  if (indices) {
    call.indices = arg(*indices);
    call.indices.layout = &out;
  }
  backend(x.device()).reduce(call);
  return y;
}

// There is no largest of nothing; of no results there is nothing to say.
void require_elements(const Tensor& x, const Reduction& r, const char* when = "") {
  require(r.count > 0 || r.kept.numel() == 0, ErrorKind::shape, r.op, "no result over zero elements", when,
          ", for shape ", x);
}

// Halves in f32, where a formula takes several steps and is to be rounded once.
Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? x.to(f32) : x; }

// 0 where the denominator is 0; the quotient's own derivatives stay finite there.
Tensor safe_quotient(const Tensor& a, const Tensor& b) {
  const Tensor flat = eq(b, 0);
  return where(flat, 0, a / where(flat, 1, b));
}

// The gradient g shared evenly by the elements of x that equal their result y (or are NaN as it is).
Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, const Reduction& r) {
  const Tensor mask = unrecorded([&] { return logical_or(eq(x, r.restore(y)), isnan(x)); });
  const Tensor many = run_fold(ReduceOp::sum, mask, r, i64).to(traits(x.dtype()).compute);
  return where(mask, r.restore(widened(g) / many), 0);
}

Tensor shared_by_equals(Tensor y, const Tensor& x, const Reduction& r) {
  const Saved kept = save_output(y);
  return record(r.op, std::move(y), {x}, [r, x = save(x), kept](const Tensor& g, Gradients& d) {
    d[0] = share_evenly(g, d.take(x), d.take(kept), r);
  });
}

Tensor sum_over(const Tensor& x, const Reduction& r) {
  return record(r.op, run_fold(ReduceOp::sum, x, r, sum_type(x.dtype())), {x},
                [r](const Tensor& g) { return r.restore(g); });
}

// The product of the elements before each along an axis.
Tensor products_before(const Tensor& x, int axis) {
  return cat({ones_like(narrow(x, axis, 0, 1)), cumprod(narrow(x, axis, 0, x.size(axis) - 1), axis)}, axis);
}

// The product of all other elements of a row, without division: of those before times those after.
Tensor prod_back(const Tensor& g, const Tensor& x, const Reduction& r) {
  if (x.numel() == 0) return zeros_like(x);
  const Shape axes = r.axes();
  Shape last;
  for (int i = 0; i < axes.size(); ++i) last.push_back(i - axes.size());
  const Tensor moved = movedim(x, axes, last), rows = reshape(moved, {-1, r.count});
  const Tensor others = products_before(rows, 1) * flip(products_before(flip(rows, 1), 1), 1);
  return r.restore(g) * movedim(reshape(others, moved.shape()), last, axes);
}

Tensor extreme(const char* op, ReduceOp fold, const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, op);
  require_elements(x, r);
  return shared_by_equals(run_fold(fold, x, r, x.dtype()), x, r);
}

ValuesIndices extreme_along(const char* op, ReduceOp fold, const Tensor& x, int64_t dim, bool keepdim) {
  const int axis = axis_of(x, dim, op);
  const Reduction r(x, axis, keepdim, op);
  require_elements(x, r);
  ValuesIndices y;
  y.values = run_fold(fold, x, r, x.dtype(), 0, &y.indices);
  y.values = chosen(op, std::move(y.values), x, axis, y.indices);
  return y;
}

Tensor index_of_extreme(const char* op, ReduceOp fold, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const Reduction r(x, dim ? Axes(*dim) : Axes(), keepdim, op);
  require_elements(x, r);
  return run_fold(fold, x, r, i64);
}

// The variance y or its root; d var = 2 (x - mean) / n, and of the root that over 2 y, or 0 where y is.
Tensor spread(const char* op, bool root, const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, op);
  const Reduction r(x, dim, options.keepdim, op);
  const double n = std::max(double(r.count) - options.correction, 0.0);
  Tensor y = run_fold(ReduceOp::var, x, r, root ? f64 : x.dtype(), options.correction);
  if (!root)
    return record(op, y, {x}, [r, n, x = save(x)](const Tensor& g, Gradients& d) {
      const Tensor wide = widened(d.take(x));
      d[0] = r.restore(g * (2 / n)) * (wide - mean(wide, r.axes(), true));
    });
  y = sqrt(y).to(x.dtype());  // f32 holds roots of what it does not
  return record(op, y, {x}, [r, n, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    // No sum or product on the way leaves the range that x and y are in.
    const Tensor wide = widened(d.take(x)), apart = wide - sum(wide * (1 / double(r.count)), r.axes(), true);
    d[0] = r.restore(g * (1 / n)) * safe_quotient(apart, r.restore(d.take(y)));
  });
}

// The p-norm, in f32 for halves. Powers are summed in one pass and the root taken of the few results.
Tensor norm_value(const Tensor& x, double p, const Reduction& r) {
  const DType wide = traits(x.dtype()).compute;
  if (p == 2) return sqrt(run_fold(ReduceOp::sum_squares, x, r, wide));
  if (p == 1) return run_fold(ReduceOp::sum_abs, x, r, wide);
  if (p == 0) return run_fold(ReduceOp::count_nonzero, x, r, i64).to(wide);
  if (std::isinf(p)) return run_fold(p > 0 ? ReduceOp::max : ReduceOp::min, abs(x), r, wide);
  return pow(run_fold(ReduceOp::sum_powers, x, r, wide, p), 1 / p);
}

// d|x|_p / dx = sign(x) (|x| / y)^(p-1), and 0 at the corners where it has no value.
Tensor norm_back(const Tensor& g, const Tensor& x, const Tensor& y, double p, const Reduction& r) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return r.restore(g) * sign(x);
  if (p == 2) return r.restore(safe_quotient(g, y)) * x;
  if (std::isinf(p)) return share_evenly(g, abs(x), y, r) * sign(x);
  const Tensor ratio = safe_quotient(abs(x), r.restore(y)), flat = eq(ratio, 0);
  return r.restore(g) * sign(x) * where(flat, 0, pow(where(flat, 1, ratio), p - 1));
}

// Where the lower median stands; the first NaN if there is one.
Tensor median_index(const Tensor& x, int64_t axis) {
  const NoGrad off;
  const Tensor index = kthvalue(x, (x.size(axis) + 1) / 2, axis, true).indices;
  if (!is_floating(x.dtype())) return index;
  const Tensor holes = isnan(x);
  return where(any(holes, axis, true), argmax(holes, axis, true), index);
}

// A result as dense as the last operand, in its order of axes.
Tensor run_rows(SoftmaxOp kind, const Tensor& a, const Tensor& b, int axis, const char* op) {
  const Tensor& like = b.defined() ? b : a;
  const Tensor y = allocate_as(like, like.dtype(), like.device(), op);
  backend(y.device()).softmax({kind, row_arg(y), {row_arg(a), row_arg(like)}, axis});
  return y;
}

Tensor run_scan(Scan scan, const Tensor& x, int axis, bool reverse, DType result, const char* op,
                Tensor* indices = nullptr) {
  Tensor y = allocate(x.shape(), result, x.device(), op);
  if (indices) *indices = allocate(x.shape(), i64, x.device(), op);
  backend(x.device()).scan({scan, row_arg(y), indices ? row_arg(*indices) : Arg{}, row_arg(x), axis, reverse});
  return y;
}

// softmax or its logarithm y, with the gradient in one pass or, where it is to be differentiated itself, as `rule`.
template <class Rule>
Tensor soft_rows(const char* op, SoftmaxOp forward, SoftmaxOp back, const Tensor& x, int64_t dim, Rule rule) {
  require_floating(x, op);
  const int axis = axis_of(x, dim, op);
  const Tensor y = run_rows(forward, x, {}, axis, op);
  if (!any_needs_grad(x)) return y;
  return record(op, y, {x}, [=, saved = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor out = d.take(saved);
    // The composed rule, too, rounds halves once, at its end.
    const DType wide = traits(g.dtype()).compute;
    d[0] = grad_enabled() ? rule(g.to(wide), out.to(wide), axis).to(g.dtype()) : run_rows(back, g, out, axis, op);
  });
}

Tensor running_sum(const Tensor& x, int axis, bool reverse) {
  return record("cumsum", run_scan(Scan::sum, x, axis, reverse, sum_type(x.dtype()), "cumsum"), {x},
                [axis, reverse](const Tensor& g) { return running_sum(g, axis, !reverse); });
}

// x[k + by] with zeros after the end.
Tensor shifted(const Tensor& x, int axis, int64_t by) {
  return cat({narrow(x, axis, by, x.size(axis) - by), zeros_like(narrow(x, axis, 0, by))}, axis);
}

// s[k] = b[k] + a[k] s[k + 1], the last s being b, in log2(n) steps of doubled reach: exact where a is 0, and made of
// differentiable ops.
Tensor recurrence(Tensor a, Tensor b, int axis) {
  const int64_t n = b.size(axis);
  for (int64_t reach = 1; reach < n; reach *= 2) {
    b = b + a * shifted(b, axis, reach);
    if (2 * reach < n) a = a * shifted(a, axis, reach);
  }
  return b;
}

// dL/dx[k] = (product before k) * s[k], with s[k] = g[k] + x[k + 1] s[k + 1].
Tensor cumprod_back(const Tensor& g, const Tensor& x, int axis) {
  return products_before(x, axis) * recurrence(shifted(x, axis, 1), g, axis);
}

// exp(a - b) for a <= b, 1 where both are infinite.
Tensor exp_difference(const Tensor& a, const Tensor& b) { return exp(where(eq(a, b), 0, a - b)); }

// dL/dx[k] = exp(x[k] - y[k]) s[k], with s[k] = g[k] + exp(y[k] - y[k + 1]) s[k + 1]: no exponent is positive.
Tensor logcumsumexp_back(const Tensor& g, const Tensor& x, const Tensor& y, int axis) {
  const int64_t n = x.size(axis);
  const Tensor decay = exp_difference(narrow(y, axis, 0, n - 1), narrow(y, axis, 1, n - 1));
  return exp_difference(x, y) * recurrence(cat({decay, zeros_like(narrow(x, axis, 0, 1))}, axis), g, axis);
}

ValuesIndices running_extreme(const char* op, Scan scan, const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, op);
  ValuesIndices y;
  y.values = run_scan(scan, x, axis, false, x.dtype(), op, &y.indices);
  y.values = chosen(op, std::move(y.values), x, axis, y.indices);
  return y;
}

}  // namespace

Reduction::Reduction(const Tensor& x, const Axes& axes_given, bool keep, const char* name) : op(name) {
  from = kept = x.checked(name).shape();
  for (int64_t a : normalize_axes(axes_given, from, name)) mask |= 1u << a;
  for (int i = 0; i < from.size(); ++i) {
    const bool gone = mask >> i & 1;
    if (gone) count *= from[i], kept[i] = 1;
    if (!gone || keep) to.push_back(kept[i]);
  }
}

Shape Reduction::axes() const {
  Shape list;
  for (int i = 0; i < from.size(); ++i)
    if (mask >> i & 1) list.push_back(i);
  return list;
}

Tensor Reduction::restore(const Tensor& y) const {
  if (grad_enabled()) return expand(reshape(y, kept), from);
  Layout l{from, from, layout(y).offset};
  for (int i = 0, k = 0; i < from.size(); ++i) {
    const bool gone = mask >> i & 1;
    l.strides[i] = gone ? 0 : layout(y).strides[k];
    k += !gone || to.size() == from.size();
  }
  return alias(y, l);
}

Tensor sum_to(const Tensor& x, const Shape& shape, const char* op) {
  const int extra = int(x.checked(op).dim()) - shape.size();
  bool fits = extra >= 0;
  Shape axes;
  for (int i = 0; i < x.dim() && fits; ++i) {
    const int64_t wanted = i < extra ? 1 : shape[i - extra];
    fits = wanted == x.shape()[i] || wanted == 1;
    if (i < extra || wanted != x.shape()[i]) axes.push_back(i);
  }
  require(fits, ErrorKind::shape, op, x, " does not sum to ", shape);
  if (axes.empty()) return x;
  Reduction r(x, axes, true, op);
  if (grad_enabled()) return reshape(sum_over(x, r), shape);
  r.to = shape;
  return run_fold(ReduceOp::sum, x, r, x.dtype());
}

Tensor sum(const Tensor& x, const Axes& dim, bool keepdim) { return sum_over(x, Reduction(x, dim, keepdim, "sum")); }

Tensor mean(const Tensor& x, const Axes& dim, bool keepdim) {
  require_floating(x, "mean");
  const Reduction r(x, dim, keepdim, "mean");
  return record("mean", run_fold(ReduceOp::mean, x, r, x.dtype()), {x},
                [r](const Tensor& g) { return r.restore(g * (1.0 / double(r.count))); });
}

Tensor prod(const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, "prod");
  return record("prod", run_fold(ReduceOp::prod, x, r, sum_type(x.dtype())), {x},
                [r, x = save(x)](const Tensor& g, Gradients& d) { d[0] = prod_back(g, d.take(x), r); });
}

Tensor nansum(const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, "nansum");
  return record("nansum", run_fold(ReduceOp::nansum, x, r, sum_type(x.dtype())), {x},
                [r, x = save(x)](const Tensor& g, Gradients& d) { d[0] = where(isnan(d.take(x)), 0, r.restore(g)); });
}

Tensor amax(const Tensor& x, const Axes& dim, bool keepdim) { return extreme("amax", ReduceOp::max, x, dim, keepdim); }
Tensor amin(const Tensor& x, const Axes& dim, bool keepdim) { return extreme("amin", ReduceOp::min, x, dim, keepdim); }
Tensor max(const Tensor& x) { return extreme("max", ReduceOp::max, x, {}, false); }
Tensor min(const Tensor& x) { return extreme("min", ReduceOp::min, x, {}, false); }
ValuesIndices max(const Tensor& x, int64_t dim, bool keep) { return extreme_along("max", ReduceOp::max, x, dim, keep); }
ValuesIndices min(const Tensor& x, int64_t dim, bool keep) { return extreme_along("min", ReduceOp::min, x, dim, keep); }
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmax", ReduceOp::argmax, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmin", ReduceOp::argmin, x, dim, keepdim);
}

Tensor any(const Tensor& x, const Axes& dim, bool keepdim) {
  return run_fold(ReduceOp::any, x, Reduction(x, dim, keepdim, "any"), boolean);
}
Tensor all(const Tensor& x, const Axes& dim, bool keepdim) {
  return run_fold(ReduceOp::all, x, Reduction(x, dim, keepdim, "all"), boolean);
}
Tensor count_nonzero(const Tensor& x, const Axes& dim) {
  return run_fold(ReduceOp::count_nonzero, x, Reduction(x, dim, false, "count_nonzero"), i64);
}

Tensor var(const Tensor& x, const Axes& dim, const VarOptions& options) {
  return spread("var", false, x, dim, options);
}
Tensor std_dev(const Tensor& x, const Axes& dim, const VarOptions& options) {
  return spread("std_dev", true, x, dim, options);
}
Tensor Tensor::std(const Axes& dim, const VarOptions& options) const { return std_dev(*this, dim, options); }

Tensor logsumexp(const Tensor& x, const Axes& dim, bool keepdim) {
  if (!is_floating(x.checked("logsumexp").dtype())) return logsumexp(x.to(default_dtype()), dim, keepdim);
  const Reduction r(x, dim, keepdim, "logsumexp");
  const Tensor y = run_fold(ReduceOp::logsumexp, x, r, x.dtype());
  return record("logsumexp", y, {x}, [r, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor wide = widened(d.take(x));
    const Tensor total = is_half(g.dtype()) ? logsumexp(wide, r.axes(), true) : reshape(d.take(y), r.kept);
    d[0] = r.restore(g) * exp(wide - where(eq(total, -INFINITY), 0, total));
  });
}

Tensor norm(const Tensor& x, double p, const Axes& dim, bool keepdim) {
  require_floating(x, "norm");
  const Reduction r(x, dim, keepdim, "norm");
  require(!std::isnan(p), ErrorKind::argument, "norm", "the power is NaN");
  if (p < 0 || std::isinf(p)) require_elements(x, r, " for this power");
  const Tensor y = unrecorded([&] { return norm_value(x, p, r).to(x.dtype()); });
  return record("norm", y, {x}, [r, p, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    d[0] = norm_back(g, d.take(x), d.take(y), p, r);
  });
}

Tensor median(const Tensor& x) {
  const Reduction r(x, {}, false, "median");
  if (r.count == 0 && is_floating(x.dtype())) return sum(x) + double(NAN);
  require_elements(x, r);
  return shared_by_equals(unrecorded([&] { return median(reshape(x, {-1}), 0).values; }), x, r);
}

ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  const int axis = axis_of(x, dim, "median");
  const Reduction r(x, axis, keepdim, "median");
  require_elements(x, r);
  if (x.dim() == 0) return {x.clone(), zeros({}, {i64, x.device()})};
  if (r.kept.numel() == 0) return {reshape(x, r.to).clone(), empty(r.to, {i64, x.device()})};
  const Tensor index = median_index(x, axis);
  return {reshape(gather(x, axis, index), r.to), reshape(index, r.to)};
}

Tensor softmax(const Tensor& x, int64_t dim) {
  return soft_rows("softmax", SoftmaxOp::softmax, SoftmaxOp::softmax_back, x, dim,
                   [](const Tensor& g, const Tensor& y, int axis) { return y * (g - sum(g * y, axis, true)); });
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  return soft_rows("log_softmax", SoftmaxOp::log_softmax, SoftmaxOp::log_softmax_back, x, dim,
                   [](const Tensor& g, const Tensor& y, int axis) { return g - exp(y) * sum(g, axis, true); });
}

Tensor cumsum(const Tensor& x, int64_t dim) { return running_sum(x, axis_of(x, dim, "cumsum"), false); }

Tensor cumprod(const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, "cumprod");
  return record("cumprod", run_scan(Scan::prod, x, axis, false, sum_type(x.dtype()), "cumprod"), {x},
                [axis, x = save(x)](const Tensor& g, Gradients& d) {
                  const Tensor in = d.take(x);
                  d[0] = in.numel() <= 1 ? g : cumprod_back(g, in, axis);
                });
}

ValuesIndices cummax(const Tensor& x, int64_t dim) { return running_extreme("cummax", Scan::max, x, dim); }
ValuesIndices cummin(const Tensor& x, int64_t dim) { return running_extreme("cummin", Scan::min, x, dim); }

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  require_floating(x, "logcumsumexp");
  const int axis = axis_of(x, dim, "logcumsumexp");
  const Tensor y = run_scan(Scan::logsumexp, x, axis, false, x.dtype(), "logcumsumexp");
  return record("logcumsumexp", y, {x}, [axis, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor in = d.take(x);
    d[0] = in.numel() <= 1 ? g : logcumsumexp_back(g, in, d.take(y), axis);
  });
}

Tensor diff(const Tensor& x, int64_t n, int64_t dim) {
  const int axis = axis_of(x, dim, "diff", 1);
  require(n >= 0, ErrorKind::argument, "diff", "the order ", n, " is negative");
  Tensor y = x;
  for (int64_t k = 0; k < n && y.size(axis) > 0; ++k) {
    const int64_t rest = y.size(axis) - 1;
    const Tensor later = narrow(y, axis, 1, rest), earlier = narrow(y, axis, 0, rest);
    y = x.dtype() == boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y.shares_storage(x) ? y.clone() : y;
}

}  // namespace volta

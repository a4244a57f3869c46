// Ops along axes: reductions, norms and medians; softmax; running sums, products and extremes; differences.
#include "ops/reduce.h"

#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>
#include <volta/tensor_expr.h>

#include "core/arguments.h"
#include "graph/record.h"
#include "ops/autocast.h"
#include "ops/elementwise.h"
#include "ops/gather_scatter.h"

namespace volta {
namespace {

using reducers::Elements;

template <class R> TensorExpr derivative(const TensorExpr* x) {
  if constexpr (requires { R::back(x[0], x[1], x[2]); }) return R::back(x[0], x[1], x[2]);
  else return R::back(x[0], x[1], x[2], x[3]);
}

template <class R> constexpr ReduceOp describe() {
  ReduceOp op{"", index_of<R>(Reducers{}), R::elements};
  if constexpr (requires { R::name; }) op.name = R::name;
  if constexpr (reducers::Differentiable<R>) op.derivative = &derivative<R>, op.uses = &uses<&derivative<R>>;
  return op;
}
template <class R> constexpr ReduceOp reducer = describe<R>();
template <class R> constexpr int scan_by = index_of<R>(Scans{});

template <class... R> constexpr std::array<ReduceOp, sizeof...(R)> describe_all(List<R...>) {
  return {describe<R>()...};
}
constexpr auto reduce_ops = describe_all(reducers::Named{});

// Into values and indices, either of which may be undefined.
void run_reducer(const ReduceOp& f, const Tensor& x, const Reduction& r, const Tensor& values, const Tensor& indices,
                 double parameter = 0) {
  const Layout out = Layout::contiguous(r.kept);
  const bool whole = f.elements == Elements::number && is_integral(values.dtype());
  const DType compute = whole ? values.dtype() : traits(x.dtype()).compute;
  const auto to = [](const Tensor& y) { return y.defined() ? arg(y) : Arg(); };
  ReduceCall call{f.index, compute, to(values), to(indices), arg(x), r.mask, parameter};
  call.out.layout = call.indices.layout = &out;
  backend(x.device()).reduce(call);
}

Tensor reduced(const ReduceOp& f, const Tensor& x, const Reduction& r, DType result, double parameter = 0) {
  const Tensor y = allocate(r.to, result, x.device(), r.op);
  run_reducer(f, x, r, y, {}, parameter);
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
  const Tensor many = reduced(reducer<reducers::Sum>, mask, r, i64).to(traits(x.dtype()).compute);
  return where(mask, r.restore(widened(g) / many), 0);
}

Tensor shared_by_equals(Tensor y, const Tensor& x, const Reduction& r) {
  const Saved kept = save_output(y);
  return record(r.op, std::move(y), {x}, [r, x = save(x), kept](const Tensor& g, Gradients& d) {
    d[0] = share_evenly(g, d.take(x), d.take(kept), r);
  });
}

Tensor sum_over(const Tensor& x, const Reduction& r) {
  return record(r.op, reduced(reducer<reducers::Sum>, x, r, sum_type(x.dtype())), {x},
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

Tensor extreme(const char* op, const ReduceOp& f, const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, op);
  require_elements(x, r);
  return shared_by_equals(reduced(f, x, r, x.dtype()), x, r);
}

ValuesIndices extreme_along(const char* op, const ReduceOp& f, const Tensor& x, int64_t dim, bool keepdim) {
  const int axis = axis_of(x, dim, op);
  const Reduction r(x, axis, keepdim, op);
  require_elements(x, r);
  ValuesIndices y{allocate(r.to, x.dtype(), x.device(), op), allocate(r.to, i64, x.device(), op)};
  run_reducer(f, x, r, y.values, y.indices);
  y.values = chosen(op, std::move(y.values), x, axis, y.indices);
  return y;
}

Tensor index_of_extreme(const char* op, const ReduceOp& f, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const Reduction r(x, dim ? Axes(*dim) : Axes(), keepdim, op);
  require_elements(x, r);
  const Tensor y = allocate(r.to, i64, x.device(), op);
  run_reducer(f, x, r, {}, y);
  return y;
}

// The variance y or its root; d var = 2 (x - mean) / n, and of the root that over 2 y, or 0 where y is.
Tensor spread(const char* op, bool root, const Tensor& x, const Axes& dim, const VarOptions& options) {
  require_floating(x, op);
  const Reduction r(x, dim, options.keepdim, op);
  finite(options.correction, op, "correction");
  const double correction = r.count == 0 ? 0 : options.correction;  // no elements have no variance, however corrected
  const double n = std::max(double(r.count) - correction, 0.0);
  Tensor y = reduced(reducer<reducers::Var>, x, r, root ? f64 : x.dtype(), correction);
  if (!root)
    return record(op, y, {x}, [r, n, x = save(x)](const Tensor& g, Gradients& d) {
      const Tensor wide = widened(d.take(x));
      d[0] = r.restore(widened(g) * (2 / n)) * (wide - mean(wide, r.axes(), true));
    });
  y = sqrt(y).to(x.dtype());  // f32 holds roots of what it does not
  return record(op, y, {x}, [r, n, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    // No sum or product on the way leaves the range that x and y are in.
    const Tensor wide = widened(d.take(x)), apart = wide - sum(wide * (1 / double(r.count)), r.axes(), true);
    d[0] = r.restore(widened(g) * (1 / n)) * safe_quotient(apart, r.restore(d.take(y)));
  });
}

// The p-norm, in f32 for halves. Powers are summed in one pass and the root taken of the few results.
Tensor norm_value(const Tensor& x, double p, const Reduction& r) {
  const DType wide = traits(x.dtype()).compute;
  if (p == 2) return sqrt(reduced(reducer<reducers::SumSquares>, x, r, wide));
  if (p == 1) return reduced(reducer<reducers::SumAbs>, x, r, wide);
  if (p == 0) return reduced(reducer<reducers::CountNonzero>, x, r, i64).to(wide);
  if (std::isinf(p)) return reduced(p > 0 ? reducer<reducers::Max> : reducer<reducers::Min>, abs(x), r, wide);
  return pow(reduced(reducer<reducers::SumPowers>, x, r, wide, p), 1 / p);
}

// d|x|_p / dx = sign(x) (|x| / y)^(p-1), and 0 at the corners where it has no value. Elements are compared with their
// norm before g comes in: g / y may leave the range.
Tensor norm_back(const Tensor& g, const Tensor& x, const Tensor& y, double p, const Reduction& r) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return r.restore(g) * sign(x);
  if (p == 2) return r.restore(g) * (x / r.restore(where(eq(y, 0), INFINITY, y)));
  if (std::isinf(p)) return share_evenly(g, abs(x), y, r) * sign(x);
  const Tensor ratio = safe_quotient(abs(x), r.restore(y)), flat = eq(ratio, 0);
  return r.restore(g) * sign(x) * where(flat, 0, pow(where(flat, 1, ratio), p - 1));
}

// Where the lower median stands; the first NaN if there is one.
Tensor median_index(const Tensor& x, int64_t axis) {
  const NoGrad off;
  const auto middle = [&] { return kthvalue(x, (x.size(axis) + 1) / 2, axis, true).indices; };
  const Tensor index = blamed_on("median", middle);
  if (!is_floating(x.dtype())) return index;
  const Tensor holes = isnan(x);
  return where(any(holes, axis, true), argmax(holes, axis, true), index);
}

Tensor run_softmax(bool log, const Tensor& x, int axis, const char* op) {
  const Tensor y = allocate_as(x, x.dtype(), x.device(), op);
  backend(y.device()).softmax({log, row_arg(y), row_arg(x), axis});
  return y;
}

Tensor run_softmax_backward(bool log, const Tensor& g, const Tensor& y, int axis, const char* op) {
  const Tensor dx = allocate_as(y, y.dtype(), y.device(), op);
  backend(y.device()).softmax_backward({log, row_arg(dx), row_arg(g), row_arg(y), axis});
  return dx;
}

Tensor run_scan(int reducer, const Tensor& x, int axis, bool reverse, DType result, const char* op,
                Tensor* indices = nullptr) {
  Tensor y = allocate(x.shape(), result, x.device(), op);
  if (indices) *indices = allocate(x.shape(), i64, x.device(), op);
  backend(x.device()).scan({reducer, row_arg(y), indices ? row_arg(*indices) : Arg{}, row_arg(x), axis, reverse});
  return y;
}

// softmax or its logarithm y, with the gradient in one pass or, where it is to be differentiated itself, as `rule`.
template <class Rule> Tensor soft_rows(const char* op, bool log, const Tensor& x, int64_t dim, Rule rule) {
  require_floating(x, op);
  const int axis = axis_of(x, dim, op);
  const Tensor y = run_softmax(log, x, axis, op);
  if (!any_needs_grad(x)) return y;
  return record(op, y, {x}, [=, saved = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor out = d.take(saved);
    // The composed rule, too, rounds halves once, at its end.
    const DType wide = traits(g.dtype()).compute;
    d[0] = grad_enabled() ? rule(g.to(wide), out.to(wide), axis).to(g.dtype())
                          : run_softmax_backward(log, g, out, axis, op);
  });
}

Tensor running_sum(const Tensor& x, int axis, bool reverse) {
  return record("cumsum", run_scan(scan_by<reducers::Sum>, x, axis, reverse, sum_type(x.dtype()), "cumsum"), {x},
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

ValuesIndices running_extreme(const char* op, int reducer, const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, op);
  ValuesIndices y;
  y.values = run_scan(reducer, x, axis, false, x.dtype(), op, &y.indices);
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

Tensor Reduction::restore(const Tensor& y, bool repeat) const {
  if (grad_enabled()) return repeat ? expand(reshape(y, kept), from) : reshape(y, kept);
  Layout l{repeat ? from : kept, from, layout(y).offset};
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
  return reduced(reducer<reducers::Sum>, x, r, x.dtype());
}

const ReduceOp& reduce_op(int index) { return reduce_ops[size_t(index)]; }

Tensor reduce_over(const ReduceOp& op, const Tensor& x, const Axes& dim, bool keepdim) {
  if (autocasting()) {
    const CastScope cast(cast_of(op.name), x);
    return reduce_over(op, cast(x), dim, keepdim);
  }
  const DType dtype = x.checked(op.name).dtype();
  if (op.elements == Elements::real && !is_floating(dtype)) return reduce_over(op, x.to(default_dtype()), dim, keepdim);
  const Reduction r(x, dim, keepdim, op.name);
  if (op.elements == Elements::ordered) require_elements(x, r);
  const bool sums = op.elements == Elements::number;
  Tensor y = reduced(op, x, r, op.elements == Elements::truth ? boolean : sums ? sum_type(dtype) : dtype);
  if (!op.derivative || !any_needs_grad(x)) return y;
  // The result of halves is taken again, in f32.
  const bool by_result = op.uses() & 4, by_element = op.uses() & 2 || (by_result && is_half(dtype));
  const Saved result = by_result ? save_output(y) : Saved();
  return record(op.name, y, {x}, [&op, r, x = save(x, by_element), result](const Tensor& g, Gradients& d) {
    const Tensor in = x ? widened(d.take(x)) : Tensor();
    const Tensor out = !result              ? Tensor()
                       : is_half(g.dtype()) ? reduce_over(op, in, r.axes(), true)
                                            : r.restore(d.take(result), false);
    const TensorExpr terms[] = {r.restore(widened(g), false), in, out, TensorExpr(double(r.count))};
    const TensorExpr dx = op.derivative(terms);
    if (dx.constant()) d[0] = full(r.from, dx.value(), {g.dtype(), g.device()});
    else d[0] = dx.tensor().shape() == r.from ? dx.tensor() : expand(dx.tensor(), r.from);
  });
}

Tensor Plain::sum(const Tensor& x, const Axes& dim, bool keepdim) {
  return sum_over(x, Reduction(x, dim, keepdim, "sum"));
}

Tensor mean(const Tensor& x, const Axes& dim, bool keepdim) {
  require_floating(x, "mean");
  const Reduction r(x, dim, keepdim, "mean");
  return record("mean", reduced(reducer<reducers::Mean>, x, r, x.dtype()), {x},
                [r](const Tensor& g) { return r.restore(g * (1.0 / double(r.count))); });
}

Tensor Plain::prod(const Tensor& x, const Axes& dim, bool keepdim) {
  const Reduction r(x, dim, keepdim, "prod");
  return record(
      "prod", reduced(reducer<reducers::Prod>, x, r, sum_type(x.dtype())), {x},
      [r, x = save(x)](const Tensor& g, Gradients& d) { d[0] = prod_back(widened(g), widened(d.take(x)), r); });
}

Tensor amax(const Tensor& x, const Axes& dim, bool keepdim) {
  return extreme("amax", reducer<reducers::Max>, x, dim, keepdim);
}
Tensor amin(const Tensor& x, const Axes& dim, bool keepdim) {
  return extreme("amin", reducer<reducers::Min>, x, dim, keepdim);
}
Tensor max(const Tensor& x) { return extreme("max", reducer<reducers::Max>, x, {}, false); }
Tensor min(const Tensor& x) { return extreme("min", reducer<reducers::Min>, x, {}, false); }
ValuesIndices max(const Tensor& x, int64_t dim, bool keep) {
  return extreme_along("max", reducer<reducers::FirstMax>, x, dim, keep);
}
ValuesIndices min(const Tensor& x, int64_t dim, bool keep) {
  return extreme_along("min", reducer<reducers::FirstMin>, x, dim, keep);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmax", reducer<reducers::FirstMax>, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extreme("argmin", reducer<reducers::FirstMin>, x, dim, keepdim);
}

Tensor count_nonzero(const Tensor& x, const Axes& dim) {
  return reduced(reducer<reducers::CountNonzero>, x, Reduction(x, dim, false, "count_nonzero"), i64);
}

Tensor Plain::var(const Tensor& x, const Axes& dim, const VarOptions& options) {
  return spread("var", false, x, dim, options);
}
Tensor Plain::std_dev(const Tensor& x, const Axes& dim, const VarOptions& options) {
  return spread("std_dev", true, x, dim, options);
}
Tensor Tensor::std(const Axes& dim, const VarOptions& options) const { return std_dev(*this, dim, options); }

Tensor Plain::norm(const Tensor& x, double p, const Axes& dim, bool keepdim) {
  require_floating(x, "norm");
  const Reduction r(x, dim, keepdim, "norm");
  require(!std::isnan(p), ErrorKind::argument, "norm", "the power is NaN");
  if (p < 0 || std::isinf(p)) require_elements(x, r, " for this power");
  const Tensor y = unrecorded([&] { return norm_value(x, p, r).to(x.dtype()); });
  return record("norm", y, {x}, [r, p, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    d[0] = norm_back(widened(g), widened(d.take(x)), widened(d.take(y)), p, r);
  });
}

Tensor Plain::dist(const Tensor& x, const Tensor& other, double p) {
  require_floating(x, "dist"), require_floating(other, "dist");
  if (const DType dtype = promote(x.dtype(), other.dtype()); is_half(dtype))
    return dist(x.to(f32), other.to(f32), p).to(dtype);  // differences are not rounded before they are squared
  return blamed_on("dist", [&] { return Plain::norm(x - other, p, {}, false); });
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

Tensor Plain::softmax(const Tensor& x, int64_t dim) {
  return soft_rows("softmax", false, x, dim,
                   [](const Tensor& g, const Tensor& y, int axis) { return y * (g - sum(g * y, axis, true)); });
}

Tensor Plain::log_softmax(const Tensor& x, int64_t dim) {
  return soft_rows("log_softmax", true, x, dim,
                   [](const Tensor& g, const Tensor& y, int axis) { return g - exp(y) * sum(g, axis, true); });
}

Tensor Plain::cumsum(const Tensor& x, int64_t dim) { return running_sum(x, axis_of(x, dim, "cumsum"), false); }

Tensor Plain::cumprod(const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, "cumprod");
  return record("cumprod", run_scan(scan_by<reducers::Prod>, x, axis, false, sum_type(x.dtype()), "cumprod"), {x},
                [axis, x = save(x)](const Tensor& g, Gradients& d) {
                  const Tensor in = widened(d.take(x));
                  d[0] = in.numel() <= 1 ? g : cumprod_back(widened(g), in, axis);
                });
}

ValuesIndices cummax(const Tensor& x, int64_t dim) {
  return running_extreme("cummax", scan_by<reducers::LastMax>, x, dim);
}
ValuesIndices cummin(const Tensor& x, int64_t dim) {
  return running_extreme("cummin", scan_by<reducers::LastMin>, x, dim);
}

Tensor Plain::logcumsumexp(const Tensor& x, int64_t dim) {
  require_floating(x, "logcumsumexp");
  // The gradient needs the sums unrounded.
  if (const DType dtype = x.dtype(); is_half(dtype)) return logcumsumexp(x.to(f32), dim).to(dtype);
  const int axis = axis_of(x, dim, "logcumsumexp");
  const Tensor y = run_scan(scan_by<reducers::LogSumExp>, x, axis, false, x.dtype(), "logcumsumexp");
  return record("logcumsumexp", y, {x}, [axis, x = save(x), y = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor in = widened(d.take(x));
    d[0] = in.numel() <= 1 ? g : logcumsumexp_back(widened(g), in, widened(d.take(y)), axis);
  });
}

Tensor diff(const Tensor& x, int64_t n, int64_t dim) {
  const int axis = axis_of(x, dim, "diff", 1);
  require(n >= 0, ErrorKind::argument, "diff", "the order ", n, " is negative");
  Tensor y = n < x.size(axis) ? x : narrow(x, axis, 0, 0);  // of a higher order there is nothing
  for (int64_t k = 0; k < n && y.size(axis) > 0; ++k) {
    const int64_t rest = y.size(axis) - 1;
    const Tensor later = narrow(y, axis, 1, rest), earlier = narrow(y, axis, 0, rest);
    y = x.dtype() == boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y.shares_storage(x) ? y.clone() : y;
}

}  // namespace volta

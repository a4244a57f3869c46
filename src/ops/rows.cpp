// Ops along one axis: softmax and log-softmax; running sums, products and extremes; differences.
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/index.h"
#include "ops/reduce.h"

namespace volta {
namespace {

// A result as dense as the last operand, in its order of axes.
Tensor run_rows(RowOp kind, const Tensor& a, const Tensor& b, int axis, const char* op) {
  const Tensor& like = b.defined() ? b : a;
  const Tensor y = allocate_as(like, like.dtype(), like.device(), op);
  backend(y.device()).rows({kind, row_arg(y), {row_arg(a), row_arg(like)}, axis});
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
Tensor soft_rows(const char* op, RowOp forward, RowOp back, const Tensor& x, int64_t dim, Rule rule) {
  require_floating(x, op);
  const int axis = axis_of(x, dim, op);
  const Tensor y = run_rows(forward, x, {}, axis, op);
  if (!any_needs_grad(x)) return y;
  return record(op, y, {x}, [=, saved = save_output(y)](const Tensor& g, Gradients& d) {
    const Tensor out = d.take(saved);
    d[0] = grad_enabled() ? rule(g, out, axis) : run_rows(back, g, out, axis, op);
  });
}

Tensor running_sum(const Tensor& x, int axis, bool reverse) {
  return record("cumsum", run_scan(Scan::sum, x, axis, reverse, sum_type(x.dtype()), "cumsum"), {x},
                [axis, reverse](const Tensor& g, Gradients& d) { d[0] = running_sum(g, axis, !reverse); });
}

// n slices of one number, to go before or after x along the axis.
Tensor slices(const Tensor& x, int axis, int64_t n, int value) {
  Shape shape = x.shape();
  shape[axis] = n;
  return full(shape, value, {x.dtype(), x.device()});
}

// x[k + by] with zeros after the end.
Tensor shifted(const Tensor& x, int axis, int64_t by) {
  return cat({narrow(x, axis, by, x.size(axis) - by), slices(x, axis, by, 0)}, axis);
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
  return exp_difference(x, y) * recurrence(cat({decay, slices(x, axis, 1, 0)}, axis), g, axis);
}

ValuesIndices running_extreme(const char* op, Scan scan, const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, op);
  ValuesIndices y;
  y.values = run_scan(scan, x, axis, false, x.dtype(), op, &y.indices);
  y.values = chosen(op, std::move(y.values), x, axis, y.indices);
  return y;
}

}  // namespace

Tensor products_before(const Tensor& x, int axis) {
  return cat({slices(x, axis, 1, 1), cumprod(narrow(x, axis, 0, x.size(axis) - 1), axis)}, axis);
}

Tensor softmax(const Tensor& x, int64_t dim) {
  return soft_rows("softmax", RowOp::softmax, RowOp::softmax_back, x, dim,
                   [](auto& g, auto& y, int axis) { return g * y - y * sum(g * y, axis, true); });
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  return soft_rows("log_softmax", RowOp::log_softmax, RowOp::log_softmax_back, x, dim,
                   [](auto& g, auto& y, int axis) { return g - exp(y) * sum(g, axis, true); });
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
  require(n >= 0, Wrong::argument, "diff", "the order ", n, " is negative");
  Tensor y = x;
  for (int64_t k = 0; k < n && y.size(axis) > 0; ++k) {
    const int64_t rest = y.size(axis) - 1;
    const Tensor later = narrow(y, axis, 1, rest), earlier = narrow(y, axis, 0, rest);
    y = x.dtype() == boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y;
}

}  // namespace volta

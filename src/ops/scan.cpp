// Running sums, products and extremes along an axis, and differences.
#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/fold.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

Tensor run_scan(Scan scan, const Tensor& x, int axis, bool reverse, DType result, const char* op,
                Tensor* indices = nullptr) {
  Tensor y = allocate(x.shape(), result, x.device(), op);
  if (indices) *indices = allocate(x.shape(), i64, x.device(), op);
  ScanCall call{scan, arg(y), indices ? arg(*indices) : Arg{}, arg(x), axis, reverse};
  const Layout single = Layout::contiguous({1});  // a 0-d tensor is a row of one
  if (x.dim() == 0) call.out.layout = call.in.layout = call.indices.layout = &single;
  backend(x.device()).scan(call);
  return y;
}

int axis_of(const Tensor& x, int64_t dim, const char* op) {
  return normalize_axis(dim, int(x.checked(op).dim()), x.shape(), op);
}

DType sum_type(DType t) { return is_floating(t) || t == u64 ? t : i64; }

Tensor running_sum(const Tensor& x, int axis, bool reverse) {
  return record("cumsum", run_scan(Scan::sum, x, axis, reverse, sum_type(x.dtype()), "cumsum"), {x},
                [axis, reverse](const Tensor& g, Gradients& d) { d[0] = running_sum(g, axis, !reverse); });
}

// x[k + by] with zeros after the end.
Tensor shifted(const Tensor& x, int axis, int64_t by) {
  const int64_t n = x.size(axis);
  Shape missing = x.shape();
  missing[axis] = by;
  return cat({narrow(x, axis, by, n - by), zeros(missing, {x.dtype(), x.device()})}, axis);
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
  const int64_t n = x.size(axis);
  Shape one = x.shape();
  one[axis] = 1;
  const Tensor before = cat({ones(one, {x.dtype(), x.device()}), cumprod(narrow(x, axis, 0, n - 1), axis)}, axis);
  return before * recurrence(shifted(x, axis, 1), g, axis);
}

// exp(a - b) for a <= b, 1 where both are infinite.
Tensor exp_difference(const Tensor& a, const Tensor& b) { return exp(where(eq(a, b), 0, a - b)); }

// dL/dx[k] = exp(x[k] - y[k]) s[k], with s[k] = g[k] + exp(y[k] - y[k + 1]) s[k + 1]: no exponent is positive.
Tensor logcumsumexp_back(const Tensor& g, const Tensor& x, const Tensor& y, int axis) {
  const int64_t n = x.size(axis);
  const Tensor decay = exp_difference(narrow(y, axis, 0, n - 1), narrow(y, axis, 1, n - 1));
  Shape one = x.shape();
  one[axis] = 1;
  const Tensor a = cat({decay, zeros(one, {x.dtype(), x.device()})}, axis);
  return exp_difference(x, y) * recurrence(a, g, axis);
}

ValuesIndices running_extreme(const char* op, Scan scan, const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, op);
  ValuesIndices y;
  y.values = run_scan(scan, x, axis, false, x.dtype(), op, &y.indices);
  y.values = record(op, std::move(y.values), {x}, [axis, indices = save(y.indices)](const Tensor& g, Gradients& d) {
    if (g.dim() == 0) d[0] = g;
    else d[0] = scatter_add(zeros(g.shape(), {g.dtype(), g.device()}), axis, d.take(indices), g);
  });
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim) { return running_sum(x, axis_of(x, dim, "cumsum"), false); }

Tensor cumprod(const Tensor& x, int64_t dim) {
  const int axis = axis_of(x, dim, "cumprod");
  return record("cumprod", run_scan(Scan::prod, x, axis, false, sum_type(x.dtype()), "cumprod"), {x},
                [axis, x = save(x)](const Tensor& g, Gradients& d) {
                  const Tensor in = d.take(x);
                  d[0] = in.dim() == 0 || in.numel() == 0 ? g : cumprod_back(g, in, axis);
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
    d[0] = in.dim() == 0 || in.numel() == 0 ? g : logcumsumexp_back(g, in, d.take(y), axis);
  });
}

Tensor diff(const Tensor& x, int64_t n, int64_t dim) {
  if (x.checked("diff").dim() == 0)
    throw Error(Error::Kind::shape, "diff", "needs at least one axis, got a 0-d tensor");
  const int axis = axis_of(x, dim, "diff");
  if (n < 0) throw Error(Error::Kind::argument, "diff", "the order " + std::to_string(n) + " is negative");
  Tensor y = x;
  for (int64_t k = 0; k < n && y.size(axis) > 0; ++k) {
    const int64_t rest = y.size(axis) - 1;
    const Tensor later = narrow(y, axis, 1, rest), earlier = narrow(y, axis, 0, rest);
    y = x.dtype() == boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y;
}

}  // namespace volta

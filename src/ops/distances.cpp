// Products added to a tensor, distances between rows, and powers as columns.
#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "graph/record.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

// beta * x + alpha * product(a, b), in the dtype the three meet in. With beta = 0, NaN and infinities in x do not count.
template <class Multiply> Tensor added_product(const char* op, const Tensor& x, const Tensor& a, const Tensor& b,
                                               double beta, double alpha, const Shape& shape, Multiply product) {
  common_device(x.checked(op), a, op), common_device(a, b, op);
  require(broadcast_shapes(x.shape(), shape, op) == shape, ErrorKind::shape, op, x,
          " does not broadcast to the product's shape ", shape);
  const Operand operands[] = {x, a, b};
  const DType dtype = product_dtype(operands, op);
  // What alpha makes small need not fit into a half before.
  if (is_half(dtype) && alpha != 1)
    return added_product(op, x.to(f32), a.to(f32), b.to(f32), beta, alpha, shape, product).to(dtype);
  const Scalar scale_x = factor_for(beta, dtype, op), scale_y = factor_for(alpha, dtype, op);
  Tensor y = product(a.to(dtype), b.to(dtype));
  if (alpha != 1) y = mul(y, scale_y);
  const Tensor term = beta == 0   ? where(full({}, false, {boolean, x.device()}), x, 0)
                      : beta == 1 ? x
                                  : mul(x.to(dtype), scale_x);
  return add(y, term);
}

void require_batches(const Tensor& a, const Tensor& b, const char* op) {
  const bool fine =
      a.checked(op).dim() == 3 && b.checked(op).dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1);
  require(fine, ErrorKind::shape, op, a, " x ", b, ": needs two batches of matrices that fit");
}

void require_power(double p, const char* op) {
  require(p >= 0, ErrorKind::argument, op, "the power ", p, " must not be negative");
}

// The p-norm along the last axis, which may be empty.
Tensor lengths(const Tensor& x, double p) { return x.size(-1) == 0 ? x.sum(-1) : norm(x, p, -1); }

}  // namespace

Tensor Plain::baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_batches(a, b, "baddbmm");
  return added_product("baddbmm", x, a, b, beta, alpha, {a.size(0), a.size(1), b.size(2)}, bmm);
}

Tensor Plain::addbmm(const Tensor& x, const Tensor& a, const Tensor& b, double beta, double alpha) {
  require_batches(a, b, "addbmm");
  // The batch joins the axis that is summed over: one product instead of many and their sum.
  const int64_t n = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  return added_product("addbmm", x, a, b, beta, alpha, {rows, columns}, [=](const Tensor& l, const Tensor& r) {
    return mm(l.transpose(0, 1).reshape({rows, n * inner}), r.reshape({n * inner, columns}));
  });
}

Tensor Plain::addmv(const Tensor& x, const Tensor& a, const Tensor& v, double beta, double alpha) {
  const char* op = "addmv";
  require(a.checked(op).dim() == 2 && v.checked(op).dim() == 1 && a.size(1) == v.size(0), ErrorKind::shape, op, a,
          " x ", v, ": needs a matrix and a vector that fit");
  return added_product(op, x, a, v, beta, alpha, {a.size(0)}, mv);
}

Tensor Plain::addr(const Tensor& x, const Tensor& u, const Tensor& v, double beta, double alpha) {
  const char* op = "addr";
  require(u.checked(op).dim() == 1 && v.checked(op).dim() == 1, ErrorKind::shape, op, u, " x ", v,
          ": needs two vectors");
  if (const DType dtype = promote(promote(x.checked(op).dtype(), u.dtype()), v.dtype()); is_half(dtype))
    return addr(x.to(f32), u.to(f32), v.to(f32), beta, alpha).to(dtype);  // rounded once
  return added_product(op, x, u, v, beta, alpha, {u.size(0), v.size(0)}, outer);
}

Tensor Plain::cdist(const Tensor& x, const Tensor& other, double p) {
  const char* op = "cdist";
  common_device(x.checked(op), other.checked(op), op);
  require_floating(x, op), require_floating(other, op);
  require(x.dim() >= 2 && other.dim() >= 2 && x.size(-1) == other.size(-1), ErrorKind::shape, op, x, " and ", other,
          ": needs rows of the same length");
  require_power(p, op);
  if (const DType dtype = promote(x.dtype(), other.dtype()); is_half(dtype))
    return cdist(x.to(f32), other.to(f32), p).to(dtype);
  // Differences of all pairs stand in memory for so many rows at a time.
  Shape one_row = x.shape();
  one_row[-2] = 1;
  const int64_t rows = x.size(-2);
  const int64_t pair = std::max<int64_t>(1, broadcast_shapes(one_row, other.shape(), op).numel());
  const int64_t together = std::max<int64_t>(1, (int64_t(1) << 22) / pair);
  const auto part = [&](int64_t from, int64_t n) {
    return blamed_on(op, [&] { return lengths(x.narrow(-2, from, n).unsqueeze(-2) - other.unsqueeze(-3), p); });
  };
  if (rows <= together) return part(0, rows);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < rows; i += together) parts.push_back(part(i, std::min(together, rows - i)));
  return cat(parts, -2);
}

Tensor Plain::pdist(const Tensor& x, double p) {
  const char* op = "pdist";
  require_floating(x, op);
  require(x.dim() == 2, ErrorKind::shape, op, "needs a matrix, got shape ", x);
  require_power(p, op);
  if (is_half(x.dtype())) return pdist(x.to(f32), p).to(x.dtype());
  const Tensor pairs = triu_indices(x.size(0), x.size(0), 1, {i64, x.device()});
  return lengths(x.index_select(0, pairs.select(0, 0)) - x.index_select(0, pairs.select(0, 1)), p);
}

Tensor Plain::vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  const char* op = "vander";
  require(x.checked(op).dim() == 1, ErrorKind::shape, op, "needs a vector, got shape ", x);
  const int64_t columns = n.value_or(x.numel());
  require(columns >= 0, ErrorKind::argument, op, "the number of columns is negative: ", columns);
  const Tensor base = x.to(sum_type(x.dtype()));
  checked_numel({x.numel(), columns}, op);
  if (columns == 0) return base.unsqueeze(1).narrow(1, 0, 0).clone();
  const Tensor first = ones({x.numel(), 1}, {base.dtype(), x.device()});
  Tensor powers = first;
  if (columns > 1) powers = cat({first, cumprod(base.unsqueeze(1).expand({x.numel(), columns - 1}), 1)}, 1);
  return increasing ? powers : flip(powers, 1).contiguous();
}

}  // namespace volta

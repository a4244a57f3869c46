// Comparisons of whole tensors, and pointwise ops made of others.
#include <cmath>

#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/check.h"
#include "ops/point.h"
#include "ops/pointwise.h"

namespace volta {
namespace {

// u64 and signed integers meet in no integer dtype; where the signed one is not negative, u64 holds both.
Tensor equal_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() == u64 && traits(b.dtype()).kind == Kind::signed_int) return logical_and(b >= 0, a == b.to(u64));
  if (b.dtype() == u64 && traits(a.dtype()).kind == Kind::signed_int) return equal_elements(b, a);
  return a == b;
}

Tensor scaled(const Tensor& x, double value, const char* op) {
  return value == 1 ? x : x * factor_for(value, x.dtype(), op);
}

void check_three(const Tensor& x, const Tensor& a, const Tensor& b, const char* op) {
  broadcast_shapes(x.checked(op).shape(), broadcast_shapes(a.checked(op).shape(), b.checked(op).shape(), op), op);
}

}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) {
  // Beyond 170, factorials overflow.
  require(n >= 0 && n <= 170, Wrong::argument, "polygamma", "the order ", n, " is not between 0 and 170");
  if (n <= 2) return n == 0 ? digamma(x) : n == 1 ? trigamma(x) : polygamma2(x);
  const Operand operands[] = {x, n};
  return map(point_op(index_of<point::Polygamma>(PointOps{})), operands);
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  check_three(x, a, b, "addcmul");
  return muladd(scaled(a, value, "addcmul"), b, x);
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  check_three(x, a, b, "addcdiv");
  return x + scaled(a / b, value, "addcdiv");
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(x.checked("nan_to_num").dtype())) return x.clone();
  const double most = largest_finite(x.dtype());
  const Tensor finite = where(x == INFINITY, posinf.value_or(most), where(x == -INFINITY, neginf.value_or(-most), x));
  return where(isnan(x), nan, finite);
}

Tensor isclose(const Tensor& x, const Tensor& other, const CloseOptions& options) {
  const char* op = "isclose";
  require(options.rtol >= 0 && options.atol >= 0, Wrong::argument, op, "rtol and atol must not be negative");
  common_device(x, other, op);
  broadcast_shapes(x.shape(), other.shape(), op);
  const NoGrad off;
  const DType common = promote(x.dtype(), other.dtype());
  const DType compute = common == f64 || !is_floating(common) ? f64 : f32;
  const Tensor a = x.to(compute), b = other.to(compute);
  const Tensor near = logical_and(isfinite(b), (a - b).abs() <= b.abs() * options.rtol + options.atol);
  const Tensor close = logical_or(equal_elements(x, other), near);
  return options.equal_nan ? logical_or(close, logical_and(isnan(a), isnan(b))) : close;
}

bool allclose(const Tensor& x, const Tensor& other, const CloseOptions& options) {
  common_device(x, other, "allclose");
  require(x.shape() == other.shape(), Wrong::shape, "allclose", "shapes ", x, " and ", other, " differ");
  return isclose(x, other, options).all().item<bool>();
}

bool equal(const Tensor& x, const Tensor& other) {
  common_device(x, other, "equal");
  if (x.shape() != other.shape()) return false;
  const NoGrad off;
  return equal_elements(x, other).all().item<bool>();
}

}  // namespace volta

// Comparisons of whole tensors, and pointwise ops made of others.
#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/ops.h>

#include "autograd/record.h"
#include "ops/index.h"

namespace volta {
namespace {

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return double(float(bfloat16::from_bits(0x7f7f)));
    case DType::f32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

// u64 and signed integers meet in no integer dtype; where the signed one is not negative, u64 holds both.
Tensor equal_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() == u64 && traits(b.dtype()).kind == Kind::signed_int) return logical_and(b >= 0, a == b.to(u64));
  if (b.dtype() == u64 && traits(a.dtype()).kind == Kind::signed_int) return equal_elements(b, a);
  return a == b;
}

Tensor scaled(const Tensor& x, double value, const char* op) {
  if (value == 1) return x;
  if (is_floating(x.dtype())) return x * value;
  require_storable(value, x.dtype(), op);
  return x * int64_t(value);
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const char* op = "addcmul";
  const Shape product = broadcast_shapes(a.checked(op).shape(), b.checked(op).shape(), op);
  broadcast_shapes(x.checked(op).shape(), product, op);
  return muladd(scaled(a, value, op), b, x);
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const char* op = "addcdiv";
  const Shape quotient = broadcast_shapes(a.checked(op).shape(), b.checked(op).shape(), op);
  broadcast_shapes(x.checked(op).shape(), quotient, op);
  return x + scaled(a / b, value, op);
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!is_floating(x.checked("nan_to_num").dtype())) return x.clone();
  const double most = largest_finite(x.dtype());
  const Tensor finite = where(x == INFINITY, posinf.value_or(most), where(x == -INFINITY, neginf.value_or(-most), x));
  return where(isnan(x), nan, finite);
}

Tensor isclose(const Tensor& x, const Tensor& other, const CloseOptions& options) {
  const char* op = "isclose";
  if (!(options.rtol >= 0) || !(options.atol >= 0))
    throw Error(Error::Kind::argument, op, "rtol and atol must not be negative");
  common_device(x.checked(op), other.checked(op), op);
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
  if (x.checked("allclose").shape() != other.checked("allclose").shape())
    throw Error(Error::Kind::shape, "allclose",
                "shapes " + x.shape().str() + " and " + other.shape().str() + " differ");
  return isclose(x, other, options).all().item<bool>();
}

bool equal(const Tensor& x, const Tensor& other) {
  common_device(x.checked("equal"), other.checked("equal"), "equal");
  if (x.shape() != other.shape()) return false;
  const NoGrad off;
  return equal_elements(x, other).all().item<bool>();
}

}  // namespace volta

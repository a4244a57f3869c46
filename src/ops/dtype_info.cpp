// What dtypes hold and how they meet, for programs that ask.
#include <volta/dtype_info.h>

#include <cmath>
#include <limits>

#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

// `digits` counts the mantissa's bits, the hidden one included; `least` is the smallest exponent.
FloatInfo described(DType dtype, int bits, int digits, int least, double max, double resolution) {
  const double normal = std::ldexp(1, least);
  return {bits,   std::ldexp(1, 1 - digits),         max,        -max, normal,
          normal, std::ldexp(1, least + 1 - digits), resolution, dtype};
}

}  // namespace

FloatInfo finfo(DType dtype) {
  require_dtype(dtype, "finfo");
  require(is_floating(dtype), ErrorKind::dtype, "finfo", "needs a floating dtype, got ", dtype);
  const double max = largest_finite(dtype);
  if (dtype == f16) return described(dtype, 16, 11, -14, max, 1e-3);
  if (dtype == bf16) return described(dtype, 16, 8, -126, max, 1e-2);
  if (dtype == f32) return described(dtype, 32, 24, -126, max, 1e-6);
  return described(dtype, 64, 53, -1022, max, 1e-15);
}

IntegerInfo iinfo(DType dtype) {
  require_dtype(dtype, "iinfo");
  require(is_integral(dtype), ErrorKind::dtype, "iinfo", "needs a dtype of integers, got ", dtype);
  return visit(dtype, [&]<class T>(TypeTag<T>) -> IntegerInfo {
    if constexpr (!std::is_integral_v<T>) return {};
    else
      return {int(8 * sizeof(T)), uint64_t(std::numeric_limits<T>::max()), int64_t(std::numeric_limits<T>::min()),
              dtype};
  });
}

DType result_type(const Operand& a, const Operand& b) {
  for (const Operand* x : {&a, &b})
    if (x->tensor) x->tensor->checked("result_type");
  const Operand both[] = {a, b};
  return result_type(both, "result_type");
}

DType promote_types(DType a, DType b) {
  for (DType t : {a, b}) require_dtype(t, "promote_types");
  return promote(a, b);
}
DType result_type(DType a, DType b) { return promote_types(a, b); }

bool can_cast(DType from, DType to) {
  for (DType t : {from, to}) require_dtype(t, "can_cast");
  return traits(from).kind <= traits(to).kind || (is_integral(from) && is_integral(to));
}

bool isdtype(DType dtype, const Choice<DTypeKind>& kind) {
  require_dtype(dtype, "isdtype");
  const Kind k = traits(dtype).kind;
  switch (kind.of("isdtype", "kind")) {
    case DTypeKind::truth: return k == Kind::boolean;
    case DTypeKind::signed_integer: return k == Kind::signed_int;
    case DTypeKind::unsigned_integer: return k == Kind::unsigned_int;
    case DTypeKind::integral: return is_integral(dtype);
    case DTypeKind::real_floating: return is_floating(dtype);
    case DTypeKind::numeric: return k != Kind::boolean;
  }
  return false;
}
bool isdtype(DType dtype, DType other) { return dtype == other; }

}  // namespace volta

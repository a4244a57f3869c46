// What a dtype holds, and how dtypes meet: finfo, iinfo, result_type, can_cast, isdtype.
#pragma once
#include <array>
#include <string_view>

#include <volta/choice.h>
#include <volta/operand.h>

namespace volta {

// The numbers of a floating dtype: finfo(bf16).eps.
struct FloatInfo {
  int bits;
  double eps;  // from 1 to the next number
  double max, min;
  double tiny, smallest_normal, smallest_subnormal;
  double resolution;  // 10 to the power of minus the digits that a decimal keeps
  DType dtype;
};
[[nodiscard]] FloatInfo finfo(DType dtype);

// The range of an integer dtype: iinfo(u8).max.
struct IntegerInfo {
  int bits;
  uint64_t max;
  int64_t min;
  DType dtype;
};
[[nodiscard]] IntegerInfo iinfo(DType dtype);

// The dtype in which two operands meet: result_type(x, 0.5), result_type(i8, u8).
[[nodiscard]] DType result_type(const Operand& a, const Operand& b);
[[nodiscard]] DType result_type(DType a, DType b);
[[nodiscard]] DType promote_types(DType a, DType b);

// Whether PyTorch would convert without being told: not floats to integers, nor numbers to truths.
[[nodiscard]] bool can_cast(DType from, DType to);

// Whether a dtype is of a kind, in the array API's words: "bool", "signed integer", "unsigned integer", "integral",
// "real floating", "numeric"; isdtype(x.dtype(), "integral").
enum class DTypeKind : uint8_t { truth, signed_integer, unsigned_integer, integral, real_floating, numeric };
constexpr std::array<std::string_view, 6> choice_names(DTypeKind) {
  return {"bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"};
}
[[nodiscard]] bool isdtype(DType dtype, const Choice<DTypeKind>& kind);
[[nodiscard]] bool isdtype(DType dtype, DType other);

}  // namespace volta

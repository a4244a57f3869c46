// What messages say of numbers, and which numbers a dtype holds.
#include "core/check.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/integer_range.h"

namespace volta {

std::string text_of(const Scalar& x) {
  if (x.kind() == Kind::unsigned_int) return std::to_string(x.as<uint64_t>());
  if (!x.is_floating()) return std::to_string(x.as<int64_t>());
  const double value = x.as<double>();
  if (std::isnan(value)) return "nan";  // of either sign
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

namespace {

template <class T> bool holds_as(const Scalar& x) {
  if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) {
    return true;
  } else if (x.is_floating()) {
    const double d = std::trunc(x.as<double>());
    constexpr double high = double(uint64_t(1) << (8 * sizeof(T) - 1)) * (std::is_signed_v<T> ? 1.0 : 2.0);
    return d >= double(std::numeric_limits<T>::min()) && d < high;
  } else {
    return x.kind() == Kind::unsigned_int ? std::in_range<T>(x.as<uint64_t>()) : std::in_range<T>(x.as<int64_t>());
  }
}

}  // namespace

bool holds(DType dtype, const Scalar& value) {
  return visit(dtype, [&]<class T>(TypeTag<T>) { return holds_as<T>(value); });
}

// Both ends must be values of the dtype; of a floating one, every integer between them too.
bool holds_integers(DType dtype, int64_t low, uint64_t count) {
  const auto high = int64_t(uint64_t(low) + (count - 1));
  if (dtype == u64) return uint64_t(high) >= uint64_t(low);
  if (dtype == boolean) return low >= 0 && high <= 1;
  if (!is_floating(dtype)) return holds(dtype, low) && holds(dtype, high);
  const int digits = dtype == f16 ? 11 : dtype == bf16 ? 8 : dtype == f32 ? 24 : 53;
  return low >= -(int64_t(1) << digits) && high <= int64_t(1) << digits;
}

double largest_finite(DType dtype) {
  if (is_half(dtype)) return dtype == f16 ? 65504 : 0x1.FEp127;
  return dtype == f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
}

}  // namespace volta

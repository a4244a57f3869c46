// Checked: arithmetic on sizes, strides and offsets that notices overflow, for every number that an argument reaches.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "core/check.h"

namespace volta {

// A 64-bit integer, or nothing once a step has overflowed or divided by 0:
//   const int64_t length = ((Checked(size) + 2 * Checked(padding) - reach) / stride + 1).value(op);
class Checked {
 public:
  template <std::integral T> constexpr Checked(T x) : value_(int64_t(x)), fits_(std::in_range<int64_t>(x)) {}

  constexpr bool fits() const { return fits_; }
  constexpr std::optional<int64_t> get() const { return fits_ ? std::optional(value_) : std::nullopt; }
  constexpr int64_t value_or(int64_t other) const { return fits_ ? value_ : other; }
  int64_t value(const char* op, const char* what = "the sizes are too large: 64 bits do not hold their product or sum",
                ErrorKind kind = ErrorKind::shape) const {
    if (!fits_) throw_error(kind, op, what);
    return value_;
  }
  // Whether it is known, and low <= it <= high.
  constexpr bool within(int64_t low, int64_t high) const { return fits_ && value_ >= low && value_ <= high; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    int64_t sum;
    const bool over = __builtin_add_overflow(a.value_, b.value_, &sum);
    return {sum, a.fits_ && b.fits_ && !over};
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    int64_t difference;
    const bool over = __builtin_sub_overflow(a.value_, b.value_, &difference);
    return {difference, a.fits_ && b.fits_ && !over};
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    int64_t product;
    const bool over = __builtin_mul_overflow(a.value_, b.value_, &product);
    return {product, a.fits_ && b.fits_ && !over};
  }
  // Toward 0, as in C++.
  friend constexpr Checked operator/(Checked a, Checked b) {
    const bool fine =
        a.fits_ && b.fits_ && b.value_ != 0 && !(b.value_ == -1 && a.value_ == std::numeric_limits<int64_t>::min());
    return {fine ? a.value_ / b.value_ : 0, fine};
  }
  friend constexpr Checked operator-(Checked a) { return Checked(0) - a; }
  constexpr Checked& operator+=(Checked b) { return *this = *this + b; }
  constexpr Checked& operator-=(Checked b) { return *this = *this - b; }
  constexpr Checked& operator*=(Checked b) { return *this = *this * b; }

 private:
  constexpr Checked(int64_t value, bool fits) : value_(value), fits_(fits) {}
  int64_t value_;
  bool fits_;
};

}  // namespace volta

// Integer counterparts of the scalar functions: total, wrapping where C++ leaves behaviour undefined, never trapping.
#pragma once
#include "volta/scalar/basic.h"

namespace volta::scalar {

namespace detail {

template <class T> struct WrapOf { using type = std::make_unsigned_t<T>; };
template <> struct WrapOf<bool> { using type = uint8_t; };

// Arithmetic on Wrap<T>(x) wraps. It is at least 32 bits wide, because narrower types would promote to signed int.
template <class T> using Wrap = std::conditional_t<sizeof(T) < 4, uint32_t, typename WrapOf<T>::type>;

template <class T> inline constexpr int width = std::is_same_v<T, bool> ? 1 : int(sizeof(T)) * 8;

// A divisor for which a / b is defined: 1 stands in for 0 and for the -1 that overflows.
template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr bool negates(T b) {
  if constexpr (std::is_signed_v<T>) return b == T(-1);
  else return b != b;
}

template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T safe_divisor(T b) {
  return select(b == T(0) || negates(b), T(1), b);
}

}  // namespace detail

template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T neg(T x) {
  return T(detail::Wrap<T>(0) - detail::Wrap<T>(x));
}

template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T abs(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0 ? neg(x) : x;
  else return x;
}

template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T sign(T x) { return signbit(x) ? T(-1) : T(x != T(0)); }

// Quotient towards zero; x / 0 is 0.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T truncated_divide(T a, B divisor) {
  const T b = T(divisor), quotient = T(a / detail::safe_divisor(b));
  return b == T(0) ? T(0) : detail::negates(b) ? neg(a) : quotient;
}

// The remainder of truncated_divide, with the sign of a; x modulo 0 is 0.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T fmod(T a, B divisor) {
  const T b = T(divisor);
  return T(a % detail::safe_divisor(b));
}

// Quotient towards minus infinity, as in Python; x / 0 is 0.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T floor_divide(T a, B divisor) {
  const T b = T(divisor), quotient = truncated_divide(a, b), rest = fmod(a, b);
  if constexpr (std::is_signed_v<T>) return T(quotient - ((rest != 0) & ((rest < 0) != (b < 0))));
  else return quotient;
}

// The remainder of floor_divide, with the sign of b; x modulo 0 is 0.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T remainder(T a, B divisor) {
  const T b = T(divisor), rest = fmod(a, b);
  if constexpr (std::is_signed_v<T>) return select((rest != 0) & ((rest < 0) != (b < 0)), T(rest + b), rest);
  else return rest;
}

// By squaring, wrapping. A negative exponent gives what 1 / base^-exponent truncates to: 0 unless the base is 1 or -1.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T pow(T base, B power) {
  const T exponent = T(power);
  using W = detail::Wrap<T>;
  W square = W(base), result = 1, rest = W(exponent);
  for (int bit = 0; bit < detail::width<T>; ++bit, rest >>= 1, square *= square) result *= rest & 1 ? square : W(1);
  if constexpr (std::is_signed_v<T>) {
    const T odd = exponent & 1 ? base : T(1);
    const T unit = base == T(1) ? T(1) : base == T(-1) ? odd : T(0);
    return exponent < 0 ? unit : T(result);
  } else {
    return T(result);
  }
}

// A count outside 0 … width - 1 shifts everything out.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T shift_left(T x, B count) {
  const T n = T(count);
  const bool inside = uint64_t(n) < uint64_t(detail::width<T>);  // a negative count wraps far outside
  const T shifted = T(detail::Wrap<T>(x) << (inside ? int(n) : 0));
  return inside ? shifted : T(0);
}

// Arithmetic: a count outside 0 … width - 1 leaves the sign alone, 0 or -1.
template <Integer T, Number B> [[gnu::always_inline]] VOLTA_HD constexpr T shift_right(T x, B count) {
  const T n = T(count);
  const bool inside = uint64_t(n) < uint64_t(detail::width<T>);  // a negative count wraps far outside
  const T shifted = T(x >> (inside ? int(n) : 0));
  return inside ? shifted : signbit(x) ? T(-1) : T(0);
}

}  // namespace volta::scalar

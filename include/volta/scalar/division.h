// Remainders and floored quotients of float and double, exact for every ratio of the arguments.
#pragma once
#include "volta/scalar/basic.h"

namespace volta::scalar {

namespace detail {

// The significand as an integer and the exponent of its unit, for positive finite x.
struct Significand {
  uint64_t digits;
  int exponent;
};

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Significand significand(T x) {
  constexpr int shift = BitsOf<T>::mantissa;
  constexpr uint64_t hidden = uint64_t(1) << shift;
  const uint64_t u = bits(x);
  const int field = int(u >> shift);
  return {field == 0 ? u : (u & (hidden - 1)) | hidden, field == 0 ? 1 : field};
}

// Written out: the standard's function is not to be had in device code.
[[gnu::always_inline]] VOLTA_HD constexpr int leading_zeros(uint64_t x) {
  int n = 0;
  for (int half = 32; half > 0; half /= 2)
    if (x >> (64 - half) == 0) {
      n += half;
      x <<= half;
    }
  return n;
}

// a mod b for 0 < b <= a: long division, as many binary digits a step as a 64-bit word has room for.
template <Real T> VOLTA_HD constexpr T long_remainder(T a, T b) {
  constexpr int room = 63 - BitsOf<T>::mantissa;
  const Significand x = significand(a), y = significand(b);
  uint64_t rest = x.digits % y.digits;
  for (int left = x.exponent - y.exponent; left > 0; left -= room)
    rest = (rest << (left < room ? left : room)) % y.digits;
  if (rest == 0) return T(0);
  const int up = leading_zeros(rest) - room, steps = up < y.exponent - 1 ? up : y.exponent - 1;
  const uint64_t hidden = uint64_t(1) << BitsOf<T>::mantissa, digits = rest << steps;
  const uint64_t field = digits < hidden ? 0 : uint64_t(y.exponent - steps);
  return from_bits<T>(Unsigned<T>((digits & (hidden - 1)) | field << BitsOf<T>::mantissa));
}

}  // namespace detail

// x - y trunc(x / y), exact, with the sign of x.
template <Real A, Number B> VOLTA_HD constexpr Joint<A, B> fmod(A dividend, B divisor) {
  using T = Joint<A, B>;
  const T x = T(dividend), y = T(divisor), a = abs(x), b = abs(y);
  if (!(a < detail::infinity<T>) || !(b > T(0))) return detail::nan<T>;
  if (a < b) return x;
  return copysign(detail::long_remainder(a, b), x);
}

// x - y floor(x / y): as fmod, but with the sign of y.
template <Real A, Number B> VOLTA_HD constexpr Joint<A, B> remainder(A dividend, B divisor) {
  using T = Joint<A, B>;
  const T x = T(dividend), y = T(divisor), rest = fmod(x, y);
  if (rest == T(0)) return copysign(T(0), y);
  return (rest < T(0)) != (y < T(0)) ? rest + y : rest;
}

// floor(x / y) consistent with remainder: the quotient of what remainder leaves, rounded to the integer it must be.
template <Real A, Number B> VOLTA_HD constexpr Joint<A, B> floor_divide(A dividend, B divisor) {
  using T = Joint<A, B>;
  const T x = T(dividend), y = T(divisor);
  if (y == T(0)) return x / y;
  const T rest = fmod(x, y), quotient = (x - rest) / y;
  const bool below = rest != T(0) && (rest < T(0)) != (y < T(0));
  const T value = below ? quotient - T(1) : quotient;
  if (value == T(0)) return copysign(T(0), x / y);
  const T whole = floor(value);
  return value - whole > T(0.5) ? whole + T(1) : whole;
}

}  // namespace volta::scalar

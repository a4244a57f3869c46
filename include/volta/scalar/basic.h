// Scalar basics: bit access, branch-free choice, order, rounding and classification for every arithmetic type.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include "volta/dtype.h"

// Everything below is branch-free and inlined, so that a plain loop over it vectorises, and compiles for the device.
// Overload sets are closed to arithmetic types: other scalar-like types bring their own overloads of the same names.
namespace volta::scalar {

template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept Integer = std::integral<T>;
template <class T>
concept Number = Real<T> || Integer<T>;

namespace detail {

template <class A, class B> struct JointOf { using type = A; };
template <> struct JointOf<float, double> { using type = double; };

template <class T> struct BitsOf;
template <> struct BitsOf<float> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float magic = 0x1.8p23f;  // adding it rounds to an integer and leaves that integer in the low bits
};
template <> struct BitsOf<double> {
  using Unsigned = uint64_t;
  using Signed = int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double magic = 0x1.8p52;
};

template <class T> using Unsigned = typename BitsOf<T>::Unsigned;
template <class T> inline constexpr Unsigned<T> sign_bit = Unsigned<T>(1) << (sizeof(T) * 8 - 1);
template <class T>
inline constexpr Unsigned<T> infinity_bits = std::bit_cast<Unsigned<T>>(std::numeric_limits<T>::infinity());
template <class T> inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T> inline constexpr T nan = std::numeric_limits<T>::quiet_NaN();
template <class T> inline constexpr bool is_float = std::is_same_v<T, float>;
template <class T> using Element = std::conditional_t<is_float<T>, float, double>;

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Unsigned<T> bits(T x) {
  return std::bit_cast<Unsigned<T>>(x);
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T from_bits(Unsigned<T> u) { return std::bit_cast<T>(u); }

// How many terms the lower part takes, as a power of two: at most half of them, so that none is left alone.
constexpr int half_level(int count) { return count < 4 ? 0 : int(std::bit_width(unsigned(count - 2))) - 1; }

// The polynomial of coefficients First … First + Count - 1, lowest first, by halves: Estrin's scheme keeps the chain of
// dependent operations short, and that chain is what loops over such functions wait for.
template <int First, int Count, class T>
[[gnu::always_inline]] VOLTA_HD constexpr T estrin(const T* squares, const T* c) {
  if constexpr (Count == 1) {
    return c[First];
  } else {
    constexpr int level = half_level(Count), half = 1 << level;
    return estrin<First, half>(squares, c) + squares[level] * estrin<First + half, Count - half>(squares, c);
  }
}

template <Real T, class... C> [[gnu::always_inline]] VOLTA_HD constexpr T poly(T x, C... coefficients) {
  const T c[] = {T(coefficients)...}, x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  const T squares[] = {x, x2, x4, x8, x8 * x8};
  return estrin<0, sizeof...(C)>(squares, c);
}

// C[I] + a x; on ARM64 rounded once whatever the compiler's options, as it is for Lanes.
template <const auto& C, int I, Real T> [[gnu::always_inline]] VOLTA_HD constexpr T multiply_add(T a, T x) {
  constexpr T c = C[I];
#if defined(__aarch64__) && !defined(__CUDACC__)
  if constexpr (std::same_as<T, float>) return __builtin_fmaf(a, x, c);
#endif
  return c + a * x;
}

// The polynomial of coefficients that have a name, which Lanes fetch from memory. Pairs of terms, then Horner's scheme in
// x^2: of the orders with two terms to a fetch, the one that keeps the fewest values waiting.
template <const auto& C, class T> [[gnu::always_inline]] VOLTA_HD constexpr T poly(T x) {
  constexpr int count = int(std::size(C)), last = (count - 1) / 2;
  const T x2 = x * x;
  const auto pair = [x]<int I>(std::integral_constant<int, I>) __attribute__((always_inline)) {
    constexpr bool single = 2 * I + 1 == count;
    constexpr auto upper = C[2 * I + !single];
    if constexpr (single) return T(upper);
    else return multiply_add<C, 2 * I>(T(upper), x);
  };
  T y = pair(std::integral_constant<int, last>());
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    ((y = pair(std::integral_constant<int, last - 1 - I>()) + x2 * y), ...);
  }
  (std::make_integer_sequence<int, last>());
  return y;
}

// The leading half of the significand: products of two such are exact, with and without fused multiply-add.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T upper_half(T x) {
  constexpr int dropped = is_float<T> ? 12 : 27;
  return from_bits<T>(bits(x) & ~((Unsigned<T>(1) << dropped) - 1));
}

// An unevaluated sum of two numbers, hi carrying the value and lo what hi rounds away.
template <class T> struct Pair { T hi, lo; };

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> exact_sum(T a, T b) {
  const T sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

template <class T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> exact_sum_ordered(T large, T small) {
  const T sum = large + small;
  return {sum, small - (sum - large)};
}

// x * y, barring underflow: every partial product is exact, but the last rounds far below the result.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> exact_product(T x, T y) {
  const T a = upper_half(x), b = upper_half(y), c = x - a, d = y - b;
  const auto [sum, tail] = exact_sum_ordered(a * b, a * d);
  const auto [hi, lo] = exact_sum_ordered(sum, c * b);
  return {hi, (tail + lo) + c * d};
}

// a / b to about twice the precision; not for infinite quotients.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> divide(Pair<T> a, Pair<T> b) {
  const T quotient = a.hi / b.hi;
  const auto [hi, lo] = exact_product(quotient, b.hi);
  return {quotient, (((a.hi - hi) - lo) + (a.lo - quotient * b.lo)) / b.hi};
}

}  // namespace detail

// Lanes: sixteen floats as one number, see lanes.h.
template <class T>
concept FloatOrLanes = detail::is_float<T>;
template <class T>
concept RealOrLanes = Real<T> || FloatOrLanes<T>;

// The type of an operation on two numbers: the wider of two reals, else the first, so constants next to a T become T.
template <Number A, Number B> using Joint = typename detail::JointOf<A, B>::type;

// Reals are chosen by masks: a conditional expression lets compilers thread jumps through the code around it, or invert
// the comparison, and the loop loses a good part of its speed or does not vectorise at all.
template <Number A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> select(bool condition, A a, B b) {
  using T = Joint<A, B>;
  if constexpr (Real<T>) {
    const auto mask = detail::Unsigned<T>(0) - detail::Unsigned<T>(condition);
    return detail::from_bits<T>((detail::bits(T(a)) & mask) | (detail::bits(T(b)) & ~mask));
  } else {
    return condition ? T(a) : T(b);
  }
}

template <Number T> [[gnu::always_inline]] VOLTA_HD constexpr bool isnan(T x) { return x != x; }

template <Number T> [[gnu::always_inline]] VOLTA_HD constexpr bool isinf(T x) {
  if constexpr (Real<T>) return (detail::bits(x) & ~detail::sign_bit<T>) == detail::infinity_bits<T>;
  else return x != x;
}

template <Number T> [[gnu::always_inline]] VOLTA_HD constexpr bool isfinite(T x) {
  if constexpr (Real<T>) return (detail::bits(x) & ~detail::sign_bit<T>) < detail::infinity_bits<T>;
  else return x == x;
}

template <Number T> [[gnu::always_inline]] VOLTA_HD constexpr bool signbit(T x) {
  if constexpr (Real<T>) return (detail::bits(x) & detail::sign_bit<T>) != 0;
  else if constexpr (std::is_signed_v<T>) return x < 0;
  else return x != x;
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T abs(T x) {
  return detail::from_bits<T>(detail::bits(x) & ~detail::sign_bit<T>);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T neg(T x) { return -x; }

// max(x, 0) in one operation on the bits; a NaN of negative sign becomes 0.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T positive_part(T x) {
  const auto u = std::bit_cast<typename detail::BitsOf<T>::Signed>(x);
  return std::bit_cast<T>(u < 0 ? decltype(u)(0) : u);
}

template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> copysign(A magnitude, B sign) {
  using T = Joint<A, B>;
  return detail::from_bits<T>((detail::bits(T(magnitude)) & ~detail::sign_bit<T>) |
                              (detail::bits(T(sign)) & detail::sign_bit<T>));
}

// -1, 0 or 1; a signed zero and NaN are returned as they are.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sign(T x) {
  return select(abs(x) > T(0), copysign(T(1), x), x);
}

// Minimum and maximum that propagate NaN, and order -0 below +0 only as far as comparison does.
template <Number A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> min(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b);
  if constexpr (Real<T>) return select((x < y) | (x != x), x, y);
  else return x < y ? x : y;
}

template <Number A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> max(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b);
  if constexpr (Real<T>) return select((x > y) | (x != x), x, y);
  else return x > y ? x : y;
}

// The same, ignoring a NaN where the other argument is a number.
template <Number A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> fmin(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b);
  return select((x < y) | (y != y), x, y);
}

template <Number A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> fmax(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b);
  return select((x > y) | (y != y), x, y);
}

// x within [low, high]; NaN stays NaN, and high wins where low is above it.
template <Number T>
[[gnu::always_inline]] VOLTA_HD constexpr T clamp(T x, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  const T y = select(x < low, low, x);
  return select(y > high, high, y);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T floor(T x) {
  if constexpr (detail::is_float<T>) return __builtin_floorf(x);
  else return __builtin_floor(x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T ceil(T x) {
  if constexpr (detail::is_float<T>) return __builtin_ceilf(x);
  else return __builtin_ceil(x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T trunc(T x) {
  if constexpr (detail::is_float<T>) return __builtin_truncf(x);
  else return __builtin_trunc(x);
}

// To the nearest integer, ties to even.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T round(T x) {
  if constexpr (detail::is_float<T>) return __builtin_rintf(x);
  else return __builtin_rint(x);
}

// An integer is its own floor, ceiling and rounding.
template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T floor(T x) { return x; }
template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T ceil(T x) { return x; }
template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T trunc(T x) { return x; }
template <Integer T> [[gnu::always_inline]] VOLTA_HD constexpr T round(T x) { return x; }

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sqrt(T x) {
  if constexpr (detail::is_float<T>) return __builtin_sqrtf(x);
  else return __builtin_sqrt(x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T rsqrt(T x) { return T(1) / sqrt(x); }
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T reciprocal(T x) { return T(1) / x; }
template <Number T> [[gnu::always_inline]] VOLTA_HD constexpr T square(T x) {
  if constexpr (Real<T>) return x * x;
  else return T(uint64_t(x) * uint64_t(x));
}

// The representable number next to x in the direction of y.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> nextafter(A from, B to) {
  using T = Joint<A, B>;
  using U = detail::Unsigned<T>;
  const T x = T(from), y = T(to);
  const U u = detail::bits(x);
  const bool away = (y > x) == (x > T(0));
  const T moved = detail::from_bits<T>(away ? u + 1 : u - 1);
  const T least = copysign(detail::from_bits<T>(U(1)), y);
  const T step = select(x == T(0), least, moved);
  return select((x != x) | (y != y), x + y, select(x == y, y, step));
}

// x * 2^n with one rounding at most, for any n.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T ldexp(T x, int32_t n) {
  using U = detail::Unsigned<T>;
  constexpr int bias = detail::BitsOf<T>::bias, span = bias - 1;
  // A step down stops short of the denormals unless it is the last, so nothing rounds twice.
  constexpr int down = span - detail::BitsOf<T>::mantissa - 1;
  const auto step = [](int32_t e) { return e < -span ? -down : e > span ? span : e; };
  const auto last = [](int32_t e) { return e < -span ? -span : e > span ? span : e; };
  const auto power = [](int32_t e) { return detail::from_bits<T>(U(e + bias) << detail::BitsOf<T>::mantissa); };
  const int32_t a = step(n), b = step(n - a), c = last(n - a - b);
  return x * power(a) * power(b) * power(c);
}

}  // namespace volta::scalar

// Hyperbolic functions of float and double and their inverses.
#pragma once
#include "volta/scalar/exp_log.h"

namespace volta::scalar {

namespace detail {

// log(x + sqrt(x^2 + Sign)) for x >= 1/2 or so: the root and the sum are carried to twice the precision.
template <int Sign> [[gnu::always_inline]] VOLTA_HD constexpr double area(double x) {
  const bool huge = x > 0x1p500;  // there the root is x
  const double safe = select(huge, 1.0, x);
  const auto [square, square_tail] = exact_product(safe, safe);
  const auto [radicand, radicand_tail] = exact_sum(square, double(Sign));
  const double root = sqrt(radicand);
  const auto [back, back_tail] = exact_product(root, root);
  const double root_tail = ((radicand - back) - back_tail + (radicand_tail + square_tail)) / (2 * root);
  const auto [sum, sum_tail] = exact_sum(safe, root);
  const double y = log_pair(sum, sum_tail + root_tail);
  return select(huge, log(x) + 0x1.62e42fefa39efp-1, y);
}

// 3/4 (exp(2 r) - 1) for |r| <= ln2 / 4: 3/2 r, with what rounding it loses, and the rest of the series.
inline constexpr float tanh_series[] = {1.5f, 9.999926e-1f, 5.0000644e-1f, 2.00797e-1f, 6.6636056e-2f};
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T tanh_terms(T r) {
  if constexpr (is_float<T>) return poly<tanh_series>(r);
  else return T(3) * expm1_series_of(r + r);
}
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T scaled_expm1(T r) {
  const T half = T(0.5) * r, sum = r + half, tail = (r - sum) + half;
  return sum + (r * r * tanh_terms(r) + tail);
}
inline constexpr float minus_three_quarters[] = {-0.75f};

}  // namespace detail

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sinh(T x) {
  using namespace detail;
  const T a = abs(x), z = a * a;
  T p;
  if constexpr (is_float<T>) p = poly(z, 1.6666667e-1f, 8.3333505e-3f, 1.9835871e-4f, 2.819029e-6f);
  else
    p = poly(z, 0.16666666666666669, 0.008333333333333174, 0.00019841269841425354, 2.7557319156695965e-6,
             2.5052123477359666e-8, 1.605721707647952e-10, 7.760411617749028e-13);
  const T half = exp_shifted<-1>(a), outer = half - T(0.25) / half;
  return copysign(select(a < T(1), a + a * z * p, outer), x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cosh(T x) {
  const T half = detail::exp_shifted<-1>(abs(x));
  return half + T(0.25) / half;
}

// The largest |x| of tanh_near: from here on tanh rounds to 1.
template <Real T> inline constexpr T tanh_limit = detail::is_float<T> ? T(10) : T(20);

// tanh(x) to the last bit, for |x| <= tanh_limit: e / (e + 3/2) with e = 3/4 (exp(2 |x|) - 1). The factor is there for the
// rounding of both: where tanh is just below a power of two, they are well above one.
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T tanh_near(T x) {
  using namespace detail;
  constexpr int bias = BitsOf<T>::bias;
  constexpr auto magic = exp_magic<bias, T>[0];
  const T a = abs(x);
  const T shifted = multiply_add<exp_magic<bias, T>, 0>(a, T(2 * log2_e<Element<T>>)), k = shifted - T(magic);
  const T power = power_of_two<T>(bits(shifted)), r = a - k * T(0.34657359027997265471);
  const T e = power * scaled_expm1(r) + multiply_add<minus_three_quarters, 0>(power, T(0.75));
  return copysign(e / (e + T(1.5)), x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T tanh(T x) {
  return tanh_near(select(abs(x) > tanh_limit<T>, copysign(tanh_limit<T>, x), x));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T asinh(T x) {
  if constexpr (detail::is_float<T>) {
    return T(asinh(double(x)));
  } else {
    const T a = abs(x), z = a * a;
    const T p = detail::poly(z, -0.1666666666666664, 0.07499999999990065, -0.044642857131394126, 0.03038194382575466,
                             -0.022372140230455133, 0.01735240571560605, -0.013960338783934614, 0.011513245790170172,
                             -0.009533664319659848, 0.007460525821604364, -0.004734479572023137, 0.0017061558390229967);
    return copysign(select(a < T(0.5), a + a * z * p, detail::area<1>(a)), x);
  }
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T acosh(T x) {
  if constexpr (detail::is_float<T>) {
    return T(acosh(double(x)));
  } else {
    // Near 1, with t = x - 1 exact: log1p(t + sqrt(2t + t^2)).
    const T t = x - T(1);
    const T near_one = log1p(t + sqrt(T(2) * t + t * t));
    const T y = select(x < T(2), near_one, detail::area<-1>(x));
    return select(x < T(1), detail::nan<T>, y);
  }
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T atanh(T x) {
  if constexpr (detail::is_float<T>) {
    return T(atanh(double(x)));
  } else {
    const T a = abs(x), z = a * a;
    const T p = detail::poly(z, 0.33333333333333315, 0.20000000000009308, 0.1428571428426543, 0.11111111216585724,
                             0.09090904741214982, 0.07692420320334081, 0.06664721382604241, 0.05905578417736378,
                             0.05067926212604681, 0.0592137803773604, -0.004565422311298819, 0.1740721408891814,
                             -0.1959686700019313, 0.2415548314811238);
    const T outer = T(0.5) * log1p(T(2) * a / (T(1) - a));
    return copysign(select(a < T(0.5), a + a * z * p, outer), x);
  }
}

}  // namespace volta::scalar

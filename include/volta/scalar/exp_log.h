// Exponentials and logarithms of float and double: two ulp at most, gradual underflow, IEEE special values.
#pragma once
#include "volta/scalar/lanes.h"

namespace volta::scalar {

namespace detail {

// ln 2 = hi + lo, hi short enough that hi times any binary exponent is exact.
template <class T> inline constexpr T ln2_hi = is_float<T> ? T(0x1.62e4p-1) : T(0x1.62e42fee00000p-1);
template <class T> inline constexpr T ln2_lo = is_float<T> ? T(0x1.7f7d1cp-20) : T(0x1.a39ef35793c76p-33);
template <class T> inline constexpr T log2_e = T(0x1.71547652b82fep+0);

// x = k ln2 + r with |r| <= ln2 / 2. The low bits of `code` hold k + Offset.
template <class T> struct ExpParts {
  T r;
  Unsigned<T> code;
};

template <int Offset, class T> inline constexpr Element<T> exp_magic[1] = {BitsOf<T>::magic + Offset};

template <int Offset, class T> [[gnu::always_inline]] VOLTA_HD constexpr ExpParts<T> exp_parts(T x) {
  constexpr auto magic = exp_magic<Offset, T>[0];
  const T shifted = multiply_add<exp_magic<Offset, T>, 0>(x, T(log2_e<Element<T>>)), k = shifted - T(magic);
  return {(x - k * T(ln2_hi<Element<T>>)) - k * T(ln2_lo<Element<T>>), bits(shifted)};
}

// exp(r) - 1 for |r| <= ln2 / 2.
inline constexpr float expm1_series[] = {4.9999997e-1f, 1.6666543e-1f, 4.16672e-2f, 8.366542e-3f, 1.3882512e-3f};
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T expm1_series_of(T r) {
  if constexpr (is_float<T>) return poly<expm1_series>(r);
  else
    return poly(r, 0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321688, 0.0013888888888962537,
                0.0001984126988599852, 2.4801587172701874e-5, 2.755724431965152e-6, 2.755740219543004e-7,
                2.5109004891555462e-8, 2.0875546996595463e-9);
}
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T expm1_kernel(T r) {
  return r + r * r * expm1_series_of(r);
}

// y * 2^k from a code of offset 2 bias, in two factors so that the result may be denormal or overflow.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T scale_wide(T y, Unsigned<T> code) {
  constexpr int shift = BitsOf<T>::mantissa;
  const Unsigned<T> half = code >> 1, other = code - half;
  return y * from_bits<T>(half << shift) * from_bits<T>(other << shift);
}

// 2^k from a code of offset bias, for k of normal numbers.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T power_of_two(Unsigned<T> code) {
  return from_bits<T>(code << BitsOf<T>::mantissa);
}

// exp(x) * 2^Shift; below the first limit it is zero, above the second infinite.
template <int Shift, Real T> [[gnu::always_inline]] VOLTA_HD constexpr T exp_shifted(T x) {
  constexpr T low = is_float<T> ? T(-105) : T(-747), high = is_float<T> ? T(91) : T(712);
  const auto [r, code] = exp_parts<2 * BitsOf<T>::bias + Shift>(x);
  const T y = scale_wide(T(1) + expm1_kernel(r), code);
  return select(x > high, infinity<T>, select(x < low, T(0), y));
}

// exp(x) for x known to give a normal number (or NaN).
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T exp_normal(T x) {
  const auto [r, code] = exp_parts<BitsOf<T>::bias>(x);
  const T power = power_of_two<T>(code);
  return power + power * expm1_kernel(r);
}

// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for x positive and finite.
template <class T> struct LogParts {
  T k, f, twice_scale;  // 2^(1-k) where x is normal
};

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr LogParts<T> log_parts(T x) {
  using U = Unsigned<T>;
  constexpr int shift = BitsOf<T>::mantissa;
  constexpr U root = bits(T(0x1.6a09e667f3bcdp-1)), one = bits(T(1)), mask = (U(1) << shift) - 1;
  constexpr T step = T(U(1) << (shift + 1));
  const bool denormal = x < std::numeric_limits<T>::min();
  const U u = bits(select(denormal, x * step, x)) - root;
  const U exponent = (u + one) >> shift;
  // The exponent becomes a number by writing it below the unit of 2^mantissa.
  const T offset = step * T(0.5) + T(BitsOf<T>::bias) + select(denormal, T(shift + 1), T(0));
  const T k = from_bits<T>(exponent | bits(step * T(0.5))) - offset;
  const T twice_scale = from_bits<T>((U(2 * BitsOf<T>::bias + 1) - exponent) << shift);
  return {k, from_bits<T>((u & mask) + root) - T(1), twice_scale};
}

// log(1 + f) - f on the interval of log_parts.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log1p_rest(T f) {
  if constexpr (is_float<T>) {
    const T square = f * f;
    const T p = poly(f, 3.3333313e-1f, -2.4999984e-1f, 2.0002188e-1f, -1.6669483e-1f, 1.4217116e-1f, -1.2377484e-1f,
                     1.1888804e-1f, -1.1846754e-1f, 6.937303e-2f);
    return square * (f * p) - T(0.5) * square;
  } else {
    // log(1 + f) = 2 atanh(s), s = f / (2 + f)
    const T s = f / (T(2) + f), z = s * s, half_square = T(0.5) * f * f;
    const T p = poly(z, 0.666666666666671, 0.3999999999952004, 0.28571428729224707, 0.22222199097967174,
                     0.18183571136427887, 0.15313175488461173, 0.1481040264799203);
    return s * (half_square + z * p) - half_square;
  }
}

// The result where x is 0, negative, infinite or NaN.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log_special(T x, T regular) {
  const T outside = select(x == T(0), -infinity<T>, nan<T>);
  return select(x > T(0), select(x < infinity<T>, regular, x), outside);
}

// log(2^k (1 + f + tail)), the tail below the last place of f
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log_sum(T k, T f, T tail) {
  return k * ln2_hi<T> + (f + (log1p_rest(f) + (k * ln2_lo<T> + tail)));
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log_sum(T k, T f) {
  return k * ln2_hi<T> + (f + (log1p_rest(f) + k * ln2_lo<T>));
}

// f hi + rest (hi + lo), hi being half a significand and the leading product exact.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> scaled_log(T f, T rest, T hi, T lo) {
  const T upper = upper_half(f);
  return {upper * hi, (f - upper) * hi + (f * lo + rest * (hi + lo))};
}

// log2(2^k (1 + f)), given log(1 + f) = f + rest
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> log2_sum(T k, T f, T rest) {
  constexpr T hi = is_float<T> ? T(0x1.714p+0) : T(0x1.715476p+0);  // log2(e)
  constexpr T lo = is_float<T> ? T(0x1.47652cp-12) : T(0x1.4ae0bf85ddf44p-26);
  const auto [leading, small] = scaled_log(f, rest, hi, lo);
  const auto [sum, tail] = exact_sum_ordered(k, leading);
  return {sum, small + tail};
}

// log(x + tail), |tail| within an ulp or so of x, for x positive, normal and finite.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log_pair(T x, T tail) {
  const auto [k, f, twice_scale] = log_parts(x);
  const auto [sum, rest] = exact_sum(f, T(0.5) * tail * twice_scale);
  return log_sum(k, sum, rest);
}

}  // namespace detail

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T exp(T x) { return detail::exp_shifted<0>(x); }

// The largest |x| of exp_near: its last product is then exact, with and without fused multiply-add.
template <Real T> inline constexpr T exp_limit = detail::is_float<T> ? T(60) : T(600);

// exp(x) to the last bit, for |x| <= exp_limit.
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T exp_near(T x) { return detail::exp_normal(x); }

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T exp2(T x) {
  using namespace detail;
  constexpr T magic = BitsOf<T>::magic + T(2 * BitsOf<T>::bias);
  constexpr T low = is_float<T> ? T(-151) : T(-1076), high = is_float<T> ? T(129) : T(1025);
  const T shifted = x + magic, r = x - (shifted - magic);
  T p;
  if constexpr (is_float<T>) p = poly(r, 2.402265e-1f, 5.550297e-2f, 9.61803e-3f, 1.3410154e-3f, 1.5469865e-4f);
  else
    p = poly(r, 0.2402265069591013, 0.05550410866482007, 0.009618129107593854, 0.0013333558146777066,
             0.00015403530457484802, 1.5252733491494705e-5, 1.3215435081021626e-6, 1.0178199957947769e-7,
             7.073820183817895e-9, 4.4347563475415256e-10);
  constexpr T slope = is_float<T> ? T(6.9314724e-1f) : T(0.6931471805599453);
  const T y = scale_wide(T(1) + (r * slope + r * r * p), bits(shifted));
  return select(x > high, infinity<T>, select(x < low, T(0), y));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T expm1(T x) {
  using namespace detail;
  const T inside = is_float<T> ? clamp(x, T(-30), T(89)) : clamp(x, T(-50), T(710));
  const auto [r, code] = exp_parts<BitsOf<T>::bias - 1>(inside);
  const T p = expm1_kernel(r), half_power = power_of_two<T>(code);
  // 2^k (1 + p) - 1, halved until the end because 2^k may be just too large.
  const T y = T(2) * (half_power * p + (half_power - T(0.5)));
  return copysign(select(half_power == T(0.5), p, y), x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log(T x) {
  const auto parts = detail::log_parts(x);
  return detail::log_special(x, detail::log_sum(parts.k, parts.f));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log2(T x) {
  using namespace detail;
  const auto parts = log_parts(x);
  const auto [hi, lo] = log2_sum(parts.k, parts.f, log1p_rest(parts.f));
  return log_special(x, hi + lo);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log10(T x) {
  using namespace detail;
  constexpr T two_hi = is_float<T> ? T(0x1.344p-2) : T(0x1.34413509f6000p-2);  // log10(2), a product with k exact
  constexpr T two_lo = is_float<T> ? T(0x1.3509f8p-18) : T(0x1.9fef311f12b36p-42);
  constexpr T e_hi = is_float<T> ? T(0x1.bcap-2) : T(0x1.bcb7b1p-2);  // log10(e)
  constexpr T e_lo = is_float<T> ? T(0x1.7b1526p-14) : T(0x1.49b9438ca9aaep-28);
  const auto parts = log_parts(x);
  const auto [leading, small] = scaled_log(parts.f, log1p_rest(parts.f), e_hi, e_lo);
  return log_special(x, (parts.k * two_hi + leading) + (small + parts.k * two_lo));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log1p(T x) {
  using namespace detail;
  const auto [sum, tail] = exact_sum(T(1), x);
  const T regular = log_pair(sum, tail);
  const T y = log_special(sum, regular);
  return select(abs(x) < T(is_float<T> ? 0x1p-12 : 0x1p-27), x - T(0.5) * x * x, y);
}

// 1 / (1 + exp(-x)) and its logarithm, without overflow.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sigmoid(T x) {
  const T e = exp(-abs(x));
  return select(x > T(0), T(1), e) / (T(1) + e);
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T logsigmoid(T x) {
  return min(x, T(0)) - log1p(exp(-abs(x)));
}

// log(exp(a) + exp(b)) without overflow. Where the two terms cancel, the error is two ulp of the larger argument.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> logaddexp(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b), top = max(x, y);
  const T distance = select(x == y, T(0), abs(x - y));
  return top + log1p(exp(-distance));
}

// The same to base two.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> logaddexp2(A a, B b) {
  using T = Joint<A, B>;
  const T x = T(a), y = T(b), top = max(x, y);
  const T distance = select(x == y, T(0), abs(x - y));
  const auto [sum, tail] = detail::exact_sum_ordered(T(1), exp2(-distance));
  const auto [k, f, twice_scale] = detail::log_parts(sum);
  const T rest = detail::log1p_rest(f) + T(0.5) * tail * twice_scale;
  const auto [hi, lo] = detail::log2_sum(k, f, rest);
  const auto [whole, lost] = detail::exact_sum(top, hi);
  return select(abs(top) < detail::infinity<T>, whole + (lost + lo), top);
}

}  // namespace volta::scalar

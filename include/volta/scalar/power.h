// Powers and the hypotenuse of float and double.
#pragma once
#include "volta/scalar/exp_log.h"

namespace volta::scalar {

namespace detail {

// log2 of a positive finite x as a pair good to about 2^-65: products of halves are exact by construction.
[[gnu::always_inline]] VOLTA_HD constexpr Pair<double> log2_pair(double x) {
  const auto [k, f, unused] = log_parts(x);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f) = s_hi + s_lo
  const double denominator = 2 + f, s = f / denominator, s_hi = upper_half(s);
  const double d_hi = upper_half(denominator), d_lo = f - (d_hi - 2);
  const double s_lo = ((f - s_hi * d_hi) - s_hi * d_lo) / denominator;
  // 3 atanh(s) / s = 3 + z + z^2 H(z)
  const double z = s * s, z_hi = s_hi * s_hi;
  const double h = poly(z, 0.6, 0.4285714285714935, 0.3333333333053699, 0.2727272781827576, 0.2307686625392036,
                        0.2000337233086445, 0.17532952790301257, 0.17824021018366462);
  const double rest = z * z * h + s_lo * (s_hi + s);
  const double t_hi = upper_half(3 + z_hi + rest), t_lo = rest - ((t_hi - 3) - z_hi);
  const double u = s_hi * t_hi, v = s_lo * t_hi + t_lo * s;
  const double p_hi = upper_half(u + v), p_lo = v - (p_hi - u);
  constexpr double c = 0x1.ec709dc3a03fdp-1, c_hi = 0x1.ec709d8000000p-1, c_lo = 0x1.0e80ff5d27f05p-27;  // 2 / (3 ln 2)
  const double high = c_hi * p_hi, low = c_lo * p_hi + p_lo * c;
  const double sum = upper_half((high + low) + k);
  return {sum, low - ((sum - k) - high)};
}

// |x|^y for finite positive |x| and |y| below 2^67.
[[gnu::always_inline]] VOLTA_HD constexpr double pow_magnitude(double x, double y) {
  const auto [log_hi, log_lo] = log2_pair(x);
  const double y_hi = upper_half(y);
  const double p = y_hi * log_hi, q = (y - y_hi) * log_hi + y * log_lo;
  const bool beyond = abs(p + q) > 1100;  // overflows or vanishes
  const double high = select(beyond, copysign(1100.0, p), p), low = select(beyond, 0.0, q);
  constexpr double magic = BitsOf<double>::magic + 2 * BitsOf<double>::bias;
  const double shifted = (high + low) + magic, fraction = high - (shifted - magic);
  // 2^(fraction + low) = exp(u + v), u exact
  constexpr double ln2_upper = 0x1.62e42f8000000p-1, ln2_rest = 0x1.be8e7bcd5e4f2p-27;
  const double t = upper_half(fraction + low);
  const double u = t * ln2_upper, v = (low - (t - fraction)) * 0x1.62e42fefa39efp-1 + t * ln2_rest;
  const double r = u + v, r_lo = v - (r - u);
  return scale_wide(1 + (expm1_kernel(r) + (r_lo + r * r_lo)), bits(shifted));
}

// A float's power in double: logarithm and power need only eleven bits more than the result.
[[gnu::always_inline]] VOLTA_HD constexpr float pow_magnitude(float x, float y) {
  const auto parts = log_parts(x);
  const double f = double(parts.f);
  const double log2_x =
      double(parts.k) + f * poly(f, 1.4426950408686043, -0.7213475208713146, 0.4808983614475495, -0.360673674446172,
                                 0.288537289003707, -0.24045317967892163, 0.20617549895899936, -0.18030044733336956,
                                 0.15876794674359995, -0.14315627203417597, 0.1447578261994265, -0.14284665415389852,
                                 0.07736402911609867);
  const double product = clamp(double(y) * log2_x, -200.0, 200.0);
  constexpr double magic = BitsOf<double>::magic + BitsOf<double>::bias;
  const double shifted = product + magic, r = product - (shifted - magic);
  const double p = poly(r, 0.9999999999616385, 0.6931471807286778, 0.24022651198683942, 0.05550410353065864,
                        0.009618027181942441, 0.0013333922637983732, 0.0001546931457637079, 1.5201952988813298e-5);
  return float(p * power_of_two<double>(bits(shifted)));
}

}  // namespace detail

// IEEE 754's pow: a negative base needs an integer exponent, x^0 and 1^y are 1 even for NaN.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> pow(A base, B exponent) {
  using namespace detail;
  using T = Joint<A, B>;
  const T x = T(base), y = T(exponent), a = abs(x);
  constexpr T most = T(0x1p66);  // where every base but one has overflowed or vanished
  const T magnitude = pow_magnitude(a, clamp(y, -most, most));
  const bool extreme = (a == T(0)) | (a == infinity<T>);
  const T limit = select((a == T(0)) == (y > T(0)), T(0), infinity<T>);
  const T regular = select(extreme, limit, magnitude);
  const T half = T(0.5) * y;
  const bool whole = floor(y) == y, odd = whole & (floor(half) != half);
  const T signed_value = copysign(regular, select(odd, x, T(1)));
  const bool undefined = (x < T(0)) & !whole & (a < infinity<T>);
  const T value = select((x != x) | (y != y) | undefined, nan<T>, signed_value);
  return select((y == T(0)) | (x == T(1)), T(1), value);
}

// sqrt(x^2 + y^2) without undue overflow or underflow; infinite if either is, even beside NaN.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> hypot(A first, B second) {
  using namespace detail;
  using T = Joint<A, B>;
  const T x = abs(T(first)), y = abs(T(second));
  T length;
  if constexpr (is_float<T>) {
    length = T(sqrt(double(x) * double(x) + double(y) * double(y)));
  } else {
    // Scaled by the power of two of the larger, kept among the normal numbers.
    constexpr int shift = BitsOf<T>::mantissa;
    const T top = clamp(select(x > y, x, y), T(0x1p-1022), T(0x1p1022));
    const uint64_t power = bits(top) & infinity_bits<T>;
    const T scale = from_bits<T>((uint64_t(2 * BitsOf<T>::bias) << shift) - power), a = x * scale, b = y * scale;
    length = sqrt(a * a + b * b) * from_bits<T>(power);
  }
  return select((x == infinity<T>) | (y == infinity<T>), infinity<T>, length);
}

}  // namespace volta::scalar

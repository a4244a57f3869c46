// Trigonometric functions of float and double and their inverses: two ulp at most over the whole range.
#pragma once
#include "volta/scalar/basic.h"

namespace volta::scalar {

// The largest |x| of sin_near, cos_near and tan_near.
template <Real T> inline constexpr T trig_limit = detail::is_float<T> ? T(0x1p31) : T(0x1p20);

namespace detail {

template <class T> inline constexpr T pi_2_hi = is_float<T> ? T(0x1.921fb6p+0) : T(0x1.921fb54442d18p+0);
template <class T> inline constexpr T pi_2_lo = is_float<T> ? T(-0x1.777a5cp-25) : T(0x1.1a62633145c07p-54);

// x = n pi/2 + hi + lo with |hi| <= pi/4 or a little more; only n modulo 4 is kept.
template <class T> struct TrigParts {
  T hi, lo;
  Unsigned<T> n;
};

// One part of x / 2 pi: the product is exact, and whole turns are dropped.
[[gnu::always_inline]] VOLTA_HD constexpr double turns(double x, double digits) {
  const double product = x * digits;
  return product - round(product);
}

[[gnu::always_inline]] VOLTA_HD constexpr TrigParts<float> rounded_parts(double angle, double code) {
  const float hi = float(angle);
  return {hi, float(angle - double(hi)), uint32_t(bits(code))};
}

// Cody and Waite in double: pi/2 in parts of 22 bits, whose products with n are exact.
[[gnu::always_inline]] VOLTA_HD constexpr TrigParts<float> trig_parts_near(float magnitude) {
  constexpr double magic = BitsOf<double>::magic;
  const double x = double(magnitude), shifted = x * 0x1.45f306dc9c883p-1 + magic, n = shifted - magic;
  return rounded_parts(((x - n * 0x1.921fbp+0) - n * 0x1.5110bp-22) - n * 0x1.18469898cc517p-44, shifted);
}

// x / 2 pi by parts of 29 binary digits of 1 / 2 pi, which a float multiplies exactly in double. A part whose digits
// are all whole turns vanishes by itself, so that one formula serves every exponent.
[[gnu::always_inline]] VOLTA_HD constexpr TrigParts<float> trig_parts_far(float magnitude) {
  const double x = double(magnitude);
  const double a = turns(x, 0x1.45f306dp-3), b = turns(x, 0x1.9391054p-32), c = turns(x, 0x1.4fe13abp-61);
  const double d = turns(x, 0x1.d1f534dp-90), e = turns(x, 0x1.b81b6c5p-119), f = x * 0x1.5993c439041fep-150;
  const double sum = (a + b) + ((c + d) + (e + f));
  constexpr double magic = BitsOf<double>::magic * 0.25;
  const double shifted = sum + magic, quarters = shifted - magic;
  // Taking the quarters off the leading parts first leaves every remaining digit in place.
  const double rest = (((((a - quarters) + b) + c) + d) + e) + f;
  return rounded_parts(rest * 0x1.921fb54442d18p+2, shifted);
}

[[gnu::always_inline]] VOLTA_HD constexpr TrigParts<float> trig_parts_any(float x) {
  const bool near = x <= trig_limit<float>;
  const auto a = trig_parts_near(x), b = trig_parts_far(x);
  return {select(near, a.hi, b.hi), select(near, a.lo, b.lo), select(near, a.n, b.n)};
}

// The upper 64 bits of a 128-bit product.
[[gnu::always_inline]] VOLTA_HD constexpr uint64_t multiply_high(uint64_t a, uint64_t b) {
  constexpr uint64_t low = 0xffffffffu;
  const uint64_t a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), cross = a0 * b1 + (middle & low);
  return a1 * b1 + (middle >> 32) + (cross >> 32);
}

// hi + lo = (a + b) pi/2 for |b| small beside |a|.
[[gnu::always_inline]] VOLTA_HD constexpr Pair<double> quarter_turns(double a, double b) {
  constexpr double pi_upper = 0x1.921fb50000000p+0, pi_rest = 0x1.110b4611a6263p-26;
  const double upper = upper_half(a), rest = (a - upper) + b;
  return exact_sum_ordered(upper * pi_upper, upper * pi_rest + rest * pi_2_hi<double>);
}

// Any x from 2^20 on: the significand times the 192 binary digits of 2/pi that matter, in integers.
VOLTA_HD constexpr TrigParts<double> trig_parts_far(double x) {
  constexpr uint64_t two_over_pi[] = {0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                      0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
                                      0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
                                      0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
                                      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
                                      0xf0cfbc209af4361d};
  const uint64_t u = bits(x), digits = (u & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  const int start = int(u >> 52) - 1075 + 62, word = start >> 6, offset = start & 63;
  const auto window = [&](int i) {
    const uint64_t high = two_over_pi[word + i], low = two_over_pi[word + i + 1];
    return offset == 0 ? high : high << offset | low >> (64 - offset);
  };
  const uint64_t w0 = window(0), w1 = window(1), w2 = window(2);
  // The product modulo 4: two bits of quadrant, then the fraction.
  const uint64_t low = digits * w1 + multiply_high(digits, w2);
  const uint64_t high = digits * w0 + multiply_high(digits, w1) + (low < digits * w1);
  const uint64_t fraction = high << 2 | low >> 62, sign = 0 - (fraction >> 63);
  const uint64_t top = fraction ^ sign, tail = (low << 2) ^ sign;
  const double a = double(uint32_t(top >> 32)) * 0x1p-32, b = double(uint32_t(top)) * 0x1p-64;
  const auto [sum, rest] = exact_sum_ordered(a, b);
  const auto [hi, lo] = quarter_turns(sum, rest + double(tail >> 11) * 0x1p-117);
  return {sign ? -hi : hi, sign ? -lo : lo, (high >> 62) - sign};
}

// Cody and Waite: pi/2 in parts of 33 bits, whose products with n are exact below 2^20 quarter turns.
[[gnu::always_inline]] VOLTA_HD constexpr TrigParts<double> trig_parts_near(double x) {
  constexpr double magic = BitsOf<double>::magic;
  const double shifted = x * 0x1.45f306dc9c883p-1 + magic, n = shifted - magic;
  const double a = x - n * 0x1.921fb54400000p+0, part = n * 0x1.0b4611a600000p-34;
  const auto [b, b_tail] = exact_sum(a, -part);
  const double next = n * 0x1.3198a2e000000p-69, last = n * 0x1.b839a252049c1p-104;
  const auto [c, c_tail] = exact_sum(b, -next);
  const auto [hi, lo] = exact_sum_ordered(c, (b_tail + c_tail) - last);
  return {hi, lo, bits(shifted)};
}

VOLTA_HD constexpr TrigParts<double> trig_parts_any(double x) {
  if (x > trig_limit<double> && x < infinity<double>) return trig_parts_far(x);
  return trig_parts_near(x);
}

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 for z = r^2, |r| <= pi/4.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sin_poly(T z) {
  if constexpr (is_float<T>) return poly(z, -1.6666667e-1f, 8.333329e-3f, -1.9839253e-4f, 2.7172732e-6f);
  else
    return poly(z, -0.1666666666666664, 0.008333333333323575, -0.000198412698300642, 2.7557313621771576e-6,
                -2.50507296351509e-8, 1.5894416117286298e-10);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cos_poly(T z) {
  if constexpr (is_float<T>) return poly(z, 4.1666653e-2f, -1.3887649e-3f, 2.4463166e-5f);
  else
    return poly(z, 0.04166666666666665, -0.0013888888888882785, 2.480158729457783e-5, -2.7557315719792157e-7,
                2.0875894650411363e-9, -1.1367797640996666e-11);
}

// sin(hi + lo) and cos(hi + lo), each with what its rounding leaves behind.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> sin_pair(T hi, T lo) {
  const T z = hi * hi;
  return exact_sum_ordered(hi, hi * z * sin_poly(z) + lo * (T(1) - T(0.5) * z));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> cos_pair(T hi, T lo) {
  const T z = hi * hi, half = T(0.5) * z, leading = T(1) - half;
  return exact_sum_ordered(leading, ((T(1) - leading) - half) + (z * z * cos_poly(z) - hi * lo));
}

// Floats do without the tail: the reduced argument is rounded but once.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sin_kernel(T hi, T lo) {
  if constexpr (is_float<T>) return hi + hi * (hi * hi) * sin_poly(hi * hi);
  else return sin_pair(hi, lo).hi;
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cos_kernel(T hi, T lo) {
  if constexpr (is_float<T>) return T(1) + hi * hi * (T(-0.5) + hi * hi * cos_poly(hi * hi));
  else return cos_pair(hi, lo).hi;
}

// x with its sign changed where the mask has the sign bit.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T flip_sign(T x, Unsigned<T> mask) {
  return from_bits<T>(bits(x) ^ (mask & sign_bit<T>));
}

// atan(z) - z for 0 <= z <= 1.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T atan_rest(T z) {
  const T square = z * z;
  T p;
  if constexpr (is_float<T>)
    p = poly(square, -3.3333313e-1f, 1.9998842e-1f, -1.4266346e-1f, 1.0958582e-1f, -8.410654e-2f, 5.791354e-2f,
             -3.099129e-2f, 1.07485e-2f, -1.7437012e-3f);
  else
    p = poly(square, -0.3333333333333332, 0.19999999999995496, -0.1428571428531463, 0.1111111109425902,
             -0.09090908679165004, 0.07692301179380102, -0.06666595121066542, 0.05881780351510872,
             -0.052597026841441276, 0.047457768245986236, -0.0428843831381815, 0.0382474786729173, -0.03283661013795867,
             0.02620214151041444, -0.018646566615483005, 0.011325810608003238, -0.005605343006811764,
             0.002142540426599581, -0.0005881079098113798, 0.00010254652527257216, -8.497004717460313e-6);
  return z * square * p;
}

// (asin(s) - s) / s for z = s^2 <= 1/4.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T asin_rest(T z) {
  T p;
  if constexpr (is_float<T>)
    p = poly(z, 1.6666663e-1f, 7.50043e-2f, 4.4523384e-2f, 3.1801675e-2f, 1.4326212e-2f, 3.7819456e-2f);
  else
    p = poly(z, 0.16666666666666702, 0.07499999999984425, 0.04464285716374379, 0.030381943138356373,
             0.022372205133791824, 0.017351752625038293, 0.013979523139739882, 0.01140669830229254,
             0.010750760692931046, 0.0037700243474546157, 0.021656878689564413, -0.021060058041668085,
             0.03274148389621834);
  return z * p;
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sin_from(TrigParts<T> parts, T x) {
  const auto [hi, lo, n] = parts;
  const T y = select((n & 1) != 0, cos_kernel(hi, lo), sin_kernel(hi, lo));
  return flip_sign(y, n << (sizeof(T) * 8 - 2) ^ bits(x));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cos_from(TrigParts<T> parts) {
  const auto [hi, lo, n] = parts;
  const T y = select((n & 1) != 0, sin_kernel(hi, lo), cos_kernel(hi, lo));
  return flip_sign(y, (n + 1) << (sizeof(T) * 8 - 2));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T tan_from(TrigParts<T> parts, T x) {
  const auto [hi, lo, n] = parts;
  const auto s = sin_pair(hi, lo), c = cos_pair(hi, lo);
  const bool odd = (n & 1) != 0;
  const T numerator = select(odd, c.hi, s.hi), denominator = select(odd, s.hi, c.hi), y = numerator / denominator;
  const T correction = (select(odd, c.lo, s.lo) - y * select(odd, s.lo, c.lo)) / denominator;
  return flip_sign(y + correction, n << (sizeof(T) * 8 - 1) ^ bits(x));
}

}  // namespace detail

// For every x. A double beyond trig_limit takes a branch, so that loops over double do not vectorise; floats pay for
// their range in time. Loops that know their arguments to be ordinary use the near versions.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sin(T x) {
  return detail::sin_from(detail::trig_parts_any(abs(x)), x);
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cos(T x) {
  return detail::cos_from(detail::trig_parts_any(abs(x)));
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T tan(T x) {
  return detail::tan_from(detail::trig_parts_any(abs(x)), x);
}

// For |x| <= trig_limit, infinities and NaN: as accurate, and several times as fast. Floats get the same bits.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T sin_near(T x) {
  return detail::sin_from(detail::trig_parts_near(abs(x)), x);
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T cos_near(T x) {
  return detail::cos_from(detail::trig_parts_near(abs(x)));
}
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T tan_near(T x) {
  return detail::tan_from(detail::trig_parts_near(abs(x)), x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T asin(T x) {
  using namespace detail;
  const T a = abs(x);
  const bool outer = a > T(0.5);  // there asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2))
  const T z = select(outer, T(0.5) * (T(1) - a), a * a), s = select(outer, sqrt(z), a);
  const T rest = s * asin_rest(z), half = T(0.5) * pi_2_hi<T>;
  const T y = select(outer, half + ((half - T(2) * s) - (T(2) * rest - pi_2_lo<T>)), s + rest);
  return copysign(y, x);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T acos(T x) {
  using namespace detail;
  const T a = abs(x);
  const bool outer = a > T(0.5);
  const T z = select(outer, T(0.5) * (T(1) - a), a * a), s = select(outer, sqrt(z), a);
  const T inner = s + s * asin_rest(z);
  const T near_one = select(x > T(0), T(2) * inner, T(2) * (pi_2_hi<T> - (inner - pi_2_lo<T>)));
  const T middle = pi_2_hi<T> - (copysign(inner, x) - pi_2_lo<T>);
  return select(outer, near_one, middle);
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T atan(T x) {
  using namespace detail;
  const T a = abs(x);
  const bool outer = a > T(1);
  const T z = select(outer, T(1) / a, a), rest = atan_rest(z);
  return copysign(select(outer, (pi_2_hi<T> - z) - (rest - pi_2_lo<T>), z + rest), x);
}

// The angle of the point (x, y), with the signs of zeros telling the quadrant.
template <Real A, Number B> [[gnu::always_inline]] VOLTA_HD constexpr Joint<A, B> atan2(A ordinate, B abscissa) {
  using namespace detail;
  using T = Joint<A, B>;
  const T y = T(ordinate), x = T(abscissa), a = abs(y), b = abs(x);
  const bool steep = a > b;
  const T low = select(steep, b, a), high = select(steep, a, b);
  // 0 / 0 counts as 0 and infinity / infinity as 1.
  const T quotient = select(low == high, select(low == T(0), T(0), T(1)), low / high);
  const T rest = atan_rest(quotient), inner = quotient + rest;
  const T first = select(steep, (pi_2_hi<T> - quotient) - (rest - pi_2_lo<T>), inner);
  const T second = select(steep, pi_2_hi<T> + (inner + pi_2_lo<T>), T(2) * pi_2_hi<T> - (inner - T(2) * pi_2_lo<T>));
  const T angle = copysign(select(signbit(x), second, first), y);
  return select((x != x) | (y != y), x + y, angle);
}

}  // namespace volta::scalar

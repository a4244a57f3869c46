// The logarithm of the gamma function and its first two derivatives. Floats are computed in double.
#pragma once
#include "volta/scalar/exp_log.h"
#include "volta/scalar/trig.h"

namespace volta::scalar {

namespace detail {

// |sin(pi r)| and cos(pi r), where r is what x exceeds the nearest integer by.
template <class T> struct HalfTurn {
  T r;
  Pair<T> sin, cos;
};

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr HalfTurn<T> half_turn(T x) {
  const T r = x - round(x), a = abs(r);
  const bool steep = a > T(0.25);
  const auto [hi, lo] = quarter_turns(T(2) * select(steep, T(0.5) - a, a), T(0));
  const auto s = sin_pair(hi, lo), c = cos_pair(hi, lo);
  const Pair<T> sine = {select(steep, c.hi, s.hi), select(steep, c.lo, s.lo)};
  return {r, sine, {select(steep, s.hi, c.hi), select(steep, s.lo, c.lo)}};
}

// (pi / sin(pi x))^2
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T squared_cosecant(T x) {
  constexpr T square_hi = T(9.869604401089358), square_lo = T(0x1.692b71366cc04p-51);  // pi^2
  const auto [s, s_lo] = half_turn(x).sin;
  const auto [square, tail] = exact_product(s, s);
  const auto [y, y_lo] = divide<T>({square_hi, square_lo}, {square, tail + T(2) * s * s_lo});
  return select(s > T(0x1p-500), y + y_lo, (T(3.141592653589793) / s) * (T(3.141592653589793) / s));
}

// log(x) for positive x as a sum whose first part is exact to the last bit but a rounding in the second.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> log_two_parts(T x) {
  const auto parts = log_parts(x);
  const auto [hi, lo] = exact_sum(parts.k * ln2_hi<T>, parts.f);
  return {hi, lo + (log1p_rest(parts.f) + parts.k * ln2_lo<T>)};
}

// lgamma(1 + t) for -0.3 <= t <= 0.5
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T lgamma_near_one(T t) {
  const T p =
      poly(t, 0.8224670334241133, -0.40068563438653243, 0.2705808084277227, -0.20738555102828415, 0.16955717700743042,
           -0.14404989682758532, 0.12550966881532774, -0.11133426142774373, 0.10009948246692489, -0.0909542048496762,
           0.08335343348401957, -0.0769278846472713, 0.07143343191250189, -0.06673468137560419, 0.06258985222826044,
           -0.05833908751094596, 0.05418607696954656, -0.0535521710454777, 0.05790869801851578, -0.05609064575575276,
           0.036063720531404955, -0.010605204174429235);
  return t * T(-0.5772156649015329) + t * (t * p);
}

// lgamma(2 + t) for -0.5 <= t <= 0.5
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T lgamma_near_two(T t) {
  const T p = poly(t, 0.32246703342411326, -0.06735230105319831, 0.02058080842778056, -0.007385551028649596,
                   0.002890510331024229, -0.001192753912761446, 0.0005096695156638507, -0.00022315473512804756,
                   9.945767019539765e-5, -4.4926531336996296e-5, 2.0505616184618643e-5, -9.437236566279764e-6,
                   4.3845948723085414e-6, -2.0497510071320555e-6, 9.203031728618244e-7, -4.200571224126462e-7,
                   2.7850509861456833e-7, -1.4327737324092634e-7);
  return t * T(0.42278433509846713) + t * (t * p);
}

// lgamma around its minimum, 1.22 <= a <= 1.75: least + t^2 Q(t), t the distance from the minimum.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T lgamma_near_least(T a) {
  const T t = (a - T(1.4616321449683622)) - T(9.549995429965697e-17);
  const T q = poly(t, 0.4838361227238108, -0.14758772299453143, 0.0646249402388065, -0.03278854108822251,
                   0.017970675130293847, -0.01031422307235923, 0.0061005350140011395, -0.003684567116073039,
                   0.0022598004296747864, -0.001402346788338338, 0.0008775525833425535, -0.0005521791416918517,
                   0.0003583012986729588, -0.0002465723769358456, 0.00012579134991646184);
  return T(-0x1.f19b9bcc38a42p-4) + (t * t * q + T(0x1.f095c88d5a6c1p-59));
}

// lgamma(a) for a >= 0. Below 8 the recurrence leads to [1.5, 2.5) or around 1; above, Stirling's series.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T lgamma_positive(T a) {
  T z = a, product = T(1);
  for (int step = 0; step < 6; ++step) {
    const bool large = z >= T(2.5);
    z = select(large, z - T(1), z);
    product = select(large, product * z, product);
  }
  const bool tiny = a < T(0.7), around_one = (a < T(0.5)) | ((a >= T(0.7)) & (a < T(1.5)));
  const T from_one = select(a < T(0.5), a, a - T(1)), from_two = select(tiny, a - T(1), z - T(2));
  const T near = select(around_one, lgamma_near_one(from_one), lgamma_near_two(from_two));
  const bool series = a >= T(8);
  const T argument = select(series | tiny, a, product);
  const auto [hi, lo] = log_two_parts(select(argument > T(0), argument, T(1)));
  const bool least = (a >= T(1.22)) & (a <= T(1.75));
  const T base = select(least, lgamma_near_least(a), near);
  const T below = select(tiny, -hi, hi) + (base + select(tiny, -lo, lo));
  const T inverse = T(1) / a, square = inverse * inverse;
  const T correction = poly(square, 0.0833333333333329, -0.002777777777103017, 0.0007936504851594831,
                            -0.0005951763563342924, 0.0008356072228605855, -0.001613646738450504);
  const T shifted = a - T(0.5), upper = upper_half(hi);
  const T small = shifted * ((hi - upper) + lo) + (inverse * correction + T(0.9189385332046728));
  const T above = (shifted * upper - a) + small;
  return select(a < infinity<T>, select(a > T(0), select(series, above, below), infinity<T>), a);
}

// digamma(a) for a > 0: below 6 by recurrence to [1, 2] where the root is factored out, above by its series.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T digamma_positive(T a) {
  T z = a, sum = T(0), lost = T(0);
  for (int step = 0; step < 4; ++step) {
    const bool large = z > T(2);
    z = select(large, z - T(1), z);
    const auto [hi, lo] = exact_sum(sum, select(large, T(1) / z, T(0)));
    sum = hi;
    lost = lost + lo;
  }
  const bool small = a < T(1);
  z = select(small, a + T(1), z);
  const auto [inverse, inverse_tail] = divide<T>({T(1), T(0)}, {a, T(0)});
  const T recurrence = select(small, -inverse, sum), recurrence_tail = select(small, -inverse_tail, lost);
  const T t = z - T(1.5);
  const T rest = t * poly(t, -0.4236274212814606, 0.24054248424078722, -0.1484049230538802, 0.09498872445285002,
                          -0.061922133275550455, 0.04076083394337775, -0.026975796657315438, 0.01790724823594765,
                          -0.01190822015996442, 0.007927023321430028, -0.0052799365465260005, 0.003518088764711913,
                          -0.0023455005719212056, 0.0015635030246950346, -0.0010364281980067087, 0.0006902836207715892,
                          -0.0004860467787793845, 0.0003258771957600899, -0.00014463477455904108, 9.32997941309136e-5,
                          -0.00017834985270857916, 0.00012117074950983246);
  const T from_root = (z - T(1.4616321449683622)) - T(9.549995429965697e-17);
  const auto [ratio, tail] = exact_sum_ordered(T(0.9510558760318328), rest);
  const auto [product, product_tail] = exact_product(from_root, ratio);
  const auto [leading, leading_tail] = exact_sum(product, recurrence);
  const T rest_of_sum = leading_tail + ((product_tail + from_root * tail) + recurrence_tail);
  const T below = leading + select(a > T(0x1p-900), rest_of_sum, T(0));
  const T square = inverse * inverse;
  const T series = poly(square, 0.08333333333332829, -0.008333333327314122, 0.003968251843410041,
                        -0.0041663287402416245, 0.007547477582117319, -0.019777596267228446, 0.049688321018691195);
  const T above = log(a) - (T(0.5) * inverse + square * series);
  return select(a < T(6), below, above);
}

// Sums over the steps of a recurrence are kept as one fraction, so that a single division ends them.
template <class T> struct Fraction { T numerator, denominator; };

// trigamma(a) for a > 0: the recurrence up to 10 and beyond, then the series. Float precision sums the recurrence as
// one fraction; double's would not bear the roundings of that.
template <bool Short, Real T> [[gnu::always_inline]] VOLTA_HD constexpr T trigamma_positive(T a) {
  const bool small = a < T(1);
  const T first = T(1) / a;
  T z = select(small, a + T(1), a), terms[9] = {};
  Fraction<T> sum = {T(0), T(1)};
  for (int step = 0; step < 9; ++step) {
    const bool low = z < T(10);
    const T square = z * z;
    if constexpr (Short) {
      sum.numerator = select(low, sum.numerator * square + sum.denominator, sum.numerator);
      sum.denominator = select(low, sum.denominator * square, sum.denominator);
    } else {
      terms[step] = select(low, T(1) / square, T(0));
    }
    z = select(low, z + T(1), z);
  }
  const T inverse = T(1) / z, square = inverse * inverse;
  const T series = poly(square, 0.16666666666666075, -0.03333333331903202, 0.023809513703459254, -0.03333020953129963,
                        0.07527815052258711, -0.2166657875610665);
  T y = inverse + (T(0.5) * square + inverse * square * series);
  if constexpr (Short) y = y + sum.numerator / sum.denominator;
  T lost = T(0);
  for (int step = 8; !Short && step >= 0; --step) {  // smallest first
    const auto [hi, lo] = exact_sum(y, terms[step]);
    y = hi;
    lost = lost + lo;
  }
  return (y + lost) + select(small, select(a > T(0x1p-500), T(1) / (a * a), first * first), T(0));
}

}  // namespace detail

// log |gamma(x)|, infinite at 0 and the negative integers. Between those, where it crosses zero, the error is two ulp
// of lgamma(-x), which cancels there, or of one.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T lgamma(T x) {
  using namespace detail;
  const double d = double(x), a = abs(d), positive = lgamma_positive(a);
  const auto [sine, sine_lo] = half_turn(a).sin;
  const bool tiny = a < 0x1p-60;
  const auto [product, product_lo] = exact_product(a, sine);
  const auto [quotient, tail] =
      divide<double>({0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53}, {product, product_lo + a * sine_lo});
  const double reflected = (log(quotient) - positive) + tail / quotient;
  const double negative = select(tiny, positive, select(sine > 0, reflected, infinity<double>));
  return T(select(d < 0, negative, positive));
}

// The derivative of lgamma: an infinity of the opposite sign at zeros, NaN at the negative integers. Between those,
// where it crosses zero, the error is two ulp of the terms of the reflection, which cancel there, or of one.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T digamma(T x) {
  using namespace detail;
  const double d = double(x);
  const bool negative = d < 0;
  const double positive = digamma_positive(select(negative, 1 - d, d));
  const auto turn = half_turn(d);
  const auto [cotangent, tail] = divide(turn.cos, turn.sin);
  constexpr double pi = 0x1.921fb54442d18p+1;
  const double small = select(turn.sin.hi > 0x1p-900, pi * tail + 0x1.1a62633145c07p-53 * cotangent, 0.0);
  const double reflected = positive - copysign(pi * cotangent + small, turn.r);
  const double y = select(negative, select(turn.r == 0, nan<double>, reflected), positive);
  return T(select(d == 0, copysign(infinity<double>, -d), y));
}

// The second derivative of lgamma.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T polygamma1(T x) {
  using namespace detail;
  const double d = double(x);
  const bool negative = d < 0;
  const double positive = trigamma_positive<is_float<T>>(select(negative, 1 - d, d));
  const double y = select(negative, squared_cosecant(d) - positive, positive);
  return T(select(d == -infinity<double>, nan<double>, y));
}

}  // namespace volta::scalar

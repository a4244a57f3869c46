// The error function, its complement and its inverse for float and double.
#pragma once
#include "volta/scalar/exp_log.h"

namespace volta::scalar {

namespace detail {

// erf(x) / x - 1 for z = x^2 <= 1.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erf_inner(T z) {
  if constexpr (is_float<T>)
    return poly(z, 1.2837917e-1f, -3.7612626e-1f, 1.12835884e-1f, -2.685392e-2f, 5.1885056e-3f, -8.0115936e-4f,
                7.858105e-5f);
  else
    return poly(z, 0.1283791670955126, -0.3761263890318375, 0.11283791670954862, -0.02686617064507367,
                0.005223977624787003, -0.0008548326979042036, 0.00012055331046448607, -1.4925593711006097e-5,
                1.646097576963756e-6, -1.6350053745997377e-7, 1.4658056120126356e-8, -1.1366296267209922e-9,
                5.946253618359215e-11);
}

// log(erfc(a)) from 1 to where erf(a) rounds to 1.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T log_erfc(T a) {
  if constexpr (is_float<T>)
    return -poly(a, -2.044373e-4f, 1.1296616f, 6.3303876e-1f, 1.0864006e-1f, -2.5374351e-2f, 4.2827576e-3f,
                 -4.6389626e-4f, 2.5332336e-5f, -2.5254658e-7f);
  else
    return -poly(a, 5.134330267825661e-7, 1.1283739898167446, 0.6366440638037618, 0.10270226512741454,
                 -0.01898799374344904, -0.0004136058214256166, 0.0019190209386403972, -0.0007731065039949216,
                 0.00013659604542754248, 1.950204625110939e-5, -2.2524344171140033e-5, 8.57604048607026e-6,
                 -2.1141182421192607e-6, 3.694370448745474e-7, -4.591552802439007e-8, 3.888335259430114e-9,
                 -2.0193636463016495e-10, 4.86245539213251e-12);
}

// (1 + 2a) exp(a^2) erfc(a) for 0 <= a <= 28 is a polynomial of (a - 3) / (a + 3): its constant term and the rest.
inline constexpr double scaled_erfc_first = 1.2530080582697296;
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T scaled_erfc_rest(T a) {
  const T t = (a - T(3)) / (a + T(3));
  return t * poly(t, -0.13562110612458103, -0.047562294353452314, 0.12964515870274335, -0.11927366341520929,
                  0.0683080273446214, -0.023770514921051734, 0.0025293918048664783, 0.0018886903880628322,
                  -0.0007798321624902133, -0.00010515999384552195, 0.00012509869081154883, 4.950257743869818e-6,
                  -2.009798482411951e-5, -7.333401319276274e-7, 3.465763727612674e-6, 3.5917766623768885e-7,
                  -6.054319023354051e-7, -1.4241476010290227e-7, 8.994544534029758e-8, 4.004839513073617e-8,
                  -6.079640952360667e-9, -6.165013931735152e-9, -9.30644156040133e-10);
}

// exp(a^2) erfc(a) as a pair.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> erfcx_pair(T a) {
  return divide(exact_sum_ordered(T(scaled_erfc_first), scaled_erfc_rest(a)), exact_sum(T(2) * a, T(1)));
}

// The same to float precision, for a <= 11.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erfcx_short(T a) {
  const T t = (a - T(2)) / (a + T(2));
  return poly(t, 1.2769783818970781, -0.0927638282808123, -0.1660304405891627, 0.16405133978325928,
              -0.05421910805522633, -0.008034394775250552, 0.008715687243502183, 0.00127031428319705,
              -0.0014319583308797627, -0.00044000529106487607, 0.00016676188519468619, 0.00011150418476936894,
              1.5605570806206653e-5) /
         (T(1) + T(2) * a);
}

// erfinv(x) / x as a function of w = -log(1 - x^2): near zero a polynomial of w, further out of sqrt(w). The constant
// term and the rest are summed with the rounding kept.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr Pair<T> erfinv_ratio(T w) {
  const T t = w - T(3.125), root = sqrt(w);
  const auto [square, square_tail] = exact_product(root, root);
  const T root_tail = ((w - square) - square_tail) / (T(2) * root);
  const T u = (root - T(3.25)) + root_tail, v = (root - T(5)) + root_tail;
  const T central =
      t * poly(t, 0.24015818242558834, -0.006033670871426995, -0.0007407025341545546, 0.00018673420802052673,
               -1.3882523394196825e-5, -1.3654691772599629e-6, 4.23478817120117e-7, -2.907038989874692e-8,
               -4.112660642757601e-9, 1.051222568382321e-9, -5.414294627142636e-11, -1.297850461429772e-11,
               2.6305034509773314e-12, -8.07928264237433e-14, -4.0015896066511504e-14, 6.533329041037713e-15,
               -3.987829323816402e-17, -1.2344748718738e-16, 1.5545228148733328e-17, 6.955874148455557e-19,
               -3.487663406816399e-19, 1.654207063196875e-20, 3.2194007010253747e-21, -3.0020446090781876e-22);
  const T middle = u * poly(u, 1.0052589676941655, 0.0053709145535551, -0.0037512085082237827, 0.002491442097952834,
                            -0.0016882755354786253, 0.0009532893416762789, -0.0003550378133617312, 2.403151171759112e-5,
                            6.828711412916522e-5, -4.732067288175766e-5, 1.2465042994369807e-5, 2.9325464367956093e-6,
                            -3.9857463485782345e-6, 1.48167909473599e-6, -2.7551483431371415e-8, -2.4562270400070236e-7,
                            1.315282496738171e-7, -2.0809140835034374e-8, -1.5283543549214e-8, 7.642339256521791e-9);
  const T outer = v * poly(v, 1.0103004648645453, -0.00013871931838078678, -0.00021503011982639298, 7.59952781128434e-5,
                           -1.9681770720457775e-5, 4.52605237037714e-6, -9.930292712111959e-7, 2.290535766597028e-7,
                           -6.755649367031734e-8, 2.9016564293943333e-8, -1.5254702320189136e-8, 7.824803046810208e-9,
                           -3.471491972174241e-9, 1.3128315937079467e-9, -4.376005196574443e-10, 7.115922570148112e-11,
                           4.290696435206649e-11, -2.072218763970273e-11);
  const bool near = w < T(6.25), between = w < T(16);
  const T first = select(near, 1.6536545626831027, select(between, 3.0838856104922208, 4.849906401408584));
  return exact_sum_ordered(first, select(near, central, select(between, middle, outer)));
}

// The same to float precision; a float's w stays below 16.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erfinv_ratio_short(T w) {
  const T t = w - T(2.5), u = sqrt(w) - T(3);
  const T central = poly(t, 1.5014093516907523, 0.24664027578411973, -0.004177324633932474, -0.0012527048755091668,
                         0.00021826355494992516, -4.998761042876277e-6, -3.426010486988556e-6, 4.796995556373223e-7,
                         1.6456810148948188e-8, -1.1023368810373304e-8, 4.370648666076796e-10, 1.3287029667712182e-10);
  const T outer = poly(u, 2.8329768001929483, 1.0016752348261397, 0.009445391630259191, -0.007642661095852376,
                       0.005686749351963793, -0.003567951553474566, 0.0014786681203361077, -0.00011783149133711439,
                       -0.0002830591932689209, 0.00015880887196404988, -2.6347334462606205e-5);
  return select(w < T(5), central, outer);
}

// The normal distribution's upper tail Phi(-a) of 0 <= a <= normal_limit: the eighth power of a polynomial.
inline constexpr float normal_first[] = {9.1700405e-1f};
inline constexpr float normal_rest[] = {-9.145737e-2f, -3.1929553e-2f, -6.6757586e-4f, 1.4988608e-3f,
                                        3.78373e-5f,   -6.1475293e-5f, 7.6911474e-6f,  -3.1044183e-7f};
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T normal_tail_near(T a) {
  const T root = multiply_add<normal_first, 0>(poly<normal_rest>(a), a), square = root * root, fourth = square * square;
  return fourth * fourth;
}

// (Phi(-a) - a phi(a)) exp(a^2 / 2) of the same a.
inline constexpr float gelu_slope[] = {0.5f,         -7.978813e-1f,  2.4994299e-1f, -1.326361e-1f,
                                       6.146441e-2f, -2.4780825e-2f, 8.380059e-3f,  -2.2399258e-3f,
                                       4.409877e-4f, -5.878828e-5f,  4.6738874e-6f, -1.6589323e-7f};

// log2(Phi(-a)) from normal_limit to where Phi(-a) is zero.
[[gnu::always_inline]] VOLTA_HD constexpr float log2_normal_tail(float a) {
  const float b = select(a > 14.4f, 14.4f, a);
  return poly(b, -1.2262093f, -8.943547e-1f, -5.891317e-1f, -1.50614455e-2f, 1.17232755e-3f, -5.837867e-5f,
              1.6713387e-6f, -2.0888992e-8f);
}

}  // namespace detail

// The largest |x| of gelu_near.
inline constexpr float normal_limit = 5;

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erf(T x) {
  using namespace detail;
  constexpr T bound = is_float<T> ? T(4) : T(6);  // from here on erf rounds to 1
  const T a = abs(x), b = select(a > bound, bound, a);
  const T outer = T(1) - exp_normal(log_erfc(b));
  return select(a < T(1), x + x * erf_inner(x * x), copysign(outer, x));
}

template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erfc(T x) {
  using namespace detail;
  if constexpr (is_float<T>) {
    const double d = double(x), a = abs(d), b = select(a > 11.0, 11.0, a);
    const double y = exp_normal(-b * b) * erfcx_short(b);
    return T(select(d < 0, 2 - y, y));
  } else {
    const T a = abs(x), b = select(a > T(28), T(28), a);
    // exp(-b^2): the upper half's square is exact, the rest a small correction of the reduced argument.
    const T upper = upper_half(b);
    const auto [r, code] = exp_parts<2 * BitsOf<T>::bias>(-upper * upper);
    const T power = expm1_kernel(r - (b - upper) * (b + upper));
    const auto [factor, tail] = erfcx_pair(b);
    const T y = scale_wide(factor + (factor * power + tail), code);
    const T inner = T(0.5) - ((x - T(0.5)) + x * erf_inner(x * x));
    return select(a < T(0.75), inner, select(x < T(0), T(2) - y, y));
  }
}

namespace detail {

// Phi(-a) for a >= 0, of floats to six digits.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T normal_tail(T a) {
  if constexpr (is_float<T>) return select(a <= normal_limit, normal_tail_near(a), exp2(log2_normal_tail(a)));
  else return T(0.5) * erfc(a * T(0.70710678118654752440));
}

template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T gelu_from(T x, T tail) {
  return positive_part(x) - abs(x) * tail;
}

}  // namespace detail

// x Phi(x), of floats to 1e-7 of 1, and to five digits where that is more.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T gelu(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (detail::is_float<T>)
    return 0.5f * x * (1.0f + ::erff(x * 0.707106781f));  // the device's own keeps up with its memory
#endif
  return select(x > T(64), x, detail::gelu_from(x, detail::normal_tail(abs(x))));
}

// The same to the last bit, for |x| <= normal_limit.
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T gelu_near(T x) {
  return detail::gelu_from(x, detail::normal_tail_near(abs(x)));
}

// The derivative of gelu for |x| <= normal_limit: Phi(-a) - a phi(a) at -a, what that lacks of 1 at a.
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T gelu_slope_near(T x) {
  const T a = abs(x), below = exp_near(T(-0.5) * a * a) * detail::poly<detail::gelu_slope>(a);
  return select(x > T(0), T(1) - below, below);
}

// Infinite at -1 and 1, NaN outside.
template <Real T> [[gnu::always_inline]] VOLTA_HD constexpr T erfinv(T x) {
  using namespace detail;
  const double d = double(x), w = -log((1 - d) * (1 + d));
  T y;
  if constexpr (is_float<T>) {
    y = T(d * erfinv_ratio_short(w));
  } else {
    const auto [ratio, tail] = erfinv_ratio(w);
    const T z = d * d;  // below 0.53 the odd series is more accurate: x (sqrt(pi) / 2 + x^2 P(x^2))
    const T p =
        poly(z, 0.23201366653465386, 0.12755617530588917, 0.08655212920136425, 0.06495962033759065, 0.05173118728924927,
             0.04283889179607034, 0.03643274106454422, 0.032039478930712184, 0.025377030797544164, 0.03867186541697259,
             -0.027230615541034016, 0.1428255157434135, -0.16670781499260692, 0.15955593834823734);
    const bool central = z < T(0.28);
    y = d * select(central, T(0x1.c5bf891b4ef6bp-1), ratio) + d * select(central, z * p, tail);
  }
  return select(abs(x) == T(1), copysign(infinity<T>, x), y);
}

}  // namespace volta::scalar

// How far a scalar function is from the truth, in units of the last place.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace volta::test {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The error of `got` in units of T's last place at max(|want|, scale). Infinite where a NaN, an infinity, or the sign
// of an exact zero disagrees.
template <class T, class Wide> double ulps(T got, Wide want, Wide scale = 0) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : inf;
  if (std::isnan(got)) return inf;
  if (std::isinf(want)) return got == T(want) ? 0 : inf;
  if (want == 0 && got == 0) return std::signbit(want) == std::signbit(got) ? 0 : inf;
  const Wide beyond = std::ldexp(Wide(1), limits::max_exponent);  // what infinity stands for
  const Wide value = std::isinf(got) ? std::copysign(beyond, Wide(got)) : Wide(got);
  const Wide target = std::clamp(want, -beyond, beyond);
  int exponent;
  std::frexp(std::max(std::fabs(target), scale), &exponent);
  const Wide unit =
      std::ldexp(Wide(1), std::clamp(exponent, limits::min_exponent, limits::max_exponent) - limits::digits);
  return double(std::fabs(value - target) / unit);
}

template <class T> struct Worst {
  double error = 0;
  T x = 0, y = 0;
  void note(double e, T a, T b = 0) {
    if (!(e <= error)) *this = {e, a, b};
  }
  void report(const char* name, double bound) const {
    std::printf("%-4s %-12s %.3f ulp at (%.9g, %.9g)\n", sizeof(T) == 4 ? "f32" : "f64", name, error, double(x),
                double(y));
    EXPECT_LE(error, bound) << name << " at " << x << ", " << y;
  }
};

// Values where functions change their ways: zeros, denormals, powers of two, limits, and their neighbours.
template <class T> std::vector<T> landmarks() {
  using limits = std::numeric_limits<T>;
  std::vector<T> base = {T(0),
                         limits::denorm_min(),
                         limits::min(),
                         limits::max(),
                         limits::infinity(),
                         limits::quiet_NaN(),
                         limits::epsilon(),
                         T(0.25),
                         T(0.5),
                         T(0.55),
                         T(0.625),
                         T(0.7),
                         T(0.70710678118654752),
                         T(1),
                         T(1.41421356237309505),
                         T(1.5),
                         T(1.4616321449683623),
                         T(2),
                         T(2.5),
                         T(3),
                         T(4),
                         T(5),
                         T(6),
                         T(6.25),
                         T(8),
                         T(9),
                         T(10),
                         T(16),
                         T(20),
                         T(28),
                         T(88.72283),
                         T(87.33654),
                         T(103.97208),
                         T(709.782712893384),
                         T(745.1332191019411),
                         T(89.41599),
                         T(710.4758600739439),
                         T(1e9),
                         T(1e22),
                         T(1.57079632679489662),
                         T(3.14159265358979324),
                         T(0.785398163397448),
                         T(0x1p20),
                         T(0x1p31)};
  std::vector<T> all;
  for (T v : base)
    for (T w : {std::nextafter(v, T(0)), v, std::nextafter(v, limits::infinity())})
      for (T s : {w, -w}) all.push_back(s);
  return all;
}

}  // namespace volta::test

// Higher derivatives of lgamma, which the derivatives of digamma need.
#pragma once
#include <concepts>

#include <volta/scalar/gamma.h>
#include <volta/scalar/trig.h>

namespace volta::scalar {

template <std::floating_point T> [[gnu::always_inline]] VOLTA_HD constexpr T trigamma(T x) { return polygamma1(x); }

// The third derivative of lgamma: the recurrence psi2(a) = psi2(a + 1) - 2 / a^3 up to 12, then the asymptotic series;
// below 0 by reflection, psi2(x) = psi2(1 - x) - 2 pi^3 cos(pi x) / sin^3(pi x).
template <std::floating_point T> VOLTA_HD constexpr T polygamma2(T x) {
  const double d = double(x), pi = 3.14159265358979323846;
  double a = d < 0 ? 1 - d : d, sum = 0;
  for (int i = 0; i < 12; ++i) {
    const bool low = a < 12;
    sum -= low ? 2 / (a * a * a) : 0;
    a += low ? 1 : 0;
  }
  const double i = 1 / a, s = i * i;
  const double series = -s - s * i - s * s * (0.5 - s * (1.0 / 6 - s * (1.0 / 6 - s * (0.3 - s * (5.0 / 6)))));
  const double sine = sin(pi * d);
  return T(sum + series - (d < 0 ? 2 * pi * pi * pi * cos(pi * d) / (sine * sine * sine) : 0));
}

}  // namespace volta::scalar

// Higher derivatives of lgamma, which the derivatives of digamma need.
#pragma once
#include <concepts>

#include <volta/scalar/gamma.h>
#include <volta/scalar/trig.h>

namespace volta::scalar {

template <std::floating_point T> [[gnu::always_inline]] VOLTA_HD constexpr T trigamma(T x) { return polygamma1(x); }

// The third derivative of lgamma. psi2(a) = psi2(a + 12) - 2 sum 1 / (a + i)^3, with the asymptotic series at a + 12;
// below 0 by reflection, psi2(x) = psi2(1 - x) - 2 pi^3 cot(pi x) / sin^2(pi x).
template <std::floating_point T> VOLTA_HD constexpr T polygamma2(T x) {
  const double d = double(x), pi = 3.14159265358979323846;
  const double a = d < 0 ? 1 - d : d, z = 1 / (a + 12), s = z * z;
  const double tail =
      0.5 -
      s * (1.0 / 6 - s * (1.0 / 6 - s * (0.3 - s * (5.0 / 6 - s * (691.0 / 210 - s * (17.5 - s * (3617.0 / 30)))))));
  double y = -s * (s * tail + z + 1);
  for (int i = 11; i >= 0; --i) y -= 2 / ((a + i) * (a + i) * (a + i));
  const double f = d - floor(d + 0.5), sine = sin(pi * f), cosine = sin(pi * (0.5 - abs(f)));
  return T(d < 0 ? y - 2 * pi * pi * pi * cosine / (sine * sine * sine) : y);
}

}  // namespace volta::scalar

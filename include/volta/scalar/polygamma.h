// Higher derivatives of lgamma, which the derivatives of digamma need.
#pragma once
#include <concepts>

#include <volta/scalar/gamma.h>
#include <volta/scalar/trig.h>

namespace volta::scalar {

template <std::floating_point T> [[gnu::always_inline]] VOLTA_HD constexpr T trigamma(T x) { return polygamma1(x); }

// The third derivative of lgamma. psi2(a) = psi2(a + 12) - 2 sum 1 / (a + i)^3, with the asymptotic series at a + 12;
// below 0 by reflection, psi2(x) = psi2(1 - x) - 2 pi^3 cot(pi x) / sin^2(pi x).
template <std::floating_point T> [[gnu::always_inline]] VOLTA_HD constexpr T polygamma2(T x) {
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

namespace detail {

// (n - 1)! / x^n, factor by factor, so that neither overflows alone.
VOLTA_HD constexpr double factorial_over_power(int n, double x) {
  double y = 1 / x;
  for (int k = 1; k < n; ++k) y *= k / x;
  return y;
}

// n! times the sum of (a + i)^-(n+1) over all i >= 0, for a > 0: Euler-Maclaurin after the first terms.
VOLTA_HD constexpr double factorial_zeta(int n, double a) {
  // B2k / (2k)!, each multiplied by (n + 1)(n + 2) … (n + 2k - 1) / b^(2k - 1).
  constexpr double bernoulli[] = {
      1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000, 1.0 / 74724249600};
  const int terms = 12 + n;
  const double b = a + terms, z = 1 / b, integral = factorial_over_power(n, b);
  double tail = 0.5, rising = (n + 1) * z;
  for (int k = 1; k <= 7; ++k) {
    tail += bernoulli[k - 1] * rising;
    rising *= ((n + 2 * k) * z) * ((n + 2 * k + 1) * z);
  }
  double y = integral + integral * (n * z) * tail;
  for (int i = terms - 1; i >= 0; --i) y += factorial_over_power(n + 1, a + i);
  return y;
}

}  // namespace detail

// The derivative of digamma of order n >= 1: (-1)^(n+1) n! times the sum of (x + i)^-(n+1). Below 0 that sum is the one
// over all integers, which the fraction of x gives as two, less its other half.
template <std::floating_point T> VOLTA_HD constexpr T polygamma(T x, T order) {
  using detail::factorial_zeta;
  const double d = double(x), f = d - floor(d);
  const int n = int(order);
  const double sign = n % 2 ? 1 : -1;
  if (d > 0) return T(sign * factorial_zeta(n, d));
  if (!(f > 0)) return f == 0 ? T(sign) * detail::infinity<T> : T(f);
  return T(sign * factorial_zeta(n, f) + factorial_zeta(n, 1 - f) - factorial_zeta(n, 1 - d));
}

}  // namespace volta::scalar

// Dual: the kind of number on which an op's formula gives its derivative.
#pragma once
#include <concepts>
#include <type_traits>

#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>

namespace volta::scalar {

// A value and its derivative along one direction.
template <class T> struct Dual {
  T v, d;
  VOLTA_HD constexpr Dual(T value, T derivative) : v(value), d(derivative) {}
  template <class C>
  requires std::integral<C> || std::floating_point<C> VOLTA_HD constexpr Dual(C constant) : v(T(constant)), d(T(0)) {}

  VOLTA_HD friend constexpr Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  VOLTA_HD friend constexpr Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  VOLTA_HD friend constexpr Dual operator-(Dual a) { return {neg(a.v), neg(a.d)}; }
  VOLTA_HD friend constexpr Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
  VOLTA_HD friend constexpr Dual operator/(Dual a, Dual b) {
    const T q = a.v / b.v;
    return {q, (a.d - q * b.d) / b.v};
  }
  VOLTA_HD friend constexpr auto operator<(Dual a, Dual b) { return a.v < b.v; }
  VOLTA_HD friend constexpr auto operator<=(Dual a, Dual b) { return a.v <= b.v; }
  VOLTA_HD friend constexpr auto operator>(Dual a, Dual b) { return a.v > b.v; }
  VOLTA_HD friend constexpr auto operator>=(Dual a, Dual b) { return a.v >= b.v; }
  VOLTA_HD friend constexpr auto operator==(Dual a, Dual b) { return a.v == b.v; }
  VOLTA_HD friend constexpr auto operator!=(Dual a, Dual b) { return a.v != b.v; }
};
// The chain rule, for each function that occurs in formulas without a rule of their own.
template <class T> VOLTA_HD constexpr Dual<T> neg(Dual<T> x) { return -x; }
template <class T> VOLTA_HD constexpr Dual<T> abs(Dual<T> x) { return {abs(x.v), x.d * sign(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> sign(Dual<T> x) { return {sign(x.v), T(0)}; }
template <class T> VOLTA_HD constexpr Dual<T> square(Dual<T> x) { return x * x; }
template <class T> VOLTA_HD constexpr Dual<T> reciprocal(Dual<T> x) { return Dual<T>(1) / x; }
template <class T> VOLTA_HD constexpr Dual<T> sqrt(Dual<T> x) {
  const T y = sqrt(x.v);
  return {y, x.d / (y + y)};
}
template <class T> VOLTA_HD constexpr Dual<T> rsqrt(Dual<T> x) { return Dual<T>(1) / sqrt(x); }
template <class T> VOLTA_HD constexpr Dual<T> exp(Dual<T> x) {
  const T y = exp(x.v);
  return {y, x.d * y};
}
template <class T> VOLTA_HD constexpr Dual<T> exp2(Dual<T> x) {
  const T y = exp2(x.v);
  return {y, x.d * y * T(0.693147180559945309417)};
}
template <class T> VOLTA_HD constexpr Dual<T> expm1(Dual<T> x) {
  const T y = expm1(x.v);
  return {y, x.d * (y + T(1))};
}
template <class T> VOLTA_HD constexpr Dual<T> log(Dual<T> x) { return {log(x.v), x.d / x.v}; }
template <class T> VOLTA_HD constexpr Dual<T> log2(Dual<T> x) {
  return {log2(x.v), x.d / (x.v * T(0.693147180559945309417))};
}
template <class T> VOLTA_HD constexpr Dual<T> log10(Dual<T> x) {
  return {log10(x.v), x.d / (x.v * T(2.30258509299404568402))};
}
template <class T> VOLTA_HD constexpr Dual<T> log1p(Dual<T> x) { return {log1p(x.v), x.d / (x.v + T(1))}; }
template <class T> VOLTA_HD constexpr Dual<T> sin(Dual<T> x) { return {sin(x.v), x.d * cos(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> cos(Dual<T> x) { return {cos(x.v), neg(x.d * sin(x.v))}; }
template <class T> VOLTA_HD constexpr Dual<T> tan(Dual<T> x) {
  const T y = tan(x.v);
  return {y, x.d * (y * y + T(1))};
}
template <class T> VOLTA_HD constexpr Dual<T> asin(Dual<T> x) { return {asin(x.v), x.d / sqrt(T(1) - x.v * x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> acos(Dual<T> x) { return {acos(x.v), neg(x.d / sqrt(T(1) - x.v * x.v))}; }
template <class T> VOLTA_HD constexpr Dual<T> atan(Dual<T> x) { return {atan(x.v), x.d / (x.v * x.v + T(1))}; }
template <class T> VOLTA_HD constexpr Dual<T> sinh(Dual<T> x) { return {sinh(x.v), x.d * cosh(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> cosh(Dual<T> x) { return {cosh(x.v), x.d * sinh(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> tanh(Dual<T> x) {
  const T y = tanh(x.v);
  return {y, x.d * (T(1) - y * y)};
}
template <class T> VOLTA_HD constexpr Dual<T> asinh(Dual<T> x) { return {asinh(x.v), x.d / sqrt(x.v * x.v + T(1))}; }
template <class T> VOLTA_HD constexpr Dual<T> acosh(Dual<T> x) { return {acosh(x.v), x.d / sqrt(x.v * x.v - T(1))}; }
template <class T> VOLTA_HD constexpr Dual<T> atanh(Dual<T> x) { return {atanh(x.v), x.d / (T(1) - x.v * x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> erf(Dual<T> x) {
  return {erf(x.v), x.d * T(1.12837916709551257390) * exp(neg(x.v * x.v))};
}
template <class T> VOLTA_HD constexpr Dual<T> erfc(Dual<T> x) {
  return {erfc(x.v), x.d * T(-1.12837916709551257390) * exp(neg(x.v * x.v))};
}
template <class T> VOLTA_HD constexpr Dual<T> erfinv(Dual<T> x) {
  const T y = erfinv(x.v);
  return {y, x.d * T(0.88622692545275801365) * exp(y * y)};
}
template <class T> VOLTA_HD constexpr Dual<T> sigmoid(Dual<T> x) {
  const T y = sigmoid(x.v);
  return {y, x.d * y * (T(1) - y)};
}
template <class T> VOLTA_HD constexpr Dual<T> logsigmoid(Dual<T> x) {
  return {logsigmoid(x.v), x.d * sigmoid(neg(x.v))};
}
template <class T> VOLTA_HD constexpr Dual<T> lgamma(Dual<T> x) { return {lgamma(x.v), x.d * digamma(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> digamma(Dual<T> x) { return {digamma(x.v), x.d * trigamma(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> trigamma(Dual<T> x) { return {trigamma(x.v), x.d * polygamma2(x.v)}; }
template <class T> VOLTA_HD constexpr Dual<T> floor(Dual<T> x) { return {floor(x.v), T(0)}; }
template <class T> VOLTA_HD constexpr Dual<T> ceil(Dual<T> x) { return {ceil(x.v), T(0)}; }
template <class T> VOLTA_HD constexpr Dual<T> trunc(Dual<T> x) { return {trunc(x.v), T(0)}; }
template <class T> VOLTA_HD constexpr Dual<T> round(Dual<T> x) { return {round(x.v), T(0)}; }
template <class T> VOLTA_HD constexpr auto isnan(Dual<T> x) { return isnan(x.v); }
template <class T> VOLTA_HD constexpr auto isinf(Dual<T> x) { return isinf(x.v); }
template <class T> VOLTA_HD constexpr auto isfinite(Dual<T> x) { return isfinite(x.v); }
template <class C, class T> VOLTA_HD constexpr Dual<T> select(C c, Dual<T> a, Dual<T> b) {
  return {select(c, a.v, b.v), select(c, a.d, b.d)};
}
template <class T> VOLTA_HD constexpr Dual<T> min(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select(a.v == b.v, Dual<T>{a.v, (a.d + b.d) * T(0.5)}, select(a.v <= b.v, a, b));  // a tie: half of each
}
template <class T> VOLTA_HD constexpr Dual<T> max(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select(a.v == b.v, Dual<T>{a.v, (a.d + b.d) * T(0.5)}, select(a.v >= b.v, a, b));
}
template <class T> VOLTA_HD constexpr Dual<T> fmin(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select((a.v < b.v) | (b.v != b.v), a, b);
}
template <class T> VOLTA_HD constexpr Dual<T> fmax(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select((a.v > b.v) | (b.v != b.v), a, b);
}
template <class T>
VOLTA_HD constexpr Dual<T> clamp(Dual<T> x, std::type_identity_t<Dual<T>> low, std::type_identity_t<Dual<T>> high) {
  const Dual<T> y = select(x.v < low.v, low, x);
  return select(y.v > high.v, high, y);
}
template <class T> VOLTA_HD constexpr Dual<T> pow(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = pow(a.v, b.v), by_base = select(b.v == T(0), T(0), b.v * pow(a.v, b.v - T(1)));
  const auto flat = (b.d == T(0)) | ((a.v == T(0)) & (b.v >= T(0)));  // 0^b does not depend on b there
  return {y, a.d * by_base + select(flat, T(0), b.d * y * log(a.v))};
}
template <class T> VOLTA_HD constexpr Dual<T> atan2(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const auto origin = (a.v == T(0)) & (b.v == T(0));  // no direction: 0, as PyTorch has it
  const T square = a.v * a.v + b.v * b.v;
  return {atan2(a.v, b.v), select(origin, T(0), (a.d * b.v - b.d * a.v) / select(origin, T(1), square))};
}
template <class T> VOLTA_HD constexpr Dual<T> hypot(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = hypot(a.v, b.v);
  return {y, (a.d * a.v + b.d * b.v) / y};
}
template <class T> VOLTA_HD constexpr Dual<T> logaddexp(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return {logaddexp(a.v, b.v), a.d * sigmoid(a.v - b.v) + b.d * sigmoid(b.v - a.v)};
}
template <class T> VOLTA_HD constexpr Dual<T> logaddexp2(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T gap = (a.v - b.v) * T(0.693147180559945309417);
  return {logaddexp2(a.v, b.v), a.d * sigmoid(gap) + b.d * sigmoid(neg(gap))};
}
template <class T> VOLTA_HD constexpr Dual<T> copysign(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = copysign(a.v, b.v);
  return {y, a.d * sign(a.v) * sign(y)};
}
template <class T> VOLTA_HD constexpr Dual<T> fmod(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return {fmod(a.v, b.v), a.d - b.d * trunc(a.v / b.v)};
}
template <class T> VOLTA_HD constexpr Dual<T> remainder(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return {remainder(a.v, b.v), a.d - b.d * floor_divide(a.v, b.v)};
}
template <class T> VOLTA_HD constexpr Dual<T> floor_divide(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return {floor_divide(a.v, b.v), T(0)};
}
template <class T> VOLTA_HD constexpr Dual<T> plus(Dual<T> a, Dual<T> b) { return a + b; }
template <class T> VOLTA_HD constexpr Dual<T> minus(Dual<T> a, Dual<T> b) { return a - b; }
template <class T> VOLTA_HD constexpr Dual<T> multiply(Dual<T> a, Dual<T> b) { return a * b; }

}  // namespace volta::scalar

// Dual: the kind of number on which an op's formula gives its derivative.
#pragma once
#include <concepts>
#include <type_traits>

#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>

namespace volta::scalar {

// A value and its derivative along one direction. What does not depend on that direction is `still`: its derivative is 0 even
// where the slope of what it goes into is infinite or NaN.
template <class T> struct Dual {
  T v, d;
  bool still = false;
  VOLTA_HD constexpr Dual(T value, T derivative) : v(value), d(derivative) {}
  template <class C>
  requires std::integral<C> || std::floating_point<C> VOLTA_HD constexpr Dual(C constant) : Dual(fixed(T(constant))) {}
  VOLTA_HD static constexpr Dual fixed(T value) { return {value, T(0), true}; }

  VOLTA_HD friend constexpr Dual operator+(Dual a, Dual b) {
    return chain(
        a.v + b.v, a, b, [](T t) { return t; }, [](T t) { return t; });
  }
  VOLTA_HD friend constexpr Dual operator-(Dual a, Dual b) {
    if (!a.still && !b.still) return {a.v - b.v, a.d - b.d};
    return chain(
        a.v - b.v, a, b, [](T t) { return t; }, [](T t) { return neg(t); });
  }
  VOLTA_HD friend constexpr Dual operator-(Dual a) {
    return chain(neg(a.v), a, [](T t) { return neg(t); });
  }
  VOLTA_HD friend constexpr Dual operator*(Dual a, Dual b) {
    return chain(
        a.v * b.v, a, b, [&](T t) { return t * b.v; }, [&](T t) { return a.v * t; });
  }
  VOLTA_HD friend constexpr Dual operator/(Dual a, Dual b) {
    const T q = a.v / b.v;
    if (!a.still && !b.still) return {q, (a.d - q * b.d) / b.v};
    return chain(
        q, a, b, [&](T t) { return t / b.v; }, [&](T t) { return neg(q * t) / b.v; });
  }
  VOLTA_HD friend constexpr auto operator<(Dual a, Dual b) { return a.v < b.v; }
  VOLTA_HD friend constexpr auto operator<=(Dual a, Dual b) { return a.v <= b.v; }
  VOLTA_HD friend constexpr auto operator>(Dual a, Dual b) { return a.v > b.v; }
  VOLTA_HD friend constexpr auto operator>=(Dual a, Dual b) { return a.v >= b.v; }
  VOLTA_HD friend constexpr auto operator==(Dual a, Dual b) { return a.v == b.v; }
  VOLTA_HD friend constexpr auto operator!=(Dual a, Dual b) { return a.v != b.v; }

 private:
  VOLTA_HD constexpr Dual(T value, T derivative, bool constant) : v(value), d(derivative), still(constant) {}
};
// The chain rule: the value y of a function of x, and what `by_x` makes of x's derivative.
template <class T, class F> VOLTA_HD constexpr Dual<T> chain(T y, const Dual<T>& x, F by_x) {
  return x.still ? Dual<T>::fixed(y) : Dual<T>(y, by_x(x.d));
}
template <class T, class F, class G>
VOLTA_HD constexpr Dual<T> chain(T y, const Dual<T>& a, const Dual<T>& b, F by_a, G by_b) {
  if (a.still) return chain(y, b, by_b);
  if (b.still) return chain(y, a, by_a);
  return Dual<T>(y, by_a(a.d) + by_b(b.d));
}
// For each function that occurs in formulas without a rule of their own.
template <class T> VOLTA_HD constexpr Dual<T> neg(Dual<T> x) { return -x; }
template <class T> VOLTA_HD constexpr Dual<T> square(Dual<T> x) { return x * x; }
template <class T> VOLTA_HD constexpr Dual<T> reciprocal(Dual<T> x) { return Dual<T>(1) / x; }
template <class T> VOLTA_HD constexpr Dual<T> abs(Dual<T> x) {
  const T y = abs(x.v);
  return chain(y, x, [&](T d) { return d * sign(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> sqrt(Dual<T> x) {
  const T y = sqrt(x.v);
  return chain(y, x, [&](T d) { return d / (y + y); });
}
template <class T> VOLTA_HD constexpr Dual<T> rsqrt(Dual<T> x) { return Dual<T>(1) / sqrt(x); }
template <class T> VOLTA_HD constexpr Dual<T> exp(Dual<T> x) {
  const T y = exp(x.v);
  return chain(y, x, [&](T d) { return d * y; });
}
template <class T> VOLTA_HD constexpr Dual<T> exp2(Dual<T> x) {
  const T y = exp2(x.v);
  return chain(y, x, [&](T d) { return d * y * T(0.693147180559945309417); });
}
template <class T> VOLTA_HD constexpr Dual<T> expm1(Dual<T> x) {
  const T y = expm1(x.v);
  return chain(y, x, [&](T d) { return d * (y + T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> log(Dual<T> x) {
  const T y = log(x.v);
  return chain(y, x, [&](T d) { return d / x.v; });
}
template <class T> VOLTA_HD constexpr Dual<T> log2(Dual<T> x) {
  const T y = log2(x.v);
  return chain(y, x, [&](T d) { return d / (x.v * T(0.693147180559945309417)); });
}
template <class T> VOLTA_HD constexpr Dual<T> log10(Dual<T> x) {
  const T y = log10(x.v);
  return chain(y, x, [&](T d) { return d / (x.v * T(2.30258509299404568402)); });
}
template <class T> VOLTA_HD constexpr Dual<T> log1p(Dual<T> x) {
  const T y = log1p(x.v);
  return chain(y, x, [&](T d) { return d / (x.v + T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> sin(Dual<T> x) {
  const T y = sin(x.v);
  return chain(y, x, [&](T d) { return d * cos(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> cos(Dual<T> x) {
  const T y = cos(x.v);
  return chain(y, x, [&](T d) { return neg(d * sin(x.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> tan(Dual<T> x) {
  const T y = tan(x.v);
  return chain(y, x, [&](T d) { return d * (y * y + T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> asin(Dual<T> x) {
  const T y = asin(x.v);
  return chain(y, x, [&](T d) { return d / sqrt(T(1) - x.v * x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> acos(Dual<T> x) {
  const T y = acos(x.v);
  return chain(y, x, [&](T d) { return neg(d / sqrt(T(1) - x.v * x.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> atan(Dual<T> x) {
  const T y = atan(x.v);
  return chain(y, x, [&](T d) { return d / (x.v * x.v + T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> sinh(Dual<T> x) {
  const T y = sinh(x.v);
  return chain(y, x, [&](T d) { return d * cosh(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> cosh(Dual<T> x) {
  const T y = cosh(x.v);
  return chain(y, x, [&](T d) { return d * sinh(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> tanh(Dual<T> x) {
  const T y = tanh(x.v);
  return chain(y, x, [&](T d) { return d * (T(1) - y * y); });
}
template <class T> VOLTA_HD constexpr Dual<T> asinh(Dual<T> x) {
  const T y = asinh(x.v);
  return chain(y, x, [&](T d) { return d / sqrt(x.v * x.v + T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> acosh(Dual<T> x) {
  const T y = acosh(x.v);
  return chain(y, x, [&](T d) { return d / sqrt(x.v * x.v - T(1)); });
}
template <class T> VOLTA_HD constexpr Dual<T> atanh(Dual<T> x) {
  const T y = atanh(x.v);
  return chain(y, x, [&](T d) { return d / (T(1) - x.v * x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> erf(Dual<T> x) {
  const T y = erf(x.v);
  return chain(y, x, [&](T d) { return d * T(1.12837916709551257390) * exp(neg(x.v * x.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> erfc(Dual<T> x) {
  const T y = erfc(x.v);
  return chain(y, x, [&](T d) { return d * T(-1.12837916709551257390) * exp(neg(x.v * x.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> erfinv(Dual<T> x) {
  const T y = erfinv(x.v);
  return chain(y, x, [&](T d) { return d * T(0.88622692545275801365) * exp(y * y); });
}
template <class T> VOLTA_HD constexpr Dual<T> sigmoid(Dual<T> x) {
  const T y = sigmoid(x.v);
  return chain(y, x, [&](T d) { return d * y * (T(1) - y); });
}
template <class T> VOLTA_HD constexpr Dual<T> logsigmoid(Dual<T> x) {
  const T y = logsigmoid(x.v);
  return chain(y, x, [&](T d) { return d * sigmoid(neg(x.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> lgamma(Dual<T> x) {
  const T y = lgamma(x.v);
  return chain(y, x, [&](T d) { return d * digamma(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> digamma(Dual<T> x) {
  const T y = digamma(x.v);
  return chain(y, x, [&](T d) { return d * trigamma(x.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> trigamma(Dual<T> x) {
  const T y = trigamma(x.v);
  return chain(y, x, [&](T d) { return d * polygamma2(x.v); });
}
// Steps: constant wherever they have a slope.
template <class T> VOLTA_HD constexpr Dual<T> sign(Dual<T> x) { return Dual<T>::fixed(sign(x.v)); }
template <class T> VOLTA_HD constexpr Dual<T> floor(Dual<T> x) { return Dual<T>::fixed(floor(x.v)); }
template <class T> VOLTA_HD constexpr Dual<T> ceil(Dual<T> x) { return Dual<T>::fixed(ceil(x.v)); }
template <class T> VOLTA_HD constexpr Dual<T> trunc(Dual<T> x) { return Dual<T>::fixed(trunc(x.v)); }
template <class T> VOLTA_HD constexpr Dual<T> round(Dual<T> x) { return Dual<T>::fixed(round(x.v)); }
template <class T> VOLTA_HD constexpr auto isnan(Dual<T> x) { return isnan(x.v); }
template <class T> VOLTA_HD constexpr auto isinf(Dual<T> x) { return isinf(x.v); }
template <class T> VOLTA_HD constexpr auto isfinite(Dual<T> x) { return isfinite(x.v); }
template <class C, class T> VOLTA_HD constexpr Dual<T> select(C c, Dual<T> a, Dual<T> b) {
  const T y = select(c, a.v, b.v);
  return a.still && b.still ? Dual<T>::fixed(y) : Dual<T>(y, select(c, a.d, b.d));
}
// A tie: half of each.
template <class T> VOLTA_HD constexpr Dual<T> halves(Dual<T> a, Dual<T> b) {
  if (a.still && b.still) return a;
  return {a.v, (a.d + b.d) * T(0.5)};
}
template <class T> VOLTA_HD constexpr Dual<T> min(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select(a.v == b.v, halves(a, b), select(a.v <= b.v, a, b));
}
template <class T> VOLTA_HD constexpr Dual<T> max(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return select(a.v == b.v, halves(a, b), select(a.v >= b.v, a, b));
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
// 0^b does not depend on b.
template <class T> VOLTA_HD constexpr Dual<T> pow(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = pow(a.v, b.v), by_base = select(b.v == T(0), T(0), b.v * pow(a.v, b.v - T(1)));
  return chain(
      y, a, b, [&](T d) { return d * by_base; },
      [&](T d) { return select((a.v == T(0)) & (b.v >= T(0)), T(0), d * y * log(a.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> atan2(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const auto origin = (a.v == T(0)) & (b.v == T(0));  // no direction: 0, as PyTorch has it
  const T square = select(origin, T(1), a.v * a.v + b.v * b.v);
  return chain(
      atan2(a.v, b.v), a, b, [&](T d) { return select(origin, T(0), d * b.v / square); },
      [&](T d) { return select(origin, T(0), neg(d * a.v) / square); });
}
template <class T> VOLTA_HD constexpr Dual<T> hypot(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = hypot(a.v, b.v);
  return chain(
      y, a, b, [&](T d) { return d * a.v / y; }, [&](T d) { return d * b.v / y; });
}
template <class T> VOLTA_HD constexpr Dual<T> logaddexp(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = logaddexp(a.v, b.v);
  return chain(
      y, a, b, [&](T d) { return d * sigmoid(a.v - b.v); }, [&](T d) { return d * sigmoid(b.v - a.v); });
}
template <class T> VOLTA_HD constexpr Dual<T> logaddexp2(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T gap = (a.v - b.v) * T(0.693147180559945309417);
  return chain(
      logaddexp2(a.v, b.v), a, b, [&](T d) { return d * sigmoid(gap); }, [&](T d) { return d * sigmoid(neg(gap)); });
}
template <class T> VOLTA_HD constexpr Dual<T> copysign(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = copysign(a.v, b.v);
  return chain(y, a, [&](T d) { return d * sign(a.v) * sign(y); });
}
template <class T> VOLTA_HD constexpr Dual<T> fmod(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = fmod(a.v, b.v);
  return chain(
      y, a, b, [](T d) { return d; }, [&](T d) { return neg(d * trunc(a.v / b.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> remainder(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  const T y = remainder(a.v, b.v);
  return chain(
      y, a, b, [](T d) { return d; }, [&](T d) { return neg(d * floor_divide(a.v, b.v)); });
}
template <class T> VOLTA_HD constexpr Dual<T> floor_divide(Dual<T> a, std::type_identity_t<Dual<T>> b) {
  return Dual<T>::fixed(floor_divide(a.v, b.v));
}
template <class T> VOLTA_HD constexpr Dual<T> plus(Dual<T> a, Dual<T> b) { return a + b; }
template <class T> VOLTA_HD constexpr Dual<T> minus(Dual<T> a, Dual<T> b) { return a - b; }
template <class T> VOLTA_HD constexpr Dual<T> multiply(Dual<T> a, Dual<T> b) { return a * b; }

}  // namespace volta::scalar

// Pointwise mathematics: powers, exponentials, trigonometry, special functions. One struct is one op.
#pragma once
#include <volta/pointop.h>
#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>

// f is the formula; back (g, x, y) is its rule: g the gradient of the output y. An op without a rule is differentiated
// by evaluating f on dual numbers. `back0`, `back1`, … are the rules by operand of ops with several.
// near gives the bits of f, sooner, for |x| <= near_limit.
namespace volta::point {

using namespace volta::scalar;

struct Neg : Numeric {
  static constexpr auto name = "neg", doc = "-x";
  template <class T> static constexpr T f(T x) { return neg(x); }
  template <class T> static constexpr T back(T g, T, T) { return neg(g); }
};
struct Abs : Numeric {
  static constexpr auto name = "abs", doc = "|x|; the gradient at 0 is 0";
  template <class T> static constexpr T f(T x) { return abs(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * sign(x); }
};
struct Sign : Numeric {
  static constexpr auto name = "sign", doc = "-1, 0 or 1; NaN stays NaN";
  template <class T> static constexpr T f(T x) { return sign(x); }
  template <class T> static constexpr T back(T, T, T) { return T(0); }
};
struct Positive : Numeric {
  static constexpr auto name = "positive", doc = "+x";
  template <class T> static constexpr T f(T x) { return x; }
  template <class T> static constexpr T back(T g, T, T) { return g; }
};
struct Square : Numeric {
  static constexpr auto name = "square", doc = "x * x";
  template <class T> static constexpr T f(T x) { return multiply(x, x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * (x + x); }
};
struct Sqrt : Floating {
  static constexpr auto name = "sqrt", doc = "square root; NaN below 0";
  template <class T> static constexpr T f(T x) { return sqrt(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g / (y + y); }
};
struct Rsqrt : Floating {
  static constexpr auto name = "rsqrt", doc = "1 / sqrt(x)";
  template <class T> static constexpr T f(T x) { return T(1) / sqrt(x); }
  template <class T> static constexpr T back(T g, T, T y) { return T(-0.5) * g * y * y * y; }
};
struct Reciprocal : Floating {
  static constexpr auto name = "reciprocal", doc = "1 / x";
  template <class T> static constexpr T f(T x) { return T(1) / x; }
  template <class T> static constexpr T back(T g, T, T y) { return neg(g * y * y); }
};
struct Exp : Floating {
  static constexpr auto name = "exp", doc = "e^x";
  template <class T> static constexpr T f(T x) { return exp(x); }
  template <Real T> static constexpr T near_limit = exp_limit<T>;
  template <Real T> static constexpr T near(T x) { return exp_near(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * y; }
};
struct Exp2 : Floating {
  static constexpr auto name = "exp2", doc = "2^x";
  template <class T> static constexpr T f(T x) { return exp2(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * y * T(0.693147180559945309417); }
};
struct Expm1 : Floating {
  static constexpr auto name = "expm1", doc = "e^x - 1, exact near 0";
  template <class T> static constexpr T f(T x) { return expm1(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (y + T(1)); }
};
struct Log : Floating {
  static constexpr auto name = "log", doc = "natural logarithm; -inf at 0, NaN below";
  template <class T> static constexpr T f(T x) { return log(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / x; }
};
struct Log2 : Floating {
  static constexpr auto name = "log2", doc = "logarithm to base 2";
  template <class T> static constexpr T f(T x) { return log2(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (x * T(0.693147180559945309417)); }
};
struct Log10 : Floating {
  static constexpr auto name = "log10", doc = "logarithm to base 10";
  template <class T> static constexpr T f(T x) { return log10(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (x * T(2.30258509299404568402)); }
};
struct Log1p : Floating {
  static constexpr auto name = "log1p", doc = "log(1 + x), exact near 0";
  template <class T> static constexpr T f(T x) { return log1p(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (x + T(1)); }
};
struct Sin : Floating {
  static constexpr auto name = "sin", doc = "sine";
  template <class T> static constexpr T f(T x) { return sin(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return sin_near(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * cos(x); }
};
struct Cos : Floating {
  static constexpr auto name = "cos", doc = "cosine";
  template <class T> static constexpr T f(T x) { return cos(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return cos_near(x); }
  template <class T> static constexpr T back(T g, T x, T) { return neg(g * sin(x)); }
};
struct Tan : Floating {
  static constexpr auto name = "tan", doc = "tangent";
  template <class T> static constexpr T f(T x) { return tan(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return tan_near(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (T(1) + y * y); }
};
struct Asin : Floating {
  static constexpr auto name = "asin", doc = "inverse sine";
  template <class T> static constexpr T f(T x) { return asin(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / sqrt(T(1) - x * x); }
};
struct Acos : Floating {
  static constexpr auto name = "acos", doc = "inverse cosine";
  template <class T> static constexpr T f(T x) { return acos(x); }
  template <class T> static constexpr T back(T g, T x, T) { return neg(g / sqrt(T(1) - x * x)); }
};
struct Atan : Floating {
  static constexpr auto name = "atan", doc = "inverse tangent";
  template <class T> static constexpr T f(T x) { return atan(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (T(1) + x * x); }
};
struct Sinh : Floating {
  static constexpr auto name = "sinh", doc = "hyperbolic sine";
  template <class T> static constexpr T f(T x) { return sinh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * cosh(x); }
};
struct Cosh : Floating {
  static constexpr auto name = "cosh", doc = "hyperbolic cosine";
  template <class T> static constexpr T f(T x) { return cosh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * sinh(x); }
};
struct Tanh : Floating {
  static constexpr auto name = "tanh", doc = "hyperbolic tangent";
  template <class T> static constexpr T f(T x) { return tanh(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (T(1) - y * y); }
};
struct Asinh : Floating {
  static constexpr auto name = "asinh", doc = "inverse hyperbolic sine";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return asinh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / sqrt(x * x + T(1)); }
};
struct Acosh : Floating {
  static constexpr auto name = "acosh", doc = "inverse hyperbolic cosine";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return acosh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / sqrt(x * x - T(1)); }
};
struct Atanh : Floating {
  static constexpr auto name = "atanh", doc = "inverse hyperbolic tangent";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return atanh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (T(1) - x * x); }
};
struct Erf : Floating {
  static constexpr auto name = "erf", doc = "error function";
  template <class T> static constexpr T f(T x) { return erf(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * T(1.12837916709551257390) * exp(neg(x * x)); }
};
struct Erfc : Floating {
  static constexpr auto name = "erfc", doc = "1 - erf(x), exact for large x";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return erfc(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * T(-1.12837916709551257390) * exp(neg(x * x)); }
};
struct Erfinv : Floating {
  static constexpr auto name = "erfinv", doc = "inverse error function on (-1, 1)";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return erfinv(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * T(0.886226925452758013649) * exp(y * y); }
};
struct Lgamma : Floating {
  static constexpr auto name = "lgamma", doc = "log of |gamma(x)|";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return lgamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * digamma(x); }
};
struct Digamma : Floating {
  static constexpr auto name = "digamma", doc = "derivative of lgamma";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return digamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * trigamma(x); }
};
struct Trigamma : Floating {
  static constexpr auto name = "trigamma", doc = "derivative of digamma";
  static constexpr bool in_blocks = false;
  template <class T> static constexpr T f(T x) { return trigamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * polygamma2(x); }
};
struct Polygamma2 : Floating {
  static constexpr auto name = "polygamma2", doc = "derivative of trigamma; differentiable no further";
  static constexpr bool in_blocks = false;
  static constexpr bool differentiable = false;
  template <class T> static constexpr T f(T x) { return polygamma2(x); }
};
struct Sinc : Floating {
  static constexpr auto name = "sinc", doc = "sin(pi x) / (pi x), 1 at 0";
  template <class T> static constexpr T f(T x) {
    const T a = x * T(3.14159265358979323846);
    return select(x == T(0), T(1), sin(a) / select(x == T(0), T(1), a));
  }
  template <class T> static constexpr T back(T g, T x, T) {
    const T p = T(3.14159265358979323846), a = x * p, safe = select(x == T(0), T(1), a);
    // Close to 0 the difference cancels; there the series is exact.
    const T series = p * a * (a * a * (T(1.0 / 30) - a * a * T(1.0 / 840)) - T(1.0 / 3));
    return g * select(abs(a) < T(0.05), series, p * (cos(safe) - sin(safe) / safe) / safe);
  }
};
struct Floor : Numeric {
  static constexpr auto name = "floor", doc = "round down; gradient 0";
  template <class T> static constexpr T f(T x) { return floor(x); }
  template <class T> static constexpr T back(T, T, T) { return T(0); }
};
struct Ceil : Numeric {
  static constexpr auto name = "ceil", doc = "round up; gradient 0";
  template <class T> static constexpr T f(T x) { return ceil(x); }
  template <class T> static constexpr T back(T, T, T) { return T(0); }
};
struct Trunc : Numeric {
  static constexpr auto name = "trunc", doc = "round toward 0; gradient 0";
  template <class T> static constexpr T f(T x) { return trunc(x); }
  template <class T> static constexpr T back(T, T, T) { return T(0); }
};
struct Round : Numeric {
  static constexpr auto name = "round", doc = "round to nearest, ties to even; gradient 0";
  template <class T> static constexpr T f(T x) { return round(x); }
  template <class T> static constexpr T back(T, T, T) { return T(0); }
};
struct Frac : Floating {
  static constexpr auto name = "frac", doc = "x - trunc(x)";
  template <class T> static constexpr T f(T x) { return x - trunc(x); }
  template <class T> static constexpr T back(T g, T, T) { return g; }
};
struct IsNan : AnyType {
  static constexpr auto name = "isnan", doc = "true where NaN";
  template <class T> static constexpr Truth<T> f(T x) { return isnan(x); }
};
struct IsInf : AnyType {
  static constexpr auto name = "isinf", doc = "true where +inf or -inf";
  template <class T> static constexpr Truth<T> f(T x) { return isinf(x); }
};
struct IsFinite : AnyType {
  static constexpr auto name = "isfinite", doc = "true where neither NaN nor infinite";
  template <class T> static constexpr Truth<T> f(T x) { return isfinite(x); }
};
struct Signbit : Numeric {
  static constexpr auto name = "signbit", doc = "true where the sign bit is set (-0.0 too)";
  template <class T> static constexpr Truth<T> f(T x) { return signbit(x); }
};
struct LogicalNot : AnyType {
  static constexpr auto name = "logical_not", doc = "true where x is 0";
  template <class T> static constexpr Truth<T> f(T x) { return x == T(0); }
};
struct BitwiseNot : Integral {
  static constexpr auto name = "bitwise_not", doc = "~x; logical not of booleans";
  template <class T> static constexpr T f(T x) { return bit_not(x); }
};

using MathOps =
    List<Neg, Abs, Sign, Positive, Square, Sqrt, Rsqrt, Reciprocal, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sin, Cos,
         Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Erfc, Erfinv, Lgamma, Digamma, Trigamma,
         Polygamma2, Sinc, Floor, Ceil, Trunc, Round, Frac, IsNan, IsInf, IsFinite, Signbit, LogicalNot, BitwiseNot>;

}  // namespace volta::point

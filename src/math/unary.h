// Pointwise mathematics: powers, exponentials, trigonometry, special functions. One struct is one op.
#pragma once
#include <volta/op_traits.h>
#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>

#include "math/inner.h"

// f is the formula; back (g, x, y) is its rule: g the gradient of the output y. An op without a rule is differentiated
// by evaluating f on dual numbers: a rule is for those that save y instead of x, or do better. `back0`, `back1`, … are
// the rules by operand of ops with several. near gives the bits of f, sooner, for |x| <= near_limit.
namespace volta::point {

using namespace volta::scalar;

struct Long : Floating {  // too long a formula to gain from running in blocks, or to be inlined for its derivative too
  static constexpr bool in_blocks = false;
};

// Those without a rule, a line each.
// clang-format off
struct Neg : Op<Numeric, "neg", "-x"> { static constexpr auto f(auto x) { return neg(x); } };
struct Abs : Op<Numeric, "abs", "|x|; the gradient at 0 is 0"> { static constexpr auto f(auto x) { return abs(x); } };
struct Sign : Op<Numeric, "sign", "-1, 0 or 1; NaN stays NaN"> { static constexpr auto f(auto x) { return sign(x); } };
struct Positive : Op<Numeric, "positive", "+x"> { static constexpr auto f(auto x) { return x; } };
struct Square : Op<Numeric, "square", "x * x"> { static constexpr auto f(auto x) { return multiply(x, x); } };
struct Log2 : Op<Floating, "log2", "logarithm to base 2"> { static constexpr auto f(auto x) { return log2(x); } };
struct Log10 : Op<Floating, "log10", "logarithm to base 10"> { static constexpr auto f(auto x) { return log10(x); } };
struct Asin : Op<Floating, "asin", "inverse sine"> { static constexpr auto f(auto x) { return asin(x); } };
struct Acos : Op<Floating, "acos", "inverse cosine"> { static constexpr auto f(auto x) { return acos(x); } };
struct Atan : Op<Floating, "atan", "inverse tangent"> { static constexpr auto f(auto x) { return atan(x); } };
struct Sinh : Op<Floating, "sinh", "hyperbolic sine"> { static constexpr auto f(auto x) { return sinh(x); } };
struct Cosh : Op<Floating, "cosh", "hyperbolic cosine"> { static constexpr auto f(auto x) { return cosh(x); } };
struct Erf : Op<Floating, "erf", "error function"> { static constexpr auto f(auto x) { return erf(x); } };
struct Floor : Op<Numeric, "floor", "round down; gradient 0"> { static constexpr auto f(auto x) { return floor(x); } };
struct Ceil : Op<Numeric, "ceil", "round up; gradient 0"> { static constexpr auto f(auto x) { return ceil(x); } };
struct Frac : Op<Floating, "frac", "x - trunc(x)"> { static constexpr auto f(auto x) { return x - trunc(x); } };
struct IsNan : Op<AnyType, "isnan", "true where NaN"> { static constexpr auto f(auto x) { return isnan(x); } };
struct IsInf : Op<AnyType, "isinf", "true where +inf or -inf"> { static constexpr auto f(auto x) { return isinf(x); } };
// clang-format on
struct LogicalNot : Op<AnyType, "logical_not", "true where x is 0"> {
  static constexpr auto f(auto x) { return x == 0; }
};
struct Log : Op<Floating, "log", "natural logarithm; -inf at 0, NaN below"> {
  static constexpr auto f(auto x) { return log(x); }
};
struct Log1p : Op<Floating, "log1p", "log(1 + x), exact near 0"> {
  static constexpr auto f(auto x) { return log1p(x); }
};
struct Trunc : Op<Numeric, "trunc", "round toward 0; gradient 0"> {
  static constexpr auto f(auto x) { return trunc(x); }
};
struct Round : Op<Numeric, "round", "round to nearest, ties to even; gradient 0"> {
  static constexpr auto f(auto x) { return round(x); }
};
struct IsFinite : Op<AnyType, "isfinite", "true where neither NaN nor infinite"> {
  static constexpr auto f(auto x) { return isfinite(x); }
};
struct Signbit : Op<Numeric, "signbit", "true where the sign bit is set (-0.0 too)"> {
  static constexpr auto f(auto x) { return signbit(x); }
};

struct Sqrt : Op<Floating, "sqrt", "square root; NaN below 0"> {
  template <class T> static constexpr T f(T x) { return sqrt(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g / (y + y); }
};
struct Rsqrt : Op<Floating, "rsqrt", "1 / sqrt(x)"> {
  template <class T> static constexpr T f(T x) { return T(1) / sqrt(x); }
  template <class T> static constexpr T back(T g, T, T y) { return T(-0.5) * g * y * y * y; }
};
struct Reciprocal : Op<Floating, "reciprocal", "1 / x"> {
  template <class T> static constexpr T f(T x) { return T(1) / x; }
  template <class T> static constexpr T back(T g, T, T y) { return neg(g * y * y); }
};
struct Exp : Op<Floating, "exp", "e^x"> {
  template <class T> static constexpr T f(T x) { return exp(x); }
  template <Real T> static constexpr T near_limit = exp_limit<T>;
  template <RealOrLanes T> static constexpr T near(T x) { return exp_near(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * y; }
};
struct Exp2 : Op<Floating, "exp2", "2^x"> {
  template <class T> static constexpr T f(T x) { return exp2(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * y * T(0.693147180559945309417); }
};
struct Expm1 : Op<Floating, "expm1", "e^x - 1, exact near 0"> {
  template <class T> static constexpr T f(T x) { return expm1(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (y + T(1)); }
};
struct Sin : Op<Floating, "sin", "sine"> {
  template <class T> static constexpr T f(T x) { return sin(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return sin_near(x); }
};
struct Cos : Op<Floating, "cos", "cosine"> {
  template <class T> static constexpr T f(T x) { return cos(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return cos_near(x); }
};
struct Tan : Op<Floating, "tan", "tangent"> {
  template <class T> static constexpr T f(T x) { return tan(x); }
  template <std::same_as<float> T> static constexpr T near_limit = trig_limit<T>;
  template <std::same_as<float> T> static constexpr T near(T x) { return tan_near(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (T(1) + y * y); }
};
struct Tanh : Op<Floating, "tanh", "hyperbolic tangent"> {
  template <class T> static constexpr T f(T x) { return tanh(x); }
  template <Real T> static constexpr T near_limit = tanh_limit<T>;
  template <RealOrLanes T> static constexpr T near(T x) { return tanh_near(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * (T(1) - y * y); }
};
struct Erfinv : Op<Long, "erfinv", "inverse error function on (-1, 1)"> {
  template <class T> static constexpr T f(T x) { return erfinv(x); }
  template <class T> static constexpr T back(T g, T, T y) { return g * T(0.886226925452758013649) * exp(y * y); }
};
// Long formulas say their derivative: as duals they would be compiled out of line, shared between instruction sets.
struct Asinh : Op<Long, "asinh", "inverse hyperbolic sine"> {
  template <class T> static constexpr T f(T x) { return asinh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / sqrt(x * x + T(1)); }
};
struct Acosh : Op<Long, "acosh", "inverse hyperbolic cosine"> {
  template <class T> static constexpr T f(T x) { return acosh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / sqrt(x * x - T(1)); }
};
struct Atanh : Op<Long, "atanh", "inverse hyperbolic tangent"> {
  template <class T> static constexpr T f(T x) { return atanh(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (T(1) - x * x); }
};
struct Erfc : Op<Long, "erfc", "1 - erf(x), exact for large x"> {
  template <class T> static constexpr T f(T x) { return erfc(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * T(-1.12837916709551257390) * exp(neg(x * x)); }
};
struct Lgamma : Op<Long, "lgamma", "log of |gamma(x)|"> {
  template <class T> static constexpr T f(T x) { return lgamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * digamma(x); }
};
struct Digamma : Op<Long, "digamma", "derivative of lgamma"> {
  template <class T> static constexpr T f(T x) { return digamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * trigamma(x); }
};
struct Trigamma : Op<Long, "trigamma", "derivative of digamma"> {
  template <class T> static constexpr T f(T x) { return trigamma(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * polygamma2(x); }
};
struct Polygamma2 : Op<Long, "polygamma2", "derivative of trigamma"> {
  template <class T> static constexpr T f(T x) { return polygamma2(x); }
  template <class T> static constexpr T back(T g, T x, T) { return g * polygamma(x, T(3)); }
};
struct Sinc : Op<Floating, "sinc", "sin(pi x) / (pi x), 1 at 0"> {
  template <class T> static constexpr T f(T x) {
    const T a = x * T(3.14159265358979323846);
    return select(x == T(0), T(1), sin(a) / select(x == T(0), T(1), a));
  }
  template <class T> static constexpr T back(T g, T x, T) {
    const T p = T(3.14159265358979323846), a = x * p;
    const auto near = abs(a) < T(0.05);
    // Close to 0 the difference cancels; there the series is exact. Neither form overflows where the other holds.
    const T small = select(near, a, T(0)), large = select(near, T(1), a), square = small * small;
    const T series = p * small * (square * (T(1.0 / 30) - square * T(1.0 / 840)) - T(1.0 / 3));
    return g * select(near, series, p * (cos(large) - sin(large) / large) / large);
  }
};
struct Rad2deg : Op<Floating, "rad2deg", "an angle of x radians in degrees"> {
  template <class T> static constexpr T f(T x) { return x * T(57.29577951308232); }
  template <class T> static constexpr T back(T g, T, T) { return f(g); }
};
struct Deg2rad : Op<Floating, "deg2rad", "an angle of x degrees in radians"> {
  template <class T> static constexpr T f(T x) { return x * T(0.017453292519943295); }
  template <class T> static constexpr T back(T g, T, T) { return f(g); }
};
struct BitwiseNot : Op<Integral, "bitwise_not", "~x; logical not of booleans"> {
  template <class T> static constexpr T f(T x) { return bit_not(x); }
};

using MathOps = List<Neg, Abs, Sign, Positive, Square, Sqrt, Rsqrt, Reciprocal,                     //
                     Exp, Exp2, Expm1, Log, Log2, Log10, Log1p,                                     //
                     Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Sinc,  //
                     Erf, Erfc, Erfinv, Lgamma, Digamma, Trigamma, Polygamma2,                      //
                     Floor, Ceil, Trunc, Round, Frac, Rad2deg, Deg2rad,                             //
                     IsNan, IsInf, IsFinite, Signbit, LogicalNot, BitwiseNot>;

}  // namespace volta::point

// Pointwise ops of two and three operands: arithmetic, comparison, logic, bits, choice.
#pragma once
#include <volta/pointop.h>
#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>

#include "ops/point_activation.h"

namespace volta::point {

using namespace volta::scalar;

struct Add : AnyType {
  static constexpr auto name = "add", doc = "a + b";
  template <class T> static constexpr T f(T a, T b) { return plus(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T, T, T) { return g; }
};
struct Sub : Numeric {
  static constexpr auto name = "sub", doc = "a - b";
  template <class T> static constexpr T f(T a, T b) { return minus(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T, T, T) { return neg(g); }
};
struct Mul : AnyType {
  static constexpr auto name = "mul", doc = "a * b";
  template <class T> static constexpr T f(T a, T b) { return multiply(a, b); }
  template <class T> static constexpr T back0(T g, T, T b, T) { return g * b; }
  template <class T> static constexpr T back1(T g, T a, T, T) { return g * a; }
};
struct Div : Floating {
  static constexpr auto name = "div", doc = "a / b; integers give the default float";
  template <class T> static constexpr T f(T a, T b) { return a / b; }
  template <class T> static constexpr T back0(T g, T, T b, T) { return g / b; }
  template <class T> static constexpr T back1(T g, T, T b, T y) { return neg(g * y / b); }
};
struct Pow : Numeric {
  static constexpr auto name = "pow", doc = "a to the power b";
  static constexpr auto args = "x, exponent";
  template <class T> static constexpr T f(T a, T b) { return pow(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select(b == T(0), T(0), g * b * pow(a, b - T(1)));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T y) {
    return select((a == T(0)) & (b >= T(0)), T(0), g * y * log(a));
  }
};
struct Maximum : AnyType {
  static constexpr auto name = "maximum", doc = "the larger; NaN if either is; a tie gives half the gradient to each";
  template <class T> static constexpr T f(T a, T b) { return max(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select(a < b, T(0), select(a == b, g / T(2), g));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select(b < a, T(0), select(a == b, g / T(2), g));
  }
};
struct Minimum : AnyType {
  static constexpr auto name = "minimum", doc = "the smaller; NaN if either is; a tie gives half the gradient to each";
  template <class T> static constexpr T f(T a, T b) { return min(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select(a > b, T(0), select(a == b, g / T(2), g));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select(b > a, T(0), select(a == b, g / T(2), g));
  }
};
struct Fmax : Numeric {
  static constexpr auto name = "fmax", doc = "the larger; a NaN is ignored when the other is a number";
  template <class T> static constexpr T f(T a, T b) { return fmax(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select(a == b, g / T(2), select((a > b) | isnan(b), g, T(0)));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select(a == b, g / T(2), select((a > b) | isnan(b), T(0), g));
  }
};
struct Fmin : Numeric {
  static constexpr auto name = "fmin", doc = "the smaller; a NaN is ignored when the other is a number";
  template <class T> static constexpr T f(T a, T b) { return fmin(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select(a == b, g / T(2), select((a < b) | isnan(b), g, T(0)));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select(a == b, g / T(2), select((a < b) | isnan(b), T(0), g));
  }
};
struct Fmod : Numeric {
  static constexpr auto name = "fmod", doc = "remainder with the sign of a (C's rule); integer division by 0 gives 0";
  template <class T> static constexpr T f(T a, T b) { return fmod(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return neg(g * trunc(a / b)); }
};
struct Remainder : Numeric {
  static constexpr auto name = "remainder",
                        doc = "remainder with the sign of b (Python's rule); by 0 gives 0 for integers";
  template <class T> static constexpr T f(T a, T b) { return remainder(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return neg(g * floor_divide(a, b)); }
};
struct FloorDivide : Numeric {
  static constexpr auto name = "floor_divide", doc = "floor(a / b), Python's rule; gradient 0";
  template <class T> static constexpr T f(T a, T b) { return floor_divide(a, b); }
  template <class T> static constexpr T back0(T, T, T, T) { return T(0); }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};
struct Atan2 : Floating {
  static constexpr auto name = "atan2", doc = "angle of the point (b, a); gradient 0 at the origin";
  template <class T> static constexpr T f(T a, T b) { return atan2(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select((a == T(0)) & (b == T(0)), T(0), g * b / (a * a + b * b));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select((a == T(0)) & (b == T(0)), T(0), neg(g * a / (a * a + b * b)));
  }
};
struct Hypot : Floating {
  static constexpr auto name = "hypot", doc = "sqrt(a^2 + b^2) without overflow";
  template <class T> static constexpr T f(T a, T b) { return hypot(a, b); }
  template <class T> static constexpr T back0(T g, T a, T, T y) { return g * (a / y); }
  template <class T> static constexpr T back1(T g, T, T b, T y) { return g * (b / y); }
};
struct Copysign : Floating {
  static constexpr auto name = "copysign", doc = "|a| with the sign of b";
  template <class T> static constexpr T f(T a, T b) { return copysign(a, b); }
  template <class T> static constexpr T back0(T g, T a, T, T y) {
    return select(a == T(0), T(0), g * sign(a) * sign(y));
  }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};
struct Nextafter : Floating {
  static constexpr auto name = "nextafter", doc = "the next number after a toward b";
  static constexpr bool differentiable = false;
  template <class T> static constexpr T f(T a, T b) { return nextafter(a, b); }
};
struct Heaviside : Numeric {
  static constexpr auto name = "heaviside", doc = "0 below 0, 1 above, b at 0; gradient 0 to a";
  template <class T> static constexpr T f(T a, T b) {
    return select(a == T(0), b, select(a > T(0), T(1), select(isnan(a), a, T(0))));
  }
  template <class T> static constexpr T back0(T, T, T, T) { return T(0); }
  template <class T> static constexpr T back1(T g, T a, T, T) { return select(a == T(0), g, T(0)); }
};
struct LogAddExp : Floating {
  static constexpr auto name = "logaddexp", doc = "log(e^a + e^b), stable";
  template <class T> static constexpr T f(T a, T b) { return logaddexp(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return g * Sigmoid::f(a - b); }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return g * Sigmoid::f(b - a); }
};
struct LogAddExp2 : Floating {
  static constexpr auto name = "logaddexp2", doc = "log2(2^a + 2^b), stable";
  template <class T> static constexpr T f(T a, T b) { return logaddexp2(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return g * Sigmoid::f((a - b) * T(0.693147180559945309417));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return g * Sigmoid::f((b - a) * T(0.693147180559945309417));
  }
};
struct Eq : AnyType {
  static constexpr auto name = "eq", doc = "a == b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a == b; }
};
struct Ne : AnyType {
  static constexpr auto name = "ne", doc = "a != b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a != b; }
};
struct Lt : AnyType {
  static constexpr auto name = "lt", doc = "a < b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a < b; }
};
struct Le : AnyType {
  static constexpr auto name = "le", doc = "a <= b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a <= b; }
};
struct Gt : AnyType {
  static constexpr auto name = "gt", doc = "a > b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a > b; }
};
struct Ge : AnyType {
  static constexpr auto name = "ge", doc = "a >= b";
  template <class T> static constexpr Truth<T> f(T a, T b) { return a >= b; }
};
struct LogicalAnd : AnyType {
  static constexpr auto name = "logical_and", doc = "true where both are non-zero";
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) & (b != T(0)); }
};
struct LogicalOr : AnyType {
  static constexpr auto name = "logical_or", doc = "true where either is non-zero";
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) | (b != T(0)); }
};
struct LogicalXor : AnyType {
  static constexpr auto name = "logical_xor", doc = "true where exactly one is non-zero";
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) != (b != T(0)); }
};
struct BitwiseAnd : Integral {
  static constexpr auto name = "bitwise_and", doc = "a & b";
  template <class T> static constexpr T f(T a, T b) { return T(a & b); }
};
struct BitwiseOr : Integral {
  static constexpr auto name = "bitwise_or", doc = "a | b";
  template <class T> static constexpr T f(T a, T b) { return T(a | b); }
};
struct BitwiseXor : Integral {
  static constexpr auto name = "bitwise_xor", doc = "a ^ b";
  template <class T> static constexpr T f(T a, T b) { return T(a ^ b); }
};
struct BitwiseLeftShift : Integral {
  static constexpr auto name = "bitwise_left_shift", doc = "a << b; 0 when b is out of range";
  template <class T> static constexpr T f(T a, T b) { return shift_left(a, b); }
};
struct BitwiseRightShift : Integral {
  static constexpr auto name = "bitwise_right_shift", doc = "a >> b; sign fill when b is out of range";
  template <class T> static constexpr T f(T a, T b) { return shift_right(a, b); }
};
struct Where : AnyType {
  static constexpr auto name = "where", doc = "a where the condition holds, b elsewhere";
  static constexpr auto args = "condition, a, b";
  static constexpr int masks = 1;
  template <class T> static constexpr T f(Truth<T> c, T a, T b) { return select(c, a, b); }
  template <class T> static constexpr T back1(T g, Truth<T> c, T, T, T) { return select(c, g, T(0)); }
  template <class T> static constexpr T back2(T g, Truth<T> c, T, T, T) { return select(c, T(0), g); }
};
struct Lerp : Floating {
  static constexpr auto name = "lerp", doc = "a + weight * (b - a)";
  static constexpr auto args = "x, end, weight";
  template <class T> static constexpr T f(T a, T b, T w) {
    return select(abs(w) < T(0.5), a + w * (b - a), b - (b - a) * (T(1) - w));
  }
  template <class T> static constexpr T back0(T g, T, T, T w, T) { return g * (T(1) - w); }
  template <class T> static constexpr T back1(T g, T, T, T w, T) { return g * w; }
  template <class T> static constexpr T back2(T g, T a, T b, T, T) { return g * (b - a); }
};
struct MulAdd : Numeric {
  static constexpr auto name = "muladd", doc = "a * b + c in one pass";
  static constexpr auto args = "a, b, c";
  template <class T> static constexpr T f(T a, T b, T c) { return plus(multiply(a, b), c); }
  template <class T> static constexpr T back0(T g, T, T b, T, T) { return g * b; }
  template <class T> static constexpr T back1(T g, T a, T, T, T) { return g * a; }
  template <class T> static constexpr T back2(T g, T, T, T, T) { return g; }
};
struct Clamp : AnyType {
  static constexpr auto name = "clamp", doc = "x held within [min, max]; max wins where min is above it";
  static constexpr auto args = "x, min, max";
  template <class T> static constexpr T f(T x, T low, T high) { return min(max(x, low), high); }
  template <class T> static constexpr T back0(T g, T x, T low, T high, T) {
    return select((x < low) | (x > high), T(0), g);
  }
  template <class T> static constexpr T back1(T g, T x, T low, T high, T) {
    return select((x < low) & (low < high), g, T(0));
  }
  template <class T> static constexpr T back2(T g, T x, T low, T high, T) {
    return select((x > high) | (low > high), g, T(0));
  }
};
struct ClampMin : AnyType {
  static constexpr auto name = "clamp_min", doc = "x held at or above min";
  static constexpr auto args = "x, min";
  template <class T> static constexpr T f(T x, T low) { return max(x, low); }
  template <class T> static constexpr T back0(T g, T x, T low, T) { return select(x < low, T(0), g); }
  template <class T> static constexpr T back1(T g, T x, T low, T) { return select(x < low, g, T(0)); }
};
struct ClampMax : AnyType {
  static constexpr auto name = "clamp_max", doc = "x held at or below max";
  static constexpr auto args = "x, max";
  template <class T> static constexpr T f(T x, T high) { return min(x, high); }
  template <class T> static constexpr T back0(T g, T x, T high, T) { return select(x > high, T(0), g); }
  template <class T> static constexpr T back1(T g, T x, T high, T) { return select(x > high, g, T(0)); }
};

using BinaryOps = List<Add, Sub, Mul, Div, Pow, Maximum, Minimum, Fmax, Fmin, Fmod, Remainder, FloorDivide, Atan2,
                       Hypot, Copysign, Nextafter, Heaviside, LogAddExp, LogAddExp2, Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd,
                       LogicalOr, LogicalXor, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseLeftShift, BitwiseRightShift,
                       Where, Lerp, MulAdd, Clamp, ClampMin, ClampMax>;

}  // namespace volta::point

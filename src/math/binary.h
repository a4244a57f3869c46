// Pointwise ops of two and three operands: arithmetic, comparison, logic, bits, choice.
#pragma once
#include "math/activation.h"

namespace volta::point {

struct Add : Op<AnyType, "add", "a + b"> {
  template <class T> static constexpr T f(T a, T b) { return plus(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T, T, T) { return g; }
};
struct Sub : Op<Numeric, "sub", "a - b"> {
  template <class T> static constexpr T f(T a, T b) { return minus(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T, T, T) { return neg(g); }
};
struct Mul : Op<AnyType, "mul", "a * b"> {
  template <class T> static constexpr T f(T a, T b) { return multiply(a, b); }
  template <class T> static constexpr T back0(T g, T, T b, T) { return g * b; }
  template <class T> static constexpr T back1(T g, T a, T, T) { return g * a; }
};
struct Div : Op<Floating, "div", "a / b; integers give the default float"> {
  template <class T> static constexpr T f(T a, T b) { return a / b; }
  template <class T> static constexpr T back0(T g, T, T b, T) { return g / b; }
  template <class T> static constexpr T back1(T g, T, T b, T y) { return neg(g * y / b); }
};
struct Pow : Op<Numeric, "pow", "a to the power b", "x, exponent"> {
  template <class T> [[gnu::always_inline]] static constexpr T f(T a, T b) { return pow(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    if constexpr (Expression<T>) {  // 0 at exponent 0 too, but the slope by the exponent is kept
      const T safe = select(b == T(0), select(isfinite(T(1) / a), a, T(1)), a);
      return g * b * pow(safe, b - T(1));
    } else {
      return select(b == T(0), T(0), g * b * pow(a, b - T(1)));
    }
  }
  template <class T> static constexpr T back1(T g, T a, T b, T y) {
    return select((a == T(0)) & (b >= T(0)), T(0), g * y * log(a));
  }
};
// A tie gives half the gradient to each.
template <class T> [[gnu::always_inline]] constexpr T shared(T a, T b, T g, T otherwise) {
  return select(a == b, g / T(2), otherwise);
}

struct Maximum : Op<AnyType, "maximum", "the larger; NaN if either is; a tie gives half the gradient to each"> {
  template <class T> static constexpr T f(T a, T b) { return max(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return shared(a, b, g, select(a < b, T(0), g)); }
  template <class T> static constexpr T back1(T g, T a, T b, T y) { return back0(g, b, a, y); }
};
struct Minimum : Op<AnyType, "minimum", "the smaller; NaN if either is; a tie gives half the gradient to each"> {
  template <class T> static constexpr T f(T a, T b) { return min(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return shared(a, b, g, select(a > b, T(0), g)); }
  template <class T> static constexpr T back1(T g, T a, T b, T y) { return back0(g, b, a, y); }
};
struct Fmax : Op<Numeric, "fmax", "the larger; a NaN is ignored when the other is a number"> {
  template <class T> static constexpr Truth<T> wins(T a, T b) { return (a > b) | isnan(b); }
  template <class T> static constexpr T f(T a, T b) { return fmax(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return shared(a, b, g, select(wins(a, b), g, T(0))); }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return shared(a, b, g, select(wins(a, b), T(0), g)); }
};
struct Fmin : Op<Numeric, "fmin", "the smaller; a NaN is ignored when the other is a number"> {
  template <class T> static constexpr Truth<T> wins(T a, T b) { return (a < b) | isnan(b); }
  template <class T> static constexpr T f(T a, T b) { return fmin(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return shared(a, b, g, select(wins(a, b), g, T(0))); }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return shared(a, b, g, select(wins(a, b), T(0), g)); }
};
struct Fmod : Op<Numeric, "fmod", "remainder with the sign of a (C's rule); integer division by 0 gives 0"> {
  template <class T> static constexpr T f(T a, T b) { return fmod(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return neg(g * trunc(a / b)); }
};
struct Remainder : Op<Numeric, "remainder", "remainder with the sign of b (Python's rule); by 0 gives 0 for integers"> {
  template <class T> static constexpr T f(T a, T b) { return remainder(a, b); }
  template <class T> static constexpr T back0(T g, T, T, T) { return g; }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return neg(g * floor_divide(a, b)); }
};
struct FloorDivide : Op<Numeric, "floor_divide", "floor(a / b), Python's rule; gradient 0"> {
  template <class T> static constexpr T f(T a, T b) { return floor_divide(a, b); }
  template <class T> static constexpr T back0(T, T, T, T) { return T(0); }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};
struct Atan2 : Op<Floating, "atan2", "angle of the point (b, a); gradient 0 at the origin"> {
  template <class T> static constexpr T f(T a, T b) { return atan2(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return select((a == T(0)) & (b == T(0)), T(0), g * b / (a * a + b * b));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) {
    return select((a == T(0)) & (b == T(0)), T(0), neg(g * a / (a * a + b * b)));
  }
};
struct Hypot : Op<Floating, "hypot", "sqrt(a^2 + b^2) without overflow"> {
  template <class T> static constexpr T f(T a, T b) { return hypot(a, b); }
  template <class T> static constexpr T back0(T g, T a, T, T y) { return g * (a / y); }
  template <class T> static constexpr T back1(T g, T, T b, T y) { return g * (b / y); }
};
struct Copysign : Op<Floating, "copysign", "|a| with the sign of b"> {
  template <class T> static constexpr T f(T a, T b) { return copysign(a, b); }
  template <class T> static constexpr T back0(T g, T a, T, T y) {
    return select(a == T(0), T(0), g * sign(a) * sign(y));
  }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};
struct Nextafter : Op<Floating, "nextafter", "the next number after a toward b"> {
  static constexpr bool differentiable = false;
  template <class T> static constexpr T f(T a, T b) { return nextafter(a, b); }
};
struct Heaviside : Op<Numeric, "heaviside", "0 below 0, 1 above, b at 0; gradient 0 to a"> {
  template <class T> static constexpr T f(T a, T b) {
    return select(a == T(0), b, select(a > T(0), T(1), select(isnan(a), a, T(0))));
  }
  template <class T> static constexpr T back0(T, T, T, T) { return T(0); }
  template <class T> static constexpr T back1(T g, T a, T, T) { return select(a == T(0), g, T(0)); }
};
struct LogAddExp : Op<Floating, "logaddexp", "log(e^a + e^b), stable"> {
  template <class T> static constexpr T f(T a, T b) { return logaddexp(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) { return g * Sigmoid::f(a - b); }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return g * Sigmoid::f(b - a); }
};
struct LogAddExp2 : Op<Floating, "logaddexp2", "log2(2^a + 2^b), stable"> {
  template <class T> static constexpr T f(T a, T b) { return logaddexp2(a, b); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return g * Sigmoid::f((a - b) * T(0.693147180559945309417));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T y) { return back0(g, b, a, y); }
};
struct Xlogy : Op<Floating, "xlogy", "a log(b), 0 where a is 0 unless b is NaN"> {
  template <class T> static constexpr T f(T a, T b) { return select((a == T(0)) & (b == b), T(0), a * log(b)); }
  template <class T> static constexpr T back0(T g, T a, T b, T) {
    return g * select((a == T(0)) & (b <= T(0)), T(0), log(b));
  }
  template <class T> static constexpr T back1(T g, T a, T b, T) { return g * a / b; }
};
// clang-format off
struct Eq : Op<AnyType, "eq", "a == b"> { static constexpr auto f(auto a, auto b) { return a == b; } };
struct Ne : Op<AnyType, "ne", "a != b"> { static constexpr auto f(auto a, auto b) { return a != b; } };
struct Lt : Op<AnyType, "lt", "a < b"> { static constexpr auto f(auto a, auto b) { return a < b; } };
struct Le : Op<AnyType, "le", "a <= b"> { static constexpr auto f(auto a, auto b) { return a <= b; } };
struct Gt : Op<AnyType, "gt", "a > b"> { static constexpr auto f(auto a, auto b) { return a > b; } };
struct Ge : Op<AnyType, "ge", "a >= b"> { static constexpr auto f(auto a, auto b) { return a >= b; } };
// clang-format on
struct LogicalAnd : Op<AnyType, "logical_and", "true where both are non-zero"> {
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) & (b != T(0)); }
};
struct LogicalOr : Op<AnyType, "logical_or", "true where either is non-zero"> {
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) | (b != T(0)); }
};
struct LogicalXor : Op<AnyType, "logical_xor", "true where one is non-zero"> {
  template <class T> static constexpr Truth<T> f(T a, T b) { return (a != T(0)) != (b != T(0)); }
};
struct BitwiseAnd : Op<Integral, "bitwise_and", "a & b"> {
  template <class T> static constexpr T f(T a, T b) { return T(a & b); }
};
struct BitwiseOr : Op<Integral, "bitwise_or", "a | b"> {
  template <class T> static constexpr T f(T a, T b) { return T(a | b); }
};
struct BitwiseXor : Op<Integral, "bitwise_xor", "a ^ b"> {
  template <class T> static constexpr T f(T a, T b) { return T(a ^ b); }
};
struct BitwiseLeftShift : Op<Integral, "bitwise_left_shift", "a << b; 0 when b is out of range"> {
  template <class T> static constexpr T f(T a, T b) { return shift_left(a, b); }
};
struct BitwiseRightShift : Op<Integral, "bitwise_right_shift", "a >> b; sign fill when b is out of range"> {
  template <class T> static constexpr T f(T a, T b) { return shift_right(a, b); }
};
struct Where : Op<AnyType, "where", "a where the condition holds, b elsewhere", "condition, a, b"> {
  static constexpr int masks = 1;
  template <class T> static constexpr T f(Truth<T> c, T a, T b) { return select(c, a, b); }
  template <class T> static constexpr T back1(T g, Truth<T> c, T, T, T) { return select(c, g, T(0)); }
  template <class T> static constexpr T back2(T g, Truth<T> c, T, T, T) { return select(c, T(0), g); }
};
struct Lerp : Op<Floating, "lerp", "a + weight * (b - a)", "x, end, weight"> {
  template <class T> static constexpr T f(T a, T b, T w) {
    return select(abs(w) < T(0.5), a + w * (b - a), b - (b - a) * (T(1) - w));
  }
  template <class T> static constexpr T back0(T g, T, T, T w, T) { return g * (T(1) - w); }
  template <class T> static constexpr T back1(T g, T, T, T w, T) { return g * w; }
  template <class T> static constexpr T back2(T g, T a, T b, T, T) { return g * (b - a); }
};
struct MulAdd : Op<Numeric, "muladd", "a * b + c in one pass", "a, b, c"> {
  template <class T> static constexpr T f(T a, T b, T c) { return plus(multiply(a, b), c); }
  template <class T> static constexpr T back0(T g, T, T b, T, T) { return g * b; }
  template <class T> static constexpr T back1(T g, T a, T, T, T) { return g * a; }
  template <class T> static constexpr T back2(T g, T, T, T, T) { return g; }
};
struct Clamp : Op<AnyType, "clamp", "x held within [min, max]; max wins where min is above it", "x, min, max"> {
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
struct ClampMin : Op<AnyType, "clamp_min", "x held at or above min", "x, min"> {
  template <class T> static constexpr T f(T x, T low) { return max(x, low); }
  template <class T> static constexpr T back0(T g, T x, T low, T) { return select(x < low, T(0), g); }
  template <class T> static constexpr T back1(T g, T x, T low, T) { return select(x < low, g, T(0)); }
};
struct ClampMax : Op<AnyType, "clamp_max", "x held at or below max", "x, max"> {
  template <class T> static constexpr T f(T x, T high) { return min(x, high); }
  template <class T> static constexpr T back0(T g, T x, T high, T) { return select(x > high, T(0), g); }
  template <class T> static constexpr T back1(T g, T x, T high, T) { return select(x > high, g, T(0)); }
};

using BinaryOps = List<Add, Sub, Mul, Div, Pow, Maximum, Minimum, Fmax, Fmin, Fmod, Remainder, FloorDivide, Atan2,
                       Hypot, Copysign, Nextafter, Heaviside, LogAddExp, LogAddExp2, Xlogy, Eq, Ne, Lt, Le, Gt, Ge,
                       LogicalAnd, LogicalOr, LogicalXor, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseLeftShift,
                       BitwiseRightShift, Where, Lerp, MulAdd, Clamp, ClampMin, ClampMax>;

// Inner ops, which functions of other ops call.

// Numbers next to a half are halves, though kernels compute in f32: steps of Half's bits.
template <class Half, Text Name> struct NextHalf : Op<Floating, Name, ""> {
  static constexpr bool differentiable = false;
  template <class T> static constexpr T f(T a, T b) {
    const Half x{float(a)}, y{float(b)};
    const bool away = (float(y) > float(x)) == (float(x) > 0.f);
    const uint16_t moved = uint16_t(away ? x.bits + 1 : x.bits - 1), least = uint16_t((y.bits & 0x8000u) | 1u);
    const Half next = Half::from_bits(float(x) == 0.f ? least : moved);
    return isnan(a) || isnan(b) ? a + b : float(x) == float(y) ? T(float(y)) : T(float(next));
  }
};
struct NextF16 : NextHalf<float16, "nextafter"> {};
struct NextBf16 : NextHalf<bfloat16, "nextafter"> {};

struct Polygamma : Op<Long, "polygamma", ""> {
  template <class T> static constexpr T f(T x, T order) { return polygamma(x, order); }
  template <class T> static constexpr T back0(T g, T x, T order, T) { return g * polygamma(x, order + T(1)); }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};

using InnerOps = List<NextF16, NextBf16, Polygamma>;

}  // namespace volta::point

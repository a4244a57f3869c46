// Every reduction, once: from this list come the loops of reductions, scans and softmax on all devices, and the
// functions, methods and tests of those that have a name.
#pragma once
#include <limits>
#include <type_traits>

#include <volta/op_traits.h>
#include <volta/scalar.h>

#include "math/inner.h"

namespace volta::reducers {

using namespace volta::scalar;

// What elements are taken as: real numbers; numbers, integers being 64-bit ones that wrap around; what has an order;
// truth values, which are true unless 0.
enum class Elements : uint8_t { real, number, ordered, truth };

// A state is start() where nothing was taken in, lift(x) of one element, merge(a, b) of what two have taken in, and in
// the end finish(state). Those that want more take it: lift(x, parameter) or, when `indexed`, lift(x, index);
// finish(state, count) or finish(state, count, parameter). next(state, x, index) is merge(state, lift(x)), sooner, for
// an element that comes after all in the state. back(g, x, y) or back(g, x, y, count) is g times the derivative of the
// result y by the element x.
template <Elements Kind> struct Reducer {
  static constexpr Elements elements = Kind;
  static constexpr bool indexed = false;
  static constexpr bool vectors = true;  // lift holds for vectors, too; merge does where the state is one number
  template <class T> using State = T;
  template <class T> static constexpr T lift(T x) { return x; }
  template <class S> static constexpr S finish(S s) { return s; }
};
template <class R> struct Reals : R { static constexpr Elements elements = Elements::real; };
template <class R> struct Truths : R {
  static constexpr Elements elements = Elements::truth;
  template <class T> static constexpr T finish(T s) { return s != 0; }
};

// a where the mask holds, else b, for numbers and for vectors. By masks: of a conditional expression compilers may
// invert the comparison, which for floats takes five instructions more.
template <class M, class V> [[gnu::always_inline]] VOLTA_HD constexpr V choose(M mask, V a, V b) {
  if constexpr (std::is_arithmetic_v<V>) return mask ? a : b;
  else return V((M(a) & mask) | (M(b) & ~mask));
}

template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T highest() {
  using Limits = std::numeric_limits<T>;
  return std::is_floating_point_v<T> ? Limits::infinity() : Limits::max();
}
template <class T> [[gnu::always_inline]] VOLTA_HD constexpr T lowest() {
  return std::is_floating_point_v<T> ? -highest<T>() : std::numeric_limits<T>::lowest();
}

struct Sum : Reducer<Elements::number> {
  template <class T> static constexpr T start() { return T(0); }
  template <class T> static constexpr T merge(T a, T b) { return a + b; }
};
struct Mean : Reals<Sum> {
  template <class T> static constexpr T finish(T s, T count) { return s / count; }
};
struct SumSquares : Reals<Sum> {
  template <class T> static constexpr T lift(T x) { return x * x; }
};
struct SumAbs : Reals<Sum> {
  template <class T> static constexpr T lift(T x) { return choose(x < T{}, T(-x), x); }
};
struct SumPowers : Reals<Sum> {
  static constexpr bool vectors = false;
  template <class T> static constexpr T lift(T x, T p) { return pow(abs(x), p); }
};
struct Prod : Reducer<Elements::number> {
  template <class T> static constexpr T start() { return T(1); }
  template <class T> static constexpr T merge(T a, T b) { return a * b; }
};

// The larger or smaller of two, a NaN if there is one.
template <bool Largest> struct Extreme : Reducer<Elements::ordered> {
  template <class T> static constexpr T start() { return Largest ? lowest<T>() : highest<T>(); }
  template <class T> static constexpr T merge(T a, T b) { return choose((Largest ? a > b : a < b) | (a != a), a, b); }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

// The best element and where it first or last stands; a NaN is better than any number. Where there is a start of
// elements all as bad as can be, the first stands at 0.
template <bool Largest, bool Last> struct Best : Reducer<Elements::ordered> {
  static constexpr bool indexed = true;
  template <class T> struct State {
    T value;
    int64_t index;
  };
  template <class T> static constexpr bool better(T x, T than) {
    return (Largest ? x > than : x < than) | ((x != x) & (than == than));
  }
  template <class T> static constexpr State<T> start() {
    return {Extreme<Largest>::template start<T>(), Last ? -1 : 0};
  }
  template <class T> static constexpr State<T> lift(T x, int64_t index) { return {x, index}; }
  template <class T> static constexpr State<T> next(State<T> s, T x, int64_t index) {
    const bool as_good = (Largest ? x >= s.value : x <= s.value) | (x != x), take = Last ? as_good : better(x, s.value);
    return {take ? x : s.value, take ? index : s.index};
  }
  template <class T> static constexpr State<T> merge(State<T> a, State<T> b) {
    if (better(b.value, a.value)) return b;
    const bool preferred = Last ? b.index > a.index : b.index < a.index;
    return preferred && !better(a.value, b.value) ? b : a;
  }
  template <class T> static constexpr T finish(State<T> s) { return s.value; }
};
using FirstMax = Best<true, false>;
using FirstMin = Best<false, false>;
using LastMax = Best<true, true>;
using LastMin = Best<false, true>;

struct CountNonzero : Reducer<Elements::truth> {
  static constexpr bool vectors = false;
  template <class T> using State = int64_t;
  template <class T> static constexpr int64_t start() { return 0; }
  template <class T> static constexpr int64_t lift(T x) { return x != 0; }
  static constexpr int64_t merge(int64_t a, int64_t b) { return a + b; }
};

// Count, mean and the sum of squared deviations, merged by Chan's formula. The parameter is the correction.
struct Var : Reducer<Elements::real> {
  template <class T> struct State { T count, mean, squares; };
  template <class T> static constexpr State<T> start() { return {0, 0, 0}; }
  // The difference is 0 of numbers, and NaN of infinities: a merge of two elements would not see that they have no variance.
  template <class T> static constexpr State<T> lift(T x) { return {1, x, x - x}; }
  template <class T> static constexpr State<T> next(State<T> s, T x, int64_t) {
    const T count = s.count + T(1), delta = x - s.mean, mean = s.mean + delta / count;
    return {count, mean, s.squares + delta * (x - mean)};
  }
  template <class T> static constexpr State<T> merge(State<T> a, State<T> b) {
    if (a.count == T(0)) return b;
    if (b.count == T(0)) return a;
    const T total = a.count + b.count, delta = b.mean - a.mean, share = b.count / total;
    return {total, a.mean + delta * share, a.squares + (b.squares + delta * delta * a.count * share)};
  }
  template <class T> static constexpr T finish(State<T> s, double count, double correction) {
    const double freedom = count - correction;
    return s.squares / T(freedom > 0 ? freedom : 0);
  }
};

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x). Long formulas are always
// inlined: out of line, they would be shared between instruction sets.
struct LogSumExp : Op<Reducer<Elements::real>, "logsumexp", "log of the sum of exponentials, stable: logsumexp(x, 1)"> {
  template <class T> struct State { T top, sum; };
  template <class T> static constexpr T shift(T top) { return select(isfinite(top), top, T(0)); }
  // A branch: on a GPU most merges need no exponential.
  template <class T> static constexpr T scale(T from, T to) { return from == to ? T(1) : exp(from - to); }
  template <class T> static constexpr State<T> start() { return {lowest<T>(), 0}; }
  template <class T> static constexpr State<T> lift(T x) { return {x, select(isfinite(x), T(1), max(x, T(0)))}; }
  template <class T> [[gnu::always_inline]] static constexpr State<T> next(State<T> s, T x, int64_t) {
    const T m = max(s.top, x);
    return {m, s.sum * scale(s.top, m) + exp(x - shift(m))};
  }
  template <class T> [[gnu::always_inline]] static constexpr State<T> merge(State<T> a, State<T> b) {
    const T m = max(a.top, b.top);
    return {m, a.sum * scale(a.top, m) + b.sum * scale(b.top, m)};
  }
  template <class T> static constexpr T finish(State<T> s) { return log(s.sum) + shift(s.top); }
  template <class T> static constexpr T back(T g, T x, T y) {
    return g * exp(x - select(y == T(-std::numeric_limits<double>::infinity()), T(0), y));
  }
};

struct LogMeanExp : Op<LogSumExp, "logmeanexp", "log of the mean of exponentials, stable: logmeanexp(x, 1)"> {
  template <class T> static constexpr T finish(State<T> s, T count) { return log(s.sum / count) + shift(s.top); }
  template <class T> static constexpr T back(T g, T x, T y, T count) { return LogSumExp::back(g, x, y) / count; }
};
struct NanSum : Op<Sum, "nansum", "sum with NaN counted as 0: nansum(x)"> {
  template <class T> static constexpr T lift(T x) { return choose(x == x, x, T{}); }
  template <class T> static constexpr T back(T g, T x, T) { return select(isnan(x), T(0), g); }
};
struct Any : Op<Truths<Max>, "any", "true where any element is non-zero: any(x, 0)"> {};
struct All : Op<Truths<Min>, "all", "true where all elements are non-zero: all(x)"> {};

// Those with a function of their own, name(x, dim, keepdim).
using Named = List<NanSum, Any, All, LogSumExp, LogMeanExp>;

template <class R>
concept Differentiable = requires {
  &R::template back<double>;
};

}  // namespace volta::reducers

namespace volta {

using Reducers =
    Concat<reducers::Named, List<reducers::Sum, reducers::Mean, reducers::Prod, reducers::Max, reducers::Min,
                                 reducers::FirstMax, reducers::FirstMin, reducers::CountNonzero, reducers::SumSquares,
                                 reducers::SumAbs, reducers::SumPowers, reducers::Var>>;
using Scans = List<reducers::Sum, reducers::Prod, reducers::LastMax, reducers::LastMin, reducers::LogSumExp>;

// The members of a reducer R, with what they do not want left out.
template <class R> struct Reducing {
  template <class T> using State = typename R::template State<T>;

  template <class T> [[gnu::always_inline]] VOLTA_HD static constexpr State<T> lift(T x, int64_t index, double p) {
    if constexpr (R::indexed) return R::lift(x, index);
    else if constexpr (requires { R::lift(x, x); }) return R::lift(x, T(p));
    else return R::lift(x);
  }
  template <class T>
  [[gnu::always_inline]] VOLTA_HD static constexpr State<T> next(State<T> s, T x, int64_t index, double p) {
    if constexpr (requires { R::next(s, x, index); }) return R::next(s, x, index);
    else return R::merge(s, lift(x, index, p));
  }
  template <class T> [[gnu::always_inline]] VOLTA_HD static constexpr auto finish(State<T> s, double n, double p) {
    if constexpr (requires { R::finish(s, n, p); }) return R::finish(s, n, p);
    else if constexpr (requires { R::finish(s, T(n)); }) return R::finish(s, T(n));
    else return R::finish(s);
  }
};

}  // namespace volta

// Reductions as formulas: what each carries, takes in, merges and ends with.
#pragma once
#include <limits>

#include <volta/scalar.h>

namespace volta::cuda::folds {

// T is the type elements are read as, State what a thread carries, Result what comes out.
template <class T> struct Sum {
  using Element = T;
  using State = T;
  using Result = T;
  static constexpr bool indexed = false;
  __device__ static State start() { return T(0); }
  __device__ static State take(State s, T x, int64_t, double) { return s + x; }
  __device__ static State merge(State a, State b) { return a + b; }
  __device__ static Result finish(State s, double, double) { return s; }
};
template <class T> struct Mean : Sum<T> {
  __device__ static T finish(T s, double count, double) { return s / T(count); }
};
template <class T> struct NanSum : Sum<T> {
  __device__ static T take(T s, T x, int64_t, double) { return x == x ? s + x : s; }
};
template <class T> struct SumSquares : Sum<T> {
  __device__ static T take(T s, T x, int64_t, double) { return s + x * x; }
};
template <class T> struct SumAbs : Sum<T> {
  __device__ static T take(T s, T x, int64_t, double) { return s + scalar::abs(x); }
};
template <class T> struct SumPowers : Sum<T> {
  __device__ static T take(T s, T x, int64_t, double p) { return s + scalar::pow(scalar::abs(x), T(p)); }
};
template <class T> struct Prod : Sum<T> {
  __device__ static T start() { return T(1); }
  __device__ static T take(T s, T x, int64_t, double) { return s * x; }
  __device__ static T merge(T a, T b) { return a * b; }
};

template <class T> __device__ constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::lowest();
}
template <class T> __device__ constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::max();
}

template <class T> struct Max : Sum<T> {
  __device__ static T start() { return lowest<T>(); }
  __device__ static T take(T s, T x, int64_t, double) { return scalar::max(s, x); }
  __device__ static T merge(T a, T b) { return scalar::max(a, b); }
};
template <class T> struct Min : Sum<T> {
  __device__ static T start() { return highest<T>(); }
  __device__ static T take(T s, T x, int64_t, double) { return scalar::min(s, x); }
  __device__ static T merge(T a, T b) { return scalar::min(a, b); }
};

// Truth values travel as words, which threads can exchange.
template <class T> struct Any {
  using Element = bool;
  using State = uint32_t;
  using Result = bool;
  static constexpr bool indexed = false;
  __device__ static State start() { return 0; }
  __device__ static State take(State s, bool x, int64_t, double) { return s | uint32_t(x); }
  __device__ static State merge(State a, State b) { return a | b; }
  __device__ static Result finish(State s, double, double) { return s != 0; }
};
template <class T> struct All : Any<T> {
  __device__ static uint32_t start() { return 1; }
  __device__ static uint32_t take(uint32_t s, bool x, int64_t, double) { return s & uint32_t(x); }
  __device__ static uint32_t merge(uint32_t a, uint32_t b) { return a & b; }
};
template <class T> struct Count {
  using Element = bool;
  using State = int64_t;
  using Result = int64_t;
  static constexpr bool indexed = false;
  __device__ static State start() { return 0; }
  __device__ static State take(State s, bool x, int64_t, double) { return s + int64_t(x); }
  __device__ static State merge(State a, State b) { return a + b; }
  __device__ static Result finish(State s, double, double) { return s; }
};

template <class T> struct Place {
  T value;
  int64_t index;
};

// The best element and where it first stands; a NaN is better than any number.
template <class T, bool Largest> struct Best {
  using Element = T;
  using State = Place<T>;
  using Result = T;
  static constexpr bool indexed = true;
  __device__ static bool better(T x, T than) { return (Largest ? x > than : x < than) | ((x != x) & (than == than)); }
  __device__ static State start() {
    return {Largest ? lowest<T>() : highest<T>(), std::numeric_limits<int64_t>::max()};
  }
  __device__ static State take(State s, T x, int64_t i, double) { return merge(s, State{x, i}); }
  __device__ static State merge(State a, State b) {
    if (better(b.value, a.value)) return b;
    return b.index < a.index && !better(a.value, b.value) ? b : a;
  }
  __device__ static Result finish(State s, double, double) { return s.value; }
};
template <class T> using ArgMax = Best<T, true>;
template <class T> using ArgMin = Best<T, false>;

template <class T> struct Moments { T count, mean, squares; };

// Count, mean and the sum of squared deviations, merged by Chan's formula.
template <class T> struct Variance {
  using Element = T;
  using State = Moments<T>;
  using Result = T;
  static constexpr bool indexed = false;
  __device__ static State start() { return {0, 0, 0}; }
  __device__ static State take(State s, T x, int64_t, double) {
    const T count = s.count + T(1), delta = x - s.mean, mean = s.mean + delta / count;
    return {count, mean, s.squares + delta * (x - mean)};
  }
  __device__ static State merge(State a, State b) {
    const T total = a.count + b.count, delta = b.mean - a.mean, share = total > T(0) ? b.count / total : T(0);
    return {total, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
  }
  __device__ static Result finish(State s, double count, double correction) {
    const double freedom = count - correction;
    return s.squares / T(freedom > 0 ? freedom : 0);
  }
};

template <class T> struct Exponentials { T top, sum; };

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x).
template <class T> struct LogSumExp {
  using Element = T;
  using State = Exponentials<T>;
  using Result = T;
  static constexpr bool indexed = false;
  __device__ static T shift(T top) { return scalar::isfinite(top) ? top : T(0); }
  __device__ static T scale(T from, T to) { return from == to ? T(1) : scalar::exp(from - to); }
  __device__ static State start() { return {lowest<T>(), T(0)}; }
  __device__ static State take(State s, T x, int64_t, double) {
    const T top = scalar::max(s.top, x);
    return {top, s.sum * scale(s.top, top) + scalar::exp(x - shift(top))};
  }
  __device__ static State merge(State a, State b) {
    const T top = scalar::max(a.top, b.top);
    return {top, a.sum * scale(a.top, top) + b.sum * scale(b.top, top)};
  }
  __device__ static Result finish(State s, double, double) { return scalar::log(s.sum) + shift(s.top); }
};

}  // namespace volta::cuda::folds

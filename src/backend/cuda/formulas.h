// Reductions as formulas, for folds, scans and softmax: where a state starts, what an element is as a state, how states
// merge, and what comes out; and the teams of threads that merge what each has found.
#pragma once
#include <limits>

#include <volta/scalar.h>

#include "backend/cuda/geometry.h"

namespace volta::cuda {
namespace folds {

// Elements are read as E, threads carry S, and R comes out. `lift` may want the element's position and the call's
// parameter, `finish` the number of elements and the parameter.
template <class E, class S = E, class R = S> struct Formula {
  using Element = E;
  using State = S;
  static constexpr bool indexed = false;
  __device__ static S lift(E x, int64_t, double) { return S(x); }
  __device__ static R finish(S s, double, double) { return R(s); }
};

template <class T> struct Sum : Formula<T> {
  __device__ static T start() { return T(0); }
  __device__ static T merge(T a, T b) { return a + b; }
};
template <class T> struct Mean : Sum<T> {
  __device__ static T finish(T s, double count, double) { return s / T(count); }
};
template <class T> struct NanSum : Sum<T> {
  __device__ static T lift(T x, int64_t, double) { return x == x ? x : T(0); }
};
template <class T> struct SumSquares : Sum<T> {
  __device__ static T lift(T x, int64_t, double) { return x * x; }
};
template <class T> struct SumAbs : Sum<T> {
  __device__ static T lift(T x, int64_t, double) { return scalar::abs(x); }
};
template <class T> struct SumPowers : Sum<T> {
  __device__ static T lift(T x, int64_t, double p) { return scalar::pow(scalar::abs(x), T(p)); }
};
template <class T> struct Prod : Formula<T> {
  __device__ static T start() { return T(1); }
  __device__ static T merge(T a, T b) { return a * b; }
};

// What every number is better than.
template <class T, bool Largest> __device__ constexpr T worst() {
  using Limits = std::numeric_limits<T>;
  if (Limits::has_infinity) return Largest ? -Limits::infinity() : Limits::infinity();
  return Largest ? Limits::lowest() : Limits::max();
}
template <class T, bool Largest> struct Extreme : Formula<T> {
  __device__ static T start() { return worst<T, Largest>(); }
  __device__ static T merge(T a, T b) { return Largest ? scalar::max(a, b) : scalar::min(a, b); }
};
template <class T> using Max = Extreme<T, true>;
template <class T> using Min = Extreme<T, false>;

// Truth values travel as words, which threads can exchange.
template <bool Every> struct Truth : Formula<bool, uint32_t, bool> {
  __device__ static uint32_t start() { return Every; }
  __device__ static uint32_t merge(uint32_t a, uint32_t b) { return Every ? a & b : a | b; }
};
struct Count : Formula<bool, int64_t> {
  __device__ static int64_t start() { return 0; }
  __device__ static int64_t merge(int64_t a, int64_t b) { return a + b; }
};

template <class T> struct Found {
  T value;
  int64_t index;
};

// The best element and where it first stands (`Last`: last stands); a NaN is better than any number.
template <class T, bool Largest, bool Last = false> struct Best : Formula<T, Found<T>, T> {
  using State = Found<T>;
  static constexpr bool indexed = true;
  __device__ static bool better(T x, T than) { return (Largest ? x > than : x < than) | ((x != x) & (than == than)); }
  __device__ static State start() { return {worst<T, Largest>(), Last ? -1 : std::numeric_limits<int64_t>::max()}; }
  __device__ static State lift(T x, int64_t i, double) { return {x, i}; }
  __device__ static State merge(State a, State b) {
    if (better(b.value, a.value)) return b;
    const bool preferred = Last ? b.index > a.index : b.index < a.index;
    return preferred && !better(a.value, b.value) ? b : a;
  }
  __device__ static T finish(State s, double, double) { return s.value; }
};
template <class T> using ArgMax = Best<T, true>;
template <class T> using ArgMin = Best<T, false>;

template <class T> struct Moments { T count, mean, squares; };

// Count, mean and the sum of squared deviations, merged by Chan's formula.
template <class T> struct Variance : Formula<T, Moments<T>, T> {
  using State = Moments<T>;
  __device__ static State start() { return {0, 0, 0}; }
  __device__ static State lift(T x, int64_t, double) { return {1, x, 0}; }
  __device__ static State merge(State a, State b) {
    const T total = a.count + b.count, delta = b.mean - a.mean, share = total > T(0) ? b.count / total : T(0);
    return {total, a.mean + delta * share, a.squares + b.squares + (delta * share) * (delta * a.count)};
  }
  __device__ static T finish(State s, double count, double correction) {
    const double freedom = count - correction;
    return s.squares / T(freedom > 0 ? freedom : 0);
  }
};

template <class T> struct Exponentials { T top, sum; };

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x).
template <class T> struct LogSumExp : Formula<T, Exponentials<T>, T> {
  using State = Exponentials<T>;
  __device__ static T shift(T top) { return scalar::isfinite(top) ? top : T(0); }
  __device__ static T scale(T from, T to) { return from == to ? T(1) : scalar::exp(from - to); }
  __device__ static State start() { return {worst<T, true>(), T(0)}; }
  __device__ static State lift(T x, int64_t, double) { return {x, scalar::isfinite(x) ? T(1) : scalar::max(x, T(0))}; }
  __device__ static State merge(State a, State b) {
    const T top = scalar::max(a.top, b.top);
    return {top, a.sum * scale(a.top, top) + b.sum * scale(b.top, top)};
  }
  __device__ static T finish(State s, double, double) { return scalar::log(s.sum) + shift(s.top); }
};

}  // namespace folds

// A block of x by y threads. Along rows, the threads of equal y are a team, so that neighbouring threads read
// neighbouring elements of a row; across rows, the threads of equal x are, and neighbouring threads read
// neighbouring rows.
struct Team {
  bool across;
  __device__ int row() const { return across ? int(threadIdx.x) : int(threadIdx.y); }
  __device__ int rank() const { return across ? int(threadIdx.y) : int(threadIdx.x); }
  __device__ int size() const { return across ? int(blockDim.y) : int(blockDim.x); }
  __device__ int rows() const { return across ? int(blockDim.x) : int(blockDim.y); }
};

// What another thread of the warp has for x: `shuffle` exchanges words.
template <class T, class Shuffle> __device__ inline T shuffled(const T& x, Shuffle shuffle) {
  static_assert(sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &x, sizeof(T));
#pragma unroll
  for (uint32_t& word : words) word = shuffle(word);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

// The merged state of every `width` neighbouring threads, for all of them.
template <class F> __device__ typename F::State warp_merge(typename F::State s, int width) {
  for (int half = width / 2; half > 0; half /= 2)
    s = F::merge(s, shuffled(s, [=](uint32_t word) { return __shfl_down_sync(~0u, word, half, width); }));
  return shuffled(s, [=](uint32_t word) { return __shfl_sync(~0u, word, 0, width); });
}

// The merged state of every team, for all its members. All threads of the block call this; teams are powers of two.
template <class F> __device__ typename F::State team_merge(const Team& team, typename F::State s) {
  __shared__ typename F::State shared[threads];
  const int me = int(threadIdx.y * blockDim.x + threadIdx.x), warps = int(blockDim.x) / 32;
  if (!team.across) s = warp_merge<F>(s, ::min(team.size(), 32));
  if (!team.across && warps <= 1) return s;
  __syncthreads();  // an earlier merge may still be read
  if (team.across) {
    shared[me] = s;
    for (int half = team.size() / 2; half > 0; half /= 2) {
      __syncthreads();
      if (team.rank() < half) shared[me] = s = F::merge(s, shared[me + half * int(blockDim.x)]);
    }
    __syncthreads();
    return shared[team.row()];
  }
  if (me % 32 == 0) shared[me / 32] = s;
  __syncthreads();
  return warp_merge<F>(shared[me / 32 / warps * warps + me % warps], warps);
}

}  // namespace volta::cuda

// Reductions as formulas, for folds, scans and softmax: where a state starts, what an element is as a state, how states
// merge, and what comes out; and the teams of threads that merge what each has found.
#pragma once
#include <cub/util_ptx.cuh>

#include <limits>

#include <volta/scalar.h>

#include "backend/cuda/geometry.h"

namespace volta::cuda {
namespace folds {

// Elements are read as E and threads carry S, unless a formula says otherwise. `lift` may want the element's position
// and the call's parameter, `finish` the number of elements and the parameter.
template <class S, class E = S> struct Formula {
  using Element = E;
  using State = S;
  static constexpr bool indexed = false;
  __device__ static S lift(E x, int64_t, double) { return S(x); }
  __device__ static S finish(S s, double, double) { return s; }
};

template <class T, class E = T> struct Sum : Formula<T, E> {
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
template <class T, bool Largest, class E = T> struct Extreme : Formula<T, E> {
  __device__ static T start() { return worst<T, Largest>(); }
  __device__ static T merge(T a, T b) { return Largest ? scalar::max(a, b) : scalar::min(a, b); }
};

// Truth values travel as words, which threads can exchange.
using Any = Extreme<uint32_t, true, bool>;
using All = Extreme<uint32_t, false, bool>;
using Count = Sum<int64_t, bool>;

// The best element and where it first stands (`Last`: last stands); a NaN is better than any number.
template <class T, bool Largest, bool Last = false> struct Best : Formula<T> {
  struct State {
    T value;
    int64_t index;
  };
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

// Count, mean and the sum of squared deviations, merged by Chan's formula.
template <class T> struct Variance : Formula<T> {
  struct State {
    T count, mean, squares;
  };
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

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x).
template <class T> struct LogSumExp : Formula<T> {
  struct State {
    T top, sum;
  };
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

// The merged state of every `width` neighbouring threads, for all of them; of what comes from beyond them, nothing
// reaches the first.
template <class F> __device__ typename F::State warp_merge(typename F::State s, int width) {
  for (int half = width / 2; half > 0; half /= 2) s = F::merge(s, cub::ShuffleDown<32>(s, half, 31, ~0u));
  const int lane = int(threadIdx.y * blockDim.x + threadIdx.x) % 32;
  return cub::ShuffleIndex<32>(s, lane - lane % width, ~0u);
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

// Reducers as the kernels of folds, scans and softmax take them, and the teams of threads that merge what each has found.
#pragma once
#include <cub/util_ptx.cuh>

#include "backend/cuda/geometry.h"
#include "math/reducers.h"

namespace volta::cuda {
// A reducer R of elements that are read as E and taken in as T.
template <class R, class T, class E = T> struct Formula {
  using Element = E;
  using State = typename R::template State<T>;
  static constexpr bool indexed = R::indexed;
  __device__ static State start() { return R::template start<T>(); }
  __device__ static State lift(E x, int64_t index, double p) { return Reducing<R>::lift(T(x), index, p); }
  __device__ static State merge(State a, State b) { return R::merge(a, b); }
  __device__ static auto finish(State s, double count, double p) {
    return Reducing<R>::template finish<T>(s, count, p);
  }
};

// That of R for numbers of type T: reals if it takes nothing else; signed integers add and multiply as unsigned ones, as
// both wrap around. Truth values travel as words, which threads can exchange.
template <class R, class T> struct FormulaOf {
  using Elements = reducers::Elements;
  static constexpr bool as_they_are = std::is_floating_point_v<T> || R::elements == Elements::ordered;
  using Number = std::conditional_t<R::elements == Elements::real, float, uint64_t>;
  using type = std::conditional_t<R::elements == Elements::truth, Formula<R, uint32_t, bool>,
                                  Formula<R, std::conditional_t<as_they_are, T, Number>>>;
};

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

// Teams: the threads of a block that work on one row together, and how they merge what each has found.
#pragma once
#include "backend/cuda/context.h"

namespace volta::cuda {

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

template <class T> __device__ inline T shuffle_down(const T& x, int by, int width) {
  static_assert(sizeof(T) % 4 == 0);
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &x, sizeof(T));
#pragma unroll
  for (size_t i = 0; i < sizeof(T) / 4; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], by, width);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

// All threads of the block call this; the member of rank 0 of each team gets the merged state. Teams are powers of two.
template <class F> __device__ typename F::State team_merge(const Team& team, typename F::State s) {
  using State = typename F::State;
  alignas(16) __shared__ unsigned char room[threads * sizeof(State)];
  State* shared = reinterpret_cast<State*>(room);
  const int size = team.size(), rank = team.rank(), within = team.across ? 1 : ::min(size, 32);  // a warp
  const int me = int(threadIdx.y * blockDim.x + threadIdx.x), step = team.across ? int(blockDim.x) : 1;
  if (size > within) {
    __syncthreads();  // an earlier merge may still be read
    shared[me] = s;
    for (int half = size / 2; half >= within; half /= 2) {
      __syncthreads();
      if (rank < half) shared[me] = s = F::merge(s, shared[me + half * step]);
    }
    __syncthreads();
  }
  for (int half = within / 2; half > 0; half /= 2) s = F::merge(s, shuffle_down(s, half, within));
  return s;
}

// The same, with the result for every member.
template <class F> __device__ typename F::State team_merge_all(const Team& team, typename F::State s) {
  using State = typename F::State;
  alignas(16) __shared__ unsigned char result[threads * sizeof(State)];
  s = team_merge<F>(team, s);
  State* shared = reinterpret_cast<State*>(result);
  __syncthreads();
  if (team.rank() == 0) shared[team.row()] = s;
  __syncthreads();
  return shared[team.row()];
}

}  // namespace volta::cuda

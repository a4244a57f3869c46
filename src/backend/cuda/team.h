// Teams: the threads of a block that work on one row together, and how they merge what each has found.
#pragma once
#include <cstdint>
#include <cstring>

namespace volta::cuda {

inline constexpr int team_threads = 256;

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
template <class State, class Merge> __device__ State team_merge(const Team& team, State s, Merge merge) {
  alignas(16) __shared__ unsigned char room[team_threads * sizeof(State)];
  State* shared = reinterpret_cast<State*>(room);
  const int size = team.size(), rank = team.rank();
  const int me = int(threadIdx.y * blockDim.x + threadIdx.x), step = team.across ? int(blockDim.x) : 1;
  const int smallest = team.across ? 1 : 32;
  if (size > smallest) {
    __syncthreads();  // an earlier merge may still be read
    shared[me] = s;
    for (int half = size / 2; half >= smallest; half /= 2) {
      __syncthreads();
      if (rank < half) shared[me] = s = merge(s, shared[me + half * step]);
    }
    __syncthreads();
  }
  if (!team.across)
    for (int half = (size < 32 ? size : 32) / 2; half > 0; half /= 2)
      s = merge(s, shuffle_down(s, half, size < 32 ? size : 32));
  return s;
}

// The same, with the result for every member.
template <class State, class Merge> __device__ State team_merge_all(const Team& team, State s, Merge merge) {
  alignas(16) __shared__ unsigned char result[team_threads * sizeof(State)];
  s = team_merge(team, s, merge);
  State* shared = reinterpret_cast<State*>(result);
  __syncthreads();
  if (team.rank() == 0) shared[team.row()] = s;
  __syncthreads();
  return shared[team.row()];
}

}  // namespace volta::cuda

// Planes of up to three axes: what kernels over them read and write, and the element of a thread.
#pragma once
#include "backend/cuda/geometry.h"
#include "backend/pool.h"

namespace volta::cuda {

struct Planes {
  Divisor by[3];   // splits the number of an element into its places along the axes, the last first, and its plane
  uint32_t count;  // elements that are written
  int64_t in_plane, out_plane;  // elements of what is seen, and of the outputs
  const void* from;
  void* to;
};

// The element of this thread: its plane, and its place along the axes.
struct Mine {
  bool valid;
  int64_t plane;
  int at[3];
  __device__ explicit Mine(const Planes& a) {
    uint32_t n = blockIdx.x * threads + threadIdx.x;
    valid = n < a.count;
    for (int i = 2; i >= 0; --i) {
      const uint32_t outer = a.by[2 - i].divide(n);
      at[i] = int(n - outer * a.by[2 - i].size);
      n = outer;
    }
    plane = n;
  }
};

// Whether a plane's elements, and its sizes twice over, are counted in 32 bits.
inline bool counts_planes(const PoolCall& call) {
  int64_t in = 1, out = 1;
  for (const PoolAxis& a : call.axis) {
    if (a.in >= chunk_limit / 2 || a.out >= chunk_limit / 2) return false;
    in *= a.in, out *= a.out;
    if (in >= chunk_limit || out >= chunk_limit) return false;
  }
  return true;
}

// Calls f(Planes, number of the first) for as many planes at a time as are counted in 32 bits.
template <class F> void for_planes(const PoolCall& call, F f) {
  const bool back = call.pool == Pool::max_back || call.pool == Pool::sum_back;
  Planes p{};
  p.in_plane = p.out_plane = 1;
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& axis = call.axis[i];
    p.by[2 - i] = Divisor(uint32_t(back ? axis.in : axis.out));
    p.in_plane *= axis.in, p.out_plane *= axis.out;
  }
  const int64_t written = back ? p.in_plane : p.out_plane, seen = back ? p.out_plane : p.in_plane;
  const int64_t together = std::max<int64_t>(1, chunk_limit / written), size = size_of(call.in.dtype);
  for (int64_t first = 0; first < call.planes; first += together) {
    p.count = uint32_t(std::min(together, call.planes - first) * written);
    p.from = static_cast<const char*>(call.in.data) + first * seen * size;
    p.to = static_cast<char*>(call.out.data) + first * written * size;
    f(p, first);
  }
}

}  // namespace volta::cuda

// Planes of up to three axes, with channels closest together or one: what kernels over them read and write, and the elements
// of a thread.
#pragma once
#include "backend/cuda/geometry.h"
#include "backend/pool.h"

namespace volta::cuda {

struct Planes {
  Divisor by_packs, by[3];  // split the number of a pack: its channels, its places along the axes, and its plane
  uint32_t count;           // packs that are written
  int64_t channels, in_plane, out_plane;  // planes: places of what is seen, and of the outputs
  const void* from;
  void* to;
};

// The V elements of this thread: their plane, their place along the axes, and (with Channels) the channel of the first.
template <int V = 1, bool Channels = true> struct Mine {
  bool valid;
  int64_t plane, channel;
  int at[3];
  __device__ explicit Mine(const Planes& a) {
    uint32_t n = blockIdx.x * threads + threadIdx.x;
    valid = n < a.count;
    const auto split = [&](const Divisor& by) {
      const uint32_t outer = by.divide(n), inner = n - outer * by.size;
      n = outer;
      return int(inner);
    };
    channel = Channels ? int64_t(split(a.by_packs)) * V : 0;
    for (int i = 2; i >= 0; --i) at[i] = split(a.by[i]);
    plane = n;
  }
};

// Whether a plane's elements, and its sizes twice over, are counted in 32 bits.
inline bool counts_planes(const PoolShape& call) {
  int64_t in = call.channels, out = call.channels;
  for (const PoolAxis& a : call.axis) {
    if (a.in >= chunk_limit / 2 || a.out >= chunk_limit / 2) return false;
    in *= a.in, out *= a.out;
    if (in >= chunk_limit || out >= chunk_limit) return false;
  }
  return true;
}

// What a call of either direction reads and writes beside its indices.
struct PoolData {
  const Arg &from, &to;
  bool back;
};
inline PoolData data_of(const PoolCall& call) { return {call.in, call.out, false}; }
inline PoolData data_of(const PoolBackwardCall& call) { return {call.g, call.dx, true}; }

// Calls f(Planes, number of the first) for as many planes at a time as are counted in 32 bits.
template <class Call, class F> void for_planes(const Call& call, int64_t pack_size, F f) {
  const auto [source, target, back] = data_of(call);
  Planes p{};
  p.channels = call.channels, p.in_plane = p.out_plane = 1;
  p.by_packs = Divisor(uint32_t(call.channels / pack_size));
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& axis = call.axis[i];
    p.by[i] = Divisor(uint32_t(back ? axis.in : axis.out));
    p.in_plane *= axis.in, p.out_plane *= axis.out;
  }
  const int64_t in = p.in_plane * p.channels, out = p.out_plane * p.channels;
  const int64_t written = back ? in : out, seen = back ? out : in;
  const int64_t together = std::max<int64_t>(1, chunk_limit / written), size = size_of(source.dtype);
  for (int64_t first = 0; first < call.planes; first += together) {
    p.count = uint32_t(std::min(together, call.planes - first) * written / pack_size);
    p.from = static_cast<const char*>(source.data) + first * seen * size;
    p.to = static_cast<char*>(target.data) + first * written * size;
    f(p, first);
  }
}

}  // namespace volta::cuda

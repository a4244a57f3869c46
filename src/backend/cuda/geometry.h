// Strided geometry: how host code describes operands, what kernels take by value, and the kernel for one element at a
// time. Divisions are by magic numbers.
#pragma once
#include <array>
#include <bit>

#include "backend/cuda/context.h"
#include "core/walk.h"

namespace volta::cuda {

// n / size for n below 2^31 by one multiplication (Granlund and Montgomery).
struct Divisor {
  uint32_t size = 1, magic = 1, shift = 0;
  Divisor() = default;
  explicit Divisor(uint32_t n) : size(n), shift(uint32_t(std::bit_width(n - 1))) {
    magic = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - n)) / n + 1);
  }
  VOLTA_HD uint32_t divide(uint32_t n) const { return (uint32_t((uint64_t(n) * magic) >> 32) + n) >> shift; }
};

// The axes of a Walk, innermost first, strides in bytes, and where its operands begin. An operand without memory starts
// at null: with strides of its own its "addresses" count.
template <int N> struct Strided {
  uint32_t n = 1;
  int rank = 1;
  Divisor axis[Shape::max_rank];
  int64_t stride[Shape::max_rank][N];
  char* data[N] = {};
};

template <int N> using Addresses = std::array<const void*, size_t(N)>;

template <int N> Strided<N> strided(const Walk<N>& walk, const Addresses<N>& data) {
  Strided<N> s;
  s.rank = walk.rank;
  s.n = uint32_t(walk.rows() * walk.size[0]);
  for (int a = 0; a < walk.rank; ++a) {
    s.axis[a] = Divisor(uint32_t(walk.size[a]));
    std::copy(walk.stride[a], walk.stride[a] + N, s.stride[a]);
  }
  for (int k = 0; k < N; ++k) s.data[k] = static_cast<char*>(const_cast<void*>(data[size_t(k)]));
  return s;
}

inline constexpr int64_t chunk_limit = int64_t(1) << 30;  // elements a kernel counts in 32 bits

// Calls f(Strided<N>) for pieces of the walk of at most `limit` elements.
template <int N, class F>
void in_chunks(const Walk<N>& walk, const Addresses<N>& data, F&& f, int64_t limit = chunk_limit) {
  const int64_t n = walk.rows() * walk.size[0];
  if (n <= limit) return f(strided(walk, data));
  const int last = walk.rank - 1;
  const int64_t inner = n / walk.size[last], step = std::max<int64_t>(1, limit / inner);
  for (int64_t begin = 0; begin < walk.size[last]; begin += step) {
    Walk<N> piece = walk;
    piece.size[last] = std::min(step, walk.size[last] - begin);
    if (piece.size[last] == 1 && last > 0) piece.rank = last;
    Addresses<N> start;
    for (size_t k = 0; k < size_t(N); ++k)
      start[k] = reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(data[k]) + begin * walk.stride[last][k]);
    in_chunks(piece, start, f, limit);
  }
}

// What an operand steps by along an axis, in bytes; one without memory stands still.
inline int64_t step_of(const Arg& x, int axis, int rank) {
  return x.data && x.layout && axis < rank ? broadcast_stride(*x.layout, axis, rank) * size_of(x.dtype) : 0;
}

// The walk of operands over a shape they broadcast to, without the axes whose bits `left_out` has.
template <int N>
Walk<N> walk_of(const Shape& shape, const std::array<const Arg*, size_t(N)>& operands, uint32_t left_out = 0) {
  Walk<N> walk;
  for (int i = 0; i < shape.size(); ++i) {
    int64_t strides[N];
    for (size_t k = 0; k < size_t(N); ++k) strides[k] = step_of(*operands[k], i, shape.size());
    if (!(left_out >> i & 1)) walk.add_axis(shape[i], strides);
  }
  walk.finish();
  return walk;
}

// The walk's operands hold elements of `size` bytes; those that do not count (`moved` false) must stand still along the
// innermost axis, and keep their strides. Merges neighbours along that axis into words of at most 16 bytes, of which
// `step` bytes are a multiple, and returns the size of a word.
template <int N> int64_t widen_words(Walk<N>& walk, int64_t size, const Addresses<N>& data,
                                     const std::array<bool, size_t(N)>& moved, int64_t step = 0) {
  uintptr_t lowest = uintptr_t(walk.size[0] * size) | uintptr_t(step);  // its low bits: what all are multiples of
  for (size_t k = 0; k < size_t(N); ++k) {
    if (walk.stride[0][k] != (moved[k] ? size : 0)) return size;
    if (!moved[k]) continue;
    lowest |= reinterpret_cast<uintptr_t>(data[k]);
    for (int i = 1; i < walk.rank; ++i) lowest |= uintptr_t(walk.stride[i][k]);
  }
  int64_t word = 16;
  while (word > size && lowest % uintptr_t(word) != 0) word /= 2;
  walk.size[0] = walk.size[0] * size / word;
  for (size_t k = 0; k < size_t(N); ++k)
    if (moved[k]) walk.stride[0][k] = word;
  return word;
}

// f(TypeTag<W>{}) with an unsigned type of `size` bytes.
template <class F> void with_word(int64_t size, F f) {
  switch (size) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 4: return f(TypeTag<uint32_t>{});
    case 8: return f(TypeTag<uint64_t>{});
    default: return f(TypeTag<uint4>{});
  }
}

#ifdef __CUDACC__

// Byte offsets of the first K operands at U elements.
template <int U, int K, int N>
__device__ inline void offsets(const Strided<N>& g, uint32_t (&i)[U], int64_t (&offset)[U][K]) {
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < K; ++k) offset[u][k] = 0;
#pragma unroll 1
  for (int a = 0; a + 1 < g.rank; ++a)
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t outer = g.axis[a].divide(i[u]), at = i[u] - outer * g.axis[a].size;
#pragma unroll
      for (int k = 0; k < K; ++k) offset[u][k] += int64_t(at) * g.stride[a][k];
      i[u] = outer;
    }
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < K; ++k) offset[u][k] += int64_t(i[u]) * g.stride[g.rank - 1][k];
}

// The addresses of the first K operands at U elements.
template <int U, int K> struct Places {
  char* p[U][K];
  template <int N> __device__ Places(const Strided<N>& g, uint32_t (&index)[U]) {
    int64_t offset[U][K];
    offsets(g, index, offset);
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) p[u][k] = g.data[k] + offset[u][k];
  }
};
template <int N> __device__ inline Places<1, N> place(const Strided<N>& g, uint32_t i) {
  uint32_t index[] = {i};
  return Places<1, N>(g, index);
}

// The elements of one thread: U of them, `threads` apart. Beyond the end it is the first of all.
template <int U> struct Share {
  uint32_t index[U];
  int count;
  __device__ explicit Share(uint32_t n) {
    const uint32_t first = blockIdx.x * (threads * U) + threadIdx.x;
    count = first < n ? int((n - first + threads - 1) / threads) : 0;
#pragma unroll
    for (int u = 0; u < U; ++u) index[u] = u < count ? first + u * threads : 0;
  }
};

inline constexpr int each_per_thread = 4;

// All loads of a thread are on their way before the first store.
template <int N, class F> __global__ __launch_bounds__(threads) void each_element(const __grid_constant__ Strided<N> g,
                                                                                  const __grid_constant__ F f) {
  constexpr int U = each_per_thread;
  Share<U> share(g.n);
  if (share.count == 0) return;
  const Places<U, N> places(g, share.index);
  decltype(f.load(places.p[0])) held[U];
#pragma unroll
  for (int u = 0; u < U; ++u) held[u] = f.load(places.p[u]);
#pragma unroll
  for (int u = 0; u < U; ++u)
    if (u < share.count) f.store(places.p[u], held[u]);
}

// Runs f.store(p, f.load(p)) with the addresses p of every element of the walk. Loads may be repeated.
template <int N, class F>
void each(const Context& c, const char* op, const Walk<N>& walk, const Addresses<N>& data, const F& f) {
  in_chunks(walk, data, [&](const Strided<N>& g) {
    launch(c, op, &each_element<N, F>, blocks_for(g.n, threads * each_per_thread), threads, g, f);
  });
}

#endif

}  // namespace volta::cuda

// Strided geometry as kernels take it: by value, with divisions by magic numbers.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include <volta/dtype.h>

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

// The axes of a Walk, innermost first; strides in bytes.
template <int N> struct Strided {
  uint32_t n = 1;
  int rank = 1;
  Divisor axis[Shape::max_rank];
  int64_t stride[Shape::max_rank][N];
};

template <int N> Strided<N> strided(const Walk<N>& walk) {
  Strided<N> s;
  s.rank = walk.rank;
  s.n = uint32_t(walk.rows() * walk.size[0]);
  for (int a = 0; a < walk.rank; ++a) {
    s.axis[a] = Divisor(uint32_t(walk.size[a]));
    std::copy(walk.stride[a], walk.stride[a] + N, s.stride[a]);
  }
  return s;
}

inline constexpr int64_t chunk_limit = int64_t(1) << 30;  // elements a kernel counts in 32 bits

// Calls f(Strided<N>, byte offsets of its first element) for pieces of the walk of at most `limit` elements.
template <int N, class F> void in_chunks(const Walk<N>& walk, F&& f, const std::array<int64_t, size_t(N)>& base = {},
                                         int64_t limit = chunk_limit) {
  const int64_t n = walk.rows() * walk.size[0];
  if (n <= limit) return f(strided(walk), base);
  const int last = walk.rank - 1;
  const int64_t inner = n / walk.size[last], step = std::max<int64_t>(1, limit / inner);
  for (int64_t begin = 0; begin < walk.size[last]; begin += step) {
    Walk<N> piece = walk;
    piece.size[last] = std::min(step, walk.size[last] - begin);
    if (piece.size[last] == 1 && last > 0) piece.rank = last;
    std::array<int64_t, size_t(N)> start = base;
    for (int k = 0; k < N; ++k) start[size_t(k)] += begin * walk.stride[last][k];
    in_chunks(piece, f, start, limit);
  }
}

}  // namespace volta::cuda

// The kernels of moves and conversions, specialised once per level.
#pragma once
#include <cstddef>

#include "backend/cpu/copy/move.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

// Rows and columns of one tile: 256 bytes each, less for single bytes so that a tile fits the first-level cache.
constexpr int64_t transpose_tile(int64_t size) { return size == 1 ? 128 : 256 / size; }

struct MoveKernels {
  void (*gather)(int64_t n, std::byte* out, const std::byte* in, int64_t in_stride);
  void (*scatter)(int64_t n, std::byte* out, int64_t out_stride, const std::byte* in);
  void (*fill)(int64_t n, std::byte* out, const std::byte* value);
  // One tile of a transposed copy: at most transpose_tile(size) rows and columns.
  void (*tile)(int64_t rows, int64_t cols, std::byte* out, int64_t out_stride, const std::byte* in, int64_t in_stride);
};
template <Isa> const MoveKernels* move_kernels();  // four of them, indexed by log2 of the element size
template <Isa> CastRow cast_kernel(DType to, DType from);

}  // namespace volta::cpu

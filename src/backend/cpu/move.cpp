// Strided moves: picks the loops for this machine and shares the tiles of a transposition among threads.
#include "backend/cpu/move.h"

#include <algorithm>
#include <bit>

#include "backend/cpu/isa.h"
#include "core/parallel.h"

namespace volta::cpu {

static const MoveTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::move_table;
  if (isa() == Isa::v3) return v3::move_table;
#endif
  return baseline::move_table;
}

static const MoveTable& moves() {
  static const MoveTable& chosen = table();
  return chosen;
}

static size_t index_of(int64_t size) { return size_t(std::countr_zero(uint64_t(size))); }

void gather_row(int64_t size, int64_t n, void* out, const void* in, int64_t in_stride) {
  moves().gather[index_of(size)](n, static_cast<std::byte*>(out), static_cast<const std::byte*>(in), in_stride);
}

void scatter_row(int64_t size, int64_t n, void* out, int64_t out_stride, const void* in) {
  moves().scatter[index_of(size)](n, static_cast<std::byte*>(out), out_stride, static_cast<const std::byte*>(in));
}

void fill_row(int64_t size, int64_t n, void* out, const void* value) {
  moves().fill[index_of(size)](n, static_cast<std::byte*>(out), static_cast<const std::byte*>(value));
}

// Tiles follow each other along the output's rows, so a cache line that two tiles share is still there for the second.
void transpose(int64_t size, int64_t rows, int64_t cols, void* out, int64_t out_stride, const void* in,
               int64_t in_stride) {
  constexpr int64_t part_bytes = 1 << 18;  // enough work to be worth handing to another thread
  const int64_t side = transpose_tile(size), down = (rows + side - 1) / side, tiles = down * ((cols + side - 1) / side);
  if (tiles == 0) return;
  const int64_t tiles_per_part = part_bytes / (side * side * size);
  const auto move_tile = moves().tile[index_of(size)];
  auto* to = static_cast<std::byte*>(out);
  const auto* from = static_cast<const std::byte*>(in);
  parallel((tiles + tiles_per_part - 1) / tiles_per_part, [&](int64_t part) {
    const int64_t end = std::min(tiles, (part + 1) * tiles_per_part);
    for (int64_t i = part * tiles_per_part; i < end; i++) {
      const int64_t r = i % down * side, c = i / down * side;
      move_tile(std::min(side, rows - r), std::min(side, cols - c), to + c * out_stride + r * size, out_stride,
                from + r * in_stride + c * size, in_stride);
    }
  });
}

}  // namespace volta::cpu

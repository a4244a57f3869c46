// Products of bf16 by AMX, whose instructions multiply squares of them and add up in f32.
#include <immintrin.h>

#include "backend/cpu/gemm/kernels/part.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// A tile register has 16 rows of 16 pairs of bf16 along k: here depth p of a step goes with depth p + 16. A square is what one
// register holds: 16 rows of A, or 16 columns of B, by 32 depths. Panels are squares [step][16 rows].
constexpr int side = 16, square_depth = 2 * side;
using Words = Vector<uint32_t>;
struct SquareRow {
  Words pairs;
};
constexpr int64_t row_bytes = sizeof(SquareRow);
template <> struct Step<SquareRow> { static constexpr int rows_together = side; };

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {side, side, side, side, side, side, side, side};
};
constexpr TileConfig tile_config;

// The tile registers of this thread: 0 to 3 are the sums of up to 2 x 2 squares, 4 and 5 squares of A, 6 and 7 of B.
struct Tiles {
  Tiles() { _tile_loadconfig(&tile_config); }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

template <int left, int right> [[gnu::always_inline]] inline void store_tiles(float* to, int64_t step) {
  const int64_t bytes = step * int64_t(sizeof(float));
  _tile_stored(0, to, bytes);
  if constexpr (right == 2) _tile_stored(1, to + side, bytes);
  if constexpr (left == 2) _tile_stored(2, to + side * step, bytes);
  if constexpr (left == 2 && right == 2) _tile_stored(3, to + side * step + side, bytes);
}

template <int left, int right> [[gnu::noinline]] void square_kernel(const TileCall<float, SquareRow>& t, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_prefetch(t.c + i * t.c_step, 1);
    if constexpr (right == 2) __builtin_prefetch(t.c + i * t.c_step + side, 1);
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const SquareRow *a = t.a.data, *b = t.b.data;
  for (int64_t p = t.k; p > 0; --p, a += left * side, b += right * side) {
    _tile_loadd(4, a, row_bytes);
    if constexpr (left == 2) _tile_loadd(5, a + side, row_bytes);
    _tile_loadd(6, b, row_bytes);
    if constexpr (right == 2) _tile_loadd(7, b + side, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (right == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (left == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (left == 2 && right == 2) _tile_dpbf16ps(3, 5, 7);
  }
  const bool whole = rows == left * side && t.n == right * side;
  if (whole && !t.add) return store_tiles<left, right>(t.c, t.c_step);
  alignas(64) float sums[left * side * right * side];
  store_tiles<left, right>(sums, right * side);
  if (!whole) return store_ragged(t, sums, rows, right * side);
  for (int i = 0; i < left * side; ++i) {
    for (int j = 0; j < right * side; j += side) {
      float* to = t.c + i * t.c_step + j;
      store<float>(to, load(to) + load(sums + i * right * side + j));
    }
  }
}

// Blocks of A and panels of B that stay in the second cache together.
struct SquareTile {
  using Element = SquareRow;
  static constexpr TileSizes sizes = {2 * 2 * side, 2, 16, 256, 512, 2 * side};
  template <int rows, int vectors> static void kernel(const TileCall<float, SquareRow>& t) {
    square_kernel<(rows + side - 1) / side, vectors>(t, rows);
  }
};

// The bits of n of 16 values, zeros after them. An f32 here is a bf16 that was widened.
[[gnu::always_inline]] inline __mmask16 first(int64_t n) { return __mmask16((1u << smaller(larger(n, 0), side)) - 1); }
[[gnu::always_inline]] inline Words load_first(const bfloat16* from, int64_t n) {
  return __builtin_convertvector(Some<uint16_t, side>(_mm256_maskz_loadu_epi16(first(n), from)), Words);
}
[[gnu::always_inline]] inline Words load_first(const float* from, int64_t n) {
  return Words(_mm512_maskz_loadu_ps(first(n), from)) >> 16;
}

// n rows of A, which are contiguous along the depth.
template <class S> [[gnu::noinline]] void pack_left(SquareRow* to, const S* from, int64_t step, int64_t n, int64_t k) {
  const int64_t rows = ceil_div(n, side) * side;
  for (int64_t p = 0; p < k; p += square_depth, to += rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const S* row = from + i * step + p;
      const int64_t deep = i < n ? k - p : 0;
      to[i].pairs = load_first(row, deep) | load_first(row + side, deep - side) << 16;
    }
  }
}

// n columns of B, whose rows are contiguous.
template <class S> [[gnu::noinline]] void pack_right(SquareRow* to, const S* from, int64_t step, int64_t n, int64_t k) {
  const int64_t columns = ceil_div(n, side) * side;
  for (int64_t p = 0; p < k; p += square_depth, to += columns) {
    for (int64_t i = 0; i < side; ++i) {
      const S *x = from + (p + i) * step, *y = x + side * step;
      for (int64_t j = 0; j < columns; j += side) {
        __builtin_prefetch(x + square_depth * step + j);
        __builtin_prefetch(y + square_depth * step + j);
        const Words upper = load_first(y + j, p + i + side < k ? n - j : 0);
        to[j + i].pairs = load_first(x + j, p + i < k ? n - j : 0) | upper << 16;
      }
    }
  }
}

// A matrix as an operand of multiply(), whose depths are steps; the last one is filled up with zeros.
template <bool left> struct SquareOperand {
  const bfloat16* data;
  int64_t step, depth_step, depth;

  View<SquareRow> panel(SquareRow* to, int64_t i, int64_t n, int64_t, int64_t p, int64_t k) const {
    const bfloat16* from = data + i * step + p * square_depth * depth_step;
    const int64_t deep = smaller(k * square_depth, depth - p * square_depth);
    const int64_t along = left ? depth_step : step, across = left ? step : depth_step;
    if (along == 1) {
      put(to, from, across, n, deep);
    } else {  // put in order first, as f32
      const int64_t length = left ? deep : n, lines = left ? n : deep;
      float* ordered = buffer<float>(Scratch::shared, lines * length);
      pack(PackCall<bfloat16>{ordered, length, length, lines, from, along, across});
      put(to, ordered, length, n, deep);
    }
    return {to, 1, 0};
  }

 private:
  template <class S> static void put(SquareRow* to, const S* from, int64_t line, int64_t n, int64_t deep) {
    if constexpr (left) pack_left(to, from, line, n, deep);
    else pack_right(to, from, line, n, deep);
  }
};

void part(const Gemm& p, const Rectangle& r, Range depth, void* partial) {
  part_of<bfloat16>(
      p, r, depth, partial, [&](const auto& a, const auto& b, float* c, int64_t c_step, bool add, const auto& done) {
        const SquareOperand<true> left = {a.data, a.step, a.depth_step, depth.size};
        const SquareOperand<false> right = {b.data, b.step, b.depth_step, depth.size};
        const Tiles tiles;
        Multiplication<float, SquareOperand<true>, SquareOperand<false>, SquareTile>(left, right, c, c_step)
            .run(r.rows.size, r.columns.size, ceil_div(depth.size, square_depth), add, done);
      });
}

}  // namespace

static constexpr GemmKernels kernels_bf16 = {{2 * side, 2 * side, 2 * side, 128, 128}, sizeof(float), part, nullptr};

}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::GemmKernels& volta::cpu::gemm_bf16<volta::cpu::Isa::VOLTA_ISA>() {
  return VOLTA_ISA::kernels_bf16;
}

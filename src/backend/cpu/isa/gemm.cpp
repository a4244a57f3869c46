// The GEMM of one instruction set: what runs on one thread, as a table of functions.
#include "backend/cpu/gemm_table.h"
#include "backend/cpu/isa/gemm_core.h"
#include "backend/cpu/isa/gemm_integer.h"
#include "backend/cpu/isa/gemm_pack.h"
#include "backend/cpu/isa/gemm_thin.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class S> void part(const GemmPart& g) {
  using T = Compute<S>;
  const Finish<T> finish = {static_cast<const T*>(g.row_bias), static_cast<const T*>(g.column_bias), g.relu};
  core<T>(g.m, g.n, g.k, MatrixOperand<S>(g.a), MatrixOperand<S>(g.b), static_cast<T*>(g.c), g.c_step, g.add,
          g.finish ? &finish : nullptr);
}

// Where core() will look for the panel of rows or columns [i, i + tile) of this block.
template <class S> void pack_panel(const GemmPack& g, int64_t i, int64_t n, int64_t tile, Range depth) {
  using T = Compute<S>;
  const GemmOperand& o = g.operand;
  T* to = static_cast<T*>(const_cast<void*>(o.packed)) + depth.begin * o.extent + (o.origin + i) * depth.size;
  const S* from = static_cast<const S*>(o.data) + i * o.step + depth.begin * o.depth_step;
  pack(PackCall<S>{to, tile, n, depth.size, from, o.step, o.depth_step});
}

template <class S> void pack_a(const GemmPack& g) {
  using T = Compute<S>;
  const Range depth = cut(g.k, blocks_along_k<T>(g.k), g.block);
  const int64_t tiles = ceil_div(g.count, Tile<T>::sizes.rows);
  for (int64_t r = tiles * g.slice / g.slices; r < tiles * (g.slice + 1) / g.slices; ++r) {
    const Range strip = cut(g.count, tiles, r);
    pack_panel<S>(g, strip.begin, strip.size, strip.size, depth);
  }
}

template <class S> void pack_b(const GemmPack& g) {
  using T = Compute<S>;
  const Range depth = cut(g.k, blocks_along_k<T>(g.k), g.block);
  const int64_t tiles = column_tiles<T>(g.count);
  for (int64_t t = tiles * g.slice / g.slices; t < tiles * (g.slice + 1) / g.slices; ++t) {
    const ColumnTile tile = column_tile<T>(g.count, t);
    pack_panel<S>(g, tile.begin, tile.size, tile.padded, depth);
  }
}

template <class S> void load(void* to, const void* from, int64_t stride, int64_t n) {
  Compute<S>* values = static_cast<Compute<S>*>(to);
  const S* stored = static_cast<const S*>(from);
  for (int64_t i = 0; i < n; ++i) values[i] = widen(stored[i * stride]);
}

template <class T, class S> void add_stored(T* row, const S* c, int64_t stride, int64_t n) {
  if (stride == 1) {
    for (int64_t j = 0; j < n; ++j) row[j] += widen(c[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) row[j] += widen(c[j * stride]);
  }
}

template <class T> void add_bias_and_relu(T* row, T row_bias, const T* column_bias, bool relu, int64_t n) {
  for (int64_t j = 0; j < n; ++j) row[j] += row_bias;
  if (column_bias) {
    for (int64_t j = 0; j < n; ++j) row[j] += column_bias[j];
  }
  if (relu) {
    for (int64_t j = 0; j < n; ++j) row[j] = row[j] < T(0) ? T(0) : row[j];
  }
}

template <class S> void finish(const GemmFinish& g) {
  using T = Compute<S>;
  for (int64_t i = 0; i < g.m; ++i) {
    T* row = static_cast<T*>(g.sums) + i * g.sums_step;
    S* c = static_cast<S*>(g.c) + i * g.c_row_stride;
    for (int64_t s = 1; s < g.segments; ++s) {
      for (int64_t j = 0; j < g.n; ++j) row[j] += row[s * g.segment_step + j];
    }
    if (g.add) add_stored(row, c, g.c_column_stride, g.n);
    const T row_bias = g.row_bias ? static_cast<const T*>(g.row_bias)[i] : T(0);
    add_bias_and_relu(row, row_bias, static_cast<const T*>(g.column_bias), g.relu, g.n);
    if constexpr (sizeof(T) == 4) {
      if (g.row_f32) g.row_f32(row, g.n);
    } else {
      if (g.row_f64) g.row_f64(row, g.n);
    }
    if (g.c_column_stride == 1) {
      store_row(c, row, g.n);
    } else {
      for (int64_t j = 0; j < g.n; ++j) narrow(c[j * g.c_column_stride], row[j]);
    }
  }
}

template <class S> constexpr GemmKernels kernels() {
  using T = Compute<S>;
  constexpr TileSizes s = Tile<T>::sizes;
  return {{s.rows, s.vectors * lanes<T>, lanes<T>, s.block_k, s.block_m, s.block_n},
          part<S>,
          pack_a<S>,
          pack_b<S>,
          thin<S>,
          load<S>,
          finish<S>};
}

}  // namespace

const GemmTable gemm_table = {
    {kernels<float16>(), kernels<bfloat16>(), kernels<float>(), kernels<double>()},
    {nullptr, nullptr, nullptr, nullptr, integer_part<int8_t>, integer_part<int16_t>, integer_part<int32_t>,
     integer_part<int64_t>, integer_part<uint8_t>, integer_part<uint16_t>, integer_part<uint32_t>,
     integer_part<uint64_t>, integer_part<bool>},
};

}  // namespace volta::cpu::VOLTA_ISA

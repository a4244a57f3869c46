// The register tile of the packed GEMM: its sizes for each instruction set, and the table of micro-kernels.
#pragma once
#include <cstdint>

namespace volta::cpu::VOLTA_ISA {

// rows x vectors accumulators stay in registers; block_k x one panel of B fits the first cache, block_m x block_k of A
// the second; block_n bounds the panels of B that a thread keeps.
struct TileSizes {
  int rows, vectors;
  int64_t block_k, block_m, block_n;
};

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
inline constexpr TileSizes sizes_f32 = {12, 2, 256, 144, 1024}, sizes_f64 = {12, 2, 256, 96, 1024};
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
inline constexpr TileSizes sizes_f32 = {6, 2, 256, 144, 1024}, sizes_f64 = {6, 2, 256, 72, 1024};
#elif defined(__aarch64__)
inline constexpr int vector_bytes = 16;
inline constexpr TileSizes sizes_f32 = {8, 3, 512, 128, 1032}, sizes_f64 = {6, 4, 256, 120, 1032};
#else
inline constexpr int vector_bytes = 16;
inline constexpr TileSizes sizes_f32 = {4, 2, 256, 128, 1024}, sizes_f64 = {4, 2, 256, 64, 1024};
#endif

// Vector lives in a register; Loose is the same in memory, at any address; Quad is 16 bytes at any address.
template <class T> struct Tile;
template <> struct Tile<float> {
  static constexpr TileSizes sizes = sizes_f32;
  typedef float Vector __attribute__((vector_size(vector_bytes)));
  typedef float Loose __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
  typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));
};
template <> struct Tile<double> {
  static constexpr TileSizes sizes = sizes_f64;
  typedef double Vector __attribute__((vector_size(vector_bytes)));
  typedef double Loose __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
  typedef double Quad __attribute__((vector_size(16), aligned(8), may_alias));
};

template <class T> inline constexpr int lanes = vector_bytes / int(sizeof(T));
template <class T> inline constexpr int quad = 16 / int(sizeof(T));

template <class T> constexpr bool whole_tiles() {
  constexpr TileSizes s = Tile<T>::sizes;
  return s.block_m % s.rows == 0 && s.block_n % (s.vectors * lanes<T>) == 0;
}
static_assert(whole_tiles<float>() && whole_tiles<double>());

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A packed (or directly readable) panel: element (i, p) is data[i + p * step].
template <class T> struct View {
  const T* data;
  int64_t step;
};

// What follows the last block along k: bias per row or per column, relu.
template <class T> struct Finish {
  const T *row_bias, *column_bias;
  bool relu;
};

template <class T> [[gnu::noinline]] static void store_tile(const T* sums, int rows, int64_t step, T* __restrict c,
                                                            int64_t c_step, int64_t n, bool add,
                                                            const Finish<T>* finish) {
  for (int i = 0; i < rows; ++i, sums += step, c += c_step) {
    const T bias = finish && finish->row_bias ? finish->row_bias[i] : T(0);
    if (add) {
      for (int64_t j = 0; j < n; ++j) c[j] += sums[j] + bias;
    } else {
      for (int64_t j = 0; j < n; ++j) c[j] = sums[j] + bias;
    }
    if (finish && finish->column_bias) {
      for (int64_t j = 0; j < n; ++j) c[j] += finish->column_bias[j];
    }
    if (finish && finish->relu) {
      for (int64_t j = 0; j < n; ++j) c[j] = c[j] < T(0) ? T(0) : c[j];
    }
  }
}

// C[rows x n] (+)= sum over p of a(:, p) b(p, :). Every element is one chain of multiply-adds along k, so its bits do
// not depend on the tile it falls into. n <= vectors * lanes columns are stored. Arguments travel in registers.
template <class T, int rows, int vectors>
[[gnu::noinline]] static void tile_kernel(int64_t k, View<T> a_view, View<T> b_view, T* __restrict c, int64_t c_step,
                                          int64_t n, bool add, const Finish<T>* finish) {
  using Vector = typename Tile<T>::Vector;
  using Loose = typename Tile<T>::Loose;
  using Quad = typename Tile<T>::Quad;
  constexpr int width = lanes<T>;
  // NEON multiplies by a lane, so one load brings several values of A; others broadcast from memory.
  constexpr int by_lane = vector_bytes == 16 && quad<T> == width ? rows / quad<T> * quad<T> : 0;
  const T* __restrict a = a_view.data, * __restrict b = b_view.data;
  Vector sums[rows][vectors] = {};
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) __builtin_prefetch(c + i * c_step, 1);
  for (int64_t p = 0; p < k; ++p, a += a_view.step, b += b_view.step) {
    __builtin_prefetch(a + 1024 / sizeof(T));
    Vector row[vectors];
#pragma GCC unroll 32
    for (int j = 0; j < vectors; ++j) row[j] = *reinterpret_cast<const Loose*>(b + j * width);
#pragma GCC unroll 32
    for (int i = 0; i < by_lane; i += quad<T>) {
      const Quad values = *reinterpret_cast<const Quad*>(a + i);
#pragma GCC unroll 32
      for (int l = 0; l < quad<T>; ++l) {
#pragma GCC unroll 32
        for (int j = 0; j < vectors; ++j) sums[i + l][j] += row[j] * values[l];
      }
    }
#pragma GCC unroll 32
    for (int i = by_lane; i < rows; ++i) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) sums[i][j] += row[j] * a[i];
    }
  }
  if (n == vectors * width && !finish) {
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) {
        Loose* to = reinterpret_cast<Loose*>(c + i * c_step + j * width);
        *to = add ? *to + sums[i][j] : sums[i][j];
      }
    }
  } else {
    Vector spilled[rows][vectors];
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) spilled[i][j] = sums[i][j];
    }
    store_tile(reinterpret_cast<const T*>(spilled), rows, vectors * width, c, c_step, n, add, finish);
  }
}

// All tiles up to the largest: ragged problems are cut into tiles of nearly equal size.
template <class T> struct KernelTable {
  static constexpr int rows = Tile<T>::sizes.rows, vectors = Tile<T>::sizes.vectors;
  using Kernel = void (*)(int64_t, View<T>, View<T>, T*, int64_t, int64_t, bool, const Finish<T>*);
  Kernel kernels[rows][vectors] = {};

  constexpr KernelTable() { fill<0>(); }
  template <int i> constexpr void fill() {
    if constexpr (i < rows * vectors) {
      kernels[i / vectors][i % vectors] = tile_kernel<T, i / vectors + 1, i % vectors + 1>;
      fill<i + 1>();
    }
  }
};
template <class T> inline constexpr KernelTable<T> kernel_table;

}  // namespace volta::cpu::VOLTA_ISA

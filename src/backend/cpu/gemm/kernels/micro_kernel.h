// The register tile of the packed GEMM: its sizes for each instruction set, and the table of micro-kernels.
#pragma once
#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Quotients of small counts. Older processors take tens of cycles for a division, which small products would notice.
struct Quotients {
  static constexpr int64_t most = 256;  // divisor
  uint32_t inverses[most + 1] = {};
  constexpr Quotients() {
    for (uint32_t i = 1; i <= most; ++i) inverses[i] = (1 << 24) / i + 1;
  }
  constexpr int64_t operator()(int64_t a, int64_t b) const { return a * inverses[b] >> 24; }  // exact while a b < 2^24
};
constexpr Quotients quotient;

// A tile is up to `vectors` wide and as high as its accumulators fill the registers. block_m x block_k of A fits the second
// cache; block_n bounds the panels of B that a thread keeps. A long block_k spares traffic of C: a panel of B that the first
// cache does not hold comes from the second ahead of its use.
struct TileSizes {
  int accumulators, vectors;
  int64_t block_k, block_m, block_n;
  int most_rows = 12;
  constexpr int rows(int64_t width) const { return int(smaller(quotient(accumulators, width), most_rows)); }
};

#if defined(__AVX512F__)
template <class T> constexpr TileSizes floating_sizes = {24, 3, 512, 256, 1056};
template <> constexpr TileSizes floating_sizes<double> = {24, 3, 256, 256, 1056};
#elif defined(__AVX2__)
template <class T> constexpr TileSizes floating_sizes = {12, 2, 256, 144, 1024};
#elif defined(__aarch64__)
template <class T> constexpr TileSizes floating_sizes = {24, 3, 512, 256, 2064};
template <> constexpr TileSizes floating_sizes<double> = {24, 4, 256, 240, 1032};
#else
template <class T> constexpr TileSizes floating_sizes = {8, 2, 256, 128, 1024};
#endif
template <class T> constexpr TileSizes sizes =
    std::is_integral_v<T> ? TileSizes{8, 2, 256, 128, 1024} : floating_sizes<T>;

// With the short vectors of NEON and SSE one load brings several values of A, which must then be contiguous along the
// tile; wider ones broadcast them from memory, wherever they are.
constexpr bool by_lane = register_bytes == 16;
template <class T> constexpr int quad = 16 / int(sizeof(T));
template <class T> using Quad [[gnu::vector_size(16)]] = T;
// A quad at any address. It is read through a pointer: g++ brings the lanes of a memcpy by way of general registers.
template <class T> struct [[gnu::packed, gnu::may_alias]] QuadInMemory { Quad<T> values; };

// A panel of A or B, packed or in place: element (i, p) is data[i * step + p * depth_step], p along k.
template <class T> struct View {
  const T* data;
  int64_t step, depth_step;
};

template <class T, class Element = T> struct TileCall {
  int64_t k;
  View<Element> a, b;
  T* c;
  int64_t c_step, n;  // n columns are stored
  bool add;
};

template <class T, class Element>
[[gnu::noinline]] void store_ragged(const TileCall<T, Element>& t, const T* sums, int64_t rows, int width) {
  for (int64_t i = 0; i < rows; ++i, sums += width) {
    T* c = t.c + i * t.c_step;
    for (int64_t j = 0; j < t.n; ++j) c[j] = t.add ? c[j] + sums[j] : sums[j];
  }
}

// One step of the tile along k, by elements of the panels. rows_together: how many rows one instruction takes.
template <class T> struct Step {
  static constexpr int rows_together = 1;

  template <int rows, int vectors>
  [[gnu::always_inline]] static void multiply_add(const T* __restrict a, int64_t a_step, const T* __restrict b,
                                                  Vector<T> (&sums)[rows][vectors]) {
    constexpr int in_quads = by_lane ? rows / quad<T> * quad<T> : 0;
    Vector<T> row[vectors];
#pragma GCC unroll 32
    for (int j = 0; j < vectors; ++j) row[j] = load(b + j * lanes<T>);
#pragma GCC unroll 32
    for (int i = 0; i < in_quads; i += quad<T>) {
      const Quad<T> values = reinterpret_cast<const QuadInMemory<T>*>(a + i)->values;
#pragma GCC unroll 32
      for (int l = 0; l < quad<T>; ++l) {
#pragma GCC unroll 32
        for (int j = 0; j < vectors; ++j) sums[i + l][j] += row[j] * values[l];
      }
    }
#pragma GCC unroll 32
    for (int i = in_quads; i < rows; ++i) {
      const T value = a[i * a_step];
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) sums[i][j] += row[j] * value;
    }
  }
  // What brings the sums into rows at the end.
  template <int rows, int vectors> static void arrange(Vector<T> (&)[rows][vectors]) {}
};

// C[rows x n] (+)= sum over p of a(:, p) b(p, :). Every element is one chain of multiply-adds along k, so its bits do
// not depend on the tile it falls into. Few strips of rows use a panel of B that is `uncached`, in the second cache.
template <class T, int rows, int vectors, class Element = T, bool uncached = false>
[[gnu::noinline]] void tile_kernel(const TileCall<T, Element>& t) {
  constexpr int width = lanes<T>, line = 64 / int(sizeof(Element)), c_line = 64 / int(sizeof(T)),
                together = Step<Element>::rows_together;
  const Element *a = t.a.data, *b = t.b.data;
  const int64_t a_step = t.a.step, a_depth = t.a.depth_step, b_depth = t.b.depth_step, c_step = t.c_step;
  const auto each_row = [ c = t.c, c_step ](auto f) __attribute__((always_inline)) {
    T* row = c;
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i, row += c_step) f(i, row);
  };
  Vector<T> sums[(rows + together - 1) / together * together][vectors] = {};
  each_row([&](int, T* to) {
#pragma GCC unroll 32
    for (int j = 0; j < vectors * width; j += c_line) __builtin_prefetch(to + j, 1);
  });
  if constexpr (by_lane) {
    for (int64_t p = t.k; p > 0; --p, a += a_depth, b += b_depth) {
      __builtin_prefetch(a + 16 * line);
      Step<Element>::multiply_add(a, 1, b, sums);
    }
  } else {
    const auto step = [&](int64_t stride) __attribute__((always_inline)) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors * width; j += line) __builtin_prefetch(b + 16 * b_depth + j);
      Step<Element>::multiply_add(a, stride, b, sums);
      b += b_depth;
    };
    if (a_step == 1 && a_depth == rows && b_depth == vectors * width) {
      // Both packed: they come in order, and if not from uncached, early enough without being asked for. Fewer instructions help where
      // a core runs two threads.
#pragma GCC unroll 2
      for (int64_t p = t.k; p > 0; --p, a += rows, b += vectors * width) {
#pragma GCC unroll 32
        for (int j = 0; j < vectors * width && uncached; j += line) __builtin_prefetch(b + 16 * vectors * width + j);
        Step<Element>::multiply_add(a, 1, b, sums);
      }
    } else if (a_step == 1) {
      for (int64_t p = t.k; p > 0; --p, a += a_depth) {
        __builtin_prefetch(a + 32 * a_depth);
        step(1);
      }
    } else {
      for (int64_t rest = t.k; rest > 0; rest -= line) {
#pragma GCC unroll 32
        for (int i = 0; i < rows; ++i) __builtin_prefetch(a + (rows + i) * a_step);  // the next tile's rows
        for (int64_t p = smaller(rest, line); p > 0; --p, a += a_depth) step(a_step);
      }
    }
  }
  Step<Element>::arrange(sums);
  if (t.n == vectors * width) {
    if (t.add) {  // asked once: for all the compiler knows, sums are stored over it
      each_row([&](int i, const T* from) {
#pragma GCC unroll 32
        for (int j = 0; j < vectors; ++j) sums[i][j] += load(from + j * width);
      });
    }
    each_row([&](int i, T* to) {
#pragma GCC unroll 32
      for (int j = 0; j < vectors; ++j) store<T>(to + j * width, sums[i][j]);
    });
    return;
  }
  T spilled[rows * vectors * width];
  __builtin_memcpy(spilled, sums, sizeof spilled);
  store_ragged(t, spilled, rows, vectors * width);
}

// The tile of one multiply-add per value: what panels consist of, the sizes, the kernels.
template <class T> struct PlainTile {
  using Element = T;
  static constexpr TileSizes sizes = VOLTA_ISA::sizes<T>;
  template <int rows, int vectors> static constexpr auto kernel = tile_kernel<T, rows, vectors>;
};

// All tiles that fit the registers: ragged problems are cut into tiles of nearly equal size.
template <class T, class Tile> struct KernelTable {
  static constexpr int rows = Tile::sizes.most_rows, vectors = Tile::sizes.vectors;
  void (*kernels[vectors][rows])(const TileCall<T, typename Tile::Element>&) = {};

  constexpr KernelTable() { fill<0>(); }
  template <int i> constexpr void fill() {
    if constexpr (i < rows * vectors) {
      constexpr int height = i / vectors + 1, width = i % vectors + 1;
      if constexpr (height <= Tile::sizes.rows(width))
        kernels[width - 1][height - 1] = Tile::template kernel<height, width>;
      fill<i + 1>();
    }
  }
};
template <class T, class Tile = PlainTile<T>> constexpr KernelTable<T, Tile> kernel_table;

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

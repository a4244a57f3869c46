// What the driver of matrix products and the GEMM of each instruction set share: the normalised product, how it is cut
// into parts, and the table of functions that work on one part.
#pragma once
#include <algorithm>
#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

struct Range {
  int64_t begin, size;
};

struct Shape3 {
  int64_t m, n, k;
  double work() const { return double(m) * double(n) * double(k); }  // multiply-adds
};

// A rectangle of C.
struct Rectangle {
  Range rows, columns;
  bool empty() const { return rows.size <= 0 || columns.size <= 0; }
};

// What plans depend on: a register tile is rows x columns, columns come in multiples of lanes; packing a value of A or B
// takes as long as so many multiply-adds.
struct GemmTile {
  int64_t rows, columns, lanes, pack_a, pack_b;
};

// C as rows x columns parts of nearly equal size.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t parts() const { return rows * columns; }
  Rectangle part(const Shape3& s, const GemmTile& tile, int64_t index) const;
};

// What the largest part of a grid takes for each depth, in multiply-adds.
double packed_work(const Shape3& s, const GemmTile& tile, const Grid& grid);

// The cheapest grid of at most `parts` parts. An element of C has the same bits whatever part it falls into.
Grid plan_grid(const Shape3& s, const GemmTile& tile, int64_t parts);

// One matrix product, normalised: c_dtype given, relu only for signed types, C's rows contiguous if anything is. It is skinny
// when it has at most skinny_rows rows: it streams B, of which one stride is 1.
inline Shape3 shape_of(const Gemm& p) { return {p.m, p.n, p.k}; }
inline constexpr int64_t skinny_rows = 4;

struct GemmKernels {
  GemmTile tile;
  int64_t sum_bytes;  // size of the compute type
  // The sums of one rectangle over a range of k: finished and stored to C, or left in `partial`, m x n sums.
  void (*part)(const Gemm& p, const Rectangle& r, Range depth, void* partial);
  // Adds up `count` partial sums of all of C, in order, for some of its rows; finishes and stores them. Of the plain levels.
  void (*finish)(const Gemm& p, Range rows, void* partials, int64_t count);
};

// By DType. Integers are multiplied as unsigned numbers of 32 or 64 bits, booleans as floats: a sum of ones never
// becomes zero again.
struct GemmTable {
  GemmKernels kernels[dtype_count];
};

// A product whose operands are made panel by panel elsewhere: C[m x n] (+)= A B, rows of C contiguous. panel() gives rows
// (of B: columns) [i, i + n) and depths [p, p + k), using `buffer`, of tile * k values, if it has to pack; tile >= n.
template <class T> struct PanelView {
  const T* data;
  int64_t step,
      depth_step;  // element (i, p) is data[i * step + p * depth_step]; step is 1, of A too with short vectors
};
template <class T> struct PanelOperand {
  const void* self;
  PanelView<T> (*panel)(const void* self, T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k);
  // Packs `count` panels that lie side by side in memory; null where they do not.
  void (*panels)(const void* self, T* to, int64_t count, int64_t i, int64_t tile, int64_t p, int64_t k) = nullptr;
};
template <class T> struct PanelProduct {
  int64_t m, n, k;
  PanelOperand<T> a, b;
  T* c;
  int64_t c_step;
  bool add;
  const T* row_bias = nullptr;  // added to each row's sums, if it is there
};

template <Isa> const GemmTable& gemm_table();
template <Isa> const GemmKernels& gemm_bf16();  // of amx and bfloat, for products that are not skinny

#ifdef VOLTA_HAVE_CBLAS
// Computes g with the BLAS and returns true, or returns false if it does not cover g. Whether a BLAS gives the same
// bits for every number of threads is up to it.
bool blas_gemm(const Gemm& g);
#endif

}  // namespace volta::cpu

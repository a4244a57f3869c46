// What the GEMM of each instruction set offers to the driver: single-threaded work on one rectangle of C.
#pragma once
#include <cstdint>

#include "backend/cpu/gemm.h"
#include "volta/dtype.h"

namespace volta::cpu {

// One operand of a rectangle. Element (i, p) is data[i * step + p * depth_step], i a row of A or a column of B, p
// along k.
struct GemmOperand {
  const void* data;
  int64_t step, depth_step;
  bool direct;             // may be read in place where step is 1: too few uses to repay packing
  const void* packed;      // or: panels packed beforehand, of this many rows or columns in all,
  int64_t extent, origin;  // of which the rectangle starts at `origin`
};

// C[m x n] (+)= A B in the compute type, C's rows contiguous; bias and relu follow when `finish` is set.
struct GemmPart {
  int64_t m, n, k;
  GemmOperand a, b;
  void* c;
  int64_t c_step;
  bool add, finish, relu;
  const void *row_bias, *column_bias;
};

// Packs block `block` along k of the rows (or columns) [origin, origin + count) into operand.packed; of its tiles,
// those of slice `slice` out of `slices`.
struct GemmPack {
  GemmOperand operand;
  int64_t count, k, block, slice, slices;
};

// y[m x n] = x B with m <= thin_rows, streaming B, of which step or depth_step is 1. x is contiguous along k.
struct GemmThin {
  int64_t m, n, k;
  const void* x;
  int64_t x_step;
  GemmOperand b;
  void* y;
  int64_t y_step;
};
inline constexpr int64_t thin_rows = 4;

// Finished sums in the compute type go to C: plus C if `add`, plus bias, relu, the row activation, one rounding.
struct GemmFinish {
  int64_t m, n;
  void* sums;  // overwritten
  int64_t sums_step;
  int64_t segments, segment_step;  // that many partial sums are added up first, in order
  void* c;
  int64_t c_row_stride, c_column_stride;
  bool add, relu;
  const void *row_bias, *column_bias;  // in the compute type
  RowActivation<float> row_f32;        // null: none
  RowActivation<double> row_f64;
};

// Sizes that the driver plans with: a register tile is rows x columns, columns come in multiples of lanes.
struct GemmTile {
  int64_t rows, columns, lanes, block_k, block_m, block_n;
};

struct GemmKernels {
  GemmTile tile;
  void (*part)(const GemmPart&);
  void (*pack_a)(const GemmPack&);
  void (*pack_b)(const GemmPack&);
  void (*thin)(const GemmThin&);
  void (*load)(void* to, const void* from, int64_t stride, int64_t n);  // widens to the compute type
  void (*finish)(const GemmFinish&);                                    // C of this dtype
};

// Integers and boolean: the whole rectangle of C, any strides, bias of C's dtype.
struct GemmInteger {
  int64_t m, n, k;
  GemmOperand a, b;
  void* c;
  int64_t c_row_stride, c_column_stride;
  bool add, relu;
  const void *row_bias, *column_bias;
};

struct GemmTable {
  GemmKernels floating[4];                           // by DType: f16, bf16, f32, f64
  void (*integer[dtype_count])(const GemmInteger&);  // null for floating types
};

namespace baseline {
extern const GemmTable gemm_table;
}
namespace v3 {
extern const GemmTable gemm_table;
}
namespace v4 {
extern const GemmTable gemm_table;
}

}  // namespace volta::cpu

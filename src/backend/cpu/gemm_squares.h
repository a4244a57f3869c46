// Products of f32 by squares of AMX (isa/gemm_amx.cpp), for loops that keep one operand as squares: where there is AMX.
#pragma once
#include "backend/cpu/gemm_plan.h"

namespace volta::cpu {

// Whether products of this shape are faster by squares than by vectors.
bool suits_squares(const Shape3& s, DType dtype);

// An operand made into squares once, for many products: so many floats. Results that are not finite may then be NaN.
inline constexpr int64_t square_side = 16, panel_rows = 2 * square_side, panel_depths = 32;
[[gnu::always_inline]] inline int64_t squares_size(int64_t rows, int64_t depth) {
  return (rows + square_side - 1) / square_side * ((depth + panel_depths - 1) / panel_depths) * 768;
}

struct Squares {
  // p by squares. These read A best in place and contiguous along k.
  void (*multiply)(const PanelProduct<float>& p);

  // A[rows x depth], in panels of panel_rows from `row` on: `count` depths of one, from `first` on, a multiple of
  // panel_depths, are made of values[panel_rows x count]. multiply() takes it as p.left_squares.
  void (*make_left)(float* to, int64_t rows, int64_t depth, int64_t row, int64_t first, const Matrix& values,
                    int64_t count);

  // B[k x n], and C = A B with it. Rows of A are contiguous.
  void (*make_right)(float* to, const Matrix& b, int64_t n, int64_t k);
  void (*multiply_right)(const Shape3& s, const float* a, int64_t a_step, const float* b, float* c, int64_t c_step);
};
const Squares* square_unit();  // null without AMX

namespace amx {
extern const GemmKernels gemm_kernels[3];  // f16, bf16, f32; for products that suit them
extern const Squares squares;
}  // namespace amx

}  // namespace volta::cpu

// What all products do with a part of C: where its sums go, and how they are finished.
#pragma once
#include "backend/cpu/gemm/kernels/multiply.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Operands are read in place when few rows or columns use them or they stay in the first cache as they are. Rows of A a
// page apart would all compete for the same few lines of it.
constexpr int64_t direct_columns = by_lane ? 48 : 256, direct_rows = 32, direct_bytes = 16 << 10, page = 4096;

// Calls f(sum, i, j) for all sums of a rectangle.
template <class T, class F>
[[gnu::always_inline]] inline void each_sum(const Rectangle& r, T* sums, int64_t step, F f) {
  for (int64_t i = 0; i < r.rows.size; ++i) {
    for (int64_t j = 0; j < r.columns.size; ++j) f(sums[i * step + j], i, j);
  }
}

// Sums of a rectangle go to C: plus C if `add`, plus bias, relu, the row activation, one rounding.
template <class S, class T> void finish_sums(const Gemm& p, const Rectangle& r, T* sums, int64_t step, bool add) {
  const Epilogue& e = p.epilogue;
  const int64_t row_stride = p.c_row_stride, column_stride = p.c_column_stride;
  S* c = static_cast<S*>(p.c) + r.rows.begin * row_stride + r.columns.begin * column_stride;
  if (add)
    each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { x += widen(c[i * row_stride + j * column_stride]); });
  if (const S* bias = static_cast<const S*>(e.bias)) {
    const int64_t by_row = p.bias_by_row ? e.bias_stride : 0, by_column = p.bias_by_row ? 0 : e.bias_stride;
    bias += r.rows.begin * by_row + r.columns.begin * by_column;
    if (by_column == 1) each_sum(r, sums, step, [=](T& x, int64_t, int64_t j) { x += widen(bias[j]); });
    else each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { x += widen(bias[i * by_row + j * by_column]); });
  }
  if (e.activation == Activation::relu)
    each_sum(r, sums, step, [](T& x, int64_t, int64_t) { x = negative<S>(x) ? T(0) : x; });
  for (int64_t i = 0; i < r.rows.size && e.activation > Activation::relu; ++i) {
    if constexpr (std::is_same_v<T, float>) e.row_f32(sums + i * step, r.columns.size);
    else if constexpr (std::is_same_v<T, double>) e.row_f64(sums + i * step, r.columns.size);
  }
  if (static_cast<void*>(c) == sums) return;
  if (column_stride == 1)
    each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { narrow(c[i * row_stride + j], x); });
  else each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { narrow(c[i * row_stride + j * column_stride], x); });
}

// multiply(a, b, c, c_step, add, done) makes the sums, and calls done(rows, columns) for blocks of them.
template <class S, class Multiply> [[gnu::always_inline]] inline void part_of(const Gemm& p, const Rectangle& r,
                                                                              Range depth, void* partial,
                                                                              const Multiply& multiply) {
  using T = Compute<S>;
  const int64_t m = r.rows.size, n = r.columns.size, k = depth.size;
  const bool in_c = !partial && p.c_column_stride == 1 && size_of(*p.c_dtype) == sizeof(T), add = in_c && p.accumulate;
  const int64_t step = in_c ? p.c_row_stride : partial ? p.n : n;
  T* sums = in_c || partial ? static_cast<T*>(in_c ? p.c : partial) + r.rows.begin * step + r.columns.begin
                            : buffer<T>(Scratch::tile, m * n);
  const S* a_data = static_cast<const S*>(p.a.data) + r.rows.begin * p.a.row_stride;
  const S* b_data = static_cast<const S*>(p.b.data) + r.columns.begin * p.b.column_stride;
  const bool along = by_lane || p.a.column_stride == 1;  // A in place is read by lanes, across rows, or along them
  const MatrixOperand<S, !by_lane> a = {
      a_data + depth.begin * p.a.column_stride, p.a.row_stride, p.a.column_stride,
      n <= direct_columns && along && p.a.row_stride * int64_t(sizeof(T)) % page != 0};
  const MatrixOperand<S, false> b = {b_data + depth.begin * p.b.row_stride, p.b.column_stride, p.b.row_stride,
                                     m <= direct_rows || k * n * int64_t(sizeof(T)) <= direct_bytes};
  const bool finished = partial || (in_c && !p.epilogue.bias && p.epilogue.activation == Activation::none);
  multiply(a, b, sums, step, add, [&](Range rows, Range columns) {
    if (finished) return;
    T* const some = sums + rows.begin * step + columns.begin;
    const Rectangle where = {{r.rows.begin + rows.begin, rows.size}, {r.columns.begin + columns.begin, columns.size}};
    if (p.c_dtype == p.dtype) return finish_sums<S>(p, where, some, step, p.accumulate && !in_c);
    if constexpr (std::is_same_v<T, float>) finish_sums<float>(p, where, some, step, p.accumulate && !in_c);
  });
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

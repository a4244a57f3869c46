// Products with one to four rows: B is streamed once, at the speed of memory.
#pragma once
#include "backend/cpu/isa/gemm_pack.h"

namespace volta::cpu::VOLTA_ISA {

// Rows [p, p + depth) of B, contiguous along n, are added into y.
template <class S, int m, int depth> static void add_rows(GemmThin call, int64_t p) {
  using T = Compute<S>;
  using Vector = typename Tile<T>::Vector;
  const int64_t step = call.b.depth_step;
  const S* b = static_cast<const S*>(call.b.data) + p * step;
  T* y = static_cast<T*>(call.y);
  T x[m][depth];
  for (int r = 0; r < m; ++r) {
    for (int i = 0; i < depth; ++i) x[r][i] = static_cast<const T*>(call.x)[r * call.x_step + p + i];
  }
  int64_t j = 0;
  for (; j + lanes<T> <= call.n; j += lanes<T>) {
    Vector sums[m];
#pragma GCC unroll 4
    for (int r = 0; r < m; ++r) sums[r] = load_vector(y + r * call.y_step + j);
#pragma GCC unroll 8
    for (int i = 0; i < depth; ++i) {
      const Vector row = load_vector(b + i * step + j);
#pragma GCC unroll 4
      for (int r = 0; r < m; ++r) sums[r] += row * x[r][i];
    }
#pragma GCC unroll 4
    for (int r = 0; r < m; ++r) *reinterpret_cast<typename Tile<T>::Loose*>(y + r * call.y_step + j) = sums[r];
  }
  for (; j < call.n; ++j) {
    for (int r = 0; r < m; ++r) {
      for (int i = 0; i < depth; ++i) y[r * call.y_step + j] += x[r][i] * widen(b[i * step + j]);
    }
  }
}

template <class S, int m> static void thin_rows_of(const GemmThin& call) {
  using T = Compute<S>;
  constexpr int depth = m == 1 ? 8 : 4;
  for (int r = 0; r < m; ++r) {
    for (int64_t j = 0; j < call.n; ++j) static_cast<T*>(call.y)[r * call.y_step + j] = 0;
  }
  int64_t p = 0;
  for (; p + depth <= call.k; p += depth) add_rows<S, m, depth>(call, p);
  for (; p < call.k; ++p) add_rows<S, m, 1>(call, p);
}

// y[:, j .. j + columns) from columns of B that are contiguous along k.
template <class S, int m, int columns> static void dots(const GemmThin& call, int64_t j) {
  using T = Compute<S>;
  using Vector = typename Tile<T>::Vector;
  constexpr int chains = m * columns >= 8 ? 1 : 8 / (m * columns), stride = chains * lanes<T>;
  const T* x = static_cast<const T*>(call.x);
  const S* b = static_cast<const S*>(call.b.data) + j * call.b.step;
  Vector sums[m][columns][chains] = {};
  int64_t p = 0;
  for (; p + stride <= call.k; p += stride) {
#pragma GCC unroll 8
    for (int h = 0; h < chains; ++h) {
      Vector values[m];
#pragma GCC unroll 4
      for (int r = 0; r < m; ++r) values[r] = load_vector(x + r * call.x_step + p + h * lanes<T>);
#pragma GCC unroll 4
      for (int i = 0; i < columns; ++i) {
        const Vector column = load_vector(b + i * call.b.step + p + h * lanes<T>);
#pragma GCC unroll 4
        for (int r = 0; r < m; ++r) sums[r][i][h] += values[r] * column;
      }
    }
  }
  for (int r = 0; r < m; ++r) {
    for (int i = 0; i < columns; ++i) {
      Vector all = sums[r][i][0];
      for (int h = 1; h < chains; ++h) all += sums[r][i][h];
      T sum = 0;
      for (int l = 0; l < lanes<T>; ++l) sum += all[l];
      for (int64_t q = p; q < call.k; ++q) sum += x[r * call.x_step + q] * widen(b[i * call.b.step + q]);
      static_cast<T*>(call.y)[r * call.y_step + j + i] = sum;
    }
  }
}

template <class S, int m> static void thin_of(const GemmThin& call) {
  if (call.b.depth_step != 1) return thin_rows_of<S, m>(call);
  int64_t j = 0;
  for (; j + 4 <= call.n; j += 4) dots<S, m, 4>(call, j);
  for (; j < call.n; ++j) dots<S, m, 1>(call, j);
}

template <class S> static void thin(const GemmThin& call) {
  switch (call.m) {
    case 1: return thin_of<S, 1>(call);
    case 2: return thin_of<S, 2>(call);
    case 3: return thin_of<S, 3>(call);
    default: return thin_of<S, 4>(call);
  }
}

}  // namespace volta::cpu::VOLTA_ISA

// Integer and boolean products: plain blocked loops that wrap around and vectorise.
#pragma once
#include <type_traits>

#include "backend/cpu/gemm_table.h"
#include "backend/cpu/isa/gemm_kernel.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {

// Sums wrap around in an unsigned type; products of short types are formed in 32 bits, where they cannot overflow.
template <class T> struct Ring {
  using Value = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) < 4, uint32_t, Value>;
  static Value add(Value a, Value b) { return Value(Wide(a) + Wide(b)); }
  static Value multiply_add(Value sum, Value a, Value b) { return Value(Wide(sum) + Wide(a) * Wide(b)); }
  static Value relu(Value a) { return T(a) < T(0) ? Value(0) : a; }
};
template <> struct Ring<bool> {
  using Value = uint8_t;
  static Value add(Value a, Value b) { return Value((a | b) != 0); }
  static Value multiply_add(Value sum, Value a, Value b) { return Value(sum | ((a != 0) & (b != 0))); }
  static Value relu(Value a) { return a; }
};

inline constexpr int64_t integer_columns = 128;
inline constexpr int integer_rows = 4;

// Rows [i, i + rows) and columns [j, j + n) of C, from n columns of B whose rows are contiguous.
template <class T, int rows> static void integer_strip(const GemmInteger& g, int64_t i, int64_t j, int64_t n,
                                                       const typename Ring<T>::Value* b, int64_t b_step) {
  using Value = typename Ring<T>::Value;
  const Value* a = static_cast<const Value*>(g.a.data) + i * g.a.step;
  Value sums[rows][integer_columns] = {};
  for (int64_t p = 0; p < g.k; ++p, b += b_step) {
    for (int r = 0; r < rows; ++r) {
      const Value x = a[r * g.a.step + p * g.a.depth_step];
      for (int64_t l = 0; l < n; ++l) sums[r][l] = Ring<T>::multiply_add(sums[r][l], x, b[l]);
    }
  }
  const Value *row_bias = static_cast<const Value*>(g.row_bias),
              *column_bias = static_cast<const Value*>(g.column_bias);
  for (int r = 0; r < rows; ++r) {
    for (int64_t l = 0; l < n; ++l) {
      Value& c = static_cast<Value*>(g.c)[(i + r) * g.c_row_stride + (j + l) * g.c_column_stride];
      Value sum = sums[r][l];
      if (g.add) sum = Ring<T>::add(sum, c);
      if (row_bias) sum = Ring<T>::add(sum, row_bias[i + r]);
      if (column_bias) sum = Ring<T>::add(sum, column_bias[j + l]);
      c = g.relu ? Ring<T>::relu(sum) : sum;
    }
  }
}

template <class T> static void integer_part(const GemmInteger& g) {
  using Value = typename Ring<T>::Value;
  for (int64_t j = 0; j < g.n; j += integer_columns) {
    const int64_t n = smaller(integer_columns, g.n - j);
    const Value* b = static_cast<const Value*>(g.b.data) + j * g.b.step;
    int64_t b_step = g.b.depth_step;
    if (g.b.step != 1) {
      Value* packed = static_cast<Value*>(scratch(Scratch::panels, size_t(g.k * n) * sizeof(Value)));
      for (int64_t p = 0; p < g.k; ++p) {
        for (int64_t l = 0; l < n; ++l) packed[p * n + l] = b[l * g.b.step + p * g.b.depth_step];
      }
      b = packed;
      b_step = n;
    }
    int64_t i = 0;
    for (; i + integer_rows <= g.m; i += integer_rows) integer_strip<T, integer_rows>(g, i, j, n, b, b_step);
    for (; i < g.m; ++i) integer_strip<T, 1>(g, i, j, n, b, b_step);
  }
}

}  // namespace volta::cpu::VOLTA_ISA

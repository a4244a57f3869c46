// Matrix products on the CPU: C = activation(A B + bias [+ C]) over strided operands of every dtype, batched.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "volta/dtype.h"

namespace volta::cpu {

struct Matrix {
  const void* data;
  int64_t row_stride, column_stride;  // in elements; may be 0 or negative
};

enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, silu, tanh, sigmoid };

// Applies an activation to n contiguous values in place.
template <class T> using RowActivation = void (*)(T* values, int64_t n);

struct Epilogue {
  const void* bias = nullptr;  // one value per column, of C's dtype
  int64_t bias_stride = 1;
  Activation activation = Activation::none;
  RowActivation<float> row_f32 = nullptr;   // carry out activations other than none and relu;
  RowActivation<double> row_f64 = nullptr;  // C's of half type use row_f32 before they are rounded
};

// One broadcast batch axis: matrix number i of it starts at i times these strides, in elements.
struct BatchAxis {
  int64_t size, a, b, c;
};

struct Gemm {
  DType dtype;      // of A and B
  int64_t m, n, k;  // A is m x k, B is k x n, C is m x n
  Matrix a, b;
  void* c;
  int64_t c_row_stride, c_column_stride;
  bool accumulate = false;  // add to what C holds
  Epilogue epilogue = {};
  std::span<const BatchAxis> batch = {};
  std::optional<DType> c_dtype = {};  // f32 for half operands; otherwise the dtype of the operands
  bool fixed_order = false;  // sum along k in the same order whatever m and n: for parts that were cut elsewhere
  bool bias_by_row = false, skinny = false;  // found by gemm: see gemm_plan.h
};

// C must not overlap A or B, nor its own elements. Halves are multiplied in f32 and rounded once; integers wrap around;
// boolean is any(a and b). The result has the same bits whatever the number of threads.
void gemm(Gemm&& g);  // normalised in place: a small product would notice the copy
inline void gemm(const Gemm& g) { gemm(Gemm(g)); }

}  // namespace volta::cpu

// What ops check of numbers and dtypes, and the options of those that make tensors.
#pragma once
#include <volta/create.h>

#include "core/check.h"

namespace volta {

// Each throws unless what it says holds.
void require_dtype(DType dtype, const char* op);                          // there is such a dtype
void require_floating(const Tensor& x, const char* op);                   // x is of floats
void require_storable(const Scalar& value, DType dtype, const char* op);  // the number is whole and fits, in integers
void require_held(const Scalar& value, DType dtype, const char* op);      // integers of the dtype reach that far
void require_fitting(DType values, DType place, const char* op);          // no floats in integers, no numbers in truths
// Pieces are tensors, each with memory of its own to describe it: an expanded axis can have more than any memory holds.
void require_pieces(const Tensor& x, int64_t pieces, const char* op);

// The one element of x, read for an op, which an Error names: in a captured step nothing can be read.
template <class T> T read_for(const char* op, const Tensor& x) {
  return blamed_on(op, [&] { return x.item<T>(); });
}

// Numbers multiply tensors of integers as integers, when they are whole.
Scalar factor_for(double value, DType dtype, const char* op);

// The dtype that the operands of a product meet in; there is none for booleans.
DType product_dtype(std::span<const Operand> operands, const char* op);

// Integers and truth values add up as i64; u64 keeps its own.
constexpr DType sum_type(DType t) { return is_floating(t) || t == u64 ? t : i64; }

// The options with what they leave open; throws when they contradict themselves or the device is missing.
Options resolved(Options options, DType dtype, const char* op);
Options resolved(Options options, DType dtype, const char* op, Device device);
Options resolved_like(const Tensor& x, const Options& options, const char* op);

// As the resolved options say, the tensor that begins a graph.
Tensor finished(Tensor x, const Options& options);

// 0, 1, … n - 1 as i64 on the device of another tensor.
Tensor counting(int64_t n, const Tensor& like);

}  // namespace volta

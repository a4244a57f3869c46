// What ops that take index tensors share: checking, and the two differentiable loops they are made of.
#pragma once
#include <volta/tensor.h>

#include "backend/backend.h"

namespace volta {

// The index as i64. Throws unless it is defined and of integers.
Tensor as_index(const Tensor& index, const char* op);

// Throws unless every index lies in [-size, size). On CUDA the loops check, so that nobody waits for the device here.
void check_indices(const Tensor& index, int64_t size, int axis, const char* op);

// Throws when a C++ number loses its fraction in dtype.
void require_storable(const Scalar& value, DType dtype, const char* op);

// A 1-D index seen as `rank` axes of `shape`, repeated along all but `axis`: no copy, no graph.
Tensor spread_index(const Tensor& index, const Shape& shape, int axis);

// y[i, j] = x[index[i, j], j] for axis 0, and its transpose: src added into zeros. The index is checked i64.
Tensor pick(const char* op, const Tensor& x, int axis, const Tensor& index);
Tensor place_add(const char* op, const Shape& shape, int axis, const Tensor& index, const Tensor& src);

// x with src combined into it, in a copy; no graph.
Tensor scattered(const char* op, Combine combine, const Tensor& x, int axis, const Tensor& index, const Tensor& src);

// Slices of x in the order of a 1-D index that is already checked.
Tensor pick_slices(const char* op, const Tensor& x, int axis, const Tensor& index);

// Positions of the true elements of a flattened boolean mask (i64).
Tensor true_positions(const Tensor& mask);

// x as it is, or as one axis of one element.
Tensor with_axis(const Tensor& x);

}  // namespace volta

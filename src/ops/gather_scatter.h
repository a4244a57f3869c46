// What ops that take index tensors share: checking, and the two differentiable loops they are made of.
#pragma once
#include <volta/tensor.h>

#include "backend/allocate.h"
#include "backend/backend.h"
#include "core/watch.h"
#include "graph/record.h"
#include "ops/check.h"

namespace volta {

// The index as i64. Throws unless it is defined and of integers.
Tensor as_index(const Tensor& index, const char* op);

// Throws unless every index lies in [0, size). On CUDA the loops check, so that nobody waits for the device here.
void check_indices(const Tensor& index, int64_t size, int axis, const char* op);

// An i64 index of [-size, size) as one of [0, size): negative ones count from the end. Throws as check_indices does.
Tensor counted_from_start(const Tensor& index, int64_t size, int axis, const char* op);

// A 0-d tensor counts as a row of one element.
inline const Layout& row_layout(const Tensor& x) {
  static const Layout single = Layout::contiguous({1});
  return layout(x).shape.empty() ? single : layout(x);
}
inline Arg row_arg(const Tensor& x) {
  reads(x);
  return {address(x), &row_layout(x), x.impl().dtype, {}};
}

// The graph of y[i, j] = x[index[i, j], j] for axis 0, where y and the index may lack the axis if it has one element.
Tensor chosen(const char* op, Tensor y, const Tensor& x, int axis, const Tensor& index);
// y[i, j] = x[index[i, j], j] for axis 0, and its transpose: src added into zeros. The index is checked i64.
Tensor pick(const char* op, const Tensor& x, int axis, const Tensor& index);
Tensor place_add(const char* op, const Shape& shape, int axis, const Tensor& index, const Tensor& src);

// Slices of x in the order of a checked index of any shape, whose axes take the place of `axis`.
Tensor pick_slices(const char* op, const Tensor& x, int axis, const Tensor& index);

// A 1-D index seen as the axes of `shape`, repeated along all but `axis`: no copy, no graph.
Tensor spread_index(const Tensor& index, const Shape& shape, int axis);

// Combines src into `out`, and gives it back; no graph.
Tensor scattered(Combine combine, const Tensor& out, int axis, const Tensor& index, const Tensor& src);

// Positions of the true elements of a flattened boolean mask (i64), for an op whose result depends on their number.
Tensor true_positions(const char* op, const Tensor& mask);

// A 0-d tensor of the number, with the dtype and device of another.
Tensor number(Scalar value, const Tensor& like);

}  // namespace volta

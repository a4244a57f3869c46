// How reductions are run and undone, for the files of ops that reduce and for the gradients of broadcasting.
#pragma once
#include <volta/tensor.h>

#include "backend/backend.h"
#include "math/reducers.h"
#include "ops/check.h"

namespace volta {

// Which axes are reduced, and what that makes of the shape.
struct Reduction {
  Reduction(const Tensor& x, const Axes& axes, bool keep, const char* op);

  const char* op;
  Shape from, to;     // of the operand and of the result
  Shape kept;         // of the result, with the reduced axes as size 1
  uint32_t mask = 0;  // bit per reduced axis
  int64_t count = 1;  // elements in each result

  // A tensor of the result's shape, repeated along the reduced axes: the gradient of a sum.
  Tensor restore(const Tensor& y) const;
  Shape axes() const;  // reduced
};

// A reducer as data: what the framework needs to check, run and differentiate it.
struct ReduceOp {
  const char* name;
  int index;  // in Reducers
  reducers::Elements elements;
  scalar::TensorExpr (*derivative)(const scalar::TensorExpr* x) = nullptr;  // (g, element, result, count)
  uint32_t (*uses)() = nullptr;  // what the derivative depends on, as that of an ElementwiseOp
};
const ReduceOp& reduce_op(int index);  // in reducers::Named

Tensor reduce_over(const ReduceOp& op, const Tensor& x, const Axes& dim, bool keepdim);

// Sums broadcast axes away until x has `shape`: the transpose of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape, const char* op);

}  // namespace volta

// How reductions are run and undone, for the files of ops that reduce and for the gradients of broadcasting.
#pragma once
#include <volta/tensor.h>

#include "backend/backend.h"
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

// Sums broadcast axes away until x has `shape`: the transpose of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape, const char* op);

}  // namespace volta

// How reductions are run and undone, shared by the files of ops that reduce.
#pragma once
#include <volta/tensor.h>

#include "backend/backend.h"

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
  Axes axes() const;  // reduced
};

Tensor run_fold(Fold fold, const Tensor& x, const Reduction& r, DType result, double parameter = 0,
                Tensor* indices = nullptr);

// The gradient g shared evenly by the elements of x that equal their result y (or are NaN as it is).
Tensor share_evenly(const Tensor& g, const Tensor& x, const Tensor& y, const Reduction& r);

// Throws unless x is of floats.
void require_floating(const Tensor& x, const char* op);
// Halves in f32, where a formula takes several steps and is to be rounded once.
Tensor widened(const Tensor& x);

}  // namespace volta

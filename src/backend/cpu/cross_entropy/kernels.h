// The kernels of cross-entropy: one row of scores at a time.
#pragma once
#include "backend/backend.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

// The largest score and the sum of the exponentials below it: log of the sum of all is top + log(sum).
struct ScoreSum {
  double top, sum;
};
struct CrossEntropyKernel {
  ScoreSum (*sum)(int64_t n, const void* scores);
  // out = exp(scores - top) * factor
  void (*scaled)(int64_t n, void* out, const void* scores, double top, double factor);
};
template <Isa> CrossEntropyKernel cross_entropy_kernel(DType dtype);

}  // namespace volta::cpu

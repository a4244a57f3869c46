// The kernels of normalisation: one set of elements that share their statistics at a time.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/norm.h"

namespace volta::cpu {

struct NormKernel {
  void (*forward)(const NormCall& call, int64_t set);
  // Adds to sums [2, groups, channels], of bias and weight.
  void (*backward)(const NormBackwardCall& call, int64_t set, void* sums);
};
template <Isa> NormKernel norm_kernel(DType dtype);

}  // namespace volta::cpu

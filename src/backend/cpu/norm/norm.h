// The kernels of normalisation: one set of elements that share their statistics at a time.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/norm.h"

namespace volta::cpu {

struct NormKernel {
  void (*forward)(const NormCall& call, int64_t set);
  void (*backward)(const NormCall& call, int64_t set, int64_t part);
};
template <Isa> NormKernel norm_kernel(DType dtype);

}  // namespace volta::cpu

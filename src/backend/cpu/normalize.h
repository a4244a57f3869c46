// The kernels of normalisation: one set of elements that share their statistics at a time.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/normalize.h"

namespace volta::cpu {

struct NormalizeKernel {
  void (*forward)(const NormalizeCall& call, int64_t set);
  void (*backward)(const NormalizeCall& call, int64_t set, int64_t part);
};
template <Isa> NormalizeKernel normalize_kernel(DType dtype);

}  // namespace volta::cpu

// The kernels of pooling: a range of output rows, or of planes, at a time.
#pragma once
#include "backend/cpu/isa.h"
#include "backend/pool.h"

namespace volta::cpu {

// What a kernel needs beside the call: the weights and divisors of the last axis in the dtype of the data, and room for a
// row of the input and for a row of whole numbers as wide as those data.
struct PoolRoom {
  const void *weight, *divisor;
  void *row, *position;
};
template <class Call> using PoolKernel = void (*)(const Call& call, const PoolRoom& room, int64_t begin, int64_t end);
template <Isa> PoolKernel<PoolCall> pool_kernel(Pool pool, DType dtype);
template <Isa> PoolKernel<PoolBackwardCall> pool_backward_kernel(Pool pool, DType dtype);

}  // namespace volta::cpu

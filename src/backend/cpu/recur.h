// What the driver of recurrent layers and their kernels share.
#pragma once
#include "backend/cpu/gemm_plan.h"
#include "backend/cpu/isa.h"
#include "backend/recur.h"

namespace volta::cpu {

struct RecurRun {
  Cell cell;
  bool reverse;
  int64_t time, batch, size, inputs;
  const void* x;
  void *grad_x, *gates, *hidden, *cells, *grad_gates, *grad_state, *grad_h0, *grad_c0;
  const void *h0, *c0, *bias, *packed;  // packed: the weight as `pack` left it
  const int64_t* lengths;
  struct Incoming {
    const void* data;
    int64_t time, batch;  // strides
  } grad_hidden, grad_cells;
};

struct RecurKernel {
  int64_t strip;                                     // rows of a tile
  int64_t (*packed)(int64_t rows, int64_t columns);  // numbers that pack writes
  void (*pack)(void* to, const void* weight, int64_t outputs, int64_t inputs, bool backward);
  void (*forward)(const RecurRun& run, Range rows);  // rows of the batch, through all of time
  void (*backward)(const RecurRun& run, Range rows);
};
template <Isa> RecurKernel recur_kernel(DType dtype);

}  // namespace volta::cpu

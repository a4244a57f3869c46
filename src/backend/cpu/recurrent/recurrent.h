// What the driver of recurrent layers and their kernels share.
#pragma once
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/isa.h"
#include "backend/recurrent.h"

namespace volta::cpu {

// Rows of the batch at each step, contiguous numbers each.
struct Steps {
  void* data;
  int64_t time, batch;  // strides
};

struct RecurrentRun {
  Cell cell;
  bool reverse, fused_inputs;
  int64_t time, batch, size, inputs;
  Steps x, gates, hidden, cells, h0, c0, grad_gates, grad_state, grad_x, grad_h0, grad_c0, grad_hidden, grad_cells;
  const void *w_hh, *w_ih, *bias;
  void *grad_w_hh, *grad_w_ih, *packed;  // packed: the weights as `pack` leaves them
  const int64_t* lengths;
  // Where rows are too few for all threads, these share the units of the state too, step by step. What goes from one to the next:
  // two times the rows a step multiplies, packed, and gradients of states and cells.
  int64_t groups = 1;
  void *rows = nullptr, *direct = nullptr, *cell_gradient = nullptr;

  // What the step at t follows, or -1; steps come in the order of time or against it.
  int64_t before(int64_t t) const { return reverse ? (t + 1 < time ? t + 1 : -1) : t - 1; }
  int64_t columns() const { return size + (fused_inputs ? inputs : 0); }
};

struct RecurrentKernel {
  GemmTile tile;
  int64_t (*packed)(const RecurrentRun& run, bool backward);  // numbers that pack writes
  void (*pack)(const RecurrentRun& run, bool backward, int64_t part, int64_t parts);
  void (*forward)(const RecurrentRun& run, Range rows);  // rows of the batch, through all of time
  void (*backward)(const RecurrentRun& run, Range rows);
  // A strip of rows and a group of units at one step, after all others have done the one before: in the order of the pass, from -1,
  // which prepares, to time - 1; backward from 0 to time, which ends it.
  void (*forward_step)(const RecurrentRun& run, Range rows, int64_t group, int64_t step);
  void (*backward_step)(const RecurrentRun& run, Range rows, int64_t group, int64_t step);
  // A rectangle of the gradients of both weights side by side, of the state's and then the input's columns.
  void (*weight_gradient)(const RecurrentRun& run, const Rectangle& r);
};
template <Isa> RecurrentKernel recurrent_kernel(DType dtype);

}  // namespace volta::cpu

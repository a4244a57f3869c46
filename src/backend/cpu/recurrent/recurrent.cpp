// Recurrent layers on the CPU: each thread takes rows of the batch through all of time or, where rows are few, a share of the units
// of the state, step by step.
#include "backend/cpu/recurrent/recurrent.h"

#include <vector>

#include "backend/cpu/cpu.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t few = 1 << 15;  // numbers that one thread packs sooner than two

// While inputs are few, and both weights stay in the second cache: those of processors with AVX-512 are the larger ones. A gru
// takes its shares apart.
bool suits_fused_inputs(const RecurrentOperands& c) {
  const int64_t cache = isa() == Isa::v4 || isa() == Isa::amx ? 3 << 19 : 1 << 20;
  const int64_t weights = gates_of(c.cell) * c.size * (c.size + c.inputs);
  return c.cell != Cell::gru && 3 * c.inputs <= c.size && weights * size_of(c.dtype) <= cache;
}

Steps steps(const Arg& x) {
  if (!x.data) return {};
  const auto& strides = x.layout->strides;
  return strides.size() == 3 ? Steps{x.data, strides[0], strides[1]} : Steps{x.data, 0, strides[0]};
}

RecurrentRun run_of(const RecurrentOperands& c) {
  RecurrentRun run{};
  run.cell = c.cell, run.reverse = c.reverse, run.fused_inputs = c.fused_inputs;
  run.time = c.time, run.batch = c.batch, run.size = c.size, run.inputs = c.inputs, run.lengths = c.lengths;
  run.x = steps(c.x), run.gates = steps(c.gates), run.hidden = steps(c.hidden), run.cells = steps(c.cells);
  run.h0 = steps(c.h0), run.c0 = steps(c.c0), run.w_hh = c.w_hh.data, run.w_ih = c.w_ih.data;
  return run;
}

// Gradients of weights, over all of time: of both at once where they share the gates' gradients, which take long to pack.
void weight_gradient(const RecurrentRun& run, const RecurrentKernel& kernel) {
  constexpr double work_of_part = 1 << 18;
  const int64_t begin = run.grad_w_hh ? 0 : run.size, end = run.size + (run.grad_w_ih ? run.inputs : 0);
  const auto columns = [&](int64_t from, int64_t to) {
    const Shape3 shape = {gates_of(run.cell) * run.size, to - from, run.time * run.batch};
    if (to <= from) return;
    const Grid grid =
        plan_grid(shape, kernel.tile, std::min<int64_t>(get_num_threads(), int64_t(shape.work() / work_of_part) + 1));
    parallel(grid.parts(), [&](int64_t i) {
      Rectangle r = grid.part(shape, kernel.tile, i);
      r.columns.begin += from;
      if (!r.empty()) kernel.weight_gradient(run, r);
    });
  };
  if (run.cell != Cell::gru) return columns(begin, end);
  columns(begin, run.size);
  columns(run.size, end);
}

// Into how many groups threads share the units of each strip of rows: where there are more threads than strips, and a step of a
// group takes so long that beginning one does not matter.
int64_t groups_of(const RecurrentRun& run, const GemmTile& tile) {
  constexpr int64_t least_work = 1 << 18;
  const int64_t threads = get_num_threads(), strips = (run.batch + tile.rows - 1) / tile.rows;
  const int64_t work = std::min(run.batch, tile.rows) * gates_of(run.cell) * run.size * run.columns();
  if (run.time < 2 || strips == 0) return 1;
  return std::clamp<int64_t>(std::min({threads / strips, work / least_work, run.size / (2 * tile.lanes)}), 1, threads);
}

// All strips and groups do a step, then the next.
void run_steps(RecurrentRun& run, const RecurrentKernel& kernel, DType dtype, bool backward) {
  const int64_t strip = kernel.tile.rows, strips = (run.batch + strip - 1) / strip, size = size_of(dtype);
  const int64_t depth = backward ? gates_of(run.cell) * run.size : run.columns(), numbers = run.batch * run.size;
  const IntrusivePtr<Storage> rows = host_storage(2 * strips * strip * depth * size, "recurrent"),
                              between = host_storage(backward ? 2 * numbers * size : 0, "recurrent");
  run.rows = rows->data, run.direct = between->data;
  run.cell_gradient = static_cast<char*>(between->data) + (backward ? numbers * size : 0);
  for (int64_t step = backward ? 0 : -1; step < run.time + backward; ++step)
    parallel(strips * run.groups, [&](int64_t i) {
      const int64_t begin = i / run.groups * strip;
      (backward ? kernel.backward_step : kernel.forward_step)(run, {begin, std::min(strip, run.batch - begin)},
                                                              i % run.groups, step);
    });
}

// The weights are packed, then every thread takes rows of the batch through all of time.
void run_rows(RecurrentRun& run, DType dtype, bool backward) {
  const RecurrentKernel kernel = for_isa([]<Isa level>() { return &recurrent_kernel<level>; })(dtype);
  run.groups = groups_of(run, kernel.tile);
  const int64_t threads = get_num_threads(), count = kernel.packed(run, backward), packers = count < few ? 1 : threads;
  const IntrusivePtr<Storage> packed = host_storage(count * size_of(dtype), "recurrent");
  run.packed = packed->data;
  parallel(packers, [&](int64_t i) { kernel.pack(run, backward, i, packers); });
  if (run.groups > 1) {
    run_steps(run, kernel, dtype, backward);
    if (backward) weight_gradient(run, kernel);
    return;
  }
  // Rows do not touch each other, and an element's bits do not depend on the rows beside it.
  const int64_t strip = kernel.tile.rows, strips = (run.batch + strip - 1) / strip, parts = std::min(strips, threads);
  parallel(parts, [&](int64_t i) {
    const int64_t begin = strips * i / parts * strip, end = std::min(run.batch, strips * (i + 1) / parts * strip);
    (backward ? kernel.backward : kernel.forward)(run, {begin, end - begin});
  });
  if (backward) weight_gradient(run, kernel);
}

}  // namespace

bool fuses_inputs(const RecurrentCall& call) { return suits_fused_inputs(call); }

void recurrent(const RecurrentCall& call) {
  RecurrentRun run = run_of(call);
  run.bias = call.bias.data;
  run_rows(run, call.dtype, false);
}

void recurrent_backward(const RecurrentBackwardCall& c) {
  RecurrentRun run = run_of(c);
  run.grad_gates = steps(c.grad_gates), run.grad_state = steps(c.grad_state), run.grad_x = steps(c.grad_x);
  run.grad_h0 = steps(c.grad_h0), run.grad_c0 = steps(c.grad_c0);
  run.grad_hidden = steps(c.grad_hidden), run.grad_cells = steps(c.grad_cells);
  run.grad_w_hh = c.grad_w_hh.data, run.grad_w_ih = c.grad_w_ih.data;
  run_rows(run, c.dtype, true);
}

}  // namespace volta::cpu

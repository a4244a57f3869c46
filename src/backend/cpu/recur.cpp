// Recurrent layers on the CPU: each thread takes rows of the batch through all of time.
#include "backend/cpu/recur.h"

#include <vector>

#include "backend/cpu/cpu.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

RecurRun::Incoming incoming(const Arg& g) {
  return g.data ? RecurRun::Incoming{g.data, g.layout->strides[0], g.layout->strides[1]} : RecurRun::Incoming{};
}

// While inputs are few, and both weights stay in the second cache: those of processors with AVX-512 are the larger ones. A gru
// takes its shares apart.
bool takes_inputs(const RecurCall& c) {
  const int64_t cache = isa() == Isa::v4 || isa() == Isa::amx ? 3 << 19 : 1 << 20;
  const int64_t weights = gates_of(c.cell) * c.size * (c.size + c.inputs);
  return c.cell != Cell::gru && 3 * c.inputs <= c.size && weights * size_of(c.weight.dtype) <= cache;
}

}  // namespace

bool recur(const RecurCall& c) {
  if (c.weight.dtype != f32 && c.weight.dtype != f64) return false;
  if (!c.gates.data) return c.inputs == 0 || takes_inputs(c);
  if (c.time == 0 || c.batch == 0) return true;
  const RecurKernel kernel = for_isa([]<Isa level>() { return &recur_kernel<level>; })(c.weight.dtype);
  const int64_t outputs = gates_of(c.cell) * c.size, columns = c.size + c.inputs;
  const int64_t count = c.backward ? kernel.packed(outputs, columns) : kernel.packed(columns, outputs);
  const Ptr<Storage> packed = host_storage(count * size_of(c.weight.dtype), "recurrent");
  kernel.pack(packed->data, c.weight.data, outputs, columns, c.backward);
  const RecurRun run = {c.cell,
                        c.reverse,
                        c.time,
                        c.batch,
                        c.size,
                        c.inputs,
                        c.x.data,
                        c.grad_x.data,
                        c.gates.data,
                        c.hidden.data,
                        c.cells.data,
                        c.grad_gates.data,
                        c.grad_state.data,
                        c.grad_h0.data,
                        c.grad_c0.data,
                        c.h0.data,
                        c.c0.data,
                        c.bias.data,
                        packed->data,
                        c.lengths,
                        incoming(c.grad_hidden),
                        incoming(c.grad_cells)};
  // Rows do not touch each other, and an element's bits do not depend on the rows beside it.
  const int64_t strips = (c.batch + kernel.strip - 1) / kernel.strip,
                parts = std::min<int64_t>(strips, get_num_threads());
  parallel(parts, [&](int64_t i) {
    const int64_t begin = strips * i / parts * kernel.strip;
    const int64_t end = std::min(c.batch, strips * (i + 1) / parts * kernel.strip);
    (c.backward ? kernel.backward : kernel.forward)(run, {begin, end - begin});
  });
  return true;
}

}  // namespace volta::cpu

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

}  // namespace

bool recur(const RecurCall& c) {
  if (c.weight.dtype != f32 && c.weight.dtype != f64) return false;
  if (!c.gates.data || c.time == 0 || c.batch == 0) return true;
  const RecurKernel kernel = for_isa([]<Isa level>() { return &recur_kernel<level>; })(c.weight.dtype);
  const int64_t outputs = gates_of(c.cell) * c.size;
  const int64_t count = c.backward ? kernel.packed(outputs, c.size) : kernel.packed(c.size, outputs);
  const Ptr<Storage> packed = host_storage(count * size_of(c.weight.dtype), "recurrent");
  kernel.pack(packed->data, c.weight.data, outputs, c.size, c.backward);
  const RecurRun run = {c.cell,
                        c.reverse,
                        c.time,
                        c.batch,
                        c.size,
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

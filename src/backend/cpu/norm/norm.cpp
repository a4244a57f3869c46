// Normalisation on the CPU: sets, or shares of the outer indices, run in parallel.
#include "backend/cpu/norm/norm.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"

namespace volta::cpu {

bool norm(const NormCall& c) {
  constexpr int64_t grain = 16 * 1024;  // elements worth a thread
  if (c.x.dtype != f32 && c.x.dtype != f64) return false;
  const NormKernel kernel = for_isa([]<Isa level>() { return &norm_kernel<level>; })(c.x.dtype);
  const int64_t sets = c.over_outer ? c.groups : c.outer * c.groups,
                elements = c.outer * c.groups * c.channels * c.inner;
  const auto each = [&](int64_t pieces) {
    return std::max<int64_t>(1, grain / std::max<int64_t>(1, elements / pieces));
  };
  if (c.y.data || c.over_outer) {
    parallel_ranges(sets, each(sets), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) c.y.data ? kernel.forward(c, s) : kernel.backward(c, s, 0);
    });
    return true;
  }
  const int64_t share = divide_up(c.outer, c.parts), pieces = c.parts * c.groups;
  parallel_ranges(pieces, each(pieces), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / c.groups, last = std::min(c.outer, (part + 1) * share);
      for (int64_t o = part * share; o < last; ++o) kernel.backward(c, o * c.groups + i % c.groups, part);
    }
  });
  return true;
}

}  // namespace volta::cpu

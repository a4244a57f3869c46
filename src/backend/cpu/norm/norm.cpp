// Normalisation on the CPU: sets, or shares of the outer indices, run in parallel.
#include "backend/cpu/norm/norm.h"

#include <cstring>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 16 * 1024;  // elements worth a thread

NormKernel kernel_of(const NormOperands& c) {
  return for_isa([]<Isa level>() { return &norm_kernel<level>; })(c.x.dtype);
}

// Pieces to a part, so that it is worth a thread.
int64_t pieces_each(const NormOperands& c, int64_t pieces) {
  const int64_t elements = c.outer * c.groups * c.channels * c.inner;
  return std::max<int64_t>(1, finer(elements, grain) / std::max<int64_t>(1, elements / pieces));
}

// Outer indices whose sums are taken together: so few that plain sums are exact enough, or so many that the memory of the
// parts does not matter.
int64_t rows_of_part(const NormBackwardCall& c) {
  const int64_t enough = std::max(8192 / (c.groups * c.channels), c.outer / 16);
  return c.inner > 1 ? 1 : std::clamp<int64_t>(enough, 1, 256);
}

}  // namespace

void norm(const NormCall& c) {
  const NormKernel kernel = kernel_of(c);
  const int64_t sets = c.over_outer ? c.groups : c.outer * c.groups;
  parallel_ranges(sets, pieces_each(c, sets), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) kernel.forward(c, s);
  });
}

void norm_backward(const NormBackwardCall& c) {
  const NormKernel kernel = kernel_of(c);
  const int64_t numbers = 2 * c.groups * c.channels, bytes = numbers * size_of(c.x.dtype);
  if (c.over_outer) {
    std::memset(c.grad_weights.data, 0, size_t(bytes));
    return parallel_ranges(c.groups, pieces_each(c, c.groups), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) kernel.backward(c, s, c.grad_weights.data);
    });
  }
  const int64_t rows = rows_of_part(c), parts = divide_up(c.outer, rows), pieces = parts * c.groups;
  const IntrusivePtr<Storage> sums = host_storage(parts * bytes, "norm");
  parallel_ranges(pieces, pieces_each(c, pieces), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / c.groups, group = i % c.groups, last = std::min(c.outer, (part + 1) * rows);
      char* sum = static_cast<char*>(sums->data) + part * bytes;
      const int64_t at = group * c.channels * size_of(c.x.dtype), width = c.channels * size_of(c.x.dtype);
      std::memset(sum + at, 0, size_t(width)), std::memset(sum + bytes / 2 + at, 0, size_t(width));
      for (int64_t o = part * rows; o < last; ++o) kernel.backward(c, o * c.groups + group, sum);
    }
  });
  sum_parts(c.grad_weights, sums->data, parts, numbers);
}

}  // namespace volta::cpu

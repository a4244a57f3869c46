// How loops that walk rows are cut into parallel parts; by shape alone.
#pragma once
#include "core/parallel.h"
#include "core/walk.h"

namespace volta::cpu {

// Calls f(offset, begin, n) so that every element of every row is covered once: elements [begin, begin + n) of the row
// whose byte offsets are given. Parts hold about `grain` elements and may run at the same time.
template <int N, class F> void parallel_rows(const Walk<N>& walk, int64_t grain, F&& f) {
  const int64_t rows = walk.rows(), inner = walk.size[0];
  if (inner > grain) {
    const int64_t pieces = (inner + grain - 1) / grain;
    parallel(rows * pieces, [&](int64_t part) {
      const int64_t row = part / pieces, begin = part % pieces * grain;
      walk.for_rows(row, row + 1, [&](const int64_t* offset) { f(offset, begin, std::min(grain, inner - begin)); });
    });
    return;
  }
  const int64_t each = std::max<int64_t>(1, grain / std::max<int64_t>(1, inner));
  parallel((rows + each - 1) / each, [&](int64_t part) {
    walk.for_rows(part * each, std::min(rows, (part + 1) * each), [&](const int64_t* offset) { f(offset, 0, inner); });
  });
}

}  // namespace volta::cpu

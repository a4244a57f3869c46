// How loops are cut into parallel parts.
#pragma once
#include <array>

#include "backend/backend.h"
#include "core/parallel.h"
#include "core/strided_loop.h"

namespace volta::cpu {

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls f(begin, end) for ranges of `each` that cover [0, count); they may run at the same time.
template <class F> void parallel_ranges(int64_t count, int64_t each, F&& f) {
  parallel(divide_up(count, each), [&](int64_t part) { f(part * each, std::min(count, (part + 1) * each)); });
}

// Where no result depends on the split: of n elements, as many as make a part. So many as `grain` are not worth a second thread,
// but where there are many threads, more work is shared by more of them.
inline int64_t finer(int64_t n, int64_t grain) {
  const int threads = get_num_threads();
  return n <= grain || threads <= 2 ? grain : threads <= 4 ? grain / 2 : grain / 4;
}
// Long stretches suit the memory, several parts for each thread even out their speeds: four where they are still long, else two.
inline int64_t part_size(int64_t n, int64_t grain) {
  const int threads = get_num_threads();
  return std::max({n / (4 * threads), std::min(grain, n / (2 * threads)), finer(n, grain)});
}

// The loop of operands over a shape they broadcast to, an axis left out: along that they step so many bytes. One
// without a layout is a number, or missing.
template <int N> struct AxisLoop {
  StridedLoop<N> loop;
  int64_t step[N] = {};
};
template <int N> AxisLoop<N> axis_loop(const Shape& shape, const std::array<const Arg*, N>& operands, int axis = -1) {
  AxisLoop<N> lanes;
  for (int i = 0; i < shape.size(); ++i) {
    int64_t strides[N] = {};
    for (size_t k = 0; k < N; ++k)
      if (const Arg& x = *operands[k]; x.layout)
        strides[k] = broadcast_stride(*x.layout, i, shape.size()) * size_of(x.dtype);
    if (i != axis) lanes.loop.add_axis(shape[i], strides);
    else std::copy(strides, strides + N, lanes.step);
  }
  lanes.loop.finish();
  return lanes;
}

// Calls f(offset, begin, n) so that every element of every row is covered once: elements [begin, begin + n) of the row
// whose byte offsets are given. Parts hold at least about `grain` elements and may run at the same time.
template <int N, class F> void parallel_rows(const StridedLoop<N>& loop, int64_t grain, F&& f) {
  const int64_t rows = loop.rows(), inner = loop.size[0];
  grain = part_size(rows * inner, grain);
  if (inner > grain) {
    const int64_t pieces = divide_up(inner, grain);
    return parallel(rows * pieces, [&](int64_t part) {
      const int64_t row = part / pieces, begin = part % pieces * grain;
      loop.for_rows(row, row + 1, [&](const int64_t* offset) { f(offset, begin, std::min(grain, inner - begin)); });
    });
  }
  parallel_ranges(rows, std::max<int64_t>(1, grain / std::max<int64_t>(1, inner)), [&](int64_t begin, int64_t end) {
    loop.for_rows(begin, end, [&](const int64_t* offset) { f(offset, 0, inner); });
  });
}

}  // namespace volta::cpu

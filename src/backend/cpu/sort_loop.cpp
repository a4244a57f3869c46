// Sorting along an axis of any layout: rows are brought together, sorted, and put where they belong.
#include <cstring>
#include <memory>

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "backend/cpu/sort.h"
#include "core/parallel.h"
#include "core/walk.h"

namespace volta::cpu {
namespace {

struct Plan {
  Walk<3> rows;     // starts of the rows of in, values, indices
  int64_t step[3];  // along the sorted axis, in bytes
  int64_t n, begin, wanted;
  DType dtype;
  bool descending;
};

const Layout* layout_or_null(const Arg& a) { return a.data ? a.layout : nullptr; }

Plan make_plan(const SortCall& call) {
  const Layout* layouts[] = {call.in.layout, layout_or_null(call.values), layout_or_null(call.indices)};
  const Layout& result = layouts[1] ? *layouts[1] : *layouts[2];
  const int64_t sizes[] = {size_of(call.in.dtype), size_of(call.in.dtype), int64_t(sizeof(int64_t))};
  Plan p{{}, {}, call.in.layout->shape[call.axis], call.begin, result.shape[call.axis], call.in.dtype, call.descending};
  for (int k = 0; k < 3; ++k) p.step[k] = layouts[k] ? layouts[k]->strides[call.axis] * sizes[k] : 0;
  for (int i = 0; i < call.in.layout->rank(); ++i) {
    int64_t strides[3];
    for (int k = 0; k < 3; ++k) strides[k] = layouts[k] ? layouts[k]->strides[i] * sizes[k] : 0;
    if (i != call.axis) p.rows.add_axis(call.in.layout->shape[i], strides);
  }
  p.rows.finish();
  return p;
}

// Working memory for one row: a contiguous copy of it, its sorted values and their indices.
struct Space {
  explicit Space(const Plan& p)
      : room((p.n * size_of(p.dtype) + 7) / 8 * 8),
        bytes(std::make_unique_for_overwrite<char[]>(size_t(2 * room + p.n * int64_t(sizeof(int64_t))))) {}
  char* row() const { return bytes.get(); }
  char* values() const { return bytes.get() + room; }
  int64_t* indices() const { return reinterpret_cast<int64_t*>(bytes.get() + 2 * room); }
  int64_t room;
  std::unique_ptr<char[]> bytes;
};

const void* fetch(const Plan& p, const char* in, const Space& space) {
  const int64_t size = size_of(p.dtype);
  if (p.step[0] == size || p.n == 1) return in;
  gather_row(size, p.n, space.row(), in, p.step[0]);
  return space.row();
}

void store(int64_t size, int64_t n, char* out, int64_t step, const char* from) {
  if (!out || out == from) return;
  if (step == size) std::memcpy(out, from, size_t(n * size));
  else scatter_row(size, n, out, step, from);
}

// Positions [begin, begin + wanted) of the sorted row.
void sort_window(const Plan& p, const Space& space, const char* in, char* values_out, char* indices_out) {
  const int64_t size = size_of(p.dtype), index_size = sizeof(int64_t);
  const void* row = fetch(p, in, space);
  const bool all = p.wanted == p.n;
  char* values = all && values_out && p.step[1] == size ? values_out : space.values();
  int64_t* indices =
      all && indices_out && p.step[2] == index_size ? reinterpret_cast<int64_t*>(indices_out) : space.indices();
  int64_t skipped = p.begin;
  if (p.wanted == 1 && !p.descending) {
    nth_row(p.dtype, p.n, p.begin, row, values, indices);
    skipped = 0;
  } else if (p.begin + p.wanted <= p.n / 8) {
    topk_row(p.dtype, p.n, p.begin + p.wanted, row, values, indices, p.descending, true);
  } else {
    sort_row(p.dtype, p.n, row, values, indices, p.descending);
  }
  store(size, p.wanted, values_out, p.step[1], values + skipped * size);
  store(index_size, p.wanted, indices_out, p.step[2], reinterpret_cast<const char*>(indices + skipped));
}

}  // namespace

void sort(const SortCall& call) {
  const Plan p = make_plan(call);
  if (call.in.layout->numel() == 0 || p.wanted == 0) return;
  const auto one = [&](const Space& space, const int64_t* offset) {
    const auto at = [&](const Arg& a, int k) { return a.data ? static_cast<char*>(a.data) + offset[k] : nullptr; };
    sort_window(p, space, at(call.in, 0), at(call.values, 1), at(call.indices, 2));
  };
  // for_rows leaves the innermost axis to its caller; here that axis counts rows too.
  const int64_t inner = p.rows.size[0], rows = p.rows.rows() * inner;
  const auto run = [&](const Space& space, int64_t row) {
    p.rows.for_rows(row / inner, row / inner + 1, [&](const int64_t* offset) {
      int64_t at[3];
      for (int k = 0; k < 3; ++k) at[k] = offset[k] + row % inner * p.rows.stride[0][k];
      one(space, at);
    });
  };
  // Long rows are sorted by several threads each.
  if (p.n >= int64_t(1) << 17 && rows < 16) {
    const Space space(p);
    for (int64_t row = 0; row < rows; ++row) run(space, row);
    return;
  }
  const int64_t each = std::max<int64_t>(1, 4096 / p.n);
  parallel((rows + each - 1) / each, [&](int64_t part) {
    const Space space(p);
    for (int64_t row = part * each; row < std::min(rows, (part + 1) * each); ++row) run(space, row);
  });
}

}  // namespace volta::cpu

// Axes of strided operands in the order a kernel walks them: innermost first, merged where all operands step evenly.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <volta/shape.h>

namespace volta::cpu {

// N operands; strides are in bytes.
template <int N> struct AxisOf {
  int64_t size;
  int64_t stride[N];
};

template <int N> struct AxisList {
  using Axis = AxisOf<N>;
  int rank = 0;
  Axis axis[Shape::max_rank];

  void add(const Axis& a) {
    if (a.size != 1) axis[rank++] = a;
  }
  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= axis[i].size;
    return n;
  }
  // Axes were added outermost first. Sorted by the first operand's strides; one that repeats elements comes outermost.
  void finish(bool sorted) {
    std::reverse(axis, axis + rank);
    if (sorted) sort();
    int kept = 0;
    for (int i = 1; i < rank; ++i) {
      if (joins(axis[kept], axis[i])) axis[kept].size *= axis[i].size;
      else axis[++kept] = axis[i];
    }
    if (rank > 0) rank = kept + 1;
    if (rank == 0) axis[rank++] = {1, {}};
  }

 private:
  void sort() {  // by insertion: stable, and the ranks are small
    const auto distance = [](const Axis& a) { return uint64_t(std::abs(a.stride[0])) - 1; };
    for (int i = 1; i < rank; ++i)
      for (int j = i; j > 0 && distance(axis[j]) < distance(axis[j - 1]); --j) std::swap(axis[j], axis[j - 1]);
  }
  static bool joins(const Axis& inner, const Axis& outer) {
    for (int k = 0; k < N; ++k)
      if (outer.stride[k] != inner.stride[k] * inner.size) return false;
    return true;
  }
};

// Steps through all but the first `skipped` axes in order, keeping the byte offset of each operand.
template <int N> struct Steps {
  const AxisList<N>& axes;
  int skipped;
  int64_t at[Shape::max_rank] = {};
  int64_t offset[N] = {};

  Steps(const AxisList<N>& list, int skip, int64_t position) : axes(list), skipped(skip) {
    for (int i = skipped; position > 0 && i < axes.rank; ++i) {
      at[i] = position % axes.axis[i].size;
      position /= axes.axis[i].size;
      for (int k = 0; k < N; ++k) offset[k] += at[i] * axes.axis[i].stride[k];
    }
  }
  void next() { advance(1); }
  // By several along the innermost axis, not beyond its end.
  void advance(int64_t by) {
    for (int i = skipped; i < axes.rank; ++i, by = 1) {
      const auto& a = axes.axis[i];
      at[i] += by;
      for (int k = 0; k < N; ++k) offset[k] += by * a.stride[k];
      if (at[i] < a.size) return;
      for (int k = 0; k < N; ++k) offset[k] -= a.size * a.stride[k];
      at[i] = 0;
    }
  }
};

}  // namespace volta::cpu

// StridedLoop: the coalesced geometry of N operands that are stepped through together. The only run-time code on strides.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/layout.h"

namespace volta {

// Axes are innermost first, without size-1 axes, ordered by the first operand's strides and merged where all operands
// step evenly. Strides are in bytes.
template <int N> struct StridedLoop {
  int rank = 0;
  int64_t size[Shape::max_rank];
  int64_t stride[Shape::max_rank][N];

  // One axis, outermost first. Strides are in elements, scaled by the operand's element size.
  void add_axis(int64_t n, const int64_t* strides) {
    if (n == 1) return;
    size[rank] = n;
    std::copy(strides, strides + N, stride[rank]);
    ++rank;
  }

  // Unsorted, elements are met in the order of the axes as they were added.
  void finish(bool sorted = true) {
    for (int i = 0, j = rank - 1; i < j; ++i, --j) swap_axes(i, j);
    for (int i = 1; sorted && i < rank; ++i)  // insertion sort: stable, and the ranks are small
      for (int j = i; j > 0 && closer(j, j - 1); --j) swap_axes(j, j - 1);
    if (rank > 0) return merge();
    rank = 1;
    size[0] = 1;
    std::fill(stride[0], stride[0] + N, 0);
  }

  int64_t rows() const {
    int64_t n = 1;
    for (int i = 1; i < rank; ++i) n *= size[i];
    return n;
  }

  // Calls f(offsets) for rows [begin, end), with the byte offset of each operand at the row's start. A row is what the
  // `inner` innermost axes hold.
  template <class F> void for_rows(int64_t begin, int64_t end, F&& f, int inner = 1) const {
    int64_t at[Shape::max_rank] = {}, offset[N] = {};
    int64_t rest = begin;
    for (int i = inner; i < rank; ++i) {
      at[i] = rest % size[i];
      rest /= size[i];
      for (int k = 0; k < N; ++k) offset[k] += at[i] * stride[i][k];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(static_cast<const int64_t*>(offset));
      for (int i = inner; i < rank; ++i) {
        for (int k = 0; k < N; ++k) offset[k] += stride[i][k];
        if (++at[i] < size[i]) break;
        for (int k = 0; k < N; ++k) offset[k] -= stride[i][k] * size[i];
        at[i] = 0;
      }
    }
  }

 private:
  bool closer(int a, int b) const {  // whether axis a belongs inside axis b
    for (int k = 0; k < N; ++k) {
      const int64_t x = std::abs(stride[a][k]), y = std::abs(stride[b][k]);
      if (x != y && x != 0 && y != 0) return x < y;
    }
    return false;
  }
  void swap_axes(int a, int b) {
    std::swap(size[a], size[b]);
    std::swap_ranges(stride[a], stride[a] + N, stride[b]);
  }
  void merge() {
    int last = 0;
    for (int i = 1; i < rank; ++i) {
      bool even = true;
      for (int k = 0; k < N; ++k) even = even && stride[i][k] == stride[last][k] * size[last];
      if (even) size[last] *= size[i];
      else swap_axes(++last, i);
    }
    rank = last + 1;
  }
};

// The stride (in elements) that operand `x` has at axis `i` of an output of rank `rank`, when broadcast to it.
inline int64_t broadcast_stride(const Layout& x, int i, int rank) {
  const int j = i - (rank - x.rank());
  return j < 0 || x.shape.begin()[j] == 1 ? 0 : x.strides.begin()[j];  // unchecked: this is called for every operand
}

}  // namespace volta

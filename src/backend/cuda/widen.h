// Moving several elements as one word, where every layout involved allows it.
#pragma once
#include <array>
#include <cstdint>

#include "core/walk.h"

namespace volta::cuda {

// The walk's operands hold elements of `size` bytes; those that do not count (`moved` false) must stand still along the
// innermost axis, and keep their strides. Merges neighbours along that axis into words of at most 16 bytes, of which
// `step` bytes are a multiple, and returns the size of a word.
template <size_t N> int64_t widen_words(Walk<int(N)>& walk, int64_t size, const std::array<const void*, N>& data,
                                        const std::array<bool, N>& moved, int64_t step = 0) {
  uintptr_t lowest =
      uintptr_t(walk.size[0] * size) | uintptr_t(step);  // its low bits: what everything is a multiple of
  for (size_t k = 0; k < N; ++k) {
    if (walk.stride[0][k] != (moved[k] ? size : 0)) return size;
    if (!moved[k]) continue;
    lowest |= reinterpret_cast<uintptr_t>(data[k]);
    for (int i = 1; i < walk.rank; ++i) lowest |= uintptr_t(walk.stride[i][k]);
  }
  int64_t word = 16;
  while (word > size && lowest % uintptr_t(word) != 0) word /= 2;
  walk.size[0] = walk.size[0] * size / word;
  for (size_t k = 0; k < N; ++k)
    if (moved[k]) walk.stride[0][k] = word;
  return word;
}

}  // namespace volta::cuda

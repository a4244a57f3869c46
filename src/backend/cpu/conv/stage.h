// Staging: the part of an image that a box needs, copied with zeros where the image ends.
#pragma once
#include <algorithm>
#include <cstring>

#include "backend/cpu/conv/plan.h"
#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu {
namespace {

constexpr int64_t beyond = 64;  // values an algorithm may read past the end of what was staged

// An image tensor [batch, channels, axes…] as it lies in memory; strides in bytes.
struct Image {
  char* data;
  DType dtype;
  int64_t batch, channel, axis[conv_space];
  Image(const Arg& a, bool planes) : data(static_cast<char*>(a.data)), dtype(a.dtype), axis{0, 0, 0} {
    const int64_t size = size_of(dtype);
    const Shape& strides = a.layout->strides;
    batch = strides[0] * size;
    channel = strides[1] * size;
    for (int i = conv_space - 1, k = strides.size() - 1; k > 1; --i, --k) axis[i] = strides[k] * size;
    if (planes) axis[0] = batch;
  }
  char* at(int64_t b, int64_t c) const { return data + b * batch + c * channel; }
  // Whether pixels of an image with these sizes follow each other.
  bool dense(const int64_t* sizes) const {
    int64_t expected = size_of(dtype);
    for (int i = conv_space - 1; i >= 0; expected *= sizes[i--])
      if (sizes[i] > 1 && axis[i] != expected) return false;
    return true;
  }
};

template <class T> constexpr int64_t lanes = 16 / int64_t(sizeof(T));

// One vector of values that lie `step` (0, 1 or 2) elements apart.
template <int step, class T> auto vector_from(const T* from) {
  using Vector [[gnu::vector_size(16)]] = T;
  if constexpr (step == 0) {
    const Vector first = {*from};
    if constexpr (lanes<T> == 4) return __builtin_shufflevector(first, first, 0, 0, 0, 0);
    else return __builtin_shufflevector(first, first, 0, 0);
  }
  Vector a, b;
  std::memcpy(&a, from, 16);
  if constexpr (step == 2) {
    std::memcpy(&b, from + lanes<T> - 1, 16);
    if constexpr (lanes<T> == 4) a = __builtin_shufflevector(a, b, 0, 2, 5, 7);
    else a = __builtin_shufflevector(a, b, 0, 3);
  }
  return a;
}

// As copy_row, where T is one of the dtypes. Most rows are too short for calls; the last of their vectors overlaps.
template <class T> inline void move_row(int64_t n, char* out, int64_t out_stride, DType to, const char* in,
                                        int64_t in_stride, DType from) {
  constexpr int64_t size = sizeof(T), long_row = 64;
  if (to != from || (n >= long_row && in_stride != 0)) return copy_row(n, out, out_stride, to, in, in_stride, from);
  const T* values = reinterpret_cast<const T*>(in);
  T* row = reinterpret_cast<T*>(out);
  const int64_t last = n - lanes<T>;
  const auto by_vectors = [&]<int step>(std::integral_constant<int, step>) {
    auto value = vector_from<step>(values);
    for (int64_t i = 0; i < last; i += lanes<T>) {
      if constexpr (step > 0) value = vector_from<step>(values + step * i);
      std::memcpy(row + i, &value, 16);
    }
    if constexpr (step > 0) value = vector_from<step>(values + step * last);
    std::memcpy(row + last, &value, 16);
  };
  if (last < 0 || out_stride != size || in_stride < 0 || in_stride > 2 * size)
    for (; n > 0; --n, out += out_stride, in += in_stride) std::memcpy(out, in, size);
  else if (in_stride == 0) by_vectors(std::integral_constant<int, 0>());
  else if (in_stride == size) by_vectors(std::integral_constant<int, 1>());
  else by_vectors(std::integral_constant<int, 2>());
}

// Elements [0, n) of staged rows read the source at first + i * step, of which [begin, end) are inside it; others are zero.
struct StagedRow {
  int64_t n, begin = 0, end;
  int64_t from, stride;  // in bytes, of the first inside and from one to the next
  DType dtype;

  StagedRow(int64_t count, const Image& source, int64_t size, int64_t first, int64_t step)
      : n(count), end(count), from(0), stride(0), dtype(source.dtype) {
    while (begin < n && first + begin * step < 0) ++begin;
    while (end > begin && first + (end - 1) * step >= size) --end;
    if (begin < end) from = (first + begin * step) * source.axis[2];
    if (begin + 1 < end) stride = step * source.axis[2];
  }

  // Zeros before `head` and from `tail` on; values in between are written later.
  template <class T> void clear(T* to, int64_t head, int64_t tail) const {
    const int64_t last = n - lanes<T>;
    if (last < 0) {
      for (int64_t i = 0; i < lanes<T>; ++i)
        if (i < n) to[i] = T(0);
      return;
    }
    for (int64_t i = 0; i < head; i += lanes<T>) std::memset(to + std::min(i, last), 0, 16);
    for (int64_t i = last; i > tail - lanes<T>; i -= lanes<T>) std::memset(to + std::max<int64_t>(i, 0), 0, 16);
  }
  template <class T> void copy(T* to, const char* row) const {
    clear(to, begin, end);
    move_row<T>(end - begin, reinterpret_cast<char*>(to + begin), sizeof(T), dtype_of<T>(), row + from, stride, dtype);
  }
};

// One channel of a box, all its phases, with zeros where the source ends.
template <class T> void stage_channel(T* to, const Image& source, const char* channel, const Pass& pass, const Box& box,
                                      const Staged& staged) {
  const PassAxis &d = pass.axes[0], &h = pass.axes[1], &w = pass.axes[2];
  // Read once: for all the compiler knows, rows are written over what references lead to.
  const int64_t planes = staged.extent[0], rows = staged.extent[1], step = h.step, size = h.size;
  const int64_t stride = source.axis[1];
  const auto first = [&](int i, int64_t phase) {
    return pass.axes[i].start + box.begin[i] * pass.axes[i].step + phase;
  };
  for (const int64_t phase_d : d.phases) {
    for (const int64_t phase_h : h.phases) {
      for (const int64_t phase_w : w.phases) {
        const StagedRow row(staged.extent[2], source, w.size, first(2, phase_w), w.step);
        for (int64_t i = 0; i < planes; ++i) {
          const int64_t z = first(0, phase_d) + i * d.step, top = first(1, phase_h);
          const bool inside = z >= 0 && z < d.size;
          const char* plane = channel + (inside ? z * source.axis[0] : 0);
          for (int64_t j = 0, y = top; j < rows; ++j, y += step, to += row.n) {
            if (inside && y >= 0 && y < size) row.copy(to, plane + y * stride);
            else row.clear(to, row.n, row.n);
          }
        }
      }
    }
  }
}

template <class T> T* stage(const Image& source, int64_t b, int64_t c, int64_t channels, const Pass& pass,
                            const Box& box, const Staged& staged) {
  const int64_t each = pass.phases() * staged.plane();
  T* image = static_cast<T*>(scratch(Scratch::image, size_t(channels * each + beyond) * sizeof(T)));
  for (int64_t i = 0; i < channels; ++i)
    stage_channel(image + i * each, source, source.at(b, c + i), pass, box, staged);
  return image;
}

}  // namespace
}  // namespace volta::cpu

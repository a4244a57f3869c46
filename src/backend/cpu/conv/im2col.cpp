// Convolution as matrix products with the patches unrolled, a chunk of pixels at a time.
#include <algorithm>

#include "backend/cpu/conv/plan.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu {
namespace {

constexpr int64_t chunk_bytes = 1 << 19;

// Calls f(columns, their step, first pixel, pixels) with the patches of some pixels as a matrix [depth, pixels].
template <class T, class F> void each_chunk(const ConvPart<T>& part, F f) {
  if (part.regular) return f(part.image, *part.regular, 0, part.pixels);
  const int64_t wanted =
      part.chunk > 0 ? part.chunk : std::max<int64_t>(16, chunk_bytes / (part.depth * int64_t(sizeof(T))));
  const int64_t chunk = std::min(part.pixels, wanted);
  T* columns = static_cast<T*>(scratch(Scratch::columns, size_t(part.depth * chunk) * sizeof(T)));
  for (int64_t j = 0; j < part.pixels; j += chunk) {
    const int64_t n = std::min(chunk, part.pixels - j);
    for (int64_t p = 0; p < part.depth; ++p) {
      for (int64_t i = j, run; i < j + n; i += run) {
        const int64_t line = i / part.row, column = i % part.row;
        run = std::min(j + n - i, part.row - column);
        const T* from = part.image + part.offsets[p] + line / part.rows * part.plane_step +
                        line % part.rows * part.row_step + column;
        std::copy_n(from, run, columns + p * n + i - j);
      }
    }
    f(columns, n, j, n);
  }
}

template <class T> void multiply(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, T* c,
                                 const ConvPart<T>& part, bool add) {
  Gemm g = {dtype_of<T>(), m, n, k, a, b, c, part.c_step, 1, add};
  g.fixed_order = true;
  gemm(g);
}

template <class T> void correlate(const ConvPart<T>& part) {
  const ConvRows<T> a = contiguous_rows(part);
  each_chunk(part, [&](const T* columns, int64_t step, int64_t j, int64_t n) {
    T* c = part.c + j;
    for (int64_t i = 0; i < part.m && part.bias; ++i) std::fill_n(c + i * part.c_step, n, part.bias[i]);
    multiply(part.m, n, part.depth, {a.data, a.step, 1}, {columns, step, 1}, c, part, part.bias != nullptr);
  });
}

template <class T> void weight_gradient(const ConvPart<T>& part) {
  each_chunk(part, [&](const T* columns, int64_t step, int64_t j, int64_t n) {
    multiply(part.m, part.depth, n, {part.a.data + j, part.a.step, 1}, {columns, 1, step}, part.c, part,
             part.add || j > 0);
  });
}

}  // namespace

template <class T> ConvKernels<T> conv_im2col() {
  return {correlate<T>, weight_gradient<T>, 1, true, 1 << 19, copied_rows<T>, copy_rows<T>};
}
template ConvKernels<float> conv_im2col();
template ConvKernels<double> conv_im2col();

}  // namespace volta::cpu

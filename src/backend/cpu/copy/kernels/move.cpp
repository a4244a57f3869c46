// The loops of strided moves and the tile of a transposed copy.
#include "backend/cpu/copy/kernels.h"

#include <type_traits>
#include <utility>

namespace volta::cpu::VOLTA_ISA {
namespace {

// Element access through memcpy: any alignment, any type behind the bytes.
template <class T> T load(const std::byte* p) {
  T x;
  __builtin_memcpy(&x, p, sizeof(T));
  return x;
}

template <class T> void store(std::byte* p, T x) { __builtin_memcpy(p, &x, sizeof(T)); }

template <class T> void fill(int64_t n, std::byte* out, const std::byte* value) {
  const T x = load<T>(value);
  for (int64_t i = 0; i < n; i++) store<T>(out + i * int64_t(sizeof(T)), x);
}

template <class T, class Stride> void gather_by(int64_t n, std::byte* out, const std::byte* in, Stride stride) {
  for (int64_t i = 0; i < n; i++) store<T>(out + i * int64_t(sizeof(T)), load<T>(in + i * stride));
}

template <class T, class Stride> void scatter_by(int64_t n, std::byte* out, Stride stride, const std::byte* in) {
  for (int64_t i = 0; i < n; i++) store<T>(out + i * stride, load<T>(in + i * int64_t(sizeof(T))));
}

// The common strides are compile-time constants, so that the loops over them vectorise.
template <class T, int elements> using Fixed = std::integral_constant<int64_t, elements * int64_t(sizeof(T))>;

template <class T> void gather(int64_t n, std::byte* out, const std::byte* in, int64_t stride) {
  constexpr int64_t size = sizeof(T);
  if (n <= 0) return;
  if (stride == size) __builtin_memcpy(out, in, size_t(n * size));
  else if (stride == 0) fill<T>(n, out, in);
  else if (stride == -size) gather_by<T>(n, out, in, Fixed<T, -1>{});
  else if (stride == 2 * size) gather_by<T>(n, out, in, Fixed<T, 2>{});
  else if (stride == 3 * size) gather_by<T>(n, out, in, Fixed<T, 3>{});
  else if (stride == 4 * size) gather_by<T>(n, out, in, Fixed<T, 4>{});
  else gather_by<T>(n, out, in, stride);
}

template <class T> void scatter(int64_t n, std::byte* out, int64_t stride, const std::byte* in) {
  constexpr int64_t size = sizeof(T);
  if (n <= 0) return;
  if (stride == size) __builtin_memcpy(out, in, size_t(n * size));
  else if (stride == 0) store<T>(out, load<T>(in + (n - 1) * size));
  else if (stride == -size) scatter_by<T>(n, out, Fixed<T, -1>{}, in);
  else scatter_by<T>(n, out, stride, in);
}

template <class T> using Vector [[gnu::vector_size(16)]] = T;
template <class T> constexpr int lanes = 16 / sizeof(T);

template <class T, size_t... i>
void zip(Vector<T> a, Vector<T> b, Vector<T>& low, Vector<T>& high, std::index_sequence<i...>) {
  constexpr int n = lanes<T>;
  low = __builtin_shufflevector(a, b, int(i % 2 * n + i / 2)...);
  high = __builtin_shufflevector(a, b, int(i % 2 * n + i / 2 + n / 2)...);
}

// Transposes a square of vectors: log2(lanes) times, row i is interleaved with row i + lanes/2. Unrolled so that all of
// it stays in registers.
template <class T, int stage = 1> void transpose_square(Vector<T> (&x)[lanes<T>]) {
  constexpr int n = lanes<T>;
  Vector<T> y[n];
#pragma GCC unroll 16
  for (int i = 0; i < n / 2; i++) zip<T>(x[i], x[i + n / 2], y[2 * i], y[2 * i + 1], std::make_index_sequence<n>{});
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) x[i] = y[i];
  if constexpr (2 * stage < n) transpose_square<T, 2 * stage>(x);
}

// One square from `in` to `out`, both given by the byte distance between their rows.
template <class T> void move_square(std::byte* out, int64_t out_stride, const std::byte* in, int64_t in_stride) {
  Vector<T> x[lanes<T>];
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; i++) x[i] = load<Vector<T>>(in + i * in_stride);
  transpose_square<T>(x);
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; i++) store(out + i * out_stride, x[i]);
}

template <class T> void move_edges(int64_t rows, int64_t cols, int64_t r0, int64_t c0, std::byte* out,
                                   int64_t out_stride, const std::byte* in, int64_t in_stride) {
  constexpr int64_t size = sizeof(T);
  for (int64_t r = r0; r < rows; r++)
    for (int64_t c = c0; c < cols; c++)
      store<T>(out + c * out_stride + r * size, load<T>(in + r * in_stride + c * size));
}

// Rows a power of two apart share a few cache sets, so nothing is touched twice in memory: squares are transposed into a
// padded buffer that stays in the first-level cache, and whole lines go from there to the output, asked for beforehand.
template <class T>
void tile(int64_t rows, int64_t cols, std::byte* out, int64_t out_stride, const std::byte* in, int64_t in_stride) {
  constexpr int64_t size = sizeof(T), n = lanes<T>, side = transpose_tile(size), pitch = side * size + 16, line = 64;
  alignas(64) std::byte buffer[side * pitch];
  for (int64_t c = 0; c < cols; c++)
    for (int64_t i = 0; i < rows * size; i += line) __builtin_prefetch(out + c * out_stride + i, 1);
  const int64_t full_rows = rows / n * n, full_cols = cols / n * n;
  for (int64_t r = 0; r < full_rows; r += n)
    for (int64_t c = 0; c < full_cols; c += n)
      move_square<T>(buffer + c * pitch + r * size, pitch, in + r * in_stride + c * size, in_stride);
  move_edges<T>(full_rows, cols, 0, full_cols, buffer, pitch, in, in_stride);
  move_edges<T>(rows, cols, full_rows, 0, buffer, pitch, in, in_stride);
  for (int64_t c = 0; c < cols; c++) __builtin_memcpy(out + c * out_stride, buffer + c * pitch, size_t(rows * size));
}

template <class T> constexpr MoveKernels kernels_of{gather<T>, scatter<T>, fill<T>, tile<T>};

constexpr MoveKernels kernels[] = {kernels_of<uint8_t>, kernels_of<uint16_t>, kernels_of<uint32_t>,
                                   kernels_of<uint64_t>};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::MoveKernels* volta::cpu::move_kernels<volta::cpu::Isa::VOLTA_ISA>() {
  return VOLTA_ISA::kernels;
}

// Moves, conversions and copies between layouts and dtypes, and evenly spaced numbers.
#include <bit>
#include <cstring>

#include "backend/cpu/copy/kernels.h"
#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 64 * 1024;  // elements worth a thread
constexpr int64_t chunk = 1024;       // elements staged at a time

const MoveKernels& moves(int64_t size) {
  static const MoveKernels* const kernels = for_isa([]<Isa level>() { return move_kernels<level>(); });
  return kernels[std::countr_zero(uint64_t(size))];
}

using Geometry = StridedLoop<2>;  // output, input

// Whether two axes of the loop form a transposition: contiguous in the output along one, in the input along the other.
bool transposes(const Geometry& w, DType to, DType from) {
  if (to != from || w.rank < 2 || w.size[0] < 4 || w.size[1] < 4) return false;
  return w.stride[0][0] == size_of(to) && w.stride[1][1] == size_of(from) && w.stride[1][0] > 0 && w.stride[0][1] > 0;
}

// The two innermost axes are transposed matrices; the rest are independent.
void copy_transposed(const Geometry& w, char* out, const char* in, int64_t size) {
  const int64_t elements = w.size[0] * w.size[1], matrices = w.rows() / w.size[1];
  const auto run = [&](int64_t begin, int64_t end) {
    const auto one = [&](const int64_t* offset) {
      transpose(size, w.size[0], w.size[1], out + offset[0], w.stride[1][0], in + offset[1], w.stride[0][1]);
    };
    w.for_rows(begin, end, one, 2);
  };
  const int64_t each = finer(matrices * elements, grain);
  if (elements >= grain) run(0, matrices);
  else parallel_ranges(matrices, std::max<int64_t>(1, each / elements), run);
}

// Computes in T (double, or uint64_t for the wrapping arithmetic of integers) and converts from its dtype.
template <class T> void count_up(const Arg& out, T start, T step, DType computed) {
  const int64_t stride = out.layout->strides[0] * size_of(out.dtype);
  parallel_ranges(out.layout->numel(), grain / 2, [&](int64_t begin, int64_t end) {
    alignas(64) T values[chunk];
    for (int64_t i = begin; i < end; i += chunk) {
      const int64_t n = std::min(chunk, end - i);
      for (int64_t k = 0; k < n; ++k) values[k] = start + T(i + k) * step;
      copy_row(n, static_cast<char*>(out.data) + i * stride, stride, out.dtype, reinterpret_cast<const char*>(values),
               sizeof(T), computed);
    }
  });
}

}  // namespace

CastRow cast_row(DType to, DType from) {
  static const auto find = for_isa([]<Isa level>() { return &cast_kernel<level>; });
  return find(to, from);
}

void gather_row(int64_t size, int64_t n, void* out, const void* in, int64_t in_stride) {
  moves(size).gather(n, static_cast<std::byte*>(out), static_cast<const std::byte*>(in), in_stride);
}

void scatter_row(int64_t size, int64_t n, void* out, int64_t out_stride, const void* in) {
  moves(size).scatter(n, static_cast<std::byte*>(out), out_stride, static_cast<const std::byte*>(in));
}

void fill_row(int64_t size, int64_t n, void* out, const void* value) {
  moves(size).fill(n, static_cast<std::byte*>(out), static_cast<const std::byte*>(value));
}

void copy_row(int64_t n, char* out, int64_t out_stride, DType to, const char* in, int64_t in_stride, DType from) {
  const int64_t to_size = size_of(to), from_size = size_of(from);
  if (to == from && out_stride == to_size) return gather_row(to_size, n, out, in, in_stride);
  if (to == from && in_stride == from_size) return scatter_row(to_size, n, out, out_stride, in);
  if (out_stride == to_size && in_stride == from_size) return cast_row(to, from)(n, out, in);
  alignas(64) char a[chunk * 8], b[chunk * 8];
  for (int64_t i = 0; i < n; i += chunk) {
    const int64_t m = std::min(chunk, n - i);
    gather_row(from_size, m, a, in + i * in_stride, in_stride);
    if (to != from) cast_row(to, from)(m, b, a);
    scatter_row(to_size, m, out + i * out_stride, out_stride, to == from ? a : b);
  }
}

// Tiles follow each other along the output's rows, so a cache line that two tiles share is still there for the second.
void transpose(int64_t size, int64_t rows, int64_t cols, void* out, int64_t out_stride, const void* in,
               int64_t in_stride) {
  constexpr int64_t part_bytes = 1 << 18;  // enough work to be worth handing to another thread
  const int64_t side = transpose_tile(size), down = divide_up(rows, side), tiles = down * divide_up(cols, side);
  const int64_t bytes = finer(rows * cols * size, part_bytes);
  parallel_ranges(tiles, bytes / (side * side * size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i % down * side, c = i / down * side;
      moves(size).tile(std::min(side, rows - r), std::min(side, cols - c),
                       static_cast<std::byte*>(out) + c * out_stride + r * size, out_stride,
                       static_cast<const std::byte*>(in) + r * in_stride + c * size, in_stride);
    }
  });
}

void copy(const Arg& out, const Arg& in) {
  const Layout& l = *out.layout;
  if (l.numel() == 0) return;
  alignas(8) char value[8];
  const char* source = static_cast<const char*>(in.data);
  DType from = in.dtype;
  if (!in.layout) {
    from = out.dtype;
    visit(from, [&]<class T>(TypeTag<T>) {
      const T v = in.scalar.as<T>();
      std::memcpy(value, &v, sizeof v);
    });
    source = value;
  }
  const auto lanes = axis_loop<2>(l.shape, {&out, &in});
  const Geometry& w = lanes.loop;
  auto* target = static_cast<char*>(out.data);
  if (transposes(w, out.dtype, from)) return copy_transposed(w, target, source, size_of(from));
  parallel_rows(w, grain, [&](const int64_t* offset, int64_t begin, int64_t n) {
    const int64_t* step = w.stride[0];
    copy_row(n, target + offset[0] + begin * step[0], step[0], out.dtype, source + offset[1] + begin * step[1], step[1],
             from);
  });
}

void iota(const Arg& out, Scalar start, Scalar step) {
  if (is_floating(out.dtype)) count_up(out, start.as<double>(), step.as<double>(), f64);
  else count_up(out, start.as<uint64_t>(), step.as<uint64_t>(), i64);
}

}  // namespace volta::cpu

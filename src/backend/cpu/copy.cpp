// Copies between layouts and dtypes on the CPU; a scalar source fills.
#include <cstring>

#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "core/parallel.h"
#include "core/walk.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 64 * 1024;  // elements worth a thread
constexpr int64_t chunk = 1024;

using Geometry = Walk<2>;  // output, input

// One row of n elements, both sides strided, converting on the way.
void copy_row(int64_t n, char* out, int64_t out_stride, DType to, const char* in, int64_t in_stride, DType from) {
  const int64_t to_size = size_of(to), from_size = size_of(from);
  if (to == from && out_stride == to_size && in_stride == from_size) {
    std::memcpy(out, in, size_t(n * to_size));
  } else if (to == from && out_stride == to_size && in_stride == 0) {
    fill_row(to_size, n, out, in);
  } else if (to == from && out_stride == to_size) {
    gather_row(to_size, n, out, in, in_stride);
  } else if (to == from && in_stride == from_size) {
    scatter_row(to_size, n, out, out_stride, in);
  } else if (to != from && out_stride == to_size && in_stride == from_size) {
    cast_row(to, from)(n, out, in);
  } else {
    alignas(64) char a[chunk * 8], b[chunk * 8];
    for (int64_t i = 0; i < n; i += chunk) {
      const int64_t m = std::min(chunk, n - i);
      gather_row(from_size, m, a, in + i * in_stride, in_stride);
      if (to != from) cast_row(to, from)(m, b, a);
      scatter_row(to_size, m, out + i * out_stride, out_stride, to == from ? a : b);
    }
  }
}

// Whether two axes of the walk form a transposition: contiguous in the output along one, in the input along the other.
bool transposes(const Geometry& w, DType to, DType from) {
  if (to != from || w.rank < 2 || w.size[0] < 4 || w.size[1] < 4) return false;
  return w.stride[0][0] == size_of(to) && w.stride[1][1] == size_of(from) && w.stride[1][0] > 0 && w.stride[0][1] > 0;
}

void copy_walk(const Geometry& w, char* out, DType to, const char* in, DType from) {
  const int64_t inner = w.size[0], outer = w.rows();
  if (outer == 1) {
    parallel((inner + grain - 1) / grain, [&](int64_t p) {
      const int64_t begin = p * grain, n = std::min(grain, inner - begin);
      copy_row(n, out + begin * w.stride[0][0], w.stride[0][0], to, in + begin * w.stride[0][1], w.stride[0][1], from);
    });
    return;
  }
  const int64_t each = std::max<int64_t>(1, grain / inner);
  parallel((outer + each - 1) / each, [&](int64_t p) {
    w.for_rows(p * each, std::min(outer, (p + 1) * each), [&](const int64_t* offset) {
      copy_row(inner, out + offset[0], w.stride[0][0], to, in + offset[1], w.stride[0][1], from);
    });
  });
}

// The two innermost axes are transposed matrices; the rest are independent.
void copy_transposed(const Geometry& w, char* out, const char* in, int64_t size) {
  Geometry rest = w;
  rest.rank = w.rank - 1;
  for (int i = 1; i < w.rank; ++i) {
    rest.size[i - 1] = w.size[i];
    std::copy(w.stride[i], w.stride[i] + 2, rest.stride[i - 1]);
  }
  const int64_t matrices = rest.rows(), elements = w.size[0] * w.size[1];
  const auto run = [&](int64_t begin, int64_t end) {
    rest.for_rows(begin, end, [&](const int64_t* offset) {
      transpose(size, w.size[0], w.size[1], out + offset[0], w.stride[1][0], in + offset[1], w.stride[0][1]);
    });
  };
  if (elements >= grain || matrices == 1) return run(0, matrices);
  const int64_t each = std::max<int64_t>(1, grain / elements);
  parallel((matrices + each - 1) / each, [&](int64_t p) { run(p * each, std::min(matrices, (p + 1) * each)); });
}

}  // namespace

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
  Geometry w;
  for (int axis = 0; axis < l.rank(); ++axis) {
    const int64_t strides[2] = {l.strides[axis] * size_of(out.dtype),
                                in.layout ? broadcast_stride(*in.layout, axis, l.rank()) * size_of(from) : 0};
    w.add_axis(l.shape[axis], strides);
  }
  w.finish();
  auto* target = static_cast<char*>(out.data);
  if (transposes(w, out.dtype, from)) copy_transposed(w, target, source, size_of(from));
  else copy_walk(w, target, out.dtype, source, from);
}

}  // namespace volta::cpu

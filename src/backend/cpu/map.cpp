// Pointwise loops on the CPU. Kernels see only contiguous rows of their compute dtype; whatever is strided, broadcast or
// of another dtype is staged through small buffers on the way.
#include <cstring>

#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "backend/cpu/point.h"
#include "core/parallel.h"
#include "core/walk.h"

namespace volta::cpu {
namespace {

constexpr int max_inputs = PointOp::max_arity + 2;
constexpr int64_t chunk = 512;        // elements staged at a time
constexpr int64_t grain = 32 * 1024;  // elements worth a thread
constexpr int64_t direct_limit = 16 * 1024;

// Several short rows are staged as one chunk, so that tiny inner axes do not pay for a kernel call each.
struct Plan {
  Walk<max_inputs + 1> walk;
  RowFunction row;
  int inputs;
  int64_t filled;           // how much of a scalar's buffer is ever read
  Arg arg[max_inputs + 1];  // 0 is the output
  DType kernel_dtype[max_inputs + 1];
};

bool is_condition(const MapCall& call, int input) {
  const int first = call.kernel > 0 ? 1 : 0;
  return input >= first && input < first + call.op->masks;
}

bool plain(const MapCall& call) {
  if (!call.out.layout->is_contiguous()) return false;
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& a = call.in[i];
    if (a.unused) continue;
    const DType wanted = is_condition(call, i) ? boolean : call.compute;
    if (!a.layout || a.dtype != wanted || a.layout->shape != call.out.layout->shape || !a.layout->is_contiguous())
      return false;
  }
  return call.out.dtype == (call.op->truth && call.kernel == 0 ? boolean : call.compute);
}

void run_plain(const MapCall& call, RowFunction row) {
  const int64_t n = call.out.layout->numel(), parts = (n + grain - 1) / grain;
  const auto run = [&](int64_t begin, int64_t end) {
    char* out = static_cast<char*>(call.out.data) + begin * size_of(call.out.dtype);
    const void* in[max_inputs] = {};
    for (int i = 0; i < call.inputs; ++i) {
      const Arg& a = call.in[i];
      in[i] = a.unused ? out : static_cast<const char*>(a.data) + begin * size_of(a.dtype);
    }
    row(end - begin, out, in);
  };
  if (parts <= 1) return run(0, n);
  parallel(parts, [&](int64_t p) { run(p * grain, std::min(n, (p + 1) * grain)); });
}

Plan make_plan(const MapCall& call, RowFunction row) {
  Plan p{{}, row, call.inputs, std::min(chunk, call.out.layout->numel()), {}, {}};
  p.arg[0] = call.out;
  p.kernel_dtype[0] = call.op->truth && call.kernel == 0 ? boolean : call.compute;
  for (int i = 0; i < call.inputs; ++i) {
    p.arg[i + 1] = call.in[i];
    p.kernel_dtype[i + 1] = is_condition(call, i) ? boolean : call.compute;
  }
  const Layout& out = *call.out.layout;
  for (int axis = 0; axis < out.rank(); ++axis) {
    int64_t strides[max_inputs + 1] = {out.strides[axis] * size_of(call.out.dtype)};
    for (int i = 1; i <= call.inputs; ++i)
      if (p.arg[i].layout) strides[i] = broadcast_stride(*p.arg[i].layout, axis, out.rank()) * size_of(p.arg[i].dtype);
    p.walk.add_axis(out.shape[axis], strides);
  }
  p.walk.finish();
  return p;
}

struct Stage {
  alignas(64) char buffer[max_inputs + 1][chunk * 8];
  alignas(64) char raw[chunk * 8];
  bool filled[max_inputs + 1] = {};
};

void fill_scalar(char* out, DType dtype, const Scalar& value, int64_t n) {
  visit(dtype, [&]<class T>(TypeTag<T>) {
    const T v = value.as<T>();
    fill_row(sizeof(T), n, out, &v);
  });
}

// Brings n elements of an operand, `rows` short rows of `inner`, into its buffer.
void load(Stage& s, const Plan& p, int k, const char* const* row_starts, int64_t rows, int64_t inner, int64_t skip) {
  const DType from = p.arg[k].dtype, to = p.kernel_dtype[k];
  const int64_t size = size_of(from), stride = p.walk.stride[0][k], n = rows * inner;
  char* target = from == to ? s.buffer[k] : s.raw;
  for (int64_t r = 0; r < rows; ++r) {
    const char* start = row_starts[r] + skip * stride;
    if (stride == 0) fill_row(size, inner, target + r * inner * size, start);
    else if (stride == size) std::memcpy(target + r * inner * size, start, size_t(inner * size));
    else gather_row(size, inner, target + r * inner * size, start, stride);
  }
  if (from != to) cast_row(to, from)(n, s.buffer[k], s.raw);
}

void store(Stage& s, const Plan& p, char* const* row_starts, int64_t rows, int64_t inner, int64_t skip) {
  const DType from = p.kernel_dtype[0], to = p.arg[0].dtype;
  const int64_t size = size_of(to), stride = p.walk.stride[0][0];
  const char* source = s.buffer[0];
  if (from != to) {
    cast_row(to, from)(rows * inner, s.raw, s.buffer[0]);
    source = s.raw;
  }
  for (int64_t r = 0; r < rows; ++r) {
    char* start = row_starts[r] + skip * stride;
    if (stride == size) std::memcpy(start, source + r * inner * size, size_t(inner * size));
    else scatter_row(size, inner, start, stride, source + r * inner * size);
  }
}

bool direct(const Plan& p, int k) {
  return p.arg[k].dtype == p.kernel_dtype[k] && p.walk.stride[0][k] == size_of(p.arg[k].dtype);
}

// `rows` rows whose starts are given, elements [skip, skip + inner) of each.
void run_chunk(Stage& s, const Plan& p, char* const (*starts)[chunk], int64_t rows, int64_t inner, int64_t skip) {
  const bool straight = rows == 1 && direct(p, 0);
  char* out = straight ? starts[0][0] + skip * p.walk.stride[0][0] : s.buffer[0];
  const void* in[max_inputs] = {};
  for (int k = 1; k <= p.inputs; ++k) {
    if (p.arg[k].unused) {
      in[k - 1] = out;  // never looked at, but a load of it must be harmless
    } else if (!p.arg[k].layout) {
      if (!s.filled[k]) fill_scalar(s.buffer[k], p.kernel_dtype[k], p.arg[k].scalar, p.filled);
      s.filled[k] = true;
      in[k - 1] = s.buffer[k];
    } else if (rows == 1 && direct(p, k)) {
      in[k - 1] = starts[k][0] + skip * p.walk.stride[0][k];
    } else if (rows == 1 && p.walk.stride[0][k] == 0 && skip > 0) {
      in[k - 1] = s.buffer[k];  // the first chunk of this row filled it
    } else {
      load(s, p, k, starts[k], rows, inner, skip);
      in[k - 1] = s.buffer[k];
    }
  }
  p.row(rows * inner, out, in);
  if (!straight) store(s, p, starts[0], rows, inner, skip);
}

// Long rows that need no staging at all run whole.
bool needs_no_stage(const Plan& p) {
  for (int k = 0; k <= p.inputs; ++k)
    if (!p.arg[k].unused && (!p.arg[k].layout || !direct(p, k))) return false;
  return true;
}

void run_rows(const Plan& p, int64_t begin, int64_t end) {
  Stage s;
  char* starts[max_inputs + 1][chunk];
  const int64_t inner = p.walk.size[0], together = std::clamp<int64_t>(chunk / inner, 1, chunk);
  const int64_t step = needs_no_stage(p) ? direct_limit : chunk;
  int64_t held = 0;
  const auto flush = [&] {
    if (held > 0 && inner <= chunk) run_chunk(s, p, starts, held, inner, 0);
    held = 0;
  };
  p.walk.for_rows(begin, end, [&](const int64_t* offset) {
    for (int k = 0; k <= p.inputs; ++k) starts[k][held] = static_cast<char*>(p.arg[k].data) + offset[k];
    if (inner > chunk) {
      for (int64_t i = 0; i < inner; i += step) run_chunk(s, p, starts, 1, std::min(step, inner - i), i);
    } else if (++held == together) {
      flush();
    }
  });
  flush();
}

// One long row (everything merged): split along it.
void run_single(const Plan& p, int64_t begin, int64_t end) {
  Stage s;
  char* starts[max_inputs + 1][chunk];
  for (int k = 0; k <= p.inputs; ++k) starts[k][0] = static_cast<char*>(p.arg[k].data) + begin * p.walk.stride[0][k];
  const int64_t step = needs_no_stage(p) ? direct_limit : chunk;
  for (int64_t i = 0; i < end - begin; i += step) run_chunk(s, p, starts, 1, std::min(step, end - begin - i), i);
}

}  // namespace

void map(const MapCall& call) {
  const int64_t n = call.out.layout->numel();
  if (n == 0) return;
  const Rows* rows = call.op->rows ? call.op->rows(call.kernel) : point_rows(call.op->index, call.kernel);
  const RowFunction row = rows->by_dtype[size_t(call.compute)];
  if (!row)
    throw Error(Error::Kind::internal, call.op->name, "no CPU kernel computes in " + std::string(name(call.compute)));
  if (plain(call)) return run_plain(call, row);
  const Plan p = make_plan(call, row);
  const int64_t outer = p.walk.rows(), inner = p.walk.size[0];
  if (n <= grain) return outer == 1 ? run_single(p, 0, inner) : run_rows(p, 0, outer);
  if (outer == 1)
    return parallel((inner + grain - 1) / grain,
                    [&](int64_t i) { run_single(p, i * grain, std::min(inner, (i + 1) * grain)); });
  const int64_t rows_each = std::max<int64_t>(1, grain / inner);
  parallel((outer + rows_each - 1) / rows_each,
           [&](int64_t i) { run_rows(p, i * rows_each, std::min(outer, (i + 1) * rows_each)); });
}

}  // namespace volta::cpu

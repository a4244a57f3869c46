// Pointwise loops on the CPU. Kernels see only contiguous rows of their compute dtype, and constants; whatever is strided
// or of another dtype is staged through small buffers on the way.
#include <cstring>

#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/elementwise/tables.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/prefetch.h"

namespace volta::cpu {
namespace {

constexpr int max_operands = ElementwiseOp::max_arity + 3;  // the output is operand 0
constexpr int64_t chunk = 512;                              // elements staged at a time
constexpr int64_t grain = 32 * 1024;                        // elements worth a thread
constexpr int64_t long_row = 128;                           // worth a kernel call of its own
constexpr int64_t short_row = 4096;                         // where making a plan is felt beside running it

struct Range {
  int64_t begin, end;
};

DType kernel_dtype(const ElementwiseCall& call, int operand) {
  if (operand == 0) return call.op->truth && call.kernel == 0 ? boolean : call.compute;
  const int condition = operand - (call.kernel > 0 ? 2 : 1);
  return condition >= 0 && condition < call.op->masks ? boolean : call.compute;
}

void fill_constant(char* block, DType dtype, const Scalar& value) {
  visit(dtype, [&]<class T>(TypeTag<T>) {
    std::fill_n(reinterpret_cast<T*>(block), constant_bytes / sizeof(T), value.as<T>());
  });
}

// Without a plan, where all operands are short, of one contiguous layout and of the kernel's dtypes.
bool run_short(const ElementwiseCall& call, RowFunction row, int64_t n) {
  const Layout& out = *call.out.layout;
  if (n > short_row || call.out.dtype != kernel_dtype(call, 0) || !out.is_contiguous()) return false;
  const void* in[max_operands];
  for (int k = 0; k < call.inputs; ++k) {
    const Arg& a = call.in[k];
    in[k] = a.unused ? call.out.data : a.data;
    if (a.unused) continue;
    if (!a.layout || a.dtype != kernel_dtype(call, k + 1)) return false;
    if (a.layout->shape != out.shape || a.layout->strides != out.strides) return false;
  }
  row(n, call.out.data, in, 0);
  return true;
}

struct RowPlan {
  RowFunction row;
  int operands;
  Arg arg[max_operands];
  DType dtype[max_operands];  // what the kernel wants
  uint32_t constants = 0;     // bit i: input i is a number
  bool uncached;              // beyond the caches
  alignas(64) char constant[max_operands][constant_bytes];
  StridedLoop<max_operands> loop;

  RowPlan(const ElementwiseCall& call, RowFunction function, int64_t n)
      : row(function), operands(call.inputs + 1), uncached(n * size_of(call.out.dtype) >= uncached_bytes) {
    for (int k = 0; k < operands; ++k) {
      arg[k] = k == 0 ? call.out : call.in[k - 1];
      dtype[k] = kernel_dtype(call, k);
      if (arg[k].layout || arg[k].unused) continue;
      fill_constant(constant[k], dtype[k], arg[k].scalar);
      constants |= 1u << (k - 1);
    }
  }
  bool is_constant(int k) const { return k > 0 && constants >> (k - 1) & 1; }

  // Everything has the shape, order and dtype of the kernel: one row.
  bool plain() const {
    for (int k = 0; k < operands; ++k) {
      if (arg[k].unused || is_constant(k)) continue;
      const Layout& l = *arg[k].layout;
      if (arg[k].dtype != dtype[k] || !l.is_contiguous() || (k > 0 && l.shape != arg[0].layout->shape)) return false;
    }
    return true;
  }

  void make_loop() {
    const Layout& out = *arg[0].layout;
    for (int axis = 0; axis < out.rank(); ++axis) {
      int64_t strides[max_operands] = {};
      for (int k = 0; k < operands; ++k)
        if (arg[k].layout) strides[k] = broadcast_stride(*arg[k].layout, axis, out.rank()) * size_of(arg[k].dtype);
      loop.add_axis(out.shape[axis], strides);
    }
    loop.finish();
  }
  int64_t stride(int k) const { return loop.stride[0][k]; }
  // Whether the kernel can read or write the operand's rows where they are.
  bool direct(int k) const { return arg[k].dtype == dtype[k] && stride(k) == size_of(dtype[k]); }
  // Or for each row a constant.
  bool steady(int k) const { return k > 0 && arg[k].dtype == dtype[k] && stride(k) == 0; }
  bool needs_no_stage() const {
    for (int k = 0; k < operands; ++k)
      if (!arg[k].unused && !is_constant(k) && !direct(k) && !steady(k)) return false;
    return true;
  }
};

void run_plain(const RowPlan& p, Range r) {
  const auto at = [&](int k) { return static_cast<char*>(p.arg[k].data) + r.begin * size_of(p.dtype[k]); };
  const void* in[max_operands] = {};
  uint32_t constants = p.constants;
  for (int k = 1; k < p.operands; ++k) {
    in[k - 1] = p.is_constant(k) ? p.constant[k] : at(p.arg[k].unused ? 0 : k);
    if (p.uncached && p.arg[k].layout) constants |= 1u << (uncached_bit + k - 1);
  }
  p.row(r.end - r.begin, at(0), in, constants);
}

template <class Word> void fill_words(char* block, const char* value) {
  Word word;
  std::memcpy(&word, value, sizeof word);
  for (size_t i = 0; i < constant_bytes; i += sizeof word) std::memcpy(block + i, &word, sizeof word);
}
void fill_block(char* block, const char* value, int64_t size) {
  if (size == 4) fill_words<uint32_t>(block, value);
  else if (size == 8) fill_words<uint64_t>(block, value);
  else if (size == 2) fill_words<uint16_t>(block, value);
  else fill_words<uint8_t>(block, value);
}

// Long rows that need no stage. A store between two rows interrupts the stream of the output, so what a number of rows
// needs is made ready before the first of them.
class DirectRows {
 public:
  DirectRows(const RowPlan& p, Range columns)
      : row_(p.row), length_(columns.end - columns.begin), constants_(p.constants) {
    height_ = p.loop.rank > 1 ? p.loop.size[1] : 1;
    for (int k = 0; k < p.operands; ++k) {
      if (p.is_constant(k) || p.arg[k].unused) {  // of what is unused, any memory of our own will do
        for (auto& in : in_) in[k] = p.constant[k];
        if (k > 0) constants_ |= 1u << (k - 1);
        continue;
      }
      Operand o{k, p.steady(k) ? size_of(p.dtype[k]) : 0, p.loop.rank > 1 ? p.loop.stride[1][k] : 0};
      base_[count_] = static_cast<char*>(p.arg[k].data) + columns.begin * p.stride(k);
      if (o.fill) constants_ |= 1u << (k - 1);
      else if (k > 0 && p.uncached && o.step == length_ * p.stride(k)) constants_ |= 1u << (uncached_bit + k - 1);
      operand_[count_++] = o;
    }
  }

  void run(const RowPlan& p, Range rows) {
    for (int64_t r = rows.begin, end; r < rows.end; r = end) {
      end = std::min(rows.end, (r / height_ + 1) * height_);
      p.loop.for_rows(
          r / height_, r / height_ + 1, [&](const int64_t* offset) { run_plane(offset, r % height_, end - r); }, 2);
    }
  }

 private:
  static constexpr int64_t together = 16;
  struct Operand {
    int index;
    int64_t fill;  // the size of a number that is the same along each row, or 0
    int64_t step;
  };
  void run_plane(const int64_t* offset, int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; r += together) {
      const int64_t n = std::min(together, first + count - r);
      for (int i = 0; i < count_; ++i) {
        const Operand& o = operand_[i];
        const char* at = base_[i] + offset[o.index] + r * o.step;
        for (int64_t k = 0; k < n; ++k, at += o.step) {
          in_[k][o.index] = o.fill ? block_[k][o.index] : at;
          if (o.fill) fill_block(block_[k][o.index], at, o.fill);
        }
      }
      for (int64_t k = 0; k < n; ++k) row_(length_, const_cast<void*>(in_[k][0]), in_[k] + 1, constants_);
    }
  }

  RowFunction row_;
  int64_t length_, height_;
  uint32_t constants_;
  int count_ = 0;
  const void* in_[together][max_operands] = {};
  char* base_[max_operands];
  Operand operand_[max_operands];
  alignas(64) char block_[together][max_operands][constant_bytes];
};

// One thread's share of a loop. Several short rows are staged as one chunk, so that tiny inner axes do not pay for a
// kernel call each; `starts` are the addresses of the rows now at hand.
class Stage {
 public:
  Stage(const RowPlan& plan, Range columns) : p_(plan), inner_(columns.end - columns.begin) {}

  void run(Range rows, Range columns) {
    const int64_t together = std::max<int64_t>(1, chunk / inner_);
    int64_t held = 0;
    p_.loop.for_rows(rows.begin, rows.end, [&](const int64_t* offset) {
      for (int k = 0; k < p_.operands; ++k)
        starts_[k][held] = static_cast<char*>(p_.arg[k].data) + offset[k] + columns.begin * p_.stride(k);
      if (++held < together) return;
      flush(std::exchange(held, 0));
    });
    if (held > 0) flush(held);
  }

 private:
  void flush(int64_t rows) {
    if (rows > 1) return run_chunk(rows, inner_, 0);
    for (int64_t i = 0; i < inner_; i += chunk) run_chunk(1, std::min(chunk, inner_ - i), i);
  }

  // Elements [skip, skip + n) of each of `rows` rows.
  void run_chunk(int64_t rows, int64_t n, int64_t skip) {
    const bool straight = rows == 1 && p_.direct(0);
    char* out = straight ? starts_[0][0] + skip * p_.stride(0) : buffer_[0];
    const void* in[max_operands] = {};
    uint32_t constants = p_.constants;
    for (int k = 1; k < p_.operands; ++k) {
      in[k - 1] = buffer_[k];
      if (p_.arg[k].unused) {
        in[k - 1] = out;  // never looked at, but a load of it must be harmless
      } else if (p_.is_constant(k)) {
        in[k - 1] = p_.constant[k];
      } else if (rows == 1 && p_.direct(k)) {
        in[k - 1] = starts_[k][0] + skip * p_.stride(k);
      } else if (rows == 1 && p_.stride(k) == 0) {
        if (skip == 0) load(k, 1, constant_bytes / size_of(p_.dtype[k]), 0);
        constants |= 1u << (k - 1);
      } else {
        load(k, rows, n, skip);
      }
    }
    p_.row(rows * n, out, in, constants);
    if (!straight) store(rows, n, skip);
  }

  void load(int k, int64_t rows, int64_t n, int64_t skip) {
    const DType from = p_.arg[k].dtype, to = p_.dtype[k];
    const int64_t size = size_of(from), stride = p_.stride(k);
    char* target = from == to ? buffer_[k] : raw_;
    for (int64_t r = 0; r < rows; ++r, target += n * size) {
      const char* start = starts_[k][r] + skip * stride;
      if (stride == 0) fill_row(size, n, target, start);
      else if (stride == size) std::memcpy(target, start, size_t(n * size));
      else gather_row(size, n, target, start, stride);
    }
    if (from != to) cast_row(to, from)(rows * n, buffer_[k], raw_);
  }

  void store(int64_t rows, int64_t n, int64_t skip) {
    const DType from = p_.dtype[0], to = p_.arg[0].dtype;
    const int64_t size = size_of(to), stride = p_.stride(0);
    if (from != to) cast_row(to, from)(rows * n, raw_, buffer_[0]);
    const char* source = from == to ? buffer_[0] : raw_;
    for (int64_t r = 0; r < rows; ++r, source += n * size) {
      char* start = starts_[0][r] + skip * stride;
      if (stride == size) std::memcpy(start, source, size_t(n * size));
      else scatter_row(size, n, start, stride, source);
    }
  }

  const RowPlan& p_;
  const int64_t inner_;
  char* starts_[max_operands][chunk];
  alignas(64) char buffer_[max_operands][chunk * 8];
  alignas(64) char raw_[chunk * 8];
};

}  // namespace

void elementwise(const ElementwiseCall& call) {
  const int64_t n = call.out.layout->numel();
  if (n == 0) return;
  const Rows* rows = call.op->rows ? call.op->rows(call.kernel) : elementwise_rows(call.op->index, call.kernel);
  const RowFunction row = rows->by_dtype[size_t(call.compute)];
  if (!row)
    throw Error(Error::Kind::internal, call.op->name, "no CPU kernel computes in " + std::string(name(call.compute)));
  if (run_short(call, row, n)) return;
  RowPlan p(call, row, n);
  const int64_t each = n <= grain ? n : part_size(n, grain);
  if (p.plain()) return parallel_ranges(n, each, [&](int64_t begin, int64_t end) { run_plain(p, {begin, end}); });
  p.make_loop();
  const int64_t outer = p.loop.rows(), inner = p.loop.size[0];
  const bool direct = (outer == 1 || inner >= long_row) && p.needs_no_stage();
  const auto run = [&](Range r, Range columns) {
    if (direct) DirectRows(p, columns).run(p, r);
    else Stage(p, columns).run(r, columns);
  };
  if (outer == 1) return parallel_ranges(inner, each, [&](int64_t begin, int64_t end) { run({0, 1}, {begin, end}); });
  parallel_ranges(outer, std::max<int64_t>(1, each / inner), [&](int64_t begin, int64_t end) {
    run({begin, end}, {0, inner});
  });
}

}  // namespace volta::cpu

// Scans on the CPU: along rows that lie along the axis, across tiles of neighbouring rows otherwise; what is strided,
// reversed or of another dtype than the kernel's is staged.
#include "backend/cpu/scan.h"

#include "backend/cpu/axes.h"
#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 16 * 1024;    // elements worth a thread
constexpr int64_t staged_block = 1024;  // elements staged at a time, and columns of a tile at most
constexpr int64_t tile_width = 512;

const ScanTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::scan_table;
#endif
#if defined(VOLTA_HAVE_ISA_V3)
  if (isa() >= Isa::v3) return v3::scan_table;
#endif
  return baseline::scan_table;
}

struct Buffers {
  alignas(64) char in[staged_block * 8], out[staged_block * 8], raw[staged_block * 8];
  alignas(64) int64_t indices[staged_block];
  alignas(64) char first[staged_block * 8], second[staged_block * 8];
  ScanState state() { return {first, second}; }
};

class Scanning {
 public:
  explicit Scanning(const ScanCall& call);
  void run();

 private:
  enum Operand { out, in, indices };
  static constexpr int operands = 3;

  void along(int64_t begin, int64_t end);
  void across(int64_t tile);
  const char* load(Buffers& b, const char* row, int64_t stride, int64_t n) const;
  char* target(Buffers& b, char* row, int64_t stride) const;
  void store(Buffers& b, char* row, int64_t stride, int64_t n) const;
  bool reads(int64_t stride) const { return call_.in.dtype == kernel_.input && stride == size_of(kernel_.input); }
  bool writes(int64_t stride) const { return call_.out.dtype == kernel_.result && stride == size_of(kernel_.result); }

  const ScanCall& call_;
  const ScanKernel kernel_;
  AxisList<operands> kept_;
  int64_t n_ = 0, step_ = 1, first_ = 0;  // index of the first element scanned, and the way to the next
  char* data_[operands] = {};             // of the first element scanned
  int64_t stride_[operands] = {};
  int64_t width_ = 0, tiles_per_row_ = 0;
};

Scanning::Scanning(const ScanCall& call) : call_(call), kernel_(table().find(call.scan, call.in.dtype)) {
  const Arg* args[operands] = {&call.out, &call.in, &call.indices};
  const Shape& shape = call.out.layout->shape;
  n_ = shape[call.axis];
  step_ = call.reverse ? -1 : 1;
  first_ = call.reverse ? n_ - 1 : 0;
  for (int k = 0; k < operands; ++k) {
    if (!args[k]->data) continue;
    const int64_t step = args[k]->layout->strides[call.axis] * size_of(args[k]->dtype);
    data_[k] = static_cast<char*>(args[k]->data) + first_ * step;
    stride_[k] = step * step_;
  }
  for (int i = 0; i < shape.size(); ++i) {
    AxisOf<operands> a{shape[i], {}};
    for (int k = 0; k < operands; ++k)
      if (args[k]->data) a.stride[k] = args[k]->layout->strides[i] * size_of(args[k]->dtype);
    if (i != call.axis) kept_.add(a);
  }
  kept_.finish(true);
}

const char* Scanning::load(Buffers& b, const char* row, int64_t stride, int64_t n) const {
  if (reads(stride)) return row;
  const DType from = call_.in.dtype, to = kernel_.input;
  if (stride != size_of(from)) {
    char* raw = from == to ? b.in : b.raw;
    gather_row(size_of(from), n, raw, row, stride);
    row = raw;
  }
  if (from == to) return row;
  cast_row(to, from)(n, b.in, row);
  return b.in;
}

char* Scanning::target(Buffers& b, char* row, int64_t stride) const { return writes(stride) ? row : b.out; }

void Scanning::store(Buffers& b, char* row, int64_t stride, int64_t n) const {
  if (writes(stride)) return;
  const DType from = kernel_.result, to = call_.out.dtype;
  const char* source = b.out;
  if (from != to) {
    cast_row(to, from)(n, b.raw, b.out);
    source = b.raw;
  }
  scatter_row(size_of(to), n, row, stride, source);
}

void Scanning::along(int64_t begin, int64_t end) {
  Buffers b;
  const bool wants_indices = data_[indices], straight_indices = stride_[indices] == 8;
  const bool direct = reads(stride_[in]) && writes(stride_[out]) && (!wants_indices || straight_indices);
  const int64_t block = direct ? n_ : staged_block;
  Steps<operands> steps(kept_, 0, begin);
  for (int64_t row = begin; row < end; ++row, steps.next()) {
    kernel_.start(1, b.state());
    for (int64_t i = 0; i < n_; i += block) {
      const int64_t m = std::min(block, n_ - i);
      char* p[operands];
      for (int k = 0; k < operands; ++k) p[k] = data_[k] + steps.offset[k] + i * stride_[k];
      auto* where = straight_indices ? reinterpret_cast<int64_t*>(p[indices]) : b.indices;
      kernel_.along(m, target(b, p[out], stride_[out]), where, load(b, p[in], stride_[in], m), b.state(),
                    first_ + i * step_, step_);
      store(b, p[out], stride_[out], m);
      if (wants_indices && !straight_indices) scatter_row(8, m, p[indices], stride_[indices], b.indices);
    }
  }
}

void Scanning::across(int64_t tile) {
  Buffers b;
  const auto& q = kept_.axis[0];
  const int64_t column = tile % tiles_per_row_ * width_, m = std::min(width_, q.size - column);
  const Steps<operands> steps(kept_, 1, tile / tiles_per_row_);
  const bool wants_indices = data_[indices], straight_indices = q.stride[indices] == 8;
  kernel_.start(m, b.state());
  for (int64_t i = 0; i < n_; ++i) {
    char* p[operands];
    for (int k = 0; k < operands; ++k) p[k] = data_[k] + steps.offset[k] + column * q.stride[k] + i * stride_[k];
    auto* where = straight_indices ? reinterpret_cast<int64_t*>(p[indices]) : b.indices;
    kernel_.across(m, target(b, p[out], q.stride[out]), where, load(b, p[in], q.stride[in], m), b.state(),
                   first_ + i * step_);
    store(b, p[out], q.stride[out], m);
    if (wants_indices && !straight_indices) scatter_row(8, m, p[indices], q.stride[indices], b.indices);
  }
}

void Scanning::run() {
  const int64_t rows = kept_.count();
  if (n_ == 0 || rows == 0) return;
  const auto& q = kept_.axis[0];
  if (q.size < 8 || std::abs(q.stride[out]) > std::abs(stride_[out])) {
    const int64_t together = std::max<int64_t>(1, grain / n_);
    return parallel((rows + together - 1) / together,
                    [&](int64_t part) { along(part * together, std::min(rows, (part + 1) * together)); });
  }
  width_ = std::min(q.size, tile_width);
  tiles_per_row_ = (q.size + width_ - 1) / width_;
  const int64_t tiles = rows / q.size * tiles_per_row_, together = std::max<int64_t>(1, grain / (n_ * width_));
  parallel((tiles + together - 1) / together, [&](int64_t part) {
    for (int64_t t = part * together; t < std::min(tiles, (part + 1) * together); ++t) across(t);
  });
}

}  // namespace

void scan(const ScanCall& call) { Scanning(call).run(); }

}  // namespace volta::cpu

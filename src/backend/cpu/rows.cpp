// Row ops on the CPU: rows that lie along the axis are taken one by one, others as tiles of neighbouring columns; what
// is strided or half is staged.
#include "backend/cpu/rows.h"

#include "backend/cpu/axes.h"
#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "backend/cpu/scratch.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 16 * 1024;          // elements worth a thread
constexpr int64_t tile_elements = 64 * 1024;  // of which one operand of a tile has about so many
constexpr int64_t staged_block = 1024;

const RowTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::row_table;
#endif
#if defined(VOLTA_HAVE_ISA_V3)
  if (isa() >= Isa::v3) return v3::row_table;
#endif
  return baseline::row_table;
}

// An operand as a kernel sees it, and as it is.
struct Operand {
  char* data;
  DType dtype;
  int64_t axis_stride;
};

class RowWork {
 public:
  explicit RowWork(const RowCall& call);
  void run();

 private:
  static constexpr int operands = 3;  // out, a, b
  void along(int64_t begin, int64_t end);
  void across(int64_t tile);
  void load(char* to, const char* from, DType dtype, int64_t stride, int64_t n) const;
  void store(char* to, DType dtype, int64_t stride, const char* from, int64_t n) const;
  bool direct(int k, int64_t stride) const { return operand_[k].dtype == compute_ && stride == size_; }

  DType compute_;
  int64_t size_, n_, used_;
  RowKernel kernel_;
  Operand operand_[operands] = {};
  AxisList<operands> kept_;
  int64_t width_ = 0, tiles_per_row_ = 0;
};

RowWork::RowWork(const RowCall& call)
    : compute_(call.out.dtype == f64 ? f64 : f32),
      size_(size_of(compute_)),
      n_(call.out.layout->shape[call.axis]),
      used_(call.op == RowOp::softmax || call.op == RowOp::log_softmax ? 2 : 3),
      kernel_(table().kernel[size_t(call.op)][compute_ == f64]) {
  const Arg* args[operands] = {&call.out, &call.in[0], &call.in[1]};
  for (int k = 0; k < used_; ++k) {
    const int64_t size = size_of(args[k]->dtype);
    operand_[k] = {static_cast<char*>(args[k]->data), args[k]->dtype, args[k]->layout->strides[call.axis] * size};
  }
  const Shape& shape = call.out.layout->shape;
  for (int i = 0; i < shape.size(); ++i) {
    AxisOf<operands> a{shape[i], {}};
    for (int k = 0; k < used_; ++k) a.stride[k] = args[k]->layout->strides[i] * size_of(args[k]->dtype);
    if (i != call.axis) kept_.add(a);
  }
  kept_.finish(true);
}

void RowWork::load(char* to, const char* from, DType dtype, int64_t stride, int64_t n) const {
  const int64_t size = size_of(dtype);
  if (dtype == compute_) return gather_row(size, n, to, from, stride);
  if (stride == size) return cast_row(compute_, dtype)(n, to, from);
  alignas(64) char raw[staged_block * 8];
  for (int64_t i = 0; i < n; i += staged_block) {
    const int64_t m = std::min(staged_block, n - i);
    gather_row(size, m, raw, from + i * stride, stride);
    cast_row(compute_, dtype)(m, to + i * size_, raw);
  }
}

void RowWork::store(char* to, DType dtype, int64_t stride, const char* from, int64_t n) const {
  const int64_t size = size_of(dtype);
  if (dtype == compute_) return scatter_row(size, n, to, stride, from);
  if (stride == size) return cast_row(dtype, compute_)(n, to, from);
  alignas(64) char raw[staged_block * 8];
  for (int64_t i = 0; i < n; i += staged_block) {
    const int64_t m = std::min(staged_block, n - i);
    cast_row(dtype, compute_)(m, raw, from + i * size_);
    scatter_row(size, m, to + i * stride, stride, raw);
  }
}

void RowWork::along(int64_t begin, int64_t end) {
  bool staged = false;
  for (int k = 0; k < used_; ++k) staged |= !direct(k, operand_[k].axis_stride);
  char* buffer = staged ? static_cast<char*>(scratch(Scratch::tile, size_t(used_ * n_ * size_))) : nullptr;
  Steps<operands> steps(kept_, 0, begin);
  for (int64_t row = begin; row < end; ++row, steps.next()) {
    char* p[operands] = {};
    for (int k = 0; k < used_; ++k) {
      const Operand& o = operand_[k];
      p[k] = o.data + steps.offset[k];
      if (direct(k, o.axis_stride)) continue;
      char* stage = buffer + k * n_ * size_;
      if (k > 0) load(stage, p[k], o.dtype, o.axis_stride, n_);
      p[k] = stage;
    }
    kernel_.along(n_, p[0], p[1], p[2]);
    const Operand& out = operand_[0];
    if (!direct(0, out.axis_stride)) store(out.data + steps.offset[0], out.dtype, out.axis_stride, p[0], n_);
  }
}

void RowWork::across(int64_t tile) {
  const auto& q = kept_.axis[0];
  const int64_t column = tile % tiles_per_row_ * width_, width = std::min(width_, q.size - column);
  const Steps<operands> steps(kept_, 1, tile / tiles_per_row_);
  bool staged = false;
  for (int k = 0; k < used_; ++k) staged |= !direct(k, q.stride[k]);
  char* buffer = staged ? static_cast<char*>(scratch(Scratch::tile, size_t(used_ * n_ * width * size_))) : nullptr;
  char *p[operands] = {}, *start[operands] = {};
  int64_t stride[operands] = {};
  for (int k = 0; k < used_; ++k) {
    const Operand& o = operand_[k];
    p[k] = start[k] = o.data + steps.offset[k] + column * q.stride[k];
    stride[k] = o.axis_stride;
    if (direct(k, q.stride[k])) continue;
    p[k] = buffer + k * n_ * width * size_;
    stride[k] = width * size_;
    if (k == 0) continue;
    for (int64_t r = 0; r < n_; ++r)
      load(p[k] + r * stride[k], start[k] + r * o.axis_stride, o.dtype, q.stride[k], width);
  }
  kernel_.across({n_, width, p[0], p[1], p[2], stride[0], stride[1], stride[2]});
  if (direct(0, q.stride[0])) return;
  const Operand& out = operand_[0];
  for (int64_t r = 0; r < n_; ++r)
    store(start[0] + r * out.axis_stride, out.dtype, q.stride[0], p[0] + r * stride[0], width);
}

void RowWork::run() {
  const int64_t rows = kept_.count();
  if (n_ == 0 || rows == 0) return;
  const auto& q = kept_.axis[0];
  const bool beside = q.size >= 8 && q.stride[0] != 0 && std::abs(q.stride[0]) < std::abs(operand_[0].axis_stride);
  if (!beside) {
    const int64_t together = std::max<int64_t>(1, grain / n_);
    return parallel((rows + together - 1) / together,
                    [&](int64_t part) { along(part * together, std::min(rows, (part + 1) * together)); });
  }
  width_ = std::min(q.size, std::clamp<int64_t>(tile_elements / n_, 16, row_tile_width));
  tiles_per_row_ = (q.size + width_ - 1) / width_;
  const int64_t tiles = rows / q.size * tiles_per_row_, together = std::max<int64_t>(1, grain / (n_ * width_));
  parallel((tiles + together - 1) / together, [&](int64_t part) {
    for (int64_t t = part * together; t < std::min(tiles, (part + 1) * together); ++t) across(t);
  });
}

}  // namespace

void rows(const RowCall& call) { RowWork(call).run(); }

}  // namespace volta::cpu

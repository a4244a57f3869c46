// Row ops and scans on the CPU: rows that lie along the axis are taken one by one, others as tiles of neighbouring
// columns; what is strided, reversed or of another dtype than the kernel's is staged.
#include "backend/cpu/prefetch.h"

#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/reduce/kernels.h"
#include "backend/cpu/scratch.h"
#include "math/inner.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 16 * 1024;          // elements worth a thread
constexpr int64_t tile_elements = 64 * 1024;  // of which one operand of a tile has about so many
constexpr int64_t staged_elements = 4096;     // of a scan that are staged at a time
constexpr int operands = 3;

class LineWork {
 public:
  // Operand 0 is written; of a scan, operand 2 is too.
  LineWork(const AxisKernel& kernel, const Arg& a, const Arg& b, const Arg& c, int axis, bool scan, bool reverse);
  void run();

 private:
  void line(AxisRows& lines, const int64_t* offset, int64_t column, char* buffer) const;
  void copy(const AxisRows& lines, int k, char* strided, bool load) const;
  // Between neighbours among the elements the kernel wants contiguous: those of a row, or of a tile's columns.
  int64_t inner_stride(int k) const { return across_ ? kept_.stride[0][k] : stride_[k]; }
  bool written(int k) const { return k == 0 || (scan_ && k == 2); }

  const AxisKernel& kernel_;
  const Arg* arg_[operands];
  const bool scan_, reverse_;
  const int64_t n_;
  StridedLoop<operands> kept_;
  char* start_[operands] = {};
  int64_t stride_[operands] = {};  // along the axis, in the direction of the scan
  bool across_ = false, staged_[operands] = {};
  int64_t width_ = 1, block_ = 0;
};

LineWork::LineWork(const AxisKernel& kernel, const Arg& a, const Arg& b, const Arg& c, int axis, bool scan,
                   bool reverse)
    : kernel_(kernel), arg_{&a, &b, &c}, scan_(scan), reverse_(reverse), n_(a.layout->shape[axis]) {
  for (int i = 0; i < a.layout->rank(); ++i) {
    int64_t strides[operands] = {};
    for (int k = 0; k < operands; ++k)
      if (arg_[k]->data) strides[k] = arg_[k]->layout->strides[i] * size_of(arg_[k]->dtype);
    if (i != axis) kept_.add_axis(a.layout->shape[i], strides);
    else std::copy(strides, strides + operands, stride_);
  }
  kept_.finish();
  const int64_t beside = std::abs(kept_.stride[0][0]);
  across_ = kept_.size[0] >= 8 && beside != 0 && beside < std::abs(stride_[0]);
  for (int k = 0; k < operands; ++k) {
    start_[k] = static_cast<char*>(arg_[arg_[k]->data ? k : 0]->data);
    if (!arg_[k]->data) continue;
    if (reverse) {
      start_[k] += (n_ - 1) * stride_[k];
      stride_[k] = -stride_[k];
    }
    const DType dtype = arg_[k]->dtype;
    staged_[k] = dtype != kernel.dtype[k] || inner_stride(k) != size_of(dtype);
  }
}

// The staged elements of an operand: a row, or the rows of a tile.
void LineWork::copy(const AxisRows& lines, int k, char* strided, bool load) const {
  const DType dtype = arg_[k]->dtype, seen = kernel_.dtype[k];
  const int64_t rows = across_ ? lines.n : 1, n = across_ ? lines.width : lines.n;
  for (int64_t r = 0; r < rows; ++r) {
    char *row = lines.data[k] + r * lines.stride[k], *other = strided + r * stride_[k];
    if (load) copy_row(n, row, size_of(seen), seen, other, inner_stride(k), dtype);
    else copy_row(n, other, inner_stride(k), dtype, row, size_of(seen), seen);
  }
}

// One row, or the tile of rows that begins with this column.
void LineWork::line(AxisRows& lines, const int64_t* offset, int64_t column, char* buffer) const {
  if (across_) lines.width = std::min(width_, kept_.size[0] - column);
  for (int64_t i = 0; i < n_; i += block_) {
    char* strided[operands];
    lines.n = std::min(block_, n_ - i);
    lines.begins = i == 0;
    lines.first = reverse_ ? n_ - 1 - i : i;
    for (int k = 0; k < operands; ++k) {
      lines.data[k] = strided[k] = start_[k] + offset[k] + column * kept_.stride[0][k] + i * stride_[k];
      if (!staged_[k]) continue;
      lines.data[k] = buffer + k * block_ * width_ * 8;
      lines.stride[k] = lines.width * size_of(kernel_.dtype[k]);
      if (!written(k)) copy(lines, k, strided[k], true);
    }
    (across_ ? kernel_.across : kernel_.along)(lines);
    for (int k = 0; k < operands; ++k)
      if (staged_[k] && written(k)) copy(lines, k, strided[k], false);
  }
}

void LineWork::run() {
  if (arg_[0]->layout->numel() == 0) return;
  const int64_t columns = kept_.size[0];
  if (across_)
    width_ = std::min(columns, scan_ ? AxisRows::max_width : std::clamp<int64_t>(tile_elements / n_, 16, 256));
  const bool staged = staged_[0] || staged_[1] || staged_[2];
  block_ = scan_ && staged ? std::min(n_, std::max<int64_t>(1, staged_elements / width_)) : n_;
  const Layout& input = *arg_[1]->layout;
  const bool uncached = prefetch_helps && !staged_[1] && input.is_contiguous() &&
                        input.numel() * size_of(arg_[1]->dtype) >= uncached_bytes;
  const int64_t tiles_per_row = across_ ? divide_up(columns, width_) : columns;
  parallel_ranges(kept_.rows() * tiles_per_row,
                  std::max<int64_t>(1, finer(kept_.rows() * tiles_per_row * n_ * width_, grain) / (n_ * width_)),
                  [&](int64_t begin, int64_t end) {
                    alignas(64) char states[2][8 * AxisRows::max_width];
                    AxisRows lines{};
                    lines.width = 1;
                    lines.step = reverse_ ? -1 : 1;
                    lines.uncached = uncached;
                    lines.state = {{states[0], states[1], nullptr}};
                    std::copy(stride_, stride_ + operands, lines.stride);
                    const size_t room = staged ? size_t(operands * block_ * width_ * 8) : 0;
                    auto* buffer = static_cast<char*>(scratch(Scratch::tile, room));
                    const auto row = [&](const int64_t* offset) { line(lines, offset, 0, buffer); };
                    if (!across_) return kept_.for_rows(begin, end, row, 0);
                    for (int64_t t = begin; t < end; ++t) {
                      const auto tile = [&](const int64_t* offset) {
                        line(lines, offset, t % tiles_per_row * width_, buffer);
                      };
                      kept_.for_rows(t / tiles_per_row, t / tiles_per_row + 1, tile);
                    }
                  });
}

AxisKernel softmax_for(bool log, bool back, const Arg& out) {
  return for_isa([]<Isa level>() { return &softmax_kernel<level>; })(log, back, out.dtype == f64 ? f64 : f32);
}

}  // namespace

void softmax(const SoftmaxCall& call) {
  LineWork(softmax_for(call.log, false, call.out), call.out, call.in, {}, call.axis, false, false).run();
}

void softmax_backward(const SoftmaxBackwardCall& call) {
  LineWork(softmax_for(call.log, true, call.out), call.out, call.grad, call.result, call.axis, false, false).run();
}

void scan(const ScanCall& call) {
  const AxisKernel kernel = for_isa([]<Isa level>() { return &scan_kernel<level>; })(call.reducer, call.in.dtype);
  LineWork(kernel, call.out, call.in, call.indices, call.axis, true, call.reverse).run();
}

}  // namespace volta::cpu

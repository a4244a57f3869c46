// Reductions on the CPU: the geometry, its split into tasks, and the staging of rows no kernel can read as they are.
//
// A task takes a tile of results and a piece of what is reduced into them. Tiles and pieces depend on shapes and
// strides alone, and pieces are merged in a fixed order, so results do not depend on the number of threads.
#include "backend/cpu/fold.h"

#include "backend/cpu/axes.h"
#include "backend/cpu/cast.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"
#include "backend/cpu/scratch.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 32 * 1024;        // elements worth a thread
constexpr int64_t large_grain = 8 * grain;  // of large tensors: long stretches read faster
constexpr int64_t enough_parts = 64;
constexpr int64_t enough_tiles = 16;    // that threads share tiles only, not pieces of them
constexpr int64_t direct_block = 4096;  // elements a kernel takes along a row at once
constexpr int64_t staged_block = 1024;
constexpr int64_t rows_together = 64;      // rows added up before their sum joins that of others
constexpr int64_t sums_together = 64;      // the same for sums along rows
constexpr int64_t tile_bytes = 16 * 1024;  // of states that are worked on together
constexpr int64_t short_row = 32;

const FoldTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::fold_table;
#endif
#if defined(VOLTA_HAVE_ISA_V3)
  if (isa() >= Isa::v3) return v3::fold_table;
#endif
  return baseline::fold_table;
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t padded(int64_t bytes) { return divide_up(bytes, 64) * 64; }

class Folding {
 public:
  Folding(const FoldCall& call, const FoldKernel& kernel);
  void run();

 private:
  enum Operand { in, out, indices };

  void choose_direction();
  void choose_tiles();
  void task(int64_t tile, int64_t piece, char* states);
  void along(int64_t tile, int64_t begin, int64_t end, char* low, char* high);
  void along_one(const char* x, const FoldState& low, const FoldState& high, int64_t begin, int64_t end);
  void across(int64_t tile, int64_t begin, int64_t end, char* low, char* high);
  void across_rows(const char* x, int64_t n, int64_t begin, int64_t rows, int64_t first, const FoldState& s);
  void join_wide(char* states);
  void finish(int64_t tile, char* states);
  void store(int64_t tile, Operand operand, const Arg& arg, DType from, const char* row);

  const char* staged(const char* row, int64_t stride, int64_t n, char* buffer) const;
  FoldState at(char* states, int64_t i) const {
    FoldState s{};
    for (int p = 0; p < kernel_.parts; ++p) s.part[p] = states + part_offset_[p] + i * kernel_.size[p];
    return s;
  }
  int64_t results_in(int64_t tile) const {
    if (!across_) return std::min(width_, results_ - tile * width_);
    return std::min(width_, columns_ - tile % tiles_per_row_ * width_);
  }
  int64_t states_in(int64_t tile) const { return across_ ? results_in(tile) * wide_ : results_in(tile); }
  // Two levels of sums, then two rows of results; all of it lives in the thread's scratch memory.
  char* working_memory() const {
    return static_cast<char*>(scratch(Scratch::tile, size_t(2 * state_bytes_ + 2 * padded(width_ * 8))));
  }

  const FoldCall& call_;
  const FoldKernel& kernel_;
  AxisList<1> reduced_;
  AxisList<3> kept_;
  int64_t results_ = 0, count_ = 0;  // results, and elements in each
  bool across_ = false, direct_ = false;
  int64_t columns_ = 0;  // across: size of the innermost kept axis
  int64_t wide_ = 1;     // across: so many rows lie end to end and are taken as one
  int64_t grain_ = grain;
  int64_t width_ = 0;  // results of a tile
  int64_t tiles_ = 0, tiles_per_row_ = 1, pieces_ = 1;
  int64_t unit_size_ = 0, units_per_row_ = 0, units_ = 0, units_per_piece_ = 0;
  int64_t part_offset_[FoldState::max_parts] = {}, state_bytes_ = 0;
};

Folding::Folding(const FoldCall& call, const FoldKernel& kernel) : call_(call), kernel_(kernel) {
  const Layout &x = *call.in.layout, &y = *call.out.layout;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t step = x.strides[i] * size_of(call.in.dtype);
    if (call.reduced >> i & 1) {
      reduced_.add({x.shape[i], {step}});
    } else {
      const int64_t index_step = call.indices.data ? call.indices.layout->strides[i] * 8 : 0;
      kept_.add({x.shape[i], {step, y.strides[i] * size_of(call.out.dtype), index_step}});
    }
  }
  results_ = kept_.count();
  count_ = reduced_.count();
  reduced_.finish(!kernel_.indexed);
  kept_.finish(true);
  if (results_ == 0) return;
  choose_direction();
  choose_tiles();
}

// Along rows where the reduced elements lie next to each other, across rows where those of neighbouring results do.
void Folding::choose_direction() {
  const int64_t size = size_of(call_.in.dtype);
  const auto& r = reduced_.axis[0];
  const auto& q = kept_.axis[0];
  const bool adjoining = q.stride[in] == size && r.stride[0] == q.size * size && !kernel_.indexed;
  if (results_ == 1) across_ = false;
  else if (r.stride[0] == size && r.size >= short_row) across_ = false;
  else across_ = q.size >= short_row || adjoining || q.size >= r.size;
  if (across_ && adjoining && q.size < short_row) wide_ = std::max<int64_t>(1, std::min(512 / q.size, r.size / 4));
  const int64_t inner_stride = across_ ? q.stride[in] : r.stride[0];
  direct_ = call_.in.dtype == kernel_.input && (inner_stride == size || count_ == 0);
}

void Folding::choose_tiles() {
  const int64_t inner = reduced_.axis[0].size;
  grain_ = std::clamp(results_ * count_ / enough_parts, grain, large_grain);
  int64_t state_size = 0;
  for (int p = 0; p < kernel_.parts; ++p) state_size += kernel_.size[p];
  if (across_) {
    columns_ = kept_.axis[0].size;
    const int64_t limit = direct_ ? tile_bytes / state_size / 64 * 64 : staged_block;
    width_ = std::min(columns_, limit);
    tiles_per_row_ = divide_up(columns_, width_);
    tiles_ = results_ / columns_ * tiles_per_row_;
    unit_size_ = rows_together * wide_;
  } else {
    width_ = std::clamp<int64_t>(grain_ / std::max<int64_t>(count_, 1), 1, 256);
    width_ = std::min(width_, results_);
    tiles_ = divide_up(results_, width_);
    unit_size_ = direct_ ? direct_block : staged_block;
  }
  units_per_row_ = divide_up(inner, unit_size_);
  units_ = count_ == 0 ? 0 : count_ / inner * units_per_row_;
  const int64_t unit_elements = std::max<int64_t>(1, std::min(inner, unit_size_) * (across_ ? width_ : 1));
  const int64_t most = across_ ? rows_together : sums_together * sums_together;
  units_per_piece_ = tiles_ >= enough_tiles ? most : std::clamp<int64_t>(grain_ / unit_elements, 1, most);
  pieces_ = std::max<int64_t>(1, divide_up(units_, units_per_piece_));
  for (int p = 0; p < kernel_.parts; ++p) {
    part_offset_[p] = state_bytes_;
    state_bytes_ += padded(width_ * wide_ * kernel_.size[p]);
  }
}

const char* Folding::staged(const char* row, int64_t stride, int64_t n, char* buffer) const {
  if (direct_) return row;
  const DType from = call_.in.dtype, to = kernel_.input;
  if (stride != size_of(from)) {
    char* raw = from == to ? buffer : buffer + staged_block * 8;
    gather_row(size_of(from), n, raw, row, stride);
    row = raw;
  }
  if (from == to) return row;
  cast_row(to, from)(n, buffer, row);
  return buffer;
}

void Folding::along_one(const char* x, const FoldState& low, const FoldState& high, int64_t begin, int64_t end) {
  alignas(64) char buffer[2 * staged_block * 8];
  const auto& r = reduced_.axis[0];
  int64_t outer = begin / units_per_row_, unit = begin % units_per_row_, held = 0;
  Steps<1> steps(reduced_, 1, outer);
  for (int64_t u = begin; u < end; ++u) {
    const int64_t i = unit * unit_size_, n = std::min(unit_size_, r.size - i);
    const char* row = staged(x + steps.offset[0] + i * r.stride[0], r.stride[0], n, buffer);
    kernel_.along(n, row, low, outer * r.size + i, call_.parameter);
    if (kernel_.rounds && ++held == sums_together) {
      kernel_.merge(1, high, low);
      kernel_.start(1, low);
      held = 0;
    }
    if (++unit < units_per_row_) continue;
    unit = 0;
    ++outer;
    steps.next();
  }
}

void Folding::along(int64_t tile, int64_t begin, int64_t end, char* low, char* high) {
  const char* x = static_cast<const char*>(call_.in.data);
  const int64_t n = results_in(tile);
  Steps<3> result(kept_, 0, tile * width_);
  for (int64_t i = 0; i < n; ++i, result.next()) along_one(x + result.offset[in], at(low, i), at(high, i), begin, end);
}

// Rows [begin, begin + rows) of the innermost reduced axis, n columns each.
void Folding::across_rows(const char* x, int64_t n, int64_t begin, int64_t rows, int64_t first, const FoldState& s) {
  alignas(64) char buffer[2 * staged_block * 8];
  const int64_t step = reduced_.axis[0].stride[0] * wide_, column_step = kept_.axis[0].stride[in];
  const int64_t full = rows / wide_, rest = rows % wide_;
  const char* start = x + begin * reduced_.axis[0].stride[0];
  if (direct_) {
    kernel_.across(n * wide_, full, start, step, s, first, call_.parameter);
  } else {
    for (int64_t r = 0; r < full; ++r)
      kernel_.across(n * wide_, 1, staged(start + r * step, column_step, n * wide_, buffer), 0, s, first + r,
                     call_.parameter);
  }
  if (rest > 0)
    kernel_.across(n * rest, 1, staged(start + full * step, column_step, n * rest, buffer), 0, s, first,
                   call_.parameter);
}

void Folding::across(int64_t tile, int64_t begin, int64_t end, char* low, char* high) {
  const auto& r = reduced_.axis[0];
  const int64_t n = results_in(tile);
  const Steps<3> result(kept_, 1, tile / tiles_per_row_);
  const char* x = static_cast<const char*>(call_.in.data) + result.offset[in] +
                  tile % tiles_per_row_ * width_ * kept_.axis[0].stride[in];
  int64_t outer = begin / units_per_row_, unit = begin % units_per_row_;
  Steps<1> steps(reduced_, 1, outer);
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = unit * unit_size_, rows = std::min(unit_size_, r.size - row);
    across_rows(x + steps.offset[0], n, row, rows, outer * r.size + row, at(low, 0));
    if (kernel_.rounds && u + 1 < end) {
      kernel_.merge(n * wide_, at(high, 0), at(low, 0));
      kernel_.start(n * wide_, at(low, 0));
    }
    if (++unit < units_per_row_) continue;
    unit = 0;
    ++outer;
    steps.next();
  }
}

// The results of a wide row, by halves.
void Folding::join_wide(char* states) {
  for (int64_t n = wide_; n > 1; n = (n + 1) / 2) {
    const int64_t upper = (n + 1) / 2;
    kernel_.merge((n - upper) * width_, at(states, 0), at(states, upper * width_));
  }
}

// One piece of one tile into `states`.
void Folding::task(int64_t tile, int64_t piece, char* states) {
  char* high = working_memory() + state_bytes_;
  const int64_t begin = piece * units_per_piece_, end = std::min(units_, begin + units_per_piece_), n = states_in(tile);
  const bool levels = kernel_.rounds && end - begin > (across_ ? 1 : sums_together - 1);
  kernel_.start(n, at(states, 0));
  if (units_ == 0) return;
  if (levels) kernel_.start(n, at(high, 0));
  if (across_) across(tile, begin, end, states, high);
  else along(tile, begin, end, states, high);
  if (levels) kernel_.merge(n, at(states, 0), at(high, 0));
  if (wide_ > 1) join_wide(states);
}

void Folding::store(int64_t tile, Operand operand, const Arg& arg, DType from, const char* row) {
  const int64_t n = results_in(tile), size = size_of(arg.dtype);
  if (arg.dtype != from) {
    char* buffer = working_memory() + 2 * state_bytes_ + padded(width_ * 8);
    cast_row(arg.dtype, from)(n, buffer, row);
    row = buffer;
  }
  char* to = static_cast<char*>(arg.data);
  const auto& q = kept_.axis[0];
  const int64_t first = across_ ? tile / tiles_per_row_ * q.size + tile % tiles_per_row_ * width_ : tile * width_;
  Steps<3> result(kept_, 0, first);
  for (int64_t i = 0; i < n;) {
    const int64_t run = std::min(n - i, q.size - result.at[0]);
    scatter_row(size, run, to + result.offset[operand], q.stride[operand], row + i * size);
    i += run;
    result.advance(run);
  }
}

void Folding::finish(int64_t tile, char* states) {
  char* row = working_memory() + 2 * state_bytes_;
  const FoldState s = at(states, 0);
  kernel_.finish(results_in(tile), row, s, count_, call_.parameter);
  store(tile, out, call_.out, kernel_.result, row);
  if (call_.indices.data) store(tile, indices, call_.indices, i64, s.part[1]);
}

void Folding::run() {
  if (results_ == 0) return;
  if (pieces_ == 1) {
    const int64_t together = std::max<int64_t>(1, grain_ / std::max<int64_t>(1, count_ * width_));
    return parallel(divide_up(tiles_, together), [&](int64_t part) {
      char* states = working_memory();
      for (int64_t t = part * together; t < std::min(tiles_, (part + 1) * together); ++t) {
        task(t, 0, states);
        finish(t, states);
      }
    });
  }
  char* partial = static_cast<char*>(scratch(Scratch::shared, size_t(tiles_ * pieces_ * state_bytes_)));
  const auto states = [&](int64_t tile, int64_t piece) { return partial + (tile * pieces_ + piece) * state_bytes_; };
  parallel(tiles_ * pieces_, [&](int64_t i) { task(i / pieces_, i % pieces_, partial + i * state_bytes_); });
  for (int64_t tile = 0; tile < tiles_; ++tile) {
    for (int64_t step = 1; step < pieces_; step *= 2)
      for (int64_t p = 0; p + step < pieces_; p += 2 * step)
        kernel_.merge(results_in(tile), at(states(tile, p), 0), at(states(tile, p + step), 0));
    finish(tile, states(tile, 0));
  }
}

// All of a small contiguous tensor into one number, the commonest reduction: no geometry to think about.
bool fold_small(const FoldCall& call, const FoldKernel& kernel) {
  const Layout& x = *call.in.layout;
  const int64_t n = x.numel();
  if (n > grain || call.indices.data || call.in.dtype != kernel.input || call.out.dtype != kernel.result) return false;
  if (call.reduced + 1 != uint32_t(1) << x.rank() || !x.is_contiguous()) return false;
  alignas(8) char parts[FoldState::max_parts][8];
  const FoldState state{{parts[0], parts[1], parts[2]}};
  kernel.start(1, state);
  const char* data = static_cast<const char*>(call.in.data);
  for (int64_t i = 0; i < n; i += direct_block)
    kernel.along(std::min(direct_block, n - i), data + i * size_of(kernel.input), state, i, call.parameter);
  kernel.finish(1, call.out.data, state, n, call.parameter);
  return true;
}

}  // namespace

void fold(const FoldCall& call) {
  const FoldKernel kernel = table().find(call.fold, call.indices.data != nullptr, call.compute);
  if (!fold_small(call, kernel)) Folding(call, kernel).run();
}

}  // namespace volta::cpu

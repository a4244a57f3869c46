// Reductions on the CPU: the geometry, its split into tasks, and the staging of rows no kernel can read as they are.
//
// A task takes a tile of results, neighbours along the innermost kept axis, and a piece of what is reduced into them.
// Tiles and pieces depend on shapes and strides alone, and pieces are merged in a fixed order, so results do not depend
// on the number of threads.
#include "backend/cpu/prefetch.h"

#include "backend/cpu/copy/move.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/reduce/kernels.h"
#include "backend/cpu/scratch.h"
#include "math/inner.h"
#include "math/reducers.h"

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

int64_t padded(int64_t bytes) { return divide_up(bytes, 64) * 64; }

class ReduceLoop {
 public:
  ReduceLoop(const ReduceCall& call, const ReduceKernel& kernel);
  void run();

 private:
  enum Operand { in, out, indices };
  struct Tile {
    int64_t width, offset[3];  // results, and the bytes to the first of them in every operand
  };

  void choose_direction();
  void choose_tiles();
  Tile tile(int64_t number) const;
  void task(const Tile& tile, int64_t piece, char* states) const;
  template <class F> void for_units(int64_t begin, int64_t end, F f) const;
  void take(const char* x, int64_t n, int64_t begin, int64_t end, ReduceState low, const ReduceState* high) const;
  void across_rows(const char* x, int64_t n, int64_t rows, int64_t first, ReduceState s, char* buffer) const;
  void finish(const Tile& tile, char* states) const;

  const char* staged(const char* row, int64_t stride, int64_t n, char* buffer) const {
    if (direct_) return row;
    copy_row(n, buffer, size_of(kernel_.input), kernel_.input, row, stride, call_.in.dtype);
    return buffer;
  }
  ReduceState at(char* states, int64_t i) const {
    ReduceState s{};
    for (int p = 0; p < kernel_.parts; ++p) s.part[p] = states + part_offset_[p] + i * kernel_.size[p];
    return s;
  }
  // Two levels of sums, then a row of results; all of it lives in the thread's scratch memory.
  char* working_memory() const {
    return static_cast<char*>(scratch(Scratch::tile, size_t(2 * state_bytes_ + width_ * 8)));
  }

  const ReduceCall& call_;
  const ReduceKernel& kernel_;
  StridedLoop<1> reduced_;
  StridedLoop<3> kept_;
  int64_t results_ = 1, count_ = 1;  // results, and elements in each
  bool across_ = false, direct_ = false, uncached_ = false;
  int64_t wide_ = 1;  // across: so many rows lie end to end and are taken as one
  int64_t grain_ = grain;
  int64_t width_ = 0, tiles_ = 0, tiles_per_row_ = 1, pieces_ = 1;  // width: results of a tile, at most
  // What is reduced is taken by units: stretches of a row, or rows that are added up together.
  int64_t unit_size_ = 0, units_per_row_ = 0, units_ = 0, units_per_piece_ = 0;
  int64_t part_offset_[ReduceState::max_parts] = {}, state_bytes_ = 0;
};

ReduceLoop::ReduceLoop(const ReduceCall& call, const ReduceKernel& kernel) : call_(call), kernel_(kernel) {
  const Layout &x = *call.in.layout, &y = *call.out.layout;
  const auto add_reduced = [&](bool repeated) {
    for (int i = 0; i < x.rank(); ++i) {
      const int64_t step = x.strides[i] * size_of(call.in.dtype);
      if ((call.reduced >> i & 1) && (kernel.indexed || repeated == (step == 0))) reduced_.add_axis(x.shape[i], &step);
    }
  };
  if (!kernel.indexed) add_reduced(true);  // axes that repeat elements come outermost
  add_reduced(false);
  reduced_.finish(!kernel.indexed);
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t strides[] = {x.strides[i] * size_of(call.in.dtype), y.strides[i] * size_of(call.out.dtype),
                               call.indices.data ? call.indices.layout->strides[i] * 8 : 0};
    const bool is_reduced = call.reduced >> i & 1;
    if (!is_reduced) kept_.add_axis(x.shape[i], strides);
    (is_reduced ? count_ : results_) *= x.shape[i];
  }
  kept_.finish();
  if (results_ == 0) return;
  choose_direction();
  choose_tiles();
}

// Along rows where the reduced elements lie next to each other, across rows where those of neighbouring results do.
void ReduceLoop::choose_direction() {
  const int64_t size = size_of(call_.in.dtype), length = reduced_.size[0], step = reduced_.stride[0][0];
  const int64_t columns = kept_.size[0], beside = kept_.stride[0][in];
  const bool adjoining = beside == size && step == columns * size && !kernel_.indexed;
  if (results_ == 1 || (step == size && length >= short_row)) across_ = false;
  else across_ = columns >= short_row || adjoining || columns >= length;
  if (across_ && adjoining && columns < short_row) wide_ = std::max<int64_t>(1, std::min(512 / columns, length / 4));
  direct_ = call_.in.dtype == kernel_.input && ((across_ ? beside : step) == size || count_ == 0);
  uncached_ =
      prefetch_helps && direct_ && results_ * count_ * size >= uncached_bytes && call_.in.layout->is_contiguous();
}

void ReduceLoop::choose_tiles() {
  const int64_t inner = reduced_.size[0], columns = kept_.size[0];
  grain_ = std::clamp(results_ * count_ / enough_parts, grain, large_grain);
  int64_t state_size = 0;
  for (int p = 0; p < kernel_.parts; ++p) state_size += kernel_.size[p];
  if (across_) {
    width_ = direct_ ? tile_bytes / state_size / 64 * 64 : staged_block;
    unit_size_ = rows_together * wide_;
  } else {
    width_ = std::clamp<int64_t>(grain_ / std::max<int64_t>(count_, 1), 1, 256);
    unit_size_ = direct_ ? direct_block : staged_block;
  }
  width_ = std::min(columns, width_);
  tiles_per_row_ = divide_up(columns, width_);
  tiles_ = results_ / columns * tiles_per_row_;
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

ReduceLoop::Tile ReduceLoop::tile(int64_t number) const {
  const int64_t row = number / tiles_per_row_, column = number % tiles_per_row_ * width_;
  Tile t{std::min(width_, kept_.size[0] - column), {}};
  kept_.for_rows(row, row + 1, [&](const int64_t* offset) {
    for (int k = 0; k < 3; ++k) t.offset[k] = offset[k] + column * kept_.stride[0][k];
  });
  return t;
}

// Calls f(offset in bytes, index of the first, length along the innermost reduced axis) for units [begin, end).
template <class F> void ReduceLoop::for_units(int64_t begin, int64_t end, F f) const {
  const int64_t size = reduced_.size[0];
  int64_t row = begin / units_per_row_;
  reduced_.for_rows(row, divide_up(end, units_per_row_), [&](const int64_t* offset) {
    const int64_t from = std::max<int64_t>(0, begin - row * units_per_row_) * unit_size_;
    const int64_t to = std::min(size, (end - row * units_per_row_) * unit_size_);
    for (int64_t i = from; i < to; i += unit_size_)
      f(offset[0] + i * reduced_.stride[0][0], row * size + i, std::min(unit_size_, size - i));
    ++row;
  });
}

// `rows` rows of n columns each.
void ReduceLoop::across_rows(const char* x, int64_t n, int64_t rows, int64_t first, ReduceState s, char* buffer) const {
  const int64_t step = reduced_.stride[0][0] * wide_, beside = kept_.stride[0][in];
  const int64_t full = rows / wide_, rest = rows % wide_, together = direct_ ? full : 1;
  for (int64_t r = 0; r < full; r += together)
    kernel_.across(n * wide_, together, staged(x + r * step, beside, n * wide_, buffer), step, s, first + r,
                   call_.parameter);
  if (rest > 0)
    kernel_.across(n * rest, 1, staged(x + full * step, beside, n * rest, buffer), 0, s, first, call_.parameter);
}

// Units [begin, end) into n states, if there is a higher level by way of it.
void ReduceLoop::take(const char* x, int64_t n, int64_t begin, int64_t end, ReduceState low,
                      const ReduceState* high) const {
  alignas(64) char buffer[staged_block * 8];
  const int64_t together = across_ ? 1 : sums_together;
  int64_t held = 0;
  for_units(begin, end, [&](int64_t offset, int64_t first, int64_t length) {
    if (across_) across_rows(x + offset, n, length, first, low, buffer);
    else
      kernel_.along(length, staged(x + offset, reduced_.stride[0][0], length, buffer), low, first, call_.parameter,
                    uncached_);
    if (!high || ++held < together) return;
    kernel_.merge(n * wide_, *high, low);
    kernel_.start(n * wide_, low);
    held = 0;
  });
  if (high) kernel_.merge(n * wide_, low, *high);
}

// One piece of one tile into `states`.
void ReduceLoop::task(const Tile& tile, int64_t piece, char* states) const {
  char* high = working_memory() + state_bytes_;
  const int64_t begin = piece * units_per_piece_, end = std::min(units_, begin + units_per_piece_);
  const bool levels = kernel_.rounds && end - begin > (across_ ? 1 : sums_together - 1);
  const char* x = static_cast<const char*>(call_.in.data) + tile.offset[in];
  kernel_.start(tile.width * wide_, at(states, 0));
  if (units_ == 0) return;
  if (levels) kernel_.start(tile.width * wide_, at(high, 0));
  const int64_t together = across_ ? tile.width : 1;
  for (int64_t i = 0; i < tile.width; i += together) {
    const ReduceState upper = at(high, i);
    take(x + i * kept_.stride[0][in], together, begin, end, at(states, i), levels ? &upper : nullptr);
  }
  for (int64_t n = wide_; n > 1; n = (n + 1) / 2) {  // the results of a wide row, by halves
    const int64_t upper = (n + 1) / 2;
    kernel_.merge((n - upper) * width_, at(states, 0), at(states, upper * width_));
  }
}

void ReduceLoop::finish(const Tile& tile, char* states) const {
  char* row = working_memory() + 2 * state_bytes_;
  const ReduceState s = at(states, 0);
  kernel_.finish(tile.width, row, s, count_, call_.parameter);
  const auto store = [&](const Arg& arg, Operand operand, const char* from, DType dtype) {
    copy_row(tile.width, static_cast<char*>(arg.data) + tile.offset[operand], kept_.stride[0][operand], arg.dtype, from,
             size_of(dtype), dtype);
  };
  if (call_.out.data) store(call_.out, out, row, kernel_.result);
  if (call_.indices.data) store(call_.indices, indices, s.part[1], i64);
}

void ReduceLoop::run() {
  if (results_ == 0) return;
  if (pieces_ == 1) {
    const int64_t each = finer(results_ * count_, grain_);
    const int64_t together = std::max<int64_t>(1, each / std::max<int64_t>(1, count_ * width_));
    return parallel_ranges(tiles_, together, [&](int64_t begin, int64_t end) {
      char* states = working_memory();
      for (int64_t i = begin; i < end; ++i) {
        const Tile t = tile(i);
        task(t, 0, states);
        finish(t, states);
      }
    });
  }
  char* partial = static_cast<char*>(scratch(Scratch::shared, size_t(tiles_ * pieces_ * state_bytes_)));
  parallel(tiles_ * pieces_, [&](int64_t i) { task(tile(i / pieces_), i % pieces_, partial + i * state_bytes_); });
  for (int64_t i = 0; i < tiles_; ++i) {
    const Tile t = tile(i);
    char* states = partial + i * pieces_ * state_bytes_;
    for (int64_t step = 1; step < pieces_; step *= 2)
      for (int64_t p = 0; p + step < pieces_; p += 2 * step)
        kernel_.merge(t.width, at(states + p * state_bytes_, 0), at(states + (p + step) * state_bytes_, 0));
    finish(t, states);
  }
}

// All of a small contiguous tensor into one number, the commonest reduction: no geometry to think about.
bool reduce_small(const ReduceCall& call, const ReduceKernel& kernel) {
  const Layout& x = *call.in.layout;
  const int64_t n = x.numel();
  const bool index = !call.out.data;  // alone
  if (n > grain || call.in.dtype != kernel.input) return false;
  if (!index && (call.indices.data || call.out.dtype != kernel.result)) return false;
  if (call.reduced + 1 != uint32_t(1) << x.rank() || !x.is_contiguous()) return false;
  alignas(8) char parts[ReduceState::max_parts][8];
  const ReduceState state{{parts[0], parts[1], parts[2]}};
  kernel.start(1, state);
  const char* data = static_cast<const char*>(call.in.data);
  for (int64_t i = 0; i < n; i += direct_block)
    kernel.along(std::min(direct_block, n - i), data + i * size_of(kernel.input), state, i, call.parameter, false);
  if (index) std::copy_n(parts[1], 8, static_cast<char*>(call.indices.data));
  else kernel.finish(1, call.out.data, state, n, call.parameter);
  return true;
}

// Whether no square in f32 overflowed or underflowed, judged by a contiguous result. A result in f32 would be 0 as well
// where its squares underflow; one in f64 would not.
bool in_range(const Arg& x) {
  const int64_t n = x.layout->numel();
  return visit(x.dtype, [&]<class T>(TypeTag<T>) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    constexpr Wide least = std::is_same_v<T, double> ? 0x1p-100 : 0;
    bool fine = true;
    const T* values = static_cast<const T*>(x.data);
    for (int64_t i = 0; i < n; ++i) fine &= Wide(values[i]) - Wide(values[i]) == 0 && Wide(values[i]) >= least;
    return fine;
  });
}

}  // namespace

void reduce(const ReduceCall& call) {
  const auto find = for_isa([]<Isa level>() { return &reduce_kernel<level>; });
  const ReduceKernel kernel = find(call.reducer, call.compute);
  if (!reduce_small(call, kernel)) ReduceLoop(call, kernel).run();
  // Squares of f32 leave its range long before their root does: then once more, in f64.
  if (call.reducer == index_of<reducers::Var>(Reducers{}) && call.compute == f32 && !in_range(call.out))
    ReduceLoop(call, find(call.reducer, f64)).run();
}

void sum_parts(const Arg& out, void* parts, int64_t count, int64_t numbers) {
  const Layout from = Layout::contiguous({count, numbers}), to = Layout::contiguous({1, numbers});
  reduce({index_of<reducers::Sum>(Reducers{}),
          out.dtype,
          {out.data, &to, out.dtype, {}},
          {},
          {parts, &from, out.dtype, {}},
          1,
          0});
}

}  // namespace volta::cpu

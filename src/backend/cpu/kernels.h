// The kernels of isa/ as the loops see them: function templates of the level, each specialised once per level.
#pragma once
#include <cstddef>
#include <tuple>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/move.h"

namespace volta::cpu {

// What a reduction or a scan carries: up to three numbers for each result or row, each in its own array (a sum; a value
// and its index; …).
struct FoldState {
  static constexpr int max_parts = 3;
  char* part[max_parts];
};

struct FoldKernel {
  DType input, result;  // of the rows it reads and of what finish writes
  int parts;            // of the state
  const int* size;      // bytes of one element of each part
  bool rounds;          // sums of floats, which are worth adding in levels
  bool indexed;         // sees the elements in their order, and their index
  void (*start)(int64_t n, FoldState s);
  // Takes a row of n elements into the one state s; the first element has the index `first` along the reduced axes. The
  // elements may be far, beyond the caches.
  void (*along)(int64_t n, const void* row, FoldState s, int64_t first, double parameter, bool far);
  // Takes `rows` rows of n elements, `stride` bytes apart, into n states; row r has the index first + r.
  void (*across)(int64_t n, int64_t rows, const void* in, int64_t stride, FoldState s, int64_t first, double parameter);
  void (*merge)(int64_t n, FoldState into, FoldState later);
  // `count` elements went into each state. For max and min with indices, those are part 1 of the state.
  void (*finish)(int64_t n, void* out, FoldState s, int64_t count, double parameter);
};
// For elements of this dtype, given as they are or converted to the kernel's input.
template <Isa> FoldKernel fold_kernel(Fold fold, bool indices, DType dtype);

// Along: n contiguous elements of one row along the axis. Across: of `width` neighbouring rows, one to a column; then
// `stride` bytes lie between one position and the next. Scans take a row in pieces and carry a state between them.
struct Lines {
  static constexpr int64_t max_width = 512;
  int64_t n, width;
  char* data[3];  // the output; for row ops two inputs, for scans the input and the output of indices
  int64_t stride[3];
  int64_t first, step;  // scans: the index of the first position, and the way to the next
  bool begins;          // scans: nothing came before
  FoldState state;      // scans: of each row
  bool far;             // the input lies beyond the caches, its rows next to each other
};

struct LineKernel {
  DType dtype[3];  // of the operands as it sees them
  void (*along)(const Lines& lines);
  void (*across)(const Lines& lines);
};
template <Isa> LineKernel row_kernel(RowOp op, DType dtype);
template <Isa> LineKernel scan_kernel(Scan scan, DType dtype);

template <Isa> CastRow cast_kernel(DType to, DType from);

// Rows and columns of one tile: 256 bytes each, less for single bytes so that a tile fits the first-level cache.
constexpr int64_t transpose_tile(int64_t size) { return size == 1 ? 128 : 256 / size; }

struct MoveKernels {
  void (*gather)(int64_t n, std::byte* out, const std::byte* in, int64_t in_stride);
  void (*scatter)(int64_t n, std::byte* out, int64_t out_stride, const std::byte* in);
  void (*fill)(int64_t n, std::byte* out, const std::byte* value);
  // One tile of a transposed copy: at most transpose_tile(size) rows and columns.
  void (*tile)(int64_t rows, int64_t cols, std::byte* out, int64_t out_stride, const std::byte* in, int64_t in_stride);
};
template <Isa> const MoveKernels* move_kernels();  // four of them, indexed by log2 of the element size

struct RandomPiece {  // consecutive elements that begin with a whole block
  uint64_t seed, counter;
  DType dtype;
  int64_t n;
  void* out;
};
template <class Formula> using Draw = void (*)(const Formula&, const RandomPiece&);
using Draws =
    std::tuple<Draw<random::Uniform<float>>, Draw<random::Uniform<double>>, Draw<random::Normal<float>>,
               Draw<random::Normal<double>>, Draw<random::Exponential<float>>, Draw<random::Exponential<double>>,
               Draw<random::Bernoulli>, Draw<random::NarrowInteger>, Draw<random::WideInteger>>;
template <Isa> const Draws& draws();

}  // namespace volta::cpu

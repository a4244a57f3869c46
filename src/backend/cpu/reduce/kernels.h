// The kernels of reductions, softmax and scans: function templates of the level, specialised once per level.
#pragma once
#include "backend/backend.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

// What a reduction or a scan carries: up to three numbers for each result or row, each in its own array (a sum; a value
// and its index; …).
struct ReduceState {
  static constexpr int max_parts = 3;
  char* part[max_parts];
};

struct ReduceKernel {
  DType input, result;               // of the rows it reads and of what finish writes
  int parts;                         // of the state
  int size[ReduceState::max_parts];  // bytes of one element of each part
  bool rounds;                       // sums of floats, which are worth adding in levels
  bool indexed;                      // sees the elements in their order, and their index
  void (*start)(int64_t n, ReduceState s);
  // Takes a row of n elements into the one state s; the first element has the index `first` along the reduced axes. The
  // elements may be uncached, beyond the caches.
  void (*along)(int64_t n, const void* row, ReduceState s, int64_t first, double parameter, bool uncached);
  // Takes `rows` rows of n elements, `stride` bytes apart, into n states; row r has the index first + r.
  void (*across)(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s, int64_t first,
                 double parameter);
  void (*merge)(int64_t n, ReduceState into, ReduceState later);
  // `count` elements went into each state. Where it is indexed, part 1 of the state is the index.
  void (*finish)(int64_t n, void* out, ReduceState s, int64_t count, double parameter);
};
// For elements of this dtype, given as they are or converted to the kernel's input.
template <Isa> ReduceKernel reduce_kernel(int reducer, DType dtype);

// Along: n contiguous elements of one row along the axis. Across: of `width` neighbouring rows, one to a column; then
// `stride` bytes lie between one position and the next. Scans take a row in pieces and carry a state between them.
struct AxisRows {
  static constexpr int64_t max_width = 512;
  int64_t n, width;
  char* data[3];  // the output; for row ops two inputs, for scans the input and the output of indices
  int64_t stride[3];
  int64_t first, step;  // scans: the index of the first position, and the way to the next
  bool begins;          // scans: nothing came before
  ReduceState state;    // scans: of each row
  bool uncached;        // the input lies beyond the caches, its rows next to each other
};

struct AxisKernel {
  DType dtype[3];  // of the operands as it sees them
  void (*along)(const AxisRows& lines);
  void (*across)(const AxisRows& lines);
};
template <Isa> AxisKernel softmax_kernel(bool log, bool back, DType dtype);
template <Isa> AxisKernel scan_kernel(int reducer, DType dtype);

}  // namespace volta::cpu

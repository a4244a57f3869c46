// PoolCall: windows along up to three axes, folded by maximum or by a weighted sum; PoolBackwardCall: the gradients of both.
#pragma once
#include "backend/backend.h"
#include "math/resampling.h"

namespace volta {

// How a table of taps came about, for devices that had better compute it than read it.
struct TapRule {
  enum class Kind : uint8_t { table, window, adaptive, resampling };  // table: none is known
  // What an output of a sum is divided by: 1, its places in the input, those and the ones in the padding, or a number.
  enum class Divisor : uint8_t { none, inside, padded, constant };
  Kind kind = Kind::table;
  Divisor divisor = Divisor::none;
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;  // of a window
  double constant = 1;
  Resampling resampling = {};
};

// Output position j reads the input at index[k * out + j] for each tap k.
struct PoolAxis {
  int64_t in = 1, out = 1, taps = 1;
  const int64_t* index;
  const double* weight;   // of each tap, for sums; where it is 0 the input is not read
  const double* divisor;  // of each output of a sum; null: 1
  // In [begin, end) every tap moves by `stride` from one output to the next, and weighs 1.
  int64_t begin = 0, end = 0, stride = 0;
  TapRule rule = {};
};

enum class Pool : uint8_t { max, sum };

// Data are contiguous, [planes, …sizes of the axes, channels], of one floating dtype; channels is 1 but for devices that take
// channels-last tensors.
struct PoolShape {
  Pool pool;
  int64_t planes;
  PoolAxis axis[3];
  int64_t channels = 1;
};
struct PoolCall : PoolShape {
  Arg out, in;
  Arg indices;  // i64, in the input's plane: a second output of max, if wanted
};
struct PoolBackwardCall : PoolShape {
  Arg g, dx;    // of the output; of the input, all of which is written
  Arg indices;  // of max: as the forward call wrote them
};

}  // namespace volta

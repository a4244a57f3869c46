// Softmax and its kin on whole rows, one table per instruction set.
#pragma once
#include <cstdint>

#include "backend/backend.h"

namespace volta::cpu {

// A row along the axis, all contiguous; b is read by the backward ops only.
using RowAlong = void (*)(int64_t n, void* out, const void* a, const void* b);

// A tile: n rows of `width` neighbouring columns, each column a row of the op; rows begin `stride` bytes apart.
struct RowTile {
  int64_t n, width;
  char *out, *a, *b;
  int64_t out_stride, a_stride, b_stride;
};
using RowAcross = void (*)(const RowTile& tile);
constexpr int64_t row_tile_width = 256;  // at most

struct RowKernel {
  RowAlong along;
  RowAcross across;
};
struct RowTable {
  RowKernel kernel[4][2];  // by op; f32 and f64
};

namespace baseline {
extern const RowTable row_table;
}
#if defined(__x86_64__)
namespace v3 {
extern const RowTable row_table;
}
namespace v4 {
extern const RowTable row_table;
}
#endif

}  // namespace volta::cpu

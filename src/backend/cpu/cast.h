// Conversion of contiguous rows between any two dtypes; the rules are in docs/dtypes.md.
#pragma once
#include <cstdint>

#include <volta/dtype.h>

namespace volta::cpu {

// Converts n elements; out and in do not overlap.
using CastRow = void (*)(int64_t n, void* out, const void* in);
CastRow cast_row(DType to, DType from);

}  // namespace volta::cpu

// Conversion of contiguous rows between any two dtypes; the rules are in docs/dtypes.md.
#pragma once
#include <cstdint>

#include <volta/dtype.h>

namespace volta::cpu {

// Converts n elements; out and in do not overlap.
using CastRow = void (*)(int64_t n, void* out, const void* in);

CastRow cast_row(DType to, DType from);

struct CastTable {
  CastRow rows[dtype_count][dtype_count];  // [to][from]
};

namespace baseline {
extern const CastTable cast_table;
}
#if defined(__x86_64__)
namespace v3 {
extern const CastTable cast_table;
}
namespace v4 {
extern const CastTable cast_table;
}
#endif

}  // namespace volta::cpu

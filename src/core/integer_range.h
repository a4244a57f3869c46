// Which integers a dtype holds, of draws among them.
#pragma once
#include <volta/dtype.h>

namespace volta {

// Whether low, low + 1, …, `count` values in all, are values of the dtype. 0 stands for 2^64; the sum wraps, so that u64 takes
// its bounds as bits.
bool holds_integers(DType dtype, int64_t low, uint64_t count);

}  // namespace volta

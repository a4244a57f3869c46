// Sorting and selection in one contiguous row of any dtype. Order is total: NaN is the largest value, -0.0 equals +0.0,
// and of equal elements the one with the lower index comes first, so every result is unique.
#pragma once
#include <cstdint>

#include <volta/dtype.h>

namespace volta::cpu {

// The row sorted, and where each element came from. Descending puts NaN first and still keeps equal elements in order.
// Long rows use several threads; for many rows, call it from several threads.
void sort_row(DType dtype, int64_t n, const void* in, void* values_out, int64_t* indices_out, bool descending);

// The k first elements of that order (descending for the largest), sorted, or in any order when `sorted` is false.
void topk_row(DType dtype, int64_t n, int64_t k, const void* in, void* values_out, int64_t* indices_out, bool largest,
              bool sorted);

// The element that ascending order puts at position k.
void nth_row(DType dtype, int64_t n, int64_t k, const void* in, void* value_out, int64_t* index_out);

}  // namespace volta::cpu

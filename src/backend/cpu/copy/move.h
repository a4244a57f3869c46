// Moves of elements of 1, 2, 4 or 8 bytes between strided and contiguous memory, and conversions of their dtype; strides
// are in bytes, of any sign.
#pragma once
#include <cstdint>

#include <volta/dtype.h>

namespace volta::cpu {

// Strided to contiguous: out[i] = in[i * in_stride].
void gather_row(int64_t size, int64_t n, void* out, const void* in, int64_t in_stride);

// Contiguous to strided: out[i * out_stride] = in[i].
void scatter_row(int64_t size, int64_t n, void* out, int64_t out_stride, const void* in);

// n copies of the element at `value`.
void fill_row(int64_t size, int64_t n, void* out, const void* value);

// Converts n contiguous elements; out and in do not overlap. The rules are in docs/dtypes.md.
using CastRow = void (*)(int64_t n, void* out, const void* in);
CastRow cast_row(DType to, DType from);

// n elements, both sides strided, converted on the way.
void copy_row(int64_t n, char* out, int64_t out_stride, DType to, const char* in, int64_t in_stride, DType from);

// out[c][r] = in[r][c] for a matrix of `rows` rows of `cols` elements; both sides have contiguous rows that begin
// `stride` bytes apart. Runs on several threads when the matrix is large.
void transpose(int64_t size, int64_t rows, int64_t cols, void* out, int64_t out_stride, const void* in,
               int64_t in_stride);

}  // namespace volta::cpu

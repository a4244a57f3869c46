// Moves of elements of 1, 2, 4 or 8 bytes between strided and contiguous memory; strides are in bytes, of any sign.
#pragma once
#include <cstddef>
#include <cstdint>

namespace volta::cpu {

// Strided to contiguous: out[i] = in[i * in_stride].
void gather_row(int64_t size, int64_t n, void* out, const void* in, int64_t in_stride);

// Contiguous to strided: out[i * out_stride] = in[i].
void scatter_row(int64_t size, int64_t n, void* out, int64_t out_stride, const void* in);

// n copies of the element at `value`.
void fill_row(int64_t size, int64_t n, void* out, const void* value);

// out[c][r] = in[r][c] for a matrix of `rows` rows of `cols` elements; both sides have contiguous rows that begin
// `stride` bytes apart. Runs on several threads when the matrix is large.
void transpose(int64_t size, int64_t rows, int64_t cols, void* out, int64_t out_stride, const void* in,
               int64_t in_stride);

// Rows and columns of one tile: 256 bytes each, less for single bytes so that a tile fits the first-level cache.
constexpr int64_t transpose_tile(int64_t size) { return size == 1 ? 128 : 256 / size; }

struct MoveTable {  // indexed by log2 of the element size
  void (*gather[4])(int64_t n, std::byte* out, const std::byte* in, int64_t in_stride);
  void (*scatter[4])(int64_t n, std::byte* out, int64_t out_stride, const std::byte* in);
  void (*fill[4])(int64_t n, std::byte* out, const std::byte* value);
  // One tile of a transposed copy: at most transpose_tile(size) rows and columns.
  void (*tile[4])(int64_t rows, int64_t cols, std::byte* out, int64_t out_stride, const std::byte* in,
                  int64_t in_stride);
};

namespace baseline {
extern const MoveTable move_table;
}
#if defined(__x86_64__)
namespace v3 {
extern const MoveTable move_table;
}
namespace v4 {
extern const MoveTable move_table;
}
#endif

}  // namespace volta::cpu

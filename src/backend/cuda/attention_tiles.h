// Tiles of halves in shared memory, and their products on the tensor cores.
#pragma once
#include "backend/cuda/element.h"

namespace volta::cuda::tiles {

// A tile of rows of D halves in shared memory. Pieces of sixteen bytes change places within a row, so that eight rows can be
// read at once without two of them meeting in a bank.
template <int D> struct Tile {
  uint32_t base;
  static constexpr int pieces = D / 8;
  __device__ uint32_t at(int row, int piece) const {
    return base + uint32_t(row * D * 2) + uint32_t((piece ^ (row & 7)) * 16);
  }
};

__device__ inline void copy_async(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0));
}
__device__ inline void commit() { asm volatile("cp.async.commit_group;"); }
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Begins to bring rows [first, first + Rows) of a matrix; rows and columns beyond its end are zeros.
template <int D, int Rows, int Threads>
__device__ void fetch(const Tile<D>& tile, const char* matrix, int64_t stride, int first, int rows, int width) {
  constexpr int pieces = Tile<D>::pieces;
#pragma unroll
  for (int i = 0; i < Rows * pieces / Threads; ++i) {
    const int index = i * Threads + int(threadIdx.x), row = index / pieces, piece = index % pieces;
    const bool valid = first + row < rows && piece * 8 < width;
    const int64_t from = valid ? (first + row) * stride + piece * 8 : 0;
    copy_async(tile.at(row, piece), matrix + 2 * from, valid);
  }
}

struct Fragment {
  uint32_t r[4];
};
__device__ inline Fragment read_matrices(uint32_t address) {
  Fragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(address));
  return f;
}
__device__ inline Fragment read_transposed(uint32_t address) {
  Fragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(address));
  return f;
}

__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline int lane() { return int(threadIdx.x) % 32; }
// 16 rows and 16 columns as the left operand of a product.
template <int D> __device__ Fragment left(const Tile<D>& t, int row, int column) {
  return read_matrices(t.at(row + lane() % 16, column / 8 + lane() / 16));
}
// 16 rows as columns of the right operand, whose depth is along the rows: two operands of 8 columns.
template <int D> __device__ Fragment right_by_row(const Tile<D>& t, int row, int column) {
  const int matrix = lane() / 8;
  return read_matrices(t.at(row + matrix / 2 * 8 + lane() % 8, column / 8 + matrix % 2));
}
// 16 columns of the right operand, whose depth is along the columns.
template <int D> __device__ Fragment right_by_column(const Tile<D>& t, int row, int column) {
  const int matrix = lane() / 8;
  return read_transposed(t.at(row + matrix % 2 * 8 + lane() % 8, column / 8 + matrix / 2));
}

template <class S> __device__ inline uint32_t packed(float low, float high) {
  uint32_t bits;
  if constexpr (std::is_same_v<S, bfloat16>) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// sums (16 x 8) += a (16 x 16) times b (16 x 8).
template <class S> __device__ inline void multiply(float (&sums)[4], const Fragment& a, uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<S, bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

// 16 rows of a tile as left operands: kept in registers where they are used again and again and there is room.
template <int D, bool Held> struct LeftRows {
  Tile<D> tile;
  int row;
  Fragment held[Held ? D / 16 : 1];
  LeftRows() = default;
  __device__ LeftRows(const Tile<D>& t, int first) : tile(t), row(first) {}
  __device__ void load() {
    if constexpr (Held) unroll<D / 16>([&](int k) { held[k] = left(tile, row, 16 * k); });
  }
  __device__ Fragment operator[](int k) const {
    if constexpr (Held) return held[k];
    else return left(tile, row, 16 * k);
  }
};

// sums (16 x N) = rows times the N rows of `b`, transposed; for R lots of rows at once.
template <class S, int N, int R, int D, bool Held>
__device__ void product_of_rows(float (&sums)[R][N / 8][4], LeftRows<D, Held> (&a)[R], const Tile<D>& b) {
  unroll<R>([&](int r) { unroll<N / 8>([&](int j) { unroll<4>([&](int e) { sums[r][j][e] = 0; }); }); });
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    Fragment x[R];
    unroll<R>([&](int r) { x[r] = a[r][k]; });
    unroll<N / 16>([&](int j) {
      const Fragment y = right_by_row(b, 16 * j, 16 * k);
      unroll<R>([&](int r) {
        multiply<S>(sums[r][2 * j], x[r], y.r[0], y.r[1]);
        multiply<S>(sums[r][2 * j + 1], x[r], y.r[2], y.r[3]);
      });
    });
  }
}

// sums (16 x D) += weights (16 x N, as a product left them) times the N rows of `b`; for R lots of rows at once.
template <class S, int D, int N, int R>
__device__ void add_product(float (&sums)[R][D / 8][4], const float (&weights)[R][N / 8][4], const Tile<D>& b) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    Fragment x[R];
    unroll<R>([&](int r) {
      const auto &low = weights[r][2 * k], &high = weights[r][2 * k + 1];
      x[r] = {{packed<S>(low[0], low[1]), packed<S>(low[2], low[3]), packed<S>(high[0], high[1]),
               packed<S>(high[2], high[3])}};
    });
    unroll<D / 16>([&](int j) {
      const Fragment y = right_by_column(b, 16 * k, 16 * j);
      unroll<R>([&](int r) {
        multiply<S>(sums[r][2 * j], x[r], y.r[0], y.r[1]);
        multiply<S>(sums[r][2 * j + 1], x[r], y.r[2], y.r[3]);
      });
    });
  }
}

// Element e of tile j of a product lies in row `row_of(e)` and column `column_of(j, e)`.
__device__ inline int row_of(int e) { return lane() / 4 + e / 2 * 8; }
__device__ inline int column_of(int j, int e) { return j * 8 + lane() % 4 * 2 + e % 2; }

}  // namespace volta::cuda::tiles

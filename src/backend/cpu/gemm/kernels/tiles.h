// Products of packed matrices on the register tiles of the GEMM: what the fused loops multiply with, inside one thread.
#pragma once
#include "backend/cpu/gemm/kernels/pack.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// Results are whole tiles: memory for C has rows and columns rounded up to these.
template <class T> constexpr int64_t strip = sizes<T>.rows(sizes<T>.vectors);
template <class T> constexpr int64_t whole_rows(int64_t n) { return (n + strip<T> - 1) / strip<T> * strip<T>; }
template <class T> constexpr int64_t whole_columns(int64_t n) { return (n + lanes<T> - 1) / lanes<T> * lanes<T>; }

template <class S> struct Strided {
  const S* data;
  int64_t row, column;
};

// A, by strips of rows that lie `next` apart. Where the kernel reads lanes, rows are contiguous (step 1).
template <class T> struct Left {
  const T* data;
  int64_t next, step, depth_step;
};
// B, by tiles of columns: packed one after the other, or in place.
template <class T> struct Right {
  const T* data;
  bool packed;
  int64_t next;  // from a column to the next: k where packed, 1 in place
  int64_t step;  // in place, from a depth to the next; of any value, 0 where all depths are one row

  View<T> panel(int64_t at, int64_t width) const { return {data + at * next, 1, packed ? width : step}; }
};
template <class T> Right<T> right_packed(const T* data, int64_t k) { return {data, true, k, 0}; }
template <class T> Right<T> right_in_place(const T* data, int64_t step) { return {data, false, 1, step}; }

// Tiles of nearly equal width: calls f(first column, width).
template <class T, class F> [[gnu::always_inline]] inline void each_tile(int64_t n, F f) {
  const int64_t vectors = ceil_div(n, lanes<T>), tiles = ceil_div(vectors, sizes<T>.vectors);
  for (int64_t t = 0, at = 0, width; t < tiles; ++t, at += width) {
    width = (vectors / tiles + (t < vectors % tiles)) * lanes<T>;
    f(at, width);
  }
}

// `rows` x k of x, in whole_rows(rows) * k numbers.
template <class S, class T = Compute<S>> Left<T> pack_left(T* to, const Strided<S>& x, int64_t rows, int64_t k) {
  for (int64_t i = 0; i < rows; i += strip<T>)
    pack(PackCall<S>{to + i * k, strip<T>, smaller(strip<T>, rows - i), k, x.data + i * x.row, x.row, x.column});
  return {to, strip<T> * k, 1, strip<T>};
}
// Rows of x that are columns in memory: whole_rows(rows) of them can be read.
template <class T> Left<T> left_in_place(const T* data, int64_t depth_step) { return {data, strip<T>, 1, depth_step}; }

// k x `columns` of x, in k * whole_columns(columns) numbers.
template <class S, class T = Compute<S>> Right<T> pack_right(T* to, const Strided<S>& x, int64_t k, int64_t columns) {
  each_tile<T>(columns, [&](int64_t at, int64_t width) {
    pack(PackCall<S>{to + at * k, width, smaller(width, columns - at), k, x.data + at * x.column, x.column, x.row});
  });
  return right_packed(to, k);
}
// The same, in place if it can be read so.
template <class S, class T = Compute<S>> Right<T> right_of(T* room, const Strided<S>& x, int64_t k, int64_t columns) {
  if constexpr (std::is_same_v<S, T>)
    if (x.column == 1 && columns % lanes<T> == 0) return right_in_place(x.data, x.row);
  return pack_right(room, x, k, columns);
}

template <bool uncached, class T, int vectors = 1>
[[gnu::always_inline]] inline void run_tile(int64_t width, const TileCall<T>& t) {
  if constexpr (vectors <= sizes<T>.vectors) {
    if (width == vectors * lanes<T>) return tile_kernel<T, int(strip<T>), vectors, T, uncached>(t);
    run_tile<uncached, T, vectors + 1>(width, t);
  }
}

// C[m x n] (+)= A B in whole tiles. B is `uncached` if the first cache does not hold a panel of it.
template <class T, bool uncached = false>
void multiply(int64_t m, int64_t n, int64_t k, const Left<T>& a, const Right<T>& b, T* c, int64_t c_step, bool add) {
  each_tile<T>(n, [&](int64_t at, int64_t width) {
    const View<T> panel = b.panel(at, width);
    for (int64_t i = 0; i < m; i += strip<T>) {
      const View<T> rows = {a.data + i / strip<T> * a.next, a.step, a.depth_step};
      run_tile<uncached, T>(width, {k, rows, panel, c + i * c_step + at, c_step, width, add});
    }
  });
}

// Carves arrays out of one piece of memory, each from a new cache line on.
class Room {
 public:
  explicit Room(void* memory) : at_(static_cast<char*>(memory)) {}
  template <class T> T* take(int64_t count) {
    char* here = at_;
    at_ += bytes<T>(count);
    return reinterpret_cast<T*>(here);
  }
  template <class T> static constexpr int64_t bytes(int64_t count) {
    return (count * int64_t(sizeof(T)) + 63) / 64 * 64;
  }

 private:
  char* at_;
};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

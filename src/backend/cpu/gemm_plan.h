// How a matrix product is cut into parts: by its shape and the tile sizes alone, never by the number of threads.
#pragma once
#include <algorithm>
#include <cstdint>

#include "backend/cpu/gemm_table.h"

namespace volta::cpu {

struct Range {
  int64_t begin, size;
};

// Part `index` of `total` cut into `parts` at multiples of `unit`; parts may be empty.
inline Range cut(int64_t total, int64_t unit, int64_t parts, int64_t index) {
  const int64_t units = (total + unit - 1) / unit;
  const int64_t begin = std::min(total, units * index / parts * unit);
  return {begin, std::min(total, units * (index + 1) / parts * unit) - begin};
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Shape3 {
  int64_t m, n, k;
  double work() const { return double(m) * double(n) * double(k); }  // multiply-adds
};

// A rectangle of C.
struct Rectangle {
  Range rows, columns;
  bool empty() const { return rows.size <= 0 || columns.size <= 0; }
};

// C as rows x columns parts of nearly equal size, both powers of two so that few threads share them evenly.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t parts() const { return rows * columns; }
  Rectangle part(const Shape3& s, const GemmTile& tile, int64_t index) const;
};

inline constexpr double serial_work = 1 << 17;  // below, a second thread does not pay
inline constexpr double shared_work = 1 << 21;  // from here on, operands are packed once for all parts

Grid plan_grid(const Shape3& s, const GemmTile& tile);

// Into how many segments k is cut when C alone is too small to occupy several threads.
int64_t plan_segments(const Shape3& s, const Grid& grid);

// The same two decisions for products with at most thin_rows rows.
struct ThinPlan {
  int64_t chunk;  // columns of one part
  int64_t segments;
};
ThinPlan plan_thin(const Shape3& s, bool rows_contiguous);

}  // namespace volta::cpu

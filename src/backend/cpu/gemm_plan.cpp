// Grids, segments and chunks of matrix products.
#include "backend/cpu/gemm_plan.h"

#include <bit>

namespace volta::cpu {
namespace {

constexpr double part_work = 1 << 18, large_work = 1 << 28, thin_part_work = 1 << 14;
constexpr int64_t medium_parts = 16, large_parts = 64, least_extent = 32, segment_depth = 256, thin_parts = 32;

// How many parts the work is worth.
int64_t wanted_parts(double work) {
  if (work < serial_work) return 1;
  if (work >= large_work) return large_parts;
  return int64_t(std::bit_floor(uint64_t(std::clamp(work / part_work, 2.0, double(medium_parts)))));
}

int64_t power_of_two_from(int64_t n) { return int64_t(std::bit_ceil(uint64_t(n))); }
int64_t power_of_two_upto(int64_t n) { return int64_t(std::bit_floor(uint64_t(n))); }

// The largest part's multiply-adds per unit of k, whole tiles counted, and a share of what packing its panels costs.
double cost(const Shape3& s, const GemmTile& tile, const Grid& g) {
  const double rows = double(ceil_div(ceil_div(s.m, tile.rows), g.rows) * tile.rows);
  const double columns = double(ceil_div(ceil_div(s.n, tile.columns), g.columns) * tile.columns);
  return rows * columns + 4 * (rows + columns);
}

}  // namespace

Rectangle Grid::part(const Shape3& s, const GemmTile& tile, int64_t index) const {
  const int64_t row_unit = s.m >= tile.rows * rows ? tile.rows : 1;
  const int64_t column_unit = s.n >= tile.columns * columns ? tile.columns : tile.lanes;
  return {cut(s.m, row_unit, rows, index % rows), cut(s.n, column_unit, columns, index / rows)};
}

Grid plan_grid(const Shape3& s, const GemmTile& tile) {
  const int64_t most_rows = power_of_two_upto(std::max<int64_t>(1, s.m / least_extent));
  const int64_t most_columns = power_of_two_upto(std::max<int64_t>(1, s.n / least_extent));
  const int64_t wanted = std::min(wanted_parts(s.work()), most_rows * most_columns);
  Grid best;
  double least = -1;
  for (int64_t rows = 1; rows <= wanted; rows *= 2) {
    const Grid grid = {rows, wanted / rows};
    if (grid.rows > most_rows || grid.columns > most_columns) continue;
    const double c = cost(s, tile, grid);
    if (least < 0 || c < least) {
      least = c;
      best = grid;
    }
  }
  best.rows = std::max(best.rows, power_of_two_from(ceil_div(s.m, tile.block_m)));
  best.columns = std::max(best.columns, power_of_two_from(ceil_div(s.n, tile.block_n)));
  return best;
}

int64_t plan_segments(const Shape3& s, const Grid& grid) {
  const int64_t wanted = wanted_parts(s.work());
  if (grid.parts() > 4 || wanted < 2 * grid.parts() || s.k < 4 * segment_depth) return 1;
  return std::min(std::min(wanted, medium_parts) / grid.parts(), s.k / segment_depth);
}

ThinPlan plan_thin(const Shape3& s, bool rows_contiguous) {
  const double size = double(s.n) * double(s.k);
  const int64_t wanted = std::clamp(int64_t(size / thin_part_work), int64_t(1), thin_parts);
  const int64_t least_chunk = rows_contiguous ? std::min<int64_t>(s.n, 2048) : 4;
  const int64_t chunk = std::max(least_chunk, ceil_div(ceil_div(s.n, wanted), 4) * 4);
  const int64_t chunks = ceil_div(s.n, chunk);
  const int64_t segments = chunks > 4 ? 1 : std::min(std::min(wanted, medium_parts) / chunks, s.k / segment_depth);
  return {chunk, std::max<int64_t>(1, segments)};
}

}  // namespace volta::cpu

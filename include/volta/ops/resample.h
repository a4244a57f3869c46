// Changing the resolution: interpolation, sampling at given places, and windows as columns.
#pragma once
#include <volta/per_axis.h>
#include <volta/tensor.h>

namespace volta {

enum class InterpolateMode { nearest, nearest_exact, linear, bilinear, trilinear, bicubic, area };
constexpr std::array<std::string_view, 7> choice_names(InterpolateMode) {
  return {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"};
}
struct InterpolateOptions {
  PerAxis size = {};          // of the axes after the channels; or
  Numbers scale_factor = {};  // one for all of them, or one for each
  Choice<InterpolateMode> mode = InterpolateMode::nearest;
  bool align_corners = false;           // the outermost elements keep their place, instead of the outer edges
  bool recompute_scale_factor = false;  // the scale is that of the sizes, not the one given
  bool antialias = false;               // bilinear and bicubic: shrinking averages over all inputs
};
// [n, c, ...] with another resolution: interpolate(x, {.scale_factor = 2, .mode = "bilinear"}).
[[nodiscard]] Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

enum class GridSampleMode { bilinear, nearest, bicubic };
constexpr std::array<std::string_view, 3> choice_names(GridSampleMode) { return {"bilinear", "nearest", "bicubic"}; }
enum class GridPadding { zeros, border, reflection };
constexpr std::array<std::string_view, 3> choice_names(GridPadding) { return {"zeros", "border", "reflection"}; }
struct GridSampleOptions {
  Choice<GridSampleMode> mode = GridSampleMode::bilinear;  // bilinear and nearest of 5 axes too
  Choice<GridPadding> padding_mode = GridPadding::zeros;
  bool align_corners = false;
};
// x [n, c, h, w] at the places of grid [n, y, x, 2], or [n, c, d, h, w] at [n, z, y, x, 3]; a place is (x, y[, z]), -1 and
// 1 being the ends of an axis: grid_sample(x, affine_grid(theta, x.shape())).
[[nodiscard]] Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
// The places of an output of shape [n, c, h, w] under theta [n, 2, 3], or [n, c, d, h, w] under [n, 3, 4].
[[nodiscard]] Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

struct ColumnOptions {
  PerAxis dilation = 1, padding = 0, stride = 1;
};
// The windows of [n, c, h, w] (or [c, h, w]) as columns [n, c * window, places]: im2col(x, {3, 3}, {.padding = 1}).
[[nodiscard]] Tensor im2col(const Tensor& x, const PerAxis& kernel_size, const ColumnOptions& options = {});
// The transpose: columns added up where their windows overlap: col2im(columns, {8, 8}, 3).
[[nodiscard]] Tensor col2im(const Tensor& columns, const PerAxis& output_size, const PerAxis& kernel_size,
                            const ColumnOptions& options = {});

}  // namespace volta

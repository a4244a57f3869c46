// Options of changing the resolution: interpolation, sampling at given places, and windows as columns.
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

enum class GridSampleMode { bilinear, nearest, bicubic };
constexpr std::array<std::string_view, 3> choice_names(GridSampleMode) { return {"bilinear", "nearest", "bicubic"}; }
enum class GridPadding { zeros, border, reflection };
constexpr std::array<std::string_view, 3> choice_names(GridPadding) { return {"zeros", "border", "reflection"}; }
struct GridSampleOptions {
  Choice<GridSampleMode> mode = GridSampleMode::bilinear;  // bilinear and nearest of 5 axes too
  Choice<GridPadding> padding_mode = GridPadding::zeros;
  bool align_corners = false;
};

struct ColumnOptions {
  PerAxis dilation = 1, padding = 0, stride = 1;
};

}  // namespace volta

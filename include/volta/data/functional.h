// Functions on images, of torchvision's names and values: what the transforms do once their random numbers are drawn.
#pragma once
#include <array>
#include <vector>

#include <volta/choice.h>
#include <volta/per_axis.h>
#include <volta/tensor.h>

namespace volta::data {

enum class Interpolation { nearest, bilinear, bicubic };
constexpr std::array<std::string_view, 3> choice_names(Interpolation) { return {"nearest", "bilinear", "bicubic"}; }

// A rectangle of an image, in pixels.
struct Region {
  int64_t top = 0, left = 0, height = 0, width = 0;
};
struct ResizeOptions {
  Choice<Interpolation> interpolation = Interpolation::bilinear;
  std::optional<int64_t> max_size = {};  // of the longer side, where `size` is the shorter
  bool antialias = true;                 // shrinking averages over all pixels
};
// What lies outside an image, by torchvision's names and by those of `pad`: edge is replicate, and symmetric a reflection
// that repeats the edge.
enum class ImagePadMode { constant, reflect, replicate, circular, edge, symmetric };
constexpr std::array<std::string_view, 6> choice_names(ImagePadMode) {
  return {"constant", "reflect", "replicate", "circular", "edge", "symmetric"};
}
struct ImagePadOptions {
  double fill = 0;
  Choice<ImagePadMode> padding_mode = ImagePadMode::constant;
};
struct RotateOptions {
  Choice<Interpolation> interpolation = Interpolation::nearest;
  bool expand = false;                               // the output holds the whole turned image
  std::optional<std::array<double, 2>> center = {};  // x and y in pixels; the middle unless given
  // For what comes from outside: one number, or one per channel. Bilinear edges are blended with it; without one, as
  // functions have it and transforms have not, zeros are taken in.
  Numbers fill = {};
};
struct AffineOptions {
  double angle = 0;  // degrees, clockwise
  std::array<double, 2> translate = {0, 0};
  double scale = 1;
  std::array<double, 2> shear = {0, 0};  // degrees
  Choice<Interpolation> interpolation = Interpolation::nearest;
  Numbers fill = {};
  std::optional<std::array<double, 2>> center = {};
};

}  // namespace volta::data

// Images are […, channels, height, width], u8 from 0 to 255 or floating from 0 to 1.
namespace volta::data::functional {

[[nodiscard]] Tensor to_tensor(const Tensor& x);  // u8 [h, w, c] to f32 [c, h, w] from 0 to 1
[[nodiscard]] Tensor convert_image_dtype(const Tensor& x, DType dtype = f32);  // scales between 255 and 1
[[nodiscard]] Tensor normalize(const Tensor& x, const std::vector<double>& mean, const std::vector<double>& std);

// resize(x, {224, 224}); with one number that is the shorter side, and the longer one follows.
[[nodiscard]] Tensor resize(const Tensor& x, const PerAxis& size, const ResizeOptions& options = {});
[[nodiscard]] Tensor crop(const Tensor& x, Int top, Int left, Int height, Int width);  // zeros outside the image
[[nodiscard]] inline Tensor crop(const Tensor& x, const Region& r) { return crop(x, r.top, r.left, r.height, r.width); }
[[nodiscard]] Tensor center_crop(const Tensor& x, const PerAxis& size);
[[nodiscard]] Tensor resized_crop(const Tensor& x, Int top, Int left, Int height, Int width, const PerAxis& size,
                                  const ResizeOptions& options = {});
// One number for all sides, {left and right, top and bottom}, or {left, top, right, bottom}.
[[nodiscard]] Tensor pad(const Tensor& x, const PerAxis& padding, const ImagePadOptions& options = {});
[[nodiscard]] Tensor hflip(const Tensor& x);  // a view
[[nodiscard]] Tensor vflip(const Tensor& x);
[[nodiscard]] Tensor rotate(const Tensor& x, double angle, const RotateOptions& options = {});  // counter-clockwise
[[nodiscard]] Tensor affine(const Tensor& x, const AffineOptions& options);

[[nodiscard]] Tensor adjust_brightness(const Tensor& x, double factor);
[[nodiscard]] Tensor adjust_contrast(const Tensor& x, double factor);
[[nodiscard]] Tensor adjust_saturation(const Tensor& x, double factor);
[[nodiscard]] Tensor adjust_hue(const Tensor& x, double factor);  // from -0.5 to 0.5, parts of a turn
[[nodiscard]] Tensor rgb_to_grayscale(const Tensor& x, int num_output_channels = 1);
[[nodiscard]] Tensor gaussian_blur(const Tensor& x, const PerAxis& kernel_size, const Numbers& sigma = {});
[[nodiscard]] Tensor erase(const Tensor& x, Int top, Int left, Int height, Int width, const Tensor& value);

}  // namespace volta::data::functional

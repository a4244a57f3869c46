// Transforms of images, composed as in torchvision; random ones draw from the generator of the loader's item.
#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <volta/data/functional.h>
#include <volta/random.h>
#include <volta/tensor.h>

namespace volta::data {

// A function of a tensor, with or without a generator: Transform([](const Tensor& x) { return x / 255; }).
class Transform {
 public:
  template <class F>
  requires(!std::same_as<F, Transform> && std::is_invocable_r_v<Tensor, const F&, const Tensor&, Generator&>)
      Transform(F f)
      : f_(checked(Function(std::move(f)))) {}
  template <class F>
  requires(!std::same_as<F, Transform> && std::is_invocable_r_v<Tensor, const F&, const Tensor&> &&
           !std::is_invocable_v<const F&, const Tensor&, Generator&>) Transform(F f)
      : f_(checked(Plain(std::move(f)))) {}

  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const Tensor& x, Generator& generator) const;

  // What a transform does that begins by cutting a rectangle out: it chooses the rectangle by the image's size, and goes
  // on with that. Sets of files ask for it to decode no more than the rectangle.
  struct Cut {
    const char* name;  // for errors
    std::function<Region(int64_t height, int64_t width, Generator&)> region;
    std::function<Tensor(const Tensor&, Generator&)> then;
  };
  explicit Transform(Cut cut);
  const Cut* cut() const { return cut_.get(); }

 private:
  using Plain = std::function<Tensor(const Tensor&)>;
  using Function = std::function<Tensor(const Tensor&, Generator&)>;
  static Function checked(Plain f);  // an Error where the function is empty
  static Function checked(Function f);
  Function f_;
  std::shared_ptr<const Cut> cut_;  // null where it begins otherwise
};

// One after the other: compose(random_crop(28, {.padding = 2}), random_horizontal_flip(), normalize({0.5}, {0.5})).
[[nodiscard]] Transform compose(std::vector<Transform> transforms);
template <std::convertible_to<Transform>... T> [[nodiscard]] Transform compose(T... transforms) {
  return compose(std::vector<Transform>{Transform(std::move(transforms))...});
}
template <class F> [[nodiscard]] Transform lambda(F f) { return Transform(std::move(f)); }
[[nodiscard]] Transform random_apply(Transform transform, double p = 0.5);

[[nodiscard]] Transform to_tensor();
[[nodiscard]] Transform convert_image_dtype(DType dtype = f32);
[[nodiscard]] Transform normalize(std::vector<double> mean, std::vector<double> std);
[[nodiscard]] Transform one_hot(int64_t num_classes);

[[nodiscard]] Transform resize(const PerAxis& size, const ResizeOptions& options = {});
[[nodiscard]] Transform center_crop(const PerAxis& size);
[[nodiscard]] Transform pad(const PerAxis& padding, const ImagePadOptions& options = {});
struct RandomCropOptions {
  PerAxis padding = 0;
  bool pad_if_needed = false;
  double fill = 0;
  Choice<ImagePadMode> padding_mode = ImagePadMode::constant;
};
[[nodiscard]] Transform random_crop(const PerAxis& size, const RandomCropOptions& options = {});
struct Range {
  double first = 0, second = 0;
};
struct RandomResizedCropOptions {
  Range scale = {0.08, 1}, ratio = {3. / 4, 4. / 3};  // of the area; of width to height
  Choice<Interpolation> interpolation = Interpolation::bilinear;
  bool antialias = true;
};
[[nodiscard]] Transform random_resized_crop(const PerAxis& size, const RandomResizedCropOptions& options = {});
[[nodiscard]] Transform random_horizontal_flip(double p = 0.5);
[[nodiscard]] Transform random_vertical_flip(double p = 0.5);

// A number a stands for the range from -a to a.
class Degrees {
 public:
  Degrees(double most) : range_{-most, most} {}
  Degrees(double low, double high) : range_{low, high} {}
  Range range() const { return range_; }

 private:
  Range range_;
};
[[nodiscard]] Transform random_rotation(Degrees degrees, const RotateOptions& options = {});
struct RandomAffineOptions {
  std::optional<std::array<double, 2>> translate = {};  // at most these shares of the width and the height
  std::optional<Range> scale = {};
  std::optional<Range> shear = {};  // degrees, along x
  Choice<Interpolation> interpolation = Interpolation::nearest;
  Numbers fill = 0;
  std::optional<std::array<double, 2>> center = {};
};
[[nodiscard]] Transform random_affine(Degrees degrees, const RandomAffineOptions& options = {});

// A number a stands for factors from max(0, 1 - a) to 1 + a; of the hue, from -a to a.
struct ColorJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
[[nodiscard]] Transform color_jitter(const ColorJitterOptions& options);
[[nodiscard]] Transform grayscale(int num_output_channels = 1);
[[nodiscard]] Transform random_grayscale(double p = 0.1);
[[nodiscard]] Transform gaussian_blur(const PerAxis& kernel_size, Range sigma = {0.1, 2});

struct RandomErasingOptions {
  double p = 0.5;
  Range scale = {0.02, 0.33}, ratio = {0.3, 3.3};
  Numbers value = 0;    // one or one per channel
  bool random = false;  // standard normal noise in place of the value
};
[[nodiscard]] Transform random_erasing(const RandomErasingOptions& options = {});
struct CutoutOptions {
  int64_t holes = 1;
  double fill = 0;
};
[[nodiscard]] Transform cutout(const PerAxis& size,
                               const CutoutOptions& options = {});  // squares about random places, cut at the edge

// Changes a batch and its labels: [n] of classes, which become shares [n, num_classes], or shares already.
class BatchTransform {
 public:
  using Batch = std::tuple<Tensor, Tensor>;
  explicit BatchTransform(std::function<Batch(const Tensor&, const Tensor&, Generator&)> f);
  Batch operator()(const Tensor& x, const Tensor& y) const;
  Batch operator()(const Tensor& x, const Tensor& y, Generator& g) const;

 private:
  std::function<Batch(const Tensor&, const Tensor&, Generator&)> f_;
};
struct MixOptions {
  double alpha = 1;
  int64_t num_classes = 0;
};
// DataLoader loader(set, {.batch_size = 64}, on_batch(mixup({.alpha = 0.2, .num_classes = 10})));
[[nodiscard]] BatchTransform mixup(const MixOptions& options);   // each image blended with the one before it
[[nodiscard]] BatchTransform cutmix(const MixOptions& options);  // a rectangle of the one before it

}  // namespace volta::data

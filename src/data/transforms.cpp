// The transforms: their random numbers, and the functions on images that they call with them.
#include <volta/data/transforms.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "data/draw.h"
#include "data/image_check.h"

namespace volta::data {
namespace {

void require_chance(double p, const char* op) {
  require(p >= 0 && p <= 1, ErrorKind::argument, op, "p must be from 0 to 1, got ", std::to_string(p));
}
void require_range(const Range& r, double least, double most, const char* op, const char* what) {
  require(r.first >= least && r.first <= r.second && r.second <= most, ErrorKind::argument, op, what, " from ",
          std::to_string(r.first), " to ", std::to_string(r.second), " is no range within ", std::to_string(least),
          " and ", std::to_string(most));
}
constexpr double far = 1e6;

// A box of a random share of the area and of a random aspect, where ten tries find one that fits: a crop, or as in
// torchvision something smaller than the image, of the inverse aspect.
std::optional<Region> random_box(Generator& g, int64_t h, int64_t w, const Range& scale, const Range& ratio,
                                 bool crop) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = double(h) * double(w) * uniform_from(g, scale.first, scale.second);
    const double aspect = std::exp(uniform_from(g, std::log(ratio.first), std::log(ratio.second)));
    const int64_t a = int64_t(std::nearbyint(std::sqrt(area * aspect))),
                  b = int64_t(std::nearbyint(std::sqrt(area / aspect)));
    const int64_t height = crop ? b : a, width = crop ? a : b;
    const int64_t most_h = crop ? h : h - 1, most_w = crop ? w : w - 1;
    if (height < 1 || width < 1 || height > most_h || width > most_w) continue;
    return Region{integer_from(g, 0, h - height), integer_from(g, 0, w - width), height, width};
  }
  return std::nullopt;
}

Region central_box(int64_t h, int64_t w, const Range& ratio) {
  const double aspect = double(w) / double(h);
  int64_t height = h, width = w;
  if (aspect < ratio.first) height = std::clamp<int64_t>(int64_t(std::nearbyint(double(w) / ratio.first)), 1, h);
  if (aspect > ratio.second) width = std::clamp<int64_t>(int64_t(std::nearbyint(double(h) * ratio.second)), 1, w);
  return {(h - height) / 2, (w - width) / 2, height, width};
}

void require_pixels(const Tensor& x, const char* op) {
  image(x, op);
  require(x.size(-1) > 0 && x.size(-2) > 0, ErrorKind::shape, op, "an image of shape ", x, " has no pixels");
}

}  // namespace

Transform::Function Transform::checked(Function f) {
  require_function(f, "Transform");
  return f;
}
Transform::Function Transform::checked(Plain f) {
  require_function(f, "Transform");
  return [f = std::move(f)](const Tensor& x, Generator&) { return f(x); };
}

Tensor Transform::operator()(const Tensor& x) const { return (*this)(x, default_generator()); }
Tensor Transform::operator()(const Tensor& x, Generator& generator) const {
  require_function(f_, "Transform");  // none in one that was moved from
  return f_(x, generator);
}

Transform::Transform(Cut cut) : cut_(std::make_shared<const Cut>(std::move(cut))) {
  require_function(cut_->region, cut_->name);
  require_function(cut_->then, cut_->name);
  f_ = [cut = cut_](const Tensor& x, Generator& g) {
    require_pixels(x, cut->name);
    return cut->then(functional::crop(x, cut->region(x.size(-2), x.size(-1), g)), g);
  };
}

Transform compose(std::vector<Transform> transforms) {
  const Transform::Cut* first = transforms.empty() ? nullptr : transforms[0].cut();
  std::optional<Transform::Cut> cut;
  if (first) {
    cut = *first;
    transforms[0] = Transform(cut->then);
  }
  auto all = [list = std::move(transforms)](const Tensor& x, Generator& g) {
    Tensor y = x;
    for (const Transform& f : list) y = f(y, g);
    return y;
  };
  if (!cut) return Transform(std::move(all));
  cut->then = std::move(all);
  return Transform(std::move(*cut));
}

Transform random_apply(Transform transform, double p) {
  require_chance(p, "random_apply");
  return Transform([f = std::move(transform), p](const Tensor& x, Generator& g) { return chance(g, p) ? f(x, g) : x; });
}

Transform to_tensor() {
  return Transform([](const Tensor& x) { return functional::to_tensor(x); });
}
Transform convert_image_dtype(DType dtype) {
  return Transform([dtype](const Tensor& x) { return functional::convert_image_dtype(x, dtype); });
}
Transform normalize(std::vector<double> mean, std::vector<double> std) {
  require(!mean.empty() && !std.empty(), ErrorKind::argument, "normalize",
          "needs a mean and a deviation for each channel");
  for (const double s : std) require(s != 0, ErrorKind::argument, "normalize", "a deviation is 0");
  return Transform(
      [m = std::move(mean), s = std::move(std)](const Tensor& x) { return functional::normalize(x, m, s); });
}
Transform one_hot(int64_t num_classes) {
  require(num_classes > 0, ErrorKind::argument, "one_hot", "num_classes is ", num_classes);
  return Transform([num_classes](const Tensor& x) { return volta::one_hot(x.to(i64), num_classes); });
}

Transform resize(const PerAxis& size, const ResizeOptions& options) {
  return Transform([=](const Tensor& x) { return functional::resize(x, size, options); });
}
Transform center_crop(const PerAxis& size) {
  (void)height_width(size, "center_crop");
  return Transform([=](const Tensor& x) { return functional::center_crop(x, size); });
}
Transform pad(const PerAxis& padding, const ImagePadOptions& options) {
  return Transform([=](const Tensor& x) { return functional::pad(x, padding, options); });
}

Transform random_crop(const PerAxis& size, const RandomCropOptions& options) {
  constexpr const char* op = "random_crop";
  const Shape hw = height_width(size, op);
  const auto region = [=](int64_t h, int64_t w, Generator& g) {
    require(h >= hw[0] && w >= hw[1], ErrorKind::shape, op, "a crop of ", hw, " of an image of ", Shape{h, w},
            "; pad_if_needed makes room");
    const int64_t top = integer_from(g, 0, h - hw[0]);
    return Region{top, integer_from(g, 0, w - hw[1]), hw[0], hw[1]};
  };
  const Shape& around = options.padding.given();
  const bool padded = std::any_of(around.begin(), around.end(), [](int64_t n) { return n != 0; });
  if (!padded && !options.pad_if_needed)
    return Transform(Transform::Cut{op, region, [](const Tensor& x, Generator&) { return x; }});
  return Transform([=](const Tensor& given, Generator& g) {
    require_pixels(given, op);
    const ImagePadOptions how{options.fill, options.padding_mode};
    Tensor x = padded ? functional::pad(given, options.padding, how) : given;
    if (options.pad_if_needed) {
      const int64_t down = std::max<int64_t>(0, hw[0] - x.size(-2)), across = std::max<int64_t>(0, hw[1] - x.size(-1));
      if (down > 0 || across > 0) x = functional::pad(x, {across, down}, how);
    }
    return functional::crop(x, region(x.size(-2), x.size(-1), g));
  });
}

Transform random_resized_crop(const PerAxis& size, const RandomResizedCropOptions& options) {
  constexpr const char* op = "random_resized_crop";
  const Shape hw = height_width(size, op);
  require_range(options.scale, 0, 1, op, "scale");
  require_range(options.ratio, 1 / far, far, op, "ratio");
  const ResizeOptions how{.interpolation = options.interpolation, .antialias = options.antialias};
  return Transform(
      Transform::Cut{.name = op,
                     .region =
                         [scale = options.scale, ratio = options.ratio](int64_t h, int64_t w, Generator& g) {
                           const auto drawn = random_box(g, h, w, scale, ratio, true);
                           return drawn ? *drawn : central_box(h, w, ratio);
                         },
                     .then = [=](const Tensor& x, Generator&) { return functional::resize(x, hw, how); }});
}

Transform random_horizontal_flip(double p) {
  require_chance(p, "random_horizontal_flip");
  return Transform([p](const Tensor& x, Generator& g) { return chance(g, p) ? functional::hflip(x) : x; });
}
Transform random_vertical_flip(double p) {
  require_chance(p, "random_vertical_flip");
  return Transform([p](const Tensor& x, Generator& g) { return chance(g, p) ? functional::vflip(x) : x; });
}

Transform random_rotation(Degrees degrees, const RotateOptions& options) {
  require_range(degrees.range(), -far, far, "random_rotation", "degrees");
  RotateOptions how = options;
  if (how.fill.empty()) how.fill = 0;  // as in torchvision, whose functions alone do without
  return Transform([how, r = degrees.range()](const Tensor& x, Generator& g) {
    return functional::rotate(x, uniform_from(g, r.first, r.second), how);
  });
}

Transform random_affine(Degrees degrees, const RandomAffineOptions& options) {
  constexpr const char* op = "random_affine";
  require_range(degrees.range(), -far, far, op, "degrees");
  if (options.translate)
    for (const double t : *options.translate) require_range({0, t}, 0, 1, op, "translate");
  if (options.scale) require_range(*options.scale, 1 / far, far, op, "scale");
  if (options.shear) require_range(*options.shear, -far, far, op, "shear");
  return Transform([=, r = degrees.range()](const Tensor& x, Generator& g) {
    image(x, op, 3);
    AffineOptions a{.interpolation = options.interpolation, .fill = options.fill, .center = options.center};
    a.angle = uniform_from(g, r.first, r.second);
    if (options.translate)
      for (size_t i = 0; i < 2; ++i) {
        const double most = (*options.translate)[i] * double(x.size(i == 0 ? -1 : -2));
        a.translate[i] = std::nearbyint(uniform_from(g, -most, most));
      }
    if (options.scale) a.scale = uniform_from(g, options.scale->first, options.scale->second);
    if (options.shear) a.shear[0] = uniform_from(g, options.shear->first, options.shear->second);
    return functional::affine(x, a);
  });
}

Transform color_jitter(const ColorJitterOptions& o) {
  constexpr const char* op = "color_jitter";
  for (const double most : {o.brightness, o.contrast, o.saturation}) require_range({0, most}, 0, far, op, "a factor");
  require_range({0, o.hue}, 0, 0.5, op, "hue");
  return Transform([o](const Tensor& x, Generator& g) {
    int order[] = {0, 1, 2, 3};
    for (int i = 3; i > 0; --i) std::swap(order[i], order[integer_from(g, 0, i)]);
    const auto factor = [&g](double most) { return uniform_from(g, std::max(0.0, 1 - most), 1 + most); };
    Tensor y = x;
    for (const int which : order) {
      if (which == 0 && o.brightness > 0) y = functional::adjust_brightness(y, factor(o.brightness));
      if (which == 1 && o.contrast > 0) y = functional::adjust_contrast(y, factor(o.contrast));
      if (which == 2 && o.saturation > 0) y = functional::adjust_saturation(y, factor(o.saturation));
      if (which == 3 && o.hue > 0) y = functional::adjust_hue(y, uniform_from(g, -o.hue, o.hue));
    }
    return y;
  });
}

Transform grayscale(int num_output_channels) {
  return Transform([=](const Tensor& x) { return functional::rgb_to_grayscale(x, num_output_channels); });
}
Transform random_grayscale(double p) {
  require_chance(p, "random_grayscale");
  return Transform([p](const Tensor& x, Generator& g) {
    return chance(g, p) ? functional::rgb_to_grayscale(x, int(image(x, "random_grayscale", 3).size(-3))) : x;
  });
}
Transform gaussian_blur(const PerAxis& kernel_size, Range sigma) {
  require_range(sigma, 1e-12, far, "gaussian_blur", "sigma");
  return Transform([=](const Tensor& x, Generator& g) {
    return functional::gaussian_blur(x, kernel_size, uniform_from(g, sigma.first, sigma.second));
  });
}

Transform random_erasing(const RandomErasingOptions& o) {
  constexpr const char* op = "random_erasing";
  require_chance(o.p, op);
  require_range(o.scale, 0, 1, op, "scale");
  require_range(o.ratio, 1 / far, far, op, "ratio");
  return Transform([o](const Tensor& x, Generator& g) {
    image(x, op, 3);
    if (!chance(g, o.p) || x.numel() == 0) return x;
    const int64_t channels = x.size(-3);
    require(o.value.size() == 1 || int64_t(o.value.size()) == channels, ErrorKind::argument, op, o.value.size(),
            " values for ", channels, " channels");
    const auto b = random_box(g, x.size(-2), x.size(-1), o.scale, o.ratio, false);
    if (!b) return x;
    const Tensor value =
        o.random ? randn({channels, b->height, b->width}, {.device = Device(), .generator = &g})
                 : tensor(o.value.list(), {o.value.list().size()}, {.device = Device()}).reshape({-1, 1, 1});
    return functional::erase(x, b->top, b->left, b->height, b->width, value);
  });
}

Transform cutout(const PerAxis& size, const CutoutOptions& options) {
  constexpr const char* op = "cutout";
  const Shape hw = height_width(size, op);
  require(options.holes >= 0 && options.holes <= 1 << 20, ErrorKind::argument, op, "holes is ", options.holes);
  return Transform([=](const Tensor& x, Generator& g) {
    require_pixels(x, op);
    const int64_t h = image(x, op, 3).size(-2), w = x.size(-1);
    Tensor y = x;
    for (int64_t i = 0; i < options.holes; ++i) {
      const int64_t half_h = std::min(hw[0] / 2, h), half_w = std::min(hw[1] / 2, w);
      const int64_t cy = integer_from(g, 0, h - 1), cx = integer_from(g, 0, w - 1);
      const int64_t top = std::max<int64_t>(0, cy - half_h), left = std::max<int64_t>(0, cx - half_w);
      const int64_t bottom = std::min(h, cy - half_h + std::min(hw[0], 2 * h)),
                    right = std::min(w, cx - half_w + std::min(hw[1], 2 * w));
      y = functional::erase(y, top, left, bottom - top, right - left,
                            full({}, options.fill, {.dtype = f64, .device = Device()}));
    }
    return y;
  });
}

}  // namespace volta::data

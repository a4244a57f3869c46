// Where the pixels of an image go: crops, padding, flips, and affine maps.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <volta/data/functional.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "data/image_check.h"

namespace volta::data::functional {
namespace {

constexpr double degree = std::numbers::pi / 180;

// x' = a x + b y + c, y' = d x + e y + f, from places of the output to places of the input; the middle is the origin.
struct Map {
  double a, b, c, d, e, f;
};

void require_finite(const char* op, std::initializer_list<double> numbers) {
  for (const double x : numbers)
    require(std::isfinite(x) && std::abs(x) < 1e12, ErrorKind::argument, op, std::to_string(x),
            " is not a number to use");
}

// The inverse of: shear, turn and scale about the centre, then move.
Map inverse(double cx, double cy, const AffineOptions& o) {
  const double turn = o.angle * degree, sx = o.shear[0] * degree, sy = o.shear[1] * degree;
  const double a = std::cos(turn - sy) / std::cos(sy), b = -(a * std::tan(sx) + std::sin(turn));
  const double c = std::sin(turn - sy) / std::cos(sy), d = std::cos(turn) - c * std::tan(sx);
  const double x = cx + o.translate[0], y = cy + o.translate[1], s = o.scale;  // the determinant is s * s
  return {d / s, -b / s, cx - d / s * x + b / s * y, -c / s, a / s, cy + c / s * x - a / s * y};
}

// The sizes that hold all corners of a turned image. In f32: a corner that rounding in f64 puts beside a whole pixel lies
// on it there, as in torchvision.
Shape expanded(const Map& m, int64_t width, int64_t height) {
  const double w = double(width) / 2, h = double(height) / 2;
  const float fine = 1e-4f;
  float low[2] = {1e30f, 1e30f}, high[2] = {-1e30f, -1e30f};
  for (const double x : {-w, w})
    for (const double y : {-h, h}) {
      const float place[2] = {float(m.a * x + m.b * y + m.c + w), float(m.d * x + m.e * y + m.f + h)};
      for (int i = 0; i < 2; ++i) low[i] = std::min(low[i], place[i]), high[i] = std::max(high[i], place[i]);
    }
  const auto size = [&](int i) {
    return int64_t(std::ceil(std::trunc(high[i] / fine) * fine) - std::floor(std::trunc(low[i] / fine) * fine));
  };
  return {size(1), size(0)};
}

Tensor grid_of(const Map& m, const Shape& out, int64_t width, int64_t height) {
  std::vector<float> places;
  places.reserve(size_t((Checked(out[0]) * out[1] * 2).value("affine")));
  for (int64_t i = 0; i < out[0]; ++i)
    for (int64_t j = 0; j < out[1]; ++j) {
      const double x = double(j) - double(out[1] - 1) / 2, y = double(i) - double(out[0] - 1) / 2;
      places.push_back(float((m.a * x + m.b * y + m.c) / (double(width) / 2)));
      places.push_back(float((m.d * x + m.e * y + m.f) / (double(height) / 2)));
    }
  return tensor(places, {1, out[0], out[1], 2}, {.device = Device()});
}

Tensor sampled(const Tensor& x, const Map& m, const Shape& out, Interpolation how, const Numbers& fill,
               const char* op) {
  require(how != Interpolation::bicubic, ErrorKind::argument, op, "interpolation is nearest or bilinear");
  const int64_t channels = x.size(-3);
  require(fill.size() <= 1 || int64_t(fill.size()) == channels, ErrorKind::argument, op, fill.size(), " fills for ",
          channels, " channels");
  const DType dtype = x.dtype() == f64 ? f64 : f32;
  const Tensor flat = x.to(dtype).reshape({-1, channels, x.size(-2), x.size(-1)});
  const int64_t n = flat.size(0);
  const Tensor grid = grid_of(m, out, x.size(-1), x.size(-2)).to(x.device()).to(dtype).expand({n, out[0], out[1], 2});
  const GridSampleOptions options{.mode = how == Interpolation::nearest ? GridSampleMode::nearest
                                                                        : GridSampleMode::bilinear};
  Tensor y = grid_sample(flat, grid, options);
  const bool zeros_do =
      how == Interpolation::nearest && std::ranges::all_of(fill.list(), [](double v) { return v == 0; });
  if (!fill.empty() && !zeros_do) {
    const Tensor inside = grid_sample(ones({n, 1, x.size(-2), x.size(-1)}, {dtype, x.device()}), grid, options);
    const Tensor colour = tensor(fill.list()).to(x.device()).to(dtype).reshape({1, -1, 1, 1});
    y = how == Interpolation::nearest ? where(inside < 0.5, colour, y) : (y - colour) * inside + colour;
  }
  Shape shape = x.shape();
  shape[-2] = out[0];
  shape[-1] = out[1];
  return rounded_to(y.reshape(shape), x.dtype());
}

std::array<double, 2> middle(const std::optional<std::array<double, 2>>& center, const Tensor& x) {
  if (!center) return {0, 0};
  return {(*center)[0] - double(x.size(-1)) / 2, (*center)[1] - double(x.size(-2)) / 2};
}

// An axis with its own beginning and end before and behind it, backwards; below 0 it is cut.
Tensor mirrored(const Tensor& given, int axis, int64_t before, int64_t after) {
  const int64_t all = given.size(axis);
  require(before <= all && after <= all && before >= -all && after >= -all && before + after >= -all, ErrorKind::shape,
          "pad", "symmetric padding by ", before, " and ", after, " of an image of shape ", given);
  const Tensor x = given.slice(axis, std::max<int64_t>(0, -before), all - std::max<int64_t>(0, -after));
  const int64_t size = x.size(axis);
  require(before <= size && after <= size, ErrorKind::shape, "pad", "symmetric padding by ", before, " and ", after,
          " of an image of shape ", given);
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(x.slice(axis, 0, before).flip(axis));
  parts.push_back(x);
  if (after > 0) parts.push_back(x.slice(axis, size - after, size).flip(axis));
  return parts.size() == 1 ? x : cat(parts, axis);
}

}  // namespace

Tensor crop(const Tensor& x, Int top, Int left, Int height, Int width) {
  constexpr const char* op = "crop";
  image(x, op);
  require(height >= 0 && width >= 0, ErrorKind::argument, op, "sizes ", height, " and ", width);
  const int64_t h = x.size(-2), w = x.size(-1);
  const int64_t bottom = (Checked(int64_t(top)) + int64_t(height)).value(op);
  const int64_t right = (Checked(int64_t(left)) + int64_t(width)).value(op);
  const auto cut = [](int64_t a, int64_t size) { return std::clamp<int64_t>(a, 0, size); };
  const Tensor part = x.slice(-2, cut(top, h), cut(bottom, h)).slice(-1, cut(left, w), cut(right, w));
  if (part.size(-2) == height && part.size(-1) == width) return part;
  const auto before = [](int64_t begin, int64_t size) { return begin >= 0 ? 0 : begin <= -size ? size : -begin; };
  const int64_t before_h = before(top, height), before_w = before(left, width);
  return volta::pad(part, {before_w, width - before_w - part.size(-1), before_h, height - before_h - part.size(-2)});
}

Tensor center_crop(const Tensor& x, const PerAxis& size) {
  constexpr const char* op = "center_crop";
  image(x, op);
  const Shape hw = height_width(size, op);
  // Halves go to the even neighbour, as Python rounds.
  const auto begin = [](int64_t in, int64_t out) {
    return in < out ? -((out - in) / 2) : int64_t(std::nearbyint(double(in - out) / 2));
  };
  return crop(x, begin(x.size(-2), hw[0]), begin(x.size(-1), hw[1]), hw[0], hw[1]);
}

Tensor pad(const Tensor& x, const PerAxis& padding, const ImagePadOptions& options) {
  constexpr const char* op = "pad";
  image(x, op);
  const Shape& p = padding.given();
  require(p.size() == 1 || p.size() == 2 || p.size() == 4, ErrorKind::argument, op,
          "padding is 1, 2 or 4 numbers, got ", p);
  const Shape sides = p.size() == 4 ? p : Shape{p[0], p[p.size() - 1], p[0], p[p.size() - 1]};
  const ImagePadMode wanted = options.padding_mode.of(op, "padding_mode");
  if (wanted == ImagePadMode::symmetric) return mirrored(mirrored(x, -2, sides[1], sides[3]), -1, sides[0], sides[2]);
  const PadMode mode = wanted == ImagePadMode::constant   ? PadMode::constant
                       : wanted == ImagePadMode::reflect  ? PadMode::reflect
                       : wanted == ImagePadMode::circular ? PadMode::circular
                                                          : PadMode::replicate;
  return volta::pad(x, {sides[0], sides[2], sides[1], sides[3]}, {.mode = mode, .value = options.fill});
}

Tensor hflip(const Tensor& x) { return image(x, "hflip")[{ellipsis, slice({}, {}, -1)}]; }
Tensor vflip(const Tensor& x) { return image(x, "vflip")[{ellipsis, slice({}, {}, -1), slice()}]; }

Tensor rotate(const Tensor& x, double angle, const RotateOptions& options) {
  constexpr const char* op = "rotate";
  image(x, op, 3);
  require_finite(op, {angle});
  const Interpolation how = options.interpolation.of(op, "interpolation");
  if (x.numel() == 0) return x;
  const double turn = angle - 360 * std::floor(angle / 360);
  const bool square = options.expand || x.size(-1) == x.size(-2);
  if (!options.center && (turn == 0 || turn == 180 || (square && (turn == 90 || turn == 270))))
    return x.rot90(int64_t(turn) / 90, {-2, -1});
  const auto [cx, cy] = middle(options.center, x);
  require_finite(op, {cx, cy});
  const Map m = inverse(cx, cy, {.angle = -turn});
  const Shape out = options.expand ? expanded(m, x.size(-1), x.size(-2)) : Shape{x.size(-2), x.size(-1)};
  return sampled(x, m, out, how, options.fill, op);
}

Tensor affine(const Tensor& x, const AffineOptions& options) {
  constexpr const char* op = "affine";
  image(x, op, 3);
  const Interpolation how = options.interpolation.of(op, "interpolation");
  require_finite(op, {options.angle, options.translate[0], options.translate[1], options.shear[0], options.shear[1],
                      options.scale});
  require(options.scale > 0, ErrorKind::argument, op, "scale must be above 0, got ", std::to_string(options.scale));
  if (x.numel() == 0) return x;
  const auto [cx, cy] = middle(options.center, x);
  require_finite(op, {cx, cy});
  return sampled(x, inverse(cx, cy, options), {x.size(-2), x.size(-1)}, how, options.fill, op);
}

}  // namespace volta::data::functional

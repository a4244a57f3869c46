// Sampling at given places: for each axis the taps around every place with their weights, and sums over their products.
#include <algorithm>
#include <array>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>
#include <volta/plain.h>
#include "ops/check.h"
#include "ops/reduce.h"

namespace volta {
namespace {

using Padding = GridPadding;
constexpr const char* op = "grid_sample";

struct Tap {
  Tensor index;  // i64, within the axis
  Tensor weight;
  Tensor valid;  // false where the tap lies outside, which counts as 0
};

// Mirrored at the ends until it lies between them: at the outermost elements, or half an element further out.
Tensor reflected(const Tensor& place, int64_t n, bool align_corners) {
  const double low = align_corners ? 0 : -0.5, span = align_corners ? double(n - 1) : double(n);
  if (span == 0) return place * 0;
  const Tensor from = abs(place - low), turns = floor(from / span).detach(), rest = from - turns * span;
  return where(remainder(turns, 2) == 0, rest, span - rest) + low;
}
// As in PyTorch, a place at the outermost elements or beyond has no gradient.
Tensor inside(const Tensor& place, int64_t n, Padding padding, bool align_corners) {
  if (padding == Padding::zeros) return place;
  const Tensor p = padding == Padding::reflection ? reflected(place, n, align_corners) : place;
  const double last = double(n - 1);
  return where(logical_and(p > 0, p < last), p, clamp(p.detach(), 0, last));
}

// A tap at whole numbers (in floats), which may lie outside.
Tap tap_at(const Tensor& whole, const Tensor& weight, int64_t n) {
  const Tensor place = whole.detach();
  const Tensor index = clamp(where(place == place, place, -1), -1, double(n));  // NaN and far places are outside
  const Tensor valid = logical_and(index >= 0, index <= double(n - 1));
  return {clamp(index, 0, double(n - 1)).to(i64), weight, valid};
}

// Cubic convolution: the weights of the four neighbours of a place that lies t in [0, 1) behind the second.
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [=](const Tensor& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };       // |d| <= 1
  const auto far = [=](const Tensor& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };  // 1 < |d| < 2
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// The taps of one axis of n elements around places in [-1, 1].
std::vector<Tap> taps_around(const Tensor& coordinate, int64_t n, GridSampleMode mode, Padding padding,
                             bool align_corners) {
  const Tensor place =
      align_corners ? (coordinate + 1) * (double(n - 1) / 2) : ((coordinate + 1) * double(n) - 1) * 0.5;
  if (mode == GridSampleMode::bicubic) {  // each tap by itself is brought inside
    const Tensor left = floor(place).detach();
    const std::array<Tensor, 4> weights = cubic_weights(place - left);
    std::vector<Tap> taps;
    for (int k = 0; k < 4; ++k)
      taps.push_back(tap_at(inside(left + (k - 1), n, padding, align_corners), weights[size_t(k)], n));
    return taps;
  }
  const Tensor within = inside(place, n, padding, align_corners);
  if (mode == GridSampleMode::nearest) {  // a step: its derivative by the place is zero, not absent
    const Tensor never = full({}, false, {boolean, within.device()});
    return {tap_at(round(within), where(never, within, 1), n)};
  }
  const Tensor left = floor(within).detach(), share = within - left;
  return {tap_at(left, 1 - share, n), tap_at(left + 1, share, n)};
}

void check(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  require_floating(x, op);
  const DType dtype = grid.checked(op).dtype();
  require(dtype == x.dtype(), ErrorKind::dtype, op, "a grid of ", dtype, " for an input of ", x.dtype());
  common_device(x, grid, op);
  const int axes = int(x.dim()) - 2;
  require((axes == 2 || axes == 3) && grid.dim() == x.dim() && grid.size(-1) == axes && grid.size(0) == x.size(0),
          ErrorKind::shape, op, "needs [n, c, h, w] and [n, y, x, 2], or one axis more, got ", x, " and ", grid);
  for (int i = 2; i < int(x.dim()); ++i)
    require(x.shape()[i] > 0, ErrorKind::shape, op, "an axis is empty in shape ", x);
  require(o.mode.of(op, "mode") != GridSampleMode::bicubic || axes == 2, ErrorKind::shape, op,
          "mode bicubic needs [n, c, h, w], got shape ", x);
}

}  // namespace

Tensor Plain::grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  check(x, grid, o);
  const Padding padding = o.padding_mode.of(op, "padding_mode");
  if (is_half(x.dtype())) return grid_sample(x.to(f32), grid.to(f32), o).to(x.dtype());
  const int axes = int(x.dim()) - 2;
  // Taps of the product of the axes so far, from the outermost on; indices are into the flattened axes.
  std::vector<Tap> taps{{}};
  for (int i = 0; i < axes; ++i) {
    const int64_t n = x.shape()[2 + i];
    const auto more = taps_around(grid.select(-1, axes - 1 - i).flatten(1), n, o.mode, padding, o.align_corners);
    std::vector<Tap> both;
    for (const Tap& a : taps)
      for (const Tap& b : more)
        both.push_back(i == 0 ? b : Tap{a.index * n + b.index, a.weight * b.weight, logical_and(a.valid, b.valid)});
    taps = std::move(both);
  }
  const Tensor planes = x.flatten(2);
  Tensor y;
  for (const Tap& t : taps) {
    const Tensor index = t.index.unsqueeze(1).expand({x.size(0), x.size(1), t.index.size(1)});
    const Tensor picked = where(t.valid.unsqueeze(1), planes.gather(2, index), 0) * t.weight.unsqueeze(1);
    y = y.defined() ? y + picked : picked;
  }
  Shape shape{x.size(0), x.size(1)};
  for (int i = 1; i <= axes; ++i) shape.push_back(grid.shape()[i]);
  return y.reshape(shape);
}

Tensor Plain::affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  const char* name = "affine_grid";
  require_floating(theta, name);
  const int axes = size.size() - 2;
  require((axes == 2 || axes == 3) && theta.shape() == Shape{size[0], axes, axes + 1}, ErrorKind::shape, name,
          "needs theta [n, 2, 3] for [n, c, h, w] or [n, 3, 4] for [n, c, d, h, w], got ", theta, " for ", size);
  Shape places{1};
  for (int i = 2; i < size.size(); ++i) {
    require(size[i] > 0, ErrorKind::argument, name, "sizes must be positive, got ", size);
    places.push_back(size[i]);
  }
  checked_numel(joined(joined({size[0]}, places), {axes + 1}), name);
  std::vector<Tensor> coordinates;  // x first
  for (int i = axes; i >= 1; --i) {
    const int64_t n = places[i];
    const double step = n > 1 ? 2.0 / double(align_corners ? n - 1 : n) : 0;
    const double first = n == 1 ? 0 : align_corners ? -1 : -1 + step / 2;
    Shape along = Shape::filled(axes + 1, 1);
    along[i] = n;
    const Tensor axis = arange(0, n, 1, {.dtype = f64, .device = theta.device()}) * step + first;
    coordinates.push_back(axis.to(theta.dtype()).reshape(along).expand(places));
  }
  coordinates.push_back(ones(places, {theta.dtype(), theta.device()}));
  const Tensor base = stack(coordinates, -1).reshape({1, -1, axes + 1});
  Shape shape{size[0]};
  for (int i = 1; i <= axes; ++i) shape.push_back(places[i]);
  shape.push_back(axes);
  return matmul(base, theta.transpose(1, 2)).reshape(shape);
}

}  // namespace volta

// Interpolation: the positions of the outputs among the inputs, axis by axis, as a table of taps.
#include <algorithm>
#include <array>
#include <cmath>

#include <volta/ops.h>
#include "ops/check.h"
#include "ops/cubic.h"
#include "ops/taps.h"

namespace volta {
namespace {

constexpr const char* op = "interpolate";

// One axis: its sizes, and how far apart the outputs lie among the inputs.
struct Scaling {
  int64_t in, out;
  double step;
  bool align_corners;
  double source(int64_t j) const { return align_corners ? step * double(j) : step * (double(j) + 0.5) - 0.5; }
};

Taps nearest_taps(const Scaling& s, double shift) {
  Taps t(s.in, s.out, 1, op);
  for (int64_t j = 0; j < s.out; ++j)  // in f32, as PyTorch places them for every dtype
    t.at(0, j) = std::min(int64_t(std::floor((float(j) + float(shift)) * float(s.step))), s.in - 1);
  t.weight.assign(size_t(s.out), 1);
  return t;
}

Taps linear_taps(const Scaling& s) {
  Taps t(s.in, s.out, 2, op);
  t.weight.resize(t.index.size());
  for (int64_t j = 0; j < s.out; ++j) {
    const double place = std::max(0.0, s.source(j));
    const int64_t left = std::min(int64_t(place), s.in - 1);
    const double share = std::clamp(place - double(left), 0.0, 1.0);
    t.at(0, j) = left, t.at(1, j) = std::min(left + 1, s.in - 1);
    t.weight[size_t(j)] = 1 - share, t.weight[size_t(s.out + j)] = share;
  }
  return t;
}

Taps cubic_taps(const Scaling& s) {
  Taps t(s.in, s.out, 4, op);
  t.weight.resize(t.index.size());
  for (int64_t j = 0; j < s.out; ++j) {
    const double place = s.source(j), left = std::floor(place);
    const std::array<double, 4> weights = cubic_weights(place - left);
    for (int64_t k = 0; k < 4; ++k) {
      t.at(k, j) = std::clamp<int64_t>(int64_t(left) - 1 + k, 0, s.in - 1);
      t.weight[size_t(k * s.out + j)] = weights[size_t(k)];
    }
  }
  return t;
}

// The filter is widened by the scale where the axis shrinks, so that every input counts; its taps are then normalised.
Taps antialias_taps(const Scaling& s, double reach, double (*filter)(double)) {
  const double scale = std::max(1.0, s.step), support = reach * scale;
  const auto first = [&](int64_t j) {
    return int64_t(std::clamp(s.step * (double(j) + 0.5) - support + 0.5, 0.0, double(s.in)));
  };
  const auto last = [&](int64_t j) {
    return int64_t(std::min(double(s.in), s.step * (double(j) + 0.5) + support + 0.5));
  };
  const auto most = int64_t(std::min(double(s.in), std::ceil(2 * support) + 1));
  Taps t(s.in, s.out, most, op);
  t.weight.resize(t.index.size());
  for (int64_t j = 0; j < s.out; ++j) {
    const int64_t from = std::min(first(j), s.in - 1), count = std::max<int64_t>(1, last(j) - from);
    const double center = s.step * (double(j) + 0.5);
    double total = 0;
    for (int64_t k = 0; k < count; ++k) total += filter((double(from + k) - center + 0.5) / scale);
    for (int64_t k = 0; k < most; ++k) {
      t.at(k, j) = from + std::min(k, count - 1);
      const double weight = k < count ? filter((double(from + k) - center + 0.5) / scale) : 0;
      t.weight[size_t(k * s.out + j)] = total == 0 ? double(k == 0) : weight / total;
    }
  }
  return t;
}
double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }
double cubic(double x) {
  constexpr double a = -0.5;  // PIL's, not the -0.75 of plain bicubic
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// The sizes of the result, and the scales that were given (0: none).
std::vector<Scaling> scalings(const Tensor& x, const InterpolateOptions& o) {
  const int axes = int(x.dim()) - 2;
  require(o.size.given().empty() != o.scale_factor.empty(), ErrorKind::argument, op,
          "needs either size or scale_factor");
  require(o.scale_factor.size() <= 1 || int(o.scale_factor.size()) == axes, ErrorKind::argument, op,
          o.scale_factor.size(), " scale factors for ", axes, " axes");
  const Shape sizes = o.scale_factor.empty() ? o.size.of(axes, op, "size") : Shape();
  std::vector<Scaling> list;
  for (int i = 0; i < axes; ++i) {
    const int64_t in = x.shape()[2 + i];
    double factor = 0;
    if (!o.scale_factor.empty()) factor = o.scale_factor[size_t(i)];
    require(!sizes.empty() || (factor > 0 && factor * double(in) < 0x1p53), ErrorKind::argument, op,
            "a scale factor of ", factor);
    const int64_t out = !sizes.empty() ? sizes[i] : int64_t(std::floor(double(in) * factor));
    // As in PyTorch, an area may be averaged to nothing.
    require(in > 0 && out >= (o.mode == "area" ? 0 : 1), ErrorKind::shape, op, "an axis of ", in,
            " cannot become one of ", out, " in shape ", x);
    // Linear modes leave an axis alone that keeps its size, whatever the factor was.
    const bool kept = in == out && o.mode.name().ends_with("linear");
    const bool use_factor = factor > 0 && !o.recompute_scale_factor && !kept;
    const double corner = out > 1 ? double(in - 1) / double(out - 1) : 0;
    const double edge = use_factor ? 1 / factor : double(in) / double(out);
    list.push_back({in, out, o.align_corners ? corner : edge, o.align_corners});
  }
  return list;
}

Taps (*find_mode(const InterpolateOptions& o, const Tensor& x))(const Scaling&) {
  struct Mode {
    int axes;  // 0: any
    Taps (*taps)(const Scaling&);
  };
  // In the order of InterpolateMode.
  static constexpr Mode modes[] = {{0, [](const Scaling& s) { return nearest_taps(s, 0); }},
                                   {0, [](const Scaling& s) { return nearest_taps(s, 0.5); }},
                                   {1, linear_taps},
                                   {2, linear_taps},
                                   {3, linear_taps},
                                   {2, cubic_taps},
                                   {0, [](const Scaling& s) { return adaptive_taps(s.in, s.out, op); }}};
  const Mode* mode = &modes[size_t(o.mode.of(op, "mode"))];
  require(mode->axes == 0 || x.dim() == mode->axes + 2, ErrorKind::shape, op, "mode ", o.mode.name(), " needs ",
          mode->axes + 2, " axes, got shape ", x);
  require(mode->axes > 0 || !o.align_corners, ErrorKind::argument, op, "align_corners has no meaning in mode ",
          o.mode.name());
  if (!o.antialias) return mode->taps;
  const bool smooth = o.mode == InterpolateMode::bilinear || o.mode == InterpolateMode::bicubic;
  require(smooth, ErrorKind::argument, op, "antialias is for the modes bilinear and bicubic, not ", o.mode.name());
  if (o.mode == InterpolateMode::bilinear) return [](const Scaling& s) { return antialias_taps(s, 1, triangle); };
  return [](const Scaling& s) { return antialias_taps(s, 2, cubic); };
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  require_floating(x, op);
  require(x.dim() >= 3 && x.dim() <= 5, ErrorKind::shape, op,
          "needs [n, c, ...] with one to three axes more, got shape ", x);
  const auto taps_of = find_mode(o, x);
  const std::vector<Scaling> list = scalings(x, o);
  Shape sizes;
  for (const Scaling& s : list) sizes.push_back(s.out);
  require_room(x, sizes, op);
  auto taps = std::make_shared<std::vector<Taps>>();
  for (const Scaling& s : list) taps->push_back(taps_of(s));
  return sum_of_taps(op, x, taps);
}

}  // namespace volta

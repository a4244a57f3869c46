// Interpolation: the positions of the outputs among the inputs, axis by axis, as a table of taps.
#include <algorithm>
#include <cmath>

#include <volta/ops.h>
#include "ops/check.h"
#include "ops/taps.h"

namespace volta {
namespace {

constexpr const char* op = "interpolate";

using Filter = Resampling::Filter;

Taps taps_of(const Resampling& r) {
  Taps t(r.in, r.out, r.most_taps(), op);
  t.weight.resize(t.index.size());
  for (int64_t j = 0; j < r.out; ++j) {
    const Resampling::Support s = r.support(j);
    const double total = r.total<double>(s);
    for (int64_t k = 0; k < t.count; ++k) {
      t.at(k, j) = std::clamp<int64_t>(s.first + std::min(k, s.count - 1), 0, r.in - 1);
      t.weight[size_t(k * r.out + j)] = k < s.count ? r.weight<double>(s, k) / total : 0;
    }
  }
  t.rule.kind = TapRule::Kind::resampling;
  t.rule.resampling = r;
  return t;
}

struct Mode {
  int axes;  // 0: any
  Filter filter;
  float shift = 0;
};

// How each axis is resampled: its sizes, and the scales that were given (0: none).
std::vector<Resampling> resamplings(const Tensor& x, const Mode& mode, const InterpolateOptions& o) {
  const int axes = int(x.dim()) - 2;
  require(o.size.given().empty() != o.scale_factor.empty(), ErrorKind::argument, op,
          "needs either size or scale_factor");
  require(o.scale_factor.size() <= 1 || int(o.scale_factor.size()) == axes, ErrorKind::argument, op,
          o.scale_factor.size(), " scale factors for ", axes, " axes");
  const Shape sizes = o.scale_factor.empty() ? o.size.of(axes, op, "size") : Shape();
  std::vector<Resampling> list;
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
    // Linear and antialiased modes leave an axis alone that keeps its size, whatever the factor was.
    const bool kept = in == out && (o.antialias || o.mode.name().ends_with("linear"));
    const bool use_factor = factor > 0 && !o.recompute_scale_factor && !kept;
    const double corner = out > 1 ? double(in - 1) / double(out - 1) : 0;
    const double edge = use_factor ? 1 / factor : double(in) / double(out);
    list.push_back({mode.filter, o.align_corners, o.antialias, mode.shift, in, out, o.align_corners ? corner : edge});
  }
  return list;
}

const Mode& find_mode(const InterpolateOptions& o, const Tensor& x) {
  // In the order of InterpolateMode; an area has taps of its own.
  static constexpr Mode modes[] = {{0, Filter::nearest}, {0, Filter::nearest, 0.5}, {1, Filter::linear},
                                   {2, Filter::linear},  {3, Filter::linear},       {2, Filter::cubic},
                                   {0, Filter::nearest}};
  const Mode& mode = modes[size_t(o.mode.of(op, "mode"))];
  require(mode.axes == 0 || x.dim() == mode.axes + 2, ErrorKind::shape, op, "mode ", o.mode.name(), " needs ",
          mode.axes + 2, " axes, got shape ", x);
  require(mode.axes > 0 || !o.align_corners, ErrorKind::argument, op, "align_corners has no meaning in mode ",
          o.mode.name());
  const bool smooth = o.mode == InterpolateMode::bilinear || o.mode == InterpolateMode::bicubic;
  require(smooth || !o.antialias, ErrorKind::argument, op, "antialias is for the modes bilinear and bicubic, not ",
          o.mode.name());
  return mode;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  require_floating(x, op);
  require(x.dim() >= 3 && x.dim() <= 5, ErrorKind::shape, op,
          "needs [n, c, ...] with one to three axes more, got shape ", x);
  const std::vector<Resampling> list = resamplings(x, find_mode(o, x), o);
  Shape sizes;
  for (const Resampling& r : list) sizes.push_back(r.out);
  const bool area = o.mode == InterpolateMode::area;
  return sum_of_taps(op, x, tables_of(x, sizes, op, [&](int i) {
                       const Resampling& r = list[size_t(i)];
                       return area ? adaptive_taps(r.in, r.out, op) : taps_of(r);
                     }));
}

}  // namespace volta

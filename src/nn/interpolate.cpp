// Interpolation: the positions of the outputs among the inputs, axis by axis, as a table of taps.
#include <algorithm>
#include <array>
#include <cmath>

#include <volta/nn/pool.h>
#include <volta/nn/reflect.h>
#include <volta/nn/resample.h>
#include <volta/ops.h>

#include "nn/cubic.h"
#include "nn/taps.h"
#include "ops/check.h"
#include "ops/reduce.h"

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
  Taps t(s.in, s.out, 1);
  for (int64_t j = 0; j < s.out; ++j)  // in f32, as PyTorch places them for every dtype
    t.at(0, j) = std::min(int64_t(std::floor((float(j) + float(shift)) * float(s.step))), s.in - 1);
  t.weight.assign(size_t(s.out), 1);
  return t;
}

Taps linear_taps(const Scaling& s) {
  Taps t(s.in, s.out, 2);
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
  Taps t(s.in, s.out, 4);
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

// The sizes of the result, and the scales that were given (0: none).
std::vector<Scaling> scalings(const Tensor& x, const InterpolateOptions& o) {
  const int axes = int(x.dim()) - 2;
  require(o.size.given().empty() != o.scale_factor.empty(), Wrong::argument, op, "needs either size or scale_factor");
  require(o.scale_factor.size() <= 1 || int(o.scale_factor.size()) == axes, Wrong::argument, op, o.scale_factor.size(),
          " scale factors for ", axes, " axes");
  const Shape sizes = o.scale_factor.empty() ? o.size.of(axes, op, "size") : Shape();
  std::vector<Scaling> list;
  for (int i = 0; i < axes; ++i) {
    const int64_t in = x.shape()[2 + i];
    double factor = 0;
    if (!o.scale_factor.empty()) factor = o.scale_factor[o.scale_factor.size() == 1 ? 0 : size_t(i)];
    require(!sizes.empty() || (factor > 0 && factor * double(in) < 0x1p53), Wrong::argument, op, "a scale factor of ",
            factor);
    const int64_t out = !sizes.empty() ? sizes[i] : int64_t(std::floor(double(in) * factor));
    // As in PyTorch, an area may be averaged to nothing.
    require(in > 0 && out >= (o.mode == "area" ? 0 : 1), Wrong::shape, op, "an axis of ", in, " cannot become one of ",
            out, " in shape ", x);
    // Linear modes leave an axis alone that keeps its size, whatever the factor was.
    const bool kept = in == out && o.mode.ends_with("linear");
    const bool use_factor = factor > 0 && !o.recompute_scale_factor && !kept;
    const double corner = out > 1 ? double(in - 1) / double(out - 1) : 0;
    const double edge = use_factor ? 1 / factor : double(in) / double(out);
    list.push_back({in, out, o.align_corners ? corner : edge, o.align_corners});
  }
  return list;
}

Taps (*find_mode(const InterpolateOptions& o, const Tensor& x))(const Scaling&) {
  struct Mode {
    const char* name;
    int axes;  // 0: any
    Taps (*taps)(const Scaling&);
  };
  static constexpr Mode modes[] = {{"nearest", 0, [](const Scaling& s) { return nearest_taps(s, 0); }},
                                   {"nearest-exact", 0, [](const Scaling& s) { return nearest_taps(s, 0.5); }},
                                   {"area", 0, [](const Scaling& s) { return adaptive_taps(s.in, s.out); }},
                                   {"linear", 1, linear_taps},
                                   {"bilinear", 2, linear_taps},
                                   {"trilinear", 3, linear_taps},
                                   {"bicubic", 2, cubic_taps}};
  const auto* mode = std::find_if(std::begin(modes), std::end(modes), [&](const Mode& m) { return o.mode == m.name; });
  require(mode != std::end(modes), Wrong::argument, op, "mode '", o.mode,
          "' is none of nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area");
  require(mode->axes == 0 || x.dim() == mode->axes + 2, Wrong::shape, op, "mode ", o.mode, " needs ", mode->axes + 2,
          " axes, got shape ", x);
  require(mode->axes > 0 || !o.align_corners, Wrong::argument, op, "align_corners has no meaning in mode ", o.mode);
  return mode->taps;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  require_floating(x, op);
  require(x.dim() >= 3 && x.dim() <= 5, Wrong::shape, op, "needs [n, c, ...] with one to three axes more, got shape ",
          x);
  const auto taps_of = find_mode(o, x);
  auto taps = std::make_shared<std::vector<Taps>>();
  for (const Scaling& s : scalings(x, o)) taps->push_back(taps_of(s));
  return sum_of_taps(op, x, taps);
}

namespace nn {
Tensor Upsample::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return interpolate(in, options); });
}
}  // namespace nn
}  // namespace volta

// The geometry of convolutions: passes, boxes, and the extents of what is staged.
#include "backend/cpu/conv_plan.h"

#include <algorithm>

#include "backend/cpu/split.h"

namespace volta::cpu {
namespace {

PassAxis forward_axis(const ConvolveAxis& a) {
  PassAxis p{a.output, a.input, a.stride, -a.padding, 0, 1, {}, {}};
  for (int64_t k = 0; k < a.kernel; ++k) {
    const int64_t shift = k * a.dilation / a.stride, phase = k * a.dilation % a.stride;
    auto found = std::find(p.phases.begin(), p.phases.end(), phase);
    if (found == p.phases.end()) found = p.phases.insert(found, phase);
    p.taps.push_back({k, shift, found - p.phases.begin()});
    p.reach = std::max(p.reach, shift);
  }
  return p;
}

// Of the inputs i with (i + padding) % stride == phase.
PassAxis input_axis(const ConvolveAxis& a, int64_t phase) {
  const int64_t first = a.padding > phase ? divide_up(a.padding - phase, a.stride) : 0;
  const int64_t last = a.input - 1 + a.padding - phase;
  const int64_t to = first * a.stride + phase - a.padding;
  PassAxis p{last < 0 ? 0 : std::max<int64_t>(0, last / a.stride - first + 1), a.output, 1, 0, to, a.stride, {0}, {}};
  for (int64_t k = a.kernel - 1; k >= 0; --k) {
    if (k * a.dilation % a.stride != phase) continue;
    const int64_t back = k * a.dilation / a.stride;
    if (p.taps.empty()) p.start = first - back;
    p.reach = first - back - p.start;
    p.taps.push_back({k, p.reach, 0});
  }
  return p;
}

}  // namespace

bool Pass::in_place() const {
  return std::all_of(axes, axes + conv_space, [](const PassAxis& a) {
    return a.step == 1 && a.start == 0 && a.taps.size() == 1 && a.reach == 0 && a.count == a.size;
  });
}

bool Pass::straight() const {
  return std::all_of(axes, axes + conv_space, [](const PassAxis& a) { return a.to == 0 && a.to_step == 1; });
}

std::vector<Pass> passes_of(const ConvolveGeometry& g, ConvPiece piece) {
  if (piece != ConvPiece::input) return {{{forward_axis(g.axes[0]), forward_axis(g.axes[1]), forward_axis(g.axes[2])}}};
  std::vector<Pass> passes;
  const int64_t all = g.axes[0].stride * g.axes[1].stride * g.axes[2].stride;
  for (int64_t i = 0; i < all; ++i) {
    const int64_t a = i / g.axes[2].stride,
                  phases[] = {a / g.axes[1].stride, a % g.axes[1].stride, i % g.axes[2].stride};
    Pass pass{{input_axis(g.axes[0], phases[0]), input_axis(g.axes[1], phases[1]), input_axis(g.axes[2], phases[2])}};
    if (pass.outputs() > 0) passes.push_back(std::move(pass));
  }
  return passes;
}

Box Boxes::box(const Pass& pass, int64_t index) const {
  Box b;
  for (int i = conv_space - 1; i >= 0; --i) {
    const int64_t n = pass.axes[i].count, at = index % parts[i], unit = i == 0 ? 1 : tile, units = divide_up(n, unit);
    b.begin[i] = units * at / parts[i] * unit;
    b.count[i] = std::min(n, units * (at + 1) / parts[i] * unit) - b.begin[i];
    index /= parts[i];
  }
  return b;
}

Box Boxes::largest(const Pass& pass) const {
  Box b{};
  for (int i = 0; i < conv_space; ++i) {
    const int64_t unit = i == 0 ? 1 : tile;
    b.count[i] = std::min(pass.axes[i].count, divide_up(divide_up(pass.axes[i].count, unit), parts[i]) * unit);
  }
  return b;
}

Boxes plan_boxes(const Pass& pass, int64_t channels, int64_t element_bytes, int64_t bytes, int64_t least,
                 int64_t tile) {
  constexpr int64_t worth = 192;  // outputs of a box that repay packing the weights for it
  Boxes boxes{{1, 1, 1}, tile};
  const int64_t room = std::max<int64_t>(1, bytes / (element_bytes * std::max<int64_t>(1, channels * pass.phases())));
  int64_t inner = 1, extent[conv_space];
  for (int i = 0; i < conv_space; ++i) extent[i] = pass.axes[i].count;
  const auto staged = [&] {
    int64_t values = 1;
    for (int i = 0; i < conv_space; ++i) values *= extent[i] + pass.axes[i].reach;
    return values;
  };
  for (int i = 0; i < conv_space && extent[i] > 0; ++i) {
    const PassAxis& a = pass.axes[i];
    inner = 1;
    for (int k = i + 1; k < conv_space; ++k) inner *= extent[k];
    const int64_t others = staged() / (extent[i] + a.reach);
    int64_t most = room / others - a.reach;
    if (2 * a.reach * others <= 8 * room) most = std::max(most, a.reach);  // few values are staged twice
    if (boxes.count() < least)
      most = std::min(most, std::max(a.count * boxes.count() / least, divide_up(worth, inner)));
    const int64_t unit = i == 0 ? 1 : tile, units = divide_up(a.count, unit);
    boxes.parts[i] = divide_up(units, std::clamp<int64_t>(most / unit, 1, units));
    extent[i] = boxes.largest(pass).count[i];
    if (extent[i] > 1) break;  // later axes stay whole, so that outputs of a box are consecutive
  }
  return boxes;
}

Staged staged_of(const Pass& pass, const Box& box, int64_t tile) {
  Staged s;
  for (int i = 0; i < conv_space; ++i) {
    const int64_t n = i == 0 ? box.count[i] : divide_up(box.count[i], tile) * tile;
    s.extent[i] = n + pass.axes[i].reach;
  }
  return s;
}

template <class T>
void copy_rows(int64_t, int64_t depth, const ConvRows<T>& weights, T* to, int64_t first, int64_t count) {
  constexpr int64_t together = 8;  // rows, which share cache lines
  for (int64_t i = first; i < first + count; i += together)
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t r = i; r < std::min(i + together, first + count); ++r)
        to[r * depth + p] = weights.data[r * weights.step + weights.places[p]];
}
template void copy_rows(int64_t, int64_t, const ConvRows<float>&, float*, int64_t, int64_t);
template void copy_rows(int64_t, int64_t, const ConvRows<double>&, double*, int64_t, int64_t);

}  // namespace volta::cpu

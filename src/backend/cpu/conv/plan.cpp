// The geometry of convolutions: passes, boxes, and the extents of what is staged.
#include "backend/cpu/conv/plan.h"

#include <algorithm>

#include "backend/cpu/parallel_rows.h"

namespace volta::cpu {
namespace {

PassAxis forward_axis(const ConvAxis& a) {
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

// In rising order; there are at most as many as taps, however large the stride is.
std::vector<int64_t> phases_reached(const ConvAxis& a) {
  std::vector<int64_t> phases;
  for (int64_t k = 0; k < a.kernel; ++k) phases.push_back(k * a.dilation % a.stride);
  std::sort(phases.begin(), phases.end());
  phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
  return phases;
}

// The pass over the inputs i with (i + padding) % stride == phase.
PassAxis input_axis(const ConvAxis& a, int64_t phase) {
  const int64_t first = a.padding > phase ? divide_up(a.padding - phase, a.stride) : 0;  // sums fit: see ops/conv.cpp
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

std::vector<Pass> passes_of(const ConvGeometry& g, ConvPiece piece, bool* complete) {
  if (piece != ConvPiece::input) return {{{forward_axis(g.axes[0]), forward_axis(g.axes[1]), forward_axis(g.axes[2])}}};
  std::vector<Pass> passes;
  std::vector<PassAxis> along[conv_space];
  bool all = true;
  for (int i = 0; i < conv_space; ++i) {
    const ConvAxis& a = g.axes[i];
    const std::vector<int64_t> phases = phases_reached(a);
    all = all && int64_t(phases.size()) == a.stride;
    for (const int64_t phase : phases) along[i].push_back(input_axis(a, phase));
  }
  if (complete) *complete = all;
  for (const PassAxis& d : along[0])
    for (const PassAxis& h : along[1])
      for (const PassAxis& w : along[2])
        if (d.count > 0 && h.count > 0 && w.count > 0) passes.push_back({{d, h, w}});
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
    const int64_t unit = i == 0 ? 1 : tile, units = divide_up(a.count, unit);
    if (boxes.count() < least) {
      const int64_t each = std::max(a.count * boxes.count() / least, divide_up(worth, inner));
      most = std::min(most, divide_up(each, unit) * unit);
    }
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

template <class T> int64_t copied_rows(int64_t m, int64_t depth, const ConvRows<T>& weights, int64_t) {
  return weights.regular == 1 ? 0 : m * depth;
}
template <class T>
void copy_rows(int64_t, int64_t depth, const ConvRows<T>& weights, T* to, int64_t first, int64_t count) {
  constexpr int64_t together = 8;  // rows, which share cache lines
  for (int64_t i = first; i < first + count; i += together)
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t r = i; r < std::min(i + together, first + count); ++r)
        to[r * depth + p] = weights.data[r * weights.step + weights.places[p]];
}
template int64_t copied_rows(int64_t, int64_t, const ConvRows<float>&, int64_t);
template int64_t copied_rows(int64_t, int64_t, const ConvRows<double>&, int64_t);
template void copy_rows(int64_t, int64_t, const ConvRows<float>&, float*, int64_t, int64_t);
template void copy_rows(int64_t, int64_t, const ConvRows<double>&, double*, int64_t, int64_t);

}  // namespace volta::cpu

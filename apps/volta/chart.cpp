#include "chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace volta::app {
namespace {

constexpr double width = 480, height = 320, left = 64, right = 20, top = 44, bottom = 52;
constexpr Colour colours[] = {0x3b7dd8, 0xd8703b, 0x3ba55d, 0x9b59b6, 0xc0392b, 0x7f8c8d};
constexpr Colour grid = 0xe3e3e3, axis = 0x777777;

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double v) { low = std::min(low, v), high = std::max(high, v); }
  void settle() {
    if (!(low <= high)) low = 0, high = 1;
    const double size = std::max(std::abs(low), std::abs(high));
    if (high - low > 1e-6 * size) return;
    const double room = size > 0 ? 0.05 * size : 0.5;
    low -= room, high += room;
  }
  // Round numbers, about five of them.
  std::vector<double> ticks() const {
    const double rough = (high - low) / 5, size = std::pow(10, std::floor(std::log10(rough))), parts = rough / size;
    const double step = size * (parts < 1.5 ? 1 : parts < 3.5 ? 2 : parts < 7.5 ? 5 : 10);
    std::vector<double> list;
    for (double t = std::ceil(low / step) * step; t <= high + step * 1e-9; t += step)
      list.push_back(std::abs(t) < step * 1e-9 ? 0 : t);
    return list;
  }
};

bool usable(const Series& s, size_t i) {
  constexpr double most = 1e100;  // differences of these are finite too
  return i < s.y.size() && std::abs(s.x[i]) < most && std::abs(s.y[i]) < most;
}

// Where a chart's numbers lie on the drawing.
struct Frame {
  Frame(const Chart& c, double shift) : at(shift) {
    for (const Series& s : c.series)
      for (size_t i = 0; i < s.x.size(); ++i)
        if (usable(s, i)) xs.take(s.x[i]), ys.take(s.y[i]);
    xs.settle(), ys.settle();
  }
  double x(double v) const { return at + left + (v - xs.low) / (xs.high - xs.low) * (width - left - right); }
  double y(double v) const { return height - bottom - (v - ys.low) / (ys.high - ys.low) * (height - top - bottom); }
  double at;
  Range xs, ys;
};

void draw_axes(const Chart& c, const Frame& f, Drawing& to) {
  const double from = f.at + left, end = f.at + width - right, base = height - bottom;
  to.labels.push_back({{f.at + width / 2, 24}, c.title, Anchor::middle, 15, true});
  for (const double t : f.ys.ticks()) {
    to.strokes.push_back({{{from, f.y(t)}, {end, f.y(t)}}, 1, grid});
    to.labels.push_back({{from - 8, f.y(t) + 4}, number(t), Anchor::end});
  }
  for (const double t : f.xs.ticks()) {
    to.strokes.push_back({{{f.x(t), base}, {f.x(t), base + 4}}, 1, axis});
    to.labels.push_back({{f.x(t), base + 18}, number(t), Anchor::middle});
  }
  to.strokes.push_back({{{from, base}, {end, base}}, 1, axis});
  to.labels.push_back({{f.at + width / 2, height - 12}, c.x_label, Anchor::middle});
}

void draw(const Chart& c, double shift, Drawing& to) {
  const Frame f(c, shift);
  draw_axes(c, f, to);
  double name_at = f.at + width - right;  // names stand above the curves, the last at the right
  for (size_t k = c.series.size(); k-- > 0;) {
    const Series& s = c.series[k];
    const Colour colour = colours[k % std::size(colours)];
    Stroke line{{}, 2, colour};
    for (size_t i = 0; i < s.x.size(); ++i)
      if (usable(s, i)) line.points.push_back({f.x(s.x[i]), f.y(s.y[i])});
    to.strokes.push_back(std::move(line));
    name_at -= width_of(s.name, 12);
    to.labels.push_back({{name_at, top - 8}, s.name});
    to.strokes.push_back({{{name_at - 20, top - 12}, {name_at - 6, top - 12}}, 2, colour});
    name_at -= 34;
  }
}

}  // namespace

Drawing drawn(const std::vector<Chart>& charts) {
  Drawing drawing{width * double(charts.size()), height, {}, {}};
  for (size_t i = 0; i < charts.size(); ++i) draw(charts[i], width * double(i), drawing);
  return drawing;
}

}  // namespace volta::app

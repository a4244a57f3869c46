#include "chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace volta::app {
namespace {

constexpr double width = 480, height = 320, left = 64, right = 16, top = 40, bottom = 48;
constexpr const char* colours[] = {"#3b7dd8", "#d8703b", "#3ba55d", "#9b59b6", "#c0392b", "#7f8c8d"};

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double v) { low = std::min(low, v), high = std::max(high, v); }
  void settle() {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
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

std::string label(double x, double y, const char* anchor, const std::string& text, int size = 12,
                  const char* more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" font-size=\"" +
         std::to_string(size) + "\"" + more + ">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
         "\" stroke=\"" + colour + "\"/>\n";
}

std::string drawn(const Chart& c, double at) {
  Range xs, ys;
  const auto usable = [](const Series& s, size_t i) {
    return i < s.y.size() && std::isfinite(s.x[i]) && std::isfinite(s.y[i]);
  };
  for (const Series& s : c.series)
    for (size_t i = 0; i < s.x.size(); ++i)
      if (usable(s, i)) xs.take(s.x[i]), ys.take(s.y[i]);
  xs.settle(), ys.settle();
  const auto px = [&](double v) { return at + left + (v - xs.low) / (xs.high - xs.low) * (width - left - right); };
  const auto py = [&](double v) {
    return height - bottom - (v - ys.low) / (ys.high - ys.low) * (height - top - bottom);
  };
  std::string out = label(at + width / 2, 22, "middle", c.title, 15, " font-weight=\"600\"");
  for (const double t : ys.ticks())
    out += line(at + left, py(t), at + width - right, py(t), "#e3e3e3") +
           label(at + left - 6, py(t) + 4, "end", number(t));
  for (const double t : xs.ticks())
    out += line(px(t), height - bottom, px(t), height - bottom + 4, "#777") +
           label(px(t), height - bottom + 18, "middle", number(t));
  out += line(at + left, height - bottom, at + width - right, height - bottom, "#777");
  out += label(at + width / 2, height - 10, "middle", c.x_label);
  for (size_t k = 0; k < c.series.size(); ++k) {
    const Series& s = c.series[k];
    const char* const colour = colours[k % std::size(colours)];
    std::string points;
    for (size_t i = 0; i < s.x.size(); ++i)
      if (usable(s, i)) points += number(px(s.x[i])) + "," + number(py(s.y[i])) + " ";
    out += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(colour) + "\" points=\"" + points +
           "\"/>\n";
    const double y = top + 4 + 16 * double(k);
    out += line(at + width - right - 100, y, at + width - right - 84, y, colour) +
           label(at + width - right - 78, y + 4, "start", s.name);
  }
  return out;
}

}  // namespace

std::string svg(const std::vector<Chart>& charts) {
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width * double(charts.size())) + "\" height=\"" +
      number(height) +
      "\" font-family=\"system-ui, sans-serif\" fill=\"#333\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  for (size_t i = 0; i < charts.size(); ++i) out += drawn(charts[i], width * double(i));
  return out + "</svg>\n";
}

}  // namespace volta::app

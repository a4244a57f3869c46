#include "drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace volta::app {
namespace {

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

std::string hex(Colour colour) {
  char text[16];
  std::snprintf(text, sizeof text, "#%06x", unsigned(colour));
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

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// A white sheet that strokes with round ends are drawn on.
class Sheet {
 public:
  Sheet(int64_t width, int64_t height)
      : width_(width), height_(height), ink_(size_t(width * height)), bytes_(size_t(3 * width * height), 255) {}

  // Where segments of one stroke meet, the darker counts: their sum would show every joint.
  void draw(const std::vector<Point>& points, double width, Colour colour) {
    if (points.empty()) return;
    const double reach = width / 2 + 1;
    Box all{width_, height_, 0, 0};
    for (size_t i = 0; i < points.size(); ++i) {
      const Point a = points[i], b = points[std::min(i + 1, points.size() - 1)];
      if (i + 1 == points.size() && i > 0) break;
      const Box box = around(a, b, reach);
      for (int64_t y = box.top; y < box.bottom; ++y)
        for (int64_t x = box.left; x < box.right; ++x) {
          const double d = distance({double(x) + 0.5, double(y) + 0.5}, a, b);
          float& ink = ink_[size_t(y * width_ + x)];
          ink = std::max(ink, float(std::clamp(width / 2 + 0.5 - d, 0.0, 1.0)));
        }
      all = {std::min(all.left, box.left), std::min(all.top, box.top), std::max(all.right, box.right),
             std::max(all.bottom, box.bottom)};
    }
    blend(all, colour);
  }

  Tensor image() const { return tensor(std::span<const uint8_t>(bytes_), {3, height_, width_}); }

 private:
  struct Box {
    int64_t left, top, right, bottom;
  };
  Box around(Point a, Point b, double reach) const {
    const auto within = [](double v, int64_t most) { return int64_t(std::clamp(v, 0.0, double(most))); };
    return {
        within(std::floor(std::min(a.x, b.x) - reach), width_), within(std::floor(std::min(a.y, b.y) - reach), height_),
        within(std::ceil(std::max(a.x, b.x) + reach), width_), within(std::ceil(std::max(a.y, b.y) + reach), height_)};
  }
  void blend(const Box& box, Colour colour) {
    for (int64_t y = box.top; y < box.bottom; ++y)
      for (int64_t x = box.left; x < box.right; ++x) {
        const auto at = size_t(y * width_ + x);
        const float ink = std::exchange(ink_[at], 0.0f);
        if (ink == 0) continue;
        for (int channel = 0; channel < 3; ++channel) {
          uint8_t& byte = bytes_[size_t(channel) * size_t(width_ * height_) + at];
          const auto full = float(colour >> (16 - 8 * channel) & 255);
          byte = uint8_t(std::lround(float(byte) + ink * (full - float(byte))));
        }
      }
  }

  int64_t width_, height_;
  std::vector<float> ink_;      // of the stroke being drawn, 0 to 1
  std::vector<uint8_t> bytes_;  // [3, height, width]
};

double start_of(const Label& label, double width) {
  return label.at.x - (label.anchor == Anchor::start ? 0 : label.anchor == Anchor::middle ? width / 2 : width);
}

}  // namespace

std::string svg(const Drawing& drawing) {
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(drawing.width) + "\" height=\"" +
                    number(drawing.height) +
                    "\" font-family=\"system-ui, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  for (const Stroke& s : drawing.strokes) {
    out += "<polyline fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\" stroke-width=\"" +
           number(s.width) + "\" stroke=\"" + hex(s.colour) + "\" points=\"";
    for (const Point& p : s.points) out += number(p.x) + "," + number(p.y) + " ";
    out += "\"/>\n";
  }
  constexpr const char* anchors[] = {"start", "middle", "end"};
  for (const Label& l : drawing.labels)
    out += "<text x=\"" + number(l.at.x) + "\" y=\"" + number(l.at.y) + "\" text-anchor=\"" + anchors[int(l.anchor)] +
           "\" font-size=\"" + number(l.size) + "\" fill=\"" + hex(l.colour) + "\"" +
           (l.bold ? " font-weight=\"600\"" : "") + ">" + escaped(l.text) + "</text>\n";
  return out + "</svg>\n";
}

Tensor pixels(const Drawing& drawing, double scale) {
  Sheet sheet(std::lround(drawing.width * scale), std::lround(drawing.height * scale));
  for (const Stroke& s : drawing.strokes) {
    std::vector<Point> points;
    for (const Point& p : s.points) points.push_back({p.x * scale, p.y * scale});
    sheet.draw(points, s.width * scale, s.colour);
  }
  for (const Label& l : drawing.labels) {
    const double x = start_of(l, width_of(l.text, l.size));
    for (std::vector<Point>& line : written(l.text, l.size)) {
      for (Point& p : line) p = {(x + p.x) * scale, (l.at.y + p.y) * scale};
      sheet.draw(line, l.size * (l.bold ? 0.11 : 0.075) * scale, l.colour);
    }
  }
  return sheet.image();
}

}  // namespace volta::app

// A drawing of lines and texts, which becomes SVG or pixels.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <volta/volta.h>

namespace volta::app {

using Colour = uint32_t;  // 0xRRGGBB

struct Point {
  double x = 0, y = 0;  // from the left, from the top
};
struct Stroke {
  std::vector<Point> points;
  double width = 1;
  Colour colour = 0;
};
enum class Anchor { start, middle, end };
struct Label {
  Point at;  // on the base line
  std::string text;
  Anchor anchor = Anchor::start;
  double size = 12;
  bool bold = false;
  Colour colour = 0x333333;
};
struct Drawing {
  double width = 0, height = 0;
  std::vector<Stroke> strokes;
  std::vector<Label> labels;
};

std::string svg(const Drawing& drawing);
Tensor pixels(const Drawing& drawing, double scale);  // u8 [3, height, width], smooth edges

// The lines that write a text from the origin on, where capitals are `size` * 0.72 high; ASCII alone, a box for anything else.
std::vector<std::vector<Point>> written(const std::string& text, double size);
double width_of(const std::string& text, double size);

}  // namespace volta::app

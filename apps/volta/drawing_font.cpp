// A font of strokes, so that pictures with texts need no font files.
#include <array>
#include <map>

#include "drawing.h"

namespace volta::app {
namespace {

// Strokes of a glyph, apart by spaces. A stroke is a list of points, two letters each: x from 0 on, and y from the base line up,
// where capitals end at 9, small letters at 6, and x, y, z are 1, 2 and 3 below. Plain strokes are straight from point to point;
// after ( the points inside pull a smooth curve, and after @ it closes.
const std::map<char, const char*>& glyphs() {
  static const std::map<char, const char*> all = {
      {'0', "@00505909"},
      {'1', "173930"},
      {'2', "(0709595500 0050"},
      {'3', "(0709595525 (2555500002"},
      {'4', "40490353"},
      {'5', "590905 (0556500001"},
      {'6', "@00505606 (490803"},
      {'7', "095920"},
      {'8', "@05555909 @00505505"},
      {'9', "@03535909 (565110"},
      {'A', "003960 1353"},
      {'B', "0009 0929 (29595525 0525 (25555020 0020"},
      {'C', "(575909005052"},
      {'D', "0009 0929 (29595020 0020"},
      {'E', "59090050 0545"},
      {'F', "590900 0545"},
      {'G', "(575909005054 5434"},
      {'H', "0009 5059 0555"},
      {'I', "0009"},
      {'J', "4943 (43400002"},
      {'K', "0009 5903 2550"},
      {'L', "090050"},
      {'M', "0009346960"},
      {'N', "00095059"},
      {'O', "@00606909"},
      {'P', "0009 0929 (29595424 0424"},
      {'Q', "@00606909 4260"},
      {'R', "0009 0929 (29595424 0424 2450"},
      {'S', "(5759090555500002"},
      {'T', "0969 3930"},
      {'U', "0903 (03005053 5359"},
      {'V', "093069"},
      {'W', "0920496089"},
      {'X', "0950 0059"},
      {'Y', "093469 3430"},
      {'Z', "09590050"},
      {'a', "@00404606 4640"},
      {'b', "@00404606 0900"},
      {'c', "(453606003041"},
      {'d', "@00404606 4940"},
      {'e', "0343 (434606003041"},
      {'f', "(391916 1610 0636"},
      {'g', "@00404606 4640 (404z0z"},
      {'h', "0900 (03064643 4340"},
      {'i', "0600 0808"},
      {'j', "1610 (101z0z 1818"},
      {'k', "0900 4602 2440"},
      {'l', "0900"},
      {'m', "0600 (03063633 3330 (33366663 6360"},
      {'n', "0600 (03064643 4340"},
      {'o', "@00404606"},
      {'p', "060z @00404606"},
      {'q', "464z @00404606"},
      {'r', "0600 (030636"},
      {'s', "(4536060343401001"},
      {'t', "1912 (121030 0636"},
      {'u', "0603 (03004043 4640"},
      {'v', "062046"},
      {'w', "0620354066"},
      {'x', "0640 0046"},
      {'y', "0620 461z"},
      {'z', "06460040"},
      {' ', ""},
      {'.', "0000"},
      {',', "100y"},
      {':', "0000 0505"},
      {';', "1515 100y"},
      {'-', "0444"},
      {'_', "0x4x"},
      {'+', "0444 2226"},
      {'=', "0343 0545"},
      {'/', "0x49"},
      {'\\', "094x"},
      {'%', "0059 @06262909 @30505333"},
      {'(', "(2907022x"},
      {')', "(0927220x"},
      {'[', "2909 090x 0x2x"},
      {']', "0929 292x 2x0x"},
      {'<', "470441"},
      {'>', "074401"},
      {'|', "090x"},
      {'!', "0903 0000"},
      {'?', "(0709595523 2020"},
      {'\'', "0907"},
      {'"', "0907 2927"},
      {'*', "0547 0745 2448"},
      {'#', "1019 4049 0353 0656"},
      {'@', "@23535727 (535262696909000060"},
  };
  return all;
}
constexpr const char* unknown = "0040490900";
constexpr double unit = 0.08, gap = 2.4, space = 3;  // of a size; of units

Point point(const char* two) {
  const double y = two[1] >= 'x' ? -double(two[1] - 'x' + 1) : double(two[1] - '0');
  return {double(two[0] - '0'), -y};
}

Point middle(Point a, Point b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

void curve(std::vector<Point>& to, Point from, Point pull, Point end) {
  constexpr int parts = 8;
  for (int i = 1; i <= parts; ++i) {
    const double t = double(i) / parts, s = 1 - t;
    to.push_back(
        {s * s * from.x + 2 * s * t * pull.x + t * t * end.x, s * s * from.y + 2 * s * t * pull.y + t * t * end.y});
  }
}

std::vector<Point> line_of(const std::string& stroke) {
  const char kind = stroke[0];
  std::vector<Point> given;
  for (size_t i = kind == '(' || kind == '@' ? 1 : 0; i + 1 < stroke.size(); i += 2) given.push_back(point(&stroke[i]));
  if (kind != '(' && kind != '@') return given;
  const size_t count = given.size();
  if (kind == '@') {
    std::vector<Point> line = {middle(given.back(), given[0])};
    for (size_t i = 0; i < count; ++i) curve(line, line.back(), given[i], middle(given[i], given[(i + 1) % count]));
    return line;
  }
  std::vector<Point> line = {given[0]};
  for (size_t i = 1; i + 1 < count; ++i)
    curve(line, line.back(), given[i], i + 2 == count ? given[i + 1] : middle(given[i], given[i + 1]));
  return line;
}

struct Glyph {
  std::vector<std::vector<Point>> lines;
  double width = 0;
};

Glyph glyph(char c) {
  const auto found = glyphs().find(c);
  const std::string strokes = found == glyphs().end() ? unknown : found->second;
  Glyph made;
  for (size_t at = 0; at < strokes.size();) {
    const size_t end = std::min(strokes.find(' ', at), strokes.size());
    made.lines.push_back(line_of(strokes.substr(at, end - at)));
    for (const Point& p : made.lines.back()) made.width = std::max(made.width, p.x);
    at = end + 1;
  }
  if (c == ' ') made.width = space - gap / 2;
  return made;
}

// Bytes after the first of a UTF-8 character are part of its box.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::vector<std::vector<Point>> written(const std::string& text, double size) {
  std::vector<std::vector<Point>> lines;
  double x = 0;
  for (const char c : text) {
    if (continues(c)) continue;
    Glyph g = glyph(c);
    for (std::vector<Point>& line : g.lines) {
      for (Point& p : line) p = {(x + p.x) * unit * size, p.y * unit * size};
      lines.push_back(std::move(line));
    }
    x += g.width + gap;
  }
  return lines;
}

double width_of(const std::string& text, double size) {
  double x = 0;
  for (const char c : text)
    if (!continues(c)) x += glyph(c).width + gap;
  return (x > 0 ? x - gap : 0) * unit * size;
}

}  // namespace volta::app

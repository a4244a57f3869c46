// How numbers and texts are written.
#include "train/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace volta {
namespace {

template <class... A> std::string printed(const char* format, A... arguments) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, arguments...);
  return text.data();
}

// Length of the UTF-8 sequence at the front of the text, 0 where there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return uint8_t(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0, beyond = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

size_t width_of(const std::string& text) {  // code points
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string number_text(double x) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x);
  return std::string(text.data(), end.ptr);
}

std::string short_text(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e6)) return printed("%.2e", x);
  return printed("%.4f", x);
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (uint8_t(c) < 0x20 || c == 0x7F) out += printed("\\u%04x", unsigned(uint8_t(c)));
    else out += c;
  }
  return out + '"';
}

std::string json_number(double x) { return std::isfinite(x) ? number_text(x) : "null"; }

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width_of(row[i]), ' ');
      out += i == 0 ? row[i] + gap : "  " + gap + row[i];
    }
    out += '\n';
  }
  return out;
}

std::string seconds_text(double seconds) {
  if (!(seconds < 60)) {
    const long s = seconds < 1e9 ? std::lround(seconds) : 1000000000L;
    return s < 3600 ? printed("%ld:%02ld", s / 60, s % 60) : printed("%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  }
  return printed("%.1fs", seconds);
}

std::string bytes_text(double bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return printed(unit == 0 ? "%.0f " : "%.1f ", bytes) + units[unit];
}

}  // namespace volta

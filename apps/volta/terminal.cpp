#include "terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace volta::app {

Terminal Terminal::detect(bool json) {
  const char* const off = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  const bool dumb = kind && std::string(kind) == "dumb";
  return {json, !json && !(off && *off) && !dumb && isatty(STDOUT_FILENO) != 0};
}

std::string quoted(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = int64_t(text.size()) - 3, first = number < 0 ? 1 : 0; at > first; at -= 3)
    text.insert(size_t(at), 1, ',');
  return text;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const int first = byte(0), second = byte(1);
  const size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than need be, half of a pair of UTF-16, or beyond the last character.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return text.empty() ? 0 : n;
}

std::string printable(std::string_view text, bool lines) {
  std::string shown;
  for (size_t at = 0, n = 0; at < text.size(); at += n) {
    const std::string_view rest = text.substr(at);
    const auto first = static_cast<unsigned char>(rest[0]);
    n = utf8_length(rest);
    const bool fine = n == 1   ? (first >= 0x20 && first != 0x7f) || (lines && (first == '\n' || first == '\t'))
                      : n == 2 ? first != 0xc2 || static_cast<unsigned char>(rest[1]) >= 0xa0
                               : n > 0;
    n = n > 0 ? n : 1;
    if (fine) {
      shown += rest.substr(0, n);
    } else if (first == '\n') {
      shown += "\\n";
    } else {
      char code[8];
      for (size_t i = 0; i < n; ++i) {
        std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(rest[i]));
        shown += code;
      }
    }
  }
  return shown;
}

}  // namespace volta::app

// Matching by going back to the last star: time is at most the product of both lengths.
#include "io/glob.h"

#include <algorithm>
#include <cstdint>

namespace volta::io {
namespace {

// Where the character of UTF-8 that begins at `at` ends.
size_t behind_character(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && (uint8_t(text[at]) & 0xc0) == 0x80);
  return at;
}

}  // namespace

std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view name) {
  std::vector<std::pair<size_t, size_t>> stars;  // where in the name the text of each star begins and ends
  size_t p = 0, n = 0, after_star = std::string_view::npos;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      stars.emplace_back(n, n);
      after_star = ++p;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      n = behind_character(name, n);
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (after_star != std::string_view::npos) {
      // The last star takes one character more, and what follows it is tried again.
      p = after_star;
      n = ++stars.back().second;
    } else {
      return {};
    }
  }
  for (; p < pattern.size() && pattern[p] == '*'; ++p) stars.emplace_back(n, n);
  if (p < pattern.size()) return {};
  std::vector<std::string> texts;
  for (const auto& [begin, end] : stars) texts.emplace_back(name.substr(begin, end - begin));
  return texts;
}

size_t count_stars(std::string_view pattern) { return size_t(std::count(pattern.begin(), pattern.end(), '*')); }

std::string filled(std::string_view pattern, const std::vector<std::string>& texts) {
  std::string out;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '*') out += texts[next++];
    else out += c;
  }
  return out;
}

}  // namespace volta::io

// Kinds of characters by binary search, and the decoder of UTF-8.
#include "data/unicode.h"

#include <algorithm>

namespace volta::data {

CharKind kind_of(uint32_t c) {
  if (c < 128) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharKind::letter;
    if (c >= '0' && c <= '9') return CharKind::number;
    return c == ' ' || (c >= '\t' && c <= '\r') ? CharKind::space : CharKind::other;
  }
  const auto ranges = char_ranges();
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), c,
                                     [](uint32_t character, const CharRange& r) { return character < r.first; });
  return next != ranges.begin() && c <= std::prev(next)->last ? std::prev(next)->kind : CharKind::other;
}

Decoded decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint32_t(uint8_t(text[i])) : 0u; };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {};
  // The second byte's range leaves out overlong forms, surrogates and what is beyond U+10FFFF.
  const uint32_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint32_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  uint32_t character = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const uint32_t b = byte(i);
    if (b < (i == 1 ? low : 0x80) || b > (i == 1 ? high : 0xbf)) return {0xfffd, i, false};
    character = character << 6 | (b & 0x3f);
  }
  return {character, length, true};
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Decoded d = decode_utf8(text);
    if (d.valid) out += text.substr(0, d.bytes);
    else out += "\xef\xbf\xbd";
    text.remove_prefix(d.bytes);
  }
  return out;
}

}  // namespace volta::data

// Kinds of characters, and reading them from UTF-8.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace volta::data {

enum class CharKind : uint8_t { other, letter, number, space };
struct CharRange {
  uint32_t first, last;
  CharKind kind;
};
std::span<const CharRange> char_ranges();  // beyond ASCII, in order; what is in none is of another kind
CharKind kind_of(uint32_t character);

struct Decoded {
  uint32_t character = 0xfffd;
  size_t bytes = 1;
  bool valid = false;
};
// The character at the beginning of a text that is not empty. Of bytes that are no UTF-8, `bytes` counts those that one
// replacement character stands for.
Decoded decode_utf8(std::string_view text);
// The text with U+FFFD for what is no UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace volta::data

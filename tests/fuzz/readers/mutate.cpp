#include "readers.h"

namespace volta::fuzz {

std::string mutated(const std::string& whole, const std::string& other, std::mt19937_64& random) {
  static constexpr uint64_t odd[] = {0,          1,          0x7f,       0x80,       0xff,       0xffff,
                                     0x7fffffff, 0x80000000, 0xffffffff, 1ull << 62, 1ull << 63, ~0ull};
  std::string text = whole;
  const auto below = [&](size_t n) { return n == 0 ? 0 : size_t(random() % n); };
  const auto piece = [&](const std::string& of, size_t longest) { return of.substr(below(of.size()), below(longest)); };
  for (size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
    const size_t at = below(text.size());
    switch (below(9)) {
      case 0: text[at] = char(text[at] ^ 1 << below(8)); break;
      case 1: text[at] = char(random()); break;
      case 2: {  // in either byte order
        const uint64_t value = odd[below(std::size(odd))];
        const size_t bytes = std::min<size_t>(size_t(1) << below(4), text.size() - at);
        const bool big = below(2) == 0;
        for (size_t i = 0; i < bytes; ++i) text[at + i] = char(value >> 8 * (big ? bytes - 1 - i : i));
        break;
      }
      case 3: text.resize(at); break;
      case 4: text.erase(at, below(20)); break;
      case 5: text.insert(at, piece(text, 40)); break;
      case 6: text.insert(at, piece(other, 40)); break;
      case 7: text[at] = char("0123456789-+.eE\"{}[],: \n"[below(24)]); break;
      default: text.replace(at, std::min<size_t>(8, text.size() - at), text.substr(below(text.size()), 8));
    }
  }
  return text;
}

}  // namespace volta::fuzz

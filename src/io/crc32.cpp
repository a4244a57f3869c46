// The reflected polynomial 0xedb88320, by eight tables: one for each byte of a word.
#include "io/crc32.h"

#include <array>

#include "io/endian.h"

namespace volta::io {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    tables[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t t = 1; t < 8; ++t) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}
constexpr Tables tables = make_tables();

}  // namespace

uint32_t crc32(Bytes bytes, uint32_t before) {
  uint32_t c = ~before;
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    const uint64_t word = load_little<uint64_t>(bytes, at) ^ c;
    c = 0;
    for (size_t i = 0; i < 8; ++i) c ^= tables[7 - i][word >> 8 * i & 0xff];
  }
  for (; at < bytes.size(); ++at) c = c >> 8 ^ tables[0][(c ^ std::to_integer<uint32_t>(bytes[at])) & 0xff];
  return ~c;
}

}  // namespace volta::io

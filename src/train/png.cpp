// PNG (ISO/IEC 15948) with deflate blocks that are stored as they are.
#include "train/png.h"

#include <algorithm>
#include <limits>

#include "core/checked_arithmetic.h"
#include "io/crc32.h"

namespace volta {
namespace {

uint32_t adler32(std::string_view bytes) {
  constexpr uint32_t modulus = 65521;
  constexpr size_t run = 5552;  // so many bytes cannot overflow the sums
  uint32_t a = 1, b = 0;
  for (size_t at = 0; at < bytes.size(); at += run) {
    for (const char c : bytes.substr(at, run)) {
      a += uint8_t(c);
      b += a;
    }
    a %= modulus;
    b %= modulus;
  }
  return b << 16 | a;
}

void put_big(std::string& out, uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8) out += char(x >> shift & 0xFF);
}

void put_chunk(std::string& out, std::string_view type, std::string_view data) {
  put_big(out, uint32_t(data.size()));
  std::string body(type);
  body += data;
  out += body;
  put_big(out, io::crc32(io::as_bytes(body)));
}

std::string stored(std::string_view data) {
  constexpr size_t most = 65535;
  std::string out = "\x78\x01";
  for (size_t at = 0; at < data.size(); at += most) {
    const std::string_view block = data.substr(at, most);
    const auto length = uint16_t(block.size());
    out += char(at + most >= data.size());
    for (const uint16_t field : {length, uint16_t(~length)}) (out += char(field & 0xFF)) += char(field >> 8);
    out += block;
  }
  put_big(out, adler32(data));
  return out;
}

}  // namespace

std::string png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels, const char* op) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const int64_t row = (Checked(width) * channels).value(op);
  // The chunk holds a filter byte per row and 5 bytes per block besides.
  const bool fits = ((Checked(row) + 1) * height).within(1, most - (most / 65535 + 1) * 5 - 16);
  require(height > 0 && width > 0 && height <= most && width <= most && fits, ErrorKind::shape, op, "an image of ",
          height, " x ", width, " pixels is not one that PNG holds");
  std::string scanlines;
  scanlines.reserve(size_t((row + 1) * height));
  for (int64_t y = 0; y < height; ++y) {
    scanlines += '\0';  // no filter
    scanlines.append(reinterpret_cast<const char*>(pixels.data()) + y * row, size_t(row));
  }
  std::string head;
  put_big(head, uint32_t(width));
  put_big(head, uint32_t(height));
  const char colour = channels == 1 ? 0 : channels == 3 ? 2 : 6;
  for (const char c : {char(8), colour, char(0), char(0), char(0)}) head += c;
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", head);
  put_chunk(out, "IDAT", stored(scanlines));
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace volta

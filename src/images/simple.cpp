// Images that need no library: binary PPM and PGM, and BMP without compression.
#include <algorithm>
#include <charconv>
#include <cstring>

#include <volta/ops.h>

#include "data/file.h"
#include "images/decode.h"

namespace volta::data::images {
namespace {

// The next number of a PPM's header; comments go from # to the end of the line.
int64_t header_number(std::string_view& left, const Source& source) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!left.empty() && (space(left[0]) || left[0] == '#')) {
    if (left[0] == '#') left.remove_prefix(std::min(left.find('\n'), left.size()));
    else left.remove_prefix(1);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), value);
  require(error == std::errc() && value > 0, ErrorKind::io, read_op, source.name, " has a bad header");
  left.remove_prefix(size_t(end - left.data()));
  return value;
}

struct Bmp {
  int64_t width, height, bits, stride;
  bool from_top;
  std::string_view palette, pixels;
};

Bmp bmp_header(const Source& source) {
  const auto check = [&](bool fine, const auto&... why) { require(fine, ErrorKind::io, read_op, source.name, why...); };
  Bytes in(source.bytes, source.name, read_op);
  (void)in.take(10);
  const uint32_t pixels_at = in.little_endian_32(), header = in.little_endian_32();
  check(header >= 40, " has a BMP header of an old kind");
  Bmp b{};
  b.width = int32_t(in.little_endian_32());
  const int64_t height = int32_t(in.little_endian_32());
  b.from_top = height < 0;
  b.height = height < 0 ? -height : height;
  (void)in.take(2);
  b.bits = in.little_endian_16();
  const uint32_t compression = in.little_endian_32();
  (void)in.take(12);
  const uint32_t colours = in.little_endian_32();
  check(compression == 0 && (b.bits == 8 || b.bits == 24 || b.bits == 32), " is a BMP of ", b.bits,
        " bits and compression ", compression, "; 8, 24 and 32 bits without compression are read");
  check(b.width > 0 && b.height > 0, " is of size ", b.width, " x ", b.height);
  b.stride = (b.width * b.bits / 8 + 3) / 4 * 4;
  const Checked bytes = Checked(b.stride) * b.height;
  check(bytes.fits() && bytes.value(read_op) <= int64_t(source.bytes.size()) - int64_t(pixels_at), " ends too early");
  b.pixels = source.bytes.substr(pixels_at);
  const uint64_t palette_at = 14 + uint64_t(header), entries = colours == 0 ? 256 : colours;
  if (b.bits == 8) {
    check(entries <= 256 && palette_at + 4 * entries <= source.bytes.size(), " has a bad palette");
    b.palette = source.bytes.substr(size_t(palette_at), size_t(4 * entries));
  }
  return b;
}

}  // namespace

Tensor decode_pnm(const Source& source) {
  const int64_t channels = source.bytes[1] == '6' ? 3 : 1;
  std::string_view left = source.bytes.substr(2);
  const int64_t width = header_number(left, source), height = header_number(left, source),
                most = header_number(left, source);
  require(most <= 255, ErrorKind::io, read_op, source.name, " has numbers up to ", most, "; up to 255 are read");
  require(!left.empty(), ErrorKind::io, read_op, source.name, " ends too early");
  left.remove_prefix(1);
  const Checked bytes = Checked(width) * height * channels;
  require(bytes.within(0, int64_t(left.size())), ErrorKind::io, read_op, source.name, " says that it is ", width, " x ",
          height, ", but ", left.size(), " bytes follow");
  const Tensor x = canvas(height, width, channels, source);
  auto* to = static_cast<uint8_t*>(address(x));
  std::memcpy(to, left.data(), size_t(x.nbytes()));
  if (most < 255)
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = uint8_t(std::min<int64_t>(255, (to[i] * 255 + most / 2) / most));
  return finished(x, source.mode);
}

Tensor decode_bmp(const Source& source) {
  const Bmp b = bmp_header(source);
  const Tensor x = canvas(b.height, b.width, 3, source);
  auto* to = static_cast<uint8_t*>(address(x));
  for (int64_t y = 0; y < b.height; ++y) {
    const char* row = b.pixels.data() + (b.from_top ? y : b.height - 1 - y) * b.stride;
    for (int64_t i = 0; i < b.width; ++i) {
      const char* pixel = row + i * b.bits / 8;
      if (b.bits == 8) {
        const size_t entry = 4 * size_t(uint8_t(*pixel));
        require(entry < b.palette.size(), ErrorKind::io, read_op, source.name,
                " uses a colour that its palette has not");
        pixel = b.palette.data() + entry;
      }
      for (int64_t c = 0; c < 3; ++c) *to++ = uint8_t(pixel[2 - c]);  // stored as blue, green, red
    }
  }
  return finished(x, source.mode);
}

}  // namespace volta::data::images

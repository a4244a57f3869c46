// Whole files in and out, with errors that name them; and a reader of bytes that never goes past the end.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/check.h"

namespace volta::data {

// Files compressed with gzip are unpacked. Throws an Error of kind io that names the op and the file.
std::string read_file(const std::string& path, const char* op);
// Writes beside the file and renames, so that what was there before stays whole until the new one is.
void write_file(const std::string& path, std::string_view bytes, const char* op);
// Text that comes from a file, fit for a message: short, and without control characters.
std::string shown(std::string_view text);

// Numbers one after the other; what is not there is an Error.
class Bytes {
 public:
  Bytes(std::string_view bytes, const std::string& name, const char* op) : left_(bytes), name_(name), op_(op) {}

  size_t left() const { return left_.size(); }
  std::string_view take(uint64_t count) {
    require(count <= left_.size(), ErrorKind::io, op_, name_, " ends too early: ", count, " more bytes were expected, ",
            left_.size(), " are there");
    const std::string_view part = left_.substr(0, size_t(count));
    left_.remove_prefix(size_t(count));
    return part;
  }
  uint32_t big_endian_32() {
    const std::string_view b = take(4);
    return uint32_t(uint8_t(b[0])) << 24 | uint32_t(uint8_t(b[1])) << 16 | uint32_t(uint8_t(b[2])) << 8 | uint8_t(b[3]);
  }
  uint32_t little_endian_32() { return __builtin_bswap32(big_endian_32()); }
  uint32_t little_endian_16() {
    const std::string_view b = take(2);
    return uint32_t(uint8_t(b[1])) << 8 | uint8_t(b[0]);
  }

 private:
  std::string_view left_;
  const std::string& name_;
  const char* op_;
};

}  // namespace volta::data

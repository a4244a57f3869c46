// Whole numbers at a place of a file, whatever the byte order of the host.
#pragma once
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <string>

#include "io/file.h"

namespace volta::io {

template <std::unsigned_integral T> constexpr T byte_swapped(T value) {
  T out = 0;
  for (size_t i = 0; i < sizeof(T); ++i) out = T(out << 8 | (value >> 8 * i & 0xff));
  return out;
}

// The caller has checked that the bytes are there.
template <std::unsigned_integral T> T load_little(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return std::endian::native == std::endian::little ? value : byte_swapped(value);
}
template <std::unsigned_integral T> T load_big(Bytes bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return std::endian::native == std::endian::big ? value : byte_swapped(value);
}
template <std::unsigned_integral T> void append_little(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += char(value >> 8 * i & 0xff);
}

// Reverses each element of a list of `bytes` bytes in place.
inline void swap_elements(std::byte* data, size_t bytes, size_t element) {
  for (size_t i = 0; i + element <= bytes; i += element) std::reverse(data + i, data + i + element);
}

}  // namespace volta::io

// How protocol buffers and TFRecords are encoded.
#include "train/event_record.h"

#include <array>
#include <bit>

namespace volta {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82F63B78u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr std::array<uint32_t, 256> castagnoli = make_table();

template <class U> std::string little_endian(U value) {
  std::string out;
  for (size_t i = 0; i < sizeof(U); ++i) out += char(value >> (8 * i) & 0xFF);
  return out;
}

// A checksum of bytes that hold checksums themselves would be weak; the format masks it.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

}  // namespace

void ProtoMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += char(value | 0x80);
  text_ += char(value);
}
void ProtoMessage::key(int field, int type) { varint(uint64_t(field) << 3 | uint64_t(type)); }
template <class U> void ProtoMessage::little(U value) { text_ += little_endian(value); }

ProtoMessage& ProtoMessage::whole(int field, int64_t value) {
  key(field, 0);
  varint(uint64_t(value));
  return *this;
}
ProtoMessage& ProtoMessage::number(int field, double value) {
  key(field, 1);
  little(std::bit_cast<uint64_t>(value));
  return *this;
}
ProtoMessage& ProtoMessage::single(int field, float value) {
  key(field, 5);
  little(std::bit_cast<uint32_t>(value));
  return *this;
}
ProtoMessage& ProtoMessage::bytes(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  text_ += value;
  return *this;
}
ProtoMessage& ProtoMessage::numbers(int field, const std::vector<double>& values) {
  key(field, 2);
  varint(values.size() * sizeof(double));
  for (const double v : values) little(std::bit_cast<uint64_t>(v));
  return *this;
}

uint32_t crc32c(std::string_view bytes) {
  uint32_t c = ~0u;
  for (const char b : bytes) c = castagnoli[(c ^ uint8_t(b)) & 0xFF] ^ (c >> 8);
  return ~c;
}

std::string tf_record(std::string_view data) {
  std::string out = little_endian(uint64_t(data.size()));
  out += little_endian(masked(crc32c(out)));
  out += data;
  return out + little_endian(masked(crc32c(data)));
}

}  // namespace volta

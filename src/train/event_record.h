// Events as TensorBoard's files hold them: protocol buffers, framed as TFRecords.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace volta {

// A protocol buffer being written, field by field.
class ProtoMessage {
 public:
  ProtoMessage& whole(int field, int64_t value);
  ProtoMessage& number(int field, double value);
  ProtoMessage& single(int field, float value);
  ProtoMessage& bytes(int field, std::string_view value);
  ProtoMessage& message(int field, const ProtoMessage& value) { return bytes(field, value.text_); }
  ProtoMessage& numbers(int field, const std::vector<double>& values);  // packed
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value);
  void key(int field, int type);
  template <class U> void little(U value);
  std::string text_;
};

uint32_t crc32c(std::string_view bytes);
std::string tf_record(std::string_view data);  // length and data, each with its masked checksum

}  // namespace volta

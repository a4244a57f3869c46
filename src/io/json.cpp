// The grammar of RFC 8259, strict: no comments, no trailing commas, valid UTF-8 only.
#include "io/json.h"

#include <charconv>
#include <cmath>

namespace volta::io {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) out += char(c);
  else if (c < 0x800) out += {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
  else if (c < 0x10000) out += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
  else
    out += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 0x3f)), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
}

// The length of the character that begins a text, 0 where it is malformed, overlong or a surrogate.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : uint8_t(0); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0, surrogate = first == 0xed && byte(1) >= 0xa0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90, beyond = first == 0xf4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string json_quote(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (c == '\b') out += "\\b";
    else if (c == '\f') out += "\\f";
    else if (uint8_t(c) < 0x20) (out += "\\u00") += {digits[uint8_t(c) >> 4], digits[c & 15]};
    else out += c;
  }
  return out += '"';
}

void JsonReader::fail(const std::string& what) const {
  context_.fail(part_, ": ", what, ", at byte ", int64_t(at_), " of it");
}

char JsonReader::next() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::expect(char c) {
  if (next() != c) fail(std::string("'") + c + "' is missing");
  ++at_;
}

void JsonReader::open(char bracket, const char* what) {
  if (next() != bracket) fail(std::string(what) + " is missing");
  ++at_;
  if (++depth_ > max_depth) fail("values are nested too deeply");
}

bool JsonReader::closes(char bracket, bool first) {
  const char c = next();
  if (c == bracket) {
    ++at_;
    return true;
  }
  if (first) return false;
  if (c != ',') fail(std::string("',' or '") + bracket + "' is missing");
  ++at_;
  return false;
}

bool JsonReader::takes(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

uint32_t JsonReader::four_hex() {
  uint32_t value = 0;
  if (text_.size() - at_ < 4) fail("an escape is cut short");
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, begin + 4, value, 16);
  if (error != std::errc() || end != begin + 4) fail("an escape is not four hexadecimal digits");
  at_ += 4;
  return value;
}

void JsonReader::escape(std::string& out) {
  static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  if (const size_t place = from.find(c); c != '\0' && place != std::string_view::npos) {
    out += to[place];
    return;
  }
  if (c != 'u') fail("an unknown escape");
  uint32_t point = four_hex();
  if (point >= 0xd800 && point < 0xdc00) {
    if (!takes("\\u")) fail("a surrogate without its other half");
    const uint32_t low = four_hex();
    if (low < 0xdc00 || low >= 0xe000) fail("a surrogate without its other half");
    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
  } else if (point >= 0xdc00 && point < 0xe000) {
    fail("a surrogate without its other half");
  }
  append_utf8(out, point);
}

std::string JsonReader::string() {
  if (next() != '"') fail("a string is missing");
  ++at_;
  std::string out;
  for (;;) {
    if (at_ >= text_.size()) fail("a string does not end");
    const char c = text_[at_];
    if (c == '"') break;
    if (uint8_t(c) < 0x20) fail("a control character in a string");
    if (c == '\\') {
      ++at_;
      escape(out);
      continue;
    }
    const size_t length = utf8_length(text_.substr(at_));
    if (length == 0) fail("a string is not valid UTF-8");
    out += text_.substr(at_, length);
    at_ += length;
  }
  ++at_;
  return out;
}

std::string_view JsonReader::number_text() {
  next();
  const size_t begin = at_;
  const auto digits = [&] {
    const size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == from) fail("a number is missing");
    return at_ - from;
  };
  takes("-");
  const bool zero = at_ < text_.size() && text_[at_] == '0';
  if (digits() > 1 && zero) fail("a number begins with 0");
  if (takes(".")) digits();
  if (takes("e") || takes("E")) {
    if (!takes("+")) takes("-");
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

int64_t JsonReader::integer() {
  const std::string_view text = number_text();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("'" + std::string(text.substr(0, 40)) + "' is not a whole number of 64 bits");
  return value;
}

double JsonReader::number() {
  const std::string_view text = number_text();
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool JsonReader::boolean() {
  next();
  if (takes("true")) return true;
  if (!takes("false")) fail("true or false is missing");
  return false;
}

void JsonReader::skip() {
  switch (next()) {
    case '{': object([&](const std::string&) { skip(); }); break;
    case '[': array([&] { skip(); }); break;
    case '"': string(); break;
    case 't':
    case 'f': boolean(); break;
    case 'n':
      if (!takes("null")) fail("a value is missing");
      break;
    default: number_text();
  }
}

void JsonReader::end() {
  if (next() != '\0' || at_ != text_.size()) fail("something follows after the end");
}

}  // namespace volta::io

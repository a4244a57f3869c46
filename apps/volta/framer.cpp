#include "framer.h"

#include <algorithm>
#include <charconv>

namespace volta::app {
namespace {

constexpr size_t max_target = 8000, max_chunk_line = 256;
constexpr std::string_view methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};

bool same(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

bool read_number(std::string_view text, int base, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

// httplib would cut the answer of a POST to a range too, and read 8 KiB of what curl -d calls a form.
bool is_passed_over(std::string_view name, std::string_view value) {
  constexpr std::string_view form = "application/x-www-form-urlencoded";
  return same(name, "range") || (same(name, "content-type") && same(value.substr(0, form.size()), form));
}

// The length of a chunk; what stands after ; is for nobody.
bool read_length(std::string_view line, size_t& length) {
  return read_number(trimmed(line.substr(0, line.find(';'))), 16, length);
}

}  // namespace

Framer::State Framer::refuse(int status, std::string why) {
  status_ = status;
  why_ = std::move(why);
  return State::refused;
}

Framer::State Framer::look(std::string_view all) {
  if (status_) return State::refused;
  if (head_ == 0) {
    const size_t end = all.substr(0, max_head).find("\r\n\r\n", at_);
    if (end == std::string_view::npos) {
      at_ = std::max<size_t>(all.size(), 3) - 3;
      return all.size() < max_head ? State::partial
                                   : refuse(431, "the headers are longer than " + std::to_string(max_head) + " bytes");
    }
    head_ = at_ = end + 4;
    if (read_head(all.substr(0, end)) == State::refused) return State::refused;
  }
  if (chunked_) return look_at_chunks(all);
  size_ = head_ + body_;
  return all.size() >= size_ ? State::whole : State::partial;
}

// METHOD TARGET HTTP/1.x
Framer::State Framer::read_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == last || first == std::string_view::npos || !is_token(line.substr(0, first)) ||
      !is_token(line.substr(first + 1, last - first - 1)))
    return refuse(400, "the request does not start as HTTP does");
  if (std::find(std::begin(methods), std::end(methods), line.substr(0, first)) == std::end(methods))
    return refuse(400, "the method is unknown");
  if (last - first > max_target) return refuse(414, "the path is too long");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse(400, "the protocol is HTTP/1.1 or HTTP/1.0");
  return State::partial;
}

Framer::State Framer::read_head(std::string_view head) {
  if (read_line(head.substr(0, head.find("\r\n"))) == State::refused) return State::refused;
  for (size_t at = head.find("\r\n"); at != std::string_view::npos;) {
    const size_t next = head.find("\r\n", at + 2);
    const std::string_view line = head.substr(at + 2, next == std::string_view::npos ? next : next - at - 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return refuse(400, "a header has no colon");
    // With a blank before its colon, a length would be one to some readers and none to others.
    if (!is_token(line.substr(0, colon))) return refuse(400, "the name of a header is not one word");
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
      return refuse(400, "a header holds a line end or a NUL byte");
    if (read_field(line.substr(0, colon), trimmed(line.substr(colon + 1))) == State::refused) return State::refused;
    at = next;
  }
  if (chunked_ && length_given_) return refuse(400, "Content-Length and Transfer-Encoding exclude each other");
  if (body_ > max_body_)
    return refuse(413, "the body has " + std::to_string(body_) + " bytes, the limit is " + std::to_string(max_body_));
  return State::partial;
}

Framer::State Framer::read_field(std::string_view name, std::string_view value) {
  if (same(name, "content-length")) {
    size_t length = 0;
    if (!read_number(value, 10, length) || (length_given_ && length != body_))
      return refuse(400, "Content-Length is not a number");
    length_given_ = true;
    body_ = length;
  } else if (same(name, "transfer-encoding")) {
    if (!same(value, "chunked")) return refuse(400, "the only transfer encoding understood is chunked");
    chunked_ = true;
  } else if (same(name, "content-encoding")) {
    // Unpacked, a small body may be of any size.
    if (!value.empty() && !same(value, "identity"))
      return refuse(415, "the body is compressed; send it as it is, without Content-Encoding");
  } else if (same(name, "expect")) {
    if (!same(value, "100-continue")) return refuse(417, "the only expectation understood is 100-continue");
    continue_ = true;
  }
  altered_ = altered_ || is_passed_over(name, value);
  return State::partial;
}

Framer::State Framer::look_at_chunks(std::string_view all) {
  while (true) {
    // Chunks of a byte come with five bytes around them: their sum is bounded too.
    if (at_ - head_ > 2 * max_body_ + max_head)
      return refuse(413,
                    "the chunks of the body are too many for the limit of " + std::to_string(max_body_) + " bytes");
    const size_t end = all.find("\r\n", at_);
    if (end == std::string_view::npos)
      return all.size() - at_ <= max_chunk_line ? State::partial : refuse(400, "a chunk does not say how long it is");
    const std::string_view line = all.substr(at_, end - at_);
    if (trailers_) {
      at_ = end + 2;
      if (!line.empty()) continue;
      size_ = at_;
      return State::whole;
    }
    size_t length = 0;
    if (!read_length(line, length)) return refuse(400, "a chunk does not say how long it is");
    if (length > max_body_ - body_)
      return refuse(413, "the body is longer than the limit of " + std::to_string(max_body_) + " bytes");
    const size_t next = end + 2 + (length ? length + 2 : 0);
    if (all.size() < next) return State::partial;
    if (length && all.substr(next - 2, 2) != "\r\n") return refuse(400, "a chunk is not as long as it says");
    body_ += length;
    trailers_ = length == 0;
    at_ = next;
  }
}

std::string Framer::joined(std::string_view all) const {
  std::string out;
  for (size_t at = 0; at + 2 < head_;) {
    const size_t next = all.find("\r\n", at) + 2;
    const std::string_view line = all.substr(at, next - at);
    const size_t colon = std::min(line.find(':'), line.size() - 1);
    const std::string_view name = line.substr(0, colon);
    const bool framing = same(name, "transfer-encoding") || same(name, "content-length");
    if (!framing && !is_passed_over(name, trimmed(line.substr(colon + 1)))) out += line;
    at = next;
  }
  if (chunked_ || length_given_) out += "Content-Length: " + std::to_string(body_) + "\r\n";
  out += "\r\n";
  if (!chunked_) return out.append(all.substr(head_, body_));
  for (size_t at = head_, length = 1; length != 0;) {
    const size_t end = all.find("\r\n", at);
    read_length(all.substr(at, end - at), length);
    out += all.substr(end + 2, length);
    at = end + 2 + length + 2;
  }
  return out;
}

}  // namespace volta::app

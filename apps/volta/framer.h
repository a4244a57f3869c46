// Where an HTTP request ends in the bytes that have arrived so far.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace volta::app {

class Framer {
 public:
  enum class State { partial, whole, refused };
  static constexpr size_t max_head = 16 << 10;

  explicit Framer(size_t max_body) : max_body_(max_body) {}
  // `all` starts with the request and has grown since the last call. Work done before is not repeated: a request that comes
  // byte by byte costs no more than one that comes at once.
  State look(std::string_view all);

  size_t size() const { return size_; }                  // of a whole request
  bool plain() const { return !chunked_ && !altered_; }  // a whole request can be handed on as it came
  // A whole request as one with its length: without chunks, and without fields that nobody should act on.
  std::string joined(std::string_view all) const;
  bool expects_continue() const { return continue_; }
  int status() const { return status_; }  // of a refused one
  const std::string& why() const { return why_; }

 private:
  State refuse(int status, std::string why);
  State read_line(std::string_view line);
  State read_head(std::string_view head);
  State read_field(std::string_view name, std::string_view value);
  State look_at_chunks(std::string_view all);

  size_t max_body_, head_ = 0, at_ = 0, size_ = 0, body_ = 0;
  bool length_given_ = false, chunked_ = false, altered_ = false, trailers_ = false, continue_ = false;
  int status_ = 0;
  std::string why_;
};

}  // namespace volta::app

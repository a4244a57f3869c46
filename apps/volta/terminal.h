// How the command talks: colour and updating lines on a terminal only, JSON where machines read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace volta::app {

struct Terminal {
  bool json = false;    // one JSON object per line on standard output, nothing else there
  bool colour = false;  // of standard output
  static Terminal detect(bool json);
  std::string bold(const std::string& text) const { return colour ? "\033[1m" + text + "\033[0m" : text; }
  std::string faint(const std::string& text) const { return colour ? "\033[2m" + text + "\033[0m" : text; }
};

// Exit codes: 0, what went wrong while running, what was wrong with the arguments; 130 after Ctrl-C.
enum Exit { ok = 0, failed = 1, usage = 2, interrupted = 130 };

std::string quoted(const std::string& text);  // as a shell takes it for one word
std::string with_commas(int64_t number);      // 1,234,567
std::string bytes_text(double bytes);         // 1.2 MB

size_t utf8_length(std::string_view text);  // bytes of the character at the front; 0 where there is none
// What comes out of files, for a terminal: control characters and bytes that are no UTF-8 are spelled out, as \x1b. With
// `lines`, line ends and tabs stay.
std::string printable(std::string_view text, bool lines = false);

}  // namespace volta::app

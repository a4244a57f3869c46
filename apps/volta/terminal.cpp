#include "terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace volta::app {

Terminal Terminal::detect(bool json) {
  const char* const off = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  const bool dumb = kind && std::string(kind) == "dumb";
  return {json, !json && !(off && *off) && !dumb && isatty(STDOUT_FILENO) != 0};
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = int64_t(text.size()) - 3, first = number < 0 ? 1 : 0; at > first; at -= 3)
    text.insert(size_t(at), 1, ',');
  return text;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

}  // namespace volta::app

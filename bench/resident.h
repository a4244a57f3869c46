// The largest resident memory of this process so far, as Linux accounts for it.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

namespace bench {

inline long peak_resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stol(line.substr(6));
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

}  // namespace bench

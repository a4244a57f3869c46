// The processors that affinity and cgroups leave to this process.
#include "core/processors.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace volta {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the folder of one cgroup says, in the form of version 2.
std::string quota_of(const std::filesystem::path& folder) {
  const std::string quota = text_of(folder / "cpu.max");
  if (!quota.empty()) return quota;
  return text_of(folder / "cpu.cfs_quota_us") + " " + text_of(folder / "cpu.cfs_period_us");
}

// Whether a comma-separated list has a word.
bool lists(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

}  // namespace

int within_quota(int count, const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  double quota = 0, period = 0;
  if (text >> quota >> period && quota > 0 && period > 0)
    count = int(std::min<double>(count, std::round(quota / period)));
  return std::max(count, 1);
}

int within_cgroups(int count, const std::string& membership, const std::filesystem::path& root) {
  const auto within = [&count](const std::filesystem::path& folder) { count = within_quota(count, quota_of(folder)); };
  within(root);
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);  // number:controllers:path
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists(controllers, "cpu")) continue;
    const std::filesystem::path path = line.substr(second + 1);
    for (const char* mixed : {"", "unified"}) {  // version 2 has a folder of its own beside version 1
      std::filesystem::path folder = controllers.empty() ? root / mixed : root / controllers;
      within(folder);
      for (const auto& name : path.relative_path()) {
        if (name == "..") break;  // a cgroup outside of what this process sees
        folder /= name;
        within(folder);
      }
    }
  }
  return count;
}

int available_processors() {
  int count = int(std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  return within_cgroups(count, text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace volta

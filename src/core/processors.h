// How many threads this process should use.
#pragma once
#include <filesystem>
#include <string>

namespace volta {

// The number of `count` processors that a cgroup leaves, by the text of its cpu.max: "150000 100000" is one and a half, which
// counts as two; "max 100000" is all of them. At least one.
int within_quota(int count, const std::string& cpu_max);

// The same for the cgroup of a process and all above it: `membership` is the text of /proc/self/cgroup, `root` where the
// system keeps its cgroups, of version 2 or 1. Inside a container the path may be that of the host: then only the root is there.
int within_cgroups(int count, const std::string& membership, const std::filesystem::path& root);

// By affinity and cgroups.
int available_processors();

}  // namespace volta

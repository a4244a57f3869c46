// How many threads this process should use.
#pragma once
#include <string>

namespace volta {

// The number of `count` processors that a cgroup leaves, by the text of its cpu.max: "150000 100000" is one and a half, which
// counts as two; "max 100000" is all of them. At least one.
int within_quota(int count, const std::string& cpu_max);

}  // namespace volta

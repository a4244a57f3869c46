// What became of each parallel loop, told to a tool that asks: how long its threads worked and how long they waited.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>

namespace volta {

// What one worker did in a loop; times in nanoseconds of the steady clock.
struct alignas(64) WorkerStint {
  int64_t joined = 0, done = 0, parts = 0;  // no parts: it did not come in time
};

struct WatchedRegion {
  int64_t parts;
  int threads;                     // that the loop could have had
  int64_t start, owner_done, end;  // `end`: when the last worker was done as well
  std::span<const WorkerStint> workers;
};

// Called by the thread that owns the loop when it has ended; loops inside loops are parts of these. No watch costs a load and a
// branch for a loop. One that is set or taken away while loops run sees some of them.
using RegionWatch = void (*)(const WatchedRegion& region);
extern constinit std::atomic<RegionWatch> region_watch;

}  // namespace volta

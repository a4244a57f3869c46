// The regions open on each thread, and the list of those who are told of them.
#include "core/profile.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/fork.h"

namespace volta::profile {

constinit Listeners listeners = {0, 0};

namespace {

constinit std::mutex mutex;
[[maybe_unused]] const bool forks_wait = fork_waits_for(mutex);
constinit std::vector<Sink*> list;

struct Frame {
  std::string name;
  Kind kind;
  Device device;
  int64_t start, children = 0, bytes = 0;
};

struct Thread {
  std::vector<Frame> frames;
  int backward = 0;     // open regions of that kind
  int64_t pending = 0;  // bytes allocated since the last region began or ended: the next op's
  uint32_t number = 0;
};
constinit std::atomic<uint32_t> threads = 0;

Thread& this_thread() {
  static thread_local Thread thread{.frames = {}, .number = threads.fetch_add(1)};
  return thread;
}

template <class F> void tell(F f) {
  const std::lock_guard lock(mutex);
  for (Sink* sink : list) f(*sink);
}

}  // namespace

int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void add(Sink& sink, void (*turn)(bool on)) {
  const std::lock_guard lock(mutex);
  list.push_back(&sink);
  if (listeners.all.fetch_add(1) == 0) turn(true);
  listeners.waiting.fetch_add(sink.waits_for_devices);
}

void remove(Sink& sink, void (*turn)(bool on)) {
  const std::lock_guard lock(mutex);
  if (std::erase(list, &sink) == 0) return;
  if (listeners.all.fetch_sub(1) == 1) turn(false);
  listeners.waiting.fetch_sub(sink.waits_for_devices);
}

// What profiling itself cannot get memory for is left out of the record; the program goes on.
void note_allocation(std::string_view op, Device device, int64_t bytes, int64_t in_use) noexcept try {
  Thread& t = this_thread();
  t.pending += bytes;
  const Allocation a{op, device, t.number, now(), bytes, in_use, t.backward > 0};
  tell([&](Sink& sink) { sink.allocated(a); });
} catch (const std::exception&) {}

bool begin_region(Kind kind, std::string_view name, Device device) noexcept try {
  Thread& t = this_thread();
  const int64_t before = std::exchange(t.pending, 0);
  if (kind != Kind::op && !t.frames.empty()) t.frames.back().bytes += before;
  t.frames.push_back({std::string(name), kind, device, 0});
  if (kind == Kind::op) t.frames.back().bytes = before;
  t.backward += kind == Kind::backward;
  t.frames.back().start = now();
  return true;
} catch (const std::exception&) {
  return false;
}

void end_region() noexcept try {
  const int64_t end = now();
  Thread& t = this_thread();
  Frame frame = std::move(t.frames.back());
  t.frames.pop_back();
  t.backward -= frame.kind == Kind::backward;
  frame.bytes += std::exchange(t.pending, 0);
  const int64_t duration = end - frame.start;
  if (!t.frames.empty()) {
    t.frames.back().children += duration;
    t.frames.back().bytes += frame.bytes;
  }
  const Event event{frame.name, frame.kind, frame.device, t.number, frame.start, duration, duration - frame.children,
                    frame.bytes};
  tell([&](Sink& sink) { sink.ended(event); });
} catch (const std::exception&) {}

}  // namespace volta::profile

// Profiler: what ran while it lives, for how long, and in how much memory.
//
//   Profiler profiler;
//   { ProfileScope scope("forward"); loss = cross_entropy(model(x), y); }
//   loss.backward();
//   std::cout << profiler.table() << profiler.memory().str();
//   profiler.write_trace("trace.json");  // for chrome://tracing or ui.perfetto.dev
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <volta/choice.h>
#include <volta/device.h>
#include <volta/shape.h>

namespace volta {

struct ProfilerOptions {
  // Wait for a GPU after every call, so that a call's time is that of its work; without it, that of its launch.
  bool sync = false;
  Int max_events = 1'000'000;  // kept for the trace; the table counts all
};

// Calls of one name. A backward node bears the name of its op, and stands apart from the forward calls.
struct ProfileRow {
  std::string name;
  std::string kind;  // "op", "backward" or "scope"
  int64_t calls = 0;
  double total = 0, self = 0;  // seconds; self: without what ran inside
  int64_t bytes = 0;           // allocated
};

enum class ProfileSort { total, self, calls, average, memory, name };
constexpr std::array<std::string_view, 6> choice_names(ProfileSort) {
  return {"total", "self", "calls", "average", "memory", "name"};
}
struct ProfileTableOptions {
  Choice<ProfileSort> sort_by = ProfileSort::self;
  Int top = 20;  // rows
};

// Bytes held by tensors on one device. The peaks are those at an allocation, in and outside of backward passes.
struct MemoryReport {
  struct Op {
    std::string name;
    int64_t calls = 0, bytes = 0;  // allocations made for it
  };
  int64_t current = 0, peak = 0, peak_forward = 0, peak_backward = 0;
  std::vector<Op> by_op = {};  // largest first
  std::string str() const;
};

// Sees the calls of all threads. Several may live at once, each seeing everything. Results are the same with and without
// it; off, an op finds its backend by one load.
class Profiler {
 public:
  explicit Profiler(const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void stop();                           // sees nothing more; what was seen can still be read
  std::vector<ProfileRow> rows() const;  // by name and kind, the longest first
  std::string table(const ProfileTableOptions& options = {}) const;
  MemoryReport memory(const Device& device = {}) const;
  void write_trace(const std::string& path) const;  // Chrome's trace format: JSON
  int64_t dropped() const;                          // events beyond max_events

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A region of one's own, in the table and in the trace; of no cost when nobody profiles: ProfileScope scope("epoch").
class [[nodiscard]] ProfileScope {
 public:
  explicit ProfileScope(std::string_view name);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  bool open_;
};

}  // namespace volta

// Recording: a step that a device records in order to replay it, as its host side sees it: the numbers that the host chooses
// anew for every replay, and the work that it does for them.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <volta/device.h>
#include <volta/random.h>
#include <volta/update_rule.h>

#include "core/check.h"

namespace volta {

class Recording {
 public:
  enum class Phase { none, watched, recorded };  // watched: a run that shows which devices the step uses
  using Constants = std::array<double, detail::UpdateRule::max_constants>;

  // What random numbers were drawn from while recording, and where the next replay draws from.
  struct Draw {
    Generator* generator;
    uint64_t counters;
    Generator::State recorded, now;
  };

  // The recording of this thread, if a step is being recorded.
  static Recording* current() noexcept { return phase_ == Phase::recorded ? current_ : nullptr; }
  static void use(Device device) {
    if (phase_ == Phase::watched) [[unlikely]]
      current_->add(device);
  }
  // Throws while a step is being recorded.
  static void refuse(const char* op, const char* why) {
    if (current()) throw_error(ErrorKind::device, op, "cannot be part of a captured step: ", why);
  }

  // The latest draw from this state, as a checkpoint draws twice from one; nothing if it was drawn before the recording.
  std::optional<size_t> find_draw(const Generator::State& state) const {
    const auto found = std::find_if(draws.rbegin(), draws.rend(), [&](const Draw& d) { return d.recorded == state; });
    if (found == draws.rend()) return {};
    return size_t(draws.rend() - found) - 1;
  }
  size_t draw_of(const Generator::State& state) const {
    const std::optional<size_t> found = find_draw(state);
    require(found.has_value(), ErrorKind::internal, "capture", "random numbers that no generator gave");
    return *found;
  }
  // Before a replay: the host's work in its order, and fresh places in the random streams.
  void renew() {
    for (Draw& d : draws) d.now = d.generator->take(d.counters);
    for (const auto& work : host_work) work();
  }

  std::vector<Draw> draws;
  std::vector<Constants> constants;  // of update calls
  std::vector<std::function<void()>> host_work;
  std::vector<std::function<void()>> undo;  // what the host counted, if the recording fails: nothing was carried out
  std::vector<Device> devices;

 private:
  friend class RecordingScope;
  void add(Device device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  static inline thread_local constinit Recording* current_ = nullptr;
  static inline thread_local constinit Phase phase_ = Phase::none;
};

// This thread's recording, and its phase, while it lives.
class RecordingScope {
 public:
  RecordingScope(Recording* recording, Recording::Phase phase)
      : outer_(std::exchange(Recording::current_, recording)), phase_(std::exchange(Recording::phase_, phase)) {}
  ~RecordingScope() {
    Recording::current_ = outer_;
    Recording::phase_ = phase_;
  }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  Recording* outer_;
  Recording::Phase phase_;
};

}  // namespace volta

// Where time and memory go, told to those who profile: regions that nest on each thread, and allocations.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include <volta/device.h>

namespace volta::profile {

enum class Kind : uint8_t { op, backward, scope };

// A region that has ended; times in nanoseconds of the steady clock.
struct Event {
  std::string_view name;
  Kind kind;
  Device device;
  uint32_t thread;  // a small number for each
  int64_t start, duration;
  int64_t self;   // without the regions inside
  int64_t bytes;  // allocated for it: inside, and, for an op, by its thread just before
};

struct Allocation {
  std::string_view op;
  Device device;
  uint32_t thread;
  int64_t time, bytes;
  int64_t in_use;  // of the device, with this
  bool backward;   // within a backward pass
};

class Sink {
 public:
  explicit Sink(bool waits) : waits_for_devices(waits) {}
  virtual void ended(const Event& event) = 0;
  virtual void allocated(const Allocation& allocation) = 0;
  const bool waits_for_devices;  // so that an op's time is that of its work, not of its launch

 protected:
  ~Sink() = default;
};
// From now on it is told, one call at a time; and when remove() returns nothing more. `turn` is called when the first
// comes and when the last has gone, to turn on and off what is timed.
void add(Sink& sink, void (*turn)(bool on));
void remove(Sink& sink, void (*turn)(bool on));

struct Listeners {
  std::atomic<int> all, waiting;
};
extern constinit Listeners listeners;
inline bool on() noexcept { return listeners.all.load(std::memory_order_relaxed) > 0; }
inline bool waits() noexcept { return listeners.waiting.load(std::memory_order_relaxed) > 0; }

int64_t now() noexcept;
void note_allocation(std::string_view op, Device device, int64_t bytes, int64_t in_use) noexcept;

// Opens a region of this thread, and closes the one opened last. False where there was no memory to open it.
bool begin_region(Kind kind, std::string_view name, Device device) noexcept;
void end_region() noexcept;

// A region of this thread, while it lives. When nobody profiles it is one load and a branch.
class [[nodiscard]] Region {
 public:
  Region(Kind kind, std::string_view name, Device device = {}) : open_(on()) {
    if (open_) [[unlikely]]
      open_ = begin_region(kind, name, device);
  }
  ~Region() {
    if (open_) [[unlikely]]
      end_region();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  bool open_;
};

}  // namespace volta::profile

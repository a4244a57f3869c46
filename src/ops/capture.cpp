// capture: watches a step, has its device record it, replays it.
#include <volta/capture.h>

#include <set>
#include <vector>

#include "backend/backend.h"
#include "backend/profile.h"
#include "core/impl.h"
#include "core/recording.h"
#include "core/watch.h"

namespace volta::detail {
namespace {

// Holds a reference to all memory that a recorded step reads, because replays use its addresses. Refuses memory of the host.
class Keeper final : public MemoryWatch {
 public:
  Keeper() : outer_(std::exchange(memory_watch, this)) {}
  ~Keeper() { memory_watch = outer_; }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void made(const Storage& memory) override {
    require(!memory.device.is_cpu(), ErrorKind::device, "capture",
            "the step makes a tensor on the CPU, which no replay would make again; make it before, or on the GPU");
    made_.insert(&memory);
  }
  void read(const Tensor& x) override {
    IntrusivePtr<Storage>& memory = x.impl().storage;
    if (!made_.contains(memory.get()) && seen_.insert(memory.get()).second) kept.push_back(memory);
  }

  std::vector<IntrusivePtr<Storage>> kept;

 private:
  MemoryWatch* outer_;
  std::set<const Storage*> made_, seen_;
};

}  // namespace

struct Replay::State {
  Recording recording;
  std::unique_ptr<Recorded> recorded;
  std::vector<IntrusivePtr<Storage>> kept;
  bool ran = false;
};

Replay::Replay() : state_(std::make_unique<State>()) {}
Replay::~Replay() = default;
Replay::Replay(Replay&&) noexcept = default;
Replay& Replay::operator=(Replay&&) noexcept = default;

void Replay::run(const std::function<void()>& step) {
  require(state_ != nullptr, ErrorKind::argument, "capture", "the captured step was moved from");
  State& s = *state_;
  require(!Recording::current(), ErrorKind::device, "capture", "a captured step cannot be part of another");
  if (s.recorded) {
    s.recording.renew();
    return s.recorded->replay();
  }
  if (!s.ran) {
    const RecordingScope watched(&s.recording, Recording::Phase::watched);
    step();
    s.ran = true;
    return;
  }
  const std::vector<Device>& devices = s.recording.devices;
  if (devices.empty() || !own_backend(devices[0]).records()) return step();
  require(devices.size() == 1, ErrorKind::device, "capture", "the step runs on ", devices[0].str(), " and ",
          devices.back().str(), "; it can be on one device only");
  Recording recording;
  recording.devices = devices;
  s.recording = std::move(recording);
  Keeper keeper;
  std::unique_ptr<Recorded> recorded = [&] {
    const RecordingScope recorded_now(&s.recording, Recording::Phase::recorded);
    try {
      auto now = own_backend(devices[0]).record(s.recording, step);
      require(!s.recording.lost_generator, ErrorKind::device, "capture",
              "the step draws from a generator that it makes itself; make it before, so that replays go on drawing "
              "from it");
      return now;
    } catch (...) {
      for (auto work = s.recording.undo.rbegin(); work != s.recording.undo.rend(); ++work) (*work)();
      throw;
    }
  }();
  s.kept = std::move(keeper.kept);
  recorded->replay();
  s.recorded = std::move(recorded);
}

}  // namespace volta::detail

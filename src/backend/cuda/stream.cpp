// Streams and events as values.
#include <volta/cuda.h>

#include "backend/cuda/context.h"
#include "core/recording.h"

namespace volta::cuda {
namespace {

bool passed(cudaError_t status, const char* op) {
  if (status == cudaErrorNotReady) return false;
  check(status, op);
  return true;
}

template <class T> T& held(const std::unique_ptr<T>& state, const char* op) {
  require(state != nullptr, ErrorKind::argument, op, "it was moved from");
  return *state;
}

}  // namespace

struct Event::State {
  int device;
  cudaEvent_t event = nullptr;
  explicit State(int on) : device(on) {
    const OnDevice current(context(device).device);
    check(cudaEventCreate(&event), "event");
  }
  ~State() { cudaEventDestroy(event); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Event::Event(int device) : state_(std::make_unique<State>(device)) {}
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::record() {
  Recording::refuse("event", "replays do not pass it");
  const State& s = held(state_, "event");
  const OnDevice current(s.device);
  check(cudaEventRecord(s.event, context(s.device).stream()), "event");
}
void Event::wait() const {
  Recording::refuse("event", "replays do not wait for it");
  const State& s = held(state_, "event");
  const OnDevice current(s.device);
  check(cudaStreamWaitEvent(context(s.device).stream(), s.event, 0), "event");
}
bool Event::query() const { return passed(cudaEventQuery(held(state_, "event").event), "event"); }
void Event::synchronize() const {
  Recording::refuse("event", "it waits for the device");
  wait_for(held(state_, "event").event, "event");
}
double Event::elapsed_time(const Event& end) const {
  float time = 0;
  check(cudaEventElapsedTime(&time, held(state_, "event").event, held(end.state_, "event").event), "event");
  return double(time);
}

struct Stream::State {
  Context& context;
  const Lane* lane;
  explicit State(int device) : context(cuda::context(device)), lane(context.take_lane()) {}
  ~State() { context.give_lane(lane); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Stream::Stream(int device) : state_(std::make_unique<State>(device)) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

bool Stream::query() const { return passed(cudaStreamQuery(held(state_, "stream").lane->stream), "stream"); }
void Stream::synchronize() const {
  Recording::refuse("stream", "it waits for the device");
  const State& s = held(state_, "stream");
  const OnLane here(*s.lane);
  s.context.synchronize("stream");
}
OnStream::OnStream(const Stream& stream) : outer_(current_lane) {
  Recording::refuse("stream", "a step is captured on a stream of its own");
  current_lane = held(stream.state_, "stream").lane;
}
OnStream::~OnStream() { current_lane = static_cast<const Lane*>(outer_); }

}  // namespace volta::cuda

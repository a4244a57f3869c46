// What builds without CUDA answer when asked for a GPU.
#ifndef VOLTA_HAVE_CUDA
#include <volta/cuda.h>
#include <volta/device.h>
#include <volta/error.h>

#include <string>

#include "backend/cuda/cuda.h"

namespace volta {

Backend& cuda_backend(int index) {
  throw Error(Error::Kind::device, "device", "cuda:" + std::to_string(index) + " is not available: built without CUDA");
}

namespace cuda {
bool is_available() { return false; }
int device_count() { return 0; }
void synchronize(int device) { cuda_backend(device); }
MemoryStats memory_stats(int device) {
  cuda_backend(device);
  return {};
}
void empty_cache(int device) { cuda_backend(device); }
void allow_tf32(bool) {}
void set_conv_workspace(int64_t) {}
void set_timeout(double seconds) { check_timeout(seconds); }
void set_debug(bool) {}
void set_memory_limit(int64_t bytes, int device) {
  check_memory_limit(bytes);
  cuda_backend(device);
}
// NOLINTNEXTLINE(performance-unnecessary-value-param): as it is declared
void on_low_memory(double share, std::function<void(const MemoryStats&)>, int device) {
  check_share(share);
  cuda_backend(device);
}
std::vector<MemoryBlock> memory_snapshot(int device) {
  cuda_backend(device);
  return {};
}
Tensor pin_memory(const Tensor&) {
  cuda_backend(0);
  return {};
}
bool is_pinned(const Tensor&) { return false; }
Tensor copy_async(const Tensor&, Device device) {
  cuda_backend(device.index);
  return {};
}
std::vector<Component> components() { return {}; }

struct Event::State {};
struct Stream::State {};
Event::Event(int device) { cuda_backend(device); }
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;
void Event::record() {}
void Event::wait() const {}
bool Event::query() const { return true; }
void Event::synchronize() const {}
double Event::elapsed_time(const Event&) const { return 0; }
Stream::Stream(int device) { cuda_backend(device); }
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
bool Stream::query() const { return true; }
void Stream::synchronize() const {}
OnStream::OnStream(const Stream&) : outer_(nullptr) {}
OnStream::~OnStream() { outer_ = nullptr; }
}  // namespace cuda

}  // namespace volta
#endif

// Storage: counted bytes on a device, and how they are given back.
#pragma once
#include <atomic>
#include <functional>

#include <volta/counted.h>
#include <volta/device.h>

namespace volta {

struct Storage {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint32_t> version{0};  // counts in-place changes; shared by all views
  Device device;
  void* data = nullptr;
  int64_t bytes = 0;
  void (*destroy)(Storage*) noexcept = nullptr;
  void* context = nullptr;  // whatever destroy needs

  bool unique() const noexcept { return refs.load(std::memory_order_acquire) == 1; }
};

inline void retain(Storage* s) noexcept { s->refs.fetch_add(1, std::memory_order_relaxed); }
inline void release(Storage* s) noexcept {
  if (s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) s->destroy(s);
}

Ptr<Storage> host_storage(int64_t bytes, const char* op);  // header and data in one block
Ptr<Storage> foreign_storage(void* data, int64_t bytes, Device device, std::function<void()> release);

}  // namespace volta

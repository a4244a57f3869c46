// Storage: counted bytes on a device; and the caching host allocator that storages, tensors and nodes come from.
#pragma once
#include <atomic>
#include <functional>

#include <volta/device.h>
#include <volta/intrusive_ptr.h>

#include "math/inner.h"

namespace volta {

// 64-byte aligned, uninitialised. Throws Error::Kind::memory (named after `op`) when the limit or the system says no.
void* host_allocate(size_t bytes, const char* op);
void host_release(void* block, size_t bytes) noexcept;

// For objects made once per op (tensors, graph nodes): class-specific new and delete from the same cache.
struct Pooled {
  static void* operator new(size_t bytes) { return host_allocate(bytes, "allocate"); }
  static void operator delete(void* block, size_t bytes) noexcept { host_release(block, bytes); }
};

// Gives up one reference; true for the last. A sole owner needs no locked instruction: nobody else can take another.
inline bool drop_reference(std::atomic<uint32_t>& refs) noexcept {
  return refs.load(std::memory_order_acquire) == 1 || refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

struct Storage {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint32_t> version{0};  // counts in-place changes; shared by all views
  Device device;
  std::atomic<bool> rewritten{false};  // some tensor got its graph after it was made: in place, or as a leaf
  std::atomic<uint32_t> rewrites{0};   // how often in place
  bool borrowed = false;               // the memory is somebody else's, who sees what is written there
  void* data = nullptr;
  int64_t bytes = 0;
  void (*destroy)(Storage*) noexcept = nullptr;

  bool unique() const noexcept { return refs.load(std::memory_order_acquire) == 1; }
  bool exclusive() const noexcept { return unique() && !borrowed; }
};

inline void retain(Storage* s) noexcept { s->refs.fetch_add(1, std::memory_order_relaxed); }
inline void release(Storage* s) noexcept {
  if (drop_reference(s->refs)) s->destroy(s);
}

IntrusivePtr<Storage> host_storage(int64_t bytes, const char* op);  // header and data in one block
IntrusivePtr<Storage> foreign_storage(void* data, int64_t bytes, Device device, std::function<void()> release);

}  // namespace volta

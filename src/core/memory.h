// The caching host allocator: blocks by size class, a lock-free cache per thread for small ones, one shared for large.
#pragma once
#include <cstddef>

namespace volta {

// 64-byte aligned, uninitialised. Throws Error::Kind::memory (named after `op`) when the limit or the system says no.
void* host_allocate(size_t bytes, const char* op);
void host_release(void* block, size_t bytes) noexcept;

// For objects made once per op (tensors, graph nodes): class-specific new and delete from the same cache.
struct Pooled {
  static void* operator new(size_t bytes) { return host_allocate(bytes, "allocate"); }
  static void operator delete(void* block, size_t bytes) noexcept { host_release(block, bytes); }
};

}  // namespace volta

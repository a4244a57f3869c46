// Size classes of 64 bytes up to 1 KiB, then four per doubling. Small blocks are reused within a thread without a lock.
#include "core/memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include <sys/mman.h>

#include <volta/device.h>
#include <volta/error.h>

namespace volta {
namespace {

constexpr int class_count = 16 + 4 * 50;
constexpr int small_classes = 16 + 4 * 8;  // up to 256 KiB
constexpr int thread_keeps = 32;           // blocks of a class a thread holds back for itself
constexpr size_t huge_page = size_t(2) << 20;

int class_of(size_t bytes) {
  if (bytes <= 1024) return bytes == 0 ? 0 : int((bytes - 1) / 64);
  const int e = std::bit_width(bytes - 1) - 1;
  return 16 + (e - 10) * 4 + int((bytes - 1) >> (e - 2) & 3);
}

size_t class_bytes(int c) {
  if (c < 16) return size_t(c + 1) * 64;
  const int e = 10 + (c - 16) / 4, sub = (c - 16) % 4;
  return (size_t(1) << e) + (size_t(sub + 1) << (e - 2));
}

struct Free {
  Free* next;
};

struct Counters {
  std::atomic<int64_t> in_use{0}, peak{0}, cached{0}, requests{0}, reused{0};
  std::atomic<int64_t> limit{int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE))};
};

struct Shared {
  std::mutex mutex;
  Free* free[class_count] = {};
  Counters count;
};

Shared& shared() {
  static Shared* s = new Shared;  // never destroyed: tensors may outlive every other static
  return *s;
}

void system_release(void* block) noexcept { std::free(block); }

void* system_allocate(size_t bytes) noexcept {
  if (bytes < 2 * huge_page) return std::aligned_alloc(64, bytes);
  void* block = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void push_shared(int c, void* block) noexcept {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  auto* f = new (block) Free{s.free[c]};
  s.free[c] = f;
}

void* pop_shared(int c) noexcept {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  Free* f = s.free[c];
  if (f) s.free[c] = f->next;
  return f;
}

struct ThreadCache {
  Free* free[small_classes] = {};
  int count[small_classes] = {};
  void flush() noexcept {
    for (int c = 0; c < small_classes; ++c)
      while (free[c]) {
        Free* f = free[c];
        free[c] = f->next;
        push_shared(c, f);
      }
    std::fill(std::begin(count), std::end(count), 0);
  }
  ~ThreadCache() { flush(); }
};

thread_local constinit bool cache_gone = false;  // a thread may release tensors after its cache was destroyed
struct CacheHolder {
  ThreadCache cache;
  ~CacheHolder() { cache_gone = true; }
};

ThreadCache* thread_cache() noexcept {
  if (cache_gone) return nullptr;
  thread_local CacheHolder holder;
  return &holder.cache;
}

void* take(int c) noexcept {
  if (c < small_classes)
    if (ThreadCache* t = thread_cache(); t && t->free[c]) {
      Free* f = t->free[c];
      t->free[c] = f->next;
      --t->count[c];
      return f;
    }
  return pop_shared(c);
}

[[noreturn]] void refuse(size_t bytes, const char* op) {
  const auto& n = shared().count;
  throw Error(Error::Kind::memory, op,
              "cannot allocate " + std::to_string(bytes) + " bytes of host memory: " +
                  std::to_string(n.in_use.load()) + " in use, limit " + std::to_string(n.limit.load()));
}

void account(int64_t bytes) {
  Counters& n = shared().count;
  const int64_t now = n.in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = n.peak.load(std::memory_order_relaxed);
  while (now > peak && !n.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

}  // namespace

void* host_allocate(size_t bytes, const char* op) {
  Counters& n = shared().count;
  if (int64_t(bytes) < 0 || int64_t(bytes) > n.limit.load(std::memory_order_relaxed)) refuse(bytes, op);
  const int c = class_of(bytes);
  const auto size = int64_t(class_bytes(c));
  n.requests.fetch_add(1, std::memory_order_relaxed);
  void* block = take(c);
  if (block) {
    n.reused.fetch_add(1, std::memory_order_relaxed);
    n.cached.fetch_sub(size, std::memory_order_relaxed);
  } else {
    const auto over = [&] { return n.in_use.load() + n.cached.load() + size > n.limit.load(); };
    if (over()) memory::empty_cache();
    if (over()) refuse(bytes, op);
    block = system_allocate(size_t(size));
    if (!block) {
      memory::empty_cache();
      block = system_allocate(size_t(size));
    }
    if (!block) refuse(bytes, op);
  }
  account(size);
  return block;
}

void host_release(void* block, size_t bytes) noexcept {
  if (!block) return;
  const int c = class_of(bytes);
  Counters& n = shared().count;
  n.in_use.fetch_sub(int64_t(class_bytes(c)), std::memory_order_relaxed);
  n.cached.fetch_add(int64_t(class_bytes(c)), std::memory_order_relaxed);
  if (c < small_classes)
    if (ThreadCache* t = thread_cache(); t && t->count[c] < thread_keeps) {
      t->free[c] = new (block) Free{t->free[c]};
      ++t->count[c];
      return;
    }
  push_shared(c, block);
}

namespace memory {

Stats stats() {
  const Counters& n = shared().count;
  return {n.in_use.load(), n.peak.load(), n.cached.load(), n.limit.load(), n.requests.load(), n.reused.load()};
}

void set_limit(int64_t bytes) {
  if (bytes < 0) throw Error(Error::Kind::argument, "memory::set_limit", "the limit must not be negative");
  shared().count.limit = bytes;
}

void empty_cache() {
  if (ThreadCache* t = thread_cache()) t->flush();
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  for (int c = 0; c < class_count; ++c)
    while (s.free[c]) {
      Free* f = s.free[c];
      s.free[c] = f->next;
      s.count.cached.fetch_sub(int64_t(class_bytes(c)), std::memory_order_relaxed);
      system_release(f);
    }
}

void reset_peak() { shared().count.peak = shared().count.in_use.load(); }

}  // namespace memory
}  // namespace volta

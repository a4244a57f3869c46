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

// What a thread did with small blocks. Only that thread writes, so that counting costs no locked instruction.
struct Tally {
  std::atomic<int64_t> in_use{0}, cached{0}, requests{0}, reused{0};
  void add(std::atomic<int64_t>& count, int64_t n) noexcept {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

constexpr int64_t counted_bytes = 4096;  // blocks of at least this size are counted globally, and make the peak

struct ThreadCache {
  Free* free[small_classes] = {};
  int count[small_classes] = {};
  Tally tally;
  ThreadCache *next = nullptr, *previous = nullptr;

  ThreadCache();
  ~ThreadCache();
  void flush() noexcept;
};

struct Shared {
  std::mutex mutex;
  Free* free[class_count] = {};
  ThreadCache* threads = nullptr;
  Tally gone;  // of threads that have ended, and of blocks moved by them
  std::atomic<int64_t> in_use{0}, peak{0}, cached{0}, requests{0}, reused{0};
  std::atomic<int64_t> limit{-1};  // -1: physical memory
};
constinit Shared shared;  // nothing in it needs destroying: tensors may outlive every other static

int64_t limit() {
  const int64_t set = shared.limit.load(std::memory_order_relaxed);
  if (set >= 0) return set;
  static const int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  return physical;
}

void* system_allocate(size_t bytes) noexcept {
  if (bytes < 2 * huge_page) return std::aligned_alloc(64, bytes);
  void* block = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void push_shared(int c, void* block) noexcept {
  const std::lock_guard lock(shared.mutex);
  shared.free[c] = new (block) Free{shared.free[c]};
}

void* pop_shared(int c) noexcept {
  const std::lock_guard lock(shared.mutex);
  Free* f = shared.free[c];
  if (f) shared.free[c] = f->next;
  return f;
}

ThreadCache::ThreadCache() {
  const std::lock_guard lock(shared.mutex);
  next = shared.threads;
  if (next) next->previous = this;
  shared.threads = this;
}

ThreadCache::~ThreadCache() {
  flush();
  const std::lock_guard lock(shared.mutex);
  (previous ? previous->next : shared.threads) = next;
  if (next) next->previous = previous;
  shared.gone.add(shared.gone.in_use, tally.in_use.load());
  shared.gone.add(shared.gone.cached, tally.cached.load());
  shared.gone.add(shared.gone.requests, tally.requests.load());
  shared.gone.add(shared.gone.reused, tally.reused.load());
}

void ThreadCache::flush() noexcept {
  for (int c = 0; c < small_classes; ++c) {
    while (free[c]) {
      Free* f = free[c];
      free[c] = f->next;
      push_shared(c, f);
    }
    count[c] = 0;
  }
}

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

[[noreturn]] void refuse(size_t bytes, const char* op) {
  throw Error(Error::Kind::memory, op,
              "cannot allocate " + std::to_string(bytes) + " bytes of host memory: " +
                  std::to_string(memory::stats().in_use) + " in use, limit " + std::to_string(limit()));
}

void* fresh(size_t size, size_t bytes, const char* op) {
  const auto over = [&] { return memory::stats().in_use + memory::stats().cached + int64_t(size) > limit(); };
  if (size >= huge_page / 2 && over()) memory::empty_cache();
  if (size >= huge_page / 2 && over()) refuse(bytes, op);
  void* block = system_allocate(size);
  if (!block) {
    memory::empty_cache();
    block = system_allocate(size);
  }
  if (!block) refuse(bytes, op);
  return block;
}

void count_global(int64_t size, bool reused) noexcept {
  shared.requests.fetch_add(1, std::memory_order_relaxed);
  if (reused) {
    shared.reused.fetch_add(1, std::memory_order_relaxed);
    shared.cached.fetch_sub(size, std::memory_order_relaxed);
  }
  const int64_t now = shared.in_use.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = shared.peak.load(std::memory_order_relaxed);
  while (now > peak && !shared.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {}
}

void* allocate_large(int c, size_t bytes, const char* op) {
  const auto size = int64_t(class_bytes(c));
  void* block = nullptr;
  if (c < small_classes)
    if (ThreadCache* t = thread_cache(); t && t->free[c]) {
      block = t->free[c];
      t->free[c] = t->free[c]->next;
      --t->count[c];
    }
  if (!block) block = pop_shared(c);
  const bool reused = block != nullptr;
  if (!block) block = fresh(size_t(size), bytes, op);
  count_global(size, reused);
  return block;
}

}  // namespace

void* host_allocate(size_t bytes, const char* op) {
  if (int64_t(bytes) < 0 || int64_t(bytes) > limit()) refuse(bytes, op);
  const int c = class_of(bytes);
  const auto size = int64_t(class_bytes(c));
  ThreadCache* t = thread_cache();
  if (size >= counted_bytes || !t) return allocate_large(c, bytes, op);
  void* block = t->free[c];
  if (block) {
    t->free[c] = t->free[c]->next;
    --t->count[c];
  } else {
    block = pop_shared(c);
  }
  if (block) {
    t->tally.add(t->tally.reused, 1);
    t->tally.add(t->tally.cached, -size);
  } else {
    block = fresh(size_t(size), bytes, op);
  }
  t->tally.add(t->tally.requests, 1);
  t->tally.add(t->tally.in_use, size);
  return block;
}

void host_release(void* block, size_t bytes) noexcept {
  if (!block) return;
  const int c = class_of(bytes);
  const auto size = int64_t(class_bytes(c));
  ThreadCache* t = thread_cache();
  if (size >= counted_bytes || !t) {
    shared.in_use.fetch_sub(size, std::memory_order_relaxed);
    shared.cached.fetch_add(size, std::memory_order_relaxed);
  } else {
    t->tally.add(t->tally.in_use, -size);
    t->tally.add(t->tally.cached, size);
  }
  if (c < small_classes && t && t->count[c] < thread_keeps) {
    t->free[c] = new (block) Free{t->free[c]};
    ++t->count[c];
    return;
  }
  push_shared(c, block);
}

namespace memory {

// Small blocks are counted by the thread that took or gave them; the peak is of large blocks, plus the small ones of now.
Stats stats() {
  Stats all{shared.in_use.load(),   shared.peak.load(),  shared.cached.load(), limit(),
            shared.requests.load(), shared.reused.load()};
  const auto add = [&](const Tally& t) {
    all.in_use += t.in_use.load();
    all.peak += t.in_use.load();
    all.cached += t.cached.load();
    all.requests += t.requests.load();
    all.reused += t.reused.load();
  };
  const std::lock_guard lock(shared.mutex);
  add(shared.gone);
  for (ThreadCache* t = shared.threads; t; t = t->next) add(t->tally);
  return all;
}

void set_limit(int64_t bytes) {
  if (bytes < 0) throw Error(Error::Kind::argument, "memory::set_limit", "the limit must not be negative");
  shared.limit = bytes;
}

void empty_cache() {
  if (ThreadCache* t = thread_cache()) t->flush();
  const std::lock_guard lock(shared.mutex);
  for (int c = 0; c < class_count; ++c)
    while (shared.free[c]) {
      Free* f = shared.free[c];
      shared.free[c] = f->next;
      const auto size = int64_t(class_bytes(c));
      if (size >= counted_bytes) shared.cached.fetch_sub(size, std::memory_order_relaxed);
      else shared.gone.add(shared.gone.cached, -size);
      std::free(f);
    }
}

void reset_peak() { shared.peak = shared.in_use.load(); }

}  // namespace memory
}  // namespace volta

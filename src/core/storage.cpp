// Size classes of 64 bytes up to 1 KiB, then four per doubling. Small blocks are reused within a thread without a lock.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

#include <sys/mman.h>

#include "core/check.h"
#include "core/fork.h"
#include "core/room.h"
#include "core/thread_end.h"

namespace volta {
namespace {

constexpr int class_count = 16 + 4 * 50;
constexpr int small_classes = 16 + 4 * 8;        // up to 256 KiB
constexpr int thread_keeps = 32;                 // blocks of a class a thread holds back for itself
constexpr int64_t told_bytes = 1 << 16;          // what a thread takes or gives before it tells the others
constexpr size_t large_bytes = size_t(1) << 20;  // from here on the limit is looked at
constexpr size_t huge_page = size_t(2) << 20;
constexpr size_t header = 64;  // a host storage, in front of its data: together they cost one allocation
static_assert(sizeof(Storage) <= header);
// Large data begins at various places of a page. Were they all the same, a processor would take reads of one tensor for reads
// of what was just written to another, and wait; and tensors would compete for the same lines of the caches.
constexpr size_t scattered_bytes = size_t(1) << 20, page = 4096;
constexpr size_t room_of(size_t bytes) { return bytes + (bytes < scattered_bytes ? header : page); }
constexpr int64_t no_limit = int64_t(1) << 48;

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

// Free blocks, linked through their first bytes.
struct FreeList {
  struct Block {
    Block* next;
  };
  Block* first = nullptr;
  int count = 0;

  void push(void* block) noexcept {
    first = new (block) Block{first};
    ++count;
  }
  void* pop() noexcept {
    Block* block = first;
    if (!block) return nullptr;
    first = block->next;
    --count;
    return block;
  }
};

using Count = std::atomic<int64_t>;

struct Shared {
  std::mutex mutex;
  FreeList free[class_count];
  struct ThreadCache* threads = nullptr;
  Count in_use{0}, peak{0}, requests{0};  // as far as threads have told
  Count held{0}, fresh{0};                // bytes that came from the system, and how often it was asked
  Count limit{no_limit};                  // then physical memory is the limit

  void count(int64_t bytes) noexcept {
    const int64_t now = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {}
  }
};
constinit Shared shared;  // nothing in it needs destroying: tensors may outlive every other static

int64_t current_limit() {
  static const int64_t physical = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
  const int64_t set = shared.limit.load(std::memory_order_relaxed);
  return set == no_limit ? physical : set;
}

struct ThreadCache {
  FreeList free[small_classes];
  Count in_use{0}, requests{0};  // that the others do not know of; blocks may end their life in another thread
  ThreadCache *next, *previous = nullptr;

  ThreadCache() {
    const std::lock_guard lock(shared.mutex);
    next = std::exchange(shared.threads, this);
    if (next) next->previous = this;
  }
  ~ThreadCache() {
    flush();
    const std::lock_guard lock(shared.mutex);
    (previous ? previous->next : shared.threads) = next;
    if (next) next->previous = previous;
    shared.count(in_use);
    shared.requests += requests;
  }
  void flush() noexcept {
    const std::lock_guard lock(shared.mutex);
    for (int c = 0; c < small_classes; ++c)
      while (void* block = free[c].pop()) shared.free[c].push(block);
  }
  // Only this thread writes its counts: no locked instruction.
  void count_request() noexcept {
    requests.store(requests.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void count(int64_t bytes) noexcept {
    const int64_t sum = in_use.load(std::memory_order_relaxed) + bytes;
    const bool tells = sum >= told_bytes || sum <= -told_bytes;
    in_use.store(tells ? 0 : sum, std::memory_order_relaxed);
    if (tells) shared.count(sum);
  }
};

struct ThreadSlot {
  ThreadCache* cache = nullptr;
  bool gone = false;  // a thread may release tensors after its cache was destroyed
};
thread_local constinit ThreadSlot slot;

ThreadCache* thread_cache() noexcept {
  if (slot.cache || slot.gone) return slot.cache;
  static const AtThreadEnd end([](void* cache) {
    static_cast<ThreadCache*>(cache)->~ThreadCache();
    slot = {nullptr, true};
  });
  alignas(ThreadCache) static thread_local constinit std::byte room[sizeof(ThreadCache)] = {};
  slot.cache = new (room) ThreadCache;
  end.set(slot.cache);
  return slot.cache;
}

// A child has this thread alone: the others' counts stay, their caches, which may have been in the midst of a change, do not.
[[maybe_unused]] const bool fork_watched = fork_waits_for(shared.mutex) && fork_renews([] {
                                             ThreadCache* const mine = slot.cache;
                                             for (const ThreadCache* t = shared.threads; t; t = t->next) {
                                               if (t == mine) continue;
                                               shared.in_use += t->in_use;
                                               shared.requests += t->requests;
                                             }
                                             shared.threads = mine;
                                             if (mine) mine->next = mine->previous = nullptr;
                                           });

[[noreturn]] void refuse_memory(size_t bytes, const char* op) {
  throw_error(ErrorKind::memory, op, "cannot allocate ", bytes, " bytes of host memory: ", memory::stats().in_use,
              " in use, limit ", current_limit());
}

void* from_system(size_t bytes) noexcept {
  const auto aligned = [=](size_t to) { return std::aligned_alloc(to, (bytes + to - 1) / to * to); };
  if (bytes < 2 * huge_page) return aligned(64);
  void* block = aligned(huge_page);
  if (block) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void* allocate_fresh(size_t size, size_t bytes, const char* op) {
  const auto over = [&] { return size >= large_bytes && shared.held + int64_t(size) > current_limit(); };
  void* block = over() ? nullptr : from_system(size);
  if (!block) {
    memory::empty_cache();
    block = over() ? nullptr : from_system(size);
  }
  if (!block) refuse_memory(bytes, op);
  shared.held += int64_t(size);
  ++shared.fresh;
  return block;
}

}  // namespace

void* host_allocate(size_t bytes, const char* op) {
  if (bytes > size_t(shared.limit.load(std::memory_order_relaxed))) refuse_memory(bytes, op);  // as are negative sizes
  const int c = class_of(bytes);
  const size_t size = class_bytes(c);
  ThreadCache* t = thread_cache();
  void* block = t && c < small_classes ? t->free[c].pop() : nullptr;
  if (!block) {
    const std::lock_guard lock(shared.mutex);
    block = shared.free[c].pop();
  }
  if (!block) block = allocate_fresh(size, bytes, op);
  if (t) {
    t->count_request();
    t->count(int64_t(size));
  } else {
    ++shared.requests;
    shared.count(int64_t(size));
  }
  return block;
}

void require_memory(int64_t bytes, const char* op) {
  if (bytes < 0 || (size_t(bytes) >= large_bytes && bytes > current_limit() - shared.held)) {
    memory::empty_cache();
    if (bytes < 0 || bytes > current_limit() - shared.held) refuse_memory(size_t(bytes), op);
  }
  require_from_system(bytes, op);
}

void require_from_system(int64_t bytes, const char* op) {
  if (size_t(bytes) < large_bytes) return;
  const auto given = [=] {
    void* block = from_system(size_t(bytes));
    std::free(block);
    return block != nullptr;
  };
  if (given()) return;
  memory::empty_cache();
  if (!given()) refuse_memory(size_t(bytes), op);
}

void refuse_list(const char* op) {
  memory::empty_cache();  // the message below needs memory as well
  throw_error(ErrorKind::memory, op, "the system has no memory for a list");
}

void host_release(void* block, size_t bytes) noexcept {
  if (!block) return;
  const int c = class_of(bytes);
  const auto size = int64_t(class_bytes(c));
  ThreadCache* t = thread_cache();
  if (t) t->count(-size);
  else shared.count(-size);
  if (t && c < small_classes && t->free[c].count < thread_keeps) return t->free[c].push(block);
  const std::lock_guard lock(shared.mutex);
  shared.free[c].push(block);
}

namespace memory {

// The peak is exact to told_bytes of every thread.
Stats stats() {
  const std::lock_guard lock(shared.mutex);
  int64_t in_use = shared.in_use, requests = shared.requests;
  for (const ThreadCache* t = shared.threads; t; t = t->next) {
    in_use += t->in_use;
    requests += t->requests;
  }
  const int64_t peak = std::max<int64_t>(in_use, shared.peak);
  return {in_use, peak, shared.held - in_use, current_limit(), requests, requests - shared.fresh};
}

void set_limit(int64_t bytes) {
  require(bytes >= 0, ErrorKind::argument, "memory::set_limit", "the limit must not be negative");
  shared.limit = std::min(bytes, no_limit);
}

void empty_cache() {
  if (ThreadCache* t = thread_cache()) t->flush();
  const std::lock_guard lock(shared.mutex);
  for (int c = 0; c < class_count; ++c)
    while (void* block = shared.free[c].pop()) {
      shared.held -= int64_t(class_bytes(c));
      std::free(block);
    }
}

void reset_peak() { shared.peak = stats().in_use; }

}  // namespace memory

IntrusivePtr<Storage> host_storage(int64_t bytes, const char* op) {
  static std::atomic<uint32_t> turn = 0;
  void* block = host_allocate(room_of(size_t(bytes)), op);
  auto* s = new (block) Storage;
  uint32_t line = 0;
  if (size_t(bytes) >= scattered_bytes) line = turn.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b1u >> 26;
  static_assert(header + header * (~0u >> 26) == page);
  s->data = static_cast<char*>(block) + header + header * line;
  s->bytes = bytes;
  s->destroy = [](Storage* dead) noexcept { host_release(dead, room_of(size_t(dead->bytes))); };
  return IntrusivePtr<Storage>::adopt(s);
}

IntrusivePtr<Storage> foreign_storage(void* data, int64_t bytes, Device device, std::function<void()> release) {
  struct Foreign : Storage {
    std::function<void()> release;
  };
  auto* s = new Foreign;
  s->release = std::move(release);
  s->device = device;
  s->data = data;
  s->bytes = bytes;
  s->borrowed = true;
  s->destroy = [](Storage* dead) noexcept {
    auto* foreign = static_cast<Foreign*>(dead);
    if (foreign->release) foreign->release();
    delete foreign;
  };
  return IntrusivePtr<Storage>::adopt(s);
}

}  // namespace volta

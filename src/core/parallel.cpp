// The fork-join pool behind parallel(), and the number of threads.
#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "volta/error.h"
#ifdef __linux__
#include <sched.h>
#endif

namespace volta {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

constexpr int worker_spins = 4000;  // about 100 us before a worker sleeps
constexpr int owner_spins = 1000, owner_yields = 200;

void relax() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

thread_local bool in_region = false;  // this thread is running a part, or is a worker

class InRegion {
 public:
  InRegion() { in_region = true; }
  ~InRegion() { in_region = false; }
  InRegion(const InRegion&) = delete;
  InRegion& operator=(const InRegion&) = delete;
};

// One region at a time, owned by the thread that holds busy_. The word state_ says everything about it:
//   epoch (32 bits) | waited | open | number of joined workers (16 bits)
// A worker joins by a compare-and-swap that succeeds only while the region is open, and reads the region's fields only
// after it has joined; the owner changes them only after it closed the region and every joined worker left. So no
// worker ever sees a region other than the current one, whatever the epoch's wrap-around, and a worker that comes too
// late does not join and holds nobody up. The epoch only tells idle workers that there is something new.
class Pool {
 public:
  bool acquire() { return !busy_.load(memory_order_relaxed) && !busy_.exchange(true, memory_order_acquire); }
  void release() { busy_.store(false, memory_order_release); }

  // The remaining members but work() are for the thread between acquire() and release().
  void resize(int threads);
  std::exception_ptr run(int64_t parts, detail::PartFunction function, void* context);

 private:
  static constexpr uint64_t joined_mask = 0xffff, open_bit = 1u << 16, waited_bit = 1u << 17;
  static constexpr int epoch_shift = 32;
  static uint32_t epoch(uint64_t state) { return uint32_t(state >> epoch_shift); }

  void work(int index);
  uint64_t await_news(int index, uint32_t seen);
  bool join();
  void leave();
  void claim();
  void publish(uint64_t bits, int64_t wanted_workers);
  void close();
  void sleep_until_left();

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) int64_t parts_ = 0;
  detail::PartFunction function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};

  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int> asleep_{0};
  std::atomic<int> limit_{0};  // workers with an index at or above it end
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable news_, left_;
};

std::exception_ptr Pool::run(int64_t parts, detail::PartFunction function, void* context) {
  parts_ = parts;
  function_ = function;
  context_ = context;
  failed_.store(false, memory_order_relaxed);
  next_.store(0, memory_order_relaxed);
  publish(open_bit, parts - 1);
  {
    InRegion guard;
    claim();
  }
  close();
  return std::exchange(error_, nullptr);
}

void Pool::claim() {
  for (int64_t part; (part = next_.fetch_add(1, memory_order_relaxed)) < parts_;) {
    try {
      function_(context_, part);
    } catch (...) {
      if (!failed_.exchange(true, memory_order_relaxed)) error_ = std::current_exception();
      next_.store(parts_, memory_order_relaxed);
    }
  }
}

// Sequential consistency here and in await_news: either the owner sees the sleeper, or the sleeper sees the epoch.
void Pool::publish(uint64_t bits, int64_t wanted_workers) {
  const uint32_t next_epoch = epoch(state_.load(memory_order_relaxed)) + 1;
  state_.store(uint64_t(next_epoch) << epoch_shift | bits, memory_order_seq_cst);
  const int asleep = asleep_.load(memory_order_seq_cst);
  if (asleep == 0) return;
  { std::lock_guard lock(mutex_); }
  if (wanted_workers >= asleep) return news_.notify_all();
  for (int64_t i = 0; i < wanted_workers; ++i) news_.notify_one();
}

void Pool::close() {
  state_.fetch_and(~open_bit, memory_order_acq_rel);
  for (int tries = 0; state_.load(memory_order_acquire) & joined_mask; ++tries) {
    if (tries < owner_spins) relax();
    else if (tries < owner_spins + owner_yields) std::this_thread::yield();
    else return sleep_until_left();
  }
}

void Pool::sleep_until_left() {
  if ((state_.fetch_or(waited_bit, memory_order_acq_rel) & joined_mask) == 0) return;
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return (state_.load(memory_order_acquire) & joined_mask) == 0; });
}

bool Pool::join() {
  uint64_t state = state_.load(memory_order_relaxed);
  while (state & open_bit) {
    if (state_.compare_exchange_weak(state, state + 1, memory_order_acquire, memory_order_relaxed)) return true;
  }
  return false;
}

void Pool::leave() {
  const uint64_t before = state_.fetch_sub(1, memory_order_acq_rel);
  if (!(before & waited_bit) || (before & joined_mask) != 1) return;
  { std::lock_guard lock(mutex_); }
  left_.notify_one();
}

uint64_t Pool::await_news(int index, uint32_t seen) {
  uint64_t state = state_.load(memory_order_relaxed);
  for (int tries = 0; epoch(state) == seen && tries < worker_spins; ++tries) {
    relax();
    state = state_.load(memory_order_relaxed);
  }
  if (epoch(state) != seen) return state;
  asleep_.fetch_add(1, memory_order_seq_cst);
  {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] {
      state = state_.load(memory_order_seq_cst);
      return epoch(state) != seen || index >= limit_.load(memory_order_acquire);
    });
  }
  asleep_.fetch_sub(1, memory_order_relaxed);
  return state;
}

void Pool::work(int index) {
  in_region = true;
  for (uint32_t seen = 0; index < limit_.load(memory_order_acquire);) {
    seen = epoch(await_news(index, seen));
    if (join()) {
      claim();
      leave();
    }
  }
}

void Pool::resize(int threads) {
  const size_t wanted = size_t(threads - 1);
  if (workers_.size() == wanted) return;
  limit_.store(threads - 1, memory_order_seq_cst);
  if (workers_.size() > wanted) publish(0, max_threads);
  for (; workers_.size() > wanted; workers_.pop_back()) workers_.back().join();
  try {
    workers_.reserve(wanted);
    while (workers_.size() < wanted) workers_.emplace_back([this, i = int(workers_.size())] { work(i); });
  } catch (const std::exception&) {
    limit_.store(int(workers_.size()), memory_order_seq_cst);  // the system has no more threads: go on with these
  }
}

// Never destroyed: loops may still run while static objects are being destroyed, and idle workers end with the process.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

int cgroup_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return max_threads;
  return std::max(1, int(std::lround(quota / period)));
}

int available_processors() {
  int count = int(std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  return std::clamp(std::min(count, cgroup_processors()), 1, max_threads);
}

int default_threads() {
  if (const char* text = std::getenv("VOLTA_NUM_THREADS")) {
    char* end = nullptr;
    const long count = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && count >= 1 && count <= max_threads) return int(count);
  }
  return available_processors();
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

}  // namespace

namespace detail {

void run_parts(int64_t parts, PartFunction function, void* context) {
  const int threads = in_region ? 1 : thread_count().load(memory_order_relaxed);
  if (threads == 1 || !pool().acquire()) {
    for (int64_t i = 0; i < parts; ++i) function(context, i);
    return;
  }
  pool().resize(threads);
  const std::exception_ptr error = pool().run(parts, function, context);
  pool().release();
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

void set_num_threads(int n) {
  if (n < 1 || n > max_threads) {
    throw Error(Error::Kind::argument, "set_num_threads",
                std::to_string(n) + " threads: the count must be from 1 to " + std::to_string(max_threads));
  }
  thread_count().store(n, memory_order_relaxed);
  if (in_region || !pool().acquire()) return;  // the next region resizes the pool
  pool().resize(n);
  pool().release();
}

int get_num_threads() { return thread_count().load(memory_order_relaxed); }

}  // namespace volta

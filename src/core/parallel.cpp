// The fork-join pool behind parallel(), and the number of threads.
#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <thread>
#include <vector>

#include "core/check.h"
#ifdef __linux__
#include <sched.h>
#endif

namespace volta {
namespace {

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

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

// One region at a time, owned by the thread that holds busy_. A worker joins by a compare-and-swap that succeeds only
// while the region is open, and reads the region's fields only after it has joined; the owner changes them only after
// it closed the region and every joined worker left. So no worker ever sees a region other than the current one, and
// one that comes too late does not join and holds nobody up. The epoch only tells idle workers that something is new.
class Pool {
 public:
  bool acquire() { return !busy_.load(memory_order_relaxed) && !busy_.exchange(true, memory_order_acquire); }
  void release() { busy_.store(false, memory_order_release); }

  // For the thread between acquire() and release().
  std::exception_ptr run(int64_t parts, detail::PartFunction function, void* context) {
    parts_ = parts;
    function_ = function;
    context_ = context;
    failed_.store(false, memory_order_relaxed);
    next_.store(0, memory_order_relaxed);
    state_.store(open_bit, memory_order_release);
    wake(parts - 1);
    in_region = true;
    claim();
    in_region = false;
    close();
    return std::exchange(error_, nullptr);
  }

  void resize(int threads) {
    const size_t wanted = size_t(threads - 1);
    if (workers_.size() == wanted) return;
    limit_.store(threads - 1, memory_order_relaxed);
    if (workers_.size() > wanted) wake(max_threads);
    for (; workers_.size() > wanted; workers_.pop_back()) workers_.back().join();
    try {
      workers_.reserve(wanted);
      while (workers_.size() < wanted) workers_.emplace_back([this, i = int(workers_.size())] { work(i); });
    } catch (const std::exception&) {
      limit_.store(int(workers_.size()), memory_order_relaxed);  // the system has no more threads: go on with these
    }
  }

 private:
  static constexpr uint32_t open_bit = 1u << 16;  // of state_; the bits below count the workers that have joined

  void wake(int64_t workers) {
    epoch_.fetch_add(1);
    if (workers >= int64_t(workers_.size())) return epoch_.notify_all();
    for (int64_t i = 0; i < workers; ++i) epoch_.notify_one();
  }

  void close() {
    state_.fetch_and(~open_bit, memory_order_acq_rel);
    uint32_t joined = state_.load(memory_order_acquire);
    for (int tries = 0; joined != 0; joined = state_.load(memory_order_acquire), ++tries) {
      if (tries < owner_spins) relax();
      else if (tries < owner_spins + owner_yields) std::this_thread::yield();
      else state_.wait(joined, memory_order_acquire);
    }
  }

  void work(int index) {
    in_region = true;
    for (uint32_t seen = 0; index < limit_.load(memory_order_relaxed);) {
      seen = await_news(seen);
      if (!join()) continue;
      claim();
      if (state_.fetch_sub(1) == 1) state_.notify_one();  // the last one out of a closed region
    }
  }

  uint32_t await_news(uint32_t seen) {
    for (int tries = 0; tries < worker_spins && epoch_.load(memory_order_relaxed) == seen; ++tries) relax();
    epoch_.wait(seen, memory_order_acquire);
    return epoch_.load(memory_order_acquire);
  }

  bool join() {
    uint32_t state = state_.load(memory_order_relaxed);
    while (state & open_bit)
      if (state_.compare_exchange_weak(state, state + 1, memory_order_acquire, memory_order_relaxed)) return true;
    return false;
  }

  void claim() {
    const int64_t parts = parts_;
    const detail::PartFunction function = function_;
    void* const context = context_;
    for (int64_t part; (part = next_.fetch_add(1, memory_order_relaxed)) < parts;) {
      try {
        function(context, part);
      } catch (...) {
        if (!failed_.exchange(true, memory_order_relaxed)) error_ = std::current_exception();
        next_.store(parts, memory_order_relaxed);
      }
    }
  }

  alignas(64) std::atomic<uint32_t> epoch_{0};  // apart: idle workers keep looking at it
  // What a worker needs to begin comes with one cache line.
  alignas(64) std::atomic<uint32_t> state_{0};
  std::atomic<int64_t> next_{0};
  int64_t parts_ = 0;
  detail::PartFunction function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int> limit_{0};  // workers with an index at or above it end
  std::vector<std::thread> workers_;
};

// Never destroyed: loops may still run while static objects are being destroyed, and idle workers end with the process.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

int available_processors() {
  int count = int(std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) count = std::min(count, int(std::lround(quota / period)));
  return std::clamp(count, 1, max_threads);
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

void detail::run_parts(int64_t parts, PartFunction function, void* context) {
  const int threads = in_region ? 1 : get_num_threads();
  if (threads == 1 || !pool().acquire()) {
    for (int64_t i = 0; i < parts; ++i) function(context, i);
    return;
  }
  pool().resize(threads);
  const std::exception_ptr error = pool().run(parts, function, context);
  pool().release();
  if (error) std::rethrow_exception(error);
}

void set_num_threads(int n) {
  require(n >= 1 && n <= max_threads, Wrong::argument, "set_num_threads", n, " threads: the count must be from 1 to ",
          max_threads);
  thread_count().store(n, memory_order_relaxed);
  if (in_region || !pool().acquire()) return;  // the next region resizes the pool
  pool().resize(n);
  pool().release();
}

int get_num_threads() { return thread_count().load(memory_order_relaxed); }

}  // namespace volta

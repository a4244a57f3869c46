// The fork-join pool behind parallel(), and the number of threads.
#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/fork.h"
#include "core/processors.h"
#include "core/profile.h"
#include "core/region_watch.h"
#include "core/serial.h"

namespace volta {

constinit std::atomic<RegionWatch> region_watch = nullptr;

namespace {

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

// One region at a time, owned by the thread that holds busy_. A single word counts the parts that nobody has taken and the
// workers that are at work. A worker joins and takes its first part by one compare-and-swap, which succeeds only while parts
// are left, and reads the region's fields only after it has joined; the owner changes them only when no parts are left and
// no worker is at work. So no worker ever sees a region other than the current one, and one that comes too late does not
// join and holds nobody up. The owner opens a region by plain stores and begins with the first part at once.
//
// The owner takes parts from the front, workers from behind: with two threads each finds in its cache what it has written in the
// regions before, and still nobody waits while parts are left.
class Pool {
 public:
  static constexpr int64_t most_parts = 1 << 18;

  bool acquire() { return !busy_.load(memory_order_relaxed) && !busy_.exchange(true, memory_order_acquire); }
  void release() { busy_.store(false, memory_order_release); }

  // For the thread between acquire() and release().
  std::exception_ptr run(int64_t begin, int64_t end, detail::PartFunction function, void* context) {
    const RegionWatch watch = region_watch.load(memory_order_relaxed);
    const int64_t start = watch ? profile::now() : 0;
    if (watch) stints_.assign(workers_.size(), {});
    watched_ = watch != nullptr;
    end_ = end;
    function_ = function;
    context_ = context;
    taken_behind_.store(0, memory_order_relaxed);
    alone_ = workers_.size() == 1;
    const int64_t others = end - begin - 1;
    word_.store(uint32_t(others) * one_part, memory_order_release);
    // A worker that falls asleep just now may miss this region, which then goes without it.
    wake(others - (int64_t(workers_.size()) - asleep_.load(memory_order_relaxed)));
    in_region = true;
    int64_t part = begin;
    do perform(part++);
    while (take());
    in_region = false;
    const int64_t done = watch ? profile::now() : 0;
    await_workers();
    if (watch) watch({end - begin, int(workers_.size()) + 1, start, done, profile::now(), stints_});
    if (!error_) return nullptr;
    failed_.store(false, memory_order_relaxed);
    return std::exchange(error_, nullptr);
  }

  void resize(int threads) {
    const size_t wanted = size_t(threads - 1);
    if (workers_.size() == wanted) return;
    limit_.store(threads - 1, memory_order_relaxed);
    if (workers_.size() > wanted) {
      word_.fetch_or(has_work);
      word_.notify_all();
      for (; workers_.size() > wanted; workers_.pop_back()) workers_.back().join();
      word_.fetch_and(~has_work);
    }
    try {
      workers_.reserve(wanted);
      while (workers_.size() < wanted) workers_.emplace_back([this, i = int(workers_.size())] { work(i); });
    } catch (const std::exception&) {
      limit_.store(int(workers_.size()), memory_order_relaxed);  // the system has no more threads: go on with these
    }
  }

 private:
  // The fields of word_: workers at work; a bit set while some are to end; parts left, negative when more were claimed.
  static constexpr uint32_t at_work = (1 << 12) - 1, has_work = at_work + 1, one_part = 2 * has_work;
  static_assert(max_threads <= at_work && most_parts * one_part <= int64_t(1) << 31);
  static int64_t parts_left(uint32_t word) { return int32_t(word) / int32_t(one_part); }

  void wake(int64_t workers) {
    if (workers <= 0) return;
    if (workers >= int64_t(workers_.size())) return word_.notify_all();
    for (int64_t i = 0; i < workers; ++i) word_.notify_one();
  }

  void work(int index) {
    in_region = true;
    for (int tries = 0;;) {
      const uint32_t word = word_.load(memory_order_acquire);  // before limit_, which changes first
      if (index >= limit_.load(memory_order_relaxed)) return;
      if (parts_left(word) > 0) {
        if (join(word, index)) tries = 0;
      } else if (++tries < worker_spins) {
        relax();
      } else if (word & has_work) {
        std::this_thread::yield();  // who slept with the bit set would not see it set again
      } else {
        asleep_.fetch_add(1);
        word_.wait(word);
        asleep_.fetch_sub(1);
      }
    }
  }

  bool join(uint32_t word, int index) {
    if (!word_.compare_exchange_weak(word, word - one_part + 1, memory_order_acquire, memory_order_relaxed))
      return false;
    const bool watched = watched_;
    const int64_t joined = watched ? profile::now() : 0;
    int64_t mine = 0;
    do perform(end_ - 1 - (alone_ ? mine : taken_behind_.fetch_add(1, memory_order_relaxed))), ++mine;
    while (take());
    if (watched) stints_[size_t(index)] = {joined, profile::now(), mine};
    if ((word_.fetch_sub(1) & at_work) == 1 && owner_asleep_.exchange(false)) owner_asleep_.notify_one();
    return true;
  }

  // Whether there is another part for one who is at work.
  bool take() {
    if (parts_left(word_.load(memory_order_relaxed)) <= 0) return false;  // a look costs less than asking
    return parts_left(word_.fetch_sub(one_part, memory_order_relaxed)) > 0;
  }

  void await_workers() {
    const auto left = [this] { return (word_.load() & at_work) == 0; };
    for (int tries = 0; !left(); ++tries) {
      if (tries < owner_spins) relax();
      else if (tries < owner_spins + owner_yields) std::this_thread::yield();
      else {
        owner_asleep_.store(true);
        if (!left()) owner_asleep_.wait(true);
      }
    }
  }

  void perform(int64_t part) {
    try {
      function_(context_, part);
    } catch (...) {
      if (!failed_.exchange(true, memory_order_relaxed)) error_ = std::current_exception();
      word_.fetch_and(at_work | has_work, memory_order_relaxed);  // the parts left are nobody's
    }
  }

  // What a worker needs to begin comes with one cache line. What it only reads now and then is apart from what others write.
  alignas(64) std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> taken_behind_{0};  // of several workers
  bool alone_ = false;                     // there is one worker
  bool watched_ = false;
  int64_t end_ = 0;
  detail::PartFunction function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<int> limit_{0};  // workers with an index at or above it end
  std::atomic<int> asleep_{0};
  std::atomic<bool> owner_asleep_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;
  std::vector<WorkerStint> stints_;  // of a watched region
};

// Never destroyed: loops may still run while static objects are being destroyed, and idle workers end with the process.
constinit std::atomic<Pool*> instance{nullptr};

Pool& pool() {
  Pool* p = instance.load(memory_order_acquire);
  if (p) return *p;
  Pool* fresh = new Pool;
  if (instance.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;  // another thread was first
  return *p;
}

// A child has none of the workers: it begins with a pool of its own when it needs one.
[[maybe_unused]] const bool fork_renewed = fork_renews([] {
  instance.store(nullptr, memory_order_relaxed);
  in_region = false;
});

int default_threads() {
  if (const char* text = std::getenv("VOLTA_NUM_THREADS")) {
    char* end = nullptr;
    const long count = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && count >= 1 && count <= max_threads) return int(count);
  }
  return std::min(available_processors(), max_threads);
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{default_threads()};
  return count;
}

}  // namespace

void detail::run_parts(int64_t parts, PartFunction function, void* context) {
  const int threads = in_region ? 1 : get_num_threads();
  if (threads == 1 || !pool().acquire()) {
    const RegionWatch watch = in_region ? nullptr : region_watch.load(memory_order_relaxed);
    const int64_t start = watch ? profile::now() : 0;
    for (int64_t i = 0; i < parts; ++i) function(context, i);
    if (watch) watch({parts, 1, start, profile::now(), profile::now(), {}});
    return;
  }
  pool().resize(threads);
  std::exception_ptr error;
  for (int64_t begin = 0; begin < parts && !error; begin += Pool::most_parts)
    error = pool().run(begin, std::min(parts, begin + Pool::most_parts), function, context);
  pool().release();
  if (error) std::rethrow_exception(error);
}

void set_num_threads(int n) {
  require(n >= 1 && n <= max_threads, ErrorKind::argument, "set_num_threads", n,
          " threads: the count must be from 1 to ", max_threads);
  thread_count().store(n, memory_order_relaxed);
  if (in_region || !pool().acquire()) return;  // the next region resizes the pool
  pool().resize(n);
  pool().release();
}

SerialThread::SerialThread() : before_(std::exchange(in_region, true)) {}
SerialThread::~SerialThread() { in_region = before_; }

int get_num_threads() { return thread_count().load(memory_order_relaxed); }

}  // namespace volta

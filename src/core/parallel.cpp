// parallel() on the pool of the process, and the number of threads.
#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <utility>

#include "core/check.h"
#include "core/fork.h"
#include "core/pool.h"
#include "core/processors.h"
#include "core/profile.h"
#include "core/serial.h"

namespace volta {
namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;

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

// The value of an environment variable, where it is a whole number within these limits.
int number_of(const char* variable, int least, int most, int otherwise) {
  const char* text = std::getenv(variable);
  if (!text) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return end != text && *end == '\0' && value >= least && value <= most ? int(value) : otherwise;
}

int processors() {
  static const int count = std::min(available_processors(), max_threads);
  return count;
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{number_of("VOLTA_NUM_THREADS", 1, max_threads, processors())};
  return count;
}

std::atomic<int>& spin_time() {
  static std::atomic<int> microseconds{number_of("VOLTA_SPIN_TIME", 0, max_spin_time, 100)};
  return microseconds;
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

void set_spin_time(int microseconds) {
  require(microseconds >= 0 && microseconds <= max_spin_time, ErrorKind::argument, "set_spin_time", microseconds,
          " microseconds: the time must be from 0 to ", max_spin_time);
  spin_time().store(microseconds, memory_order_relaxed);
}

int get_spin_time() { return spin_time().load(memory_order_relaxed); }

// Where threads are more than processors, one that spins would keep another from its work.
int64_t spin_nanoseconds() { return get_num_threads() > processors() ? 0 : int64_t(get_spin_time()) * 1000; }

int get_num_threads() { return thread_count().load(memory_order_relaxed); }

}  // namespace volta

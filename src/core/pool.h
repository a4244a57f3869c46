// Pool: the workers behind parallel(), and how a loop's parts come to them.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "core/region_watch.h"

namespace volta {

// One loop at a time, owned by the thread that has acquired the pool. Every thread that is to take part has a seat, a place of
// its own in memory where it finds a stretch of the parts: it takes its own from there, and when they are done it helps
// others, from the other end of theirs. So threads meet in the same memory only where one has to help, a thread finds in its
// cache what it has written in the loops before, and nobody waits while parts are left.
//
// A worker may run parts only while its seat says that it is at work. The owner offers the loop at as many seats as there are
// parts, and takes back what was offered to workers that did not come in time: they hold nobody up. It changes what the
// loop is only when no worker is at work.
class Pool {
 public:
  static constexpr int64_t most_parts = 1 << 30;

  Pool();
  bool acquire() { return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  // For the thread between acquire() and release().
  std::exception_ptr run(int64_t begin, int64_t end, detail::PartFunction function, void* context);
  void resize(int threads);

 private:
  enum State : uint32_t { idle, offered, at_work, leaving };

  // Apart by two cache lines, for some processors fetch them in pairs.
  struct alignas(128) Seat {
    std::atomic<uint32_t> state{idle};
    std::atomic<bool> asleep{false};
    std::atomic<uint64_t> parts{0};  // the first of those left, and the end, of 32 bits each
    WorkerStint stint = {};          // in a loop that is watched
    std::thread thread = {};
  };

  void serve(int index, Seat& seat);
  void join(int index, Seat& seat);
  int64_t work(int index);
  bool take(Seat& seat, bool front, int64_t& part);
  void perform(int64_t part);
  void wake(int index);
  void await(Seat& seat);

  // What a loop is; workers only read it.
  alignas(128) int64_t begin_ = 0;
  detail::PartFunction function_ = nullptr;
  void* context_ = nullptr;
  int threads_ = 0;  // that take part
  bool watched_ = false;
  std::atomic<bool> failed_{false};
  std::atomic<bool> owner_asleep_{false};
  std::vector<std::unique_ptr<Seat>> seats_;  // the first is the owner's
  alignas(128) std::exception_ptr error_;
  std::vector<WorkerStint> stints_;
  alignas(128) std::atomic<bool> busy_{false};
};

extern constinit thread_local bool in_region;  // this thread is running a part, or is a worker
int64_t spin_nanoseconds();                    // that an idle worker looks for work before it sleeps

}  // namespace volta

// The workers' side and the owner's side of a parallel loop.
#include "core/pool.h"

#include <algorithm>
#include <utility>

#include "core/profile.h"

namespace volta {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

constinit std::atomic<RegionWatch> region_watch = nullptr;
constinit thread_local bool in_region = false;

namespace {

constexpr int owner_spins = 1000, owner_yields = 200;
constexpr int woken_by_one = 4;  // waking takes a call of the system for each, so those who were woken wake others

void relax() {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// An idle worker's patience. It asks the clock now and then.
class Spin {
 public:
  bool goes_on() {
    if (++tries_ % 64 != 0) return true;
    const int64_t now = profile::now();
    if (end_ == 0) end_ = now + spin_nanoseconds();
    return now < end_;
  }

 private:
  unsigned tries_ = 0;
  int64_t end_ = 0;
};

constexpr uint64_t stretch(int64_t begin, int64_t end) { return uint64_t(begin) | uint64_t(end) << 32; }

}  // namespace

Pool::Pool() { seats_.push_back(std::make_unique<Seat>()); }

std::exception_ptr Pool::run(int64_t begin, int64_t end, detail::PartFunction function, void* context) {
  const RegionWatch watch = region_watch.load(memory_order_relaxed);
  const int64_t start = watch ? profile::now() : 0, parts = end - begin;
  const int threads = int(std::min(parts, int64_t(seats_.size())));
  begin_ = begin, function_ = function, context_ = context, threads_ = threads, watched_ = watch != nullptr;
  seats_[0]->parts.store(stretch(0, parts / threads), memory_order_relaxed);
  for (int i = 1; i < threads; ++i) {
    Seat& seat = *seats_[size_t(i)];
    seat.parts.store(stretch(parts * i / threads, parts * (i + 1) / threads), memory_order_relaxed);
    // The last in one order with asleep: a worker that falls asleep sees its offer or is seen asleep, and of the others one that is
    // not does without this loop.
    seat.state.store(offered, i + 1 < threads ? memory_order_release : std::memory_order_seq_cst);
  }
  for (int i = 1; i <= woken_by_one; ++i) wake(i);
  in_region = true;
  work(0);
  in_region = false;
  const int64_t done = watch ? profile::now() : 0;
  for (int i = 1; i < threads; ++i) await(*seats_[size_t(i)]);
  if (watch) {
    stints_.clear();
    for (int i = 1; i < threads; ++i) stints_.push_back(std::exchange(seats_[size_t(i)]->stint, {}));
    watch({parts, int(seats_.size()), start, done, profile::now(), stints_});
  }
  if (!failed_.load(memory_order_relaxed)) return nullptr;
  for (int i = 0; i < threads; ++i) seats_[size_t(i)]->parts.store(0, memory_order_relaxed);
  failed_.store(false, memory_order_relaxed);
  return std::exchange(error_, nullptr);
}

void Pool::resize(int threads) {
  const auto wanted = size_t(threads);
  if (seats_.size() == wanted) return;
  for (size_t i = wanted; i < seats_.size(); ++i) {
    seats_[i]->state.store(leaving);
    seats_[i]->state.notify_one();
  }
  for (; seats_.size() > wanted; seats_.pop_back()) seats_.back()->thread.join();
  try {
    seats_.reserve(wanted);  // now, for workers that come later look at it
    while (seats_.size() < wanted) {
      seats_.push_back(std::make_unique<Seat>());
      try {
        seats_.back()->thread =
            std::thread([this, i = int(seats_.size()) - 1, &seat = *seats_.back()] { serve(i, seat); });
      } catch (...) {
        seats_.pop_back();
        throw;
      }
    }
  } catch (const std::exception&) {
    // the system has no more threads or memory: go on with these
  }
}

// A worker's life.
void Pool::serve(int index, Seat& seat) {
  in_region = true;
  Spin spin;
  for (;;) {
    uint32_t state = seat.state.load(memory_order_acquire);
    if (state == leaving) return;
    if (state == offered) {
      if (!seat.state.compare_exchange_strong(state, at_work, memory_order_acquire, memory_order_relaxed)) continue;
      join(index, seat);
      spin = {};
    } else if (spin.goes_on()) {
      relax();
    } else {
      seat.asleep.store(true);
      seat.state.wait(idle);
      seat.asleep.store(false, memory_order_relaxed);
      spin = {};
    }
  }
}

void Pool::join(int index, Seat& seat) {
  for (int i = 1; i <= woken_by_one; ++i) wake(index * woken_by_one + i);
  const bool watched = watched_;
  if (watched) seat.stint.joined = profile::now();
  const int64_t parts = work(index);
  if (watched) seat.stint.parts = parts, seat.stint.done = profile::now();
  seat.state.store(idle);
  if (owner_asleep_.load()) seat.state.notify_one();
}

// A worker that sleeps though it has an offer.
void Pool::wake(int index) {
  if (index >= threads_) return;
  Seat& seat = *seats_[size_t(index)];
  if (seat.asleep.load()) seat.state.notify_one();
}

// Its own parts, then those of others. The owner begins with its first, workers with their last, and those who help at the
// other end: with two threads each keeps to its side of the middle.
int64_t Pool::work(int index) {
  int64_t count = 0;
  for (int i = 0; i < threads_; ++i) {
    const int at = index + i < threads_ ? index + i : index + i - threads_;
    Seat& seat = *seats_[size_t(at)];
    for (int64_t part; take(seat, (at == 0) == (i == 0), part); ++count) perform(begin_ + part);
  }
  return count;
}

bool Pool::take(Seat& seat, bool front, int64_t& part) {
  uint64_t left = seat.parts.load(memory_order_relaxed);
  for (;;) {
    const uint64_t begin = uint32_t(left), end = left >> 32;
    if (begin >= end || failed_.load(memory_order_relaxed)) return false;
    const uint64_t rest = front ? left + 1 : left - (uint64_t(1) << 32);
    if (!seat.parts.compare_exchange_weak(left, rest, memory_order_relaxed)) continue;
    part = int64_t(front ? begin : end - 1);
    return true;
  }
}

void Pool::perform(int64_t part) {
  try {
    function_(context_, part);
  } catch (...) {
    if (!failed_.exchange(true, memory_order_relaxed)) error_ = std::current_exception();
  }
}

// Until a worker is done, or its offer is taken back.
void Pool::await(Seat& seat) {
  uint32_t state = seat.state.load(memory_order_acquire);
  if (state == offered && seat.state.compare_exchange_strong(state, idle, memory_order_acquire)) return;
  for (int tries = 0; seat.state.load(memory_order_acquire) == at_work; ++tries) {
    if (tries < owner_spins) relax();
    else if (tries < owner_spins + owner_yields) std::this_thread::yield();
    else {
      owner_asleep_.store(true);
      seat.state.wait(at_work);
      owner_asleep_.store(false);
    }
  }
}

}  // namespace volta

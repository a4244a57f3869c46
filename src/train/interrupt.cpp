// How Ctrl-C is noticed.
#include "train/interrupt.h"

#include <csignal>

#include <atomic>
#include <mutex>

#include "core/check.h"

namespace volta {
namespace {

constinit std::atomic<int64_t> interrupts = 0;
static_assert(std::atomic<int64_t>::is_always_lock_free);  // a signal handler may write it
constinit std::mutex mutex;
int living = 0;
struct sigaction previous;

void notice(int) {
  interrupts.fetch_add(1);
  sigaction(SIGINT, &previous, nullptr);
}

}  // namespace

Interrupt::Interrupt(bool on) : on_(on), before_(interrupts.load()) {
  if (!on_) return;
  const std::lock_guard lock(mutex);
  if (living == 0) {
    struct sigaction ours = {};
    ours.sa_handler = notice;
    sigemptyset(&ours.sa_mask);
    // What ignores Ctrl-C from the start, as with nohup or in the background of a script, goes on doing so.
    require(sigaction(SIGINT, nullptr, &previous) == 0 &&
                (previous.sa_handler == SIG_IGN || sigaction(SIGINT, &ours, nullptr) == 0),
            ErrorKind::internal, "fit", "Ctrl-C cannot be handled");
  }
  ++living;
}

Interrupt::~Interrupt() {
  if (!on_) return;
  const std::lock_guard lock(mutex);
  if (--living == 0) sigaction(SIGINT, &previous, nullptr);
}

bool Interrupt::asked() const { return on_ && interrupts.load() != before_; }

}  // namespace volta

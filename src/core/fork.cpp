// The handlers of pthread_atfork.
#include "core/fork.h"

#include <pthread.h>

#include <cstdlib>
#include <thread>

namespace volta {
namespace {

constexpr int most = 16;
template <class T> struct List {
  T items[most] = {};
  int count = 0;
  void add(T item) {
    if (count == most) std::abort();  // as many as the library has, known when it is written
    items[count++] = item;
  }
};
constinit List<std::mutex*> mutexes;
constinit List<void (*)()> renewals;

// All or none: threads take these mutexes in orders that nobody wrote down.
void lock_all() {
  for (int i = 0; i < mutexes.count;) {
    if (mutexes.items[i]->try_lock()) {
      ++i;
      continue;
    }
    while (i > 0) mutexes.items[--i]->unlock();
    std::this_thread::yield();
  }
}
void unlock_all() {
  for (int i = 0; i < mutexes.count; ++i) mutexes.items[i]->unlock();
}
void begin_child() {
  for (int i = 0; i < renewals.count; ++i) renewals.items[i]();
  unlock_all();
}

void watch() {
  static const int status = pthread_atfork(lock_all, unlock_all, begin_child);
  static_cast<void>(status);
}

}  // namespace

bool fork_waits_for(std::mutex& mutex) {
  watch();
  mutexes.add(&mutex);
  return true;
}

bool fork_renews(void (*renew)()) {
  watch();
  renewals.add(renew);
  return true;
}

}  // namespace volta

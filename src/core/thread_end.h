// AtThreadEnd: a function that is called when a thread ends.
#pragma once
#include <pthread.h>

namespace volta {

// Is called with what a thread has set, when that thread ends. A thread_local object with a destructor would do the same, but to
// register its destructor takes memory, and where a thread gets none glibc ends the process. Not called for the thread that
// ends the process.
class AtThreadEnd {
 public:
  explicit AtThreadEnd(void (*end)(void*)) noexcept : works_(pthread_key_create(&key_, end) == 0) {}
  // Without a key, or memory for one of very many, what the thread has is left.
  void set(void* value) const noexcept {
    if (works_) static_cast<void>(pthread_setspecific(key_, value));
  }

 private:
  pthread_key_t key_ = 0;
  bool works_;
};

}  // namespace volta

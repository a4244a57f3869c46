// Which generator a thread draws from where none is named.
#pragma once
#include <utility>

#include <volta/random.h>

namespace volta {

// While one is set, default_generator() of this thread is that one: a data loader's items draw from their own.
class ThreadGenerator {
 public:
  static Generator* get() noexcept { return current; }
  static Generator* exchange(Generator* generator) noexcept { return std::exchange(current, generator); }

 private:
  static inline thread_local constinit Generator* current = nullptr;
};

}  // namespace volta

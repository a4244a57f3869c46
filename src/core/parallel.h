// parallel(parts, f): f(i) once for every part, on a shared fork-join pool whose threads claim parts.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

#include "volta/threads.h"

namespace volta {

namespace detail {
using PartFunction = void (*)(void* context, int64_t part);
void run_parts(int64_t parts, PartFunction function, void* context);
}  // namespace detail

// Calls f(i) once for each i in [0, parts), in any order, possibly on several threads, and returns when all are done.
// Nested calls, and calls made while another thread owns the workers, run their parts in place, so callers never
// multiply threads. If f throws, parts not yet begun may be skipped and the first exception is rethrown here. Split
// work by its shape, never by the number of threads: results then do not depend on that number.
template <class F> void parallel(int64_t parts, F&& f) {
  if (parts <= 0) return;
  if (parts == 1) {
    f(int64_t{0});
    return;
  }
  using Body = std::remove_reference_t<F>;
  void* context = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  detail::run_parts(
      parts, [](void* body, int64_t part) { (*static_cast<Body*>(body))(part); }, context);
}

}  // namespace volta

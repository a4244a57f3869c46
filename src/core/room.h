// Asks for memory that is taken elsewhere, in vectors and as working memory of threads; and what becomes of it where the
// system has none.
#pragma once
#include <cstdint>
#include <new>
#include <stdexcept>

#include "core/check.h"

namespace volta {

// Throws as an allocation of so many bytes would (storage.h), before they are touched.
void require_memory(int64_t bytes, const char* op);
// Throws unless the system would give so many bytes, whatever the limit says.
void require_from_system(int64_t bytes, const char* op);

[[noreturn]] void refuse_list(const char* op);
// f(), which fills lists: what it throws is said of the op, and is an Error where the system has no memory for them.
template <class F> decltype(auto) within_memory(const char* op, F&& f) {
  try {
    return blamed_on(op, std::forward<F>(f));
  } catch (const std::bad_alloc&) {
    refuse_list(op);
  } catch (const std::length_error&) {
    refuse_list(op);
  }
}

}  // namespace volta

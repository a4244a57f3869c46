// Lists as long as a set says.
#pragma once
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "core/check.h"

namespace volta::data {

// So many zeros; an Error where memory has no room for them.
inline std::vector<int64_t> list_of(int64_t size, const char* op) {
  try {
    return std::vector<int64_t>(size_t(size));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  throw_error(ErrorKind::memory, op, "there is no memory for a list of ", size, " items");
}

}  // namespace volta::data

// UpdateRule: how an optimizer changes one element of a parameter and of its state, as data that a device runs.
#pragma once
#include <cstdint>

namespace volta::detail {

struct UpdateRule {
  static constexpr int max_constants = 10, max_states = 3;
  // Changes n elements of the parameter x and of the states, given the gradient g; all contiguous, of f32 or of f64.
  using Row = void (*)(const void* self, int64_t n, const double* constants, void* x, const void* g,
                       void* const* states);
  const char* name;
  int index;  // in UpdateRules; -1 for a user's rule
  int constants, states;
  Row row[2] = {};  // of a user's rule: for f32 and f64; null: the device has its own
  const void* self = nullptr;
};

}  // namespace volta::detail

// UpdateCall: one step of an optimizer's rule over many tensors.
#pragma once
#include <volta/update_rule.h>

#include "backend/backend.h"

namespace volta {

// All contiguous and of the size of x. x and g are of the call's dtype, the states of its compute dtype.
struct UpdateTensor {
  int64_t n;
  void* x;
  const void* g;
  void* state[UpdateRule::max_states];
};

struct UpdateCall {
  const UpdateRule* rule;
  DType dtype;
  double constants[UpdateRule::max_constants];
  std::span<const UpdateTensor> tensors;
  int slot = -1;  // of a recording's constants, which take the place of these in a replay
  // In the device's memory. skip: nonzero leaves this step out. skipped: steps left out so far; skipped_before: those left out
  // before the parameter's first step. Null: no step is left out.
  const uint8_t* skip = nullptr;
  const double *skipped = nullptr, *skipped_before = nullptr;
};

}  // namespace volta

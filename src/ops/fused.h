// Where the choice between a device's own loop and the composed form of an op is made.
#pragma once
#include "backend/backend.h"

namespace volta {

// Turned off, every op is composed of the basic loops: so the tests hold each form against the other.
inline thread_local bool use_fused_loops = true;

template <class Call> bool offered(const Device& device, const Call& call) {
  return use_fused_loops && backend(device).offers(call);
}

}  // namespace volta

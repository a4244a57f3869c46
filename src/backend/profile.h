// ProfilingBackend: passes every call on to a device's own backend, and tells those who profile of it.
#pragma once
#include "backend/backend.h"

namespace volta {

// What backend(device) gives while somebody profiles. It lives for ever: a thread may hold it when profiling ends.
Backend& profiled(Backend& inner, Device device);

int64_t memory_in_use(Device device);  // bytes held by tensors; 0 of devices that do not tell

}  // namespace volta

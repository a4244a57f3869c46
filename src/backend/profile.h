// ProfilingBackend: passes every call on to a device's own backend, and tells those who profile of it.
#pragma once
#include <atomic>

#include "backend/backend.h"

namespace volta {

// What backend(Device("cpu")) gives. Who profiles or records swaps it, so that an op pays one load for the question.
[[gnu::visibility("hidden")]] extern constinit std::atomic<Backend*> cpu_in_use;
void time_backends(bool on);               // from now on backend(device) gives profiled ones, or no more
void stand_for_cpu(Backend* other);        // it is given until as many calls have said null
Backend& own_backend(Device device);       // the device's own
Backend& profiled_backend(Device device);  // lives for ever: a thread may hold it when profiling ends

int64_t memory_in_use(Device device);  // bytes held by tensors; 0 of devices that do not tell

}  // namespace volta

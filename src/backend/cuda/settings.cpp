// How long the host waits for a device, and debug mode.
#include <volta/cuda.h>

#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "backend/cuda/context.h"
#include "backend/cuda/cuda.h"

namespace volta::cuda {
namespace {

std::atomic<double> timeout{0};  // seconds; 0: none

constexpr double spinning = 1e-4;  // seconds, before waits sleep in between
constexpr std::chrono::microseconds nap(50);

template <class Handle> void wait(Handle handle, cudaError_t (*query)(Handle), cudaError_t (*wait_all)(Handle),
                                  const char* op, Clock::time_point since) {
  const double limit = timeout.load(std::memory_order_relaxed);
  if (limit == 0) return check(wait_all(handle), op);
  for (;;) {
    const cudaError_t status = query(handle);
    if (status != cudaErrorNotReady) return check(status, op);
    const double passed = std::chrono::duration<double>(Clock::now() - since).count();
    require(passed < limit, ErrorKind::device, op, "the device is not done after the ", limit,
            " seconds that cuda::set_timeout allows");
    if (passed > spinning) std::this_thread::sleep_for(nap);
  }
}

bool debugs_at_start() {
  const char* text = std::getenv("VOLTA_CUDA_DEBUG");
  const std::string_view value = text ? text : "";
  return !value.empty() && value != "0";
}

}  // namespace

std::atomic<bool> debug_mode{debugs_at_start()};

void wait_for(cudaStream_t stream, const char* op, Clock::time_point since) {
  wait(stream, &cudaStreamQuery, &cudaStreamSynchronize, op, since);
}
void wait_for(cudaEvent_t event, const char* op, Clock::time_point since) {
  wait(event, &cudaEventQuery, &cudaEventSynchronize, op, since);
}

bool has_timeout() { return timeout.load(std::memory_order_relaxed) > 0; }

void set_timeout(double seconds) {
  check_timeout(seconds);
  timeout = std::isinf(seconds) ? 0 : seconds;
}

void set_debug(bool on) { debug_mode = on; }

}  // namespace volta::cuda

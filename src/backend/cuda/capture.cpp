#include "backend/cuda/capture.h"

#include "core/check.h"
#include "core/recording.h"

namespace volta::cuda {
namespace {

constexpr const char* op = "capture";

// The kernel that was launched last on a stream that is being recorded.
cudaGraphNode_t last_node(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count), op);
#else
  check(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, &nodes, &count), op);
#endif
  require(status == cudaStreamCaptureStatusActive && count == 1, ErrorKind::internal, op, "no kernel to change");
  return nodes[0];
}

}  // namespace

Capture::Capture(Context& context, Recording& recording, const std::function<void()>& step)
    : context_(context), recording_(recording) {
  try {
    record(step);
  } catch (...) {
    release();
    throw;
  }
}

Capture::~Capture() {
  const OnDevice current(context_.device);
  if (last_stream_) cudaStreamSynchronize(last_stream_);  // a replay may still run
  release();
}

void Capture::release() noexcept {
  if (ready_) cudaGraphExecDestroy(ready_);
  if (graph_) cudaGraphDestroy(graph_);
  if (lane_.stream) cudaStreamDestroy(lane_.stream);
  if (lane_.memory) Memory::retire(lane_.memory);
  cudaGetLastError();  // of a recording that was cut short
}

void Capture::record(const std::function<void()>& step) {
  const OnDevice current(context_.device);
  lane_ = {context_.device, nullptr, new Memory(context_, Memory::Users::one_step)};
  check(cudaStreamCreateWithFlags(&lane_.stream, cudaStreamNonBlocking), op);
  // Relaxed: memory is asked for while recording.
  check(cudaStreamBeginCapture(lane_.stream, cudaStreamCaptureModeRelaxed), op);
  try {
    const OnLane here(lane_);
    current_ = this;
    step();
    current_ = nullptr;
  } catch (...) {
    current_ = nullptr;
    cudaStreamEndCapture(lane_.stream, &graph_);
    throw;
  }
  check(cudaStreamEndCapture(lane_.stream, &graph_), op);
  check(cudaGraphInstantiate(&ready_, graph_, 0), op);
}

void Capture::vary(int count, int which, std::function<const void*()> value) {
  varied_.push_back({last_node(lane_.stream), count, which, std::move(value)});
}

void Capture::replay() {
  const OnDevice current(context_.device);
  for (const Varied& v : varied_) {
    if (fresh_) break;
    cudaKernelNodeParams kernel{};
    check(cudaGraphKernelNodeGetParams(v.node, &kernel), op);
    std::vector<void*> arguments(kernel.kernelParams, kernel.kernelParams + v.count);
    arguments[size_t(v.which)] = const_cast<void*>(v.value());
    kernel.kernelParams = arguments.data();
    check(cudaGraphExecKernelNodeSetParams(ready_, v.node, &kernel), op);
  }
  fresh_ = false;
  last_stream_ = context_.stream();
  check(cudaGraphLaunch(ready_, last_stream_), op);
  after_launch(context_, op);
}

std::unique_ptr<Recorded> Context::record(Recording& recording, const std::function<void()>& step) {
  return std::make_unique<Capture>(*this, recording, step);
}

}  // namespace volta::cuda

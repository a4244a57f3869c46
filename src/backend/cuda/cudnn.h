// cuDNN by its graph interface: descriptors, and plans that run a graph of operations.
#pragma once
#include <cudnn.h>

#include <functional>
#include <optional>
#include <vector>

#include "backend/cuda/context.h"
#include "backend/cuda/library.h"

namespace volta::cuda {

constexpr int64_t cudnn_alignment = 16;  // of the operands, in bytes

struct Cudnn {
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnBackendCreateDescriptor) make;
  decltype(&cudnnBackendDestroyDescriptor) destroy;
  decltype(&cudnnBackendSetAttribute) set;
  decltype(&cudnnBackendGetAttribute) get;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};
const Cudnn& cudnn();
void check_cudnn(cudnnStatus_t status);

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) { check_cudnn(cudnn().make(type, &handle_)); }
  ~Descriptor() {
    if (handle_) cudnn().destroy(handle_);
  }
  Descriptor(Descriptor&& from) noexcept : handle_(std::exchange(from.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& from) noexcept {
    std::swap(handle_, from.handle_);
    return *this;
  }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    check_cudnn(cudnn().set(handle_, name, type, int64_t(values.size()), values.data()));
  }
  template <class T> void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    check_cudnn(cudnn().set(handle_, name, type, 1, &value));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.handle_);
  }
  // The values of an attribute, at most as many as `values` has; their number.
  template <class T>
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::vector<T>& values) const {
    int64_t count = 0;
    const cudnnStatus_t status = cudnn().get(handle_, name, type, int64_t(values.size()), &count, values.data());
    return status == CUDNN_STATUS_SUCCESS ? std::min(count, int64_t(values.size())) : 0;
  }
  void finalize() { check_cudnn(cudnn().finalize(handle_)); }
  bool finalizes() { return cudnn().finalize(handle_) == CUDNN_STATUS_SUCCESS; }
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

cudnnDataType_t cudnn_type(DType t);

// A tensor that a graph calls `id`; more can be said of it before it is finalized.
Descriptor cudnn_tensor(int64_t id, cudnnDataType_t type, const std::vector<int64_t>& sizes,
                        const std::vector<int64_t>& strides);

// The library's handle of a device; used by one thread at a time.
struct CudnnHandle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;  // of the handle

  static CudnnHandle& of(const Context& c);
  void make();  // where it is not made yet
};

// Operations that run as one; whatever they refer to lives as long as it does.
struct CudnnGraph {
  std::vector<Descriptor> parts, nodes;
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  void finalize(cudnnHandle_t handle);
};

struct CudnnPlan {
  Descriptor plan;
  Descriptor engine;  // its configuration, which the plan refers to
  int64_t workspace = 0;
};

template <class Note> std::vector<Note> notes_of(const Descriptor& engine_config, cudnnBackendAttributeName_t name,
                                                 cudnnBackendAttributeType_t type, int64_t most) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> slot{engine.handle()};
  engine_config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, slot);
  std::vector<Note> notes(static_cast<size_t>(most));
  notes.resize(size_t(engine.get(name, type, notes)));
  return notes;
}

// Plans of the engines that the library proposes for a graph, the one it likes best first; at most `wanted`, of engines
// that are accepted, with workspaces of at most `limit` bytes; lacks_room becomes true where one wants more.
std::vector<CudnnPlan> plans_of(cudnnHandle_t handle, const CudnnGraph& graph, size_t wanted, int64_t limit,
                                const std::function<bool(const Descriptor& engine_config)>& accepts,
                                bool* lacks_room = nullptr);

// Runs a plan on the current stream; data[i] is the tensor that the graph calls ids[i].
bool execute(Context& c, CudnnHandle& h, const CudnnPlan& plan, const std::vector<int64_t>& ids,
             const std::vector<void*>& data, const char* op);

// The time of the second of two runs, or nothing where the engine fails.
std::optional<float> time_of(Context& c, CudnnHandle& h, const CudnnPlan& plan, const std::vector<int64_t>& ids,
                             const std::vector<void*>& data, const char* op);

}  // namespace volta::cuda

#ifdef VOLTA_HAVE_CUDNN
#include "backend/cuda/cudnn.h"

#include <string>

namespace volta::cuda {

const Library& cudnn_library() {
  static const Library library("libcudnn.so." + std::to_string(CUDNN_MAJOR));
  return library;
}

const Cudnn& cudnn() {
  const auto symbol = [](const char* name) { return cudnn_library().symbol(name, "cuDNN"); };
  static const Cudnn functions{.version = symbol("cudnnGetVersion"),
                               .create = symbol("cudnnCreate"),
                               .set_stream = symbol("cudnnSetStream"),
                               .error_string = symbol("cudnnGetErrorString"),
                               .make = symbol("cudnnBackendCreateDescriptor"),
                               .destroy = symbol("cudnnBackendDestroyDescriptor"),
                               .set = symbol("cudnnBackendSetAttribute"),
                               .get = symbol("cudnnBackendGetAttribute"),
                               .finalize = symbol("cudnnBackendFinalize"),
                               .execute = symbol("cudnnBackendExecute")};
  return functions;
}

void check_cudnn(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw_error(status == CUDNN_STATUS_ALLOC_FAILED ? ErrorKind::memory : ErrorKind::device, "cuDNN",
              cudnn().error_string(status));
}

cudnnDataType_t cudnn_type(DType t) {
  return t == f32 ? CUDNN_DATA_FLOAT : t == f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

Descriptor cudnn_tensor(int64_t id, cudnnDataType_t type, const std::vector<int64_t>& sizes,
                        const std::vector<int64_t>& strides) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, cudnn_alignment);
  return d;
}

CudnnHandle& CudnnHandle::of(const Context& c) {
  static CudnnHandle* const handles = new CudnnHandle[most_devices];  // never destroyed, as contexts are not
  return handles[c.device];
}

void CudnnHandle::make() {
  if (!handle) check_cudnn(cudnn().create(&handle));
}

// Handles of graphs and plans are called deprecated; the library still needs them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void CudnnGraph::finalize(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& node : nodes) handles.push_back(node.handle());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finalize();
}

std::vector<CudnnPlan> plans_of(cudnnHandle_t handle, const CudnnGraph& graph, size_t wanted, int64_t limit,
                                const std::function<bool(const Descriptor&)>& accepts, bool* lacks_room) {
  std::vector<CudnnPlan> plans;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (!heuristics.finalizes()) continue;
    std::vector<Descriptor> configs;
    std::vector<cudnnBackendDescriptor_t> slots;
    for (int i = 0; i < 32; ++i) slots.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
    configs.erase(configs.begin() + heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, slots),
                  configs.end());
    for (Descriptor& config : configs) {
      if (plans.size() >= wanted) return plans;
      if (!accepts(config)) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (!plan.finalizes()) continue;
      std::vector<int64_t> bytes{0};
      plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, bytes);
      if (bytes[0] <= limit) plans.push_back({std::move(plan), std::move(config), bytes[0]});
      else if (lacks_room) *lacks_room = true;
    }
  }
  return plans;
}
#pragma GCC diagnostic pop

bool execute(Context& c, CudnnHandle& h, const CudnnPlan& plan, const std::vector<int64_t>& ids,
             const std::vector<void*>& data, const char* op) {
  if (h.stream != c.stream()) {
    check_cudnn(cudnn().set_stream(h.handle, c.stream()));
    h.stream = c.stream();
  }
  const Room workspace = c.memory().take(plan.workspace, op);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, static_cast<void*>(workspace->data));
  pack.finalize();
  if (cudnn().execute(h.handle, plan.plan.handle(), pack.handle()) != CUDNN_STATUS_SUCCESS) return false;
  after_launch(c, op);
  return true;
}

std::optional<float> time_of(Context& c, CudnnHandle& h, const CudnnPlan& plan, const std::vector<int64_t>& ids,
                             const std::vector<void*>& data, const char* op) {
  if (!execute(c, h, plan, ids, data, op)) return {};
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), op);
  check(cudaEventCreate(&end), op);
  check(cudaEventRecord(begin, c.stream()), op);
  const bool ran = execute(c, h, plan, ids, data, op);
  check(cudaEventRecord(end, c.stream()), op);
  wait_for(end, op);
  float time = 0;
  check(cudaEventElapsedTime(&time, begin, end), op);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ran ? std::optional(time) : std::nullopt;
}

}  // namespace volta::cuda
#endif

// Finds cuBLASLt at run time.
#include "backend/cuda/cublas.h"

#include <dlfcn.h>

#include <string>

#include <volta/error.h>

namespace volta::cuda {
namespace {

void* open_library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  const std::string candidates[] = {name, std::string(VOLTA_CUDA_LIBRARY_DIR) + "/" + name, "libcublasLt.so"};
  for (const std::string& candidate : candidates)
    if (void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(Error::Kind::device, "matmul", "cannot load " + name + " (cuBLASLt): " + dlerror());
}

template <class F> void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) throw Error(Error::Kind::device, "matmul", std::string("cuBLASLt has no ") + name);
}

CublasLt load() {
  void* library = open_library();
  CublasLt lt{};
  find(library, "cublasLtCreate", lt.create);
  find(library, "cublasLtMatmul", lt.matmul);
  find(library, "cublasLtMatmulDescCreate", lt.desc_create);
  find(library, "cublasLtMatmulDescDestroy", lt.desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", lt.desc_set);
  find(library, "cublasLtMatrixLayoutCreate", lt.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", lt.layout_destroy);
  find(library, "cublasLtMatrixLayoutSetAttribute", lt.layout_set);
  find(library, "cublasLtMatmulPreferenceCreate", lt.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  find(library, "cublasLtGetStatusString", lt.status_string);
  return lt;
}

}  // namespace

const CublasLt& cublas() {
  static const CublasLt lt = load();
  return lt;
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const auto kind = status == CUBLAS_STATUS_ALLOC_FAILED ? Error::Kind::memory : Error::Kind::device;
  throw Error(kind, "matmul", std::string("cuBLASLt reports: ") + cublas().status_string(status));
}

}  // namespace volta::cuda

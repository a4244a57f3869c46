// What the backend rests on, and which of it this machine has.
#include <volta/cuda.h>

#include <volta/device.h>

#include "backend/cuda/context.h"
#include "backend/cuda/library.h"

namespace volta::cuda {
namespace {

Component driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    return {"driver", "", "libcuda.so.1 cannot be loaded"};
  return {"driver", "for CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10), ""};
}

Component gpus() {
  Component all{"GPU", "", ""};
  for (int i = 0; i < device_count(); ++i) {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, i), "device");
    if (i > 0) all.found += ", ";
    all.found += std::string(p.name) + " " + std::to_string(p.major) + "." + std::to_string(p.minor);
  }
  if (all.found.empty()) all.missing = "the driver shows none";
  return all;
}

Component loaded(const char* name, const Library& library, const char* version_function) {
  if (!library.loaded()) return {name, "", library.why()};
  size_t (*version)() = library.symbol(version_function, name);
  const size_t n = version();
  const std::string text =
      std::to_string(n / 10000) + "." + std::to_string(n / 100 % 100) + "." + std::to_string(n % 100);
  return {name, library.name() + " " + text, ""};
}

Component cudnn_component() {
#ifdef VOLTA_HAVE_CUDNN
  return loaded("cuDNN", cudnn_library(), "cudnnGetVersion");
#else
  return {"cuDNN", "", "there was no cudnn.h when this was built"};
#endif
}

}  // namespace

std::vector<Component> components() {
  return {driver(), gpus(), loaded("cuBLASLt", cublas_library(), "cublasLtGetVersion"), cudnn_component()};
}

}  // namespace volta::cuda

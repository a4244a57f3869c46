// What builds without CUDA answer when asked for a GPU.
#ifndef VOLTA_HAVE_CUDA
#include "backend/cuda/cuda.h"

namespace volta {

Backend& cuda_backend(int index) {
  throw Error(Error::Kind::device, "device", "cuda:" + std::to_string(index) + " is not available: built without CUDA");
}

namespace cuda {
bool is_available() { return false; }
int device_count() { return 0; }
void synchronize(int device) { cuda_backend(device); }
MemoryStats memory_stats(int device) {
  cuda_backend(device);
  return {};
}
void empty_cache(int device) { cuda_backend(device); }
void allow_tf32(bool) {}
}  // namespace cuda

}  // namespace volta
#endif

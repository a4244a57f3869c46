// New tensors, uninitialised.
#pragma once
#include "core/impl.h"

namespace volta {

// On the device; row-major, or laid out like `dense` (whose offset is ignored).
Tensor allocate(const Shape& shape, DType dtype, Device device, const char* op);
Tensor allocate_like(const Layout& dense, DType dtype, Device device, const char* op);
// Takes x's shape and, where x is dense, its order of axes: a transposed x gives a transposed result.
Tensor allocate_as(const Tensor& x, DType dtype, Device device, const char* op);

// The host's; while the guard of a device lives, from its Backend::host_memory.
Tensor allocate_host(const Shape& shape, DType dtype, const char* op);
class HostMemoryFor {
 public:
  explicit HostMemoryFor(Device device);
  ~HostMemoryFor();
  HostMemoryFor(const HostMemoryFor&) = delete;
  HostMemoryFor& operator=(const HostMemoryFor&) = delete;

 private:
  class Backend* outer_;
};

}  // namespace volta

// New tensors, uninitialised.
#pragma once
#include "core/impl.h"

namespace volta {

// On the device; row-major, or laid out like `dense` (whose offset is ignored).
Tensor allocate(const Shape& shape, DType dtype, Device device, const char* op);
Tensor allocate_like(const Layout& dense, DType dtype, Device device, const char* op);
// Takes x's shape and, where x is dense, its order of axes: a transposed x gives a transposed result.
Tensor allocate_as(const Tensor& x, DType dtype, Device device, const char* op);

}  // namespace volta

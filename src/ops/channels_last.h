// Tensors [n, c, …] with their channels closest together, which some devices would rather have than planes.
#pragma once
#include "backend/allocate.h"
#include "ops/fused.h"

namespace volta {

// Whether x lies so, and the device's loops take it so: then their results lie so too.
inline bool keeps_channels_last(const Tensor& x) {
  const Layout& l = layout(x);
  return use_fused_loops && !l.is_contiguous() && l.is_channels_last() && backend(x.device()).takes_channels_last();
}

// x in that order: itself, or a copy.
inline Tensor channels_last(const Tensor& x) {
  return layout(x).is_channels_last() ? x : x.movedim(1, -1).contiguous().movedim(-1, 1);
}

// In that order, or contiguous.
inline Tensor allocate(const Shape& shape, bool channels_last, DType dtype, Device device, const char* op) {
  checked_numel(shape, op);
  return channels_last ? allocate_like(Layout::channels_last(shape), dtype, device, op)
                       : allocate(shape, dtype, device, op);
}

}  // namespace volta

// Whether two tensors hold the same numbers, NaN where the other has NaN.
#pragma once
#include <volta/ops.h>

#include "core/impl.h"

namespace volta {

inline bool same_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  if (same_memory(a, b) && a.dtype() == b.dtype() && layout(a) == layout(b)) return true;
  const NoGrad off;
  const Tensor x = a.detach(), y = b.detach().to(a.device()).to(a.dtype());
  return ((x == y) | ((x != x) & (y != y))).all().item<bool>();
}

}  // namespace volta

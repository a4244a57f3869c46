// Bilinear maps.
#pragma once
#include <volta/tensor.h>

namespace volta {

[[nodiscard]] Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                              const Tensor& bias = {});  // bilinear(a, b, w)

}  // namespace volta

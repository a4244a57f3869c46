// Which pointwise op each activation is that a product does to its results.
#pragma once
#include <array>
#include <utility>

#include "backend/backend.h"
#include "math/elementwise.h"

namespace volta {

inline constexpr std::array<std::pair<Fused, int>, 6> fused_ops = {{
    {Fused::relu, index_of<point::Relu>(ElementwiseOps{})},
    {Fused::gelu, index_of<point::Gelu>(ElementwiseOps{})},
    {Fused::gelu_tanh, index_of<point::GeluTanh>(ElementwiseOps{})},
    {Fused::silu, index_of<point::Silu>(ElementwiseOps{})},
    {Fused::tanh, index_of<point::Tanh>(ElementwiseOps{})},
    {Fused::sigmoid, index_of<point::Sigmoid>(ElementwiseOps{})},
}};
constexpr int op_of(Fused activation) {
  for (const auto& [fused, op] : fused_ops)
    if (fused == activation) return op;
  return -1;
}

}  // namespace volta

// How a convolution is computed: the algorithms of the CPU, and the three pieces.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace volta {

// How the CPU convolves; docs/convolution.md says when each is fastest. Winograd serves 3x3 kernels of stride and dilation
// 1 in f32; elsewhere, and for the gradient of the weight, it gives way to implicit_gemm.
enum class ConvAlgorithm : uint8_t { automatic, direct, im2col, implicit_gemm, winograd };
constexpr std::array<std::string_view, 5> choice_names(ConvAlgorithm) {
  return {"automatic", "direct", "im2col", "implicit_gemm", "winograd"};
}
const char* name(ConvAlgorithm algorithm);

// The three computations behind a convolution: its result, and the gradients of its input and of its weight.
enum class ConvPiece : uint8_t { forward, input, weight };
constexpr std::array<std::string_view, 3> choice_names(ConvPiece) { return {"forward", "input", "weight"}; }

}  // namespace volta

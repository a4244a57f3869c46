// Convolution and its transpose in one, two and three dimensions: functions, layers, and the choice of the algorithm.
#pragma once
#include <volta/nn/layer.h>
#include <volta/nn/per_axis.h>

namespace volta {

enum class ConvPad { valid, same };
constexpr std::array<std::string_view, 2> choice_names(ConvPad) { return {"valid", "same"}; }
// Zeros on both sides of each axis: a number, one for each axis, "valid" (none) or "same" (outputs as many as inputs).
class ConvPadding {
 public:
  ConvPadding(std::integral auto all) : sizes_(all) {}
  ConvPadding(std::initializer_list<int64_t> each) : sizes_(each) {}
  ConvPadding(const PerAxis& each) : sizes_(each) {}
  ConvPadding(const char* name) : sizes_(0), name_(name) {}
  ConvPadding(const std::string& name) : sizes_(0), name_(name) {}
  ConvPadding(ConvPad pad) : sizes_(0), name_(choice_names(pad)[size_t(pad)]) {}
  const PerAxis& sizes() const { return sizes_; }
  const std::string& name() const { return name_; }  // empty when numbers were given

 private:
  PerAxis sizes_;
  std::string name_;
};

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

struct ConvOptions {
  PerAxis stride = 1;
  ConvPadding padding = 0;
  PerAxis dilation = 1;
  Int groups = 1;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;  // of the call and of its gradients
  Int chunk = 0;  // im2col: output pixels unrolled at a time; 0: half a megabyte
};
struct ConvTransposeOptions {
  PerAxis stride = 1, padding = 0, output_padding = 0;
  Int groups = 1;
  PerAxis dilation = 1;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;
  Int chunk = 0;
};

// x [n, in, l] or [in, l] with weight [out, in / groups, k]: conv1d(x, w, b, {.stride = 2, .padding = 1}).
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const ConvOptions& options = {});
// x [n, in, h, w] with weight [out, in / groups, kh, kw]: conv2d(x, w, b, {.padding = "same"}).
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const ConvOptions& options = {});
// x [n, in, d, h, w]: conv3d(x, w, b, {.dilation = {1, 2, 2}}).
[[nodiscard]] Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                            const ConvOptions& options = {});

// The gradient of conv by its input as a function of its own: weight [in, out / groups, k...];
// conv_transpose2d(x, w, b, {.stride = 2, .padding = 1, .output_padding = 1}).
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTransposeOptions& options = {});  // conv_transpose1d(x, w)
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTransposeOptions& options = {});
[[nodiscard]] Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                      const ConvTransposeOptions& options = {});  // conv_transpose3d(x, w)

// What a convolution of these would use, its choice made: conv_algorithm(x, w, {.padding = 1}). The same function serves
// one, two and three dimensions. Devices without the loop compute tap by tap and answer `direct`.
ConvAlgorithm conv_algorithm(const Tensor& x, const Tensor& weight, const ConvOptions& options = {},
                             const Choice<ConvPiece>& piece = ConvPiece::forward);

// While it lives, this thread's convolutions that ask for nothing else use one algorithm, also in their backward pass:
// { UseConvAlgorithm use(ConvAlgorithm::direct); y = model(x); }
class [[nodiscard]] UseConvAlgorithm {
 public:
  [[nodiscard]] explicit UseConvAlgorithm(const Choice<ConvAlgorithm>& algorithm);
  ~UseConvAlgorithm();
  UseConvAlgorithm(const UseConvAlgorithm&) = delete;
  UseConvAlgorithm& operator=(const UseConvAlgorithm&) = delete;

 private:
  ConvAlgorithm before_;
};

namespace nn {

// What the padding is filled with.
enum class PaddingMode { zeros, reflect, replicate, circular };
constexpr std::array<std::string_view, 4> choice_names(PaddingMode) {
  return {"zeros", "reflect", "replicate", "circular"};
}
struct ConvLayerOptions {
  PerAxis stride = 1;
  ConvPadding padding = 0;
  PerAxis dilation = 1;
  Int groups = 1;
  bool bias = true;
  Choice<PaddingMode> padding_mode = PaddingMode::zeros;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;
};
struct ConvTransposeLayerOptions {
  PerAxis stride = 1, padding = 0, output_padding = 0;
  Int groups = 1;
  bool bias = true;
  PerAxis dilation = 1;
  Choice<ConvAlgorithm> algorithm = ConvAlgorithm::automatic;
};

// nn::Conv2d(3, 64, 7, {.stride = 2, .padding = 3}); the kernel may be {3, 5}. Weight [out, in / groups, k...].
template <int Axes> class Conv : public Layer {
 public:
  Conv(Int in_channels, Int out_channels, const PerAxis& kernel_size, const ConvLayerOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void reset_parameters();  // draws new ones
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;
  Parameter weight, bias;
  ConvLayerOptions options;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

// nn::ConvTranspose2d(64, 32, 2, {.stride = 2}). Weight [in, out / groups, k...]. The call may name the output's size where
// the stride leaves it open: up(x, {64, 64}).
template <int Axes> class ConvTranspose : public Layer {
 public:
  ConvTranspose(Int in_channels, Int out_channels, const PerAxis& kernel_size,
                const ConvTransposeLayerOptions& options = {});
  Tensor operator()(const Tensor& x, const Shape& output_size = {}) const;
  void reset_parameters();
  void fields(Fields& f) override;
  double flops(const Tensor& x, const Tensor& y) const override;
  Parameter weight, bias;
  ConvTransposeLayerOptions options;
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace nn
}  // namespace volta

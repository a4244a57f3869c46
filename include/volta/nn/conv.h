// Layers of convolution and its transpose in one, two and three dimensions.
#pragma once
#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

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

}  // namespace volta::nn

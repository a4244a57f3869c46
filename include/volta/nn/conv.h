// Layers of convolution and its transpose in one, two and three dimensions.
#pragma once
#include <initializer_list>
#include <type_traits>

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

// Options with a stride and a padding that were given by position, for `type`.
template <class Options, class Padding>
Options with_stride(Options rest, const PerAxis& stride, const Padding& padding, const char* type) {
  const auto untouched = [](const PerAxis& given, int64_t by_default) { return given.given() == Shape{by_default}; };
  bool twice = !untouched(rest.stride, 1);
  if constexpr (std::is_same_v<Padding, PerAxis>) twice |= !untouched(rest.padding, 0);
  else twice |= !rest.padding.name().empty() || !untouched(rest.padding.sizes(), 0);
  if (twice) throw Error(Error::Kind::argument, type, "the stride or the padding is given twice");
  rest.stride = stride, rest.padding = padding;
  return rest;
}

// nn::Conv2d(3, 64, 7, {.stride = 2, .padding = 3}), or as in PyTorch nn::Conv2d(3, 64, 7, 2, 3, {.bias = false}); the
// kernel may be {3, 5}. Weight [out, in / groups, k...].
template <int Axes> class Conv : public Layer {
 public:
  Conv(Int in_channels, Int out_channels, const PerAxis& kernel_size, const ConvLayerOptions& options = {});
  Conv(Int in_channels, Int out_channels, const PerAxis& kernel_size, volta::detail::Whole auto stride,
       const ConvPadding& padding = 0, const ConvLayerOptions& rest = {})
      : Conv(in_channels, out_channels, kernel_size, with_stride(rest, stride, padding, "Conv")) {}
  template <volta::detail::Whole S>
  Conv(Int in_channels, Int out_channels, const PerAxis& kernel_size, std::initializer_list<S> stride,
       const ConvPadding& padding = 0, const ConvLayerOptions& rest = {})
      : Conv(in_channels, out_channels, kernel_size, with_stride(rest, PerAxis::list(stride), padding, "Conv")) {}
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
  ConvTranspose(Int in_channels, Int out_channels, const PerAxis& kernel_size, volta::detail::Whole auto stride,
                const PerAxis& padding = 0, const ConvTransposeLayerOptions& rest = {})
      : ConvTranspose(in_channels, out_channels, kernel_size, with_stride(rest, stride, padding, "ConvTranspose")) {}
  template <volta::detail::Whole S>
  ConvTranspose(Int in_channels, Int out_channels, const PerAxis& kernel_size, std::initializer_list<S> stride,
                const PerAxis& padding = 0, const ConvTransposeLayerOptions& rest = {})
      : ConvTranspose(in_channels, out_channels, kernel_size,
                      with_stride(rest, PerAxis::list(stride), padding, "ConvTranspose")) {}
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

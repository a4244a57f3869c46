// Layers that change the resolution.
#pragma once
#include <initializer_list>

#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

// nn::Upsample({.scale_factor = 2, .mode = "bilinear"}).
class Upsample : public Layer {
 public:
  explicit Upsample(const InterpolateOptions& o) : Layer("Upsample"), options(o) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  InterpolateOptions options;
};

// nn::UpsamplingNearest2d({.scale_factor = 2}); nn::UpsamplingBilinear2d({.size = {8, 8}}), which aligns the corners.
struct UpsamplingNearest2d : Upsample {
  explicit UpsamplingNearest2d(InterpolateOptions o);
};
struct UpsamplingBilinear2d : Upsample {
  explicit UpsamplingBilinear2d(InterpolateOptions o);
};

// nn::Unfold(3, {.padding = 1}): im2col.
class Unfold : public Layer {
 public:
  explicit Unfold(const PerAxis& kernel, const ColumnOptions& o = {})
      : Layer("Unfold"), kernel_size(kernel), options(o) {}
  Unfold(const PerAxis& kernel, volta::detail::Whole auto dilation, const PerAxis& padding = 0,
         const PerAxis& stride = 1)
      : Unfold(kernel, ColumnOptions{dilation, padding, stride}) {}
  template <volta::detail::Whole S> Unfold(const PerAxis& kernel, std::initializer_list<S> dilation,
                                           const PerAxis& padding = 0, const PerAxis& stride = 1)
      : Unfold(kernel, ColumnOptions{PerAxis::list(dilation), padding, stride}) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  PerAxis kernel_size;
  ColumnOptions options;
};

// nn::Fold({8, 8}, 3, {.padding = 1}): col2im.
class Fold : public Layer {
 public:
  Fold(const PerAxis& output, const PerAxis& kernel, const ColumnOptions& o = {})
      : Layer("Fold"), output_size(output), kernel_size(kernel), options(o) {}
  Fold(const PerAxis& output, const PerAxis& kernel, volta::detail::Whole auto dilation, const PerAxis& padding = 0,
       const PerAxis& stride = 1)
      : Fold(output, kernel, ColumnOptions{dilation, padding, stride}) {}
  template <volta::detail::Whole S>
  Fold(const PerAxis& output, const PerAxis& kernel, std::initializer_list<S> dilation, const PerAxis& padding = 0,
       const PerAxis& stride = 1)
      : Fold(output, kernel, ColumnOptions{PerAxis::list(dilation), padding, stride}) {}
  Tensor operator()(const Tensor& x) const;
  void fields(Fields&) override {}
  PerAxis output_size, kernel_size;
  ColumnOptions options;
};

}  // namespace volta::nn

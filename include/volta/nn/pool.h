// Layers of pooling.
#pragma once
#include <initializer_list>

#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

// What pooling layers share: nothing to learn, and a type named after the number of axes. After the kernel comes a struct
// of options, or as in PyTorch the stride: nn::MaxPool2d(3, 2, 1).
template <int Axes> class AnyPool : public Layer {
 public:
  void fields(Fields&) override {}

 protected:
  explicit AnyPool(const char* const (&types)[3]) : Layer(types[Axes - 1]) {}
};

// nn::MaxPool2d(3, {.stride = 2, .padding = 1}); with_indices gives the places too, for nn::MaxUnpool2d.
template <int Axes> class MaxPool : public AnyPool<Axes> {
 public:
  explicit MaxPool(const PerAxis& kernel, const MaxPoolOptions& o = {})
      : AnyPool<Axes>({"MaxPool1d", "MaxPool2d", "MaxPool3d"}), kernel_size(kernel), options(o) {}
  MaxPool(const PerAxis& kernel, volta::detail::Whole auto stride, const PerAxis& padding = 0)
      : MaxPool(kernel, MaxPoolOptions{.stride = stride, .padding = padding}) {}
  template <volta::detail::Whole S>
  MaxPool(const PerAxis& kernel, std::initializer_list<S> stride, const PerAxis& padding = 0)
      : MaxPool(kernel, MaxPoolOptions{.stride = PerAxis::list(stride), .padding = padding}) {}
  Tensor operator()(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::max(Axes, in, kernel_size, options, false).values; });
  }
  ValuesIndices with_indices(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::max(Axes, in, kernel_size, options, true); });
  }
  void fields(Fields&) override {}
  PerAxis kernel_size;
  MaxPoolOptions options;
};

// nn::AvgPool2d(2).
template <int Axes> class AvgPool : public AnyPool<Axes> {
 public:
  explicit AvgPool(const PerAxis& kernel, const AvgPoolOptions& o = {})
      : AnyPool<Axes>({"AvgPool1d", "AvgPool2d", "AvgPool3d"}), kernel_size(kernel), options(o) {}
  AvgPool(const PerAxis& kernel, volta::detail::Whole auto stride, const PerAxis& padding = 0)
      : AvgPool(kernel, AvgPoolOptions{.stride = stride, .padding = padding}) {}
  template <volta::detail::Whole S>
  AvgPool(const PerAxis& kernel, std::initializer_list<S> stride, const PerAxis& padding = 0)
      : AvgPool(kernel, AvgPoolOptions{.stride = PerAxis::list(stride), .padding = padding}) {}
  Tensor operator()(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::average(Axes, in, kernel_size, options); });
  }
  void fields(Fields&) override {}
  PerAxis kernel_size;
  AvgPoolOptions options;
};

// nn::LPPool2d(2, 3).
template <int Axes> class LPPool : public AnyPool<Axes> {
 public:
  LPPool(double norm, const PerAxis& kernel, const LPPoolOptions& o = {})
      : AnyPool<Axes>({"LPPool1d", "LPPool2d", "LPPool3d"}), norm_type(norm), kernel_size(kernel), options(o) {}
  LPPool(double norm, const PerAxis& kernel, volta::detail::Whole auto stride)
      : LPPool(norm, kernel, LPPoolOptions{.stride = stride}) {}
  template <volta::detail::Whole S> LPPool(double norm, const PerAxis& kernel, std::initializer_list<S> stride)
      : LPPool(norm, kernel, LPPoolOptions{.stride = PerAxis::list(stride)}) {}
  Tensor operator()(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::lp(Axes, in, norm_type, kernel_size, options); });
  }
  void fields(Fields&) override {}
  double norm_type;
  PerAxis kernel_size;
  LPPoolOptions options;
};

// nn::AdaptiveAvgPool2d(1) pools globally.
template <int Axes> class AdaptiveAvgPool : public AnyPool<Axes> {
 public:
  explicit AdaptiveAvgPool(const PerAxis& size)
      : AnyPool<Axes>({"AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"}), output_size(size) {}
  Tensor operator()(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::adaptive_average(Axes, in, output_size); });
  }
  void fields(Fields&) override {}
  PerAxis output_size;
};

// nn::AdaptiveMaxPool2d({7, 7}).
template <int Axes> class AdaptiveMaxPool : public AnyPool<Axes> {
 public:
  explicit AdaptiveMaxPool(const PerAxis& size)
      : AnyPool<Axes>({"AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d"}), output_size(size) {}
  Tensor operator()(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::adaptive_max(Axes, in, output_size, false).values; });
  }
  ValuesIndices with_indices(const Tensor& x) const {
    return this->call(x, [&](const Tensor& in) { return pooling::adaptive_max(Axes, in, output_size, true); });
  }
  void fields(Fields&) override {}
  PerAxis output_size;
};

// nn::MaxUnpool2d(2)(y, indices).
template <int Axes> class MaxUnpool : public AnyPool<Axes> {
 public:
  explicit MaxUnpool(const PerAxis& kernel, const MaxUnpoolOptions& o = {})
      : AnyPool<Axes>({"MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"}), kernel_size(kernel), options(o) {}
  MaxUnpool(const PerAxis& kernel, volta::detail::Whole auto stride, const PerAxis& padding = 0)
      : MaxUnpool(kernel, MaxUnpoolOptions{.stride = stride, .padding = padding}) {}
  template <volta::detail::Whole S>
  MaxUnpool(const PerAxis& kernel, std::initializer_list<S> stride, const PerAxis& padding = 0)
      : MaxUnpool(kernel, MaxUnpoolOptions{.stride = PerAxis::list(stride), .padding = padding}) {}
  Tensor operator()(const Tensor& x, const Tensor& indices) const {
    return this->call(x, [&](const Tensor& in) { return pooling::unpool(Axes, in, indices, kernel_size, options); });
  }
  void fields(Fields&) override {}
  PerAxis kernel_size;
  MaxUnpoolOptions options;
};

// clang-format off
using MaxPool1d = MaxPool<1>; using MaxPool2d = MaxPool<2>; using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>; using AvgPool2d = AvgPool<2>; using AvgPool3d = AvgPool<3>;
using LPPool1d = LPPool<1>; using LPPool2d = LPPool<2>; using LPPool3d = LPPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>; using AdaptiveAvgPool2d = AdaptiveAvgPool<2>; using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>; using AdaptiveMaxPool2d = AdaptiveMaxPool<2>; using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;
using MaxUnpool1d = MaxUnpool<1>; using MaxUnpool2d = MaxUnpool<2>; using MaxUnpool3d = MaxUnpool<3>;
// clang-format on

}  // namespace volta::nn

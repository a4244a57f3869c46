// Pooling in one, two and three dimensions: functions and layers. Inputs are [n, c, ...] or, without a batch, [c, ...].
#pragma once
#include <volta/nn/layer.h>
#include <volta/per_axis.h>

namespace volta {

struct MaxPoolOptions {
  PerAxis stride = {};  // none: the kernel
  PerAxis padding = 0, dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  PerAxis stride = {};
  PerAxis padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  std::optional<Int> divisor_override = {};
};
struct LPPoolOptions {
  PerAxis stride = {};
  bool ceil_mode = false;
};
struct MaxUnpoolOptions {
  PerAxis stride = {};
  PerAxis padding = 0;
  Shape output_size = {};  // of the pooled axes, or the whole shape; empty: the smallest that pools to the input
};

// Each for any number of pooled axes, which are the last; the functions below name that number.
namespace pooling {
[[nodiscard]] ValuesIndices max(int axes, const Tensor& x, const PerAxis& kernel, const MaxPoolOptions& o,
                                bool indices);
[[nodiscard]] Tensor average(int axes, const Tensor& x, const PerAxis& kernel, const AvgPoolOptions& o);
[[nodiscard]] Tensor lp(int axes, const Tensor& x, double norm_type, const PerAxis& kernel, const LPPoolOptions& o);
[[nodiscard]] Tensor adaptive_average(int axes, const Tensor& x, const PerAxis& output_size);
[[nodiscard]] ValuesIndices adaptive_max(int axes, const Tensor& x, const PerAxis& output_size, bool indices);
[[nodiscard]] Tensor unpool(int axes, const Tensor& x, const Tensor& indices, const PerAxis& kernel,
                            const MaxUnpoolOptions& o);
}  // namespace pooling

// clang-format off
// The largest of each window; padding never wins: max_pool2d(x, 3, {.stride = 2, .padding = 1}).
[[nodiscard]] inline Tensor max_pool1d(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(1, x, kernel_size, o, false).values; }
[[nodiscard]] inline Tensor max_pool2d(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(2, x, kernel_size, o, false).values; }
[[nodiscard]] inline Tensor max_pool3d(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(3, x, kernel_size, o, false).values; }
// And where it stands in the plane of the pooled axes, the first of equals: auto [y, i] = max_pool2d_with_indices(x, 2).
[[nodiscard]] inline ValuesIndices max_pool1d_with_indices(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(1, x, kernel_size, o, true); }
[[nodiscard]] inline ValuesIndices max_pool2d_with_indices(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(2, x, kernel_size, o, true); }
[[nodiscard]] inline ValuesIndices max_pool3d_with_indices(const Tensor& x, const PerAxis& kernel_size, const MaxPoolOptions& o = {}) { return pooling::max(3, x, kernel_size, o, true); }
// The mean of each window: avg_pool2d(x, {3, 2}, {.stride = 2, .count_include_pad = false}).
[[nodiscard]] inline Tensor avg_pool1d(const Tensor& x, const PerAxis& kernel_size, const AvgPoolOptions& o = {}) { return pooling::average(1, x, kernel_size, o); }
[[nodiscard]] inline Tensor avg_pool2d(const Tensor& x, const PerAxis& kernel_size, const AvgPoolOptions& o = {}) { return pooling::average(2, x, kernel_size, o); }
[[nodiscard]] inline Tensor avg_pool3d(const Tensor& x, const PerAxis& kernel_size, const AvgPoolOptions& o = {}) { return pooling::average(3, x, kernel_size, o); }
// The p-norm of each window, without the absolute value, as PyTorch has it: lp_pool2d(x, 2, 3).
[[nodiscard]] inline Tensor lp_pool1d(const Tensor& x, double norm_type, const PerAxis& kernel_size, const LPPoolOptions& o = {}) { return pooling::lp(1, x, norm_type, kernel_size, o); }
[[nodiscard]] inline Tensor lp_pool2d(const Tensor& x, double norm_type, const PerAxis& kernel_size, const LPPoolOptions& o = {}) { return pooling::lp(2, x, norm_type, kernel_size, o); }
[[nodiscard]] inline Tensor lp_pool3d(const Tensor& x, double norm_type, const PerAxis& kernel_size, const LPPoolOptions& o = {}) { return pooling::lp(3, x, norm_type, kernel_size, o); }
// Windows such that the result has a given size, -1 that of the input; 1 pools globally: adaptive_avg_pool2d(x, {7, 7}).
[[nodiscard]] inline Tensor adaptive_avg_pool1d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_average(1, x, output_size); }
[[nodiscard]] inline Tensor adaptive_avg_pool2d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_average(2, x, output_size); }
[[nodiscard]] inline Tensor adaptive_avg_pool3d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_average(3, x, output_size); }
[[nodiscard]] inline Tensor adaptive_max_pool1d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(1, x, output_size, false).values; }
[[nodiscard]] inline Tensor adaptive_max_pool2d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(2, x, output_size, false).values; }
[[nodiscard]] inline Tensor adaptive_max_pool3d(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(3, x, output_size, false).values; }
[[nodiscard]] inline ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(1, x, output_size, true); }
[[nodiscard]] inline ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(2, x, output_size, true); }
[[nodiscard]] inline ValuesIndices adaptive_max_pool3d_with_indices(const Tensor& x, const PerAxis& output_size) { return pooling::adaptive_max(3, x, output_size, true); }
// Values back where max pooling found them, 0 elsewhere: max_unpool2d(y, i, 2).
[[nodiscard]] inline Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const PerAxis& kernel_size, const MaxUnpoolOptions& o = {}) { return pooling::unpool(1, x, indices, kernel_size, o); }
[[nodiscard]] inline Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const PerAxis& kernel_size, const MaxUnpoolOptions& o = {}) { return pooling::unpool(2, x, indices, kernel_size, o); }
[[nodiscard]] inline Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const PerAxis& kernel_size, const MaxUnpoolOptions& o = {}) { return pooling::unpool(3, x, indices, kernel_size, o); }
// clang-format on

namespace nn {

// What pooling layers share: nothing to learn, and a type named after the number of axes.
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

}  // namespace nn
}  // namespace volta

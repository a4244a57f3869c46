// Layers of normalisation, with their weights and running statistics.
#pragma once
#include <volta/nn/lambda.h>
#include <volta/ops.h>

namespace volta::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the plain average of all batches
  bool affine = true, track_running_stats = true;
};
struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false, track_running_stats = false;
};

// Weight, bias and running statistics of channels. In training mode the call changes the statistics: the one exception
// to "calls are const", so train one model from one thread.
class ChannelNorm : public Layer {
 public:
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor& y) const override { return 4.0 * double(y.numel()); }
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;
  double eps;

 protected:
  ChannelNorm(const char* type, Int num_features, double e, bool affine, bool track);
};

// Over batch and space, per channel: nn::BatchNorm2d(64) for [n, c, h, w]; 1d for [n, c] or [n, c, l].
template <int Axes> class BatchNorm : public ChannelNorm {
 public:
  explicit BatchNorm(Int num_features, const BatchNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override { ChannelNorm::fields(f); }
  std::optional<double> momentum;
};
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

// Over space, per channel and sample: nn::InstanceNorm2d(64) for [n, c, h, w] or [c, h, w].
template <int Axes> class InstanceNorm : public ChannelNorm {
 public:
  explicit InstanceNorm(Int num_features, const InstanceNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override { ChannelNorm::fields(f); }
  double momentum;

 private:
  int64_t features_;
};
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
// Over the last axes: nn::LayerNorm(768), nn::LayerNorm({32, 32}).
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(volta::detail::Whole auto size, const LayerNormOptions& options = {})
      : LayerNorm(Shape{size}, options) {}
  explicit LayerNorm(std::initializer_list<Int> sizes, const LayerNormOptions& options = {})
      : LayerNorm(Shape(sizes), options) {}
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor& y) const override { return 8.0 * double(y.numel()); }
  Parameter weight, bias;
  Shape normalized_shape;
  double eps;
};

struct RMSNormOptions {
  std::optional<double> eps = {};
  bool elementwise_affine = true;
};
// nn::RMSNorm(768, {.eps = 1e-6}).
class RMSNorm : public Layer {
 public:
  explicit RMSNorm(volta::detail::Whole auto size, const RMSNormOptions& options = {})
      : RMSNorm(Shape{size}, options) {}
  explicit RMSNorm(std::initializer_list<Int> sizes, const RMSNormOptions& options = {})
      : RMSNorm(Shape(sizes), options) {}
  explicit RMSNorm(const Shape& normalized_shape, const RMSNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor& y) const override { return 4.0 * double(y.numel()); }
  Parameter weight;
  Shape normalized_shape;
  std::optional<double> eps;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
// nn::GroupNorm(8, 64) for [n, 64, ...].
class GroupNorm : public Layer {
 public:
  GroupNorm(Int num_groups, Int num_channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor& y) const override { return 8.0 * double(y.numel()); }
  Parameter weight, bias;
  int64_t num_groups, num_channels;
  double eps;
};

// Each value divided by a power of the squares of its neighbours among the channels: nn::LocalResponseNorm(5)(x).
struct LocalResponseNorm : Lambda {
  explicit LocalResponseNorm(Int size, double alpha = 1e-4, double beta = 0.75, double k = 1);
};

}  // namespace volta::nn

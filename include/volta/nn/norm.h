// Normalisation: functions, and layers with their weights and running statistics.
#pragma once
#include <volta/nn/layer.h>

namespace volta {

// (x - mean) / sqrt(var + eps) * weight + bias, over the last axes: layer_norm(x, {768}, w, b). Undefined: left out.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// x / sqrt(mean(x^2) + eps) * weight over the last axes, eps of the dtype by default: rms_norm(x, {768}, w).
Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});
// Channels of [n, c, ...] in groups, each normalised: group_norm(x, 8, w, b).
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// Each channel of [n, c, ...] over the batch; training uses the batch's statistics and moves the running ones, else the
// running ones are used: batch_norm(x, mean, var, w, b, true).
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// Each channel of each sample: instance_norm(x). With use_input_stats = false the running statistics are used.
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);
// x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta: local_response_norm(x, 5).
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);

Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1,
                 double eps = 1e-12);  // x / max(|x|_p, eps): normalize(x)
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1,
                         double eps = 1e-8);  // cosine_similarity(a, b)
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
                         bool keepdim = false);  // |a - b + eps|_p over the last axis: pairwise_distance(a, b)

namespace nn {

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
  ChannelNorm(const char* type, int64_t num_features, double e, bool affine, bool track);
};

// Over batch and space, per channel: nn::BatchNorm1d(64) for [n, c] or [n, c, l].
class BatchNorm1d : public ChannelNorm {
 public:
  explicit BatchNorm1d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm1d("BatchNorm1d", 2, 3, num_features, options) {}
  Tensor operator()(const Tensor& x) const;
  std::optional<double> momentum;

 protected:
  BatchNorm1d(const char* type, int from_rank, int to_rank, int64_t num_features, const BatchNormOptions& options);

 private:
  int from_rank_, to_rank_;
};
// nn::BatchNorm2d(64) for [n, c, h, w].
struct BatchNorm2d : BatchNorm1d {
  explicit BatchNorm2d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm1d("BatchNorm2d", 4, 4, num_features, options) {}
};
// nn::BatchNorm3d(64) for [n, c, d, h, w].
struct BatchNorm3d : BatchNorm1d {
  explicit BatchNorm3d(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm1d("BatchNorm3d", 5, 5, num_features, options) {}
};

// Over space, per channel and sample: nn::InstanceNorm1d(64) for [n, c, l] or [c, l].
class InstanceNorm1d : public ChannelNorm {
 public:
  explicit InstanceNorm1d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm1d("InstanceNorm1d", 3, num_features, options) {}
  Tensor operator()(const Tensor& x) const;
  double momentum;

 protected:
  InstanceNorm1d(const char* type, int rank, int64_t num_features, const InstanceNormOptions& options);

 private:
  int64_t features_;
  int rank_;
};
// nn::InstanceNorm2d(64) for [n, c, h, w] or [c, h, w].
struct InstanceNorm2d : InstanceNorm1d {
  explicit InstanceNorm2d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm1d("InstanceNorm2d", 4, num_features, options) {}
};
// nn::InstanceNorm3d(64) for [n, c, d, h, w] or [c, d, h, w].
struct InstanceNorm3d : InstanceNorm1d {
  explicit InstanceNorm3d(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNorm1d("InstanceNorm3d", 5, num_features, options) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
// Over the last axes: nn::LayerNorm(768), nn::LayerNorm({32, 32}).
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Shape{size}, options) {}
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
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {}) : RMSNorm(Shape{size}, options) {}
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
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor& y) const override { return 8.0 * double(y.numel()); }
  Parameter weight, bias;
  int64_t num_groups, num_channels;
  double eps;
};

}  // namespace nn
}  // namespace volta

// Pooling in one, two and three dimensions. Inputs are [n, c, ...] or, without a batch, [c, ...].
#pragma once
#include <volta/per_axis.h>
#include <volta/tensor.h>

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

}  // namespace volta

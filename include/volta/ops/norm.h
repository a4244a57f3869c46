// Normalisation.
#pragma once
#include <volta/tensor.h>

namespace volta {

// (x - mean) / sqrt(var + eps) * weight + bias, over the last axes: layer_norm(x, {768}, w, b). Undefined: left out.
[[nodiscard]] Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                                const Tensor& bias = {}, double eps = 1e-5);
// x / sqrt(mean(x^2) + eps) * weight over the last axes, eps of the dtype by default: rms_norm(x, {768}, w).
[[nodiscard]] Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                              std::optional<double> eps = {});
// Channels of [n, c, ...] in groups, each normalised: group_norm(x, 8, w, b).
[[nodiscard]] Tensor group_norm(const Tensor& x, Int num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                                double eps = 1e-5);
// Each channel of [n, c, ...] over the batch; training uses the batch's statistics and moves the running ones, else the
// running ones are used: batch_norm(x, mean, var, w, b, true).
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                                const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                                double momentum = 0.1, double eps = 1e-5);
// Each channel of each sample: instance_norm(x). With use_input_stats = false the running statistics are used.
[[nodiscard]] Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                                   const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                                   double momentum = 0.1, double eps = 1e-5);
// x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta: local_response_norm(x, 5).
[[nodiscard]] Tensor local_response_norm(const Tensor& x, Int size, double alpha = 1e-4, double beta = 0.75,
                                         double k = 1);

[[nodiscard]] Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1,
                               double eps = 1e-12);  // x / max(|x|_p, eps): normalize(x)
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1,
                                       double eps = 1e-8);  // cosine_similarity(a, b)
[[nodiscard]] Tensor pairwise_distance(
    const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
    bool keepdim = false);  // |a - b + eps|_p over the last axis: pairwise_distance(a, b)

}  // namespace volta

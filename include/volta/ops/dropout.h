// Dropout of elements or of whole channels.
#pragma once
#include <volta/tensor.h>

namespace volta {

// Zeroes elements with probability p and scales the others by 1 / (1 - p): dropout(x, 0.1, training).
[[nodiscard]] Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);
[[nodiscard]] Tensor feature_dropout(const Tensor& x, double p = 0.5,
                                     bool training = true);  // whole channels of [n, c, ...]
// Keeps mean and variance of what selu gives: alpha_dropout(x, 0.1).
[[nodiscard]] Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = true);
[[nodiscard]] Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = true);  // whole channels

// softmax((logits + Gumbel noise) / tau); with `hard` one-hot, its gradient that of the soft one.
[[nodiscard]] Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1);

}  // namespace volta

// Activations that are not elementwise, or draw; and pixels as channels.
#pragma once
#include <string>
#include <vector>

#include <volta/tensor.h>

namespace volta {

[[nodiscard]] Tensor glu(const Tensor& x, int64_t dim = -1);  // a * sigmoid(b) of the halves a and b of an axis: glu(x)
[[nodiscard]] Tensor softmin(const Tensor& x, int64_t dim);   // softmax of -x: softmin(x, -1)
[[nodiscard]] Tensor prelu(const Tensor& x,
                           const Tensor& weight);  // slopes below 0, one or one per channel: prelu(x, w)
[[nodiscard]] Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3,
                           bool training = false);  // rrelu(x)
[[nodiscard]] Tensor pixel_shuffle(const Tensor& x,
                                   Int upscale_factor);  // [.., c r^2, h, w] to [.., c, h r, w r]: pixel_shuffle(x, 2)
[[nodiscard]] Tensor pixel_unshuffle(const Tensor& x, Int downscale_factor);  // the way back: pixel_unshuffle(x, 2)

}  // namespace volta

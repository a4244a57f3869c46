// Layers that only rearrange.
#include <volta/nn/lambda.h>

#include <volta/ops.h>

#include "core/arguments.h"

namespace volta::nn {

// clang-format off
Identity::Identity() : Lambda("Identity", [](const Tensor& x) { return x; }, 0) {}
Flatten::Flatten(int64_t start, int64_t end) : Lambda("Flatten", [=](const Tensor& x) { return x.flatten(start, end); }, 0) {}
Unflatten::Unflatten(int64_t dim, const Shape& sizes) : Lambda("Unflatten", [=](const Tensor& x) { return x.unflatten(dim, sizes); }, 0) {}
ChannelShuffle::ChannelShuffle(Int groups) : Lambda("ChannelShuffle", [groups = positive(groups, "ChannelShuffle", "groups")](const Tensor& x) { return channel_shuffle(x, groups); }, 0) {}
PixelShuffle::PixelShuffle(Int factor) : Lambda("PixelShuffle", [factor = positive(factor, "PixelShuffle", "upscale_factor")](const Tensor& x) { return pixel_shuffle(x, factor); }, 0) {}
PixelUnshuffle::PixelUnshuffle(Int factor) : Lambda("PixelUnshuffle", [factor = positive(factor, "PixelUnshuffle", "downscale_factor")](const Tensor& x) { return pixel_unshuffle(x, factor); }, 0) {}
// clang-format on

}  // namespace volta::nn

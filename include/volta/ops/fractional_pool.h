// Fractional max pooling: windows at places drawn at random, so that the size shrinks by a fraction.
#pragma once
#include <volta/per_axis.h>
#include <volta/tensor.h>

namespace volta {

struct FractionalPoolOptions {
  PerAxis output_size = {};   // of the pooled axes; or
  Numbers output_ratio = {};  // a part of the input's sizes, in (0, 1)
  Tensor random_samples =
      {};  // [n, c, axes] of [0, 1), of the input's dtype: where the windows lie; drawn if undefined
};
// The largest of each window of [n, c, h, w] or [c, h, w]: fractional_max_pool2d(x, 3, {.output_ratio = 0.7}).
[[nodiscard]] Tensor fractional_max_pool2d(const Tensor& x, const PerAxis& kernel_size,
                                           const FractionalPoolOptions& options);
[[nodiscard]] Tensor fractional_max_pool3d(const Tensor& x, const PerAxis& kernel_size,
                                           const FractionalPoolOptions& options);
// And where it stands in the plane of the pooled axes.
[[nodiscard]] ValuesIndices fractional_max_pool2d_with_indices(const Tensor& x, const PerAxis& kernel_size,
                                                               const FractionalPoolOptions& options);
[[nodiscard]] ValuesIndices fractional_max_pool3d_with_indices(const Tensor& x, const PerAxis& kernel_size,
                                                               const FractionalPoolOptions& options);

}  // namespace volta

// Options of fractional max pooling: windows at places drawn at random, so that the size shrinks by a fraction.
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

}  // namespace volta

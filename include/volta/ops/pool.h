// Options of pooling, and pooling over any number of axes. Inputs are [n, c, ...] or, without a batch, [c, ...].
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
struct FractionalPoolOptions {
  PerAxis output_size = {};   // of the pooled axes; or
  Numbers output_ratio = {};  // a part of the input's sizes, in (0, 1)
  Tensor random_samples =
      {};  // [n, c, axes] of [0, 1), of the input's dtype: where the windows lie; drawn if undefined
};

// Each for any number of pooled axes, which are the last; the ops name that number.
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

}  // namespace volta

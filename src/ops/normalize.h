// One op behind every normalisation: mean and variance over sets of elements, then scale and shift.
#pragma once
#include <volta/tensor.h>

namespace volta {

// How x is looked at: [outer, groups, channels, inner]. Each group of each outer index has its own statistics; with
// `over_outer` a group has the same ones at all of them (and has one channel).
struct NormSets {
  const char* op;
  int64_t outer, groups, channels, inner;
  double eps;
  bool over_outer = false, centered = true;
};
struct NormStatistics {
  Tensor mean, var;  // one for each set, in the dtype of the computation
  bool given = false;
};

// weight and bias, of groups * channels elements, may be undefined. Fills in the statistics unless they are given, as
// constants.
Tensor normalized(const NormSets& sets, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  NormStatistics& statistics);

}  // namespace volta

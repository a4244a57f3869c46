// NormCall: (x - mean) / sqrt(var + eps) * weight + bias over sets of elements; NormBackwardCall: its gradients.
#pragma once
#include "backend/backend.h"

namespace volta {

// All operands are contiguous in the order described here, whatever axes their layouts name; those without data are left
// out. x, y and their gradients have one floating dtype; where it is a half, which a device may refuse, the others are f32.
struct NormOperands {
  // x is [outer, groups, channels, inner]. A set, which shares mean and variance, is each group of each outer index; with
  // `over_outer` it is each group of all of them, and groups have one channel.
  int64_t outer, groups, channels, inner;
  bool over_outer, centered;  // not centered: the mean is 0
  bool given;                 // the statistics are inputs and constants
  double eps;
  Arg x, weight;  // weight: [groups, channels]
  Arg mean, var;  // of each set; written forward unless given
};

struct NormCall : NormOperands {
  Arg bias, y;
};

struct NormBackwardCall : NormOperands {
  Arg g, dx;         // of y; of x, if wanted
  Arg grad_weights;  // [2, groups, channels]: the gradients of bias and weight
};

}  // namespace volta

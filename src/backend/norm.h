// NormCall: (x - mean) / sqrt(var + eps) * weight + bias over sets of elements, and its gradients.
#pragma once
#include "backend/backend.h"

namespace volta {

// All operands are contiguous and of one dtype, f32 or f64; those without data are left out.
struct NormCall {
  // x is [outer, groups, channels, inner]. A set, which shares mean and variance, is each group of each outer index; with
  // `over_outer` it is each group of all of them, and groups have one channel.
  int64_t outer, groups, channels, inner;
  bool over_outer, centered;  // not centered: the mean is 0
  bool given;                 // the statistics are inputs and constants
  double eps;
  Arg x, weight, bias;  // weight and bias: [groups, channels]
  Arg mean, var;        // of each set
  Arg y;                // the result; without it the gradients are wanted
  Arg g, dx;            // of y and of x
  // [parts, 2, groups, channels], zeros that become the gradients of bias and weight, each part those of its share of the
  // outer indices (one part when over_outer).
  Arg sums;
  int64_t parts;
};

}  // namespace volta

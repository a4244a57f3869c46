// Parts of tensors as differentiable ops: what views are to their bases.
#pragma once
#include "graph/record.h"

namespace volta {

// The part of contiguous x that `relative` describes, and its transpose: `piece` placed (added) into a tensor of one
// number.
Tensor extract(const Tensor& x, const Layout& relative);
Tensor embed(const Tensor& piece, const Shape& shape, const Layout& relative, Scalar around = 0);

extern const ViewRules view_rules;

}  // namespace volta

// The graph behind a tensor when it changes in place, itself or through a view of it.
#pragma once
#include "autograd/node.h"
#include "core/impl.h"

namespace volta {

// `self` was overwritten by the result of `node` (its output 0). Views pass that on to their base.
void rewrite_history(const Tensor& self, const Ptr<Node>& node);

// The part of contiguous `x` that `relative` describes, and its transpose: `piece` placed (added) into zeros of `shape`.
Tensor extract(const Tensor& x, const Layout& relative);
Tensor embed(const Tensor& piece, const Shape& shape, const Layout& relative);

// y was made from x by a layout function: f applied to the layout of a contiguous tensor of x's shape.
void remember_view(const Tensor& y, const Tensor& x, const std::optional<Layout>& relative);

}  // namespace volta

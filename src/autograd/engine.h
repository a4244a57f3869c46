// The walk back through the graph, for what is built on it.
#pragma once
#include <span>
#include <vector>

#include <volta/tensor.h>

namespace volta {

// Gradients of ys at xs with the cotangents gs, added to `sums` one by one; undefined where there are none. Walks no
// further than the nodes of xs: paths from one of them to another do not count, and their hooks do not run.
std::vector<Tensor> grad_up_to(std::span<const Tensor> ys, std::span<const Tensor> gs, std::span<const Tensor> xs,
                               std::vector<Tensor> sums, bool create_graph);

}  // namespace volta

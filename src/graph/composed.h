// Gradients of a fused op through its composed form: how fused ops are differentiated twice, or by rare inputs.
#pragma once
#include <vector>

#include "graph/record.h"

namespace volta {

// `composed` computes the op's outputs from the inputs by differentiable ops; g are the gradients of those outputs.
template <class F>
void through_composed(const std::vector<Tensor>& inputs, std::span<const Tensor> g, Gradients& d, F composed) {
  const bool create = grad_enabled();
  const EnableGrad on;
  std::vector<Tensor> own = inputs, wanted, roots, cotangents;  // views of the inputs: one tensor may be given twice
  for (size_t i = 0; i < own.size(); ++i) {
    if (!own[i].defined()) continue;
    own[i] = create ? inputs[i].expand(inputs[i].shape()) : inputs[i].detach();
    if (!d.needs(i)) continue;
    if (!create) own[i].requires_grad_();
    wanted.push_back(own[i]);
  }
  const std::vector<Tensor> outputs = composed(own);
  for (size_t i = 0; i < g.size(); ++i) {
    if (!g[i].defined()) continue;
    roots.push_back(outputs[i]);
    cotangents.push_back(g[i]);
  }
  const std::vector<Tensor> found = modes.pass->grad(roots, wanted, cotangents, create);
  for (size_t i = 0, next = 0; i < own.size(); ++i)
    if (d.needs(i)) d[i] = found[next++];
}

}  // namespace volta

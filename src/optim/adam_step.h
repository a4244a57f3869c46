// The step of Adam and AdamW, which Muon takes too for what is not a matrix.
#pragma once
#include <volta/optim/optimizer.h>

namespace volta::optim {

struct AdamStep {
  size_t slot;  // of the state: the mean is there, the mean of squares behind it, their maximum behind that
  double lr;
  double into_gradient;  // weight decay as part of the gradient
  double shrink;         // factor of the weights
  double eps;
  Betas betas;
  bool amsgrad = false;
};
void adam_step(const Tensor& p, const Tensor& g, State& state, const AdamStep& step);

}  // namespace volta::optim

// Long attention of halves by cuDNN. Both are false where the library is missing or has nothing for the problem.
#pragma once
#include "backend/attention.h"
#include "backend/cuda/context.h"

namespace volta::cuda {

bool attend_by_cudnn(Context& c, const AttentionCall& call);
bool attend_backward_by_cudnn(Context& c, const AttentionBackwardCall& call);

}  // namespace volta::cuda

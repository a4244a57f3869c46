// What the GPU's matrix products share: the general kernel, and what follows a product the library made.
#pragma once
#include "backend/cuda/context.h"

namespace volta::cuda {

// Any dtypes and strides, bias and activation included; not fast.
void plain_product(Context& c, const MatmulCall& call);

// out = activation(product + bias [+ out]), where `product` has the shape of out and may be of a wider dtype.
void finish_product(Context& c, const MatmulCall& call, const Arg& product, bool accumulate);

}  // namespace volta::cuda

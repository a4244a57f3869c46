// What the forms of attention share.
#pragma once
#include <volta/tensor.h>

namespace volta {

// softmax of masked scores along the last axis; zeros, not NaN, in rows that are hidden throughout.
Tensor masked_softmax(const Tensor& scores);

}  // namespace volta

// Reductions other parts of the library need under the public ones.
#pragma once
#include <volta/tensor.h>

namespace volta {

// Sums broadcast axes away until x has `shape`: the transpose of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape, const char* op);

}  // namespace volta

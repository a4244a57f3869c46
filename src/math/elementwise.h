// Every pointwise op, once: from this list come the CPU and CUDA kernels, the functions and methods, and the tests.
#pragma once
#include "math/binary.h"

namespace volta {
using NamedPointOps = Concat<point::MathOps, point::ActivationOps, point::BinaryOps>;  // those with a function
using ElementwiseOps = Concat<NamedPointOps, point::InnerOps>;
}  // namespace volta

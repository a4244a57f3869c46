// Every pointwise op, once: from this list come the CPU and CUDA kernels, the functions and methods, and the tests.
#pragma once
#include "ops/point_activation.h"
#include "ops/point_binary.h"
#include "ops/point_math.h"

namespace volta {
using PointOps = Concat<point::MathOps, point::ActivationOps, point::BinaryOps>;
}

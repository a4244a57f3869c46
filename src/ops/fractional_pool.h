// What fractional pooling checks of its options, as a function and as a layer.
#pragma once
#include <volta/ops/pool.h>

namespace volta {

void check_ratio(const Numbers& ratio, const PerAxis& size, int axes, const char* op);

}  // namespace volta

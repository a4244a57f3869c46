// The CPU's row functions of the built-in pointwise ops, one table per instruction set.
#pragma once
#include <volta/elementwise_rows.h>

#include "backend/cpu/isa.h"
#include "math/elementwise.h"
#include "math/inner.h"

namespace volta::cpu {

const Rows* elementwise_rows(int op, int kernel);

// Shards of the list are compiled in separate translation units; shard s holds the ops with index % 4 == s.
using FindRows = const Rows* (*)(int op, int kernel);
template <Isa level, int Shard> const Rows* elementwise_shard(int op, int kernel);

}  // namespace volta::cpu

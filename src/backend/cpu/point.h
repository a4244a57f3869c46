// The CPU's row functions of the built-in pointwise ops, one table per instruction set.
#pragma once
#include <volta/kernel.h>

#include "math/elementwise.h"
#include "math/inner.h"

namespace volta::cpu {

const Rows* point_rows(int op, int kernel);

// Parts of the list are compiled in separate translation units; part p holds the ops with index % parts == p.
using FindRows = const Rows* (*)(int op, int kernel);

}  // namespace volta::cpu

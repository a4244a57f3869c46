// Training steps and inference: a part of the cases with a translation unit of its own.
#pragma once

#include "cases.h"

namespace bench {
void add_steps(std::vector<Case>& cases);
}

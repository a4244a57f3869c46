// The update rules for one instruction set: by rule, for f32 and f64.
#pragma once
#include <array>

#include "backend/cpu/isa.h"
#include "math/update.h"

namespace volta::cpu {

using UpdateRows = std::array<std::array<UpdateRule::Row, 2>, size_t(UpdateRules::size)>;
template <Isa> const UpdateRows& update_rows();

}  // namespace volta::cpu

// Picks the conversion loops for this machine.
#include "backend/cpu/cast.h"

#include "backend/cpu/isa.h"

namespace volta::cpu {

static const CastTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::cast_table;
  if (isa() == Isa::v3) return v3::cast_table;
#endif
  return baseline::cast_table;
}

CastRow cast_row(DType to, DType from) {
  static const CastTable& chosen = table();
  return chosen.rows[size_t(to)][size_t(from)];
}

}  // namespace volta::cpu

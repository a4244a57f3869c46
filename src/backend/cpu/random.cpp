// Shares a call for random numbers among threads and picks the loops for this machine.
#include "backend/cpu/random.h"

#include <algorithm>

#include "backend/cpu/isa.h"
#include "core/parallel.h"

namespace volta::cpu {

static const RandomTable& table() {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() == Isa::v4) return v4::random_table;
  if (isa() == Isa::v3) return v3::random_table;
#endif
  return baseline::random_table;
}

void fill_random(const RandomCall& call) {
  check(call);
  if (call.n <= 0) return;
  constexpr int64_t part = 1 << 15;
  const int64_t size = size_of(call.dtype);
  random::with_formula(call, [&](const auto& formula) {
    const auto draw = std::get<Draw<std::decay_t<decltype(formula)>>>(table().draw);
    parallel((call.n + part - 1) / part, [&](int64_t i) {
      const int64_t begin = i * part, n = std::min(part, call.n - begin);
      draw(formula, {call.seed, call.offset + uint64_t(begin / 4), call.dtype, n,
                     static_cast<std::byte*>(call.out) + begin * size});
    });
  });
}

}  // namespace volta::cpu

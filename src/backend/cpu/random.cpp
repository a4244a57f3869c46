// Shares a call for random numbers among threads.
#include "backend/cpu/random.h"

#include "backend/cpu/split.h"

namespace volta::cpu {

void fill_random(const RandomCall& call) {
  check(call);
  constexpr int64_t part = 1 << 15;
  random::with_formula(call, [&](const auto& formula) {
    const auto& table = for_isa([]<Isa level>() { return &draws<level>; })();
    const auto draw = std::get<Draw<std::decay_t<decltype(formula)>>>(table);
    parallel_ranges(call.n, part, [&](int64_t begin, int64_t end) {
      draw(formula, {call.seed, call.offset + uint64_t(begin / 4), call.dtype, end - begin,
                     static_cast<std::byte*>(call.out) + begin * size_of(call.dtype)});
    });
  });
}

}  // namespace volta::cpu

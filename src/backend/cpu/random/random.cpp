// Random numbers on the CPU: every range of the output is drawn by itself, from its place in the stream.
#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/random/kernels.h"

namespace volta::cpu {

void fill_random(const RandomCall& call) {
  check(call);
  random::with_formula(call, [&](const auto& formula) {
    const auto& table = for_isa([]<Isa level>() { return &draws<level>; })();
    const auto draw = std::get<Draw<std::decay_t<decltype(formula)>>>(table);
    constexpr int64_t grain = 32 * 1024;  // elements worth a thread
    parallel_ranges(call.n, grain, [&](int64_t begin, int64_t end) {
      draw(formula, {call.seed, call.offset + uint64_t(begin / 4), call.dtype, end - begin,
                     static_cast<std::byte*>(call.out) + begin * size_of(call.dtype)});
    });
  });
}

}  // namespace volta::cpu

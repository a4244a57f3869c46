// Random numbers on the GPU: one thread per block of four elements, by the formulas the CPU uses.
#include "backend/cuda/element.h"

namespace volta::cuda {
namespace {

template <class Formula> __global__ void draw(Formula formula, uint64_t seed, uint64_t counter, char* out, DType dtype,
                                              int64_t size, int64_t n) {
  const int64_t blocks = (n + 3) / 4, all = int64_t(gridDim.x) * threads;
  for (int64_t i = int64_t(blockIdx.x) * threads + threadIdx.x; i < blocks; i += all) {
    const auto block = volta::random::draw_block(formula, seed, counter + uint64_t(i));
    using Value = std::decay_t<decltype(block.element[0])>;
    using Source = std::conditional_t<std::is_same_v<Value, uint64_t>, int64_t, Value>;
    unroll<4>([&](int k) {
      if (4 * i + k < n) store(out + (4 * i + k) * size, dtype, Source(block.element[k]));
    });
  }
}

}  // namespace

void Context::random(const RandomCall& call) {
  const OnDevice current(device);
  volta::check(call);
  if (call.n <= 0) return;
  const auto blocks = unsigned(std::min<int64_t>((call.n + 4 * threads - 1) / (4 * threads), 1 << 20));
  volta::random::with_formula(call, [&]<class Formula>(const Formula& formula) {
    launch(*this, "random", &draw<Formula>, blocks, threads, formula, call.seed, call.offset,
           static_cast<char*>(call.out), call.dtype, size_of(call.dtype), call.n);
  });
}

}  // namespace volta::cuda

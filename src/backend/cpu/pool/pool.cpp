// Pooling on the CPU: output rows run in parallel, and planes where several windows meet in one place.
#include "backend/cpu/pool/pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel_rows.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu {
namespace {

constexpr int64_t grain = 16 * 1024;  // elements worth a thread

// Parts of `count` rows or planes, each of which costs `work`.
template <class T, class Call> void run(const Call& call, PoolKernel<Call> kernel, int64_t count, int64_t work) {
  const PoolAxis& x = call.axis[2];
  std::vector<T> weight, divisor;
  if (x.weight) weight.assign(x.weight, x.weight + x.taps * x.out);
  if (x.divisor) divisor.assign(x.divisor, x.divisor + x.out);
  parallel_ranges(count, std::max<int64_t>(1, finer(count * work, grain) / work), [&](int64_t begin, int64_t end) {
    auto* room = static_cast<T*>(scratch(Scratch::tile, size_t(x.in + x.out) * sizeof(T)));
    kernel(call, {weight.data(), x.divisor ? divisor.data() : nullptr, room, room + x.in}, begin, end);
  });
}

int64_t row_work(const PoolShape& s) {
  return s.axis[0].taps * s.axis[1].taps * s.axis[2].in + s.axis[2].taps * s.axis[2].out;
}
int64_t rows(const PoolShape& s) { return s.axis[0].out * s.axis[1].out; }
int64_t inputs(const PoolShape& s) { return s.axis[0].in * s.axis[1].in * s.axis[2].in; }

template <class T> void forward(const PoolCall& call) {
  const auto kernel = for_isa([]<Isa level>() { return &pool_kernel<level>; })(call.pool, dtype_of<T>());
  run<T>(call, kernel, call.planes * rows(call), row_work(call));
}
template <class T> void backward(const PoolBackwardCall& call) {
  const auto kernel = for_isa([]<Isa level>() { return &pool_backward_kernel<level>; })(call.pool, dtype_of<T>());
  run<T>(call, kernel, call.planes, call.pool == Pool::max ? inputs(call) : row_work(call) * rows(call));
}

}  // namespace

bool offers_pool(const PoolCall& call) {
  return inputs(call) <= std::numeric_limits<int32_t>::max() && (call.in.dtype == f32 || call.in.dtype == f64);
}

void pool(const PoolCall& call) {
  if (call.in.dtype == f32) forward<float>(call);
  else forward<double>(call);
}

void pool_backward(const PoolBackwardCall& call) {
  if (call.g.dtype == f32) backward<float>(call);
  else backward<double>(call);
}

}  // namespace volta::cpu

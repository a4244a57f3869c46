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

template <class T> void run(const PoolCall& call) {
  const PoolAxis &z = call.axis[0], &y = call.axis[1], &x = call.axis[2];
  const PoolKernel kernel = for_isa([]<Isa level>() { return &pool_kernel<level>; })(call.pool, dtype_of<T>());
  std::vector<T> weight, divisor;
  if (x.weight) weight.assign(x.weight, x.weight + x.taps * x.out);
  if (x.divisor) divisor.assign(x.divisor, x.divisor + x.out);
  const bool rows = call.pool == Pool::max || call.pool == Pool::sum;
  const int64_t count = rows ? call.planes * z.out * y.out : call.planes;
  const int64_t row_work = z.taps * y.taps * x.in + x.taps * x.out;
  const int64_t work = call.pool == Pool::max_back ? z.in * y.in * x.in : rows ? row_work : row_work * z.out * y.out;
  parallel_ranges(count, std::max<int64_t>(1, finer(count * work, grain) / work), [&](int64_t begin, int64_t end) {
    auto* room = static_cast<T*>(scratch(Scratch::tile, size_t(x.in + x.out) * sizeof(T)));
    kernel(call, {weight.data(), x.divisor ? divisor.data() : nullptr, room, room + x.in}, begin, end);
  });
}

}  // namespace

bool offers_pool(const PoolCall& call) {
  const PoolAxis* axis = call.axis;
  const bool small = axis[0].in * axis[1].in * axis[2].in <= std::numeric_limits<int32_t>::max();
  return small && (call.in.dtype == f32 || call.in.dtype == f64);
}

void pool(const PoolCall& call) {
  if (call.in.dtype == f32) run<float>(call);
  else run<double>(call);
}

}  // namespace volta::cpu

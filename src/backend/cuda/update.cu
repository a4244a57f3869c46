// Optimizer steps on the GPU: one launch for many tensors. A block finds its tensor, and its place there.
#include <vector>

#include "backend/cuda/capture.h"
#include "backend/cuda/element.h"
#include "backend/update.h"
#include "core/recording.h"
#include "math/update.h"

namespace volta::cuda {
namespace {

constexpr int most_tensors = 56, per_thread = 4;  // the arguments of a kernel are at most 4 KiB
constexpr int64_t tile = threads * per_thread;

struct UpdateArgs {
  double constants[UpdateRule::max_constants];
  const uint8_t* skip;
  const double *skipped, *skipped_before;
  int count = 0;
  uint32_t first_block[most_tensors + 1] = {};
  UpdateTensor tensor[most_tensors];
};
static_assert(sizeof(UpdateArgs) <= 4096);

// The constants; where the device counts the steps, for as many as were taken.
template <class Rule> __device__ inline const double* constants_of(const UpdateArgs& a) {
  if constexpr (requires { Rule::count; }) {
    __shared__ double counted[UpdateRule::max_constants];
    if (!a.skipped) return a.constants;
    if (threadIdx.x == 0) {
      for (int i = 0; i < UpdateRule::max_constants; ++i) counted[i] = a.constants[i];
      const double left_out = *a.skipped - (a.skipped_before ? *a.skipped_before : 0);
      Rule::recount(counted, counted[Rule::count] - left_out);
    }
    __syncthreads();
    return counted;
  } else {
    return a.constants;
  }
}

template <class Rule, class T, class P>
__global__ __launch_bounds__(threads) void update_kernel(const __grid_constant__ UpdateArgs a) {
  if (a.skip && *a.skip) return;
  const double* constants = constants_of<Rule>(a);
  int low = 0, high = a.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (a.first_block[middle] <= blockIdx.x) low = middle;
    else high = middle;
  }
  const UpdateTensor& t = a.tensor[low];
  const int64_t begin = int64_t(blockIdx.x - a.first_block[low]) * tile + threadIdx.x;
  P* x = static_cast<P*>(t.x);
  const P* g = static_cast<const P*>(t.g);
  T c[UpdateRule::max_constants], value[per_thread], gradient[per_thread], s[per_thread][UpdateRule::max_states];
  unroll<Rule::constants>([&](int i) { c[i] = T(constants[i]); });
  unroll<per_thread>([&](int u) {
    const int64_t i = begin + u * threads;
    if (i >= t.n) return;
    value[u] = convert<T>(x[i]), gradient[u] = convert<T>(g[i]);
    unroll<Rule::states>([&](int k) { s[u][k] = static_cast<const T*>(t.state[k])[i]; });
  });
  unroll<per_thread>([&](int u) {
    const int64_t i = begin + u * threads;
    if (i >= t.n) return;
    Rule::f(c, value[u], gradient[u], s[u]);
    x[i] = convert<P>(value[u]);
    unroll<Rule::states>([&](int k) { static_cast<T*>(t.state[k])[i] = s[u][k]; });
  });
}

using UpdateKernel = void (*)(UpdateArgs);

template <class... Rules> UpdateKernel find(List<Rules...>, int rule, DType dtype) {
  UpdateKernel found = nullptr;
  const auto look = [&]<class Rule>(TypeTag<Rule>) {
    if (index_of<Rule>(UpdateRules{}) != rule) return;
    found = dtype == f32   ? &update_kernel<Rule, float, float>
            : dtype == f64 ? &update_kernel<Rule, double, double>
            : dtype == f16 ? &update_kernel<Rule, float, float16>
                           : &update_kernel<Rule, float, bfloat16>;
  };
  (look(TypeTag<Rules>{}), ...);
  return found;
}

}  // namespace

bool Context::offers(const UpdateCall& call) const { return call.rule->index >= 0; }

void Context::update(const UpdateCall& call) {
  const OnDevice current(device);
  const UpdateKernel kernel = find(UpdateRules{}, call.rule->index, call.dtype);
  UpdateArgs a;
  std::copy(call.constants, call.constants + UpdateRule::max_constants, a.constants);
  a.skip = call.skip, a.skipped = call.skipped, a.skipped_before = call.skipped_before;
  const auto flush = [&] {
    if (a.count > 0) launch(*this, call.rule->name, kernel, a.first_block[a.count], threads, a);
    if (Capture* const capture = Capture::current(); capture && a.count > 0 && call.slot >= 0)
      capture->vary(1, 0, [&recording = capture->recording(), slot = size_t(call.slot), a]() mutable {
        std::copy_n(recording.constants[slot].begin(), UpdateRule::max_constants, a.constants);
        return static_cast<const void*>(&a);
      });
    a.count = 0;
  };
  for (UpdateTensor t : call.tensors) {
    while (t.n > 0) {
      const int64_t n = std::min<int64_t>(t.n, chunk_limit);
      UpdateTensor& piece = a.tensor[a.count] = t;
      piece.n = n;
      a.first_block[a.count + 1] = a.first_block[a.count] + blocks_for(n, tile);
      if (++a.count == most_tensors || a.first_block[a.count] > chunk_limit / tile) flush();
      t.n -= n;
      t.x = static_cast<char*>(t.x) + n * size_of(call.dtype);
      t.g = static_cast<const char*>(t.g) + n * size_of(call.dtype);
      for (void*& s : t.state) s = s ? static_cast<char*>(s) + n * (call.dtype == f64 ? 8 : 4) : nullptr;
    }
  }
  flush();
}

}  // namespace volta::cuda

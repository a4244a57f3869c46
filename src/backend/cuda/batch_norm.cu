// Batch norm of rows of channels, which channels-last tensors are in memory: a thread has a few neighbouring channels of many
// rows, so that it keeps what belongs to them in registers.
#include "backend/cuda/norm.h"

namespace volta::cuda {
namespace {

// V channels of U rows at a time, of those rows of a part that the threads of equal channels share out.
template <class T, class S, int V, int U> struct Columns {
  using P = Pack<S, V>;
  int64_t channels, first, begin, end, step;
  __device__ explicit Columns(const LineArgs& a)
      : channels(a.groups),
        first((int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * V),
        begin(blockIdx.y * a.per_part),
        end(begin + a.per_part < a.outer ? begin + a.per_part : a.outer),
        step(blockDim.y) {
    begin = valid() ? begin + threadIdx.y : end;
  }
  __device__ bool valid() const { return first < channels; }
  __device__ bool holds(int64_t row, int u) const { return row + u * step < end; }
  __device__ int64_t place(int64_t row, int u) const { return ((row + u * step) * channels + first) / V; }
  // v[channel][row]; beyond the end, the first row again.
  __device__ void load(T (&v)[V][U], const char* from, int64_t row) const {
    P held[U];
    unroll<U>([&](int u) { held[u] = reinterpret_cast<const P*>(from)[place(row, holds(row, u) ? u : 0)]; });
    unroll<U>([&](int u) { unroll<V>([&](int j) { v[j][u] = convert<T>(held[u].v[j]); }); });
  }
  __device__ void store(const T (&v)[V][U], char* to, int64_t row) const {
    unroll<U>([&](int u) {
      P pack;
      unroll<V>([&](int j) { pack.v[j] = convert<S>(v[j][u]); });
      if (holds(row, u)) reinterpret_cast<P*>(to)[place(row, u)] = pack;
    });
  }
  template <class Op> __device__ void finish(const LineArgs& a, typename Op::State (&s)[V]) const {
    unroll<V>([&](int j) { s[j] = team_merge<Op>(Team{true}, s[j]); });
    if (threadIdx.y != 0 || !valid()) return;
    auto* to = static_cast<typename Op::State*>(a.partial) + blockIdx.y * channels + first;
    unroll<V>([&](int j) { to[j] = s[j]; });
  }
};

template <class T, class S, int V>
__global__ __launch_bounds__(threads) void moments_of_rows(const __grid_constant__ LineArgs a) {
  using Op = Moments<T>;
  constexpr int U = 4;
  const Columns<T, S, V, U> part(a);
  typename Op::State s[V];
  unroll<V>([&](int j) { s[j] = Op::start(); });
  for (int64_t row = part.begin; row < part.end; row += U * part.step) {
    T v[V][U];
    part.load(v, a.x, row);
    if (part.holds(row, U - 1)) {
      const T share = T(U) / (s[0].count + T(U));  // channels have met the same number of rows
      unroll<V>([&](int j) { s[j] = Op::merge(s[j], moments_of<T, U>(v[j]), share); });
    } else {
      unroll<U>([&](int u) {
        if (part.holds(row, u)) unroll<V>([&](int j) { s[j] = Op::merge(s[j], {T(1), v[j][u], T(0)}); });
      });
    }
  }
  part.template finish<Op>(a, s);
}

template <class T, class S, int V>
__global__ __launch_bounds__(threads) void sums_of_rows(const __grid_constant__ LineArgs a) {
  using Op = TwoSums<T>;
  constexpr int U = 2;
  const Columns<T, S, V, U> part(a);
  T mean[V], r[V];
  typename Op::State s[V];
  unroll<V>([&](int j) {
    s[j] = Op::start();
    if (part.valid()) mean[j] = static_cast<const T*>(a.mean)[part.first + j], r[j] = scale_of<T>(a, part.first + j);
  });
  for (int64_t row = part.begin; row < part.end; row += U * part.step) {
    T v[V][U], g[V][U];
    part.load(v, a.x, row);
    part.load(g, a.g, row);
    unroll<U>([&](int u) {
      if (part.holds(row, u))
        unroll<V>([&](int j) { s[j] = Op::merge(s[j], {g[j][u], g[j][u] * ((v[j][u] - mean[j]) * r[j])}); });
    });
  }
  part.template finish<Op>(a, s);
}

// y = scale (x - mean) + bias; backward, dx = scale (g - plain - slope (x - mean)).
template <class T, class S, int V, bool Back>
__global__ __launch_bounds__(threads) void apply_rows(const __grid_constant__ LineArgs a) {
  constexpr int U = Back ? 2 : 4;
  const Columns<T, S, V, U> part(a);
  if (!part.valid()) return;
  T mean[V], scale[V], shift[V], slope[V];
  unroll<V>([&](int j) {
    const int64_t line = part.first + j;
    const T r = scale_of<T>(a, line);
    const auto* sums = static_cast<const T*>(a.sums);
    const T share = Back && !a.given ? T(1) / T(a.outer) : T(0);
    mean[j] = static_cast<const T*>(a.mean)[line];
    scale[j] = a.weight ? r * static_cast<const T*>(a.weight)[line] : r;
    if constexpr (Back) {
      shift[j] = a.centered ? share * sums[line] : T(0);
      slope[j] = r * share * sums[part.channels + line];
    } else {
      shift[j] = a.bias ? static_cast<const T*>(a.bias)[line] : T(0);
    }
  });
  for (int64_t row = part.begin; row < part.end; row += U * part.step) {
    T v[V][U], g[V][U];
    part.load(v, a.x, row);
    if constexpr (Back) part.load(g, a.g, row);
    unroll<V>([&](int j) {
      unroll<U>([&](int u) {
        const T apart = v[j][u] - mean[j];
        if constexpr (Back) v[j][u] = scale[j] * (g[j][u] - shift[j] - slope[j] * apart);
        else v[j][u] = scale[j] * apart + shift[j];
      });
    });
    part.store(v, a.out, row);
  }
}

// f.template operator()<T, S, V>(block, blocks): V channels for each thread, and blocks for all channels.
template <class F> void with_columns(DType stored, const NormArgs& a, F f) {
  with_types(stored, [&]<class T, class S>() {
    const auto with = [&]<int V>() {
      const int64_t packs = a.groups / V;
      const auto wide = unsigned(std::bit_ceil(uint64_t(std::clamp<int64_t>(packs, 1, 32))));
      f.template operator()<T, S, V>(dim3(wide, threads / wide), blocks_for(packs, wide));
    };
    constexpr int most = 16 / int(sizeof(S));
    if (a.groups % most == 0 && aligned(a.x) && aligned(a.g) && aligned(a.out)) with.template operator()<most>();
    else with.template operator()<1>();
  });
}

constexpr int64_t least_rows = 8;  // of a thread

template <bool Back> void apply(Context& c, DType stored, const NormArgs& from) {
  with_columns(stored, from, [&]<class T, class S, int V>(dim3 block, unsigned blocks) {
    const LineArgs a = split(from, from.outer, blocks, least_rows * block.y);
    launch(c, "norm", &apply_rows<T, S, V, Back>, dim3(blocks, unsigned(a.parts)), block, a);
  });
}

}  // namespace

void batch_norm_of_rows(Context& c, DType stored, const NormArgs& from) {
  if (!from.given)
    with_columns(stored, from, [&]<class T, class S, int V>(dim3 block, unsigned blocks) {
      in_parts<typename Moments<T>::State>(c, from, from.outer, blocks, least_rows * block.y, [&](const LineArgs& a) {
        launch(c, "norm", &moments_of_rows<T, S, V>, dim3(blocks, unsigned(a.parts)), block, a);
        finish(c, &finish_moments<T>, a);
      });
    });
  apply<false>(c, stored, from);
}

void batch_norm_of_rows_backward(Context& c, DType stored, const NormArgs& from) {
  with_columns(stored, from, [&]<class T, class S, int V>(dim3 block, unsigned blocks) {
    in_parts<TwoSumsOf<T>>(c, from, from.outer, blocks, least_rows * block.y, [&](const LineArgs& a) {
      launch(c, "norm", &sums_of_rows<T, S, V>, dim3(blocks, unsigned(a.parts)), block, a);
      finish(c, &finish_sums<T>, a);
    });
  });
  if (from.out) apply<true>(c, stored, from);
}

}  // namespace volta::cuda

// Normalisation on the GPU. A set that is one run of memory (layer, group, RMS norm) belongs to a team of threads, which
// keeps it in registers where it is short enough; sets that lie apart (batch norm) are gone over in parts, whose moments
// are merged. Those of rows of channels have a file of their own, batch_norm.cu.
#include "backend/cuda/norm.h"

namespace volta::cuda {
namespace {

// One set, or the part of one that this thread has: U packs of V elements.
template <class T, class S, int V, int U> struct RowPart {
  using P = Pack<S, V>;
  int64_t rank, size, count;  // of threads, in packs
  __device__ RowPart(const Team& team, int64_t n) : rank(team.rank()), size(team.size()), count(n / V) {}
  __device__ int64_t batch() const { return U * size; }
  __device__ bool holds(int64_t first, int e) const { return first + e / V * size < count; }
  __device__ int64_t element(int64_t first, int e) const { return (first + e / V * size) * V + e % V; }
  __device__ void load(T (&v)[U * V], const char* from, int64_t first) const {
    P held[U];
    unroll<U>(
        [&](int u) { held[u] = reinterpret_cast<const P*>(from)[holds(first, u * V) ? first + u * size : first]; });
    unroll<U * V>([&](int e) { v[e] = convert<T>(held[e / V].v[e % V]); });
  }
  __device__ void store(const T (&v)[U * V], char* to, int64_t first) const {
    unroll<U>([&](int u) {
      P pack;
      unroll<V>([&](int j) { pack.v[j] = convert<S>(v[u * V + j]); });
      if (holds(first, u * V)) reinterpret_cast<P*>(to)[first + u * size] = pack;
    });
  }
};

// The weights of this thread's elements: one for each channel, so a pack at a time where elements are channels.
template <class T, int V, class Part, int N>
__device__ inline void load_weights(T (&w)[N], const void* from, const NormArgs& a, const Part& part, int64_t group,
                                    int64_t first, T otherwise) {
  const T* weights = static_cast<const T*>(from) + group * a.channels;
  if (!from) return unroll<N>([&](int e) { w[e] = otherwise; });
  if (a.inner == 1)
    return unroll<N / V>([&](int u) {
      if (!part.holds(first, u * V)) return;
      const auto pack = *reinterpret_cast<const Pack<T, V>*>(weights + part.element(first, u * V));
      unroll<V>([&](int j) { w[u * V + j] = pack.v[j]; });
    });
  unroll<N>([&](int e) {
    if (part.holds(first, e)) w[e] = weights[a.by_inner.divide(uint32_t(part.element(first, e)))];
  });
}

template <class T, class S, int V, int U>
__global__ __launch_bounds__(1024) void forward_rows(const __grid_constant__ NormArgs a) {
  const Team team{false};
  const int64_t sets = a.outer * a.groups, n = a.channels * a.inner;
  const int64_t row = int64_t(blockIdx.x) * team.rows() + team.row(), set = row < sets ? row : 0;
  const RowPart<T, S, V, U> part(team, n);
  const char* x = a.x + set * n * int64_t(sizeof(S));
  T v[U * V];
  auto s = Moments<T>::start();
  for (int64_t first = part.rank; first < part.count; first += part.batch()) {
    part.load(v, x, first);
    unroll<U>([&](int u) {
      if (part.holds(first, u * V)) s = Moments<T>::merge(s, moments_of<T, V>(v + u * V));
    });
  }
  s = team_merge<Moments<T>>(team, s);
  if (row >= sets) return;
  const T mean = a.centered ? s.mean : T(0);
  const T var = s.squares / T(n) + (a.centered ? T(0) : s.mean * s.mean), r = T(1) / ::sqrt(var + T(a.eps));
  if (part.rank == 0) static_cast<T*>(a.mean)[set] = mean, static_cast<T*>(a.var)[set] = var;
  for (int64_t first = part.rank; first < part.count; first += part.batch()) {
    if (part.count > part.batch()) part.load(v, x, first);
    T w[U * V];
    load_weights<T, V>(w, a.weight, a, part, set % a.groups, first, T(1));
    unroll<U * V>([&](int e) { v[e] = (v[e] - mean) * r * w[e]; });
    if (a.bias) {
      load_weights<T, V>(w, a.bias, a, part, set % a.groups, first, T(0));
      unroll<U * V>([&](int e) { v[e] += w[e]; });
    }
    part.store(v, a.out + set * n * int64_t(sizeof(S)), first);
  }
}

// Rows whose elements are channels, and of which a team holds one at once. Blocks stay and take row after row: weight and
// bias, in shared memory, would otherwise be read again for each.
template <class S, int V, int U>
__global__ __launch_bounds__(512, 2) void forward_rows_of_channels(const __grid_constant__ NormArgs a) {
  extern __shared__ __align__(16) float kept[];
  const Team team{false};
  const int64_t n = a.channels, step = int64_t(gridDim.x) * team.rows();
  for (int64_t i = int64_t(threadIdx.y) * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y) {
    kept[i] = a.weight ? static_cast<const float*>(a.weight)[i] : 1.0f;
    kept[n + i] = a.bias ? static_cast<const float*>(a.bias)[i] : 0.0f;
  }
  __syncthreads();
  const RowPart<float, S, V, U> part(team, n);
  const bool even = part.count == U * part.size;  // all threads have as many elements
  for (int64_t from = int64_t(blockIdx.x) * team.rows(); from < a.outer; from += step) {  // all threads come as often
    const int64_t row = from + team.row(), begin = row * n * int64_t(sizeof(S));
    const bool mine = row < a.outer && part.rank < part.count;
    float v[U * V];
    if (mine) part.load(v, a.x + begin, part.rank);
    auto s = Moments<float>::start();
    if (even) {
      s = team_merge<EvenMoments<float>>(team, moments_of<float, U * V>(v));
    } else {
      unroll<U>([&](int u) {
        if (mine && part.holds(part.rank, u * V)) s = Moments<float>::merge(s, moments_of<float, V>(v + u * V));
      });
      s = team_merge<Moments<float>>(team, s);
    }
    if (!mine) continue;
    const float mean = a.centered ? s.mean : 0.0f;
    const float var = s.squares / float(n) + (a.centered ? 0.0f : s.mean * s.mean);
    const float r = 1.0f / ::sqrt(var + float(a.eps));
    if (part.rank == 0) static_cast<float*>(a.mean)[row] = mean, static_cast<float*>(a.var)[row] = var;
    unroll<U>([&](int u) {
      if (!part.holds(part.rank, u * V)) return;
      const float* at = kept + part.element(part.rank, u * V);
      const auto weight = *reinterpret_cast<const Pack<float, V>*>(at),
                 bias = *reinterpret_cast<const Pack<float, V>*>(at + n);
      unroll<V>([&](int j) { v[u * V + j] = (v[u * V + j] - mean) * r * weight.v[j] + bias.v[j]; });
    });
    part.store(v, a.out + begin, part.rank);
  }
}

template <class T, class S, int V, int U>
__global__ __launch_bounds__(1024) void backward_rows(const __grid_constant__ NormArgs a) {
  const Team team{false};
  const int64_t sets = a.outer * a.groups, n = a.channels * a.inner;
  const int64_t row = int64_t(blockIdx.x) * team.rows() + team.row(), set = row < sets ? row : 0;
  const RowPart<T, S, V, U> part(team, n);
  const int64_t begin = set * n * int64_t(sizeof(S));
  const T mean = static_cast<const T*>(a.mean)[set], r = scale_of<T>(a, set);
  T h[U * V], g[U * V];
  const auto fetch = [&](int64_t first) {  // h and the gradient by it
    T w[U * V];
    part.load(h, a.x + begin, first);
    part.load(g, a.g + begin, first);
    load_weights<T, V>(w, a.weight, a, part, set % a.groups, first, T(1));
    unroll<U * V>([&](int e) { h[e] = (h[e] - mean) * r, g[e] *= w[e]; });
  };
  auto s = TwoSums<T>::start();
  for (int64_t first = part.rank; first < part.count; first += part.batch()) {
    fetch(first);
    unroll<U * V>([&](int e) {
      if (part.holds(first, e)) s.plain += g[e], s.weighted += g[e] * h[e];
    });
  }
  s = team_merge<TwoSums<T>>(team, s);
  if (row >= sets) return;
  const T plain = a.centered ? s.plain / T(n) : T(0), weighted = s.weighted / T(n);
  for (int64_t first = part.rank; first < part.count; first += part.batch()) {
    if (part.count > part.batch()) fetch(first);
    unroll<U * V>([&](int e) { g[e] = r * (g[e] - plain - h[e] * weighted); });
    part.store(g, a.out + begin, first);
  }
}

// The same for sets of one group whose elements are channels, and which one batch of packs holds; with the sums of the columns,
// which each team keeps for the rows that it comes by: no element is read twice. `sums` are partial ones, [teams, channels].
template <class T, class S, int V, int U>
__global__ __launch_bounds__(512) void backward_rows_and_columns(const __grid_constant__ NormArgs a,
                                                                 TwoSumsOf<T>* sums) {
  const Team team{false};
  const int64_t n = a.channels, step = int64_t(gridDim.x) * team.rows();
  const RowPart<T, S, V, U> part(team, n);
  T w[U * V], bias[U * V] = {}, weight[U * V] = {};
  load_weights<T, V>(w, a.weight, a, part, 0, part.rank, T(1));
  for (int64_t from = int64_t(blockIdx.x) * team.rows(); from < a.outer; from += step) {  // all threads come as often
    const bool mine = from + team.row() < a.outer;
    const int64_t row = mine ? from + team.row() : 0, begin = row * n * int64_t(sizeof(S));
    const T mean = static_cast<const T*>(a.mean)[row], r = scale_of<T>(a, row);
    T h[U * V], g[U * V];
    if (part.rank < part.count) {
      part.load(h, a.x + begin, part.rank);
      part.load(g, a.g + begin, part.rank);
    }
    auto s = TwoSums<T>::start();
    unroll<U * V>([&](int e) {
      if (!mine || !part.holds(part.rank, e)) return;
      h[e] = (h[e] - mean) * r;
      bias[e] += g[e], weight[e] += g[e] * h[e];
      g[e] *= w[e];
      s.plain += g[e], s.weighted += g[e] * h[e];
    });
    s = team_merge<TwoSums<T>>(team, s);
    if (!mine || !a.out || part.rank >= part.count) continue;
    const T plain = a.centered ? s.plain / T(n) : T(0), weighted = s.weighted / T(n);
    unroll<U * V>([&](int e) { g[e] = r * (g[e] - plain - h[e] * weighted); });
    part.store(g, a.out + begin, part.rank);
  }
  TwoSumsOf<T>* to = sums + (int64_t(blockIdx.x) * team.rows() + team.row()) * n;
  unroll<U * V>([&](int e) {
    if (part.holds(part.rank, e)) to[part.element(part.rank, e)] = {bias[e], weight[e]};
  });
}

template <class Op, class T, class S, bool Back>
__global__ __launch_bounds__(threads) void line_parts(const __grid_constant__ LineArgs a) {
  const int64_t lines = a.groups * a.channels, line = blockIdx.x, all = a.outer * a.inner;
  const int64_t begin = blockIdx.y * a.per_part, end = begin + a.per_part < all ? begin + a.per_part : all;
  const auto *x = reinterpret_cast<const S*>(a.x), *g = reinterpret_cast<const S*>(a.g);
  auto s = Op::start();
  constexpr int U = 4;
  for (int64_t first = begin + threadIdx.x; first < end; first += U * threads) {
    T v[U], up[U];
    int64_t outer[U];
    unroll<U>([&](int u) {
      const int64_t e = first + u * threads < end ? first + u * threads : first;
      outer[u] = a.by_inner.divide(uint32_t(e));
      const int64_t at = (outer[u] * lines + line) * a.inner + (e - outer[u] * a.inner);
      v[u] = convert<T>(x[at]);
      if constexpr (Back) up[u] = convert<T>(g[at]);
    });
    if constexpr (!Back)
      if (first + (U - 1) * threads < end) {
        s = Op::merge(s, moments_of<T, U>(v));
        continue;
      }
    unroll<U>([&](int u) {
      if (first + u * threads >= end) return;
      if constexpr (Back) {
        const int64_t group = line / a.channels, set = a.over_outer ? group : outer[u] * a.groups + group;
        const T h = (v[u] - static_cast<const T*>(a.mean)[set]) * scale_of<T>(a, set);
        s = Op::merge(s, {up[u], up[u] * h});
      } else {
        s = Op::merge(s, {T(1), v[u], T(0)});
      }
    });
  }
  s = team_merge<Op>(Team{false}, s);
  if (threadIdx.x == 0) static_cast<typename Op::State*>(a.partial)[blockIdx.y * lines + line] = s;
}

// The sums of columns of [outer, channels], for sets that are rows: neighbouring threads have neighbouring channels.
constexpr int column_threads = 32, column_rows = 8;
template <class T, class S>
__global__ __launch_bounds__(column_threads* column_rows) void column_parts(const __grid_constant__ LineArgs a) {
  using State = typename TwoSums<T>::State;
  __shared__ State held[column_rows][column_threads];
  const int64_t lines = a.groups * a.channels, line = int64_t(blockIdx.x) * column_threads + threadIdx.x;
  const int64_t begin = blockIdx.y * a.per_part, end = begin + a.per_part < a.outer ? begin + a.per_part : a.outer;
  const auto *x = reinterpret_cast<const S*>(a.x), *g = reinterpret_cast<const S*>(a.g);
  State s = TwoSums<T>::start();
  if (line < lines) {
    const int64_t group = line / a.channels;
#pragma unroll 4
    for (int64_t o = begin + threadIdx.y; o < end; o += column_rows) {
      const int64_t set = a.over_outer ? group : o * a.groups + group;
      const T up = convert<T>(g[o * lines + line]);
      const T h = (convert<T>(x[o * lines + line]) - static_cast<const T*>(a.mean)[set]) * scale_of<T>(a, set);
      s = TwoSums<T>::merge(s, {up, up * h});
    }
  }
  held[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y != 0 || line >= lines) return;
  for (int k = 1; k < column_rows; ++k) s = TwoSums<T>::merge(s, held[k][threadIdx.x]);
  static_cast<State*>(a.partial)[blockIdx.y * lines + line] = s;
}

// Every element by itself, once the statistics (and, backward, the sums of its set) are known: a team of threads for each
// run of `inner` elements.
template <class T, class S, int V, bool Back>
__global__ __launch_bounds__(threads) void apply_planes(const __grid_constant__ NormArgs a) {
  using P = Pack<S, V>;
  const int64_t lines = a.groups * a.channels, plane = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (plane >= a.outer * lines) return;
  const int64_t outer = plane / lines, line = plane - outer * lines, group = line / a.channels;
  const int64_t set = a.over_outer ? group : outer * a.groups + group;
  const T mean = static_cast<const T*>(a.mean)[set], r = scale_of<T>(a, set);
  const T weight = a.weight ? static_cast<const T*>(a.weight)[line] : T(1);
  const T bias = a.bias ? static_cast<const T*>(a.bias)[line] : T(0);
  const auto* sums = static_cast<const T*>(a.sums);
  const T share = Back && !a.given ? T(1) / T(a.outer * a.inner) : T(0);
  const T plain = Back && a.centered ? share * sums[line] : T(0), weighted = Back ? share * sums[lines + line] : T(0);
  const int64_t begin = plane * a.inner / V;
  for (int64_t i = threadIdx.x; i < a.inner / V; i += blockDim.x) {
    P x = reinterpret_cast<const P*>(a.x)[begin + i], g;
    if constexpr (Back) g = reinterpret_cast<const P*>(a.g)[begin + i];
    unroll<V>([&](int j) {
      const T h = (convert<T>(x.v[j]) - mean) * r;
      if constexpr (Back) x.v[j] = convert<S>(r * weight * (convert<T>(g.v[j]) - plain - h * weighted));
      else x.v[j] = convert<S>(h * weight + bias);
    });
    reinterpret_cast<P*>(a.out)[begin + i] = x;
  }
}

NormArgs args_of(const NormOperands& n) {
  NormArgs a{};
  a.outer = n.outer, a.groups = n.groups, a.channels = n.channels, a.inner = n.inner;
  a.over_outer = n.over_outer, a.centered = n.centered, a.given = n.given, a.eps = n.eps;
  a.x = static_cast<const char*>(n.x.data), a.weight = n.weight.data, a.mean = n.mean.data, a.var = n.var.data;
  a.by_inner = Divisor(uint32_t(n.inner));
  return a;
}

template <class T, class S, int V, int U, bool Back> void start_rows(Context& c, const NormArgs& a) {
  const int64_t n = a.channels * a.inner, sets = a.outer * a.groups;
  const auto team = unsigned(std::bit_ceil(uint64_t(std::clamp<int64_t>((n + V * U - 1) / (V * U), 1, 1024))));
  const unsigned together = std::max(1u, threads / team);
  const auto kernel = Back ? &backward_rows<T, S, V, U> : &forward_rows<T, S, V, U>;
  launch(c, "norm", kernel, blocks_for(sets, together), dim3(team, together), a);
}

// Starts forward_rows_of_channels where it fits: 32 elements a thread, or 24 where a row has none over.
template <class S> bool rows_of_channels(Context& c, const NormArgs& a) {
  constexpr int V = 16 / int(sizeof(S)), most_team = 512, shared_of_block = 1 << 10, shared_of_processor = 227 << 10;
  const int64_t n = a.channels;
  if (a.groups != 1 || a.inner != 1 || n % V != 0 || n < 256 || n > 32 * most_team || !aligned(a.x) || !aligned(a.out))
    return false;
  const bool by_24 = n % 24 == 0 && std::has_single_bit(uint64_t(n / 24));
  const auto team = unsigned(by_24 ? n / 24 : int64_t(std::bit_ceil(uint64_t((n + 31) / 32))));
  const unsigned together = std::max(1u, threads / team), in_block = team * together;
  const auto kernel = by_24 ? &forward_rows_of_channels<S, V, 24 / V> : &forward_rows_of_channels<S, V, 32 / V>;
  const int bytes = int(2 * n * int64_t(sizeof(float)));
  if (bytes > 48 << 10) check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "norm");
  const unsigned at_once = std::min(unsigned(shared_of_processor / (bytes + shared_of_block)), 1024 / in_block);
  launch_with(bytes, c, "norm", kernel, std::min(blocks_for(a.outer, together), 132 * std::max(at_once, 1u)),
              dim3(team, together), a);
  return true;
}

template <bool Back> void rows(Context& c, DType stored, const NormArgs& a) {
  with_types(stored, [&]<class T, class S>() {
    constexpr int V = 16 / int(sizeof(S)), held = sizeof(T) == 8 ? 8 : 16,
                  U = std::max(1, (Back ? held / 2 : held) / V);
    const bool packs = (a.channels * a.inner) % V == 0 && aligned(a.x) && aligned(a.out) && aligned(a.g);
    if constexpr (!Back && sizeof(T) == 4)
      if (rows_of_channels<S>(c, a)) return;
    if (packs) start_rows<T, S, V, U, Back>(c, a);
    else start_rows<T, S, 1, 4, Back>(c, a);
  });
}

// Mean and variance of channels that lie apart.
void channel_moments(Context& c, DType stored, const NormArgs& from) {
  with_types(stored, [&]<class T, class S>() {
    in_parts<typename Moments<T>::State>(c, from, from.outer * from.inner, from.groups, 4 * threads,
                                         [&](const LineArgs& a) {
                                           launch(c, "norm", &line_parts<Moments<T>, T, S, false>,
                                                  dim3(unsigned(a.groups), unsigned(a.parts)), threads, a);
                                           finish(c, &finish_moments<T>, a);
                                         });
  });
}

// The gradients of bias and weight.
void channel_sums(Context& c, DType stored, const NormArgs& from) {
  with_types(stored, [&]<class T, class S>() {
    const int64_t lines = from.groups * from.channels;
    using State = typename TwoSums<T>::State;
    if (from.inner == 1)
      return in_parts<State>(
          c, from, from.outer, blocks_for(lines, column_threads), 4 * column_rows, [&](const LineArgs& a) {
            launch(c, "norm", &column_parts<T, S>, dim3(blocks_for(lines, column_threads), unsigned(a.parts)),
                   dim3(column_threads, column_rows), a);
            finish(c, &finish_sums<T>, a);
          });
    in_parts<State>(c, from, from.outer * from.inner, lines, 4 * threads, [&](const LineArgs& a) {
      launch(c, "norm", &line_parts<TwoSums<T>, T, S, true>, dim3(unsigned(lines), unsigned(a.parts)), threads, a);
      finish(c, &finish_sums<T>, a);
    });
  });
}

// Whether it could be done in one pass; if so, it is.
bool rows_and_columns(Context& c, DType stored, const NormArgs& from) {
  if (from.groups != 1 || from.inner != 1 || from.over_outer || from.given) return false;
  bool done = false;
  with_types(stored, [&]<class T, class S>() {
    constexpr int V = 16 / int(sizeof(S)), U = (sizeof(T) == 8 ? 8 : 16) / V;
    const int64_t n = from.channels;
    if (n % V != 0 || n > 512 * U * V || !aligned(from.x) || !aligned(from.g) || !aligned(from.out)) return;
    const auto team = unsigned(std::bit_ceil(uint64_t((n + U * V - 1) / (U * V))));
    const unsigned together = std::max(1u, threads / team);
    const int64_t blocks = std::min<int64_t>(blocks_for(from.outer, together), 132 * 4);
    const int64_t parts = blocks * together;
    const Room room = c.memory().take(parts * n * int64_t(sizeof(TwoSumsOf<T>)), "norm");
    launch(c, "norm", &backward_rows_and_columns<T, S, V, U>, unsigned(blocks), dim3(team, together), from,
           reinterpret_cast<TwoSumsOf<T>*>(room->data));
    finish(c, &finish_sums<T>, LineArgs{from, parts, 0, room->data});
    done = true;
  });
  return done;
}

template <bool Back> void apply(Context& c, DType stored, const NormArgs& a) {
  with_types(stored, [&]<class T, class S>() {
    constexpr int V = 16 / int(sizeof(S));
    const bool packs = a.inner % V == 0 && aligned(a.x) && aligned(a.out) && aligned(a.g);
    const int64_t runs = packs ? a.inner / V : a.inner;
    const auto team = unsigned(std::bit_ceil(uint64_t(std::clamp<int64_t>((runs + 3) / 4, 1, threads))));
    const dim3 block(team, threads / team);
    const auto kernel = packs ? &apply_planes<T, S, V, Back> : &apply_planes<T, S, 1, Back>;
    launch(c, "norm", kernel, blocks_for(a.outer * a.groups * a.channels, block.y), block, a);
  });
}

bool are_rows(const NormOperands& n) { return n.over_outer && n.inner == 1; }

}  // namespace

bool Context::offers(const NormCall& call) const {
  if (are_rows(call)) return call.outer < chunk_limit && call.groups < chunk_limit;
  const int64_t lines = call.groups * call.channels, row = call.channels * call.inner;
  // Longer rows, which a team goes over in several batches, are left to the composed form until a test has run them.
  const bool wide = lines == call.channels && call.inner == 1 && row % 8 == 0 && row <= 8192 && call.x.dtype != f64;
  if (!call.over_outer && !call.given && row > 4096 && !wide) return false;
  return lines < chunk_limit && call.outer * call.inner < chunk_limit && call.channels * call.inner < chunk_limit &&
         call.outer * call.groups < chunk_limit && call.outer * lines < chunk_limit;
}

void Context::norm(const NormCall& call) {
  const OnDevice current(device);
  NormArgs a = args_of(call);
  a.bias = call.bias.data, a.out = static_cast<char*>(call.y.data);
  if (are_rows(call)) return batch_norm_of_rows(*this, call.x.dtype, a);
  if (!call.given && !call.over_outer) return rows<false>(*this, call.x.dtype, a);
  if (!call.given) channel_moments(*this, call.x.dtype, a);
  apply<false>(*this, call.x.dtype, a);
}

void Context::norm_backward(const NormBackwardCall& call) {
  const OnDevice current(device);
  NormArgs a = args_of(call);
  a.g = static_cast<const char*>(call.g.data), a.out = static_cast<char*>(call.dx.data);
  a.sums = call.grad_weights.data;
  if (are_rows(call)) return batch_norm_of_rows_backward(*this, call.x.dtype, a);
  if (rows_and_columns(*this, call.x.dtype, a)) return;
  channel_sums(*this, call.x.dtype, a);
  if (!call.dx.data) return;
  if (!call.given && !call.over_outer) return rows<true>(*this, call.x.dtype, a);
  apply<true>(*this, call.x.dtype, a);
}

}  // namespace volta::cuda

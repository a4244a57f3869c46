// Cross-entropy of labels on the GPU: a team of threads per row of scores, which it reads by packs where they are contiguous.
// Where rows lie side by side, each thread runs along one of its own. Labels out of range are clamped and reported at the
// next synchronisation.
#include "backend/cross_entropy.h"
#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

struct Rows {
  uint32_t count, inner;
  int64_t classes;
  int64_t outer_step, class_step, inner_step;  // of the scores, in bytes
  char* scores;
  DType dtype;
  int64_t size;  // of a score
  const char* labels;
  int64_t label_step[2];  // outer, inner; in bytes
  double* statistics;
  Fault* fault;
};

struct ForwardArgs : Rows {
  bool ignores;
  int64_t ignore;
  const char* weight;
  char *losses, *factors;
};

struct BackwardArgs : Rows {
  const char* g;
  int64_t g_step[2];
  const char* factors;
  char* out;  // contiguous
  const void* divisor;
  double number;  // the divisor, where that is null
};

// Contiguous losses and factors, and what becomes of their sums.
struct MeanArgs {
  int64_t count, piece;  // labels: in all, and of a block
  const char *losses, *factors;
  DType dtype;
  int64_t size;  // of a loss
  char* mean;
  void *divisor, *sums;  // sums: of each block, where there are several
};

template <class T> struct ScoreSum { T top, sum; };
template <class T> __device__ inline ScoreSum<T> merged(ScoreSum<T> a, ScoreSum<T> b) {
  const T top = scalar::max(a.top, b.top);
  const auto scale = [&](T from) { return from == top ? T(1) : T(::exp(from - top)); };
  return {top, a.sum * scale(a.top) + b.sum * scale(b.top)};
}

// The sum of all threads of a team of 1, of a warp, or of a block; known to all of them.
template <int team, class T> __device__ inline ScoreSum<T> merge_team(ScoreSum<T> s) {
  if constexpr (team == 1) return s;
  const auto warp = [](ScoreSum<T> x) {
    for (int offset = 16; offset > 0; offset /= 2)
      x = merged(x, {__shfl_xor_sync(~0u, x.top, offset), __shfl_xor_sync(~0u, x.sum, offset)});
    return x;
  };
  s = warp(s);
  if constexpr (team > 32) {
    __shared__ T top[team / 32], sum[team / 32];
    const int lane = threadIdx.x % 32, number = threadIdx.x / 32;
    if (lane == 0) top[number] = s.top, sum[number] = s.sum;
    __syncthreads();
    s = {top[lane % (team / 32)], sum[lane % (team / 32)]};
    for (int offset = team / 64; offset > 0; offset /= 2)
      s = merged(s, {__shfl_xor_sync(~0u, s.top, offset), __shfl_xor_sync(~0u, s.sum, offset)});
  }
  return s;
}

// One row of a team: its place, and its label.
template <int team> struct Row {
  uint32_t number, outer, inner;
  bool valid;
  __device__ explicit Row(const Rows& a) : Row(a, (blockIdx.x * blockDim.x + threadIdx.x) / team) {}
  __device__ Row(const Rows& a, uint32_t row)
      : number(row), outer(number / a.inner), inner(number % a.inner), valid(number < a.count) {}
  __device__ const char* scores(const Rows& a) const { return a.scores + outer * a.outer_step + inner * a.inner_step; }
  __device__ int64_t label(const Rows& a) const {
    return *reinterpret_cast<const int64_t*>(a.labels + outer * a.label_step[0] + inner * a.label_step[1]);
  }
  __device__ static int64_t rank() { return team == 1 ? 0 : threadIdx.x % team; }
};

__device__ inline int64_t clamped(const Rows& a, int64_t label) {
  if (label >= 0 && label < a.classes) return label;
  a.fault->index = label;
  a.fault->size = a.classes;
  __threadfence_system();
  a.fault->raised = 1;
  return label < 0 ? 0 : a.classes - 1;
}

// Reads this thread's share of a row, several packs of S at a time, and calls f(held, first, count): held[u] is pack
// first + u * team of the row's `count` packs, or a copy of pack `first` where that is beyond the end.
constexpr int packs_at_once = 4;
template <class S> inline constexpr int pack_size = 16 / int(sizeof(S));
template <class S, int team, class F> __device__ inline void for_packs(const char* row, int64_t classes, F f) {
  constexpr int V = pack_size<S>, U = packs_at_once;
  const auto* packs = reinterpret_cast<const Pack<S, V>*>(row);
  const int64_t count = classes / V;
  for (int64_t first = threadIdx.x % team; first < count; first += U * team) {
    Pack<S, V> held[U];
    unroll<U>([&](int u) { held[u] = packs[first + u * team < count ? first + u * team : first]; });
    f(held, first, count);
  }
}

// For halves, a power that is right to f32's last bits but a few.
template <class S, class T> __device__ inline T power(T x) {
  if constexpr (std::is_same_v<S, float16> || std::is_same_v<S, bfloat16>) return __expf(x);
  else return ::exp(x);
}

// The sum over a row, its scores of type S contiguous and aligned.
template <class T, class S, int team> __device__ inline ScoreSum<T> sum_of_packs(const char* row, int64_t classes) {
  constexpr int V = pack_size<S>, U = packs_at_once;
  ScoreSum<T> s{-std::numeric_limits<T>::infinity(), T(0)};
  for_packs<S, team>(row, classes, [&](const Pack<S, V>(&held)[U], int64_t first, int64_t count) {
    T v[U * V], top = s.top;
    unroll<U * V>([&](int e) {
      v[e] = convert<T>(held[e / V].v[e % V]);
      top = scalar::max(top, v[e]);
    });
    const auto share = [&](T x) { return x == top ? T(1) : power<S>(x - top); };
    T sum = s.sum * share(s.top);
    unroll<U>([&](int u) {
      if (first + u * team < count) unroll<V>([&](int j) { sum += share(v[u * V + j]); });
    });
    s = {top, sum};
  });
  return s;
}

// The sums of losses and of factors.
template <class T> struct LossSums {
  struct State {
    T losses, factors;
  };
  __device__ static State start() { return {T(0), T(0)}; }
  __device__ static State merge(State a, State b) { return {a.losses + b.losses, a.factors + b.factors}; }
};

// What a row adds to them, known to the first thread of its team.
template <class T, class S, int team>
__device__ inline typename LossSums<T>::State loss_of(const ForwardArgs& a, const Row<team>& row) {
  const char* x = row.scores(a);
  ScoreSum<T> s{-std::numeric_limits<T>::infinity(), T(0)};
  if constexpr (!std::is_void_v<S>) s = sum_of_packs<T, S, team>(x, a.classes);
  else
    for (int64_t c = row.rank(); c < a.classes; c += team)
      s = merged(s, {load<T>(x + c * a.class_step, a.dtype), T(1)});
  s = merge_team<team>(s);
  if (row.rank() != 0) return LossSums<T>::start();
  if (!scalar::isfinite(s.top)) s.sum = s.top - s.top;  // such a row has no softmax
  const int64_t label = row.label(a);
  const bool counts = !(a.ignores && label == a.ignore);
  const int64_t at = counts ? clamped(a, label) : 0;
  const T factor = !counts ? T(0) : a.weight ? load<T>(a.weight + at * a.size, a.dtype) : T(1);
  const T plain = counts ? scalar::log(s.sum) - (load<T>(x + at * a.class_step, a.dtype) - s.top) : T(0);
  // An infinite loss counts nothing under a factor of 0, one of NaN does; an ignored row says nothing of its scores.
  const T loss = factor == T(0) && !scalar::isnan(plain) ? T(0) : plain * factor;
  store(a.losses + row.number * a.size, a.dtype, loss);
  if (a.factors) store(a.factors + row.number * a.size, a.dtype, factor);
  a.statistics[2 * int64_t(row.number)] = counts ? double(s.top) : 0;
  a.statistics[2 * int64_t(row.number) + 1] = counts ? double(s.sum) : 1;
  return {loss, factor};
}

template <class T, class S, int team>
__global__ __launch_bounds__(threads) void forward(const __grid_constant__ ForwardArgs a) {
  const Row<team> row(a);
  if (team <= 32 && !row.valid) return;
  loss_of<T, S>(a, row);
}

template <class T, class S, int team>
__global__ __launch_bounds__(threads) void backward(const __grid_constant__ BackwardArgs a) {
  const Row<team> row(a);
  if (!row.valid) return;
  const char* x = row.scores(a);
  const T factor = a.factors ? load<T>(a.factors + row.number * a.size, a.dtype) : T(1);
  const T divisor = a.divisor ? *static_cast<const T*>(a.divisor) : T(a.number);
  const T upstream = load<T>(a.g + row.outer * a.g_step[0] + row.inner * a.g_step[1], a.dtype) / divisor * factor;
  const T top = T(a.statistics[2 * int64_t(row.number)]);
  const double sum = a.statistics[2 * int64_t(row.number) + 1];
  const T scale = T(double(upstream) / sum);
  const bool silent = factor == T(0) && !scalar::isnan(sum);
  const int64_t label = silent ? 0 : clamped(a, row.label(a));
  char* out = a.out + (row.outer * a.classes * a.inner + row.inner) * a.size;
  const auto slope = [&](T score, int64_t c) {
    const T p = power<S>(score - top) * scale;
    return silent ? T(0) : c == label ? p - upstream : p;
  };
  if constexpr (!std::is_void_v<S>) {
    constexpr int V = pack_size<S>, U = packs_at_once;
    for_packs<S, team>(x, a.classes, [&](Pack<S, V>(&held)[U], int64_t first, int64_t count) {
      unroll<U>([&](int u) {
        const int64_t pack = first + u * team;
        unroll<V>([&](int j) { held[u].v[j] = convert<S>(slope(convert<T>(held[u].v[j]), pack * V + j)); });
        if (pack < count) reinterpret_cast<Pack<S, V>*>(out)[pack] = held[u];
      });
    });
  } else {
    for (int64_t c = row.rank(); c < a.classes; c += team)
      store(out + c * a.inner * a.size, a.dtype, slope(load<T>(x + c * a.class_step, a.dtype), c));
  }
}

template <class T> __device__ inline void conclude(const MeanArgs& a, typename LossSums<T>::State s) {
  const T divisor = a.factors ? s.factors : T(a.count);
  store(a.mean, a.dtype, s.losses / divisor);
  if (a.divisor) *static_cast<T*>(a.divisor) = divisor;
}

constexpr int mean_threads = 1024, labels_at_once = 8;  // of a block; of a thread
constexpr int64_t mean_piece = int64_t(mean_threads) * labels_at_once;
constexpr int64_t one_block = 4 * mean_piece;  // so many labels take less time than a second kernel does

// A block sums its piece; the only one concludes.
template <class T> __global__ __launch_bounds__(mean_threads) void sum_losses(const __grid_constant__ MeanArgs a) {
  constexpr int U = labels_at_once;
  auto s = LossSums<T>::start();
  const int64_t begin = int64_t(blockIdx.x) * a.piece, end = ::min(begin + a.piece, a.count);
  for (int64_t first = begin + threadIdx.x; first < end; first += mean_piece) {
    const auto place = [&](int u) { return first + u * mean_threads; };
    const auto take = [&](const char* from, T& sum) {
      T v[U];
      load_all(v, a.dtype, [&](int u) { return from + (place(u) < end ? place(u) : first) * a.size; });
      unroll<U>([&](int u) { sum += place(u) < end ? v[u] : T(0); });
    };
    take(a.losses, s.losses);
    if (a.factors) take(a.factors, s.factors);
  }
  s = team_merge<LossSums<T>>(Team{false}, s);
  if (threadIdx.x != 0) return;
  if (a.sums) static_cast<typename LossSums<T>::State*>(a.sums)[blockIdx.x] = s;
  else conclude<T>(a, s);
}

// One block merges those of `blocks`.
template <class T>
__global__ __launch_bounds__(mean_threads) void merge_losses(const __grid_constant__ MeanArgs a, unsigned blocks) {
  auto s = LossSums<T>::start();
  const auto* sums = static_cast<const typename LossSums<T>::State*>(a.sums);
  for (unsigned i = threadIdx.x; i < blocks; i += mean_threads) s = LossSums<T>::merge(s, sums[i]);
  s = team_merge<LossSums<T>>(Team{false}, s);
  if (threadIdx.x == 0) conclude<T>(a, s);
}

// Few rows: one block goes over them and has their mean at once.
template <class T, class S, int team>
__global__ __launch_bounds__(mean_threads) void forward_with_mean(const __grid_constant__ ForwardArgs a,
                                                                  const __grid_constant__ MeanArgs mean) {
  auto s = LossSums<T>::start();
  for (uint32_t row = threadIdx.x / team; row < a.count; row += mean_threads / team)
    s = LossSums<T>::merge(s, loss_of<T, S>(a, Row<team>(a, row)));
  s = team_merge<LossSums<T>>(Team{false}, s);
  if (threadIdx.x == 0) conclude<T>(mean, s);
}

template <class T> void take_mean(const Context& c, MeanArgs a) {
  const char* op = "cross_entropy";
  if (a.count <= one_block) return launch(c, op, &sum_losses<T>, 1, mean_threads, a);
  a.piece = mean_piece;
  const unsigned blocks = blocks_for(a.count, a.piece);
  const Room sums = c.memory().take(blocks * int64_t(sizeof(typename LossSums<T>::State)), op);
  a.sums = sums->data;
  launch(c, op, &sum_losses<T>, blocks, mean_threads, a);
  launch(c, op, &merge_losses<T>, 1, mean_threads, a, blocks);
}

Rows rows_of(const Context& c, const Arg& scores, const Arg& labels, const Arg& statistics) {
  const Layout &x = *scores.layout, &l = *labels.layout;
  const int64_t size = size_of(scores.dtype), rows = x.shape[0] * x.shape[2];
  require(rows < chunk_limit, ErrorKind::shape, "cross_entropy", rows, " labels are more than a call can have");
  Rows a{};
  a.count = uint32_t(rows), a.inner = uint32_t(x.shape[2]), a.classes = x.shape[1];
  a.outer_step = x.strides[0] * size, a.class_step = x.strides[1] * size, a.inner_step = x.strides[2] * size;
  a.scores = static_cast<char*>(scores.data), a.dtype = scores.dtype, a.size = size;
  a.labels = static_cast<const char*>(labels.data);
  a.label_step[0] = l.strides[0] * int64_t(sizeof(int64_t)), a.label_step[1] = l.strides[1] * int64_t(sizeof(int64_t));
  a.statistics = static_cast<double*>(statistics.data), a.fault = c.fault;
  return a;
}

// Threads to a row.
int team_of(const Rows& a) { return a.inner > 1 || a.classes < 8 ? 1 : a.classes <= 2048 ? 32 : threads; }

// Whether one block that goes over all rows takes less time than a kernel for their mean would.
bool is_brief(const Rows& a, int team) {
  return team == 1 ? a.count <= mean_threads && a.classes <= 32 : team == 32 && a.count <= 64 && a.classes <= 256;
}

// Whether rows can be read by packs.
bool packed(const Rows& a) {
  return a.inner == 1 && a.class_step == a.size && a.classes % (16 / a.size) == 0 && a.outer_step % 16 == 0 &&
         reinterpret_cast<uintptr_t>(a.scores) % 16 == 0;
}

// f.template operator()<T, S, team>(): T is computed in, S is what packs are of, or void.
template <class F> void with_form(const Rows& a, F f) {
  const int team = team_of(a);
  const auto teamed = [&]<class T, class S>() {
    if (team == threads) return f.template operator()<T, S, threads>();
    if (team == 32) return f.template operator()<T, S, 32>();
    if constexpr (std::is_void_v<S>) f.template operator()<T, S, 1>();
  };
  if (a.dtype == f64) return teamed.template operator()<double, void>();
  if (team == 1 || !packed(a)) return teamed.template operator()<float, void>();
  if (a.dtype == f32) teamed.template operator()<float, float>();
  else if (a.dtype == f16) teamed.template operator()<float, float16>();
  else teamed.template operator()<float, bfloat16>();
}

template <class Args> void start(const Context& c, const Args& a, int team, void (*kernel)(Args)) {
  launch(c, "cross_entropy", kernel, blocks_for(int64_t(a.count) * team, threads), threads, a);
}

char* bytes(const Arg& x) { return static_cast<char*>(x.data); }

}  // namespace

bool Context::offers(const CrossEntropyCall&) const { return true; }

void Context::cross_entropy(const CrossEntropyCall& call) {
  const OnDevice current(device);
  const ForwardArgs a{rows_of(*this, call.scores, call.labels, call.statistics),
                      call.ignore.has_value(),
                      call.ignore.value_or(0),
                      bytes(call.weight),
                      bytes(call.losses),
                      bytes(call.factors)};
  const MeanArgs m{a.count, a.count,          a.losses,          a.factors, a.dtype,
                   a.size,  bytes(call.mean), call.divisor.data, nullptr};
  if (call.mean.data && is_brief(a, team_of(a)))
    return with_form(a, [&]<class T, class S, int team>() {
      if constexpr (team <= 32) launch(*this, "cross_entropy", &forward_with_mean<T, S, team>, 1, mean_threads, a, m);
    });
  with_form(a, [&]<class T, class S, int team>() { start(*this, a, team, &forward<T, S, team>); });
  if (!call.mean.data) return;
  if (a.dtype == f64) take_mean<double>(*this, m);
  else take_mean<float>(*this, m);
}

void Context::cross_entropy_backward(const CrossEntropyBackwardCall& call) {
  const OnDevice current(device);
  const auto& step = call.g.layout->strides;
  const int64_t size = size_of(call.g.dtype);
  const BackwardArgs a{rows_of(*this, call.scores, call.labels, call.statistics),
                       bytes(call.g),
                       {step[0] * size, step[1] * size},
                       bytes(call.factors),
                       bytes(call.grad_scores),
                       call.divisor.data,
                       call.divisor.scalar.as<double>()};
  with_form(a, [&]<class T, class S, int team>() { start(*this, a, team, &backward<T, S, team>); });
}

}  // namespace volta::cuda

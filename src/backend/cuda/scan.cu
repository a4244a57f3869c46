// Running reductions on the GPU. A line is cut into pieces: their totals are found, scanned, and become what each piece
// starts from. Where neighbouring lines lie side by side, or are many and short, one thread runs along each instead.
#include "backend/cuda/element.h"
#include "backend/cuda/fold_formulas.h"
#include "backend/cuda/loops.h"
#include "backend/cuda/team.h"

namespace volta::cuda {
namespace {

constexpr int scan_threads = 256, per_thread = 4, warps = scan_threads / 32;
constexpr uint32_t tile = scan_threads * per_thread;

// The best so far and where it last stood, in scanning order; a NaN is better than any number.
template <class T, bool Largest> struct RunningBest : folds::Best<T, Largest> {
  using State = folds::Place<T>;
  __device__ static State start() { return {folds::Best<T, Largest>::start().value, -1}; }
  __device__ static State take(State s, T x, int64_t i, double) { return merge(s, State{x, i}); }
  __device__ static State merge(State a, State b) {
    if (folds::Best<T, Largest>::better(b.value, a.value)) return b;
    return b.index > a.index && !folds::Best<T, Largest>::better(a.value, b.value) ? b : a;
  }
};

struct ScanArgs {
  Strided<3> lines;  // out, in, indices
  char* data[3];
  int64_t step[3];  // along the scanned axis, in scanning order
  int64_t n, piece_length;
  uint32_t pieces;
  bool reverse;
  void* totals;  // states [line, piece]
  DType out_dtype, in_dtype;
};

template <class F> struct Line {
  using State = typename F::State;
  const ScanArgs& a;
  int64_t offset[3];
  __device__ Line(const ScanArgs& args, uint32_t line) : a(args) { offsets(a.lines, line, offset); }
  __device__ auto read(int64_t i) const {
    return load<typename F::Element>(a.data[1] + offset[1] + i * a.step[1], a.in_dtype);
  }
  __device__ void write(int64_t i, const State& s) const {
    store(a.data[0] + offset[0] + i * a.step[0], a.out_dtype, F::finish(s, 0, 0));
    if constexpr (F::indexed)
      if (a.data[2])
        *reinterpret_cast<int64_t*>(a.data[2] + offset[2] + i * a.step[2]) = a.reverse ? a.n - 1 - s.index : s.index;
  }
};

template <class T> __device__ T shuffle_up(const T& x, int by) {
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &x, sizeof(T));
#pragma unroll
  for (size_t i = 0; i < sizeof(T) / 4; ++i) words[i] = __shfl_up_sync(0xffffffffu, words[i], by);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

// What all threads before this one hold, merged; and in `total` what all hold.
template <class F> __device__ typename F::State before_me(typename F::State s, typename F::State& total) {
  using State = typename F::State;
  alignas(16) __shared__ unsigned char room[warps * sizeof(State)];
  State* shared = reinterpret_cast<State*>(room);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  for (int by = 1; by < 32; by *= 2) {
    const State other = shuffle_up(s, by);
    if (lane >= by) s = F::merge(other, s);
  }
  __syncthreads();  // an earlier round may still be read
  if (lane == 31) shared[warp] = s;
  __syncthreads();
  State mine = shuffle_up(s, 1);
  if (lane == 0) mine = F::start();
  State earlier = F::start();
  total = F::start();
  for (int w = 0; w < warps; ++w) {
    if (w == warp) earlier = total;
    total = F::merge(total, shared[w]);
  }
  return F::merge(earlier, mine);
}

template <class F> __global__ __launch_bounds__(scan_threads) void scan_totals(const __grid_constant__ ScanArgs a) {
  const Line<F> line(a, blockIdx.x);
  const int64_t begin = blockIdx.y * a.piece_length, end = begin + a.piece_length < a.n ? begin + a.piece_length : a.n;
  typename F::State s = F::start();
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += scan_threads) s = F::take(s, line.read(i), i, 0);
  s = team_merge(Team{false}, s, [](const auto& x, const auto& y) { return F::merge(x, y); });
  if (threadIdx.x == 0) static_cast<typename F::State*>(a.totals)[size_t(blockIdx.x) * a.pieces + blockIdx.y] = s;
}

// Totals become what comes before each piece; one block per line.
template <class F> __global__ __launch_bounds__(scan_threads) void scan_carries(const __grid_constant__ ScanArgs a) {
  using State = typename F::State;
  State* totals = static_cast<State*>(a.totals) + size_t(blockIdx.x) * a.pieces;
  State carry = F::start();
  for (uint32_t first = 0; first < a.pieces; first += scan_threads) {
    const uint32_t p = first + threadIdx.x;
    State total;
    const State earlier = before_me<F>(p < a.pieces ? totals[p] : F::start(), total);
    if (p < a.pieces) totals[p] = F::merge(carry, earlier);
    carry = F::merge(carry, total);
  }
}

template <class F> __global__ __launch_bounds__(scan_threads) void scan_pieces(const __grid_constant__ ScanArgs a) {
  using State = typename F::State;
  const Line<F> line(a, blockIdx.x);
  const int64_t begin = blockIdx.y * a.piece_length, end = begin + a.piece_length < a.n ? begin + a.piece_length : a.n;
  State carry = a.totals ? static_cast<const State*>(a.totals)[size_t(blockIdx.x) * a.pieces + blockIdx.y] : F::start();
  for (int64_t first = begin; first < end; first += tile) {
    State s[per_thread];
    const int64_t mine = first + int64_t(threadIdx.x) * per_thread;
#pragma unroll
    for (int k = 0; k < per_thread; ++k) {
      s[k] = mine + k < end ? F::take(F::start(), line.read(mine + k), mine + k, 0) : F::start();
      if (k > 0) s[k] = F::merge(s[k - 1], s[k]);
    }
    State total;
    const State earlier = F::merge(carry, before_me<F>(s[per_thread - 1], total));
#pragma unroll
    for (int k = 0; k < per_thread; ++k)
      if (mine + k < end) line.write(mine + k, F::merge(earlier, s[k]));
    carry = F::merge(carry, total);
  }
}

template <class F> __global__ __launch_bounds__(scan_threads) void scan_lines(const __grid_constant__ ScanArgs a) {
  const uint32_t l = blockIdx.x * scan_threads + threadIdx.x;
  if (l >= a.lines.n) return;
  const Line<F> line(a, l);
  typename F::State s = F::start();
#pragma unroll 4
  for (int64_t i = 0; i < a.n; ++i) {
    s = F::take(s, line.read(i), i, 0);
    line.write(i, s);
  }
}

struct ScanKernels {
  void (*totals)(ScanArgs);
  void (*carries)(ScanArgs);
  void (*pieces)(ScanArgs);
  void (*lines)(ScanArgs);
  int64_t state_bytes;
};

template <class F> ScanKernels kernels() {
  return {&scan_totals<F>, &scan_carries<F>, &scan_pieces<F>, &scan_lines<F>, int64_t(sizeof(typename F::State))};
}

template <bool Largest> ScanKernels best(DType t) {
  if (is_floating(t)) return kernels<RunningBest<double, Largest>>();
  return traits(t).kind == Kind::signed_int ? kernels<RunningBest<int64_t, Largest>>()
                                            : kernels<RunningBest<uint64_t, Largest>>();
}

// Floats are carried in double and rounded once per element; integers wrap around.
ScanKernels find(Scan scan, DType t) {
  switch (scan) {
    case Scan::sum: return is_floating(t) ? kernels<folds::Sum<double>>() : kernels<folds::Sum<uint64_t>>();
    case Scan::prod: return is_floating(t) ? kernels<folds::Prod<double>>() : kernels<folds::Prod<uint64_t>>();
    case Scan::max: return best<true>(t);
    case Scan::min: return best<false>(t);
    case Scan::logsumexp: break;
  }
  return kernels<folds::LogSumExp<double>>();
}

}  // namespace

void scan(Context& c, const ScanCall& call) {
  const char* op = "scan";
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const Arg* args[] = {&call.out, &call.in, &call.indices};
  ScanArgs a{};
  a.n = shape.empty() ? 1 : shape[call.axis];
  a.reverse = call.reverse;
  a.out_dtype = call.out.dtype;
  a.in_dtype = call.in.dtype;
  int64_t start[3] = {};
  Walk<3> walk;
  for (int i = 0; i < shape.size(); ++i) {
    int64_t strides[3] = {};
    for (int k = 0; k < 3; ++k)
      if (args[k]->data) strides[k] = args[k]->layout->strides[i] * size_of(args[k]->dtype);
    if (i != call.axis) {
      walk.add_axis(shape[i], strides);
      continue;
    }
    for (int k = 0; k < 3; ++k) {
      start[k] = call.reverse ? (a.n - 1) * strides[k] : 0;
      a.step[k] = call.reverse ? -strides[k] : strides[k];
    }
  }
  walk.finish();
  const ScanKernels k = find(call.scan, call.in.dtype);
  const int64_t lines = walk.rows() * walk.size[0];
  const bool adjoining = std::abs(walk.stride[0][1]) < std::abs(a.step[1]) && walk.size[0] >= 32;
  const bool beside = lines >= 2048 && (adjoining || a.n <= 64);
  const int64_t wanted = lines >= 1024 ? 1 : std::min<int64_t>(1024, 2048 / lines);
  a.piece_length = std::max<int64_t>(8 * tile, ((a.n + wanted - 1) / wanted + tile - 1) / tile * tile);
  a.pieces = blocks_for(a.n, a.piece_length);
  in_chunks(walk, [&](const Strided<3>& piece, const auto& base) {
    a.lines = piece;
    for (int i = 0; i < 3; ++i)
      a.data[i] = args[i]->data ? static_cast<char*>(args[i]->data) + start[i] + base[size_t(i)] : nullptr;
    if (beside) return launch(c, op, k.lines, blocks_for(piece.n, scan_threads), scan_threads, a);
    const Scratch totals(c, a.pieces > 1 ? int64_t(piece.n) * a.pieces * k.state_bytes : 0, op);
    a.totals = a.pieces > 1 ? totals.data() : nullptr;
    const dim3 grid(piece.n, a.pieces);
    if (a.totals) {
      launch(c, op, k.totals, grid, scan_threads, a);
      launch(c, op, k.carries, piece.n, scan_threads, a);
    }
    launch(c, op, k.pieces, grid, scan_threads, a);
  });
}

}  // namespace volta::cuda

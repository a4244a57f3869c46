// Running reductions on the GPU. A line is cut into pieces, each of which starts from the totals of those before it.
// Where neighbouring lines lie side by side, or are many and short, one thread runs along each instead.
#include <cub/block/block_scan.cuh>

#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

constexpr int per_thread = 4;
constexpr uint32_t tile = threads * per_thread;

struct ScanArgs : AxisRows<3> {  // out, in, indices; steps in scanning order
  bool reverse;
  int64_t piece_length;
  uint32_t pieces;
  void* totals;  // states [line, piece]
};

template <class F> struct Line {
  using State = typename F::State;
  const ScanArgs& a;
  Places<1, 3> at;
  __device__ Line(const ScanArgs& args, uint32_t line) : a(args), at(place(args.lines, line)) {}
  __device__ State read(int64_t i) const {
    return F::lift(load<typename F::Element>(at.p[0][1] + i * a.step[1], a.dtype[1]), i, 0);
  }
  __device__ void write(int64_t i, const State& s) const {
    store(at.p[0][0] + i * a.step[0], a.dtype[0], F::finish(s, 0, 0));
    if constexpr (F::indexed)
      if (at.p[0][2]) *reinterpret_cast<int64_t*>(at.p[0][2] + i * a.step[2]) = a.reverse ? a.n - 1 - s.index : s.index;
  }
  __device__ State* totals() const { return static_cast<State*>(a.totals) + size_t(blockIdx.x) * a.pieces; }
  __device__ int64_t begin() const { return blockIdx.y * a.piece_length; }
  __device__ int64_t end() const { return begin() + a.piece_length < a.n ? begin() + a.piece_length : a.n; }
};

template <class F> __global__ __launch_bounds__(threads) void scan_totals(const __grid_constant__ ScanArgs a) {
  const Line<F> line(a, blockIdx.x);
  const int64_t end = line.end();
  typename F::State s = F::start();
#pragma unroll 4
  for (int64_t i = line.begin() + threadIdx.x; i < end; i += threads) s = F::merge(s, line.read(i));
  s = team_merge<F>(Team{false}, s);
  if (threadIdx.x == 0) line.totals()[blockIdx.y] = s;
}

template <class F> __global__ __launch_bounds__(threads) void scan_pieces(const __grid_constant__ ScanArgs a) {
  using State = typename F::State;
  using Scan = cub::BlockScan<State, threads>;
  __shared__ typename Scan::TempStorage room;
  const Line<F> line(a, blockIdx.x);
  State carry = F::start();
  for (uint32_t p = threadIdx.x; p < blockIdx.y; p += threads) carry = F::merge(carry, line.totals()[p]);
  carry = team_merge<F>(Team{false}, carry);
  const auto merge = [](const State& x, const State& y) { return F::merge(x, y); };
  const int64_t end = line.end();
  for (int64_t first = line.begin(); first < end; first += tile) {
    State s[per_thread];
    const int64_t mine = first + int64_t(threadIdx.x) * per_thread;
    unroll<per_thread>([&](int k) {
      s[k] = mine + k < end ? line.read(mine + k) : F::start();
      if (k > 0) s[k] = F::merge(s[k - 1], s[k]);
    });
    State before, total;
    __syncthreads();  // an earlier round may still be read
    Scan(room).ExclusiveScan(s[per_thread - 1], before, F::start(), merge, total);
    before = F::merge(carry, before);
    unroll<per_thread>([&](int k) {
      if (mine + k < end) line.write(mine + k, F::merge(before, s[k]));
    });
    carry = F::merge(carry, total);
  }
}

template <class F> __global__ __launch_bounds__(threads) void scan_lines(const __grid_constant__ ScanArgs a) {
  const uint32_t l = blockIdx.x * threads + threadIdx.x;
  if (l >= a.lines.n) return;
  const Line<F> line(a, l);
  typename F::State s = F::start();
#pragma unroll 4
  for (int64_t i = 0; i < a.n; ++i) {
    s = F::merge(s, line.read(i));
    line.write(i, s);
  }
}

template <class F> void run(Context& c, const Operands<3>& rest, ScanArgs a, bool beside) {
  const char* op = "scan";
  in_chunks(rest, [&](const Strided<3>& piece) {
    a.lines = piece;
    if (beside) return launch(c, op, &scan_lines<F>, blocks_for(piece.n, threads), threads, a);
    const Room totals = c.memory().take(a.pieces > 1 ? int64_t(sizeof(typename F::State)) * piece.n * a.pieces : 0, op);
    a.totals = totals->data;
    const dim3 grid(piece.n, a.pieces);
    if (a.pieces > 1) launch(c, op, &scan_totals<F>, grid, threads, a);
    launch(c, op, &scan_pieces<F>, grid, threads, a);
  });
}

using Run = void (*)(Context&, const Operands<3>&, ScanArgs, bool);

template <class T> Run find(int reducer) {
  return at_index<Run>(Scans{}, reducer, []<class R>(TypeTag<R>) { return &run<typename FormulaOf<R, T>::type>; });
}

}  // namespace

// Floats are carried in double and rounded once per element; integers wrap around.
void Context::scan(const ScanCall& call) {
  const OnDevice current(device);
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const Args<3> args{&call.out, &call.in, &call.indices};
  Operands<3> rest(shape, args, 1u << call.axis);
  ScanArgs a{{shape, args, call.axis}, call.reverse, 0, 0, nullptr};
  for (int k = 0; call.reverse && k < 3; ++k) {
    rest.data[k] += (a.n - 1) * a.step[k];
    a.step[k] = -a.step[k];
  }
  const int64_t lines = rest.count();
  const bool adjoining = std::abs(rest.stride[0][1]) < std::abs(a.step[1]) && rest.size[0] >= 32;
  const bool beside = lines >= 2048 && (adjoining || a.n <= 64);
  const int64_t wanted = lines >= 1024 ? 1 : std::min<int64_t>(1024, 2048 / lines);
  a.piece_length = std::max<int64_t>(8 * tile, ((a.n + wanted - 1) / wanted + tile - 1) / tile * tile);
  a.pieces = blocks_for(a.n, a.piece_length);
  const Kind kind = traits(call.in.dtype).kind;
  const auto run = kind == Kind::floating     ? find<double>(call.reducer)
                   : kind == Kind::signed_int ? find<int64_t>(call.reducer)
                                              : find<uint64_t>(call.reducer);
  run(*this, rest, a, beside);
}

}  // namespace volta::cuda

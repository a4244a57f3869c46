// Reductions on the GPU. A team of threads takes a piece of what is reduced into one result; the pieces depend on
// shapes alone and are merged in a fixed order, so results do not change from run to run.
#include <algorithm>
#include <vector>

#include "backend/cuda/element.h"
#include "backend/cuda/fold_formulas.h"
#include "backend/cuda/loops.h"
#include "backend/cuda/team.h"

namespace volta::cuda {
namespace {

struct FoldArgs {
  Strided<3> kept;     // in, out, indices
  Strided<1> reduced;  // in
  const char* in;
  char *out, *indices;
  void* partial;        // states [result, piece], or null when the only piece is the result
  int64_t first_index;  // of the first reduced element of this launch
  uint32_t piece_length, first_piece, pieces;
  DType in_dtype, out_dtype;
  bool across;
  double count, parameter;
};

template <class F> __device__ void finish(const FoldArgs& a, const typename F::State& s, const int64_t (&offset)[3]) {
  if (a.out) store(a.out + offset[1], a.out_dtype, F::finish(s, a.count, a.parameter));
  if constexpr (F::indexed)
    if (a.indices) *reinterpret_cast<int64_t*>(a.indices + offset[2]) = s.index;
}

template <class F> __device__ void conclude(const FoldArgs& a, const Team& team, typename F::State s, uint32_t result) {
  s = team_merge(team, s, [](const auto& x, const auto& y) { return F::merge(x, y); });
  if (team.rank() != 0 || result >= a.kept.n) return;
  if (a.partial) {
    static_cast<typename F::State*>(a.partial)[size_t(result) * a.pieces + a.first_piece + blockIdx.y] = s;
  } else {
    int64_t offset[3];
    offsets(a.kept, result, offset);
    finish<F>(a, s, offset);
  }
}

template <class F> __global__ __launch_bounds__(team_threads) void fold_strided(const __grid_constant__ FoldArgs a) {
  using T = typename F::Element;
  constexpr int U = 4;
  const Team team{a.across};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s = F::start();
  if (result < a.kept.n) {
    int64_t offset[3];
    offsets(a.kept, result, offset);
    const uint32_t begin = blockIdx.y * a.piece_length, step = team.size();
    const uint32_t end = ::min(begin + a.piece_length, a.reduced.n);
    for (uint32_t r = begin + team.rank(); r < end; r += U * step) {
      uint32_t at[U];
      int64_t inner[U][1];
#pragma unroll
      for (int u = 0; u < U; ++u) at[u] = r + u * step < end ? r + u * step : r;
      offsets(a.reduced, at, inner);
      T x[U];
#pragma unroll
      for (int u = 0; u < U; ++u) x[u] = load<T>(a.in + offset[0] + inner[u][0], a.in_dtype);
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (r + u * step < end) s = F::take(s, x[u], a.first_index + r + u * step, a.parameter);
    }
  }
  conclude<F>(a, team, s, result);
}

// Rows of contiguous elements aligned to 16 bytes. Several states per thread: shorter chains of sums round less.
template <class F, class S>
__global__ __launch_bounds__(team_threads) void fold_packs(const __grid_constant__ FoldArgs a) {
  constexpr int V = 16 / sizeof(S), U = 4, ways = 4;
  using P = Pack<S, V>;
  using State = typename F::State;
  const Team team{false};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  State s[ways];
#pragma unroll
  for (int w = 0; w < ways; ++w) s[w] = F::start();
  if (result < a.kept.n) {
    int64_t offset[3];
    offsets(a.kept, result, offset);
    const S* row = reinterpret_cast<const S*>(a.in + offset[0]);
    const uint32_t begin = blockIdx.y * a.piece_length, end = ::min(begin + a.piece_length, a.reduced.n);
    const uint32_t last = end / V, step = team.size();
    const auto take = [&](const P& pack, uint32_t p) {
#pragma unroll
      for (int j = 0; j < V; ++j)
        s[j % ways] = F::take(s[j % ways], convert<float>(pack.v[j]), a.first_index + int64_t(p) * V + j, a.parameter);
    };
    const P* packs = reinterpret_cast<const P*>(row);
    uint32_t p = begin / V + team.rank();
    for (; p + (U - 1) * step < last; p += U * step) {
      P held[U];
#pragma unroll
      for (int u = 0; u < U; ++u) held[u] = packs[p + u * step];
#pragma unroll
      for (int u = 0; u < U; ++u) take(held[u], p + u * step);
    }
    for (; p < last; p += step) take(packs[p], p);
    for (uint32_t r = last * V + team.rank(); r < end; r += step)
      s[0] = F::take(s[0], convert<float>(row[r]), a.first_index + r, a.parameter);
  }
  for (int w = 1; w < ways; ++w) s[0] = F::merge(s[0], s[w]);
  conclude<F>(a, team, s[0], result);
}

// One warp per result merges its pieces.
template <class F> __global__ __launch_bounds__(team_threads) void fold_pieces(const __grid_constant__ FoldArgs a) {
  using State = typename F::State;
  const Team team{false};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  State s = F::start();
  const State* states = static_cast<const State*>(a.partial) + size_t(result) * a.pieces;
  if (result < a.kept.n)
    for (uint32_t p = team.rank(); p < a.pieces; p += team.size()) s = F::merge(s, states[p]);
  s = team_merge(team, s, [](const auto& x, const auto& y) { return F::merge(x, y); });
  if (team.rank() != 0 || result >= a.kept.n) return;
  int64_t offset[3];
  offsets(a.kept, result, offset);
  finish<F>(a, s, offset);
}

using FoldKernel = void (*)(FoldArgs);

struct FoldKernels {
  FoldKernel strided = nullptr, pieces = nullptr;
  FoldKernel packs[3] = {};  // of f16, bf16, f32
  int64_t state_bytes = 0;
  bool indexed = false;
};

template <class F> FoldKernels kernels() {
  FoldKernels k{&fold_strided<F>, &fold_pieces<F>, {}, int64_t(sizeof(typename F::State)), F::indexed};
  if constexpr (std::is_same_v<typename F::Element, float>) {
    k.packs[0] = &fold_packs<F, float16>;
    k.packs[1] = &fold_packs<F, bfloat16>;
    k.packs[2] = &fold_packs<F, float>;
  }
  return k;
}

template <template <class> class F> FoldKernels of_reals(DType compute) {
  return compute == f64 ? kernels<F<double>>() : kernels<F<float>>();
}
// Integers add and multiply as 64-bit numbers that wrap around, signed or not.
template <template <class> class F> FoldKernels of_numbers(DType compute) {
  return is_floating(compute) ? of_reals<F>(compute) : kernels<F<uint64_t>>();
}
template <template <class> class F> FoldKernels of_ordered(DType compute) {
  if (is_floating(compute)) return of_reals<F>(compute);
  return traits(compute).kind == Kind::signed_int ? kernels<F<int64_t>>() : kernels<F<uint64_t>>();
}

FoldKernels find(Fold fold, bool indices, DType t) {
  switch (fold) {
    case Fold::sum: return of_numbers<folds::Sum>(t);
    case Fold::mean: return of_reals<folds::Mean>(t);
    case Fold::prod: return of_numbers<folds::Prod>(t);
    case Fold::max: return indices ? of_ordered<folds::ArgMax>(t) : of_ordered<folds::Max>(t);
    case Fold::min: return indices ? of_ordered<folds::ArgMin>(t) : of_ordered<folds::Min>(t);
    case Fold::any: return kernels<folds::Any<bool>>();
    case Fold::all: return kernels<folds::All<bool>>();
    case Fold::count_nonzero: return kernels<folds::Count<bool>>();
    case Fold::nansum: return is_floating(t) ? of_reals<folds::NanSum>(t) : of_numbers<folds::Sum>(t);
    case Fold::argmax: return of_ordered<folds::ArgMax>(t);
    case Fold::argmin: return of_ordered<folds::ArgMin>(t);
    case Fold::sum_squares: return of_reals<folds::SumSquares>(t);
    case Fold::sum_abs: return of_reals<folds::SumAbs>(t);
    case Fold::sum_powers: return of_reals<folds::SumPowers>(t);
    case Fold::var: return of_reals<folds::Variance>(t);
    case Fold::logsumexp: break;
  }
  return of_reals<folds::LogSumExp>(t);
}

constexpr int64_t enough_blocks = 2048;
constexpr int64_t elements_per_thread = 32;  // at least, before a result is shared among blocks

struct FoldPlan {
  Walk<3> kept;
  Walk<1> reduced;
  int64_t results = 1, count = 1;
  bool across = false;
  dim3 block;
  int64_t rows_per_block = 1, piece_length = 1;
};

int64_t power_of_two(int64_t at_least, int64_t most) {
  int64_t p = 1;
  while (p < at_least && p < most) p *= 2;
  return p;
}

FoldPlan make_plan(const FoldCall& call, bool indexed) {
  FoldPlan p;
  Walk<2> reduced;  // ordered by the first operand: the position among the reduced elements, where that matters
  const Layout &x = *call.in.layout, &y = *call.out.layout;
  for (int i = 0; i < x.rank(); ++i)
    if (call.reduced >> i & 1) p.count *= x.shape[i];
  int64_t position = p.count;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t in = x.strides[i] * size_of(call.in.dtype);
    if (call.reduced >> i & 1) {
      position /= std::max<int64_t>(x.shape[i], 1);
      const int64_t strides[] = {indexed ? position : in, in};
      reduced.add_axis(x.shape[i], strides);
    } else {
      const int64_t places = call.indices.data ? call.indices.layout->strides[i] * 8 : 0;
      const int64_t strides[] = {in, y.strides[i] * size_of(call.out.dtype), places};
      p.kept.add_axis(x.shape[i], strides);
      p.results *= x.shape[i];
    }
  }
  p.kept.finish();
  reduced.finish();
  p.reduced.rank = reduced.rank;
  for (int i = 0; i < reduced.rank; ++i) {
    p.reduced.size[i] = reduced.size[i];
    p.reduced.stride[i][0] = reduced.stride[i][1];
  }
  return p;
}

// How results and pieces are laid over threads; a function of the shapes alone.
void choose_threads(FoldPlan& p) {
  const int64_t inner = std::abs(p.reduced.stride[0][0]), beside = std::abs(p.kept.stride[0][0]);
  p.across = p.results > 1 && beside != 0 && (beside < inner || p.count == 1);
  const int64_t wide = p.across ? power_of_two(p.kept.size[0], 32) : power_of_two((p.count + 3) / 4, team_threads);
  p.block = dim3(unsigned(wide), unsigned(team_threads / wide));
  const int64_t team = p.across ? p.block.y : p.block.x;
  p.rows_per_block = p.across ? p.block.x : p.block.y;
  const int64_t blocks = (p.results + p.rows_per_block - 1) / p.rows_per_block;
  const int64_t most = std::max<int64_t>(1, p.count / (team * elements_per_thread));
  const int64_t pieces = std::clamp<int64_t>(enough_blocks / blocks, 1, std::min<int64_t>(most, enough_blocks));
  const int64_t length = (p.count + pieces - 1) / pieces;
  p.piece_length = std::max<int64_t>(64, (length + 63) / 64 * 64);  // whole packs
}

// Which of the pack kernels reads the rows, or -1.
int pack_kind(const FoldPlan& p, const FoldCall& call) {
  const DType t = call.in.dtype;
  if (p.across || !(t == f16 || t == bf16 || t == f32) || p.reduced.rank != 1) return -1;
  bool aligned = reinterpret_cast<uintptr_t>(call.in.data) % 16 == 0 && p.reduced.stride[0][0] == size_of(t);
  for (int i = 0; i < p.kept.rank; ++i) aligned = aligned && p.kept.stride[i][0] % 16 == 0;
  return aligned ? int(t) : -1;
}

}  // namespace

void fold(Context& c, const FoldCall& call) {
  const char* op = "fold";
  const FoldKernels k = find(call.fold, call.indices.data != nullptr, call.compute);
  FoldPlan p = make_plan(call, k.indexed);
  if (p.results == 0) return;
  choose_threads(p);
  const int kind = pack_kind(p, call);
  const FoldKernel first = kind >= 0 && k.packs[kind] ? k.packs[kind] : k.strided;

  FoldArgs a{};
  a.in_dtype = call.in.dtype;
  a.out_dtype = call.out.dtype;
  a.across = p.across;
  a.count = double(p.count);
  a.parameter = call.parameter;
  a.piece_length = uint32_t(std::min(p.piece_length, chunk_limit));
  const bool positions = call.fold == Fold::argmax || call.fold == Fold::argmin;
  char* values = positions ? nullptr : static_cast<char*>(call.out.data);
  char* places = static_cast<char*>(positions ? call.out.data : call.indices.data);
  if (positions)
    for (int i = 0; i < p.kept.rank; ++i) p.kept.stride[i][2] = p.kept.stride[i][1];

  struct Stretch {
    Strided<1> axes;
    int64_t offset;
  };
  std::vector<Stretch> stretches;
  if (p.count > 0)
    in_chunks(p.reduced, [&](const Strided<1>& s, const auto& base) { stretches.push_back({s, base[0]}); });
  else stretches.push_back({});
  if (p.count == 0) stretches[0].axes.n = 0;
  a.pieces = 0;
  for (const Stretch& s : stretches) a.pieces += std::max(1u, blocks_for(s.axes.n, a.piece_length));

  in_chunks(p.kept, [&](const Strided<3>& kept, const auto& base) {
    const Scratch partial(c, a.pieces > 1 ? int64_t(kept.n) * a.pieces * k.state_bytes : 0, op);
    a.kept = kept;
    a.out = values ? values + base[1] : nullptr;
    a.indices = places ? places + base[2] : nullptr;
    a.partial = a.pieces > 1 ? partial.data() : nullptr;
    a.first_piece = 0;
    a.first_index = 0;
    const unsigned blocks = blocks_for(kept.n, p.rows_per_block);
    for (const Stretch& s : stretches) {
      a.reduced = s.axes;
      a.in = static_cast<const char*>(call.in.data) + base[0] + s.offset;
      const unsigned pieces = std::max(1u, blocks_for(s.axes.n, a.piece_length));
      launch(c, op, first, dim3(blocks, pieces), p.block, a);
      a.first_piece += pieces;
      a.first_index += s.axes.n;
    }
    if (a.partial) launch(c, op, k.pieces, blocks_for(kept.n, team_threads / 32), dim3(32, team_threads / 32), a);
  });
}

}  // namespace volta::cuda

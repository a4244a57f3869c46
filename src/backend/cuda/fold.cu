// Reductions on the GPU. A team of threads takes a piece of what is reduced into one result; the pieces depend on
// shapes alone and are merged in a fixed order, so results do not change from run to run.
#include <algorithm>
#include <vector>

#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

struct FoldArgs {
  Strided<3> kept;     // in, values, indices
  Strided<2> reduced;  // counted: offset in `in`, and position among the reduced elements (where it matters)
  void* partial;       // states [result, piece], or null when the only piece is the result
  uint32_t piece_length, first_piece, pieces;
  DType in_dtype, out_dtype;
  bool across;
  double count, parameter;
  __device__ int64_t first(int k) const { return reinterpret_cast<int64_t>(reduced.data[k]); }
};

template <class F>
__device__ void conclude(const FoldArgs& a, const Team& team, typename F::State s, uint32_t result, void* partial) {
  s = team_merge<F>(team, s);
  if (team.rank() != 0 || result >= a.kept.n) return;
  if (partial) {
    static_cast<typename F::State*>(partial)[size_t(result) * a.pieces + a.first_piece + blockIdx.y] = s;
    return;
  }
  const auto to = place(a.kept, result);
  if (to.p[0][1]) store(to.p[0][1], a.out_dtype, F::finish(s, a.count, a.parameter));
  if constexpr (F::indexed)
    if (to.p[0][2]) *reinterpret_cast<int64_t*>(to.p[0][2]) = s.index;
}

template <class F> __global__ __launch_bounds__(threads) void fold_strided(const __grid_constant__ FoldArgs a) {
  constexpr int U = F::indexed ? 4 : 8, K = F::indexed ? 2 : 1;
  const Team team{a.across};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s = F::start();
  if (result < a.kept.n) {
    const char* row = place(a.kept, result).p[0][0] + a.first(0);
    const uint32_t begin = blockIdx.y * a.piece_length, end = ::min(begin + a.piece_length, a.reduced.n);
    const uint32_t step = team.size();
    for (uint32_t r = begin + team.rank(); r < end; r += U * step) {
      uint32_t at[U];
      int64_t offset[U][K];
#pragma unroll
      for (int u = 0; u < U; ++u) at[u] = r + u * step < end ? r + u * step : r;
      offsets(a.reduced, at, offset);
      typename F::Element x[U];
      load_all(x, a.in_dtype, [&](int u) { return row + offset[u][0]; });
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (r + u * step < end) s = folds::take<F>(s, x[u], a.first(1) + offset[u][K - 1], a.parameter);
    }
  }
  conclude<F>(a, team, s, result, a.partial);
}

// Rows of contiguous elements aligned to 16 bytes. Several states per thread: shorter chains of sums round less.
template <class F, class S> __global__ __launch_bounds__(threads) void fold_packs(const __grid_constant__ FoldArgs a) {
  constexpr int V = 16 / sizeof(S), U = 4, ways = 4;
  using P = Pack<S, V>;
  const Team team{false};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s[ways];
#pragma unroll
  for (int w = 0; w < ways; ++w) s[w] = F::start();
  if (result < a.kept.n) {
    const S* row = reinterpret_cast<const S*>(place(a.kept, result).p[0][0] + a.first(0));
    const P* packs = reinterpret_cast<const P*>(row);
    const uint32_t begin = blockIdx.y * a.piece_length, end = ::min(begin + a.piece_length, a.reduced.n);
    const uint32_t last = end / V, step = team.size();
    const auto take = [&](const P& pack, uint32_t p) {
#pragma unroll
      for (int j = 0; j < V; ++j)
        s[j % ways] =
            folds::take<F>(s[j % ways], convert<float>(pack.v[j]), a.first(1) + int64_t(p) * V + j, a.parameter);
    };
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
      s[0] = folds::take<F>(s[0], convert<float>(row[r]), a.first(1) + r, a.parameter);
  }
  for (int w = 1; w < ways; ++w) s[0] = F::merge(s[0], s[w]);
  conclude<F>(a, team, s[0], result, a.partial);
}

// One warp per result merges its pieces.
template <class F> __global__ __launch_bounds__(threads) void fold_pieces(const __grid_constant__ FoldArgs a) {
  const Team team{false};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s = F::start();
  const auto* states = static_cast<const typename F::State*>(a.partial) + size_t(result) * a.pieces;
  if (result < a.kept.n)
    for (uint32_t p = team.rank(); p < a.pieces; p += team.size()) s = F::merge(s, states[p]);
  conclude<F>(a, team, s, result, nullptr);
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

// How results and pieces are laid over threads; a function of the shapes alone.
struct FoldPlan {
  Walk<3> kept;
  Walk<2> reduced;
  int64_t results, count = 1, piece_length = 0, rows_per_block = 0;
  bool across = false;
  dim3 block;

  FoldPlan(const FoldCall& call, const Arg& values, const Arg& places, bool indexed) {
    const Layout& x = *call.in.layout;
    kept = walk_of<3>(x.shape, {&call.in, &values, &places}, call.reduced);
    results = kept.rows() * kept.size[0];
    for (int i = 0; i < x.rank(); ++i)
      if (call.reduced >> i & 1) count *= x.shape[i];
    int64_t position = count;
    for (int i = 0; i < x.rank(); ++i) {
      if (!(call.reduced >> i & 1)) continue;
      position /= std::max<int64_t>(x.shape[i], 1);
      const int64_t strides[] = {x.strides[i] * size_of(call.in.dtype), indexed ? position : 0};
      reduced.add_axis(x.shape[i], strides);
    }
    reduced.finish();
  }

  void choose_threads() {
    const int64_t inner = std::abs(reduced.stride[0][0]), beside = std::abs(kept.stride[0][0]);
    across = results > 1 && beside != 0 && (beside < inner || count == 1);
    const auto wide = across ? std::bit_ceil(uint64_t(std::min<int64_t>(kept.size[0], 32)))
                             : std::bit_ceil(uint64_t(std::clamp<int64_t>((count + 3) / 4, 1, threads)));
    block = dim3(unsigned(wide), unsigned(threads / wide));
    const int64_t team = across ? block.y : block.x;
    rows_per_block = across ? block.x : block.y;
    const int64_t blocks = (results + rows_per_block - 1) / rows_per_block;
    const int64_t most = std::clamp<int64_t>(count / (team * elements_per_thread), 1, enough_blocks);
    const int64_t pieces = std::clamp<int64_t>(enough_blocks / blocks, 1, most), length = (count + pieces - 1) / pieces;
    piece_length = std::clamp<int64_t>((length + 63) / 64 * 64, 64, chunk_limit);  // whole packs
  }

  // Whether rows can be read as packs of 16 bytes.
  bool packed(const Arg& in) const {
    const int64_t size = size_of(in.dtype);
    if (across || reduced.rank != 1 || reduced.stride[0][0] != size || reduced.stride[0][1] > 1) return false;
    uintptr_t lowest = reinterpret_cast<uintptr_t>(in.data);
    for (int i = 0; i < kept.rank; ++i) lowest |= uintptr_t(kept.stride[i][0]);
    return (in.dtype == f32 || is_half(in.dtype)) && lowest % 16 == 0;
  }
};

}  // namespace

void Context::fold(const FoldCall& call) {
  const char* op = "fold";
  const OnDevice current(device);
  const bool positions = call.fold == Fold::argmax || call.fold == Fold::argmin;
  const Arg values = positions ? Arg{} : call.out, places = positions ? call.out : call.indices;
  const FoldKernels k = find(call.fold, call.indices.data != nullptr, call.compute);
  FoldPlan plan(call, values, places, k.indexed);
  if (plan.results == 0) return;
  plan.choose_threads();
  const FoldKernel packs = plan.packed(call.in) ? k.packs[size_t(call.in.dtype)] : nullptr;

  std::vector<Strided<2>> stretches;
  if (plan.count > 0) in_chunks<2>(plan.reduced, {}, [&](const Strided<2>& stretch) { stretches.push_back(stretch); });
  else stretches.emplace_back().n = 0;
  FoldArgs a{};
  a.in_dtype = call.in.dtype;
  a.out_dtype = call.out.dtype;
  a.across = plan.across;
  a.count = double(plan.count);
  a.parameter = call.parameter;
  a.piece_length = uint32_t(plan.piece_length);
  const auto pieces_of = [&](const Strided<2>& stretch) { return std::max(1u, blocks_for(stretch.n, a.piece_length)); };
  for (const Strided<2>& stretch : stretches) a.pieces += pieces_of(stretch);

  in_chunks<3>(plan.kept, {call.in.data, values.data, places.data}, [&](const Strided<3>& kept) {
    const Scratch partial(*this, a.pieces > 1 ? int64_t(kept.n) * a.pieces * k.state_bytes : 0, op);
    a.kept = kept;
    a.partial = a.pieces > 1 ? partial.as() : nullptr;
    a.first_piece = 0;
    for (const Strided<2>& stretch : stretches) {
      a.reduced = stretch;
      const unsigned pieces = pieces_of(stretch);
      launch(*this, op, packs ? packs : k.strided, dim3(blocks_for(kept.n, plan.rows_per_block), pieces), plan.block,
             a);
      a.first_piece += pieces;
    }
    if (a.partial) launch(*this, op, k.pieces, blocks_for(kept.n, threads / 32), dim3(32, threads / 32), a);
  });
}

}  // namespace volta::cuda

// Reductions on the GPU. A team of threads takes a piece of what is reduced into one result; the pieces depend on
// shapes alone and are merged in a fixed order, so results do not change from run to run.
#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

struct FoldArgs {
  uint32_t piece_length;
  DType in_dtype, out_dtype;
  bool across;
  double count, parameter;
  bool again;  // only what the first pass could not hold is taken
  uint32_t first_piece = 0, pieces = 0;
  Strided<3> kept = {};     // in, values, indices
  Strided<2> reduced = {};  // counted: offset in `in`, and position among the reduced elements (where it matters)
  void* partial = nullptr;  // states [result, piece], or null when the only piece is the result
  __device__ uint32_t begin() const { return blockIdx.y * piece_length; }
  __device__ uint32_t end() const { return ::min(begin() + piece_length, reduced.n); }
};

// Whether a result is to be taken: where that is done again, in f64, those whose squares left the range of f32. A result
// in f32 would be 0 as well where its squares underflow; one in f64 would not.
template <class F> __device__ bool is_wanted(const FoldArgs& a, uint32_t result) {
  if (result >= a.kept.n) return false;
  if constexpr (std::is_same_v<F, Formula<reducers::Var, double>>) {
    if (!a.again) return true;
    const double found = load<double>(place(a.kept, result).p[0][1], a.out_dtype);
    return !scalar::isfinite(found) || !(found >= (a.out_dtype == DType::f64 ? 0x1p-100 : 0));
  }
  return true;
}

template <class F> __device__ void conclude(const FoldArgs& a, const Team& team, typename F::State s, uint32_t result,
                                            bool wanted, void* partial) {
  s = team_merge<F>(team, s);
  if (team.rank() != 0 || !wanted) return;
  if (partial) {
    static_cast<typename F::State*>(partial)[size_t(result) * a.pieces + a.first_piece + blockIdx.y] = s;
    return;
  }
  const auto to = place(a.kept, result);
  if (to.p[0][1]) store(to.p[0][1], a.out_dtype, F::finish(s, a.count, a.parameter));
  if constexpr (F::indexed)
    if (to.p[0][2]) *reinterpret_cast<int64_t*>(to.p[0][2]) = s.index;
}

// Takes U packs of V elements of type S at a time, where rows are contiguous and aligned to 16 bytes; with V = 1,
// elements of any dtype and strides. Several states per thread: shorter chains of sums round less.
template <class F, class S, int V>
__global__ __launch_bounds__(threads) void fold_rows(const __grid_constant__ FoldArgs a) {
  using P = Pack<S, V>;
  constexpr int U = V > 1 || F::indexed ? 4 : 8, K = F::indexed ? 2 : 1, ways = V > 1 ? 4 : 1;
  const Team team{a.across};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s[ways];
  unroll<ways>([&](int w) { s[w] = F::start(); });
  const auto take = [&](int way, typename F::Element x, int64_t position) {
    s[way] = F::merge(s[way], F::lift(x, position, a.parameter));
  };
  const bool wanted = is_wanted<F>(a, result);
  if (wanted) {
    const char* row = place(a.kept, result).p[0][0];
    const uint32_t end = a.end(), last = end / V, step = team.size();
    const P* packs = reinterpret_cast<const P*>(row + counted(a.reduced.data[0]));
    const int64_t first = counted(a.reduced.data[1]);
    for (uint32_t r = a.begin() / V + team.rank(); r < last; r += U * step) {
      uint32_t at[U];
      unroll<U>([&](int u) { at[u] = r + u * step < last ? r + u * step : r; });
      if constexpr (V == 1) {
        const Places<U, K> places(a.reduced, at);
        typename F::Element x[U];
        load_all(x, a.in_dtype, [&](int u) { return row + counted(places.p[u][0]); });
        unroll<U>([&](int u) {
          if (r + u * step < last) take(0, x[u], counted(places.p[u][K - 1]));
        });
      } else {
        P held[U];
        unroll<U>([&](int u) { held[u] = packs[at[u]]; });
        unroll<U>([&](int u) {
          if (r + u * step >= last) return;
          unroll<V>([&](int j) { take(j % ways, convert<float>(held[u].v[j]), first + int64_t(at[u]) * V + j); });
        });
      }
    }
    if constexpr (V > 1)
      for (uint32_t r = last * V + team.rank(); r < end; r += step)
        take(0, convert<float>(reinterpret_cast<const S*>(packs)[r]), first + r);
  }
  for (int w = 1; w < ways; ++w) s[0] = F::merge(s[0], s[w]);
  conclude<F>(a, team, s[0], result, wanted, a.partial);
}

// A warp, or of many pieces a block, merges those of a result.
template <class F> __global__ __launch_bounds__(threads) void fold_pieces(const __grid_constant__ FoldArgs a) {
  const Team team{false};
  const uint32_t result = blockIdx.x * team.rows() + team.row();
  typename F::State s = F::start();
  const auto* states = static_cast<const typename F::State*>(a.partial) + size_t(result) * a.pieces;
  const bool wanted = is_wanted<F>(a, result);
  if (wanted)
    for (uint32_t p = team.rank(); p < a.pieces; p += team.size()) s = F::merge(s, states[p]);
  conclude<F>(a, team, s, result, wanted, nullptr);
}

struct FoldKernels {
  void (*strided)(FoldArgs);
  void (*pieces)(FoldArgs);
  std::array<void (*)(FoldArgs), 3> packs;  // of f16, bf16, f32
  int64_t state_bytes;
  bool indexed;
};

template <class F> FoldKernels kernels() {
  FoldKernels k{
      &fold_rows<F, typename F::Element, 1>, &fold_pieces<F>, {}, int64_t(sizeof(typename F::State)), F::indexed};
  if constexpr (std::is_same_v<typename F::Element, float>)
    k.packs = {&fold_rows<F, float16, 8>, &fold_rows<F, bfloat16, 8>, &fold_rows<F, float, 4>};
  return k;
}

template <class T> FoldKernels find(int reducer) {
  return at_index<FoldKernels>(Reducers{}, reducer,
                               []<class R>(TypeTag<R>) { return kernels<typename FormulaOf<R, T>::type>(); });
}

FoldKernels find(const ReduceCall& call) {
  if (call.compute == f64) return find<double>(call.reducer);
  if (is_floating(call.compute)) return find<float>(call.reducer);
  const bool signs = traits(call.compute).kind == Kind::signed_int;
  return signs ? find<int64_t>(call.reducer) : find<uint64_t>(call.reducer);
}

constexpr int64_t enough_blocks = 132 * 8;
constexpr int64_t elements_per_thread = 32;  // at least, before a result is shared among blocks

void fold(Context& c, const ReduceCall& call, const FoldKernels& k, bool again) {
  const char* op = "fold";
  const Arg none, &values = call.out.data ? call.out : none, &indices = call.indices.data ? call.indices : none;
  const Shape& shape = call.in.layout->shape;
  const Operands<3> kept(shape, {&call.in, &values, &indices}, call.reduced);
  const int64_t results = kept.count();
  if (results == 0) return;
  // What is reduced is counted: offsets in `in`, and positions.
  Layout order = *call.in.layout;
  int64_t count = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    order.strides[i] = k.indexed ? count : 0;
    if (call.reduced >> i & 1) count *= shape[i];
  }
  const Arg offsets{nullptr, call.in.layout, call.in.dtype, {}}, positions{nullptr, &order, u8, {}};
  const Operands<2> reduced(shape, {&offsets, &positions}, ~call.reduced);

  // Results and pieces are laid over threads by the shapes alone.
  const int64_t inner = std::abs(reduced.stride[0][0]), beside = std::abs(kept.stride[0][0]);
  const bool across = results > 1 && beside != 0 && (beside < inner || count == 1);
  const auto wide = unsigned(std::bit_ceil(
      uint64_t(across ? std::min<int64_t>(kept.size[0], 32) : std::clamp<int64_t>((count + 3) / 4, 1, threads))));
  const dim3 block(wide, threads / wide);
  const int64_t team = across ? block.y : block.x, together = threads / team;
  const int64_t blocks = (results + together - 1) / together;
  const int64_t most = std::clamp<int64_t>(count / (team * elements_per_thread), 1, enough_blocks);
  const int64_t parts = std::clamp<int64_t>(enough_blocks / blocks, 1, most), length = (count + parts - 1) / parts;

  // Rows that are contiguous are read as packs of 16 bytes.
  const DType t = call.in.dtype;
  const bool rows = !across && reduced.rank == 1 && reduced.stride[0][0] == size_of(t) && reduced.stride[0][1] <= 1;
  const bool packed = rows && (t == f32 || is_half(t)) && kept.low_bits(0, 0) % 16 == 0 && k.packs[size_t(t)];
  const auto kernel = packed ? k.packs[size_t(t)] : k.strided;

  const int64_t whole = std::clamp<int64_t>((length + 63) / 64 * 64, 64, chunk_limit);  // packs
  FoldArgs a{uint32_t(whole), t, call.out.dtype, across, double(count), call.parameter, again};
  const auto pieces_of = [&](const Strided<2>& stretch) { return std::max(1u, blocks_for(stretch.n, a.piece_length)); };
  in_chunks(reduced, [&](const Strided<2>& stretch) { a.pieces += pieces_of(stretch); });
  in_chunks(kept, [&](const Strided<3>& chunk) {
    const Room partial = c.memory().take(a.pieces > 1 ? int64_t(chunk.n) * a.pieces * k.state_bytes : 0, op);
    a.kept = chunk;
    a.partial = a.pieces > 1 ? partial->data : nullptr;
    a.first_piece = 0;
    in_chunks(reduced, [&](const Strided<2>& stretch) {
      a.reduced = stretch;
      const unsigned pieces = pieces_of(stretch);
      launch(c, op, kernel, dim3(blocks_for(chunk.n, together), pieces), block, a);
      a.first_piece += pieces;
    });
    const unsigned merging = a.pieces > threads ? threads : 32, merged = threads / merging;
    if (a.partial) launch(c, op, k.pieces, blocks_for(chunk.n, merged), dim3(merging, merged), a);
  });
}

}  // namespace

void Context::reduce(const ReduceCall& call) {
  const OnDevice current(device);
  fold(*this, call, find(call), false);
  // Squares of f32 leave its range long before their root does: then once more, in f64.
  if (call.reducer == index_of<reducers::Var>(Reducers{}) && call.compute == f32)
    fold(*this, call, find<double>(call.reducer), true);
}

}  // namespace volta::cuda

// Attention of halves on the GPU, on the tensor cores: the scores of a block of queries (forward, and for their gradient) or of
// keys (for the gradients of keys and values) are made tile by tile, used and forgotten. Every element of a gradient is summed
// by one warp, always in the same order.
#include "backend/attention.h"

#include "backend/cuda/attention_cudnn.h"
#include "backend/cuda/attention_tiles.h"
#include "backend/cuda/capture.h"
#include "backend/cuda/element.h"
#include "backend/dropout.h"
#include "core/distributions.h"

namespace volta::cuda {
namespace {

using namespace tiles;

constexpr const char* op = "attention";
constexpr int most_axes = Shape::max_rank - 2;
constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// The matrices of all heads; strides in elements.
struct HeadOperand {
  char* data = nullptr;
  int64_t step[most_axes] = {};
  int64_t row = 0, column = 0;
};

struct AttendArgs {
  int axes;  // in front of the matrices
  int size[most_axes];
  int heads, group;  // query heads in all, and those that share a key head
  int queries, keys, width;
  float scale;
  bool causal, boolean_mask;
  bool drops;
  uint32_t least_kept;  // of the bits of a random word
  float kept;           // what weights that are kept are multiplied with
  uint64_t seed, offset;
  HeadOperand q, k, v, out, mask, grad_out;
  float *logsumexp, *delta;  // [heads, queries]
  float* grad_q;             // these are contiguous
  char *grad_k, *grad_v;
};

// Where the matrix of query head `index` begins, in elements.
__device__ int64_t place_of(const AttendArgs& a, const HeadOperand& x, int index, int group) {
  int64_t at = 0;
  for (int i = a.axes - 1; i >= 0; --i) {
    const int here = index % a.size[i];
    at += int64_t(i == a.axes - 1 ? here / group : here) * x.step[i];
    index /= a.size[i];
  }
  return at;
}

// Scores as powers of two: scaled, with the mask; what is not seen is -inf.
struct Scores {
  const AttendArgs& a;
  float factor;
  const char* mask;  // of this head
  __device__ Scores(const AttendArgs& args, int head) : a(args), factor(args.scale * log2_e), mask(nullptr) {
    if (args.mask.data)
      mask = args.mask.data + place_of(args, args.mask, head, 1) * (args.boolean_mask ? 1 : int64_t(sizeof(float)));
  }
  // From products of 16 rows and N columns; rows are queries, or, turned, keys.
  template <bool Turned, int N> __device__ void prepare(float (&s)[N / 8][4], int row, int column) const {
    const int query = Turned ? column : row, key = Turned ? row : column;
    const int query_end = query + (Turned ? N : 16), key_end = key + (Turned ? 16 : N);
    if (!mask && key_end <= a.keys && query_end <= a.queries && !(a.causal && key_end > query + 1))
      return unroll<N / 8>([&](int j) { unroll<4>([&](int e) { s[j][e] *= factor; }); });
    unroll<N / 8>([&](int j) {
      unroll<4>([&](int e) {
        const int down = row_of(e), along = column_of(j, e);
        s[j][e] = score(s[j][e], query + (Turned ? along : down), key + (Turned ? down : along));
      });
    });
  }
  __device__ float score(float product, int query, int key) const {
    if (key >= a.keys || query >= a.queries || (a.causal && key > query)) return -INFINITY;
    const float s = product * factor;
    if (!mask) return s;
    const int64_t at = query * a.mask.row + key * a.mask.column;
    if (a.boolean_mask) return mask[at] ? s : -INFINITY;
    return s + reinterpret_cast<const float*>(mask)[at] * log2_e;
  }
};

// Which weights of a head dropout keeps: 1 or 0 for each of the four elements of a tile that a thread has. Four neighbouring
// keys share a block of random words, which one thread makes for the others where the blocks begin at every fourth key.
struct Kept {
  const AttendArgs& a;
  int64_t first;  // number of the head's first weight
  __device__ Kept(const AttendArgs& args, int head) : a(args), first(int64_t(head) * args.queries * args.keys) {}

  __device__ int64_t number(int query, int key) const { return first + int64_t(query) * a.keys + key; }
  __device__ volta::random::Words words(int64_t number) const {
    return volta::random::block_words(a.seed, a.offset + uint64_t(number) / 4, 0);
  }
  __device__ static uint32_t word(const volta::random::Words& w, int i) {
    return i < 2 ? (i == 0 ? w.x : w.y) : (i == 2 ? w.z : w.w);
  }
  __device__ float keep(uint32_t word) const { return (word >> 8) >= a.least_kept ? 1.0f : 0.0f; }

  // Factors of tile j of products whose first row and column these are; rows are queries, or, turned, keys.
  template <bool Turned> __device__ void of_tile(float (&k)[4], int j, int row, int column) const {
    if (a.keys % 4 != 0)
      return unroll<4>([&](int e) {
        const int down = row + row_of(e), along = column + column_of(j, e);
        const int64_t n = Turned ? number(along, down) : number(down, along);
        k[e] = keep(word(words(n), int(n % 4)));
      });
    uint32_t got[4];
    if constexpr (Turned) share_keys_below(got, j, row, column);
    else share_keys_beside(got, j, row, column);
    unroll<4>([&](int e) { k[e] = keep(got[e]); });
  }
  // Two threads have four keys of two queries: each makes the block of one query.
  __device__ void share_keys_beside(uint32_t (&got)[4], int j, int row, int column) const {
    const bool odd = lane() % 2 == 1;
    const auto w = words(number(row + row_of(odd ? 2 : 0), column + column_of(j, 0) / 4 * 4));
    const uint32_t a0 = __shfl_xor_sync(~0u, odd ? w.x : w.z, 1), a1 = __shfl_xor_sync(~0u, odd ? w.y : w.w, 1);
    got[0] = odd ? a0 : w.x, got[1] = odd ? a1 : w.y;
    got[2] = odd ? w.z : a0, got[3] = odd ? w.w : a1;
  }
  // Four threads, one below the other, have four keys of four blocks: each makes one, and gives every other its word.
  __device__ void share_keys_below(uint32_t (&got)[4], int j, int row, int column) const {
    const int own = lane() / 4 % 4;
    const auto w = words(number(column + column_of(j, own % 2), row + row_of(own / 2 * 2) / 4 * 4));
    unroll<4>([&](int step) {
      const uint32_t from = __shfl_xor_sync(~0u, word(w, own ^ step), 4 * step);
      unroll<4>([&](int e) {
        if (e == (own ^ step)) got[e] = from;
      });
    });
  }
};

template <class S> __device__ inline void store_pair(char* matrix, int64_t at, float x, float y) {
  *reinterpret_cast<uint32_t*>(matrix + 2 * at) = packed<S>(x, y);
}

constexpr int keys_each = 64;  // of a tile

constexpr int forward_block = 128;                             // queries
template <int D> constexpr int forward_lots = D > 64 ? 1 : 2;  // of 16 queries, of a warp
template <int D> constexpr int forward_threads = forward_block / (16 * forward_lots<D>)*32;
template <int D> constexpr int forward_bytes = (forward_block + 4 * keys_each) * D * 2;

template <class S, int D, bool Drops>
__global__ __launch_bounds__(forward_threads<D>) void forward(const __grid_constant__ AttendArgs a) {
  constexpr int block = forward_block, all = forward_threads<D>, R = forward_lots<D>;
  extern __shared__ __align__(128) char shared[];
  const auto base = uint32_t(__cvta_generic_to_shared(shared));
  const Tile<D> q{base};
  const auto tile = [&](int i) { return Tile<D>{base + uint32_t(block + i * keys_each) * D * 2}; };
  const int blocks = (a.queries + block - 1) / block, head = int(blockIdx.x) % a.heads;
  const int first = (blocks - 1 - int(blockIdx.x) / a.heads) * block;  // late queries see more when causal: they begin
  const char* const keys = a.k.data + 2 * place_of(a, a.k, head, a.group);
  const char* const values = a.v.data + 2 * place_of(a, a.v, head, a.group);
  const Scores scores(a, head);
  [[maybe_unused]] const Kept kept(a, head);
  const int seen = a.causal ? min(a.keys, first + block) : a.keys, tiles = (seen + keys_each - 1) / keys_each;
  const int own = int(threadIdx.x) / 32 * 16 * R;  // the first row of this warp
  const auto bring = [&](int t) {
    fetch<D, keys_each, all>(tile(t % 2), keys, a.k.row, t * keys_each, a.keys, a.width);
    fetch<D, keys_each, all>(tile(2 + t % 2), values, a.v.row, t * keys_each, a.keys, a.width);
    commit();
  };

  fetch<D, block, all>(q, a.q.data + 2 * place_of(a, a.q, head, 1), a.q.row, first, a.queries, a.width);
  bring(0);
  LeftRows<D, true> rows[R];
  unroll<R>([&](int r) { rows[r] = LeftRows<D, true>(q, own + 16 * r); });
  float out[R][D / 8][4] = {}, top[R][2], sum[R][2] = {};
  unroll<R>([&](int r) { top[r][0] = top[r][1] = -INFINITY; });
  for (int t = 0; t < tiles; ++t) {
    await_copies();
    __syncthreads();
    if (t == 0) unroll<R>([&](int r) { rows[r].load(); });
    if (t + 1 < tiles) bring(t + 1);
    float s[R][keys_each / 8][4];
    product_of_rows<S, keys_each>(s, rows, tile(t % 2));
    unroll<R>([&](int r) {
      scores.prepare<false, keys_each>(s[r], first + own + 16 * r, t * keys_each);
      unroll<2>([&](int half) {  // the two rows of this thread
        float largest = top[r][half];
        unroll<keys_each / 8>(
            [&](int j) { largest = fmaxf(largest, fmaxf(s[r][j][2 * half], s[r][j][2 * half + 1])); });
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        const float shift = largest == -INFINITY ? 0 : largest, shrink = exp2_of(top[r][half] - shift);
        top[r][half] = largest;
        float more = 0;
        unroll<keys_each / 8>([&](int j) {
          unroll<2>([&](int e) { more += s[r][j][2 * half + e] = exp2_of(s[r][j][2 * half + e] - shift); });
        });
        sum[r][half] = sum[r][half] * shrink + more;
        unroll<D / 8>([&](int j) { out[r][j][2 * half] *= shrink, out[r][j][2 * half + 1] *= shrink; });
      });
      if constexpr (Drops)
        unroll<keys_each / 8>([&](int j) {
          float k[4];
          kept.of_tile<false>(k, j, first + own + 16 * r, t * keys_each);
          unroll<4>([&](int e) { s[r][j][e] *= k[e]; });
        });
    });
    add_product<S, D, keys_each>(out, s, tile(2 + t % 2));
  }
  char* const target = a.out.data + 2 * place_of(a, a.out, head, 1);
  // Under a mask a query may see nothing, and is 0; else scores that are all -inf are those of a softmax that is NaN.
  const bool masked = a.mask.data;
  unroll<2 * R>([&](int i) {
    const int r = i / 2, half = i % 2;
    float total = sum[r][half] + __shfl_xor_sync(~0u, sum[r][half], 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const int query = first + own + 16 * r + row_of(2 * half);
    if (query >= a.queries) return;
    const float none = masked ? 0 : NAN;
    // A NaN stays one.
    const float scale = (total > 0 ? 1 / total : total == 0 ? none : total) * (Drops ? a.kept : 1);
    // A query that sees nothing has +inf, so that its weights come out as 0 again.
    if (lane() % 4 == 0)
      a.logsumexp[int64_t(head) * a.queries + query] = total != 0 ? (top[r][half] + log2f(total)) * ln_2
                                                       : masked   ? INFINITY
                                                                  : NAN;
    unroll<D / 8>([&](int j) {
      const int column = column_of(j, 0);
      if (column < a.width)
        store_pair<S>(target, query * a.out.row + column, out[r][j][2 * half] * scale, out[r][j][2 * half + 1] * scale);
    });
  });
}

// The sum of out * grad_out of each query: a warp each.
template <class S> __global__ __launch_bounds__(threads) void row_sums(const __grid_constant__ AttendArgs a) {
  const int64_t row = (int64_t(blockIdx.x) * threads + threadIdx.x) / 32;
  if (row >= int64_t(a.heads) * a.queries) return;
  const int head = int(row / a.queries), query = int(row % a.queries);
  const S* y = reinterpret_cast<const S*>(a.out.data) + place_of(a, a.out, head, 1) + query * a.out.row;
  const S* g = reinterpret_cast<const S*>(a.grad_out.data) + place_of(a, a.grad_out, head, 1) + query * a.grad_out.row;
  float sum = 0;
  for (int i = lane(); i < a.width; i += 32) sum += convert<float>(y[i]) * convert<float>(g[i]);
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (lane() == 0) a.delta[row] = sum;
}

constexpr int backward_warps = 4, backward_rows = 16 * backward_warps, backward_threads = 32 * backward_warps;
template <int D> constexpr int grad_q_bytes = (2 * backward_rows + 4 * keys_each) * D * 2;

// The gradient of a block of queries.
template <class S, int D, bool Drops>
__global__ __launch_bounds__(backward_threads) void backward_queries(const __grid_constant__ AttendArgs a) {
  constexpr int block = backward_rows, all = backward_threads;
  extern __shared__ __align__(128) char shared[];
  const auto base = uint32_t(__cvta_generic_to_shared(shared));
  const Tile<D> q{base}, g{base + block * D * 2};
  const auto tile = [&](int i) { return Tile<D>{base + uint32_t(2 * block + i * keys_each) * D * 2}; };
  const int blocks = (a.queries + block - 1) / block, head = int(blockIdx.x) % a.heads;
  const int first = (blocks - 1 - int(blockIdx.x) / a.heads) * block;
  const char* const keys = a.k.data + 2 * place_of(a, a.k, head, a.group);
  const char* const values = a.v.data + 2 * place_of(a, a.v, head, a.group);
  const Scores scores(a, head);
  [[maybe_unused]] const Kept kept(a, head);
  const int seen = a.causal ? min(a.keys, first + block) : a.keys, tiles = (seen + keys_each - 1) / keys_each;
  const int own = int(threadIdx.x) / 32 * 16;
  const auto bring = [&](int t) {
    fetch<D, keys_each, all>(tile(t % 2), keys, a.k.row, t * keys_each, a.keys, a.width);
    fetch<D, keys_each, all>(tile(2 + t % 2), values, a.v.row, t * keys_each, a.keys, a.width);
    commit();
  };

  fetch<D, block, all>(q, a.q.data + 2 * place_of(a, a.q, head, 1), a.q.row, first, a.queries, a.width);
  fetch<D, block, all>(g, a.grad_out.data + 2 * place_of(a, a.grad_out, head, 1), a.grad_out.row, first, a.queries,
                       a.width);
  bring(0);
  float level[2], delta[2];
  unroll<2>([&](int half) {
    const int query = first + own + row_of(2 * half);
    const int64_t at = int64_t(head) * a.queries + query;
    level[half] = query < a.queries ? a.logsumexp[at] * log2_e : INFINITY;
    delta[half] = query < a.queries ? a.delta[at] : 0;
  });
  LeftRows<D, D <= 64> of_q[] = {{q, own}}, of_g[] = {{g, own}};
  float sums[1][D / 8][4] = {};
  for (int t = 0; t < tiles; ++t) {
    await_copies();
    __syncthreads();
    if (t == 0) of_q[0].load(), of_g[0].load();
    if (t + 1 < tiles) bring(t + 1);
    float s[1][keys_each / 8][4], d[1][keys_each / 8][4];
    product_of_rows<S, keys_each>(s, of_q, tile(t % 2));
    product_of_rows<S, keys_each>(d, of_g, tile(2 + t % 2));
    scores.prepare<false, keys_each>(s[0], first + own, t * keys_each);
    unroll<keys_each / 8>([&](int j) {
      if constexpr (Drops) {
        float k[4];
        kept.of_tile<false>(k, j, first + own, t * keys_each);
        unroll<4>([&](int e) { d[0][j][e] *= k[e] * a.kept; });
      }
      unroll<4>([&](int e) { s[0][j][e] = exp2_of(s[0][j][e] - level[e / 2]) * (d[0][j][e] - delta[e / 2]); });
    });
    add_product<S, D, keys_each>(sums, s, tile(t % 2));
  }
  unroll<2>([&](int half) {
    const int query = first + own + row_of(2 * half);
    if (query >= a.queries) return;
    float* const to = a.grad_q + (int64_t(head) * a.queries + query) * a.width;
    unroll<D / 8>([&](int j) {
      const int column = column_of(j, 0);
      if (column < a.width)
        *reinterpret_cast<float2*>(to + column) = {sums[0][j][2 * half] * a.scale, sums[0][j][2 * half + 1] * a.scale};
    });
  });
}

template <int D> constexpr int queries_each = D > 64 ? 32 : 64;  // of a tile of the kernel below
template <int D>
constexpr int grad_kv_bytes = (2 * backward_rows + 4 * queries_each<D>)*D * 2 + 4 * queries_each<D> * 4;

// The gradients of a block of keys and values: everything is turned, so that keys are the rows.
template <class S, int D, bool Drops>
__global__ __launch_bounds__(backward_threads) void backward_keys(const __grid_constant__ AttendArgs a) {
  constexpr int block = backward_rows, all = backward_threads, each = queries_each<D>;
  extern __shared__ __align__(128) char shared[];
  const auto base = uint32_t(__cvta_generic_to_shared(shared));
  const Tile<D> k{base}, v{base + block * D * 2};
  const auto tile = [&](int i) { return Tile<D>{base + uint32_t(2 * block + i * each) * D * 2}; };
  auto* const numbers = reinterpret_cast<float*>(shared + (2 * block + 4 * each) * D * 2);  // levels and deltas, twice
  const int shared_heads = a.heads / a.group, few = int(blockIdx.x) % shared_heads;
  const int first = int(blockIdx.x) / shared_heads * block;
  const int own = int(threadIdx.x) / 32 * 16, head0 = few * a.group;
  const int begin = a.causal ? first / each * each : 0;  // earlier queries see none of these keys
  const int tiles = begin < a.queries ? (a.queries - begin + each - 1) / each : 0, total = tiles * a.group;
  const auto bring = [&](int n) {
    const int head = head0 + n / tiles, from = begin + n % tiles * each;
    fetch<D, each, all>(tile(n % 2), a.q.data + 2 * place_of(a, a.q, head, 1), a.q.row, from, a.queries, a.width);
    fetch<D, each, all>(tile(2 + n % 2), a.grad_out.data + 2 * place_of(a, a.grad_out, head, 1), a.grad_out.row, from,
                        a.queries, a.width);
    commit();
    if (int(threadIdx.x) < each) {
      const int query = from + int(threadIdx.x);
      const int64_t at = int64_t(head) * a.queries + query;
      numbers[n % 2 * 2 * each + int(threadIdx.x)] = query < a.queries ? a.logsumexp[at] * log2_e : INFINITY;
      numbers[(n % 2 * 2 + 1) * each + int(threadIdx.x)] = query < a.queries ? a.delta[at] : 0;
    }
  };
  fetch<D, block, all>(k, a.k.data + 2 * place_of(a, a.k, head0, a.group), a.k.row, first, a.keys, a.width);
  fetch<D, block, all>(v, a.v.data + 2 * place_of(a, a.v, head0, a.group), a.v.row, first, a.keys, a.width);
  commit();
  if (total > 0) bring(0);
  LeftRows<D, D <= 64> of_k[] = {{k, own}}, of_v[] = {{v, own}};
  float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
  for (int n = 0; n < total; ++n) {
    await_copies();
    __syncthreads();
    if (n == 0) of_k[0].load(), of_v[0].load();
    if (n + 1 < total) bring(n + 1);
    const Scores scores(a, head0 + n / tiles);
    const float *level = numbers + n % 2 * 2 * each, *delta = level + each;
    float p[1][each / 8][4], d[1][each / 8][4];
    product_of_rows<S, each>(p, of_k, tile(n % 2));
    scores.prepare<true, each>(p[0], first + own, begin + n % tiles * each);
    unroll<each / 8>([&](int j) {
      unroll<2>([&](int e) {
        const float down = level[column_of(j, e)];
        p[0][j][e] = exp2_of(p[0][j][e] - down), p[0][j][e + 2] = exp2_of(p[0][j][e + 2] - down);
      });
    });
    if constexpr (Drops) {
      product_of_rows<S, each>(d, of_v, tile(2 + n % 2));
      const Kept kept(a, head0 + n / tiles);
      float used[1][each / 8][4];
      unroll<each / 8>([&](int j) {
        float k[4];
        kept.of_tile<true>(k, j, first + own, begin + n % tiles * each);
        unroll<4>([&](int e) { used[0][j][e] = p[0][j][e] * k[e], d[0][j][e] *= k[e] * a.kept; });
      });
      add_product<S, D, each>(dv, used, tile(2 + n % 2));
    } else {
      add_product<S, D, each>(dv, p, tile(2 + n % 2));
      product_of_rows<S, each>(d, of_v, tile(2 + n % 2));
    }
    unroll<each / 8>([&](int j) {
      unroll<2>([&](int e) {
        const float less = delta[column_of(j, e)];
        p[0][j][e] *= d[0][j][e] - less, p[0][j][e + 2] *= d[0][j][e + 2] - less;
      });
    });
    add_product<S, D, each>(dk, p, tile(n % 2));
  }
  unroll<2>([&](int half) {
    const int key = first + own + row_of(2 * half);
    if (key >= a.keys) return;
    const int64_t row = (int64_t(few) * a.keys + key) * a.width;
    unroll<D / 8>([&](int j) {
      const int column = column_of(j, 0);
      if (column >= a.width) return;
      store_pair<S>(a.grad_k, row + column, dk[0][j][2 * half] * a.scale, dk[0][j][2 * half + 1] * a.scale);
      const float factor = Drops ? a.kept : 1;
      store_pair<S>(a.grad_v, row + column, dv[0][j][2 * half] * factor, dv[0][j][2 * half + 1] * factor);
    });
  });
}

// An operand whose rows can be fetched in pieces of sixteen bytes: as it is, or copied.
class Fetchable {
 public:
  Fetchable(Context& c, const Arg& x) : arg_(x) {
    const auto& strides = x.layout->strides;
    const int rank = x.layout->rank();
    bool fits = strides[rank - 1] == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
    for (int i = 0; i + 1 < rank; ++i) fits = fits && strides[i] % 8 == 0 && strides[i] >= 0;
    if (fits) return;
    layout_ = Layout::contiguous(x.layout->shape);
    room_ = c.memory().take(layout_.numel() * size_of(x.dtype), op);
    arg_ = {room_->data, &layout_, x.dtype, {}};
    c.copy(arg_, x);
  }
  Fetchable(const Fetchable&) = delete;
  Fetchable& operator=(const Fetchable&) = delete;
  const Arg& arg() const { return arg_; }

 private:
  Arg arg_;
  Layout layout_;
  Room room_;
};

HeadOperand operand(const Arg& x) {
  HeadOperand h;
  if (!x.data) return h;
  const int rank = x.layout->rank();
  h.data = static_cast<char*>(x.data);
  for (int i = 0; i + 2 < rank; ++i) h.step[i] = x.layout->strides[i];
  h.row = x.layout->strides[rank - 2], h.column = x.layout->strides[rank - 1];
  return h;
}

AttendArgs args_of(const AttentionCall& call, const Arg& q, const Arg& k, const Arg& v) {
  AttendArgs a{};
  const Shape &shape = call.q.layout->shape, &keys = call.k.layout->shape;
  const int rank = shape.size();
  a.axes = rank - 2, a.heads = 1, a.group = 1;
  for (int i = 0; i < a.axes; ++i) a.size[i] = int(shape[i]), a.heads *= int(shape[i]);
  if (a.axes > 0) a.group = int(shape[rank - 3] / keys[rank - 3]);
  a.queries = int(shape[rank - 2]), a.keys = int(keys[rank - 2]), a.width = int(shape[rank - 1]);
  a.scale = float(call.scale), a.causal = call.causal, a.boolean_mask = call.mask.dtype == boolean;
  a.q = operand(q), a.k = operand(k), a.v = operand(v), a.mask = operand(call.mask), a.out = operand(call.out);
  a.logsumexp = static_cast<float*>(call.logsumexp.data);
  a.drops = call.dropout > 0, a.least_kept = least_kept(call.dropout),
  a.kept = call.dropout < 1 ? float(1 / (1 - call.dropout)) : 0;
  a.seed = call.seed, a.offset = call.offset;
  return a;
}

void start(Context& c, void (*kernel)(AttendArgs), int64_t blocks, int block, int bytes, const AttendArgs& a) {
  const void* function = reinterpret_cast<const void*>(kernel);
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), op);
  void* pointers[] = {const_cast<AttendArgs*>(&a)};
  check(cudaLaunchKernel(function, dim3(unsigned(blocks)), dim3(unsigned(block)), pointers, size_t(bytes), c.stream()),
        op);
  if (a.drops)
    vary_draw(
        1, 0, a, [](auto& args) -> auto& { return args; });
  after_launch(c, op);
}

// f.template operator()<S, D, Drops>() for the dtype, and a width that the heads' is filled up to.
template <class F> void with_form(DType dtype, const AttendArgs& a, F f) {
  const auto dropping = [&]<class S, int D>() {
    if (a.drops) f.template operator()<S, D, true>();
    else f.template operator()<S, D, false>();
  };
  const auto sized = [&]<class S>() {
    if (a.width <= 64) dropping.template operator()<S, 64>();
    else dropping.template operator()<S, 128>();
  };
  if (dtype == f16) sized.template operator()<float16>();
  else sized.template operator()<bfloat16>();
}

int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

}  // namespace

bool Context::offers(const AttentionCall& call) const {
  const Shape &q = call.q.layout->shape, &k = call.k.layout->shape, &v = call.v.layout->shape;
  const int rank = q.size();
  const int64_t width = q[rank - 1];
  if (!is_half(call.q.dtype) || width % 8 != 0 || width > 128 || v[rank - 1] != width) return false;
  if (q.numel() == 0 || k.numel() == 0) return false;
  const int64_t heads = q.numel() / (q[rank - 2] * width);
  return q[rank - 2] < (1 << 24) && k[rank - 2] < (1 << 24) && heads < (1 << 20) &&
         heads * blocks_of(std::max(q[rank - 2], k[rank - 2]), 64) < chunk_limit;
}

void Context::attention(const AttentionCall& call) {
  const OnDevice current(device);
  if (attend_by_cudnn(*this, call)) return;
  const Fetchable q(*this, call.q), k(*this, call.k), v(*this, call.v);
  const AttendArgs a = args_of(call, q.arg(), k.arg(), v.arg());
  with_form(call.q.dtype, a, [&]<class S, int D, bool Drops>() {
    start(*this, &forward<S, D, Drops>, a.heads * blocks_of(a.queries, forward_block), forward_threads<D>,
          forward_bytes<D>, a);
  });
}

void Context::attention_backward(const AttentionBackwardCall& call) {
  const OnDevice current(device);
  if (attend_backward_by_cudnn(*this, call)) return;
  const Fetchable q(*this, call.q), k(*this, call.k), v(*this, call.v), g(*this, call.grad_out);
  AttendArgs a = args_of(call, q.arg(), k.arg(), v.arg());
  a.grad_out = operand(g.arg()), a.grad_q = static_cast<float*>(call.grad_q.data);
  a.grad_k = static_cast<char*>(call.grad_k.data), a.grad_v = static_cast<char*>(call.grad_v.data);
  const int64_t rows = int64_t(a.heads) * a.queries;
  const Room delta = memory().take(rows * int64_t(sizeof(float)), op);
  a.delta = reinterpret_cast<float*>(delta->data);
  with_form(call.q.dtype, a, [&]<class S, int D, bool Drops>() {
    launch(*this, op, &row_sums<S>, blocks_for(rows * 32, threads), threads, a);
    start(*this, &backward_keys<S, D, Drops>, a.heads / a.group * blocks_of(a.keys, backward_rows), backward_threads,
          grad_kv_bytes<D>, a);
    start(*this, &backward_queries<S, D, Drops>, a.heads * blocks_of(a.queries, backward_rows), backward_threads,
          grad_q_bytes<D>, a);
  });
}

}  // namespace volta::cuda

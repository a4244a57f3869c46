// Attention on one thread: tiles of transposed scores, one row per key and one column per query, so that softmax runs
// down the columns of a vector and the tile is at once the left operand of the product with the values.
#include "backend/cpu/attention/attention.h"
#include "backend/cpu/gemm/kernels/tiles.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/exponential.h"
#include "core/distributions.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

inline Range block_of(Range all, int64_t begin) { return {begin, smaller(attend_block, all.begin + all.size - begin)}; }

template <class S> Strided<S> rows_of(const HeadMatrix& m, int64_t first) {
  return {static_cast<const S*>(m.data) + first * m.row, m.row, m.column};
}
template <class S> Strided<S> columns_of(const HeadMatrix& m, int64_t first) {
  return {static_cast<const S*>(m.data) + first * m.row, m.column, m.row};
}

// A tile of numbers for each pair of a key (row) and a query (column).
template <class T> struct Tile {
  Range keys, queries;
  T* data;
  int64_t step;
  T* row(int64_t i) const { return data + i * step; }
  // Columns that can be read as rows of a left operand, and as vectors.
  static int64_t room(int64_t queries) { return larger(whole_rows<T>(queries), whole_columns<T>(queries)); }
};

template <class T> constexpr T nothing = -std::numeric_limits<T>::infinity();

template <class T> void add_mask(const AttendHead& h, const Tile<T>& s) {
  const int64_t row = h.mask.row, first = s.queries.begin * row + s.keys.begin * h.mask.column;
  const int64_t n = s.queries.size;
  for (int64_t k = 0; k < s.keys.size; ++k) {
    T* scores = s.row(k);
    const int64_t at = first + k * h.mask.column;
    if (h.boolean_mask) {
      const uint8_t* seen = static_cast<const uint8_t*>(h.mask.data) + at;
      for (int64_t q = 0; q < n; ++q) scores[q] = seen[q * row] ? scores[q] : nothing<T>;
    } else {
      const T* bias = static_cast<const T*>(h.mask.data) + at;
      for (int64_t q = 0; q < n; ++q) scores[q] += bias[q * row];
    }
  }
}

template <class T> void hide(const AttendHead& h, const Tile<T>& s) {
  if (h.mask.data) add_mask(h, s);
  if (!h.causal || s.keys.begin + s.keys.size - 1 <= s.queries.begin) return;
  for (int64_t k = 0; k < s.keys.size; ++k) {
    const int64_t hidden = smaller(s.queries.size, s.keys.begin + k - s.queries.begin);  // queries before the key
    for (int64_t q = 0; q < hidden; ++q) s.row(k)[q] = nothing<T>;
  }
}

// What each weight is multiplied with by dropout: 0, or 1 / (1 - p).
template <class T> void draw_factors(const AttendHead& h, const Tile<T>& factors) {
  const T kept = h.dropout < 1 ? T(1 / (1 - h.dropout)) : T(0);
  const float least = float(h.dropout);
  for (int64_t q = 0; q < factors.queries.size; ++q) {
    uint64_t at = h.first + uint64_t(factors.queries.begin + q) * uint64_t(h.keys) + uint64_t(factors.keys.begin);
    uint32_t words[4];
    for (int64_t k = 0; k < factors.keys.size; ++k, ++at) {
      if (k == 0 || at % 4 == 0) {
        const random::Words w = random::block_words(h.seed, h.offset + at / 4, 0);
        words[0] = w.x, words[1] = w.y, words[2] = w.z, words[3] = w.w;
      }
      factors.row(k)[q] = random::unit(words[at % 4]) >= least ? kept : T(0);
    }
  }
}

// One pass of softmax over a tile: largest and sum of exponentials so far of each query, the scores become exp(score -
// largest), and what was summed before is to be multiplied by `fade`.
template <class T> struct Softening {
  T *top, *total, *fade;

  // `ways` vectors of queries side by side: their operations overlap. Sizes by value: stores cannot alias them.
  template <int ways>
  [[gnu::always_inline]] static void columns(T* scores, int64_t step, int64_t keys, T* top, T* total, T* fade) {
    using V = Vector<T>;
    V best[ways], base[ways], sum[ways];
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) best[w] = load(top + w * lanes<T>);
    const T* row = scores;
    for (int64_t k = 0; k < keys; ++k, row += step) {
#pragma GCC unroll 4
      for (int w = 0; w < ways; ++w) best[w] = larger_of(best[w], load(row + w * lanes<T>));
    }
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) {
      base[w] = choose(best[w] == nothing<T>, V{}, best[w]);
      const V f = exp_down(load(top + w * lanes<T>) - base[w]);
      sum[w] = load(total + w * lanes<T>) * f;
      store<T>(fade + w * lanes<T>, f);
      store<T>(top + w * lanes<T>, best[w]);
    }
    T* x = scores;
    for (int64_t k = 0; k < keys; ++k, x += step) {
      V p[ways];
#pragma GCC unroll 4
      for (int w = 0; w < ways; ++w) p[w] = exp_down(load(x + w * lanes<T>) - base[w]);
#pragma GCC unroll 4
      for (int w = 0; w < ways; ++w) {
        sum[w] += p[w];
        store<T>(x + w * lanes<T>, p[w]);
      }
    }
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) store<T>(total + w * lanes<T>, sum[w]);
  }
  void run(const Tile<T>& s) const {
    const int64_t n = whole_columns<T>(s.queries.size);
    int64_t c = 0;
    for (; c + 4 * lanes<T> <= n; c += 4 * lanes<T>)
      columns<4>(s.data + c, s.step, s.keys.size, top + c, total + c, fade + c);
    for (; c < n; c += lanes<T>) columns<1>(s.data + c, s.step, s.keys.size, top + c, total + c, fade + c);
  }
};

template <class T> void scale_all(T* x, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// Keys after the last query of a causal block are not seen.
int64_t keys_seen(const AttendHead& h, Range queries) {
  return h.causal ? smaller(h.keys, queries.begin + queries.size) : h.keys;
}

// Row i of a matrix of S.
template <class S, class T> void write_row(const HeadMatrix& to, int64_t i, const T* from, int64_t n, T factor) {
  S* row = static_cast<S*>(to.data) + i * to.row;
  if (to.column == 1)
    for (int64_t j = 0; j < n; ++j) narrow(row[j], from[j] * factor);
  else
    for (int64_t j = 0; j < n; ++j) narrow(row[j * to.column], from[j] * factor);
}

template <class S> void forward(const AttendHead& h, Range queries) {
  using T = Compute<S>;
  const int64_t nq = queries.size, step = Tile<T>::room(nq), columns = whole_columns<T>(nq), d = h.width;
  const int64_t out_step = whole_columns<T>(h.value_width), block = whole_rows<T>(attend_block);
  const int64_t rooms[] = {
      d * columns, block * d, attend_block * out_step,         block * step, whole_rows<T>(nq) * out_step, columns,
      columns,     columns,   h.dropout > 0 ? block * step : 0};
  int64_t bytes = 0;
  for (const int64_t n : rooms) bytes += Room::bytes<T>(n);
  Room room(scratch(Scratch::panels, size_t(bytes)));
  T* part[9];
  for (int i = 0; i < 9; ++i) part[i] = room.take<T>(rooms[i]);
  T *const scores = part[3], *const out = part[4], *const factors = part[8];
  const Softening<T> soft = {part[5], part[6], part[7]};
  const Right<T> q = pack_right<S>(part[0], columns_of<S>(h.q, queries.begin), d, nq);
  scale_all(part[0], d * columns, T(h.scale));
  for (int64_t i = 0; i < columns; ++i) soft.top[i] = nothing<T>, soft.total[i] = 0;
  for (int64_t i = 0; i < nq * out_step; ++i) out[i] = 0;

  const Range all = {0, keys_seen(h, queries)};
  for (int64_t first = 0; first < all.size; first += attend_block) {
    const Tile<T> s = {block_of(all, first), queries, scores, step};
    const Left<T> k = pack_left<S>(part[1], rows_of<S>(h.k, first), s.keys.size, d);
    multiply(s.keys.size, columns, d, k, q, scores, step, false);
    hide(h, s);
    soft.run(s);
    for (int64_t i = 0; i < nq && first > 0; ++i)
      if (soft.fade[i] != 1) scale_all(out + i * out_step, h.value_width, soft.fade[i]);
    if (h.dropout > 0) {
      draw_factors(h, Tile<T>{s.keys, queries, factors, step});
      for (int64_t i = 0; i < s.keys.size; ++i)
        for (int64_t j = 0; j < nq; ++j) s.row(i)[j] *= factors[i * step + j];
    }
    const Right<T> v = right_of<S>(part[2], rows_of<S>(h.v, first), s.keys.size, h.value_width);
    multiply(nq, out_step, s.keys.size, left_in_place(scores, step), v, out, out_step, true);
  }
  T* logsumexp = static_cast<T*>(h.logsumexp) + queries.begin;
  // Under a mask a query may see nothing, and is 0; else scores that are all -inf are those of a softmax that is NaN.
  const bool seen = !h.mask.data && all.size > 0;
  const T none = seen ? std::numeric_limits<T>::quiet_NaN() : T(0);
  for (int64_t i = 0; i < nq; ++i) {
    const T total = soft.total[i], factor = total == 0 ? none : 1 / total;
    // +inf where nothing is seen: the backward pass then finds weights of exp(-inf).
    logsumexp[i] = total != 0 ? soft.top[i] + scalar::log(total) : seen ? none : -nothing<T>;
    write_row<S>(h.out, queries.begin + i, out + i * out_step, h.value_width, factor);
  }
}

template <class S> void delta(const AttendHead& h) {
  using T = Compute<S>;
  const int64_t n = h.value_width, whole = h.grad_out.column == 1 && h.out.column == 1 ? n / lanes<T> * lanes<T> : 0;
  for (int64_t i = 0; i < h.queries; ++i) {
    const S* g = static_cast<const S*>(h.grad_out.data) + i * h.grad_out.row;
    const S* y = static_cast<const S*>(h.out.data) + i * h.out.row;
    Vector<T> sums = {};
    for (int64_t j = 0; j < whole; j += lanes<T>) sums += load_some<lanes<T>>(g + j) * load_some<lanes<T>>(y + j);
    T sum = 0;
    for (int l = 0; l < lanes<T>; ++l) sum += sums[l];
    for (int64_t j = whole; j < n; ++j) sum += widen(g[j * h.grad_out.column]) * widen(y[j * h.out.column]);
    static_cast<T*>(h.delta)[i] = sum;
  }
}

// Keys that one thread goes through, with all queries that see them: gradients of a block of keys and values are summed
// here, those of the queries in grad_q.
template <class S> class Backward {
  using T = Compute<S>;

 public:
  explicit Backward(const AttendHead& h) : width_(whole_columns<T>(h.width)), values_(whole_columns<T>(h.value_width)) {
    const int64_t b = whole_rows<T>(attend_block), wide = Tile<T>::room(attend_block);
    const int64_t rooms[] = {b * h.width,
                             b * h.value_width,
                             b * width_,
                             b * width_,
                             b * values_,
                             wide * h.width,
                             wide * h.value_width,
                             b * width_,
                             b * values_,
                             b * width_,
                             b * wide,
                             b * wide,
                             b * wide,
                             h.dropout > 0 ? b * wide : 0};
    int64_t bytes = 0;
    for (const int64_t n : rooms) bytes += Room::bytes<T>(n);
    Room room(scratch(Scratch::panels, size_t(bytes)));
    T** const parts[] = {&k_rows_, &v_rows_, &k_room_, &grad_k_, &grad_v_,  &q_columns_, &g_columns_,
                         &q_room_, &g_room_, &grad_q_, &scores_, &weights_, &packed_,    &factors_};
    for (int i = 0; i < 14; ++i) *parts[i] = room.take<T>(rooms[i]);
  }

  void run(const AttendHead* heads, int64_t count, Range keys) {
    const AttendHead& h = heads[0];
    const Left<T> k = pack_left<S>(k_rows_, rows_of<S>(h.k, keys.begin), keys.size, h.width);
    const Left<T> v = pack_left<S>(v_rows_, rows_of<S>(h.v, keys.begin), keys.size, h.value_width);
    const Right<T> k_right = right_of<S>(k_room_, rows_of<S>(h.k, keys.begin), keys.size, h.width);
    const int64_t rows = whole_rows<T>(keys.size);
    for (int64_t i = 0; i < rows * width_; ++i) grad_k_[i] = 0;
    for (int64_t i = 0; i < rows * values_; ++i) grad_v_[i] = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Range all = {0, heads[i].queries};
      const int64_t begin = h.causal ? keys.begin / attend_block * attend_block : 0;
      for (int64_t q = begin; q < all.size; q += attend_block) pair(heads[i], keys, block_of(all, q), k, v, k_right);
    }
    for (int64_t i = 0; i < keys.size; ++i) {
      write_row<S>(h.grad_k, keys.begin + i, grad_k_ + i * width_, h.width, T(h.scale));
      write_row<S>(h.grad_v, keys.begin + i, grad_v_ + i * values_, h.value_width, T(1));
    }
  }

 private:
  void pair(const AttendHead& h, Range keys, Range queries, const Left<T>& k, const Left<T>& v,
            const Right<T>& k_right) {
    const int64_t nq = queries.size, nk = keys.size, step = Tile<T>::room(nq), columns = whole_columns<T>(nq);
    const Right<T> q = pack_right<S>(q_columns_, columns_of<S>(h.q, queries.begin), h.width, nq);
    const Right<T> g = pack_right<S>(g_columns_, columns_of<S>(h.grad_out, queries.begin), h.value_width, nq);
    scale_all(q_columns_, h.width * columns, T(h.scale));
    multiply(nk, columns, h.width, k, q, weights_, step, false);
    hide(h, Tile<T>{keys, queries, weights_, step});
    multiply(nk, columns, h.value_width, v, g, scores_, step, false);
    if (h.dropout > 0) draw_factors(h, Tile<T>{keys, queries, factors_, step});
    differentiate(h, keys, queries, step);
    const Right<T> g_right = right_of<S>(g_room_, rows_of<S>(h.grad_out, queries.begin), nq, h.value_width);
    multiply(nk, values_, nq, along_rows(weights_, step, nk, nq), g_right, grad_v_, values_, true);
    const Right<T> q_right = right_of<S>(q_room_, rows_of<S>(h.q, queries.begin), nq, h.width);
    multiply(nk, width_, nq, along_rows(scores_, step, nk, nq), q_right, grad_k_, width_, true);
    multiply(nq, width_, nk, left_in_place(scores_, step), k_right, grad_q_, width_, false);
    for (int64_t i = 0; i < nq; ++i) {
      T* to = static_cast<T*>(h.grad_q.data) + (queries.begin + i) * h.grad_q.row;
      for (int64_t j = 0; j < h.width; ++j) to[j] += T(h.scale) * grad_q_[i * width_ + j];
    }
  }

  // A tile as the left operand: packed where lanes are read across its rows.
  Left<T> along_rows(const T* tile, int64_t step, int64_t rows, int64_t k) const {
    if constexpr (by_lane) return pack_left<T>(packed_, {tile, step, 1}, rows, k);
    else return {tile, strip<T> * step, step, 1};
  }

  // Scores in weights_ become weights P (dropped ones for the values), dP in scores_ becomes dS = P (dP - delta).
  void differentiate(const AttendHead& h, Range keys, Range queries, int64_t step) {
    const T *logsumexp = static_cast<const T*>(h.logsumexp) + queries.begin,
            *delta = static_cast<const T*>(h.delta) + queries.begin;
    for (int64_t i = 0; i < keys.size; ++i) {
      T *p = weights_ + i * step, *d = scores_ + i * step;
      if (h.dropout > 0) {
        const T* factor = factors_ + i * step;
        each<T>(queries.size, [=](auto read, auto write, int64_t j) {
          const auto weight = exp_down(read(p + j) - read(logsumexp + j)), f = read(factor + j);
          write(d + j, weight * (read(d + j) * f - read(delta + j)));
          write(p + j, weight * f);
        });
      } else {
        each<T>(queries.size, [=](auto read, auto write, int64_t j) {
          const auto weight = exp_down(read(p + j) - read(logsumexp + j));
          write(d + j, weight * (read(d + j) - read(delta + j)));
          write(p + j, weight);
        });
      }
    }
  }

  int64_t width_, values_;
  T *k_rows_, *v_rows_, *k_room_, *grad_k_, *grad_v_, *q_columns_, *g_columns_, *q_room_, *g_room_, *grad_q_, *scores_,
      *weights_, *packed_, *factors_;
};

template <class S> void backward(const AttendHead* heads, int64_t count, Range keys) {
  Backward<S> b(heads[0]);
  for (int64_t first = keys.begin; first < keys.begin + keys.size; first += attend_block)
    b.run(heads, count, block_of(keys, first));
}

template <class S> constexpr AttentionKernel kernel = {forward<S>, delta<S>, backward<S>};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::AttentionKernel volta::cpu::attention_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  using namespace VOLTA_ISA;
  if (dtype == f64) return kernel<double>;
  if (dtype == f16) return kernel<float16>;
  return dtype == bf16 ? kernel<bfloat16> : kernel<float>;
}

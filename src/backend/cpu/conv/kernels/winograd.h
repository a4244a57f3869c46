// Winograd's transforms for F(4x4, 3x3), y = A^T [(G w G^T) . (B^T x B)] A with the interpolation points 0, 1, -1, 2, -2,
// infinity, and their adjoints: between images or weights and the 36 matrices of products.
#pragma once
#include "backend/cpu/conv/plan.h"
#include "backend/cpu/gemm/kernels/tiles.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t tile = 4, window = 6, products = window * window, taps = 9;
constexpr int64_t block_rows = 32;  // of weights that are worked on at a time
static_assert(least_rows % block_rows == 0);
// A vector holds four tiles each of as many channels as it has room for.
constexpr int64_t together = 4;
constexpr int groups = lanes<float> / int(together);
using Wide = Vector<float>;
using Four = Quad<float>;

// From one product's matrix to the next: were it a multiple of a page, all would compete for the same lines of the caches.
inline int64_t product_step(int64_t matrix) { return ceil_div(matrix, 16) * 16 + 16; }

// B^T on six values, in place; and G on three, A^T on six; the transposed of these two.
[[gnu::always_inline]] inline void transform_input(Wide (&x)[window]) {
  const Wide a = x[4] - 4 * x[2], b = x[3] - 4 * x[1], c = x[4] - x[2], d = 2 * (x[3] - x[1]);
  x[0] = 4 * x[0] - 5 * x[2] + x[4];
  x[5] = 4 * x[1] - 5 * x[3] + x[5];
  x[1] = a + b, x[2] = a - b, x[3] = c + d, x[4] = c - d;
}
[[gnu::always_inline]] inline void transform_weight(const Wide (&g)[3], Wide (&u)[window]) {
  const Wide even = g[0] + g[2], wide = g[0] * (1.f / 24) + g[2] * (1.f / 6), odd = g[1] * (1.f / 12);
  u[0] = g[0] * 0.25f;
  u[1] = (even + g[1]) * (-1.f / 6), u[2] = (even - g[1]) * (-1.f / 6);
  u[3] = wide + odd, u[4] = wide - odd;
  u[5] = g[2];
}
[[gnu::always_inline]] inline void transform_output(const Wide (&m)[window], Wide (&y)[tile]) {
  const Wide s = m[1] + m[2], d = m[1] - m[2], t = m[3] + m[4], e = m[3] - m[4];
  y[0] = m[0] + s + t, y[1] = d + 2 * e, y[2] = s + 4 * t, y[3] = d + 8 * e + m[5];
}
[[gnu::always_inline]] inline void transform_gradient(const Wide (&y)[tile], Wide (&m)[window]) {
  const Wide even = y[0] + y[2], odd = y[1] + y[3], wide = y[0] + 4 * y[2], far = 2 * y[1] + 8 * y[3];
  m[0] = y[0], m[5] = y[3];
  m[1] = even + odd, m[2] = even - odd, m[3] = wide + far, m[4] = wide - far;
}
[[gnu::always_inline]] inline void transform_sums(const Wide (&u)[window], Wide (&g)[3]) {
  const Wide s = (u[1] + u[2]) * (1.f / 6), d = (u[1] - u[2]) * (1.f / 6), t = u[3] + u[4], e = u[3] - u[4];
  g[0] = u[0] * 0.25f - s + t * (1.f / 24);
  g[1] = e * (1.f / 12) - d;
  g[2] = u[5] - s + t * (1.f / 6);
}

// What to take of each four elements of two vectors: their lower or upper halves, interleaved or one after the other.
enum class Take { low_pairs, high_pairs, low_halves, high_halves };
constexpr int taken(Take take, int i) {
  const int four = i / 4 * 4, j = i % 4;
  const bool pairs = take == Take::low_pairs || take == Take::high_pairs;
  const int upper = take == Take::high_pairs || take == Take::high_halves ? 2 : 0;
  return pairs ? j % 2 * lanes<float> + four + j / 2 + upper : j / 2 * lanes<float> + four + j % 2 + upper;
}
template <Take take, size_t... I>
[[gnu::always_inline]] inline Wide permuted(const Wide& a, const Wide& b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, taken(take, int(I))...);
}
template <Take take> [[gnu::always_inline]] inline Wide permuted(const Wide& a, const Wide& b) {
  return permuted<take>(a, b, std::make_index_sequence<size_t(lanes<float>)>());
}

// Within each four of the vectors, rows become columns.
[[gnu::always_inline]] inline void transpose(const Wide* r, Wide* x) {
  const Wide a = permuted<Take::low_pairs>(r[0], r[1]), b = permuted<Take::high_pairs>(r[0], r[1]);
  const Wide c = permuted<Take::low_pairs>(r[2], r[3]), d = permuted<Take::high_pairs>(r[2], r[3]);
  x[0] = permuted<Take::low_halves>(a, c), x[1] = permuted<Take::high_halves>(a, c);
  x[2] = permuted<Take::low_halves>(b, d), x[3] = permuted<Take::high_halves>(b, d);
}

// A vector of fours from places of their own, and back: in registers, for through memory what was just written in small
// pieces would have to be waited for.
template <class Place> [[gnu::always_inline]] inline Wide collect(Place place) {
#if defined(__AVX512F__)
  const auto four = [&](int g) __attribute__((always_inline)) { return _mm_loadu_ps(place(g)); };
  __m512 x = _mm512_maskz_broadcast_f32x4(0xffff, four(0));
  x = _mm512_mask_broadcast_f32x4(x, 0x00f0, four(1));
  x = _mm512_mask_broadcast_f32x4(x, 0x0f00, four(2));
  return Wide(_mm512_mask_broadcast_f32x4(x, 0xf000, four(3)));
#elif defined(__AVX2__)
  return Wide(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(place(0))), _mm_loadu_ps(place(1)), 1));
#else
  return load_some<4>(place(0));
#endif
}
template <int g> [[gnu::always_inline]] inline Four four_of(const Wide& x) {
#if defined(__AVX512F__)
  return Four(_mm512_maskz_extractf32x4_ps(0xf, __m512(x), g));
#elif defined(__AVX2__)
  return Four(_mm256_extractf128_ps(__m256(x), g));
#else
  return x;
#endif
}
template <int g = 0, class Place> [[gnu::always_inline]] inline void distribute(const Wide& x, Place place) {
  const Four four = four_of<g>(x);
  __builtin_memcpy(place(g), &four, sizeof four);
  if constexpr (g + 1 < groups) distribute<g + 1>(x, place);
}

// The tiles of a part, and how they are taken four at a time: the last four of a row overlap those before.
struct Tiles {
  int64_t planes, high, wide;
  explicit Tiles(const ConvPart<float>& part)
      : planes(part.pixels / (part.row * part.rows)), high(ceil_div(part.rows, tile)), wide(ceil_div(part.row, tile)) {}
  int64_t count() const { return planes * high * wide; }
  // f(plane, row of tiles, first of four in it, its place among all)
  template <class F> void each_four(F f) const {
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t r = 0; r < high; ++r) {
        for (int64_t i = 0; i < wide; i += together) {
          const int64_t t = wide < together ? 0 : smaller(i, wide - together);
          f(p, r, t, (p * high + r) * wide + t);
        }
      }
    }
  }
};

// v[product][channel][tile] of some channels, as many as there are groups or fewer: those missing are done again. Of a row
// with fewer than four tiles, what is too much is overwritten by the next, or goes to the room after the last.
void gather_inputs(const ConvPart<float>& part, const Tiles& tiles, int64_t channel, int64_t count, float* v,
                   int64_t each, int64_t step) {
  const float* images[groups];
  int64_t places[groups];
  for (int64_t g = 0; g < groups; ++g) {
    images[g] = part.image + part.offsets[(channel + smaller(g, count - 1)) * taps];
    places[g] = smaller(g, count - 1) * each;
  }
  tiles.each_four([&](int64_t p, int64_t r, int64_t t, int64_t place) {
    const int64_t corner = p * part.plane_step + r * tile * part.row_step + t * tile;
    Wide x[window][window];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      Wide fours[together + 1];  // of tiles that begin four values apart
#pragma GCC unroll 8
      for (int l = 0; l <= together; ++l)
        fours[l] = collect([&](int g) { return images[g] + corner + i * part.row_step + l * tile; });
      transpose(fours, x[i]);
      const Wide low = permuted<Take::low_pairs>(fours[1], fours[2]),
                 high = permuted<Take::low_pairs>(fours[3], fours[4]);
      x[i][4] = permuted<Take::low_halves>(low, high), x[i][5] = permuted<Take::high_halves>(low, high);
      transform_input(x[i]);
    }
    float* to = v + place;
#pragma GCC unroll 8
    for (int j = 0; j < window; ++j) {
      Wide column[window] = {x[0][j], x[1][j], x[2][j], x[3][j], x[4][j], x[5][j]};
      transform_input(column);
#pragma GCC unroll 8
      for (int i = 0; i < window; ++i)
        distribute(column[i], [&](int g) { return to + places[g] + (i * window + j) * step; });
    }
  });
}

// Outputs of some rows of the result, as many as there are groups or fewer, from their products.
void scatter_outputs(const ConvPart<float>& part, const Tiles& tiles, int64_t row, int64_t count, const float* m,
                     int64_t each, int64_t step) {
  float* c[groups];
  int64_t places[groups];
  Wide bias = {};
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t i = smaller(g, count - 1);
    c[g] = part.c + (row + i) * part.c_step;
    places[g] = i * each;
    for (int64_t l = 0; l < together && part.bias; ++l) bias[g * together + l] = part.bias[row + i];
  }
  tiles.each_four([&](int64_t p, int64_t r, int64_t t, int64_t place) {
    const float* from = m + place;
    Wide half[window][tile];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      Wide x[window];
#pragma GCC unroll 8
      for (int j = 0; j < window; ++j)
        x[j] = collect([&](int g) { return from + places[g] + (i * window + j) * step; });
      transform_output(x, half[i]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < tile; ++j) {
      const Wide column[window] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
      Wide y[tile];
      transform_output(column, y);
#pragma GCC unroll 8
      for (int i = 0; i < tile; ++i) half[i][j] = y[i] + bias;
    }
    const int64_t wide = smaller(together * tile, part.row - t * tile);
    for (int i = 0; i < smaller(tile, part.rows - r * tile); ++i) {
      Wide out[tile];
      transpose(half[i], out);
      const int64_t at = (p * part.rows + r * tile + i) * part.row + t * tile;
      float ragged[groups][together * tile];
      const bool whole = wide == together * tile;
#pragma GCC unroll 4
      for (int l = 0; l < together; ++l)
        distribute(out[l], [&](int g) { return (whole ? c[g] + at : ragged[g]) + l * tile; });
      for (int g = 0; g < groups && !whole; ++g)
        for (int64_t l = 0; l < wide; ++l) c[g][at + l] = ragged[g][l];
    }
  });
}

// Outputs of up to four rows from products m[product][tile][row] of a block: a vector holds four rows each of some tiles.
void scatter_across(const ConvPart<float>& part, const Tiles& tiles, int64_t row, int64_t count, const float* m,
                    int64_t step) {
  const int64_t n = tiles.count();
  float bias[together] = {};
  for (int64_t l = 0; l < count && part.bias; ++l) bias[l] = part.bias[row + l];
  const Wide biases = collect([&](int) { return bias; });
  for (int64_t first = 0; first < n; first += groups) {
    const auto from = [&](int g) { return m + smaller(first + g, n - 1) * block_rows; };
    Wide half[window][tile];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      Wide x[window];
#pragma GCC unroll 8
      for (int j = 0; j < window; ++j) x[j] = collect([&](int g) { return from(g) + (i * window + j) * step; });
      transform_output(x, half[i]);
    }
    float values[tile][together][groups][tile];
#pragma GCC unroll 8
    for (int j = 0; j < tile; ++j) {
      Wide y[tile];
      transform_output({half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]}, y);
#pragma GCC unroll 8
      for (int i = 0; i < tile; ++i) half[i][j] = y[i] + biases;
    }
#pragma GCC unroll 8
    for (int i = 0; i < tile; ++i) {
      Wide out[together];
      transpose(half[i], out);
      __builtin_memcpy(values[i], out, sizeof out);
    }
    for (int64_t g = 0; g < smaller(groups, n - first); ++g) {
      const int64_t t = first + g, column = t % tiles.wide * tile, line = t / tiles.wide % tiles.high * tile;
      const int64_t wide = smaller(tile, part.row - column), plane = t / tiles.wide / tiles.high * part.rows;
      for (int64_t l = 0; l < count; ++l)
        for (int64_t i = 0; i < smaller(tile, part.rows - line); ++i)
          for (int64_t j = 0; j < wide; ++j)
            part.c[(row + l) * part.c_step + (plane + line + i) * part.row + column + j] = values[i][l][g][j];
    }
  }
}

// The transformed gradients of some rows, as gather_inputs() gives those of channels. They come in whole tiles.
void gather_gradients(const ConvPart<float>& part, const Tiles& tiles, int64_t row, int64_t count, float* to,
                      int64_t each, int64_t step) {
  const float* rows[groups];
  int64_t places[groups];
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t i = smaller(g, count - 1);
    rows[g] = part.a.data + (row + i) * part.a.step;
    places[g] = i * each;
  }
  const int64_t line = tiles.wide * tile;
  tiles.each_four([&](int64_t p, int64_t r, int64_t t, int64_t place) {
    const int64_t corner = (p * tiles.high + r) * tile * line + t * tile;
    Wide half[tile][window];
#pragma GCC unroll 8
    for (int i = 0; i < tile; ++i) {
      Wide fours[together], y[tile];
#pragma GCC unroll 8
      for (int l = 0; l < together; ++l)
        fours[l] = collect([&](int g) { return rows[g] + corner + i * line + l * tile; });
      transpose(fours, y);
      transform_gradient(y, half[i]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < window; ++j) {
      Wide m[window];
      transform_gradient({half[0][j], half[1][j], half[2][j], half[3][j]}, m);
#pragma GCC unroll 8
      for (int i = 0; i < window; ++i)
        distribute(m[i], [&](int g) { return to + place + places[g] + (i * window + j) * step; });
    }
  });
}

// Weights, each channel's taps side by side.
struct Kernels {
  const float* data;
  int64_t row, channel;
  bool backwards;
  Kernels(const ConvRows<float>& a, int64_t channels)
      : data(a.data + smaller(a.places[0], a.places[taps - 1])),
        row(a.step),
        channel(channels > 1 ? a.places[taps] - a.places[0] : 0),
        backwards(a.places[0] != 0) {}
};

// u[product] of a vector of rows and one channel. Of fewer, n, the last is taken again.
template <bool backwards> [[gnu::always_inline]] inline void transform_rows(const float* from, const Kernels& kernels,
                                                                            int64_t n, float* u, int64_t step) {
  const auto row = [&](int64_t l) { return from + smaller(l, n - 1) * kernels.row; };
  for (int l = 0; l < lanes<float>; ++l) __builtin_prefetch(row(l) + 4 * kernels.channel);
  Wide w[taps], half[3][window], column[window];
#pragma GCC unroll 2
  for (int k = 0; k < 8; k += 4) {
    Wide rows[4];
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) rows[l] = collect([&](int g) { return row(g * 4 + l) + k; });
    transpose(rows, w + k);
  }
  float last[lanes<float>];
  for (int l = 0; l < lanes<float>; ++l) last[l] = row(l)[8];
  w[8] = load(last);
#pragma GCC unroll 4
  for (int i = 0; i < 3; ++i) {
    const int k = backwards ? 8 - 3 * i : 3 * i, next = backwards ? -1 : 1;
    transform_weight({w[k], w[k + next], w[k + 2 * next]}, half[i]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < window; ++j) {
    transform_weight({half[0][j], half[1][j], half[2][j]}, column);
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) store<float>(u + (i * window + j) * step, column[i]);
  }
}

// The sums of a vector of rows, or n of them, and one channel: to the gradients of their taps.
void put_sums(const float* u, int64_t step, float* to, int64_t apart, int64_t n, bool add) {
  Wide half[3][window], w[taps];
#pragma GCC unroll 8
  for (int j = 0; j < window; ++j) {
    Wide column[window], g[3];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) column[i] = load(u + (i * window + j) * step);
    transform_sums(column, g);
#pragma GCC unroll 4
    for (int i = 0; i < 3; ++i) half[i][j] = g[i];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 3; ++i) {
    Wide g[3];
    transform_sums(half[i], g);
#pragma GCC unroll 4
    for (int j = 0; j < 3; ++j) w[3 * i + j] = g[j];
  }
  float none[taps] = {}, last[lanes<float>];
  const auto row = [&](int64_t l) { return l < n ? to + l * apart : none; };
#pragma GCC unroll 2
  for (int k = 0; k < 8; k += 4) {
    Wide rows[4];
    transpose(w + k, rows);
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) {
      const auto place = [&](int g) { return row(g * 4 + l) + k; };
      distribute(add ? rows[l] + collect(place) : rows[l], place);
    }
  }
  store<float>(last, w[8]);
  for (int l = 0; l < lanes<float>; ++l) row(l)[8] = add ? row(l)[8] + last[l] : last[l];
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

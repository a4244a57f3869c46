// Convolution by Winograd's F(4x4, 3x3): tiles of 4 x 4 outputs from 6 x 6 inputs with 36 products in place of 144, as 36
// matrix products over the channels. y = A^T [(G w G^T) . (B^T x B)] A, with the interpolation points 0, 1, -1, 2, -2, infinity.
#include "backend/cpu/conv_plan.h"
#include "backend/cpu/gemm_squares.h"
#include "backend/cpu/isa/gemm_pack.h"
#include "backend/cpu/scratch.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace volta::cpu::VOLTA_ISA {

void multiply_panels(const PanelProduct<float>& p);

namespace {

constexpr int64_t tile = 4, window = 6, products = window * window, taps = 9;
// A vector holds four tiles each of as many channels as it has room for.
constexpr int64_t together = 4;
constexpr int groups = lanes<float> / int(together);
using Wide = Vector<float>;
using Four = Quad<float>;

// From one product's matrix to the next: were it a multiple of a page, all would compete for the same lines of the caches.
inline int64_t product_step(int64_t matrix) { return ceil_div(matrix, 16) * 16 + 16; }

// B^T on six values, in place; and G on three, A^T on six.
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

template <bool any_strides>
PanelView<float> panel(const void* self, float* buffer, int64_t i, int64_t n, int64_t width, int64_t p, int64_t k) {
  const View<float> v = static_cast<const MatrixOperand<float, any_strides>*>(self)->panel(buffer, i, n, width, p, k);
  return {v.data, v.step, v.depth_step};
}

// Products by squares, whose left operands are then prepared as such.
bool by_squares(int64_t rows, int64_t channels) { return square_unit() && smaller(rows, channels) >= winograd_squares; }
int64_t prepared_step(int64_t rows, int64_t channels) {
  return by_squares(rows, channels) ? squares_size(rows, channels) : product_step(rows * channels);
}

void correlate(const ConvPart<float>& part) {
  const Tiles tiles(part);
  const int64_t channels = part.depth / taps, n = tiles.count(), each = n + together;
  const int64_t v_step = product_step(channels * each), m_step = product_step(part.m * each);
  const int64_t w_step = prepared_step(part.all_rows, channels);
  const bool squares = by_squares(part.all_rows, channels);
  constexpr int64_t page = 1024;  // values; rows so far apart compete for the same lines of the first cache
  float* v = static_cast<float*>(scratch(Scratch::columns, size_t(products * (v_step + m_step)) * sizeof(float)));
  float* m = v + products * v_step;
  for (int64_t c = 0; c < channels; c += groups)
    gather_inputs(part, tiles, c, smaller(groups, channels - c), v + c * each, each, v_step);
  for (int64_t f = 0; f < products; ++f) {
    const float* weights =
        part.prepared + f * w_step + (squares ? squares_size(part.first_row, channels) : part.first_row);
    const MatrixOperand<float, !by_lane> a = {weights, 1, part.all_rows, channels * part.all_rows <= 4 * page};
    const MatrixOperand<float, false> b = {v + f * v_step, 1, each, part.m <= 128};
    const MatrixOperand<float, true> in_place = {b.data, 1, each, true};
    multiply_panels(PanelProduct<float>{
        part.m,
        n,
        channels,
        {&a, panel<!by_lane>},
        squares ? PanelOperand<float>{&in_place, panel<true>} : PanelOperand<float>{&b, panel<false>},
        m + f * m_step,
        each,
        false,
        squares,
        squares ? weights : nullptr});
  }
  for (int64_t i = 0; i < part.m; i += groups)
    scatter_outputs(part, tiles, i, smaller(groups, part.m - i), m + i * each, each, m_step);
}

int64_t prepared(int64_t rows, int64_t depth, const ConvRows<float>&, int64_t) {
  return products * prepared_step(rows, depth / taps);
}

// Weights, each channel's taps side by side.
struct Kernels {
  const float* data;
  int64_t row, channel;
  Kernels(const ConvRows<float>& a, int64_t channels)
      : data(a.data + smaller(a.places[0], a.places[taps - 1])),
        row(a.step),
        channel(channels > 1 ? a.places[taps] - a.places[0] : 0) {}
  const float* at(int64_t i, int64_t c) const { return data + i * row + c * channel; }
};

// to[product][channel][row] of a vector of rows, or n of them, `apart` in memory, and one channel.
template <bool backwards>
[[gnu::always_inline]] inline void prepare_rows(const float* from, int64_t apart, int64_t n, float* to, int64_t step) {
  const auto row = [&](int64_t l) { return from + smaller(l, n - 1) * apart; };
  Wide w[taps], half[3][window], u[window];
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
    transform_weight({half[0][j], half[1][j], half[2][j]}, u);
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      float* const line = to + (i * window + j) * step;
      if (n == lanes<float>) store<float>(line, u[i]);
      else
        for (int64_t l = 0; l < n; ++l) line[l] = u[i][l];
    }
  }
}

template <bool backwards>
void prepare_squares(int64_t rows, int64_t channels, const Kernels& weights, float* to, int64_t first, int64_t count) {
  constexpr int64_t room = panel_depths * panel_rows + 16;
  const int64_t step = prepared_step(rows, channels);
  float* values = static_cast<float*>(scratch(Scratch::columns, products * room * sizeof(float)));
  for (int64_t c = 0; c < channels; c += panel_depths) {
    const int64_t some = smaller(panel_depths, channels - c);
    for (int64_t i = 0; i < some; ++i) {
      for (int64_t row = 0; row < count; row += lanes<float>)
        prepare_rows<backwards>(weights.at(first + row, c + i), weights.row, smaller(lanes<float>, count - row),
                                values + i * panel_rows + row, room);
    }
    for (int64_t f = 0; f < products; ++f)
      square_unit()->make_left(to + f * step, rows, channels, first, c, {values + f * room, 1, panel_rows}, some);
  }
}

template <bool backwards>
void prepare_as(int64_t rows, int64_t channels, const Kernels& weights, float* to, int64_t first, int64_t count) {
  constexpr int64_t line = 16, whole = lanes<float>;  // rows: lines of the products are filled at once
  const int64_t step = product_step(rows * channels), end = first + count;
  if (by_squares(rows, channels)) return prepare_squares<backwards>(rows, channels, weights, to, first, count);
  for (int64_t lines = first; lines < end; lines += line) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t row = lines; row < smaller(lines + line, end); row += whole)
        prepare_rows<backwards>(weights.at(row, c), weights.row, smaller(whole, end - row), to + c * rows + row, step);
    }
  }
}

void prepare(int64_t rows, int64_t depth, const ConvRows<float>& a, float* to, int64_t first, int64_t count) {
  const Kernels weights(a, depth / taps);
  (a.places[0] == 0 ? prepare_as<false> : prepare_as<true>)(rows, depth / taps, weights, to, first, count);
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> ConvKernels<float> conv_winograd<Isa::VOLTA_ISA>() {
  return {VOLTA_ISA::correlate, nullptr, VOLTA_ISA::tile, false, 1 << 19, VOLTA_ISA::prepared, VOLTA_ISA::prepare};
}
}  // namespace volta::cpu

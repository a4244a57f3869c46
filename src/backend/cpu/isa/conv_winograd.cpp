// Convolution by Winograd's F(4x4, 3x3): tiles of 4 x 4 outputs from 6 x 6 inputs with 36 products in place of 144, as 36
// matrix products over the channels. y = A^T [(G w G^T) . (B^T x B)] A, with the interpolation points 0, 1, -1, 2, -2, infinity.
#include "backend/cpu/conv_plan.h"
#include "backend/cpu/gemm_plan.h"
#include "backend/cpu/isa/gemm_pack.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {

void multiply_panels(const PanelProduct<float>& p);

namespace {

constexpr int64_t tile = 4, window = 6, products = window * window, taps = 9, together = 4;  // tiles in a vector
using Four = Some<float, 4>;

// From one product's matrix to the next: were it a multiple of a page, all would compete for the same lines of the caches.
inline int64_t product_step(int64_t matrix) { return ceil_div(matrix, 16) * 16 + 16; }

// B^T on six values, in place; and G on three, A^T on six.
[[gnu::always_inline]] inline void transform_input(Four (&x)[window]) {
  const Four a = x[4] - 4 * x[2], b = x[3] - 4 * x[1], c = x[4] - x[2], d = 2 * (x[3] - x[1]);
  x[0] = 4 * x[0] - 5 * x[2] + x[4];
  x[5] = 4 * x[1] - 5 * x[3] + x[5];
  x[1] = a + b, x[2] = a - b, x[3] = c + d, x[4] = c - d;
}
[[gnu::always_inline]] inline void transform_weight(const Four (&g)[3], Four (&u)[window]) {
  const Four even = g[0] + g[2], wide = g[0] * (1.f / 24) + g[2] * (1.f / 6), odd = g[1] * (1.f / 12);
  u[0] = g[0] * 0.25f;
  u[1] = (even + g[1]) * (-1.f / 6), u[2] = (even - g[1]) * (-1.f / 6);
  u[3] = wide + odd, u[4] = wide - odd;
  u[5] = g[2];
}
[[gnu::always_inline]] inline void transform_output(const Four (&m)[window], Four (&y)[tile]) {
  const Four s = m[1] + m[2], d = m[1] - m[2], t = m[3] + m[4], e = m[3] - m[4];
  y[0] = m[0] + s + t, y[1] = d + 2 * e, y[2] = s + 4 * t, y[3] = d + 8 * e + m[5];
}

// Columns of four tiles that begin four values apart.
[[gnu::always_inline]] inline void load_columns(const float* from, Four (&x)[window]) {
  Quad<float> rows[together + 1];
#pragma GCC unroll 8
  for (int i = 0; i <= together; ++i) rows[i] = load_some<4>(from + i * tile);
  float columns[together * tile + 2 * together];
  store_transposed<float>(rows, columns, together);
  const Quad<float> low = __builtin_shufflevector(rows[1], rows[2], 0, 4, 1, 5),
                    high = __builtin_shufflevector(rows[3], rows[4], 0, 4, 1, 5);
#pragma GCC unroll 8
  for (int i = 0; i < tile; ++i) x[i] = load_some<4>(columns + i * together);
  x[4] = __builtin_shufflevector(low, high, 0, 1, 4, 5);
  x[5] = __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

// Stores the first n of four.
[[gnu::always_inline]] inline void store_four(float* to, const Four& x, int64_t n) {
  if (n == together) __builtin_memcpy(to, &x, sizeof x);
  else
    for (int64_t l = 0; l < n; ++l) to[l] = x[l];
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

// v[product][channel][tile] of one channel.
void gather_inputs(const ConvPart<float>& part, const Tiles& tiles, int64_t channel, float* v, int64_t step) {
  const float* image = part.image + part.offsets[channel * taps];
  const int64_t n = smaller(together, tiles.wide);
  tiles.each_four([&](int64_t p, int64_t r, int64_t t, int64_t place) {
    const float* from = image + p * part.plane_step + r * tile * part.row_step + t * tile;
    Four x[window][window];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      load_columns(from + i * part.row_step, x[i]);
      transform_input(x[i]);
    }
    float* to = v + place;
#pragma GCC unroll 8
    for (int j = 0; j < window; ++j) {
      Four column[window] = {x[0][j], x[1][j], x[2][j], x[3][j], x[4][j], x[5][j]};
      transform_input(column);
#pragma GCC unroll 8
      for (int i = 0; i < window; ++i) store_four(to + (i * window + j) * step, column[i], n);
    }
  });
}

// Outputs of one row of the result from its products.
void scatter_outputs(const ConvPart<float>& part, const Tiles& tiles, int64_t row, const float* m, int64_t step) {
  const float bias = part.bias ? part.bias[row] : 0;
  float* c = part.c + row * part.c_step;
  tiles.each_four([&](int64_t p, int64_t r, int64_t t, int64_t place) {
    const float* from = m + place;
    Four half[window][tile];
#pragma GCC unroll 8
    for (int i = 0; i < window; ++i) {
      Four x[window];
#pragma GCC unroll 8
      for (int j = 0; j < window; ++j) x[j] = load_some<4>(from + (i * window + j) * step);
      transform_output(x, half[i]);
    }
    float out[tile][together * tile];
#pragma GCC unroll 8
    for (int j = 0; j < tile; ++j) {
      const Four column[window] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
      Four y[tile];
      transform_output(column, y);
#pragma GCC unroll 8
      for (int i = 0; i < tile; ++i) half[i][j] = y[i] + bias;
    }
    const int64_t wide = smaller(together * tile, part.row - t * tile);
    for (int i = 0; i < smaller(tile, part.rows - r * tile); ++i) {
      const Quad<float> quads[tile] = {half[i][0], half[i][1], half[i][2], half[i][3]};
      float* to = c + (p * part.rows + r * tile + i) * part.row + t * tile;
      store_transposed<float>(quads, wide == together * tile ? to : out[i], tile);
      for (int64_t l = 0; l < wide && wide < together * tile; ++l) to[l] = out[i][l];
    }
  });
}

template <bool any_strides>
PanelView<float> panel(const void* self, float* buffer, int64_t i, int64_t n, int64_t width, int64_t p, int64_t k) {
  const View<float> v = static_cast<const MatrixOperand<float, any_strides>*>(self)->panel(buffer, i, n, width, p, k);
  return {v.data, v.step, v.depth_step};
}

void correlate(const ConvPart<float>& part) {
  const Tiles tiles(part);
  const int64_t channels = part.depth / taps, n = tiles.count(), each = n + together;
  const int64_t v_step = product_step(channels * each), m_step = product_step(part.m * each);
  const int64_t w_step = product_step(channels * part.prepared_rows);
  constexpr int64_t page = 1024;  // values; rows so far apart compete for the same lines of the first cache
  float* v = static_cast<float*>(scratch(Scratch::columns, size_t(products * (v_step + m_step)) * sizeof(float)));
  float* m = v + products * v_step;
  for (int64_t c = 0; c < channels; ++c) gather_inputs(part, tiles, c, v + c * each, v_step);
  for (int64_t f = 0; f < products; ++f) {
    const float* weights = part.prepared + f * w_step + part.first_row;
    const MatrixOperand<float, !by_lane> a = {weights, 1, part.prepared_rows,
                                              channels * part.prepared_rows <= 4 * page};
    const MatrixOperand<float, false> b = {v + f * v_step, 1, each, part.m <= 128};
    multiply_panels(PanelProduct<float>{
        part.m, n, channels, {&a, panel<!by_lane>}, {&b, panel<false>}, m + f * m_step, each, false});
  }
  for (int64_t i = 0; i < part.m; ++i) scatter_outputs(part, tiles, i, m + i * each, m_step);
}

int64_t prepared(int64_t rows, int64_t depth) { return products * product_step(rows * (depth / taps)); }

// to[product][channel][row] of n <= 4 rows and one channel.
[[gnu::always_inline]] inline void prepare_four(const float* from, int64_t depth, int64_t n, float* to, int64_t step) {
  Four w[3][3] = {}, half[3][window], u[window];
  for (int64_t l = 0; l < n; ++l) {
    for (int k = 0; k < taps; ++k) w[k / 3][k % 3][l] = from[l * depth + k];
  }
  for (int i = 0; i < 3; ++i) transform_weight(w[i], half[i]);
  for (int j = 0; j < window; ++j) {
    transform_weight({half[0][j], half[1][j], half[2][j]}, u);
    for (int i = 0; i < window; ++i) store_four(to + (i * window + j) * step, u[i], n);
  }
}

void prepare(int64_t rows, int64_t depth, const float* weights, float* to, int64_t first, int64_t count) {
  constexpr int64_t line = 16;  // rows: lines of the products are filled at once
  const int64_t channels = depth / taps, step = product_step(rows * channels), end = first + count;
  for (int64_t lines = first; lines < end; lines += line) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t row = lines; row < smaller(lines + line, end); row += together)
        prepare_four(weights + row * depth + c * taps, depth, smaller(together, end - row), to + c * rows + row, step);
    }
  }
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> ConvKernels<float> conv_winograd<Isa::VOLTA_ISA>() {
  return {VOLTA_ISA::correlate, nullptr, VOLTA_ISA::tile, false, 1 << 19, VOLTA_ISA::prepared, VOLTA_ISA::prepare};
}
}  // namespace volta::cpu

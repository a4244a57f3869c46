// Convolution by Winograd's F(4x4, 3x3): tiles of 4 x 4 outputs from 6 x 6 inputs with 36 products in place of 144, as 36
// matrix products over the channels; for the gradient of the weights over the tiles. Both take a block of weights at a time,
// whose transforms stay in the second cache.
#include "backend/cpu/conv/kernels/winograd.h"
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block_channels = 128;

// A block of weights, and u[product][channel][row] of it.
struct Block {
  Range rows, channels;
  const int64_t step;  // from one product to the next
  static int64_t step_of(int64_t channels) {
    return product_step(whole_rows<float>(smaller(channels, block_channels)) * block_rows);
  }
};

template <bool backwards> void transform_as(const Kernels& w, const Block& b, float* u) {
  for (int64_t c = 0; c < b.channels.size; ++c) {
    const float* const from = w.data + b.rows.begin * w.row + (b.channels.begin + c) * w.channel;
    for (int64_t i = 0; i < b.rows.size; i += lanes<float>)
      transform_rows<backwards>(from + i * w.row, w, b.rows.size - i, u + c * block_rows + i, b.step);
  }
}
void transform(const Kernels& w, const Block& b, float* u) {
  (w.backwards ? transform_as<true> : transform_as<false>)(w, b, u);
}

// Calls f(range) for blocks of so many of n.
template <class F> void each_block(int64_t n, int64_t size, F f) {
  for (int64_t i = 0; i < n; i += size) f(Range{i, smaller(size, n - i)});
}

// How the transformed tiles of a part lie: v[product][channel][tile], `each` of a channel, with room for whole vectors and
// what each_four() writes beyond the last. Of few tiles the rows make up the vectors.
struct Values {
  int64_t n, each, step;
  bool across;
  Values(const Tiles& tiles, int64_t channels) : n(tiles.count()), across(2 * n <= lanes<float>) {
    each = larger(across ? whole_rows<float>(n) : whole_columns<float>(n), n + together);
    step = product_step(whole_rows<float>(channels) * each);
  }
  int64_t end() const { return across ? whole_rows<float>(n) : whole_columns<float>(n); }
};

// To v, from where on the values of these channels lie.
void gather_all(const ConvPart<float>& part, const Tiles& tiles, int64_t channels, float* v, const Values& x) {
  for (int64_t i = 0; i < products * channels && x.n < x.end(); ++i) {
    float* const row = v + i / channels * x.step + i % channels * x.each;
    for (int64_t t = x.n; t < x.end(); ++t) row[t] = 0;
  }
  for (int64_t c = 0; c < channels; c += groups)
    gather_inputs(part, tiles, c, smaller(groups, channels - c), v + c * x.each, x.each, x.step);
}

int64_t gathered(const ConvPart<float>& part) { return products * Values(Tiles(part), part.all_channels).step; }
void gather(const ConvPart<float>& part, int64_t first, int64_t count, float* to) {
  const Tiles tiles(part);
  const Values x(tiles, part.all_channels);
  gather_all(part, tiles, count, to + first * x.each, x);
}

float* room_for(int64_t values) {
  return static_cast<float*>(scratch(Scratch::columns, size_t(values) * sizeof(float)));
}

void correlate(const ConvPart<float>& part) {
  const Tiles tiles(part);
  const int64_t channels = part.depth / taps, u_step = Block::step_of(channels);
  const Values x(tiles, channels);
  const int64_t m_step =
      product_step(x.across ? whole_rows<float>(x.n) * block_rows : whole_rows<float>(block_rows) * x.each);
  float* const room = room_for(products * ((part.gathered ? 0 : x.step) + m_step + u_step));
  float *const m = room + (part.gathered ? 0 : products * x.step), *const own = m + products * m_step;
  const float* const v = part.gathered ? part.gathered : room;
  const Kernels weights(part.a, channels);
  const float* prepared = part.prepared;
  if (prepared) prepared += part.first_row / block_rows * ceil_div(channels, block_channels) * products * u_step;
  if (!part.gathered) gather_all(part, tiles, channels, room, x);
  each_block(part.m, block_rows, [&](Range rows) {
    each_block(channels, block_channels, [&](Range some) {
      const float* u = prepared ? prepared : own;
      if (prepared) prepared += products * u_step;
      else transform(weights, {rows, some, u_step}, own);
      for (int64_t f = 0; f < products; ++f, u += u_step) {
        const float* const values = v + f * x.step + some.begin * x.each;
        const bool add = some.begin > 0;
        if (x.across)
          multiply<float>(x.n, rows.size, some.size, left_in_place(values, x.each), right_in_place(u, block_rows),
                          m + f * m_step, block_rows, add);
        else
          multiply<float>(rows.size, x.n, some.size, left_in_place(u, block_rows), right_in_place(values, x.each),
                          m + f * m_step, x.each, add);
      }
    });
    if (x.across) {
      each_block(rows.size, together, [&](Range four) {
        scatter_across(part, tiles, rows.begin + four.begin, four.size, m + four.begin, m_step);
      });
    } else {
      each_block(rows.size, groups, [&](Range some) {
        scatter_outputs(part, tiles, rows.begin + some.begin, some.size, m + some.begin * x.each, x.each, m_step);
      });
    }
  });
}

int64_t transformed(int64_t rows, int64_t depth) {
  const int64_t channels = depth / taps;
  return ceil_div(rows, block_rows) * ceil_div(channels, block_channels) * products * Block::step_of(channels);
}
// Transformed weights are shared by many parts where they are few enough to stay in the caches.
int64_t prepared(int64_t rows, int64_t depth, const ConvRows<float>&, int64_t parts) {
  constexpr int64_t few_weights = 16384, many_parts = 4;
  return parts >= many_parts && rows * (depth / taps) <= few_weights ? transformed(rows, depth) : 0;
}
int64_t kept(int64_t rows, int64_t depth, int64_t) {
  constexpr int64_t most_weights = 65536;  // more are transformed in less time than four times their bytes take to come
  return rows * (depth / taps) <= most_weights ? transformed(rows, depth) : 0;
}

void prepare(int64_t, int64_t depth, const ConvRows<float>& a, float* to, int64_t first, int64_t count) {
  const int64_t channels = depth / taps, step = Block::step_of(channels);
  const Kernels weights(a, channels);
  to += first / block_rows * ceil_div(channels, block_channels) * products * step;
  each_block(count, block_rows, [&](Range rows) {
    each_block(channels, block_channels, [&](Range some) {
      transform(weights, {{first + rows.begin, rows.size}, some, step}, to);
      to += products * step;
    });
  });
}

// Transformed gradients of all rows, from one product to the next.
int64_t gradient_step(const ConvPart<float>& part, const Values& x) { return product_step(part.all_rows * x.each); }
int64_t gathered_gradients(const ConvPart<float>& part) {
  return products * gradient_step(part, Values(Tiles(part), part.all_channels));
}
void gather_some_gradients(const ConvPart<float>& part, int64_t first, int64_t count, float* to) {
  const Tiles tiles(part);
  const Values x(tiles, part.all_channels);
  each_block(count, groups, [&](Range some) {
    gather_gradients(part, tiles, some.begin, some.size, to + (first + some.begin) * x.each, x.each,
                     gradient_step(part, x));
  });
}

// The left operand of all products over the tiles: v as it is or, where lanes are read across channels, packed.
struct Inputs {
  const float* data;
  int64_t step, channel;
  Left<float> from(int64_t f, int64_t c) const {
    const float* const first = data + f * step + c * channel;
    if constexpr (by_lane) return {first, strip<float> * channel, 1, strip<float>};
    else return {first, strip<float> * channel, channel, 1};
  }
};

Inputs gather_left(const ConvPart<float>& part, const Tiles& tiles, int64_t channels, float* v, float* room) {
  const Values x(tiles, channels), all(tiles, part.all_channels);
  const float* const from = part.gathered + (part.gathered ? part.first_channel * all.each : 0);
  if constexpr (!by_lane) {
    if (part.gathered) return {from, all.step, all.each};
    gather_all(part, tiles, channels, v, x);
    return {v, x.step, x.each};
  }
  if (part.gathered) {
    each_block(channels, strip<float>, [&](Range some) {
      for (int64_t f = 0; f < products; ++f)
        pack_left(v + f * x.step + some.begin * x.n,
                  Strided<float>{from + f * all.step + some.begin * all.each, all.each, 1}, some.size, x.n);
    });
    return {v, x.step, x.n};
  }
  const int64_t some_step = product_step(strip<float> * x.each);
  each_block(channels, strip<float>, [&](Range some) {
    each_block(some.size, groups, [&](Range few) {
      gather_inputs(part, tiles, some.begin + few.begin, few.size, room + few.begin * x.each, x.each, some_step);
    });
    for (int64_t f = 0; f < products; ++f)
      pack_left(v + f * x.step + some.begin * x.n, Strided<float>{room + f * some_step, x.each, 1}, some.size, x.n);
  });
  return {v, x.step, x.n};
}

void weight_gradient(const ConvPart<float>& part) {
  const Tiles tiles(part);
  const int64_t channels = part.depth / taps, u_step = Block::step_of(channels);
  const Values x(tiles, channels);
  const int64_t y_step = product_step(block_rows * x.each), right_step = block_rows * x.n;
  float* const v = room_for(products * (x.step + y_step + u_step + right_step));
  float *const y = v + products * x.step, *const u = y + products * y_step, *const right = u + products * u_step;
  const Inputs inputs = gather_left(part, tiles, channels, v, y);
  each_block(part.m, block_rows, [&](Range rows) {
    const float* from = y;
    int64_t step = y_step;
    if (part.gradients) {
      step = gradient_step(part, x);
      from = part.gradients + (part.first_row + rows.begin) * x.each;
    } else {
      each_block(rows.size, groups, [&](Range some) {
        gather_gradients(part, tiles, rows.begin + some.begin, some.size, y + some.begin * x.each, x.each, y_step);
      });
    }
    for (int64_t f = 0; f < products; ++f)
      pack_right(right + f * right_step, Strided<float>{from + f * step, 1, x.each}, x.n, rows.size);
    each_block(channels, block_channels, [&](Range some) {
      for (int64_t f = 0; f < products; ++f)
        multiply<float>(some.size, rows.size, x.n, inputs.from(f, some.begin),
                        right_packed(right + f * right_step, x.n), u + f * u_step, block_rows, false);
      for (int64_t c = 0; c < some.size; ++c) {
        float* const to = part.c + rows.begin * part.c_step + (some.begin + c) * taps;
        for (int64_t i = 0; i < rows.size; i += lanes<float>)
          put_sums(u + c * block_rows + i, u_step, to + i * part.c_step, part.c_step, rows.size - i, part.add);
      }
    });
  });
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> ConvKernels<float> conv_winograd<Isa::VOLTA_ISA>() {
  using namespace VOLTA_ISA;
  return {correlate,
          weight_gradient,
          tile,
          false,
          1 << 19,
          prepared,
          prepare,
          kept,
          prepare,
          gathered,
          gather,
          gathered_gradients,
          gather_some_gradients};
}
}  // namespace volta::cpu

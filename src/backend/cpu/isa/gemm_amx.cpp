// Products by AMX, whose instructions multiply squares of bf16 and add up in f32. An f32 goes in as the sum of three bf16,
// x = high + middle + low, which is exact; of the nine products of two such sums the three smallest, together below an ulp,
// are left out. Six products on these units take less than half the time of one product of f32 on vectors, and the error is
// smaller: it is mostly that of adding up, and here two products are added at a time, corrections before what they correct.
#include <immintrin.h>

#include "backend/cpu/gemm_squares.h"
#include "backend/cpu/isa/gemm_part.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// A tile register has 16 rows of 16 pairs of bf16 along k: here depth p of a step goes with depth p + 16. A square is what
// one register holds: 16 rows of A, or 16 columns of B, by 32 depths. Panels are squares [step][16 rows][piece].
constexpr int side = int(square_side), square_depth = int(panel_depths);
constexpr int64_t square_bytes = 1024;

template <class S> constexpr int pieces = std::is_same_v<S, bfloat16> ? 1 : 3;
template <int count> struct SquareRow { char bytes[count * square_bytes / side]; };
template <int count> struct Step<SquareRow<count>> { static constexpr int rows_together = side; };

struct SquarePanel {
  const char* data;
  bool special;  // has values that were left out, see below
};

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {side, side, side, side, side, side, side, side};
};
constexpr TileConfig tile_config;

// The tile registers of this thread.
struct Tiles {
  Tiles() { _tile_loadconfig(&tile_config); }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Registers 0 to 3 are the sums of up to 2 x 2 squares, 4 and 5 squares of A, 6 and 7 of B.
template <int count, int left> [[gnu::always_inline]] inline void load_left(const char* from) {
  _tile_loadd(4, from, 64);
  if constexpr (left == 2) _tile_loadd(5, from + count * square_bytes, 64);
}
template <int count, int right> [[gnu::always_inline]] inline void load_right(const char* from) {
  _tile_loadd(6, from, 64);
  if constexpr (right == 2) _tile_loadd(7, from + count * square_bytes, 64);
}
template <int left, int right> [[gnu::always_inline]] inline void multiply_add() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (right == 2) _tile_dpbf16ps(1, 4, 7);
  if constexpr (left == 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (left == 2 && right == 2) _tile_dpbf16ps(3, 5, 7);
}
template <int left, int right> [[gnu::always_inline]] inline void store_tiles(float* to, int64_t step) {
  const int64_t bytes = step * int64_t(sizeof(float));
  _tile_stored(0, to, bytes);
  if constexpr (right == 2) _tile_stored(1, to + side, bytes);
  if constexpr (left == 2) _tile_stored(2, to + side * step, bytes);
  if constexpr (left == 2 && right == 2) _tile_stored(3, to + side * step + side, bytes);
}

// The corrections of all steps come before the products of the high pieces, which are 256 times as large: adding them loses
// nothing. Each product of pieces has one of its factors in registers already.
template <int count, int left, int right>
[[gnu::noinline]] void square_kernel(const TileCall<float, SquarePanel>& t, int64_t rows) {
  constexpr int64_t a_step = left * count * square_bytes, b_step = right * count * square_bytes;
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_prefetch(t.c + i * t.c_step, 1);
    if constexpr (right == 2) __builtin_prefetch(t.c + i * t.c_step + side, 1);
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if constexpr (count == 3) {
    const char *a = t.a.data, *b = t.b.data;
    for (int64_t p = t.k; p > 0; --p, a += a_step, b += b_step) {
      load_left<count, left>(a);
      load_right<count, right>(b + 2 * square_bytes);
      multiply_add<left, right>();
      load_right<count, right>(b + square_bytes);
      multiply_add<left, right>();
      load_left<count, left>(a + square_bytes);
      multiply_add<left, right>();
      load_right<count, right>(b);
      multiply_add<left, right>();
      load_left<count, left>(a + 2 * square_bytes);
      multiply_add<left, right>();
    }
  }
  const char *a = t.a.data, *b = t.b.data;
  for (int64_t p = t.k; p > 0; --p, a += a_step, b += b_step) {
    load_left<count, left>(a);
    load_right<count, right>(b);
    multiply_add<left, right>();
  }
  const bool whole = rows == left * side && t.n == right * side;
  if (whole && !t.add) return store_tiles<left, right>(t.c, t.c_step);
  alignas(64) float sums[left * side * right * side];
  store_tiles<left, right>(sums, right * side);
  if (!whole) return store_ragged(t, sums, rows, right * side);
  for (int i = 0; i < left * side; ++i) {
    for (int j = 0; j < right * side; j += side) {
      float* to = t.c + i * t.c_step + j;
      store<float>(to, load(to) + load(sums + i * right * side + j));
    }
  }
}

// Magnitudes of f32, as bits, whose pieces are not exact: they would leave the range of bf16, or are not finite and would
// turn products with zero pieces into NaN. Such values stay out of the squares; their products are added afterwards.
constexpr uint32_t magnitude = 0x7fffffff, tiny = uint32_t(127 - 102) << 23, huge = uint32_t(127 + 127) << 23;
inline bool is_special(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x) & magnitude;
  return bits - 1 < tiny - 1 || bits >= huge;
}

using Floats = Vector<float>;
using Words = Vector<uint32_t>;

// What went into a panel: the largest magnitude, and the smallest other than zero less one.
struct Seen {
  Words largest = {}, smallest = ~Words{};
  [[gnu::always_inline]] void look(Floats x) {
    const Words bits = Words(x) & magnitude, less = bits - 1;
    largest = bits > largest ? bits : largest;
    smallest = less < smallest ? less : smallest;
  }
  [[gnu::always_inline]] bool special() const {
    const __m512i found = __m512i((largest >= huge) | (smallest < tiny - 1));
    return _mm512_test_epi32_mask(found, found) != 0;
  }
};

[[gnu::always_inline]] inline Floats without_special(Floats x) {
  const Words bits = Words(x) & magnitude;
  return Floats(Words(x) & ~Words((bits - 1 < tiny - 1) | (bits >= huge)));
}

// The nearest bf16, in the upper half of a word.
[[gnu::always_inline]] inline Words upper(Floats x) { return (Words(x) + 0x8000u) & 0xffff0000u; }

// Rows of squares from 16 pairs (x, y).
template <int count> [[gnu::always_inline]] inline void put_pieces(char* to, Floats x, Floats y) {
#pragma GCC unroll 3
  for (int piece = 0; piece < count; ++piece) {
    const bool last = piece == count - 1;  // exact as it is
    const Words left = last ? Words(x) : upper(x), right = last ? Words(y) & 0xffff0000u : upper(y);
    const Words pairs = left >> 16 | right;
    __builtin_memcpy(to + piece * square_bytes, &pairs, sizeof pairs);
    x -= Floats(left);
    y -= Floats(right);
  }
}

// n of 16 values, zeros after them.
[[gnu::always_inline]] inline __mmask16 first(int64_t n) { return __mmask16((1u << smaller(larger(n, 0), side)) - 1); }
[[gnu::always_inline]] inline Floats load_first(const float* from, int64_t n) {
  return _mm512_maskz_loadu_ps(first(n), from);
}
[[gnu::always_inline]] inline Floats load_first(const bfloat16* from, int64_t n) {
  const __m256i bits = _mm256_maskz_loadu_epi16(first(n), from);
  return Floats(__builtin_convertvector(Some<uint16_t, side>(bits), Words) << 16);
}

// A panel of n rows and k depths of values. Those of A lie in rows along the depth, those of B in rows along the tile. Special
// values are not looked for, found, or left out.
enum class Special { ignored, found, left_out };
template <int count, bool left, Special special, class S>
[[gnu::noinline]] bool pack_squares(char* to, const S* from, int64_t step, int64_t n, int64_t k) {
  const int64_t units = ceil_div(n, side);
  Seen seen;
  const auto put = [&](char* at, const S* x, const S* y, int64_t x_count, int64_t y_count) {
    Floats values[2] = {load_first(x, x_count), load_first(y, y_count)};
    for (Floats& v : values) {
      if constexpr (special == Special::left_out) v = without_special(v);
      if constexpr (special == Special::found) seen.look(v);
    }
    put_pieces<count>(at, values[0], values[1]);
  };
  for (int64_t p = 0; p < k; p += square_depth, to += units * count * square_bytes) {
    if constexpr (left) {
      for (int64_t i = 0; i < units * side; ++i) {
        const S* row = from + i * step + p;
        const int64_t deep = i < n ? k - p : 0;
        put(to + i / side * count * square_bytes + i % side * 64, row, row + side, deep, deep - side);
      }
    } else {
      for (int64_t j = 0; j < side; ++j) {
        const S *x = from + (p + j) * step, *y = x + side * step;
        for (int64_t u = 0; u < units; ++u) {
          const int64_t wide = n - u * side;
          __builtin_prefetch(x + square_depth * step + u * side);
          __builtin_prefetch(y + square_depth * step + u * side);
          put(to + u * count * square_bytes + j * 64, x + u * side, y + u * side, p + j < k ? wide : 0,
              p + j + side < k ? wide : 0);
        }
      }
    }
  }
  return seen.special();
}

// An operand of multiply() that makes squares of what `source` gives, a matrix or an operand of f32; its depths are steps.
// Of bf16 not even infinities need care, and numbers below 1.2e-38 count as zero.
template <class S, class Source, bool left, bool careful = (pieces<S> > 1)> struct SquareOperand {
  static constexpr int count = pieces<S>;
  static constexpr bool is_matrix = requires(const Source& x) { x.data; };
  const Source& source;
  int64_t depth;

  SquarePanel panel(SquareRow<count>* buffer, int64_t i, int64_t n, int64_t, int64_t p, int64_t k) const {
    char* to = buffer->bytes;
    const Range depths = depths_of(p, k);
    constexpr Special how = careful ? Special::found : Special::ignored;
    if constexpr (is_matrix && std::is_same_v<S, bfloat16>) {
      if (in_rows()) {
        pack_squares<count, left, how>(to, place({i, n}, depths), row_step(), n, depths.size);
        return {to, false};
      }
    }
    const View<float> v = values({i, n}, depths);
    const int64_t step = left ? v.step : v.depth_step;
    const bool special = pack_squares<count, left, how>(to, v.data, step, n, depths.size);
    if (special) pack_squares<count, left, Special::left_out>(to, v.data, step, n, depths.size);
    return {to, special};
  }

  Range depths_of(int64_t p, int64_t k) const {
    return {p * square_depth, smaller(k * square_depth, depth - p * square_depth)};
  }

  // The values of a panel, in rows as pack_squares() wants them, until the next call.
  View<float> values(Range rows, Range depths) const {
    const int64_t tile = ceil_div(rows.size, side) * side, size = tile * depths.size + side;
    float* room = static_cast<float*>(scratch(left ? Scratch::left : Scratch::right, size_t(2 * size) * sizeof(float)));
    if constexpr (is_matrix) {
      if constexpr (std::is_same_v<S, float>)
        if (in_rows()) return {place(rows, depths), source.step, source.depth_step};
      return arranged<S>(room, {place(rows, depths), source.step, source.depth_step}, rows.size, tile, depths.size);
    } else {
      const View<float> v = source.panel(room, rows.begin, rows.size, tile, depths.begin, depths.size);
      if ((left ? v.depth_step : v.step) == 1) return v;
      return arranged<float>(room + size, v, rows.size, tile, depths.size);
    }
  }

 private:
  bool in_rows() const { return (left ? source.depth_step : source.step) == 1; }
  int64_t row_step() const { return left ? source.step : source.depth_step; }
  const S* place(Range rows, Range depths) const {
    return source.data + rows.begin * source.step + depths.begin * source.depth_step;
  }
  template <class V> static View<float> arranged(float* to, View<V> v, int64_t n, int64_t tile, int64_t k) {
    if constexpr (left) pack(PackCall<V>{to, k, k, n, v.data, v.depth_step, v.step});
    else pack(PackCall<V>{to, tile, n, k, v.data, v.step, v.depth_step});
    return left ? View<float>{to, k, 1} : View<float>{to, 1, tile};
  }
};

// Panels that make_left() or make_right() has made: [32 rows][step][16 rows][piece].
struct MadeSquares {
  const char* data;
  int64_t steps;
  SquarePanel panel(SquareRow<3>*, int64_t i, int64_t n, int64_t, int64_t p, int64_t) const {
    return {data + (i / side * steps + p * ceil_div(n, side)) * 3 * square_bytes, false};
  }
};

// Blocks of A and panels of B that stay in the second cache together.
template <int count> struct SquareTile {
  using Element = SquareRow<count>;
  using Panel = SquarePanel;
  static constexpr TileSizes sizes = {2 * 2 * side, 2, count == 1 ? 16 : 8, 256, 512, 2 * side};
  template <int rows, int vectors> static void kernel(const TileCall<float, SquarePanel>& t) {
    square_kernel<count, (rows + side - 1) / side, vectors>(t, rows);
  }
};

// Adds the products that have a special factor. Which they are does not depend on how the product was cut into panels.
template <class A, class B> void add_special(const TileCall<float, SquarePanel>& t, const A& a, const B& b, Range rows,
                                             Range columns, Range steps) {
  const Range depths = a.depths_of(steps.begin, steps.size);
  const View<float> x = a.values(rows, depths), y = b.values(columns, depths);
  for (int64_t p = 0; p < depths.size; ++p) {
    const float* row = y.data + p * y.depth_step;
    bool any = false;
    for (int64_t j = 0; j < columns.size; ++j) any |= is_special(row[j]);
    for (int64_t i = 0; i < rows.size; ++i) {
      const float value = x.data[i * x.step + p];
      float* c = t.c + i * t.c_step;
      if (is_special(value))
        for (int64_t j = 0; j < columns.size; ++j) c[j] += value * row[j];
      else if (any)
        for (int64_t j = 0; j < columns.size; ++j) c[j] = is_special(row[j]) ? c[j] + value * row[j] : c[j];
    }
  }
}

using PlainMatrix = MatrixOperand<float, true>;

template <int count, class A, class B>
void multiply_tiles(int64_t m, int64_t n, int64_t k, const A& a, const B& b, float* c, int64_t c_step, bool add) {
  const Tiles tiles;
  Multiplication<float, A, B, SquareTile<count>>(a, b, c, c_step).run(m, n, ceil_div(k, square_depth), add);
}
template <class S, class A, class B>
void multiply_squares(int64_t m, int64_t n, int64_t k, const A& a, const B& b, float* c, int64_t c_step, bool add) {
  const SquareOperand<S, A, true> left = {a, k};
  const SquareOperand<S, B, false> right = {b, k};
  multiply_tiles<pieces<S>>(m, n, k, left, right, c, c_step, add);
}

template <class S> void part(const Product& p, const Rectangle& r, Range depth, void* partial) {
  part_of<S>(p, r, depth, partial, [&](const auto& a, const auto& b, float* c, int64_t c_step, bool add) {
    multiply_squares<S>(r.rows.size, r.columns.size, depth.size, a, b, c, c_step, add);
  });
}

void multiply_erased(const PanelProduct<float>& p) {
  const ErasedOperand<float> a{p.a}, b{p.b};
  if (!p.left_squares) return multiply_squares<float>(p.m, p.n, p.k, a, b, p.c, p.c_step, p.add);
  const MadeSquares left = {reinterpret_cast<const char*>(p.left_squares), ceil_div(p.k, square_depth)};
  const SquareOperand<float, ErasedOperand<float>, false, false> right = {b, p.k};
  multiply_tiles<pieces<float>>(p.m, p.n, p.k, left, right, p.c, p.c_step, p.add);
}

void make_left(float* to, int64_t rows, int64_t depth, int64_t row, int64_t first, const Matrix& values,
               int64_t count) {
  const int64_t n = smaller(panel_rows, rows - row), units = ceil_div(n, side), steps = ceil_div(depth, square_depth);
  char* squares = reinterpret_cast<char*>(to) + (row / side * steps + first / square_depth * units) * 3 * square_bytes;
  const PlainMatrix source = {static_cast<const float*>(values.data), values.row_stride, values.column_stride, true};
  const View<float> v = SquareOperand<float, PlainMatrix, true>{source, count}.values({0, n}, {0, count});
  pack_squares<3, true, Special::ignored>(squares, v.data, v.step, n, count);
}

void make_right(float* to, const Matrix& b, int64_t n, int64_t k) {
  const PlainMatrix source = {static_cast<const float*>(b.data), b.column_stride, b.row_stride, true};
  const SquareOperand<float, PlainMatrix, false, false> right = {source, k};
  const int64_t steps = ceil_div(k, square_depth);
  SquareRow<3>* squares = reinterpret_cast<SquareRow<3>*>(to);
  for (int64_t j = 0; j < n; j += panel_rows)
    right.panel(squares + j * steps, j, smaller(panel_rows, n - j), 0, 0, steps);
}

void multiply_right(const Shape3& s, const float* a, int64_t a_step, const float* b, float* c, int64_t c_step) {
  const PlainMatrix source = {a, a_step, 1, true};
  const SquareOperand<float, PlainMatrix, true, false> left = {source, s.k};
  const MadeSquares right = {reinterpret_cast<const char*>(b), ceil_div(s.k, square_depth)};
  multiply_tiles<3>(s.m, s.n, s.k, left, right, c, c_step, false);
}

template <class S> constexpr GemmKernels kernels() {
  constexpr int64_t pack = pieces<S> == 3 ? 32 : 128;
  return {{2 * side, 2 * side, 2 * side, pack, pack}, sizeof(float), part<S>, nullptr};
}

}  // namespace

const GemmKernels gemm_kernels[] = {kernels<float16>(), kernels<bfloat16>(), kernels<float>()};
const Squares squares = {multiply_erased, make_left, make_right, multiply_right};

}  // namespace volta::cpu::VOLTA_ISA

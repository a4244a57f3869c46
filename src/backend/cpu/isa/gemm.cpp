// The GEMM of one instruction set: what runs on one thread, as a table of functions.
#include "backend/cpu/gemm_squares.h"
#include "backend/cpu/isa/gemm_amx.h"
#include "backend/cpu/isa/gemm_bf16.h"
#include "backend/cpu/isa/gemm_pack.h"
#include "backend/cpu/scratch.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// `total` cut into `parts` of nearly equal size.
[[gnu::always_inline]] inline Range cut(int64_t total, int64_t parts, int64_t index) {
  if (parts == 1) return {0, total};
  const int64_t begin = total * index / parts;
  return {begin, total * (index + 1) / parts - begin};
}

// Operands are read in place when few rows or columns use them or they stay in the first cache as they are. Rows of A a
// page apart would all compete for the same few lines of it.
constexpr int64_t direct_columns = by_lane ? 48 : 256, direct_rows = 32, direct_bytes = 16 << 10, page = 4096;

template <class T> T* buffer(Scratch purpose, int64_t count) {
  return static_cast<T*>(scratch(purpose, size_t(count) * sizeof(T)));
}

// C[m x n] (+)= A B. A and B are operands with panel(); C's rows are contiguous. Blocks along n, k and m; tiles of nearly
// equal size.
template <class T, class A, class B, class Tile = PlainTile<T>> class Multiplication {
 public:
  Multiplication(const A& a, const B& b, T* c, int64_t c_step) : a_(a), b_(b), c_(c), c_step_(c_step) {}

  void run(int64_t m, int64_t n, int64_t k, bool add) {
    const int64_t k_blocks = larger(1, ceil_div(k, s.block_k)), m_blocks = ceil_div(m, s.block_m);
    together_b_ = side_by_side(b_) && m > few_rows && k_blocks > 1;
    keep_b_ = m_blocks > 1 || together_b_;
    const int64_t depth = ceil_div(k, k_blocks), a_room = ceil_div((smaller(m, s.block_m) + unit - 1) * depth, 16) * 16;
    const int64_t b_room = (keep_b_ ? smaller(n, s.block_n) + lanes<T> : s.vectors * lanes<T>)*depth;
    a_buffer_ = buffer<Element>(Scratch::panels, a_room + b_room + lanes<T>);  // the last panel may be overrun
    b_buffer_ = a_buffer_ + a_room;
    for (int64_t j = 0; j < n; j += s.block_n) {
      for (int64_t kb = 0; kb < k_blocks; ++kb) {
        depth_ = cut(k, k_blocks, kb);
        for (int64_t mb = 0; mb < m_blocks; ++mb)
          block({mb * s.block_m, smaller(s.block_m, m - mb * s.block_m)}, {j, smaller(s.block_n, n - j)}, mb == 0,
                add || kb > 0);
      }
    }
  }

 private:
  using Element = typename Tile::Element;
  using Panel = typename Tile::Panel;
  static constexpr TileSizes s = Tile::sizes;
  static constexpr int64_t most_strips = s.block_m / s.rows(s.vectors) + 1;
  static constexpr int64_t few_rows = 64;  // use a panel of B too seldom for it to come from the second cache
  static constexpr int64_t unit = Step<Element>::rows_together;

  // Rows of C whose panels of A fit the second cache. The first such block packs panels of B, for the others too.
  void block(Range rows, Range columns, bool first, bool add) {
    const int64_t vectors = ceil_div(columns.size, lanes<T>), tiles = ceil_div(vectors, s.vectors);
    const int64_t narrow = vectors / tiles, wider = vectors % tiles;  // tiles of narrow + 1 vectors come first
    const int64_t strips = ceil_div(rows.size, s.rows(narrow + (wider > 0))), units = ceil_div(rows.size, unit);
    const int64_t low = units / strips, higher = units % strips;  // strips of low + 1 units come first
    const auto strip = [&](int64_t r) __attribute__((always_inline)) {
      const int64_t begin = (r * low + smaller(r, higher)) * unit, whole = (low + (r < higher)) * unit;
      return Range{begin, unit == 1 ? whole : smaller(whole, rows.size - begin)};
    };
    const auto pack_b = [&](int64_t t, Range depth) {
      const int64_t at = (t * narrow + smaller(t, wider)) * lanes<T>, width = (narrow + (t < wider)) * lanes<T>;
      Element* room = b_buffer_ + (keep_b_ ? at * depth_.size : 0) + depth.begin * width;
      return b_.panel(room, columns.begin + at, smaller(width, columns.size - at), width, depth_.begin + depth.begin,
                      depth.size);
    };
    const auto pack_a = [&](int64_t r, Range depth) {
      const auto [at, height] = strip(r);
      Element* room = a_buffer_ + at * depth_.size + depth.begin * height;
      return a_.panel(room, rows.begin + at, height, height, depth_.begin + depth.begin, depth.size);
    };
    const bool together_a = side_by_side(a_);
    if (first && together_b_) pack_together(b_views_, tiles, pack_b);
    if (together_a) pack_together(a_views_, strips, pack_a);
    for (int64_t t = 0, j = columns.begin, width; t < tiles; ++t, j += width) {
      const int64_t vectors_of_tile = narrow + (t < wider);
      width = vectors_of_tile * lanes<T>;
      if (first && !together_b_) b_views_[t] = pack_b(t, {0, depth_.size});
      const auto kernel = [&](int64_t height) {
        return kernel_table<T, Tile>.kernels[height - 1][vectors_of_tile - 1];
      };
      const auto lower = kernel(low * unit), high = higher > 0 ? kernel((low + 1) * unit) : lower;
      const auto last = unit == 1 ? lower : kernel(strip(strips - 1).size);
      TileCall<T, Panel> call = {depth_.size, {},
                                 b_views_[t], c_ + rows.begin * c_step_ + j,
                                 c_step_,     smaller(width, columns.begin + columns.size - j),
                                 add};
      for (int64_t r = 0; r < strips; ++r) {
        if (t == 0 && !together_a) a_views_[r] = pack_a(r, {0, depth_.size});
        call.a = a_views_[r];
        (unit > 1 && r == strips - 1 ? last : r < higher ? high : lower)(call);
        if constexpr (requires { a_.values(depth_, depth_), b_.values(depth_, depth_); }) {
          const auto [at, height] = strip(r);
          if (call.a.special || call.b.special)
            add_special(call, a_, b_, {rows.begin + at, height}, {j, call.n}, depth_);
        }
        call.c += (low + (r < higher)) * unit * c_step_;
      }
    }
  }

  // Panels that lie side by side in memory share cache lines, and their rows often compete for the same few: such panels are
  // packed together, some depths at a time. Others are packed at their first use, which finds them in the first cache.
  template <class Operand> static bool side_by_side(const Operand& x) {
    if constexpr (requires { x.side_by_side(); }) return x.side_by_side();
    else return false;
  }
  template <class Pack> void pack_together(Panel* views, int64_t panels, const Pack& pack) {
    constexpr int64_t depths = 32;
    for (int64_t i = 0; i < panels; ++i) views[i] = pack(i, {0, smaller(depths, depth_.size)});
    for (int64_t p = depths; p < depth_.size; p += depths) {
      for (int64_t i = 0; i < panels; ++i) pack(i, {p, smaller(depths, depth_.size - p)});
    }
  }

  const A& a_;
  const B& b_;
  T* c_;
  int64_t c_step_;
  Element *a_buffer_ = nullptr, *b_buffer_ = nullptr;
  bool keep_b_ = false, together_b_ = false;
  Range depth_ = {};
  Panel a_views_[most_strips], b_views_[s.block_n / lanes<T> + 1];
};

// y += the products of x[p .. p + depth) with as many rows of B, which are contiguous.
template <int depth, class S, class T> void add_rows(const T* x, const S* b, int64_t b_step, T* y, int64_t n) {
  T values[depth];  // a copy, which stores to y cannot alias
  __builtin_memcpy(values, x, sizeof values);
  int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    Vector<T> sum = load(y + j);
#pragma GCC unroll 8
    for (int i = 0; i < depth; ++i) sum += load_some<lanes<T>>(b + i * b_step + j) * values[i];
    store<T>(y + j, sum);
  }
  for (; j < n; ++j) {
    for (int i = 0; i < depth; ++i) y[j] += values[i] * widen(b[i * b_step + j]);
  }
}

// y[0 .. columns) = x times columns of B that are contiguous along k.
template <int columns, class S, class T> void dots(const T* x, const S* b, int64_t b_step, int64_t k, T* y, bool add) {
  constexpr int chains = 8 / columns, stride = chains * lanes<T>;
  Vector<T> sums[columns][chains] = {};
  int64_t p = 0;
  for (; p + stride <= k; p += stride) {
#pragma GCC unroll 8
    for (int h = 0; h < chains; ++h) {
      const Vector<T> values = load(x + p + h * lanes<T>);
#pragma GCC unroll 4
      for (int i = 0; i < columns; ++i) sums[i][h] += values * load_some<lanes<T>>(b + i * b_step + p + h * lanes<T>);
    }
  }
  for (int i = 0; i < columns; ++i) {
    for (int h = 1; h < chains; ++h) sums[i][0] += sums[i][h];
    T sum = 0;
    for (int l = 0; l < lanes<T>; ++l) sum += sums[i][0][l];
    for (int64_t q = p; q < k; ++q) sum += x[q] * widen(b[i * b_step + q]);
    y[i] = add ? y[i] + sum : sum;
  }
}

// C[m x n] (+)= A B for a few rows: B is streamed once, at the speed of memory; for the rows after the first, what is
// needed of it is in the first cache.
template <class S, class A, class B, class T = Compute<S>>
void multiply_thin(int64_t m, int64_t n, int64_t k, const A& a, const B& b, T* c, int64_t c_step, bool add) {
  const T* x = reinterpret_cast<const T*>(a.data);
  int64_t x_step = a.step;
  if (a.depth_step != 1 || sizeof(S) != sizeof(T)) {
    T* rows = buffer<T>(Scratch::shared, m * k);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) rows[i * k + p] = widen(a.data[i * a.step + p * a.depth_step]);
    }
    x = rows;
    x_step = k;
  }
  if (b.depth_step == 1) {
    const auto columns = [&]<int count>(int64_t j) {
      for (int64_t i = 0; i < m; ++i)
        dots<count>(x + i * x_step, b.data + j * b.step, b.step, k, c + i * c_step + j, add);
    };
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) columns.template operator()<4>(j);
    for (; j < n; ++j) columns.template operator()<1>(j);
    return;
  }
  const auto rows = [&]<int count>(int64_t p) {
    for (int64_t i = 0; i < m; ++i)
      add_rows<count>(x + i * x_step + p, b.data + p * b.depth_step, b.depth_step, c + i * c_step, n);
  };
  for (int64_t i = 0; i < m && !add; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * c_step + j] = 0;
  }
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) rows.template operator()<8>(p);
  for (; p < k; ++p) rows.template operator()<1>(p);
}

#if defined(VOLTA_AMX)
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
#endif

// Calls f(sum, i, j) for all sums of a rectangle.
template <class T, class F>
[[gnu::always_inline]] inline void each_sum(const Rectangle& r, T* sums, int64_t step, F f) {
  for (int64_t i = 0; i < r.rows.size; ++i) {
    for (int64_t j = 0; j < r.columns.size; ++j) f(sums[i * step + j], i, j);
  }
}

// Sums of a rectangle go to C: plus C if `add`, plus bias, relu, the row activation, one rounding.
template <class S, class T> void finish_sums(const Product& p, const Rectangle& r, T* sums, int64_t step, bool add) {
  const Epilogue& e = p.epilogue;
  const int64_t row_stride = p.c_row_stride, column_stride = p.c_column_stride;
  S* c = static_cast<S*>(p.c) + r.rows.begin * row_stride + r.columns.begin * column_stride;
  if (add)
    each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { x += widen(c[i * row_stride + j * column_stride]); });
  if (const S* bias = static_cast<const S*>(e.bias)) {
    const int64_t by_row = p.bias_by_row ? e.bias_stride : 0, by_column = p.bias_by_row ? 0 : e.bias_stride;
    bias += r.rows.begin * by_row + r.columns.begin * by_column;
    if (by_column == 1) each_sum(r, sums, step, [=](T& x, int64_t, int64_t j) { x += widen(bias[j]); });
    else each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { x += widen(bias[i * by_row + j * by_column]); });
  }
  if (e.activation == Activation::relu)
    each_sum(r, sums, step, [](T& x, int64_t, int64_t) { x = negative<S>(x) ? T(0) : x; });
  for (int64_t i = 0; i < r.rows.size && e.activation > Activation::relu; ++i) {
    if constexpr (std::is_same_v<T, float>) e.row_f32(sums + i * step, r.columns.size);
    else if constexpr (std::is_same_v<T, double>) e.row_f64(sums + i * step, r.columns.size);
  }
  if (static_cast<void*>(c) == sums) return;
  if (column_stride == 1)
    each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { narrow(c[i * row_stride + j], x); });
  else each_sum(r, sums, step, [=](T& x, int64_t i, int64_t j) { narrow(c[i * row_stride + j * column_stride], x); });
}

template <class S> void part(const Product& p, const Rectangle& r, Range depth, void* partial) {
  using T = Compute<S>;
  const int64_t m = r.rows.size, n = r.columns.size, k = depth.size;
  const bool in_c = !partial && p.c_column_stride == 1 && size_of(*p.c_dtype) == sizeof(T), add = in_c && p.accumulate;
  const int64_t step = in_c ? p.c_row_stride : partial ? p.n : n;
  T* sums = in_c || partial ? static_cast<T*>(in_c ? p.c : partial) + r.rows.begin * step + r.columns.begin
                            : buffer<T>(Scratch::tile, m * n);
  const S* a_data = static_cast<const S*>(p.a.data) + r.rows.begin * p.a.row_stride;
  const S* b_data = static_cast<const S*>(p.b.data) + r.columns.begin * p.b.column_stride;
  const bool along = by_lane || p.a.column_stride == 1;  // A in place is read by lanes, across rows, or along them
  const MatrixOperand<S, !by_lane> a = {
      a_data + depth.begin * p.a.column_stride, p.a.row_stride, p.a.column_stride,
      n <= direct_columns && along && p.a.row_stride * int64_t(sizeof(T)) % page != 0};
  const MatrixOperand<S, false> b = {b_data + depth.begin * p.b.row_stride, p.b.column_stride, p.b.row_stride,
                                     m <= direct_rows || k * n * int64_t(sizeof(T)) <= direct_bytes};
#if defined(VOLTA_AMX)
  multiply_squares<S>(m, n, k, a, b, sums, step, add);
#else
  if (p.thin) multiply_thin<S>(m, n, k, a, b, sums, step, add);
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  else if constexpr (std::is_same_v<S, bfloat16>) {
    const GroupOperand left = {a.data, a.step, a.depth_step, k}, right = {b.data, b.step, b.depth_step, k};
    Multiplication<T, GroupOperand, GroupOperand, GroupTile>(left, right, sums, step)
        .run(m, n, ceil_div(k, group_size), add);
  }
#endif
  else
    Multiplication(a, b, sums, step).run(m, n, k, add);
#endif
  if (partial || (in_c && !p.epilogue.bias && p.epilogue.activation == Activation::none)) return;
  if (p.c_dtype == p.dtype) return finish_sums<S>(p, r, sums, step, p.accumulate && !in_c);
  if constexpr (std::is_same_v<T, float>) finish_sums<float>(p, r, sums, step, p.accumulate && !in_c);
}

template <class S> void finish(const Product& p, Range rows, void* partials, int64_t count) {
  using T = Compute<S>;
  const int64_t n = p.n, size = p.m * n;
  T* sums = static_cast<T*>(partials) + rows.begin * n;
  for (int64_t s = 1; s < count; ++s) {
    for (int64_t i = 0; i < rows.size * n; ++i) sums[i] += sums[s * size + i];
  }
  finish_sums<S>(p, {rows, {0, n}}, sums, n, p.accumulate);
}

template <class T> struct ErasedOperand {
  const PanelOperand<T>& operand;
  bool side_by_side() const { return operand.side_by_side; }
  View<T> panel(T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) const {
    const PanelView<T> v = operand.panel(operand.self, buffer, i, n, tile, p, k);
    return {v.data, v.step, v.depth_step};
  }
};
template <class T> void multiply_erased(const PanelProduct<T>& p) {
  const ErasedOperand<T> a{p.a}, b{p.b};
#if defined(VOLTA_AMX)
  if (!p.left_squares) return multiply_squares<T>(p.m, p.n, p.k, a, b, p.c, p.c_step, p.add);
  const MadeSquares left = {reinterpret_cast<const char*>(p.left_squares), ceil_div(p.k, square_depth)};
  const SquareOperand<T, ErasedOperand<T>, false, false> right = {b, p.k};
  multiply_tiles<pieces<T>>(p.m, p.n, p.k, left, right, p.c, p.c_step, p.add);
#else
  Multiplication(a, b, p.c, p.c_step).run(p.m, p.n, p.k, p.add);
#endif
}

#if defined(VOLTA_AMX)
void make_left(float* to, int64_t rows, int64_t depth, int64_t row, int64_t first, const float* values, int64_t count) {
  const int64_t n = smaller(panel_rows, rows - row), units = ceil_div(n, side), steps = ceil_div(depth, square_depth);
  char* squares = reinterpret_cast<char*>(to) + (row / side * steps + first / square_depth * units) * 3 * square_bytes;
  const PlainMatrix source = {values, 1, panel_rows, true};
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
#endif

template <class S> constexpr GemmKernels kernels() {
  using T = Compute<S>;
#if defined(VOLTA_AMX)
  constexpr int64_t pack = pieces<S> == 3 ? 32 : 128;
  return {{2 * side, 2 * side, 2 * side, pack, pack}, sizeof(T), part<S>, nullptr};
#else
  constexpr TileSizes s = sizes<T>;
  return {{s.rows(s.vectors), s.vectors * lanes<T>, lanes<T>, by_lane ? 6 : 16, by_lane ? 4 : 10},
          sizeof(T),
          part<S>,
          finish<S>};
#endif
}

}  // namespace

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
const GemmKernels gemm_bf16 = kernels<bfloat16>();
#elif defined(VOLTA_AMX)
const GemmKernels gemm_kernels[] = {kernels<float16>(), kernels<bfloat16>(), kernels<float>()};
const Squares squares = {multiply_erased<float>, make_left, make_right, multiply_right};
#else
void multiply_panels(const PanelProduct<float>& p) {
  if (p.squares) square_unit()->multiply(p);
  else multiply_erased(p);
}
void multiply_panels(const PanelProduct<double>& p) { multiply_erased(p); }

const GemmTable gemm_table = {kernels<float16>(), kernels<bfloat16>(), kernels<float>(),    kernels<double>(),
                              kernels<uint8_t>(), kernels<uint16_t>(), kernels<uint32_t>(), kernels<uint64_t>(),
                              kernels<uint8_t>(), kernels<uint16_t>(), kernels<uint32_t>(), kernels<uint64_t>(),
                              kernels<Boolean>()};
#endif

}  // namespace volta::cpu::VOLTA_ISA

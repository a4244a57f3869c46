// Convolution straight from the image: a tile of channels and pixels is summed in registers, tap after tap.
#include "backend/cpu/conv/plan.h"
#include "backend/cpu/gemm/kernels/micro_kernel.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int most_rows = 4, most_vectors = 8, most_lines = 4;
template <class T> constexpr int tile_vectors(int rows) {
  return sizes<T>.accumulators / rows < most_vectors ? sizes<T>.accumulators / rows : most_vectors;
}

// c[rows x n] = bias + the sum over taps; an image may be read a vector past its end.
template <class T> struct RowTile {
  const ConvPart<T>* part;
  int64_t i, place, to, n;  // first row; where the pixels lie in the image and in c; how many of a line
};

// The first n of a vector's values, n < lanes: by halves, since the parts of a line end are the same for all lines.
template <class T, int half = lanes<T> / 2>
[[gnu::always_inline]] inline void store_first(T* to, const T* values, int64_t n) {
  if (n & half) {
    __builtin_memcpy(to, values, half * sizeof(T));
    to += half, values += half;
  }
  if constexpr (half > 1) store_first<T, half / 2>(to, values, n);
}

// A tile is `vectors` wide; or, if down, a vector wide and so many lines high: a single line's few sums would be waited for.
template <class T, int rows, int vectors, bool down = false> void sum_taps(const RowTile<T>& t) {
  const ConvPart<T>& part = *t.part;
  const T* a = part.a.data + t.i * part.a.step;
  const T* image = part.image + t.place;
  const int64_t* offsets = part.offsets;
  const int64_t a_step = part.a.step, depth = part.depth, step = down ? part.row_step : lanes<T>;
  Vector<T> sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sums[r][v] = Vector<T>{} + (part.bias ? part.bias[t.i + r] : T(0));
  }
  for (int64_t p = 0; p < depth; ++p) {
    const T* from = image + offsets[p];
    Vector<T> x[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) x[v] = load(from + v * step);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const T w = a[r * a_step + p];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] += x[v] * w;
    }
  }
  const int64_t whole = down ? (t.n == lanes<T> ? vectors : 0) : t.n / lanes<T>, rest = t.n % lanes<T>;
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    T* c = part.c + (t.i + r) * part.c_step + t.to;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v, c += down ? part.row : lanes<T>) {
      if (v < whole) {
        store<T>(c, sums[r][v]);
      } else {
        T values[lanes<T>];
        store<T>(values, sums[r][v]);
        store_first<T>(c, values, rest);
      }
    }
  }
}

template <class T> struct RowTable {
  void (*across[most_rows][most_vectors])(const RowTile<T>&) = {};
  void (*down[most_rows][most_lines])(const RowTile<T>&) = {};
  constexpr RowTable() { fill<0>(); }
  template <int i> constexpr void fill() {
    if constexpr (i < most_rows * most_vectors) {
      constexpr int rows = i / most_vectors + 1, vectors = i % most_vectors + 1;
      if constexpr (vectors <= tile_vectors<T>(rows)) across[rows - 1][vectors - 1] = sum_taps<T, rows, vectors>;
      if constexpr (vectors <= most_lines) down[rows - 1][vectors - 1] = sum_taps<T, rows, vectors, true>;
      fill<i + 1>();
    }
  }
};
template <class T> constexpr RowTable<T> row_table;

// `total` in the fewest parts of at most `most`, of nearly equal size: how large those at `at` is.
inline int64_t balanced(int64_t total, int64_t most, int64_t at) {
  const int64_t parts = ceil_div(total - at, most);
  return ceil_div(total - at, parts);
}

template <class T> void correlate(const ConvPart<T>& given) {
  ConvPart<T> part = given;
  part.a = contiguous_rows(given);
  const int64_t all = part.pixels / part.row, width = ceil_div(part.row, lanes<T>);
  for (int64_t i = 0, rows; i < part.m; i += rows) {
    rows = balanced(part.m, most_rows, i);
    for (int64_t line = 0, lines; line < all; line += lines) {
      const int64_t y = line % part.rows, place = line / part.rows * part.plane_step + y * part.row_step;
      lines = 1;
      if (width == 1) {
        lines = balanced(part.rows, most_lines, y);
        row_table<T>.down[rows - 1][lines - 1]({&part, i, place, line * part.row, part.row});
        continue;
      }
      for (int64_t v = 0, vectors; v < width; v += vectors) {
        vectors = balanced(width, tile_vectors<T>(int(rows)), v);
        const int64_t j = v * lanes<T>;
        row_table<T>.across[rows - 1][vectors - 1](
            {&part, i, place + j, line * part.row + j, smaller(vectors * lanes<T>, part.row - j)});
      }
    }
  }
}

// The last n of a row's values, n < lanes, with zeros in the other lanes: from the vector that ends with them, masked, so
// that whatever the others hold does not count, or one by one where a row is shorter than a vector.
template <class T> struct RowEnd {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  Vector<Bits> mask;
  int64_t n;
  bool within;
  RowEnd(int64_t row, int64_t rest) : n(rest), within(row >= lanes<T>) {
    for (int l = 0; l < lanes<T>; ++l) mask[l] = l >= lanes<T> - rest ? -1 : 0;
  }
  [[gnu::always_inline]] Vector<T> operator()(const T* from) const {
    if (within) return Vector<T>(Vector<Bits>(load(from + n - lanes<T>)) & mask);
    Vector<T> values = {};
    for (int64_t l = 0; l < n; ++l) values[lanes<T> - n + l] = from[l];
    return values;
  }
};

// c(r, t) += the inner product of a's row r with what tap t sees, for rows x taps of them.
template <class T, int rows, int taps> void dot_rows(const ConvPart<T>& part, int64_t i, int64_t p) {
  Vector<T> sums[rows][taps] = {};
  const int64_t all = part.pixels / part.row, rest = part.row % lanes<T>;
  const RowEnd<T> end(part.row, rest);
  for (int64_t line = 0; line < all; ++line) {
    const T* a = part.a.data + i * part.a.step + line * part.row;
    const T* image = part.image + line / part.rows * part.plane_step + line % part.rows * part.row_step;
    const T* from[taps];
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) from[t] = image + part.offsets[p + t];
    int64_t j = 0;
    const auto add = [&](auto read) __attribute__((always_inline)) {
      Vector<T> g[rows];
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) g[r] = read(a + r * part.a.step + j);
#pragma GCC unroll 8
      for (int t = 0; t < taps; ++t) {
        const Vector<T> x = read(from[t] + j);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) sums[r][t] += g[r] * x;
      }
    };
    for (; j + lanes<T> <= part.row; j += lanes<T>) add([](const T* x) { return load(x); });
    if (rest > 0) add(end);
  }
  for (int r = 0; r < rows; ++r) {
    for (int t = 0; t < taps; ++t) {
      T sum = 0;
      for (int l = 0; l < lanes<T>; ++l) sum += sums[r][t][l];
      T& c = part.c[(i + r) * part.c_step + p + t];
      c = part.add ? c + sum : sum;
    }
  }
}

constexpr int most_taps = 4;
template <class T, int rows> void dot_taps(const ConvPart<T>& part, int64_t i) {
  for (int64_t p = 0, taps; p < part.depth; p += taps) {
    taps = balanced(part.depth, most_taps, p);
    if (taps == 4) dot_rows<T, rows, 4>(part, i, p);
    else if (taps == 3) dot_rows<T, rows, 3>(part, i, p);
    else if (taps == 2) dot_rows<T, rows, 2>(part, i, p);
    else dot_rows<T, rows, 1>(part, i, p);
  }
}

template <class T> void weight_gradient(const ConvPart<T>& part) {
  for (int64_t i = 0, rows; i < part.m; i += rows) {
    rows = balanced(part.m, most_rows, i);
    if (rows == 4) dot_taps<T, 4>(part, i);
    else if (rows == 3) dot_taps<T, 3>(part, i);
    else if (rows == 2) dot_taps<T, 2>(part, i);
    else dot_taps<T, 1>(part, i);
  }
}

template <class T> ConvKernels<T> kernels() {
  return {correlate<T>, weight_gradient<T>, 1, false, 1 << 19, copied_rows<T>, copy_rows<T>};
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> ConvKernels<float> conv_direct<Isa::VOLTA_ISA, float>() { return VOLTA_ISA::kernels<float>(); }
template <> ConvKernels<double> conv_direct<Isa::VOLTA_ISA, double>() { return VOLTA_ISA::kernels<double>(); }
}  // namespace volta::cpu

// Softmax, log-softmax and their gradients on rows and on tiles of columns.
#include "backend/cpu/rows.h"

#include <limits>
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/isa/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block = 512;  // elements of which a partial sum is taken; partial sums add up in double

struct Sum {
  template <class T> static constexpr T identity() { return T(0); }
  template <class V> static V map(V x) { return x; }
  template <class V> static V combine(V a, V b) { return a + b; }
};
// May lose a NaN, which then makes the sum of exponentials NaN, and with it all of the row.
struct Max : Sum {
  template <class T> static constexpr T identity() { return -std::numeric_limits<T>::infinity(); }
  template <class V> static V combine(V a, V b) { return choose(a > b, a, b); }
};

// exp(x) for x <= 0, to two ulp, and 0 below the normal numbers. Nothing can overflow, so one power of two scales it.
[[gnu::always_inline]] inline Vector<float> exp_down(Vector<float> x) {
  using V = Vector<float>;
  constexpr float least = -88.02969f;       // -127 ln 2, whose power of two comes out as the bits of 0
  constexpr float magic = 0x1.8p23f + 127;  // adding it leaves the biased exponent in the low bits
  const V inside = choose(x < least, V{} + least, x);
  const V shifted = inside * scalar::detail::log2_e<float> + magic, k = shifted - magic;
  const V r = (inside - k * scalar::detail::ln2_hi<float>)-k * scalar::detail::ln2_lo<float>, square = r * r;
  const V low = 0.49999994f + 0.16666521f * r, high = (0.04166839f + 0.008368745f * r) + 0.001381454f * square;
  const V less_one = r + square * (low + high * square);
  const V power = V(Vector<int32_t>(shifted) << 23);
  return power + power * less_one;
}
inline float exp_down(float x) { return exp_down(Vector<float>{} + x)[0]; }
[[gnu::always_inline]] inline double exp_down(double x) {
  constexpr double least = -708.3;
  const bool tiny = x < least;
  return scalar::select(tiny, 0.0, scalar::detail::exp_normal(scalar::select(tiny, least, x)));
}

// y = exp(x - minus), where `minus` is one number or a row. Four vectors at a time: their operations overlap.
template <class Minus> [[gnu::always_inline]] inline void exp_row(int64_t n, float* y, const float* x, Minus minus) {
  constexpr int64_t ways = 4, width = lanes<float>;
  const auto lowered = [=](auto read, int64_t i) {
    if constexpr (std::is_pointer_v<Minus>) return read(x + i) - read(minus + i);
    else return read(x + i) - minus;
  };
  const int64_t blocks = n / (ways * width) * (ways * width);
  for (int64_t i = 0; i < blocks; i += ways * width) {
    Vector<float> v[ways];
#pragma GCC unroll 4
    for (int64_t k = 0; k < ways; ++k) v[k] = exp_down(lowered([](const float* p) { return load(p); }, i + k * width));
#pragma GCC unroll 4
    for (int64_t k = 0; k < ways; ++k) store<float>(y + i + k * width, v[k]);
  }
  each<float>(n - blocks,
              [=](auto read, auto write, int64_t i) { write(y + blocks + i, exp_down(lowered(read, blocks + i))); });
}
template <class Minus>
[[gnu::always_inline]] inline void exp_row(int64_t n, double* __restrict y, const double* x, Minus minus) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_pointer_v<Minus>) y[i] = exp_down(x[i] - minus[i]);
    else y[i] = exp_down(x[i] - minus);
  }
}

int64_t length(int64_t n, int64_t i) { return n - i < block ? n - i : block; }

// The sum over blocks of f(i, m, buffer), which fills m elements of the buffer or of wherever it likes and says where.
template <class T, class F> [[gnu::always_inline]] inline double sum_blocks(int64_t n, F f) {
  T buffer[block];
  double total = 0;
  for (int64_t i = 0; i < n; i += block) total += double(fold_row<Sum>(length(n, i), f(i, length(n, i), buffer)));
  return total;
}

template <class T> void softmax(int64_t n, void* out, const void* in, const void*) {
  T* y = static_cast<T*>(out);
  const T* x = static_cast<const T*>(in);
  const T top = fold_row<Max>(n, x);
  const double sum = sum_blocks<T>(n, [=](int64_t i, int64_t m, T*) {
    exp_row(m, y + i, x + i, top);
    return y + i;
  });
  const T scale = T(1 / sum);
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

template <class T> void log_softmax(int64_t n, void* out, const void* in, const void*) {
  T* y = static_cast<T*>(out);
  const T* x = static_cast<const T*>(in);
  const T top = fold_row<Max>(n, x);
  const double sum = sum_blocks<T>(n, [=](int64_t i, int64_t m, T* buffer) {
    exp_row(m, buffer, x + i, top);
    return buffer;
  });
  const T log_sum = T(scalar::log(sum));
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - log_sum;
}

template <class T> void softmax_back(int64_t n, void* out, const void* gradient, const void* output) {
  T* d = static_cast<T*>(out);
  const T *g = static_cast<const T*>(gradient), *y = static_cast<const T*>(output);
  const T mean = T(sum_blocks<T>(n, [=](int64_t i, int64_t m, T* buffer) {
    for (int64_t k = 0; k < m; ++k) buffer[k] = g[i + k] * y[i + k];
    return buffer;
  }));
  for (int64_t i = 0; i < n; ++i) d[i] = y[i] * (g[i] - mean);
}

template <class T> void log_softmax_back(int64_t n, void* out, const void* gradient, const void* output) {
  T* d = static_cast<T*>(out);
  const T *g = static_cast<const T*>(gradient), *y = static_cast<const T*>(output);
  const T total = T(sum_blocks<T>(n, [=](int64_t i, int64_t, T*) { return const_cast<T*>(g) + i; }));
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = length(n, i);
    exp_row(m, d + i, y + i, T(0));
    for (int64_t k = i; k < i + m; ++k) d[k] = g[k] - d[k] * total;
  }
}

template <class T> T* row_of(char* base, int64_t stride, int64_t r) { return reinterpret_cast<T*>(base + r * stride); }

// The largest and the sum of exponentials of each column.
template <class T> struct Columns {
  T top[row_tile_width];
  double sum[row_tile_width];

  explicit Columns(int64_t width) {
    for (int64_t i = 0; i < width; ++i) top[i] = Max::identity<T>(), sum[i] = 0;
  }
  void find_top(const RowTile& t) {
    for (int64_t r = 0; r < t.n; ++r) {
      const T* x = row_of<T>(t.a, t.a_stride, r);
      for (int64_t i = 0; i < t.width; ++i) top[i] = Max::combine(top[i], x[i]);
    }
  }
};

template <class T> void softmax_columns(const RowTile& t) {
  Columns<T> c(t.width);
  c.find_top(t);
  for (int64_t r = 0; r < t.n; ++r) {
    const T* x = row_of<T>(t.a, t.a_stride, r);
    T* __restrict y = row_of<T>(t.out, t.out_stride, r);
    exp_row(t.width, y, x, static_cast<const T*>(c.top));
    for (int64_t i = 0; i < t.width; ++i) c.sum[i] += double(y[i]);
  }
  for (int64_t i = 0; i < t.width; ++i) c.top[i] = T(1 / c.sum[i]);
  for (int64_t r = 0; r < t.n; ++r) {
    T* __restrict y = row_of<T>(t.out, t.out_stride, r);
    for (int64_t i = 0; i < t.width; ++i) y[i] *= c.top[i];
  }
}

template <class T> void log_softmax_columns(const RowTile& t) {
  Columns<T> c(t.width);
  T buffer[row_tile_width];
  c.find_top(t);
  for (int64_t r = 0; r < t.n; ++r) {
    const T* x = row_of<T>(t.a, t.a_stride, r);
    exp_row(t.width, buffer, x, static_cast<const T*>(c.top));
    for (int64_t i = 0; i < t.width; ++i) c.sum[i] += double(buffer[i]);
  }
  for (int64_t i = 0; i < t.width; ++i) buffer[i] = T(scalar::log(c.sum[i]));
  for (int64_t r = 0; r < t.n; ++r) {
    const T* x = row_of<T>(t.a, t.a_stride, r);
    T* __restrict y = row_of<T>(t.out, t.out_stride, r);
    for (int64_t i = 0; i < t.width; ++i) y[i] = (x[i] - c.top[i]) - buffer[i];
  }
}

template <class T> void softmax_back_columns(const RowTile& t) {
  Columns<T> c(t.width);
  for (int64_t r = 0; r < t.n; ++r) {
    const T *g = row_of<T>(t.a, t.a_stride, r), *y = row_of<T>(t.b, t.b_stride, r);
    for (int64_t i = 0; i < t.width; ++i) c.sum[i] += double(g[i] * y[i]);
  }
  for (int64_t i = 0; i < t.width; ++i) c.top[i] = T(c.sum[i]);
  for (int64_t r = 0; r < t.n; ++r) {
    const T *g = row_of<T>(t.a, t.a_stride, r), *y = row_of<T>(t.b, t.b_stride, r);
    T* __restrict d = row_of<T>(t.out, t.out_stride, r);
    for (int64_t i = 0; i < t.width; ++i) d[i] = y[i] * (g[i] - c.top[i]);
  }
}

template <class T> void log_softmax_back_columns(const RowTile& t) {
  Columns<T> c(t.width);
  for (int64_t r = 0; r < t.n; ++r) {
    const T* g = row_of<T>(t.a, t.a_stride, r);
    for (int64_t i = 0; i < t.width; ++i) c.sum[i] += double(g[i]);
  }
  for (int64_t i = 0; i < t.width; ++i) c.top[i] = T(c.sum[i]);
  for (int64_t r = 0; r < t.n; ++r) {
    const T *g = row_of<T>(t.a, t.a_stride, r), *y = row_of<T>(t.b, t.b_stride, r);
    T* __restrict d = row_of<T>(t.out, t.out_stride, r);
    exp_row(t.width, d, y, T(0));
    for (int64_t i = 0; i < t.width; ++i) d[i] = g[i] - d[i] * c.top[i];
  }
}

}  // namespace

constinit const RowTable row_table = {{
    {{softmax<float>, softmax_columns<float>}, {softmax<double>, softmax_columns<double>}},
    {{log_softmax<float>, log_softmax_columns<float>}, {log_softmax<double>, log_softmax_columns<double>}},
    {{softmax_back<float>, softmax_back_columns<float>}, {softmax_back<double>, softmax_back_columns<double>}},
    {{log_softmax_back<float>, log_softmax_back_columns<float>},
     {log_softmax_back<double>, log_softmax_back_columns<double>}},
}};

}  // namespace volta::cpu::VOLTA_ISA

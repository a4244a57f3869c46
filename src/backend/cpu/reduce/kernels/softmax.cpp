// Softmax, log-softmax and their gradients on rows and on tiles of columns.
#include "backend/cpu/reduce/kernels.h"

#include <limits>
#include <type_traits>

#include "backend/cpu/cross_entropy/kernels.h"
#include "backend/cpu/simd/exponential.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block = 512;  // elements of which a partial sum is taken; partial sums add up in double

using Sum = Vectors<reducers::Sum>;
// May lose a NaN, which then makes the sum of exponentials NaN, and with it all of the row.
struct Max : reducers::Max {
  template <class V> static V merge(V a, V b) { return choose(a > b, a, b); }
};

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

// What an op knows of the one row it works along: the largest element, a sum, and what became of the sum.
template <class T> struct Along {
  using Number = T;
  const AxisRows& lines;
  T top = Max::start<T>(), value = 0;
  double sum = 0;

  T minus() const { return top; }  // what exp_row shall subtract
  T top_at(int64_t) const { return top; }
  T value_at(int64_t) const { return value; }
  T* row(int k, int64_t i) const { return reinterpret_cast<T*>(lines.data[k]) + i; }
  // Calls f(m, out, a, b) for m elements at a time.
  template <class F> [[gnu::always_inline]] void blocks(F f) const {
    for (int64_t i = 0; i < lines.n; i += block)
      f(lines.n - i < block ? lines.n - i : block, row(0, i), row(1, i), row(2, i));
  }
  void find_top() { top = reduce_row<Max>(lines.n, row(1, 0), lines.uncached); }
  void add(int64_t m, const T* x) { sum += double(reduce_row<Sum>(m, x)); }
  template <class F> void conclude(F f) { value = T(f(sum)); }
};

// The same of every column of a tile.
template <class T> struct Across {
  using Number = T;
  const AxisRows& lines;
  T top[AxisRows::max_width], value[AxisRows::max_width];
  double sum[AxisRows::max_width];

  explicit Across(const AxisRows& l) : lines(l) {
    for (int64_t i = 0; i < lines.width; ++i) top[i] = Max::start<T>(), sum[i] = 0;
  }
  const T* minus() const { return top; }
  T top_at(int64_t i) const { return top[i]; }
  T value_at(int64_t i) const { return value[i]; }
  T* row(int k, int64_t r) const { return reinterpret_cast<T*>(lines.data[k] + r * lines.stride[k]); }
  template <class F> [[gnu::always_inline]] void blocks(F f) const {
    for (int64_t r = 0; r < lines.n; ++r) f(lines.width, row(0, r), row(1, r), row(2, r));
  }
  void find_top() {
    blocks([&](int64_t m, T*, const T* x, const T*) {
      for (int64_t i = 0; i < m; ++i) top[i] = Max::merge(top[i], x[i]);
    });
  }
  void add(int64_t m, const T* x) {
    for (int64_t i = 0; i < m; ++i) sum[i] += double(x[i]);
  }
  template <class F> void conclude(F f) {
    for (int64_t i = 0; i < lines.width; ++i) value[i] = T(f(sum[i]));
  }
};

struct Softmax {
  template <class D, class T = typename D::Number> static void run(D& d) {
    d.find_top();
    d.blocks([&](int64_t m, T* y, const T* x, const T*) {
      exp_row(m, y, x, d.minus());
      d.add(m, y);
    });
    d.conclude([](double sum) { return 1 / sum; });
    d.blocks([&](int64_t m, T* __restrict y, const T*, const T*) {
      for (int64_t i = 0; i < m; ++i) y[i] *= d.value_at(i);
    });
  }
};

struct LogSoftmax {
  template <class D, class T = typename D::Number> static void run(D& d) {
    T buffer[block];
    d.find_top();
    d.blocks([&](int64_t m, T*, const T* x, const T*) {
      exp_row(m, buffer, x, d.minus());
      d.add(m, buffer);
    });
    d.conclude([](double sum) { return scalar::log(sum); });
    d.blocks([&](int64_t m, T* __restrict y, const T* x, const T*) {
      for (int64_t i = 0; i < m; ++i) y[i] = (x[i] - d.top_at(i)) - d.value_at(i);
    });
  }
};

struct SoftmaxBack {
  template <class D, class T = typename D::Number> static void run(D& d) {
    T buffer[block];
    d.blocks([&](int64_t m, T*, const T* g, const T* y) {
      for (int64_t i = 0; i < m; ++i) buffer[i] = g[i] * y[i];
      d.add(m, buffer);
    });
    d.conclude([](double mean) { return mean; });
    d.blocks([&](int64_t m, T* __restrict dx, const T* g, const T* y) {
      for (int64_t i = 0; i < m; ++i) dx[i] = y[i] * (g[i] - d.value_at(i));
    });
  }
};

struct LogSoftmaxBack {
  template <class D, class T = typename D::Number> static void run(D& d) {
    d.blocks([&](int64_t m, T*, const T* g, const T*) { d.add(m, g); });
    d.conclude([](double total) { return total; });
    d.blocks([&](int64_t m, T* __restrict dx, const T* g, const T* y) {
      exp_row(m, dx, y, T(0));
      for (int64_t i = 0; i < m; ++i) dx[i] = g[i] - dx[i] * d.value_at(i);
    });
  }
};

template <class Op, class D> void run(const AxisRows& lines) {
  D d{lines};
  Op::run(d);
}

template <class Op> AxisKernel of(DType t) {
  if (t == f64) return {{t, t, t}, run<Op, Along<double>>, run<Op, Across<double>>};
  return {{t, t, t}, run<Op, Along<float>>, run<Op, Across<float>>};
}

AxisKernel find(bool log, bool back, DType t) {
  if (back) return log ? of<LogSoftmaxBack>(t) : of<SoftmaxBack>(t);
  return log ? of<LogSoftmax>(t) : of<Softmax>(t);
}

template <class T> ScoreSum score_sum(int64_t n, const void* scores) {
  const T* x = static_cast<const T*>(scores);
  const T top = reduce_row<Max>(n, x);
  T buffer[block];
  double sum = 0;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    exp_row(m, buffer, x + i, top);
    sum += double(reduce_row<Sum>(m, buffer));
  }
  return {double(top), sum};
}

template <class T> void scaled_exp(int64_t n, void* out, const void* scores, double top, double factor) {
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    T* __restrict y = static_cast<T*>(out) + i;
    exp_row(m, y, static_cast<const T*>(scores) + i, T(top));
    for (int64_t k = 0; k < m; ++k) y[k] *= T(factor);
  }
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::CrossEntropyKernel volta::cpu::cross_entropy_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  if (dtype == f64) return {VOLTA_ISA::score_sum<double>, VOLTA_ISA::scaled_exp<double>};
  return {VOLTA_ISA::score_sum<float>, VOLTA_ISA::scaled_exp<float>};
}

template <>
volta::cpu::AxisKernel volta::cpu::softmax_kernel<volta::cpu::Isa::VOLTA_ISA>(bool log, bool back, DType dtype) {
  return VOLTA_ISA::find(log, back, dtype);
}

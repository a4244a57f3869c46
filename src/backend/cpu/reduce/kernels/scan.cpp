// The running reductions of rows. Sums and products of floats are carried in double and round once per element.
#include <limits>
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> using Carry = std::conditional_t<std::is_same_v<T, float>, double, T>;
template <class T> using Quad [[gnu::vector_size(16)]] = T;

// The running sum within one register.
Quad<float> scan_lanes(Quad<float> v) {
  const Quad<float> zero{};
  v += __builtin_shufflevector(zero, v, 3, 4, 5, 6);
  v += __builtin_shufflevector(zero, v, 2, 3, 4, 5);
  return v;
}
Quad<double> scan_lanes(Quad<double> v) { return v + __builtin_shufflevector(Quad<double>{}, v, 1, 2); }

// Scans: the state before the first element, the state after another, and what comes out then. Some take a stretch of a
// row faster than one by one, and say how uncached they came.
template <class T> struct Sum {
  using Number = T;
  using S = State<Carry<T>>;
  static S none() { return {0}; }
  static S next(S sum, T x, int64_t) { return {sum.a + x}; }
  static T result(S sum) { return T(sum.a); }
  // Four registers at a time are scanned on their own; only the carry waits for what came before.
  static int64_t stretch(int64_t n, T* y, const T* x, S& sum, bool uncached) {
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int width = int(16 / sizeof(T)), ways = 4;
      for (; i + ways * width <= n; i += ways * width) {
        if (uncached) prefetch_ahead<ways * 16>(x + i);
        Quad<T> v[ways];
        T before = 0;
        const T base = T(sum.a);
#pragma GCC unroll 4
        for (int k = 0; k < ways; ++k) {
          __builtin_memcpy(&v[k], x + i + k * width, 16);
          v[k] = scan_lanes(v[k]) + before;
          before = v[k][width - 1];
        }
#pragma GCC unroll 4
        for (int k = 0; k < ways; ++k) {
          const Quad<T> total = v[k] + base;
          __builtin_memcpy(y + i + k * width, &total, 16);
        }
        sum.a += before;
      }
    }
    return i;
  }
};

template <class T> struct Prod {
  using Number = T;
  using S = State<Carry<T>>;
  static S none() { return {1}; }
  static S next(S product, T x, int64_t) { return {product.a * x}; }
  static T result(S product) { return T(product.a); }
};

// The best so uncached and where it last stood; a NaN is better than any number.
template <class T, bool Largest> struct Best {
  using Number = T;
  using S = State<T, int64_t>;
  static S none() { return {Largest ? lowest<T>() : highest<T>(), 0}; }
  static S next(S best, T x, int64_t index) {
    const bool take = (Largest ? x >= best.a : x <= best.a) | (x != x);
    return {take ? x : best.a, take ? index : best.b};
  }
  static T result(S best) { return best.a; }
};

// The largest so uncached, m, and the sum of exp(x - m); where m is not finite, of exp(x).
template <class T> struct LogSumExp {
  using Number = T;
  using S = State<T, T>;
  static T shift(T top) { return scalar::select(scalar::isfinite(top), top, T(0)); }
  static S none() { return {lowest<T>(), 0}; }
  static S next(S s, T x, int64_t) {
    const T m = scalar::max(s.a, x);
    return {m, s.b * scalar::select(s.a == m, T(1), scalar::exp(s.a - m)) + scalar::exp(x - shift(m))};
  }
  static T result(S s) { return scalar::log(s.b) + shift(s.a); }
  // Where the largest of a block is hardly above the result so uncached, one shift serves the whole block and costs no
  // digits: the exponentials and logarithms are then taken by vectors, and only the sum is sequential.
  static bool take_block(int64_t n, T* y, const T* x, S& s) {
    constexpr T reach = 1;
    T m = s.a;
    for (int64_t i = 0; i < n; ++i) m = scalar::max(m, x[i]);
    if (!(s.b > T(0)) || !(s.a + scalar::log(s.b) >= m - reach) || !scalar::isfinite(m)) return false;
    Carry<T> running = s.b * scalar::exp(s.a - m);
    for (int64_t i = 0; i < n; ++i) y[i] = scalar::exp(x[i] - m);
    for (int64_t i = 0; i < n; ++i) y[i] = T(running += y[i]);
    s = {m, y[n - 1]};
    for (int64_t i = 0; i < n; ++i) y[i] = scalar::log(y[i]) + m;
    return true;
  }
  static int64_t stretch(int64_t n, T* y, const T* x, S& s, bool) {
    constexpr int64_t block = 32;
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      if (take_block(m, y + i, x + i, s)) continue;
      for (int64_t k = i; k < i + m; ++k) y[k] = result(s = next(s, x[k], 0));
    }
    return n;
  }
};

template <class F> constexpr bool indexed = std::is_same_v<decltype(F::S::b), int64_t>;

template <class F> void along(const AxisRows& lines) {
  using T = typename F::Number;
  auto* y = reinterpret_cast<T*>(lines.data[0]);
  const auto* x = reinterpret_cast<const T*>(lines.data[1]);
  auto s = lines.begins ? F::none() : F::S::get(lines.state, 0);
  int64_t i = 0;
  if constexpr (requires { F::stretch; }) i = F::stretch(lines.n, y, x, s, lines.uncached);
  for (; i < lines.n; ++i) {
    s = F::next(s, x[i], lines.first + i * lines.step);
    y[i] = F::result(s);
    if constexpr (indexed<F>) reinterpret_cast<int64_t*>(lines.data[2])[i] = s.b;
  }
  s.put(lines.state, 0);
}

template <class F> void across(const AxisRows& lines) {
  using T = typename F::Number;
  const ReduceState state = lines.state;
  for (int64_t i = 0; lines.begins && i < lines.width; ++i) F::none().put(state, i);
  for (int64_t r = 0; r < lines.n; ++r) {
    auto* __restrict y = reinterpret_cast<T*>(lines.data[0] + r * lines.stride[0]);
    const auto* x = reinterpret_cast<const T*>(lines.data[1] + r * lines.stride[1]);
    const int64_t index = lines.first + r * lines.step, width = lines.width;
    for (int64_t i = 0; i < width; ++i) {
      const auto s = F::next(F::S::get(state, i), x[i], index);
      s.put(state, i);
      y[i] = F::result(s);
    }
    if constexpr (indexed<F>)
      __builtin_memcpy(lines.data[2] + r * lines.stride[2], state.part[1], size_t(width) * sizeof(int64_t));
  }
}

template <class F> AxisKernel describe(DType t) {
  const DType seen = kernel_dtype<typename F::Number>(t);
  return {{seen, seen, i64}, along<F>, across<F>};
}

AxisKernel find(Scan scan, DType t) {
  switch (scan) {
    case Scan::sum: return of_number(t, [=]<class T>(TypeTag<T>) { return describe<Sum<T>>(t); });
    case Scan::prod: return of_number(t, [=]<class T>(TypeTag<T>) { return describe<Prod<T>>(t); });
    case Scan::max: return of_ordered(t, [=]<class T>(TypeTag<T>) { return describe<Best<T, true>>(t); });
    case Scan::min: return of_ordered(t, [=]<class T>(TypeTag<T>) { return describe<Best<T, false>>(t); });
    case Scan::logsumexp: break;
  }
  return of_real(t, [=]<class T>(TypeTag<T>) { return describe<LogSumExp<T>>(t); });
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::AxisKernel volta::cpu::scan_kernel<volta::cpu::Isa::VOLTA_ISA>(Scan scan, DType dtype) {
  return VOLTA_ISA::find(scan, dtype);
}

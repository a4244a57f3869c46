// The running reductions of rows. Sums and products of floats are carried in double and round once per element.
#include "backend/cpu/kernels.h"

#include <limits>
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/isa/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> using Carry = std::conditional_t<std::is_same_v<T, float>, double, T>;
template <class T> using Quad [[gnu::vector_size(16)]] = T;

// The running sum within one register.
Quad<float> scan_lanes(Quad<float> v) {
  const Quad<float> zero{};
  v += __builtin_shufflevector(v, zero, 4, 0, 1, 2);
  v += __builtin_shufflevector(v, zero, 4, 5, 0, 1);
  return v;
}
Quad<double> scan_lanes(Quad<double> v) { return v + __builtin_shufflevector(v, Quad<double>{}, 2, 0); }

// Scans: what they carry from one element to the next, and what comes out at an element. Some take a stretch of a row
// faster than one by one, and say how far they came.
template <class T> struct Sum {
  using Number = T;
  using First = Carry<T>;
  using Second = T;
  static void start(First& sum, Second&) { sum = 0; }
  static T next(T x, int64_t, First& sum, Second&) { return T(sum += x); }
  // Four registers at a time are scanned on their own; only the carry waits for what came before.
  static int64_t stretch(int64_t n, T* y, const T* x, First& sum, Second&) {
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int width = int(16 / sizeof(T)), ways = 4;
      for (; i + ways * width <= n; i += ways * width) {
        Quad<T> v[ways];
        T before = 0;
        const T base = T(sum);
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
        sum += before;
      }
    }
    return i;
  }
};

template <class T> struct Prod {
  using Number = T;
  using First = Carry<T>;
  using Second = T;
  static void start(First& product, Second&) { product = 1; }
  static T next(T x, int64_t, First& product, Second&) { return T(product *= x); }
};

// The best so far and where it last stood; a NaN is better than any number.
template <class T, bool Largest> struct Best {
  using Number = T;
  using First = T;
  using Second = int64_t;
  static void start(First& best, Second& where) {
    best = Largest ? lowest<T>() : highest<T>();
    where = 0;
  }
  static T next(T x, int64_t index, First& best, Second& where) {
    const bool take = (Largest ? x >= best : x <= best) | (x != x);
    best = take ? x : best;
    where = take ? index : where;
    return best;
  }
};

// The largest so far, m, and the sum of exp(x - m); where m is not finite, of exp(x).
template <class T> struct LogSumExp {
  using Number = T;
  using First = T;
  using Second = T;
  static void start(First& top, Second& sum) { top = lowest<T>(), sum = 0; }
  static T next(T x, int64_t, First& top, Second& sum) {
    const T m = scalar::max(top, x), shift = scalar::select(scalar::isfinite(m), m, T(0));
    sum = sum * scalar::select(top == m, T(1), scalar::exp(top - m)) + scalar::exp(x - shift);
    top = m;
    return scalar::log(sum) + shift;
  }
  // Where the largest of a block is not far above what came before, one shift serves the whole block and nothing
  // underflows: the exponentials and logarithms are then taken by vectors, and only the sum is sequential.
  static bool take_block(int64_t n, T* y, const T* x, T& top, T& sum) {
    constexpr T reach = 30;
    T m = top;
    for (int64_t i = 0; i < n; ++i) m = scalar::max(m, x[i]);
    const T level = scalar::max(x[0], top + scalar::log(sum));
    if (!(level >= m - reach) || !scalar::isfinite(m)) return false;
    Carry<T> running = sum > T(0) ? Carry<T>(sum * scalar::exp(top - m)) : Carry<T>(0);
    for (int64_t i = 0; i < n; ++i) y[i] = scalar::exp(x[i] - m);
    for (int64_t i = 0; i < n; ++i) y[i] = T(running += y[i]);
    top = m;
    sum = y[n - 1];
    for (int64_t i = 0; i < n; ++i) y[i] = scalar::log(y[i]) + m;
    return true;
  }
  static int64_t stretch(int64_t n, T* y, const T* x, First& top, Second& sum) {
    constexpr int64_t block = 256;
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      if (take_block(m, y + i, x + i, top, sum)) continue;
      for (int64_t k = i; k < i + m; ++k) y[k] = next(x[k], 0, top, sum);
    }
    return n;
  }
};

template <class S> constexpr bool indexed = std::is_same_v<typename S::Second, int64_t>;

template <class S> void along(const Lines& lines) {
  using T = typename S::Number;
  auto* y = reinterpret_cast<T*>(lines.data[0]);
  const auto* x = reinterpret_cast<const T*>(lines.data[1]);
  auto* where = reinterpret_cast<int64_t*>(lines.data[2]);
  auto& first = *reinterpret_cast<typename S::First*>(lines.state);
  auto& second = *reinterpret_cast<typename S::Second*>(lines.state + 8);
  auto a = first;
  auto b = second;
  if (lines.begins) S::start(a, b);
  int64_t i = 0;
  if constexpr (requires { S::stretch; }) i = S::stretch(lines.n, y, x, a, b);
  for (; i < lines.n; ++i) {
    y[i] = S::next(x[i], lines.first + i * lines.step, a, b);
    if constexpr (indexed<S>) where[i] = b;
  }
  first = a;
  second = b;
}

template <class S> void across(const Lines& lines) {
  using T = typename S::Number;
  auto* __restrict a = reinterpret_cast<typename S::First*>(lines.state);
  auto* __restrict b = reinterpret_cast<typename S::Second*>(lines.state + 8 * lines.width);
  for (int64_t i = 0; lines.begins && i < lines.width; ++i) S::start(a[i], b[i]);
  for (int64_t r = 0; r < lines.n; ++r) {
    auto* __restrict y = reinterpret_cast<T*>(lines.data[0] + r * lines.stride[0]);
    const auto* x = reinterpret_cast<const T*>(lines.data[1] + r * lines.stride[1]);
    const int64_t index = lines.first + r * lines.step, width = lines.width;
    for (int64_t i = 0; i < width; ++i) y[i] = S::next(x[i], index, a[i], b[i]);
    if constexpr (indexed<S>) __builtin_memcpy(lines.data[2] + r * lines.stride[2], b, size_t(width) * sizeof(int64_t));
  }
}

template <class S> LineKernel describe(DType t) {
  const DType seen = kernel_dtype<typename S::Number>(t);
  return {{seen, seen, i64}, along<S>, across<S>};
}

LineKernel find(Scan scan, DType t) {
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

template <> volta::cpu::LineKernel volta::cpu::scan_kernel<volta::cpu::Isa::VOLTA_ISA>(Scan scan, DType dtype) {
  return VOLTA_ISA::find(scan, dtype);
}

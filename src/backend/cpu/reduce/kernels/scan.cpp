// The running reductions of rows. Sums and products of floats are carried in double and round once per element.
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

using reducers::LogSumExp;

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

template <class T> bool all_zero(Quad<T> v) {
  T sum = 0;
  for (int i = 0; i < int(16 / sizeof(T)); ++i) sum += v[i];
  return sum == 0;
}

// The sums of a stretch of a row, and how long it is. Four registers at a time are scanned on their own; only the carry
// waits for what came before. A block in which a sum leaves the range of T, as the carry may not, is redone one by one.
template <class T, class C> int64_t sum_stretch(int64_t n, T* y, const T* x, C& sum, bool uncached) {
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int width = int(16 / sizeof(T)), ways = 4, group = ways * width, block = 32 * group;
    while (i + group <= n) {
      const int64_t begin = i, end = i + (n - i < block ? (n - i) / group * group : block);
      const C start = sum;
      Quad<T> strange[ways]{};  // 0, and NaN once a sum is not finite
      for (; i < end; i += group) {
        if (uncached) prefetch_ahead<ways * 16>(x + i);
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
          strange[k] += total * T(0);
        }
        sum += before;
      }
      if (all_zero<T>((strange[0] + strange[1]) + (strange[2] + strange[3]))) continue;
      sum = start;
      for (int64_t k = begin; k < end; ++k) y[k] = T(sum += C(x[k]));
    }
  }
  return i;
}

// Where the largest of a block is hardly above the result so far, one shift serves the whole block and costs no digits:
// the exponentials and logarithms are then taken by vectors, and only the sum is sequential.
template <class T> bool take_block(int64_t n, T* y, const T* x, LogSumExp::State<T>& s) {
  constexpr T reach = 1;
  T m = s.top;
  for (int64_t i = 0; i < n; ++i) m = scalar::max(m, x[i]);
  if (!(s.sum > T(0)) || !(s.top + scalar::log(s.sum) >= m - reach) || !scalar::isfinite(m)) return false;
  Carry<T> running = s.sum * scalar::exp(s.top - m);
  for (int64_t i = 0; i < n; ++i) y[i] = scalar::exp(x[i] - m);
  for (int64_t i = 0; i < n; ++i) y[i] = T(running += y[i]);
  s = {m, y[n - 1]};
  for (int64_t i = 0; i < n; ++i) y[i] = scalar::log(y[i]) + m;
  return true;
}
template <class T> int64_t exponential_stretch(int64_t n, T* y, const T* x, LogSumExp::State<T>& s) {
  constexpr int64_t block = 32;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    if (take_block(m, y + i, x + i, s)) continue;
    for (int64_t k = i; k < i + m; ++k) y[k] = LogSumExp::finish(s = LogSumExp::next(s, x[k], 0));
  }
  return n;
}

template <class R, class T> struct Loops {
  // Sums and products of floats are carried in double.
  using C = std::conditional_t<R::elements == reducers::Elements::number, Carry<T>, T>;
  using S = typename R::template State<C>;
  static S next(S s, T x, int64_t index) { return Reducing<R>::template next<C>(s, C(x), index, 0); }

  [[gnu::flatten]] static void along(const AxisRows& lines) {
    auto* y = reinterpret_cast<T*>(lines.data[0]);
    const auto* x = reinterpret_cast<const T*>(lines.data[1]);
    S s = lines.begins ? R::template start<C>() : get<S>(lines.state, 0);
    int64_t i = 0;
    if constexpr (std::is_same_v<R, reducers::Sum>) i = sum_stretch(lines.n, y, x, s, lines.uncached);
    if constexpr (std::is_same_v<R, LogSumExp>) i = exponential_stretch(lines.n, y, x, s);
    for (; i < lines.n; ++i) {
      s = next(s, x[i], lines.first + i * lines.step);
      y[i] = T(R::finish(s));
      if constexpr (R::indexed) reinterpret_cast<int64_t*>(lines.data[2])[i] = s.index;
    }
    put<S>(s, lines.state, 0);
  }
  [[gnu::flatten]] static void across(const AxisRows& lines) {
    const ReduceState state = lines.state;
    for (int64_t i = 0; lines.begins && i < lines.width; ++i) put<S>(R::template start<C>(), state, i);
    for (int64_t r = 0; r < lines.n; ++r) {
      auto* __restrict y = reinterpret_cast<T*>(lines.data[0] + r * lines.stride[0]);
      const auto* x = reinterpret_cast<const T*>(lines.data[1] + r * lines.stride[1]);
      const int64_t index = lines.first + r * lines.step, width = lines.width;
      for (int64_t i = 0; i < width; ++i) {
        const S s = next(get<S>(state, i), x[i], index);
        put<S>(s, state, i);
        y[i] = T(R::finish(s));
      }
      if constexpr (R::indexed)
        __builtin_memcpy(lines.data[2] + r * lines.stride[2], state.part[1], size_t(width) * sizeof(int64_t));
    }
  }
};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::AxisKernel volta::cpu::scan_kernel<volta::cpu::Isa::VOLTA_ISA>(int reducer, DType dtype) {
  return at_index<AxisKernel>(Scans{}, reducer, [=]<class R>(TypeTag<R>) {
    return VOLTA_ISA::of_elements<R>(dtype, [=]<class T>(TypeTag<T>) -> AxisKernel {
      const DType seen = VOLTA_ISA::kernel_dtype<T>(dtype);
      return {{seen, seen, i64}, VOLTA_ISA::Loops<R, T>::along, VOLTA_ISA::Loops<R, T>::across};
    });
  });
}

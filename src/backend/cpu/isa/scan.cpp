// The running reductions of rows. Sums and products of floats are carried in double and round once per element.
#include "backend/cpu/scan.h"

#include <limits>
#include <type_traits>

#include <volta/scalar.h>

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

template <class T> struct Sum {
  using Input = T;
  static void start(int64_t n, const ScanState& s) {
    for (int64_t i = 0; i < n; ++i) static_cast<Carry<T>*>(s.first)[i] = 0;
  }
  // Four registers at a time are scanned on their own; only the carry waits for what came before.
  static int64_t blocks(int64_t n, T* y, const T* x, Carry<T>& carry) {
    int64_t i = 0;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int width = int(16 / sizeof(T)), ways = 4;
      for (; i + ways * width <= n; i += ways * width) {
        Quad<T> v[ways];
        T before = 0;
        const T base = T(carry);
#pragma GCC unroll 4
        for (int k = 0; k < ways; ++k) {
          __builtin_memcpy(&v[k], x + i + k * width, 16);
          v[k] = scan_lanes(v[k]) + before;
          before = v[k][width - 1];
        }
#pragma GCC unroll 4
        for (int k = 0; k < ways; ++k) {
          const Quad<T> sum = v[k] + base;
          __builtin_memcpy(y + i + k * width, &sum, 16);
        }
        carry += before;
      }
    }
    return i;
  }
  static void along(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t, int64_t) {
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    Carry<T> carry = *static_cast<Carry<T>*>(s.first);
    for (int64_t i = blocks(n, y, x, carry); i < n; ++i) y[i] = T(carry += x[i]);
    *static_cast<Carry<T>*>(s.first) = carry;
  }
  static void across(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t) {
    T* __restrict y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    Carry<T>* __restrict carry = static_cast<Carry<T>*>(s.first);
    for (int64_t i = 0; i < n; ++i) y[i] = T(carry[i] += x[i]);
  }
};

template <class T> struct Prod {
  using Input = T;
  static void start(int64_t n, const ScanState& s) {
    for (int64_t i = 0; i < n; ++i) static_cast<Carry<T>*>(s.first)[i] = 1;
  }
  static void along(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t, int64_t) {
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    Carry<T> carry = *static_cast<Carry<T>*>(s.first);
    for (int64_t i = 0; i < n; ++i) y[i] = T(carry *= x[i]);
    *static_cast<Carry<T>*>(s.first) = carry;
  }
  static void across(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t) {
    T* __restrict y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    Carry<T>* __restrict carry = static_cast<Carry<T>*>(s.first);
    for (int64_t i = 0; i < n; ++i) y[i] = T(carry[i] *= x[i]);
  }
};

// The best so far and where it last stood; a NaN is better than any number.
template <class T, bool Largest> struct Best {
  using Input = T;
  static bool takes(T x, T best) { return (Largest ? x >= best : x <= best) | (x != x); }
  static void start(int64_t n, const ScanState& s) {
    using Limits = std::numeric_limits<T>;
    constexpr T top = std::is_floating_point_v<T> ? Limits::infinity() : Limits::max();
    constexpr T bottom = std::is_floating_point_v<T> ? -Limits::infinity() : Limits::lowest();
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(s.first)[i] = Largest ? bottom : top;
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(s.second)[i] = 0;
  }
  static void along(int64_t n, void* out, int64_t* indices, const void* in, const ScanState& s, int64_t first,
                    int64_t step) {
    T best = *static_cast<T*>(s.first);
    int64_t where = *static_cast<int64_t*>(s.second);
    for (int64_t i = 0; i < n; ++i) {
      const T x = static_cast<const T*>(in)[i];
      const bool take = takes(x, best);
      best = take ? x : best;
      where = take ? first + i * step : where;
      static_cast<T*>(out)[i] = best;
      indices[i] = where;
    }
    *static_cast<T*>(s.first) = best;
    *static_cast<int64_t*>(s.second) = where;
  }
  static void across(int64_t n, void* out, int64_t* indices, const void* in, const ScanState& s, int64_t index) {
    const T* x = static_cast<const T*>(in);
    T* __restrict best = static_cast<T*>(s.first);
    int64_t* __restrict where = static_cast<int64_t*>(s.second);
    for (int64_t i = 0; i < n; ++i) {
      const bool take = takes(x[i], best[i]);
      best[i] = take ? x[i] : best[i];
      where[i] = take ? index : where[i];
    }
    __builtin_memcpy(out, best, size_t(n) * sizeof(T));
    __builtin_memcpy(indices, where, size_t(n) * sizeof(int64_t));
  }
};
template <class T> using Largest = Best<T, true>;
template <class T> using Smallest = Best<T, false>;

// The largest so far, m, and the sum of exp(x - m); where m is not finite, of exp(x).
template <class T> struct LogSumExp {
  using Input = T;
  static void start(int64_t n, const ScanState& s) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(s.first)[i] = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(s.second)[i] = 0;
  }
  static T next(T x, T& top, T& sum) {
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
  static void along(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t, int64_t) {
    constexpr int64_t block = 256;
    T* y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    T top = *static_cast<T*>(s.first), sum = *static_cast<T*>(s.second);
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      if (take_block(m, y + i, x + i, top, sum)) continue;
      for (int64_t k = i; k < i + m; ++k) y[k] = next(x[k], top, sum);
    }
    *static_cast<T*>(s.first) = top;
    *static_cast<T*>(s.second) = sum;
  }
  static void across(int64_t n, void* out, int64_t*, const void* in, const ScanState& s, int64_t) {
    T* __restrict y = static_cast<T*>(out);
    const T* x = static_cast<const T*>(in);
    T* __restrict top = static_cast<T*>(s.first);
    T* __restrict sum = static_cast<T*>(s.second);
    for (int64_t i = 0; i < n; ++i) y[i] = next(x[i], top[i], sum[i]);
  }
};

template <class K> ScanKernel describe(DType dtype = dtype_of<typename K::Input>()) {
  return {dtype, dtype, K::start, K::along, K::across};
}

template <template <class> class K> ScanKernel of_reals(DType t) {
  return t == f64 ? describe<K<double>>() : describe<K<float>>();
}

// Integers add and multiply as 64-bit numbers that wrap around, signed or not.
template <template <class> class K> ScanKernel of_numbers(DType t) {
  return is_floating(t) ? of_reals<K>(t) : describe<K<uint64_t>>(t == u64 ? u64 : i64);
}

template <template <class> class K> ScanKernel of_ordered(DType t) {
  switch (t) {
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: return of_reals<K>(t);
    case DType::u64: return describe<K<uint64_t>>();
    case DType::u32:
    case DType::i64: return describe<K<int64_t>>();
    default: return describe<K<int32_t>>();
  }
}

ScanKernel find(Scan scan, DType t) {
  switch (scan) {
    case Scan::sum: return of_numbers<Sum>(t);
    case Scan::prod: return of_numbers<Prod>(t);
    case Scan::max: return of_ordered<Largest>(t);
    case Scan::min: return of_ordered<Smallest>(t);
    case Scan::logsumexp: break;
  }
  return of_reals<LogSumExp>(t);
}

}  // namespace

constinit const ScanTable scan_table = {find};

}  // namespace volta::cpu::VOLTA_ISA

// Vectors of the widest registers of an instruction set, as the row kernels use them, and the types and states they compute in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#ifdef __aarch64__
#include <arm_neon.h>
#endif

#include "backend/cpu/prefetch.h"

#include "backend/cpu/reduce/kernels.h"
#include "math/inner.h"
#include "math/reducers.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX2__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif

template <class T> using Vector [[gnu::vector_size(register_bytes)]] = T;
template <class T> constexpr int lanes = register_bytes / int(sizeof(T));
template <class T, int n> using Some [[gnu::vector_size(n * sizeof(T))]] = T;

template <class T> [[gnu::always_inline]] inline Vector<T> load(const T* x) {
  Vector<T> v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
template <class T> [[gnu::always_inline]] inline void store(T* x, Vector<T> v) { __builtin_memcpy(x, &v, sizeof v); }

using reducers::choose;
using reducers::lowest;

// Calls f(read, write, i) for n elements: by vectors, then one by one for the rest.
template <class T, class F> [[gnu::always_inline]] inline void each(int64_t n, F f) {
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>)
    f([](const T* x) { return load(x); }, [](T* x, Vector<T> v) { store<T>(x, v); }, i);
  for (; i < n; ++i) f([](const T* x) { return *x; }, [](T* x, T v) { *x = v; }, i);
}

// A reducer whose lift and merge take vectors and numbers alike.
template <class R> struct Vectors : R {
  template <class V> [[gnu::always_inline]] static V merge(V a, V b) {
#ifdef __aarch64__  // has instructions that give the larger or smaller of two, a NaN if there is one
    constexpr bool largest = std::is_base_of_v<reducers::Max, R>;
    if constexpr (largest || std::is_base_of_v<reducers::Min, R>) {
      if constexpr (std::is_same_v<V, Vector<float>>) return largest ? V(vmaxq_f32(a, b)) : V(vminq_f32(a, b));
      if constexpr (std::is_same_v<V, Vector<double>>) return largest ? V(vmaxq_f64(a, b)) : V(vminq_f64(a, b));
    }
#endif
    return R::merge(a, b);
  }
};

// Reduces a row by several independent vectors of partial results. It may be uncached, beyond the caches.
template <class F, class T> [[gnu::always_inline]] inline T reduce_row(int64_t n, const T* x, bool uncached = false) {
  constexpr int ways = 8, width = lanes<T>, step = ways * width;
  int64_t i = 0;
  T result = F::template start<T>();
  if (n >= step) {
    Vector<T> acc[ways];
#pragma GCC unroll 8
    for (int k = 0; k < ways; ++k) acc[k] = F::lift(load(x + k * width));
    for (i = step; i + step <= n; i += step) {
      if (uncached) prefetch_ahead<step * int64_t(sizeof(T))>(x + i);
#pragma GCC unroll 8
      for (int k = 0; k < ways; ++k) acc[k] = F::merge(acc[k], F::lift(load(x + i + k * width)));
    }
#pragma GCC unroll 4
    for (int half = ways / 2; half > 0; half /= 2)
#pragma GCC unroll 4
      for (int k = 0; k < half; ++k) acc[k] = F::merge(acc[k], acc[k + half]);
    for (; i + width <= n; i += width) acc[0] = F::merge(acc[0], F::lift(load(x + i)));
    T lane[width];
    __builtin_memcpy(lane, &acc[0], sizeof lane);
    for (int half = width / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lane[k] = F::merge(lane[k], lane[k + half]);
    result = lane[0];
  }
  for (; i < n; ++i) result = F::merge(result, F::lift(x[i]));
  return result;
}

// f(TypeTag<T>) for the type T in which a reducer computes elements of a dtype.
template <class R, class F> auto of_elements(DType t, F f) {
  constexpr auto kind = R::elements;
  if constexpr (kind == reducers::Elements::truth) return f(TypeTag<uint8_t>{});
  else if (t == f64) return f(TypeTag<double>{});
  else if constexpr (kind == reducers::Elements::real) return f(TypeTag<float>{});
  else if (is_floating(t)) return f(TypeTag<float>{});
  else if (kind == reducers::Elements::number || t == u64) return f(TypeTag<uint64_t>{});
  else return t == u32 || t == i64 ? f(TypeTag<int64_t>{}) : f(TypeTag<int32_t>{});
}

// The dtype as which a kernel sees elements of dtype t that it takes as T.
template <class T> DType kernel_dtype(DType t) {
  if constexpr (std::is_same_v<T, uint8_t>) return boolean;
  else if constexpr (std::is_same_v<T, uint64_t>) return t == u64 ? u64 : i64;
  else return dtype_of<T>();
}

template <class T> T* part(ReduceState s, int i) { return reinterpret_cast<T*>(s.part[i]); }

// The state of one result is a number, or a struct of two or three, each of which lies in an array of its own.
struct Anything {
  template <class T> operator T() const;
};
template <class S> constexpr int count_parts() {
  if constexpr (std::is_arithmetic_v<S>) return 1;
  else return 2 + requires(Anything x) {
      S{x, x, x};
    };
}
template <class S, class F> [[gnu::always_inline]] inline void for_parts(S& s, F f) {
  if constexpr (count_parts<S>() == 1) {
    f(s, 0);
  } else if constexpr (count_parts<S>() == 2) {
    auto& [a, b] = s;
    f(a, 0), f(b, 1);
  } else {
    auto& [a, b, c] = s;
    f(a, 0), f(b, 1), f(c, 2);
  }
}
template <class S> [[gnu::always_inline]] inline S get(ReduceState from, int64_t i) {
  S s;
  for_parts(s, [=]<class P>(P& x, int k) { x = part<P>(from, k)[i]; });
  return s;
}
template <class S> [[gnu::always_inline]] inline void put(S s, ReduceState to, int64_t i) {
  for_parts(s, [=]<class P>(P& x, int k) { part<P>(to, k)[i] = x; });
}

template <class T> const T* row_at(const void* in, int64_t stride, int64_t r) {
  return reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride);
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

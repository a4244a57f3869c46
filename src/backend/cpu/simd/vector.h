// Vectors of the widest registers of an instruction set, as the row kernels use them, and the types and states they compute in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backend/cpu/prefetch.h"

#include "backend/cpu/reduce/kernels.h"
#include "math/inner.h"

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

// a where the mask holds, else b, for numbers and for vectors. By masks: of a conditional expression compilers may
// invert the comparison, which for floats takes five instructions more.
template <class M, class V> [[gnu::always_inline]] inline V choose(M mask, V a, V b) {
  if constexpr (std::is_arithmetic_v<V>) return mask ? a : b;
  else return V((M(a) & mask) | (M(b) & ~mask));
}

// Calls f(read, write, i) for n elements: by vectors, then one by one for the rest.
template <class T, class F> [[gnu::always_inline]] inline void each(int64_t n, F f) {
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>)
    f([](const T* x) { return load(x); }, [](T* x, Vector<T> v) { store<T>(x, v); }, i);
  for (; i < n; ++i) f([](const T* x) { return *x; }, [](T* x, T v) { *x = v; }, i);
}

// Folds a row by several independent vectors of partial results: `map` and `combine` take vectors and numbers alike. A
// row may be uncached, beyond the caches.
template <class F, class T> [[gnu::always_inline]] inline T reduce_row(int64_t n, const T* x, bool uncached = false) {
  constexpr int ways = 8, width = lanes<T>, step = ways * width;
  int64_t i = 0;
  T result = F::template identity<T>();
  if (n >= step) {
    Vector<T> acc[ways];
#pragma GCC unroll 8
    for (int k = 0; k < ways; ++k) acc[k] = F::map(load(x + k * width));
    for (i = step; i + step <= n; i += step) {
      if (uncached) prefetch_ahead<step * int64_t(sizeof(T))>(x + i);
#pragma GCC unroll 8
      for (int k = 0; k < ways; ++k) acc[k] = F::combine(acc[k], F::map(load(x + i + k * width)));
    }
#pragma GCC unroll 4
    for (int half = ways / 2; half > 0; half /= 2)
#pragma GCC unroll 4
      for (int k = 0; k < half; ++k) acc[k] = F::combine(acc[k], acc[k + half]);
    for (; i + width <= n; i += width) acc[0] = F::combine(acc[0], F::map(load(x + i)));
    T lane[width];
    __builtin_memcpy(lane, &acc[0], sizeof lane);
    for (int half = width / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lane[k] = F::combine(lane[k], lane[k + half]);
    result = lane[0];
  }
  for (; i < n; ++i) result = F::combine(result, F::map(x[i]));
  return result;
}

template <class T> constexpr T highest() {
  using Limits = std::numeric_limits<T>;
  return std::is_floating_point_v<T> ? Limits::infinity() : Limits::max();
}
template <class T> constexpr T lowest() {
  return std::is_floating_point_v<T> ? -highest<T>() : std::numeric_limits<T>::lowest();
}

// f(TypeTag<T>) for the type T in which elements of a dtype are computed: as reals; as numbers, where integers add and
// multiply as 64-bit numbers that wrap around, signed or not; and where only their order counts.
template <class F> auto of_real(DType t, F f) { return t == f64 ? f(TypeTag<double>{}) : f(TypeTag<float>{}); }
template <class F> auto of_number(DType t, F f) { return is_floating(t) ? of_real(t, f) : f(TypeTag<uint64_t>{}); }
template <class F> auto of_ordered(DType t, F f) {
  if (is_floating(t)) return of_real(t, f);
  if (t == u64) return f(TypeTag<uint64_t>{});
  return t == u32 || t == i64 ? f(TypeTag<int64_t>{}) : f(TypeTag<int32_t>{});
}

// The dtype as which a kernel sees elements of dtype t that it takes as T.
template <class T> DType kernel_dtype(DType t) {
  if constexpr (std::is_same_v<T, uint8_t>) return boolean;
  else if constexpr (std::is_same_v<T, uint64_t>) return t == u64 ? u64 : i64;
  else return dtype_of<T>();
}

template <class T> T* part(ReduceState s, int i) { return reinterpret_cast<T*>(s.part[i]); }

// The state of one result: as many numbers as a reduction has parts.
struct Nothing {};
template <class A, class B = Nothing, class C = Nothing> struct State {
  static constexpr int parts = std::is_empty_v<B> ? 1 : std::is_empty_v<C> ? 2 : 3;
  static constexpr int size[] = {sizeof(A), sizeof(B), sizeof(C)};
  A a;
  [[no_unique_address]] B b{};
  [[no_unique_address]] C c{};

  [[gnu::always_inline]] static State get(ReduceState s, int64_t i) {
    State v{part<A>(s, 0)[i]};
    if constexpr (parts > 1) v.b = part<B>(s, 1)[i];
    if constexpr (parts > 2) v.c = part<C>(s, 2)[i];
    return v;
  }
  [[gnu::always_inline]] void put(ReduceState s, int64_t i) const {
    part<A>(s, 0)[i] = a;
    if constexpr (parts > 1) part<B>(s, 1)[i] = b;
    if constexpr (parts > 2) part<C>(s, 2)[i] = c;
  }
};

template <class T> const T* row_at(const void* in, int64_t stride, int64_t r) {
  return reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride);
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

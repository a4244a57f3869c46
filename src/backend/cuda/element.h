// Elements on the device: conversions by the CPU's rules, and loads and stores of a dtype known at run time.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>
#include <type_traits>

#include <volta/dtype.h>

#include "backend/cuda/geometry.h"

namespace volta::cuda {

template <class T> inline constexpr bool is_half_type = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// A bool is read as a byte: any value but 0 is true.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

// An unsigned integer as large as a T.
template <class T> using BitsOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

__device__ inline float widen(float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float widen(bfloat16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
// Rounded once, whatever it is rounded from.
template <class To, class From> __device__ inline To narrow(From x) {
  using Whole = std::conditional_t<std::is_signed_v<From>, long long, unsigned long long>;
  const std::conditional_t<std::is_floating_point_v<From>, From, Whole> wide = x;
  if constexpr (std::is_same_v<To, float16>) return float16::from_bits(__half_as_ushort(__half(wide)));
  else return bfloat16::from_bits(__bfloat16_as_ushort(__nv_bfloat16(wide)));
}

// Toward zero and saturated, as the hardware converts; NaN gives 0.
template <class To> __device__ inline To truncate(double x) {
  if (x != x) return To(0);
  if constexpr (std::is_same_v<To, int64_t>) return __double2ll_rz(x);
  else if constexpr (std::is_same_v<To, uint64_t>) return __double2ull_rz(x);
  else if constexpr (std::is_same_v<To, uint32_t>) return __double2uint_rz(x);
  else {
    const int wide = __double2int_rz(x), low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return To(wide < low ? low : wide > high ? high : wide);
  }
}

template <class To, class From> __device__ inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (is_half_type<From> && std::is_same_v<To, bool>) return (x.bits & 0x7fff) != 0;
  else if constexpr (is_half_type<From>) return convert<To>(widen(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (is_half_type<To>) return narrow<To>(x);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return truncate<To>(x);
  else return To(x);
}

template <class To, class From> __device__ inline To read(const void* p) {
  const Stored<From> x = *static_cast<const Stored<From>*>(p);
  if constexpr (std::is_same_v<From, bool>) return convert<To>(x != 0);
  else return convert<To>(x);
}

// One copy per kernel file: dtypes other than the expected ones need not be fast.
template <class To> __device__ __noinline__ To load_other(const void* p, DType dtype) {
  return visit(dtype, [&]<class From>(TypeTag<From>) { return read<To, From>(p); });
}
template <class From> __device__ __noinline__ void store_other(void* p, DType dtype, From x) {
  visit(dtype, [&]<class To>(TypeTag<To>) { *static_cast<To*>(p) = convert<To>(x); });
}

// f(TypeTag<X>{}) with the type a T is expected to be stored as: itself, or a half of a float; void for any other. The
// dtype, the same for all threads, is thus chosen once and outside of loops, whose loads are in flight together.
template <class T, class F> __device__ inline void with_expected(DType dtype, F f) {
  if (dtype == dtype_of<T>()) return f(TypeTag<T>{});
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::f16) return f(TypeTag<float16>{});
    if (dtype == DType::bf16) return f(TypeTag<bfloat16>{});
  }
  f(TypeTag<void>{});
}

// v[u] = the element at p(u).
template <class To, int U, class P> __device__ inline void load_all(To (&v)[U], DType dtype, P p) {
  with_expected<To>(dtype, [&]<class From>(TypeTag<From>) {
    unroll<U>([&](int u) {
      if constexpr (std::is_void_v<From>) v[u] = load_other<To>(p(u), dtype);
      else v[u] = read<To, From>(p(u));
    });
  });
}
template <class To> __device__ inline To load(const void* p, DType dtype) {
  To v[1];
  load_all(v, dtype, [=](int) { return p; });
  return v[0];
}

// The first `count` of the elements at p(u) = v[u].
template <class From, int U, class P>
__device__ inline void store_all(const From (&v)[U], DType dtype, P p, int count = U) {
  with_expected<From>(dtype, [&]<class To>(TypeTag<To>) {
    unroll<U>([&](int u) {
      if (u >= count) return;
      if constexpr (std::is_void_v<To>) store_other(p(u), dtype, v[u]);
      else *reinterpret_cast<To*>(p(u)) = convert<To>(v[u]);
    });
  });
}
template <class From> __device__ inline void store(char* p, DType dtype, From x) {
  const From v[1] = {x};
  store_all(v, dtype, [=](int) { return p; });
}

// Sixteen bytes of one number over and over.
struct alignas(16) Pattern {
  uint64_t bits[2];
};
inline Pattern pattern_of(const Scalar& scalar, DType dtype) {
  return visit(dtype, [&]<class T>(TypeTag<T>) {
    std::array<T, sizeof(Pattern) / sizeof(T)> values;
    values.fill(scalar.as<T>());
    return std::bit_cast<Pattern>(values);
  });
}

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };

}  // namespace volta::cuda

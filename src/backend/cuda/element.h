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

__device__ inline float widen(float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float widen(bfloat16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
template <class T> __device__ inline T narrow(float x) {
  if constexpr (std::is_same_v<T, float16>) return float16::from_bits(__half_as_ushort(__float2half_rn(x)));
  else return bfloat16::from_bits(__bfloat16_as_ushort(__float2bfloat16_rn(x)));
}

// Toward zero and saturated, as the hardware converts; NaN gives 0.
template <class To> __device__ inline To truncate(float x) {
  if (x != x) return To(0);
  if constexpr (std::is_same_v<To, int64_t>) return __float2ll_rz(x);
  else if constexpr (std::is_same_v<To, uint64_t>) return __float2ull_rz(x);
  else if constexpr (std::is_same_v<To, uint32_t>) return __float2uint_rz(x);
  else {
    const int wide = __float2int_rz(x), low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return To(wide < low ? low : wide > high ? high : wide);
  }
}
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

// A float that rounds to either half type exactly as x does: fourteen leading bits, the last of which remembers whether
// anything below was set.
__device__ inline float round_to_odd(double x) {
  constexpr uint64_t below = (uint64_t(1) << 39) - 1;
  const uint64_t bits = uint64_t(__double_as_longlong(x));
  return float(__longlong_as_double(int64_t((bits | ((bits & below) + below)) & ~below)));
}
template <class I> __device__ inline float round_whole_to_odd(I x) {
  if constexpr (sizeof(I) <= 2) return float(x);
  else if constexpr (sizeof(I) == 4) return round_to_odd(double(x));
  else {
    constexpr uint64_t limit = uint64_t(1) << 40, low = 0xffff, half = 0x8000;
    const uint64_t u = uint64_t(x), kept = (u & ~low) | ((u & low) != 0 ? half : 0);
    const bool small = std::is_signed_v<I> ? u + limit < 2 * limit : u < limit;
    return round_to_odd(double(I(small ? u : kept)));
  }
}

template <class To, class From> __device__ inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (is_half_type<From> && std::is_same_v<To, bool>) return (x.bits & 0x7fff) != 0;
  else if constexpr (is_half_type<From>) return convert<To>(widen(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (is_half_type<To> && std::is_same_v<From, float>) return narrow<To>(x);
  else if constexpr (is_half_type<To> && std::is_same_v<From, double>) return narrow<To>(round_to_odd(x));
  else if constexpr (is_half_type<To>) return narrow<To>(round_whole_to_odd(x));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return truncate<To>(x);
  else return To(x);
}

// f(TypeTag<T>{}) with the type of a dtype, on the device.
template <class F> __device__ inline decltype(auto) visit_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(TypeTag<float16>{});
    case DType::bf16: return f(TypeTag<bfloat16>{});
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::i8: return f(TypeTag<int8_t>{});
    case DType::i16: return f(TypeTag<int16_t>{});
    case DType::i32: return f(TypeTag<int32_t>{});
    case DType::i64: return f(TypeTag<int64_t>{});
    case DType::u8: return f(TypeTag<uint8_t>{});
    case DType::u16: return f(TypeTag<uint16_t>{});
    case DType::u32: return f(TypeTag<uint32_t>{});
    case DType::u64: return f(TypeTag<uint64_t>{});
    default: return f(TypeTag<bool>{});
  }
}

template <class To, class From> __device__ inline To read(const void* p) {
  const Stored<From> x = *static_cast<const Stored<From>*>(p);
  if constexpr (std::is_same_v<From, bool>) return convert<To>(x != 0);
  else return convert<To>(x);
}

// One copy per kernel file: dtypes other than the expected ones need not be fast.
template <class To> __device__ __noinline__ To load_other(const void* p, DType dtype) {
  return visit_element(dtype, [&]<class From>(TypeTag<From>) { return read<To, From>(p); });
}
template <class From> __device__ __noinline__ void store_other(void* p, DType dtype, From x) {
  visit_element(dtype, [&]<class To>(TypeTag<To>) { *static_cast<To*>(p) = convert<To>(x); });
}

// The dtype is the same for all threads, so these branches do not diverge.
template <class To> __device__ inline To load(const void* p, DType dtype) {
  if (dtype == dtype_of<To>()) return read<To, To>(p);
  if constexpr (std::is_same_v<To, float>) {
    if (dtype == DType::f16) return read<float, float16>(p);
    if (dtype == DType::bf16) return read<float, bfloat16>(p);
  }
  return load_other<To>(p, dtype);
}
template <class From> __device__ inline void store(void* p, DType dtype, From x) {
  if (dtype == dtype_of<From>()) {
    *static_cast<From*>(p) = x;
    return;
  }
  if constexpr (std::is_same_v<From, float>) {
    if (dtype == DType::f16) return void(*static_cast<float16*>(p) = narrow<float16>(x));
    if (dtype == DType::bf16) return void(*static_cast<bfloat16*>(p) = narrow<bfloat16>(x));
  }
  store_other(p, dtype, x);
}

// Byte offsets of the first K operands at U elements.
template <int U, int K, int N>
__device__ inline void offsets(const Strided<N>& g, uint32_t (&i)[U], int64_t (&offset)[U][K]) {
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < K; ++k) offset[u][k] = 0;
#pragma unroll 1
  for (int a = 0; a + 1 < g.rank; ++a)
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t outer = g.axis[a].divide(i[u]), at = i[u] - outer * g.axis[a].size;
#pragma unroll
      for (int k = 0; k < K; ++k) offset[u][k] += int64_t(at) * g.stride[a][k];
      i[u] = outer;
    }
#pragma unroll
  for (int u = 0; u < U; ++u)
#pragma unroll
    for (int k = 0; k < K; ++k) offset[u][k] += int64_t(i[u]) * g.stride[g.rank - 1][k];
}
template <int K, int N> __device__ inline void offsets(const Strided<N>& g, uint32_t i, int64_t (&offset)[K]) {
  uint32_t one[1] = {i};
  int64_t result[1][K];
  offsets(g, one, result);
#pragma unroll
  for (int k = 0; k < K; ++k) offset[k] = result[0][k];
}

template <class T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };

}  // namespace volta::cuda

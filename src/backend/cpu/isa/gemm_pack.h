// Operands of the packed GEMM: widening loads, the strided packer, and the matrix operand.
#pragma once
#include <bit>
#include <cstring>

#include "backend/cpu/gemm_table.h"
#include "backend/cpu/isa/gemm_kernel.h"
#include "volta/dtype.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace volta::cpu::VOLTA_ISA {

template <class S> struct ComputeOf { using Type = float; };
template <> struct ComputeOf<double> { using Type = double; };
template <class S> using Compute = typename ComputeOf<S>::Type;

[[gnu::always_inline]] static inline float widen(float x) { return x; }
[[gnu::always_inline]] static inline double widen(double x) { return x; }
[[gnu::always_inline]] static inline float widen(bfloat16 x) {
  return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
}
[[gnu::always_inline]] static inline float widen(float16 x) {
#if defined(__aarch64__)
  return float(__builtin_bit_cast(__fp16, x.bits));
#elif defined(__F16C__)
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x.bits)));
#else
  return float16::widen(x.bits);
#endif
}

[[gnu::always_inline]] static inline void narrow(float& to, float x) { to = x; }
[[gnu::always_inline]] static inline void narrow(double& to, double x) { to = x; }
[[gnu::always_inline]] static inline void narrow(bfloat16& to, float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  to.bits = uint16_t((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16 | 0x40u) : rounded);
}
[[gnu::always_inline]] static inline void narrow(float16& to, float x) {
#if defined(__aarch64__)
  to.bits = __builtin_bit_cast(uint16_t, __fp16(x));
#elif defined(__F16C__)
  to.bits = uint16_t(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT)));
#else
  to.bits = float16::round(x);
#endif
}

// 16 bytes' worth of compute values from consecutive stored ones.
[[gnu::always_inline]] static inline Tile<float>::Quad load_quad(const float* p) {
  return *reinterpret_cast<const Tile<float>::Quad*>(p);
}
[[gnu::always_inline]] static inline Tile<double>::Quad load_quad(const double* p) {
  return *reinterpret_cast<const Tile<double>::Quad*>(p);
}
[[gnu::always_inline]] static inline Tile<float>::Quad load_quad(const bfloat16* p) {
#if defined(__aarch64__)
  uint16x4_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return Tile<float>::Quad(vreinterpretq_f32_u32(vshll_n_u16(bits, 16)));
#else
  return Tile<float>::Quad{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])};
#endif
}
[[gnu::always_inline]] static inline Tile<float>::Quad load_quad(const float16* p) {
#if defined(__aarch64__)
  float16x4_t halves;
  __builtin_memcpy(&halves, p, sizeof halves);
  return Tile<float>::Quad(vcvt_f32_f16(halves));
#elif defined(__F16C__)
  __m128i halves = _mm_setzero_si128();
  __builtin_memcpy(&halves, p, 8);
  return Tile<float>::Quad(_mm_cvtph_ps(halves));
#else
  return Tile<float>::Quad{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])};
#endif
}

// A whole vector of compute values from consecutive stored ones.
[[gnu::always_inline]] static inline Tile<float>::Vector load_vector(const float* p) {
  return *reinterpret_cast<const Tile<float>::Loose*>(p);
}
[[gnu::always_inline]] static inline Tile<double>::Vector load_vector(const double* p) {
  return *reinterpret_cast<const Tile<double>::Loose*>(p);
}
[[gnu::always_inline]] static inline Tile<float>::Vector load_vector(const bfloat16* p) {
  typedef uint16_t Halves __attribute__((vector_size(vector_bytes / 2)));
  typedef uint32_t Words __attribute__((vector_size(vector_bytes)));
  Halves halves;
  __builtin_memcpy(&halves, p, sizeof halves);
  return Tile<float>::Vector(__builtin_convertvector(halves, Words) << 16);
}
[[gnu::always_inline]] static inline Tile<float>::Vector load_vector(const float16* p) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtph_ps(__mmask16(0xffff), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  return load_quad(p);
#endif
}

// Stores n compute values as S, rounding once.
template <class S> static void store_row(S* to, const Compute<S>* from, int64_t n) {
  int64_t i = 0;
#if defined(__aarch64__)
  if constexpr (__is_same(S, float16)) {
    for (; i + 4 <= n; i += 4) {
      const float16x4_t halves = vcvt_f16_f32(vld1q_f32(from + i));
      __builtin_memcpy(&to[i].bits, &halves, sizeof halves);
    }
  }
#elif defined(__F16C__)
  if constexpr (__is_same(S, float16)) {
    for (; i + 8 <= n; i += 8) {
      const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
    }
  }
#endif
  for (; i < n; ++i) narrow(to[i], from[i]);
}

// Quads r[i] become columns: to[i * step + l] = r[l][i].
[[gnu::always_inline]] static inline void store_transposed(const Tile<float>::Quad* r, float* to, int64_t step) {
  using Quad = Tile<float>::Quad;
  const Quad x = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), y = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Quad z = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), w = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  *reinterpret_cast<Quad*>(to) = __builtin_shufflevector(x, z, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + step) = __builtin_shufflevector(x, z, 2, 3, 6, 7);
  *reinterpret_cast<Quad*>(to + 2 * step) = __builtin_shufflevector(y, w, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + 3 * step) = __builtin_shufflevector(y, w, 2, 3, 6, 7);
}
[[gnu::always_inline]] static inline void store_transposed(const Tile<double>::Quad* r, double* to, int64_t step) {
  *reinterpret_cast<Tile<double>::Quad*>(to) = __builtin_shufflevector(r[0], r[1], 0, 2);
  *reinterpret_cast<Tile<double>::Quad*>(to + step) = __builtin_shufflevector(r[0], r[1], 1, 3);
}

// A rectangle to pack, passed by value so that stores cannot alias it: to[p * tile + i] = from[i * step + p *
// depth_step] for i < n, zero for n <= i < tile.
template <class S> struct PackCall {
  Compute<S>* to;
  int64_t tile, n, k;
  const S* from;
  int64_t step, depth_step;
};

// Contiguous along the tile: rows are copied.
template <class S> static void pack_rows(PackCall<S> c) {
  using T = Compute<S>;
  using Quad = typename Tile<T>::Quad;
  for (int64_t p = 0; p < c.k; ++p) {
    const S* from = c.from + p * c.depth_step;
    T* to = c.to + p * c.tile;
    __builtin_prefetch(from + c.n + 128 / sizeof(S));
    int64_t i = 0;
    for (; i + lanes<T> <= c.n; i += lanes<T>)
      *reinterpret_cast<typename Tile<T>::Loose*>(to + i) = load_vector(from + i);
    for (; i + quad<T> <= c.n; i += quad<T>) *reinterpret_cast<Quad*>(to + i) = load_quad(from + i);
    for (; i < c.n; ++i) to[i] = widen(from[i]);
    for (; i < c.tile; ++i) to[i] = 0;
  }
}

// Contiguous along k: squares of quads are transposed. Returns how many i are done.
template <class S> static int64_t pack_columns(PackCall<S> c) {
  using T = Compute<S>;
  constexpr int q = quad<T>;
  int64_t i = 0;
  for (; i + q <= c.n; i += q) {
    int64_t p = 0;
    for (; p + q <= c.k; p += q) {
      typename Tile<T>::Quad square[q];
#pragma GCC unroll 4
      for (int l = 0; l < q; ++l) square[l] = load_quad(c.from + (i + l) * c.step + p);
      store_transposed(square, c.to + p * c.tile + i, c.tile);
    }
    for (; p < c.k; ++p) {
      for (int l = 0; l < q; ++l) c.to[p * c.tile + i + l] = widen(c.from[(i + l) * c.step + p]);
    }
  }
  return i;
}

template <class S> static void pack(PackCall<S> c) {
  if (c.step == 1) return pack_rows(c);
  int64_t i = c.depth_step == 1 ? pack_columns(c) : 0;
  for (; i < c.n; ++i) {
    for (int64_t p = 0; p < c.k; ++p) c.to[p * c.tile + i] = widen(c.from[i * c.step + p * c.depth_step]);
  }
  for (; i < c.tile; ++i) {
    for (int64_t p = 0; p < c.k; ++p) c.to[p * c.tile + i] = 0;
  }
}

// The operand that is a strided matrix. An operand of core() is anything with this panel(): it gives the view of rows
// (or columns) [i, i + n) and depths [p, p + k), padded with zeros to `tile`, using `buffer` if it has to pack.
template <class S> struct MatrixOperand {
  using T = Compute<S>;
  const S* data;
  int64_t step, depth_step;
  bool direct;
  const T* packed;
  int64_t extent, origin;

  explicit MatrixOperand(const GemmOperand& o)
      : data(static_cast<const S*>(o.data)),
        step(o.step),
        depth_step(o.depth_step),
        direct(o.direct),
        packed(static_cast<const T*>(o.packed)),
        extent(o.extent),
        origin(o.origin) {}

  View<T> panel(T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) const {
    if (packed) return {packed + p * extent + (origin + i) * k, tile};
    const S* from = data + i * step + p * depth_step;
    if constexpr (sizeof(S) == sizeof(T)) {
      if (direct && step == 1 && n == tile) return {from, depth_step};
    }
    pack(PackCall<S>{buffer, tile, n, k, from, step, depth_step});
    return {buffer, tile};
  }
};

}  // namespace volta::cpu::VOLTA_ISA

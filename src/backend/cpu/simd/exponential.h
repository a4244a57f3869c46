// exp of numbers that are not positive: what softmax and the gates of recurrent layers need, for vectors and numbers.
#pragma once
#include <volta/scalar.h>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE__)
#include <immintrin.h>
#endif

#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// The larger of two in one instruction; b where it is NaN.
[[gnu::always_inline]] inline Vector<float> larger_of(Vector<float> a, Vector<float> b) {
#if defined(__aarch64__)
  return Vector<float>(vmaxq_f32(float32x4_t(a), float32x4_t(b)));
#elif defined(__AVX512F__)
  return _mm512_maskz_max_ps(__mmask16(0xffff), a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__SSE__)
  return _mm_max_ps(a, b);
#else
  return choose(a > b, a, b);
#endif
}
[[gnu::always_inline]] inline Vector<double> larger_of(Vector<double> a, Vector<double> b) {
  return choose(a > b, a, b);
}

// exp(x) = power (1 + less_one) for x <= 0; the power of two is 0 below the normal numbers.
template <class V> struct Exponential { V power, less_one; };
[[gnu::always_inline]] inline Exponential<Vector<float>> exp_parts(Vector<float> x) {
  using V = Vector<float>;
  constexpr float least = -88.02969f;       // -127 ln 2, whose power of two comes out as the bits of 0
  constexpr float magic = 0x1.8p23f + 127;  // adding it leaves the biased exponent in the low bits
  const V inside = larger_of(V{} + least, x);
  const V shifted = inside * scalar::detail::log2_e<float> + magic, k = shifted - magic;
  const V r = (inside - k * scalar::detail::ln2_hi<float>)-k * scalar::detail::ln2_lo<float>, square = r * r;
  const V low = 0.49999994f + 0.16666521f * r, high = (0.04166839f + 0.008368745f * r) + 0.001381454f * square;
  return {V(Vector<int32_t>(shifted) << 23), r + square * (low + high * square)};
}

// exp(x) for x <= 0, to two ulp, and 0 below the normal numbers. Nothing can overflow, so one power of two scales it.
[[gnu::always_inline]] inline Vector<float> exp_down(Vector<float> x) {
  const auto [power, less_one] = exp_parts(x);
  return power + power * less_one;
}
inline float exp_down(float x) { return exp_down(Vector<float>{} + x)[0]; }
[[gnu::always_inline]] inline double exp_down(double x) {
  constexpr double least = -708.3;
  const bool tiny = x < least;
  return scalar::select(tiny, 0.0, scalar::detail::exp_normal(scalar::select(tiny, least, x)));
}
[[gnu::always_inline]] inline Vector<double> exp_down(Vector<double> x) {
  for (int l = 0; l < lanes<double>; ++l) x[l] = exp_down(x[l]);
  return x;
}

// a / b for b from 1 to 2, to an ulp. Wide vectors divide no faster than narrow ones; a first guess and one correction do.
[[gnu::always_inline]] inline Vector<float> divided(Vector<float> a, Vector<float> b) {
#if defined(__AVX512F__)
  const Vector<float> inverse = _mm512_maskz_rcp14_ps(__mmask16(0xffff), b), guess = a * inverse;
  return guess + (a - b * guess) * inverse;
#else
  return a / b;
#endif
}

// The squashing functions of gates, to a few ulp. By the bits of signs, which takes fewer instructions than comparing.
using Bits = Vector<int32_t>;
constexpr int32_t sign = std::numeric_limits<int32_t>::min();
[[gnu::always_inline]] inline Vector<float> minus_magnitude(Vector<float> x) { return Vector<float>(Bits(x) | sign); }

[[gnu::always_inline]] inline Vector<float> gate_sigmoid(Vector<float> x) {
  const Vector<float> e = exp_down(minus_magnitude(x));
  return divided(choose(Bits(x) >> 31, e, Vector<float>{} + 1), 1 + e);
}
[[gnu::always_inline]] inline Vector<float> gate_tanh(Vector<float> x) {
  const auto [power, less_one] = exp_parts(2 * minus_magnitude(x));
  const Vector<float> minus = (1 - power) - power * less_one;  // 1 - exp(-2|x|)
  return Vector<float>(Bits(divided(minus, 2 - minus)) | (Bits(x) & sign));
}
inline float gate_sigmoid(float x) { return gate_sigmoid(Vector<float>{} + x)[0]; }
inline float gate_tanh(float x) { return gate_tanh(Vector<float>{} + x)[0]; }
inline double gate_sigmoid(double x) { return 1 / (1 + scalar::exp(-x)); }
inline double gate_tanh(double x) { return scalar::tanh(x); }
[[gnu::always_inline]] inline Vector<double> gate_sigmoid(Vector<double> x) {
  for (int l = 0; l < lanes<double>; ++l) x[l] = gate_sigmoid(x[l]);
  return x;
}
[[gnu::always_inline]] inline Vector<double> gate_tanh(Vector<double> x) {
  for (int l = 0; l < lanes<double>; ++l) x[l] = gate_tanh(x[l]);
  return x;
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

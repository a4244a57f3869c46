// The conversion loops: one per pair of dtypes, branch-free, each result rounded once.
#include "backend/cpu/copy/kernels.h"

#include <bit>
#include <limits>
#include <type_traits>

#if defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block = 512;  // halves meet other dtypes in blocks of floats that stay in the first-level cache

template <class T> constexpr bool is_half_type = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// A bool is read as a byte: one that came from a file may hold any value.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

void widen(int64_t n, float* out, const bfloat16* in) {
  for (int64_t i = 0; i < n; i++) out[i] = std::bit_cast<float>(uint32_t(in[i].bits) << 16);
}
void narrow(int64_t n, bfloat16* out, const float* in) {
  for (int64_t i = 0; i < n; i++) out[i].bits = bfloat16::round(in[i]);
}

// Eight numbers, by the instructions there are for them.
void widen_eight(float* out, const float16* in) {
#if defined(__ARM_NEON)
  const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(&in->bits));
  vst1q_f32(out, vcvt_f32_f16(vget_low_f16(h)));
  vst1q_f32(out + 4, vcvt_high_f32_f16(h));
#elif defined(__F16C__)
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
#else
  for (int i = 0; i < 8; i++) out[i] = float16::widen(in[i].bits);
#endif
}
void narrow_eight(float16* out, const float* in) {
#if defined(__ARM_NEON)
  const float16x8_t h = vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(in)), vld1q_f32(in + 4));
  vst1q_u16(&out->bits, vreinterpretq_u16_f16(h));
#elif defined(__F16C__)
  const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(in), _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), h);
#else
  for (int i = 0; i < 8; i++) out[i].bits = float16::round(in[i]);
#endif
}

// What is left of a row at its end goes through whole groups of eight, too.
template <class To, class From> void by_eights(int64_t n, To* out, const From* in, void (*eight)(To*, const From*)) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) eight(out + i, in + i);
  if (i == n) return;
  To results[8];
  From rest[8] = {};
  __builtin_memcpy(rest, in + i, size_t(n - i) * sizeof(From));
  eight(results, rest);
  __builtin_memcpy(out + i, results, size_t(n - i) * sizeof(To));
}
void widen(int64_t n, float* out, const float16* in) { by_eights(n, out, in, widen_eight); }
void narrow(int64_t n, float16* out, const float* in) { by_eights(n, out, in, narrow_eight); }

// Truncates toward zero, saturates, and takes NaN to 0. The clamp keeps the conversion defined: `above` is the first
// value out of range, a power of two, and `highest` the last float below it.
template <class To, class F> To truncate(F x) {
  using Wide = std::conditional_t<(sizeof(To) < 4), int32_t, To>;
  using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  constexpr To most = std::numeric_limits<To>::max(), least = std::numeric_limits<To>::min();
  constexpr auto middle = most / 2 + 1;
  constexpr F above = F(middle) * F(2);
  constexpr F highest = sizeof(To) < sizeof(F) ? F(most) : std::bit_cast<F>(Bits(std::bit_cast<Bits>(above) - 1));
  const F raised = x > F(least) ? x : F(least);
  const To inside = To(Wide(raised < highest ? raised : highest));
  const To saturated = x >= above ? most : inside;
  return x == x ? saturated : To(0);
}

// A float that rounds to either half type exactly as x does. Fourteen leading bits are kept and the last of them
// remembers whether anything below was set, so the second rounding sees every tie and every non-tie for what it is.
float round_to_odd(double x) {
  constexpr uint64_t below = (uint64_t(1) << 39) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  return float(std::bit_cast<double>((bits | ((bits & below) + below)) & ~below));
}

// The same for integers. Beyond 2^40 the low 16 bits lie far below any tie of a half, so one bit can stand for them and
// the rest fits a double.
template <class I> float round_to_odd(I x) {
  if constexpr (sizeof(I) <= 2) return float(x);
  else if constexpr (sizeof(I) == 4) return round_to_odd(double(x));
  else {
    constexpr uint64_t limit = uint64_t(1) << 40, low = 0xffff, half = 0x8000;
    const uint64_t u = uint64_t(x), kept = (u & ~low) | ((u & low) != 0 ? half : 0);
    const bool small = std::is_signed_v<I> ? u + limit < 2 * limit : u < limit;
    return round_to_odd(double(I(small ? u : kept)));
  }
}

template <class To, class From> To convert(Stored<From> x) {
  if constexpr (std::is_same_v<To, bool> || std::is_same_v<From, bool>) return To(x != Stored<From>(0));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return truncate<To>(x);
  else return To(x);
}

template <class To, class From> void direct(int64_t n, To* out, const Stored<From>* in) {
  for (int64_t i = 0; i < n; i++) out[i] = convert<To, From>(in[i]);
}

// Floats that keep enough of x for the one rounding to a half.
template <class From> void to_float(int64_t n, float* out, const Stored<From>* in) {
  if constexpr (is_half_type<From>) widen(n, out, in);
  else if constexpr (std::is_same_v<From, bool>) direct<float, bool>(n, out, in);
  else
    for (int64_t i = 0; i < n; i++) out[i] = round_to_odd(in[i]);
}

template <class To, class From> void row(int64_t n, void* out_bytes, const void* in_bytes) {
  auto* out = static_cast<To*>(out_bytes);
  const auto* in = static_cast<const Stored<From>*>(in_bytes);
  if constexpr (std::is_same_v<To, From> && !std::is_same_v<To, bool>) {
    __builtin_memcpy(out, in, size_t(n) * sizeof(To));
  } else if constexpr (is_half_type<From> && std::is_same_v<To, bool>) {
    for (int64_t i = 0; i < n; i++) out[i] = (in[i].bits & 0x7fff) != 0;
  } else if constexpr (is_half_type<From> && std::is_same_v<To, float>) {
    widen(n, out, in);
  } else if constexpr (is_half_type<To> && std::is_same_v<From, float>) {
    narrow(n, out, in);
  } else if constexpr (is_half_type<From> || is_half_type<To>) {
    float buffer[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      to_float<From>(m, buffer, in + i);
      if constexpr (is_half_type<To>) narrow(m, out + i, buffer);
      else direct<To, float>(m, out + i, buffer);
    }
  } else {
    direct<To, From>(n, out, in);
  }
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::CastRow volta::cpu::cast_kernel<volta::cpu::Isa::VOLTA_ISA>(DType to, DType from) {
  return visit(to, [=]<class To>(TypeTag<To>) {
    return visit(from, []<class From>(TypeTag<From>) -> CastRow { return VOLTA_ISA::row<To, From>; });
  });
}

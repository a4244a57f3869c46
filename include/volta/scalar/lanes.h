// Twenty-four floats that a formula takes for one number, on the processors where this beats the compiler's own vectors, and
// in Volta's own loops only: <arm_neon.h> would cost every program that includes Volta a quarter of a second.
#pragma once
#include <functional>
#include <iterator>

#include "volta/scalar/basic.h"
#if defined(__aarch64__) && defined(VOLTA_ISA) && !defined(__CUDACC__)
#include <arm_neon.h>

namespace volta::scalar {

namespace detail {

// Coefficients, each as often as a vector has elements.
template <const auto& C> struct Repeated {
  alignas(16) float rows[std::size(C)][4];
  constexpr Repeated() : rows() {
    for (size_t i = 0; i < std::size(C); ++i)
      for (float& each : rows[i]) each = C[i];
  }
};
template <const auto& C> inline constexpr Repeated<C> repeated;

// C[I] + a x. fmla overwrites its addend, so a constant in a register would have to be copied first, and such cores
// (Neoverse V1) read only four registers a cycle that were not just written: the copies take as long as the products.
// What comes from memory is not such a read, hence the constant is fetched every time, which compilers will not do.
template <const auto& C, int I> [[gnu::always_inline]] inline float32x4_t multiply_add(float32x4_t a, float32x4_t x) {
  float32x4_t y;
  asm("ldr %q0, %3\n\tfmla %0.4s, %1.4s, %2.4s" : "=&w"(y) : "w"(a), "w"(x), "m"(repeated<C>.rows[I]));
  return y;
}

// Six vectors, whose operations take turns: none waits for the one before it, and the registers just suffice. (As an array
// they would go through memory.)
template <class V> struct Six { V a, b, c, d, e, f; };

template <class F, class... X> [[gnu::always_inline]] inline auto by_vectors(F f, const X&... x) {
  return Six<decltype(f(x.a...))>{f(x.a...), f(x.b...), f(x.c...), f(x.d...), f(x.e...), f(x.f...)};
}

}  // namespace detail

struct Lanes : detail::Six<float32x4_t> {
  static constexpr int size = 24;
  using Vector = float32x4_t;
  using Bits = detail::Six<uint32x4_t>;

  [[gnu::always_inline]] Lanes(const Six& x) : Six(x) {}
  [[gnu::always_inline]] explicit Lanes(Vector x) : Lanes(Six{x, x, x, x, x, x}) {}
  [[gnu::always_inline]] explicit Lanes(float x) : Lanes(vdupq_n_f32(x)) {}
  [[gnu::always_inline]] static Lanes load(const float* x) {
    return Six{vld1q_f32(x),      vld1q_f32(x + 4),  vld1q_f32(x + 8),
               vld1q_f32(x + 12), vld1q_f32(x + 16), vld1q_f32(x + 20)};
  }
  [[gnu::always_inline]] void store(float* x) const {
    vst1q_f32(x, a), vst1q_f32(x + 4, b), vst1q_f32(x + 8, c);
    vst1q_f32(x + 12, d), vst1q_f32(x + 16, e), vst1q_f32(x + 20, f);
  }

  // Whether none is above `limit` in size, nor a NaN.
  [[gnu::always_inline]] bool within(float limit) const {
    const Bits magnitude = by_vectors([](Vector x) { return uint32x4_t(vabsq_f32(x)); }, *this);
    const uint32x4_t first = vmaxq_u32(magnitude.a, magnitude.b), second = vmaxq_u32(magnitude.c, magnitude.d);
    const uint32x4_t third = vmaxq_u32(magnitude.e, magnitude.f);
    return vmaxvq_u32(vmaxq_u32(vmaxq_u32(first, second), third)) <= std::bit_cast<uint32_t>(limit);
  }

  [[gnu::always_inline]] friend Lanes operator+(Lanes x, Lanes y) { return by_vectors(std::plus<>(), x, y); }
  [[gnu::always_inline]] friend Lanes operator-(Lanes x, Lanes y) { return by_vectors(std::minus<>(), x, y); }
  [[gnu::always_inline]] friend Lanes operator*(Lanes x, Lanes y) { return by_vectors(std::multiplies<>(), x, y); }
  [[gnu::always_inline]] friend Lanes operator/(Lanes x, Lanes y) { return by_vectors(std::divides<>(), x, y); }
  [[gnu::always_inline]] friend Lanes operator-(Lanes x) { return by_vectors(std::negate<>(), x); }
  [[gnu::always_inline]] friend Bits operator>(Lanes x, Lanes y) {
    return by_vectors([](Vector p, Vector q) { return uint32x4_t(p > q); }, x, y);
  }
};

[[gnu::always_inline]] inline Lanes abs(Lanes x) {
  return by_vectors([](float32x4_t a) { return vabsq_f32(a); }, x);
}
[[gnu::always_inline]] inline Lanes min(Lanes a, Lanes b) {
  return by_vectors([](float32x4_t x, float32x4_t y) { return vminq_f32(x, y); }, a, b);
}
[[gnu::always_inline]] inline Lanes positive_part(Lanes x) {
  return by_vectors([](float32x4_t a) { return float32x4_t(vmaxq_s32(int32x4_t(a), int32x4_t{})); }, x);
}
[[gnu::always_inline]] inline Lanes select(Lanes::Bits mask, Lanes a, Lanes b) {
  return by_vectors([](uint32x4_t m, float32x4_t p, float32x4_t q) { return vbslq_f32(m, p, q); }, mask, a, b);
}
[[gnu::always_inline]] inline Lanes copysign(Lanes magnitude, Lanes sign) {
  const uint32x4_t mask = vdupq_n_u32(detail::sign_bit<float>);
  return by_vectors([=](float32x4_t a, float32x4_t b) { return vbslq_f32(mask, b, a); }, magnitude, sign);
}

namespace detail {

template <> struct BitsOf<Lanes> : BitsOf<float> { using Unsigned = Lanes::Bits; };
template <> inline constexpr bool is_float<Lanes> = true;

[[gnu::always_inline]] inline Lanes::Bits bits(Lanes x) {
  return by_vectors([](float32x4_t a) { return uint32x4_t(a); }, x);
}
template <std::same_as<Lanes> T> [[gnu::always_inline]] inline T power_of_two(const Lanes::Bits& code) {
  return by_vectors([](uint32x4_t a) { return float32x4_t(a << BitsOf<float>::mantissa); }, code);
}
template <const auto& C, int I> [[gnu::always_inline]] inline Lanes multiply_add(Lanes a, Lanes x) {
  return by_vectors([](float32x4_t p, float32x4_t q) { return multiply_add<C, I>(p, q); }, a, x);
}

}  // namespace detail

template <class T> using Wide = std::conditional_t<std::is_same_v<T, float>, Lanes, T>;

}  // namespace volta::scalar
#else
namespace volta::scalar {
template <class T> using Wide = T;
}  // namespace volta::scalar
#endif

// Random distributions as formulas for one block of four elements, for every device. A block is a pure function of
// (seed, counter); element i of a call is element i % 4 of the block with counter offset + i / 4.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include <volta/dtype.h>

namespace volta::random {

// Functions here are always inlined: kernels compiled for different instruction sets must not share a copy of them.

// Philox 4x32-10, the counter-based generator of Salmon et al. (SC 2011): a pure function of key and counter, so any
// element of a stream can be computed alone.
template <class W> struct WordsOf { W x, y, z, w; };
using Words = WordsOf<uint32_t>;

template <class W> struct Product { W high, low; };

[[gnu::always_inline]] VOLTA_HD inline constexpr Product<uint32_t> multiply(uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t(a) * b;
  return {uint32_t(product >> 32), uint32_t(product)};
}

// Rounds from `step` on; before each the key is raised by the Weyl increments. W is uint32_t, or a vector of them with
// ^ and `multiply`.
template <uint32_t step = 0, class W>
[[gnu::always_inline]] VOLTA_HD inline constexpr WordsOf<W> philox(const WordsOf<W>& c, uint32_t k0, uint32_t k1) {
  if constexpr (step == 10) {
    return c;
  } else {
    constexpr uint32_t w0 = 0x9E3779B9u * step, w1 = 0xBB67AE85u * step;
    const Product<W> a = multiply(0xD2511F53u, c.x), b = multiply(0xCD9E8D57u, c.z);
    const WordsOf<W> next = {b.high ^ c.y ^ (k0 + w0), b.low, a.high ^ c.w ^ (k1 + w1), a.low};
    return philox<step + 1>(next, k0, k1);
  }
}

// Four random words for one block of a stream. A block that needs more than four takes them from its further sections.
[[gnu::always_inline]] VOLTA_HD inline constexpr Words block_words(uint64_t seed, uint64_t counter, uint32_t section) {
  const Words c{uint32_t(counter), uint32_t(counter >> 32), section, 0};
  return philox(c, uint32_t(seed), uint32_t(seed >> 32));
}

template <class T> struct Block { T element[4]; };

namespace detail {

// c0 x^n + c1 x^(n-1) + … + cn.
template <class T, class... C> [[gnu::always_inline]] VOLTA_HD inline T horner(T x, T first, C... rest) {
  ((first = first * x + rest), ...);
  return first;
}

// log(2^e * (1 + f)) for 1 + f between sqrt(1/2) and sqrt(2).
[[gnu::always_inline]] VOLTA_HD inline float log_of(float e, float f) {
  const float z = f * f;
  const float p = horner(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                         -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  return e * 0.693359375f + (f + (f * z * p - 0.5f * z + e * -2.12194440e-4f));
}

// In double, log(1 + f) = f - f^2/2 + s * (f^2/2 + R(s^2)) with s = f / (2 + f).
[[gnu::always_inline]] VOLTA_HD inline double log_of(double e, double f) {
  const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  const double r =
      horner(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
             2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01);
  return e * 6.93147180369123816490e-01 - ((half - (s * (half + r * z) + e * 1.90821492927058770002e-10)) - f);
}

// log(u) for random bits w and u = (w + 1/2) / 2^32, always below 0. Near 1 the distance to 1 is taken from the bits,
// for u itself would have lost them.
[[gnu::always_inline]] VOLTA_HD inline float log_uniform(uint32_t w) {
  const float u = float(int32_t(w >> 8)) * 0x1p-24f + (float(int32_t(w & 255u)) + 0.5f) * 0x1p-32f;
  const float distance = (float(int32_t(~w)) + 0.5f) * 0x1p-32f;
  const uint32_t bits = std::bit_cast<uint32_t>(u), shifted = bits - 0x3f3504f3u;
  const float f = std::bit_cast<float>(bits - (shifted & 0xff800000u)) - 1.0f;
  return log_of(float(int32_t(shifted) >> 23), w >= 0xc0000000u ? -distance : f);
}

// The same with 53 bits: u = (k + 1/2) / 2^53.
[[gnu::always_inline]] VOLTA_HD inline double log_uniform(uint32_t high, uint32_t low) {
  const double u = double(int32_t(high >> 5)) * 0x1p-27 + (double(int32_t(low >> 6)) + 0.5) * 0x1p-53;
  const double distance = double(int32_t(~high >> 5)) * 0x1p-27 + (double(int32_t(~low >> 6)) + 0.5) * 0x1p-53;
  const uint64_t bits = std::bit_cast<uint64_t>(u);
  const uint32_t shifted = uint32_t(bits >> 32) - 0x3fe6a09fu;
  const double f = std::bit_cast<double>(bits - (uint64_t(shifted & 0xfff00000u) << 32)) - 1.0;
  return log_of(double(int32_t(shifted) >> 20), high >= 0xc0000000u ? -distance : f);
}

template <class T> struct SinCos { T sine, cosine; };

// Polynomials on [-pi/4, pi/4].
[[gnu::always_inline]] VOLTA_HD inline SinCos<float> sincos_octant(float x) {
  const float z = x * x;
  const float s = horner(z, -1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f);
  const float c = horner(z, 2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f);
  return {s * z * x + x, c * z * z - 0.5f * z + 1.0f};
}

[[gnu::always_inline]] VOLTA_HD inline SinCos<double> sincos_octant(double x) {
  const double z = x * x;
  const double s = horner(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                          -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);
  const double c = horner(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                          2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  return {s * z * x + x, c * z * z - 0.5 * z + 1.0};
}

// Turns a reduced angle by `quadrant` right angles.
template <class T> [[gnu::always_inline]] VOLTA_HD inline SinCos<T> rotate(SinCos<T> a, uint32_t quadrant) {
  const bool swap = (quadrant & 1u) != 0;
  const T s = swap ? a.cosine : a.sine, c = swap ? a.sine : a.cosine;
  return {(quadrant & 2u) != 0 ? -s : s, ((quadrant + 1u) & 2u) != 0 ? -c : c};
}

// 2^32 and above are exact in double; going through int32 keeps the conversion a vector instruction everywhere.
[[gnu::always_inline]] VOLTA_HD inline double widen(uint32_t w) { return double(int32_t(w ^ 0x80000000u)) + 0x1p31; }

// Sine and cosine of 2 * pi * u for a random u; the reduction to a quadrant is exact, in integers.
[[gnu::always_inline]] VOLTA_HD inline SinCos<float> sincos_turn(uint32_t w) {
  const uint32_t quadrant = (w + 0x20000000u) >> 30;
  const float r = float(int32_t(w - (quadrant << 30)));
  return rotate(sincos_octant(r * 1.46291807926715968e-9f), quadrant);
}
[[gnu::always_inline]] VOLTA_HD inline SinCos<double> sincos_turn(uint32_t high, uint32_t low) {
  const uint32_t quadrant = (high + 0x20000000u) >> 30;
  const double r = double(int32_t(high - (quadrant << 30))) + widen(low) * 0x1p-32;
  return rotate(sincos_octant(r * 1.46291807926715968105133780430979e-9), quadrant);
}

// Square roots that compile to one instruction on every device.
[[gnu::always_inline]] VOLTA_HD inline float root(float x) { return ::sqrtf(x); }
[[gnu::always_inline]] VOLTA_HD inline double root(double x) { return ::sqrt(x); }

[[gnu::always_inline]] VOLTA_HD inline uint64_t multiply_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), cross = a0 * b1 + uint32_t(middle);
  return a1 * b1 + (middle >> 32) + (cross >> 32);
}

}  // namespace detail

// On [0, 1): 24 bits in float, 53 in double.
[[gnu::always_inline]] VOLTA_HD inline float unit(uint32_t w) { return float(int32_t(w >> 8)) * 0x1p-24f; }
[[gnu::always_inline]] VOLTA_HD inline double unit(uint32_t high, uint32_t low) {
  return double(int32_t(high >> 5)) * 0x1p-27 + double(int32_t(low >> 6)) * 0x1p-53;
}

// A formula turns the words of a block, `sections` sets of four, into its elements: most by one or two words for each.
template <class F> [[gnu::always_inline]] VOLTA_HD inline auto each(const F& f, const Words (&w)[1]) {
  return Block<decltype(f.from(0u))>{{f.from(w[0].x), f.from(w[0].y), f.from(w[0].z), f.from(w[0].w)}};
}
template <class F> [[gnu::always_inline]] VOLTA_HD inline auto each(const F& f, const Words (&w)[2]) {
  return Block<decltype(f.from(0u, 0u))>{
      {f.from(w[0].x, w[0].y), f.from(w[0].z, w[0].w), f.from(w[1].x, w[1].y), f.from(w[1].z, w[1].w)}};
}

// Uniform between a and b. The caller gives the least and greatest allowed values, so that rounding never yields b.
template <class T> struct Uniform {
  static constexpr int sections = sizeof(T) / 4;
  T a, width, least, greatest;
  template <class... Word> [[gnu::always_inline]] VOLTA_HD T from(Word... w) const {
    const T x = a + width * unit(w...), raised = x < least ? least : x;
    return raised > greatest ? greatest : raised;
  }
  [[gnu::always_inline]] VOLTA_HD Block<T> operator()(const Words (&w)[sections]) const { return each(*this, w); }
};

// Box-Muller: a radius and an angle give two independent normals.
template <class T> struct Normal {
  static constexpr int sections = sizeof(T) / 4;
  T mean, deviation;
  [[gnu::always_inline]] VOLTA_HD Block<T> from(T log0, detail::SinCos<T> turn0, T log1,
                                                detail::SinCos<T> turn1) const {
    const T r0 = detail::root(T(-2) * log0) * deviation, r1 = detail::root(T(-2) * log1) * deviation;
    return {{mean + r0 * turn0.cosine, mean + r0 * turn0.sine, mean + r1 * turn1.cosine, mean + r1 * turn1.sine}};
  }
  [[gnu::always_inline]] VOLTA_HD Block<T> operator()(const Words (&w)[sections]) const {
    using namespace detail;
    if constexpr (sections == 1) {
      return from(log_uniform(w[0].x), sincos_turn(w[0].y), log_uniform(w[0].z), sincos_turn(w[0].w));
    } else {
      return from(log_uniform(w[0].x, w[0].y), sincos_turn(w[0].z, w[0].w), log_uniform(w[1].x, w[1].y),
                  sincos_turn(w[1].z, w[1].w));
    }
  }
};

// Exponential with mean `scale`: -log(u) * scale. Never 0, unless the dtype rounds it so.
template <class T> struct Exponential {
  static constexpr int sections = sizeof(T) / 4;
  T scale;
  template <class... Word> [[gnu::always_inline]] VOLTA_HD T from(Word... w) const {
    return -scale * detail::log_uniform(w...);
  }
  [[gnu::always_inline]] VOLTA_HD Block<T> operator()(const Words (&w)[sections]) const { return each(*this, w); }
};

// True with probability (threshold + 1) / 2^32, or never.
struct Bernoulli {
  static constexpr int sections = 1;
  uint32_t threshold;
  bool possible;
  [[gnu::always_inline]] VOLTA_HD bool from(uint32_t w) const { return (w <= threshold) & possible; }
  [[gnu::always_inline]] VOLTA_HD Block<bool> operator()(const Words (&w)[1]) const { return each(*this, w); }
};

// low + floor(range * u), with 64 random bits in u; range below 2^32.
struct NarrowInteger {
  static constexpr int sections = 2;
  uint64_t low;
  uint32_t range;
  // A value's share is off by less than range / 2^64 of itself.
  [[gnu::always_inline]] VOLTA_HD uint64_t from(uint32_t high_word, uint32_t low_word) const {
    return low + ((uint64_t(high_word) * range + (uint64_t(low_word) * range >> 32)) >> 32);
  }
  [[gnu::always_inline]] VOLTA_HD Block<uint64_t> operator()(const Words (&w)[2]) const { return each(*this, w); }
};

// The same with 128 random bits in u, for any range; 0 stands for 2^64.
struct WideInteger {
  static constexpr int sections = 4;
  uint64_t low, range;
  [[gnu::always_inline]] VOLTA_HD uint64_t from(Words w) const {
    using detail::multiply_high;
    const uint64_t first = uint64_t(w.x) << 32 | w.y, second = uint64_t(w.z) << 32 | w.w;
    const uint64_t product = first * range, carry = product + multiply_high(second, range) < product;
    return low + (range == 0 ? first : multiply_high(first, range) + carry);
  }
  [[gnu::always_inline]] VOLTA_HD Block<uint64_t> operator()(const Words (&w)[4]) const {
    return {{from(w[0]), from(w[1]), from(w[2]), from(w[3])}};
  }
};

// One block of a formula, as a device thread computes it.
template <class Formula>
[[gnu::always_inline]] VOLTA_HD inline auto draw_block(const Formula& formula, uint64_t seed, uint64_t counter) {
  Words words[Formula::sections];
  for (int s = 0; s < Formula::sections; s++) words[s] = block_words(seed, counter, uint32_t(s));
  return formula(words);
}

}  // namespace volta::random

// Random distributions as formulas for one block of four elements, for every device. A block is a pure function of
// (seed, counter); element i of a call is element i % 4 of the block with counter offset + i / 4.
#pragma once
#include <cstdint>

#include <volta/scalar/exp_log.h>
#include <volta/scalar/trig.h>

namespace volta::random {

// Functions here are always inlined: kernels compiled for different instruction sets must not share a copy of them.

// Philox 4x32-10, the counter-based generator of Salmon et al. (SC 2011): a pure function of key and counter, so any
// element of a stream can be computed alone.
template <class W> struct WordsOf { W x{}, y{}, z{}, w{}; };
using Words = WordsOf<uint32_t>;

template <class W> struct WideProduct { W high, low; };

[[gnu::always_inline]] VOLTA_HD inline constexpr WideProduct<uint32_t> multiply(uint32_t a, uint32_t b) {
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
    const WideProduct<W> a = multiply(0xD2511F53u, c.x), b = multiply(0xCD9E8D57u, c.z);
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

// The first `digits` bits of a word as an integer below 2^31, which every vector unit makes a float of.
template <class T> [[gnu::always_inline]] VOLTA_HD inline constexpr T leading(uint32_t w, int digits) {
  return T(int32_t(w >> (32 - digits)));
}

// On [0, 1): 24 bits of the first word in float, 53 of the first two in double.
template <class T> [[gnu::always_inline]] VOLTA_HD inline constexpr T unit(const Words& w) {
  if constexpr (sizeof(T) == 4) return leading<T>(w.x, 24) * 0x1p-24f;
  else return leading<T>(w.x, 27) * 0x1p-27 + leading<T>(w.y, 26) * 0x1p-53;
}
[[gnu::always_inline]] VOLTA_HD inline constexpr float unit(uint32_t w) { return unit<float>({w}); }

namespace detail {

// u = (k + 1/2) / 2^n for an integer k of n random bits, 32 for float and 53 for double: on (0, 1).
template <class T> [[gnu::always_inline]] VOLTA_HD inline constexpr T open_unit(const Words& w) {
  if constexpr (sizeof(T) == 4) return unit<T>(w) + (T(int32_t(w.x & 255u)) + 0.5f) * 0x1p-32f;
  else return leading<T>(w.x, 27) * 0x1p-27 + (leading<T>(w.y, 26) + 0.5) * 0x1p-53;
}

// log(u), always below 0. Near 1 the distance to 1 is taken from the bits, for u itself would have lost them.
template <class T> [[gnu::always_inline]] VOLTA_HD inline constexpr T log_uniform(const Words& w) {
  const auto [k, f, scale] = scalar::detail::log_parts(open_unit<T>(w));
  return scalar::detail::log_sum(k, scalar::select(w.x >= 0xc0000000u, -open_unit<T>({~w.x, ~w.y}), f));
}

// An angle of random turns; the reduction to a quadrant is exact, in integers.
template <class T> [[gnu::always_inline]] VOLTA_HD inline constexpr scalar::detail::TrigParts<T> angle(const Words& w) {
  const uint32_t quadrant = (w.x + 0x20000000u) >> 30;
  T turns = T(int32_t(w.x - (quadrant << 30)));
  if constexpr (sizeof(T) == 8) turns += leading<T>(w.y, 31) * 0x1p-31;
  return {turns * T(0x1.921fb54442d18p-30), T(0), quadrant};
}

}  // namespace detail

// A formula gives element k of a block of four from the bits of each: `sections` words where it takes as many.

// Uniform between a and b. The caller gives the least and greatest allowed values, so that rounding never yields b.
template <class T> struct Uniform {
  static constexpr int sections = sizeof(T) / 4;
  T a, width, least, greatest;
  [[gnu::always_inline]] VOLTA_HD T operator()(int k, const Words* bits) const {
    const T x = a + width * unit<T>(bits[k]), raised = x < least ? least : x;
    return raised > greatest ? greatest : raised;
  }
};

// Box-Muller: a radius and an angle give two independent normals.
template <class T> struct Normal {
  static constexpr int sections = sizeof(T) / 4;
  T mean, deviation;
  [[gnu::always_inline]] VOLTA_HD T operator()(int k, const Words* bits) const {
    const T radius = scalar::sqrt(T(-2) * detail::log_uniform<T>(bits[k & 2])) * deviation;
    const auto angle = detail::angle<T>(bits[k | 1]);
    return mean + radius * (k % 2 == 0 ? scalar::detail::cos_from(angle) : scalar::detail::sin_from(angle, T(1)));
  }
};

// Exponential with mean `scale`: -log(u) * scale. Never 0, unless the dtype rounds it so.
template <class T> struct Exponential {
  static constexpr int sections = sizeof(T) / 4;
  T scale;
  [[gnu::always_inline]] VOLTA_HD T operator()(int k, const Words* bits) const {
    return -scale * detail::log_uniform<T>(bits[k]);
  }
};

// True with probability (threshold + 1) / 2^32, or never.
struct Bernoulli {
  static constexpr int sections = 1;
  uint32_t threshold;
  bool possible;
  [[gnu::always_inline]] VOLTA_HD bool operator()(int k, const Words* bits) const {
    return (bits[k].x <= threshold) & possible;
  }
};

// low + floor(range * u), with 64 random bits in u; range below 2^32.
struct NarrowInteger {
  static constexpr int sections = 2;
  uint64_t low;
  uint32_t range;
  // A value's share is off by less than range / 2^64 of itself.
  [[gnu::always_inline]] VOLTA_HD uint64_t operator()(int k, const Words* bits) const {
    return low + ((uint64_t(bits[k].x) * range + (uint64_t(bits[k].y) * range >> 32)) >> 32);
  }
};

// The same with 128 random bits in u, for any range; 0 stands for 2^64.
struct WideInteger {
  static constexpr int sections = 4;
  uint64_t low, range;
  [[gnu::always_inline]] VOLTA_HD uint64_t operator()(int k, const Words* bits) const {
    using scalar::detail::multiply_high;
    const auto [x, y, z, w] = bits[k];
    const uint64_t first = uint64_t(x) << 32 | y, second = uint64_t(z) << 32 | w;
    const uint64_t product = first * range, carry = product + multiply_high(second, range) < product;
    return low + (range == 0 ? first : multiply_high(first, range) + carry);
  }
};

// The words of a block's sections, dealt out to its elements.
[[gnu::always_inline]] VOLTA_HD inline constexpr Block<Words> dealt(const Words (&w)[1]) {
  return {{{w[0].x}, {w[0].y}, {w[0].z}, {w[0].w}}};
}
[[gnu::always_inline]] VOLTA_HD inline constexpr Block<Words> dealt(const Words (&w)[2]) {
  return {{{w[0].x, w[0].y}, {w[0].z, w[0].w}, {w[1].x, w[1].y}, {w[1].z, w[1].w}}};
}
[[gnu::always_inline]] VOLTA_HD inline constexpr Block<Words> dealt(const Words (&w)[4]) {
  return {{w[0], w[1], w[2], w[3]}};
}

template <class Formula>
[[gnu::always_inline]] VOLTA_HD inline auto block_of(const Formula& f, const Words (&words)[Formula::sections]) {
  const auto [bits] = dealt(words);
  return Block<decltype(f(0, bits))>{{f(0, bits), f(1, bits), f(2, bits), f(3, bits)}};
}

// One block of a formula, as a device thread computes it.
template <class Formula>
[[gnu::always_inline]] VOLTA_HD inline auto draw_block(const Formula& formula, uint64_t seed, uint64_t counter) {
  Words words[Formula::sections];
  for (int s = 0; s < Formula::sections; s++) words[s] = block_words(seed, counter, uint32_t(s));
  return block_of(formula, words);
}

}  // namespace volta::random

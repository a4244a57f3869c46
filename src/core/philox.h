// Philox 4x32-10, the counter-based generator of Salmon et al. (SC 2011), for every device: a pure function of key and
// counter, so any element of a stream can be computed alone.
#pragma once
#include <cstdint>

#include <volta/dtype.h>

namespace volta::random {

// Functions here are always inlined: kernels compiled for different instruction sets must not share a copy of them.

template <class W> struct WordsOf { W x, y, z, w; };
using Words = WordsOf<uint32_t>;

template <class W> struct Product { W high, low; };

[[gnu::always_inline]] VOLTA_HD inline constexpr Product<uint32_t> multiply(uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t(a) * b;
  return {uint32_t(product >> 32), uint32_t(product)};
}

namespace detail {

// One round, with the key raised `step` times by the Weyl increments.
template <uint32_t step, class W>
[[gnu::always_inline]] VOLTA_HD inline constexpr WordsOf<W> philox_round(const WordsOf<W>& c, uint32_t k0,
                                                                         uint32_t k1) {
  constexpr uint32_t w0 = 0x9E3779B9u * step, w1 = 0xBB67AE85u * step;
  const Product<W> a = multiply(0xD2511F53u, c.x), b = multiply(0xCD9E8D57u, c.z);
  return {b.high ^ c.y ^ (k0 + w0), b.low, a.high ^ c.w ^ (k1 + w1), a.low};
}

}  // namespace detail

// W is uint32_t, or a vector of them with ^ and `multiply`.
template <class W>
[[gnu::always_inline]] VOLTA_HD inline constexpr WordsOf<W> philox(WordsOf<W> c, uint32_t k0, uint32_t k1) {
  c = detail::philox_round<0>(c, k0, k1);
  c = detail::philox_round<1>(c, k0, k1);
  c = detail::philox_round<2>(c, k0, k1);
  c = detail::philox_round<3>(c, k0, k1);
  c = detail::philox_round<4>(c, k0, k1);
  c = detail::philox_round<5>(c, k0, k1);
  c = detail::philox_round<6>(c, k0, k1);
  c = detail::philox_round<7>(c, k0, k1);
  c = detail::philox_round<8>(c, k0, k1);
  return detail::philox_round<9>(c, k0, k1);
}

// Four random words for one block of a stream. A block that needs more than four takes them from its further sections.
[[gnu::always_inline]] VOLTA_HD inline constexpr Words block_words(uint64_t seed, uint64_t counter, uint32_t section) {
  const Words c{uint32_t(counter), uint32_t(counter >> 32), section, 0};
  return philox(c, uint32_t(seed), uint32_t(seed >> 32));
}

}  // namespace volta::random

// The loops that draw random numbers: whole groups of blocks at a time, then a conversion to the output's dtype.
#include "backend/cpu/copy/kernels.h"
#include "backend/cpu/random/kernels.h"

#include <type_traits>
#include <utility>

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int group = 64;  // blocks; always drawn whole, so an element's bits do not depend on where a piece ends

// The words of a group, each kind in its own row, so that the loops over them are plain vector code.
struct GroupWords {
  alignas(64) uint32_t x[group], y[group], z[group], w[group];
};

#if defined(__ARM_NEON)
// Several independent vectors hide the latency of the multiplications.
struct Lanes {
  static constexpr int vectors = 4, count = 4 * vectors;
  uint32x4_t v[vectors];

  friend Lanes operator^(Lanes a, const Lanes& b) {
    for (int i = 0; i < vectors; i++) a.v[i] = veorq_u32(a.v[i], b.v[i]);
    return a;
  }
  friend Lanes operator^(Lanes a, uint32_t b) {
    for (int i = 0; i < vectors; i++) a.v[i] = veorq_u32(a.v[i], vdupq_n_u32(b));
    return a;
  }
  friend random::WideProduct<Lanes> multiply(uint32_t a, const Lanes& b) {
    random::WideProduct<Lanes> r;
    for (int i = 0; i < vectors; i++) {
      const uint32x4_t p = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(b.v[i]), a));
      const uint32x4_t q = vreinterpretq_u32_u64(vmull_high_n_u32(b.v[i], a));
      r.high.v[i] = vuzp2q_u32(p, q);
      r.low.v[i] = vuzp1q_u32(p, q);
    }
    return r;
  }
};

void store(uint32_t* out, const Lanes& x) {
  for (int i = 0; i < Lanes::vectors; i++) vst1q_u32(out + 4 * i, x.v[i]);
}
#endif

void draw_words(GroupWords& out, uint64_t seed, uint64_t counter, uint32_t section) {
  const uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32), low = uint32_t(counter),
                 high = uint32_t(counter >> 32);
#if defined(__ARM_NEON)
  for (uint32_t j = 0; j < group; j += Lanes::count) {
    random::WordsOf<Lanes> c;
    for (int i = 0; i < Lanes::vectors; i++) {
      constexpr uint32_t steps[4] = {0, 1, 2, 3};
      c.x.v[i] = vaddq_u32(vdupq_n_u32(low + j + 4 * uint32_t(i)), vld1q_u32(steps));
      c.y.v[i] = vsubq_u32(vdupq_n_u32(high), vcltq_u32(c.x.v[i], vdupq_n_u32(low)));
      c.z.v[i] = vdupq_n_u32(section);
      c.w.v[i] = vdupq_n_u32(0);
    }
    c = random::philox(c, k0, k1);
    store(out.x + j, c.x);
    store(out.y + j, c.y);
    store(out.z + j, c.z);
    store(out.w + j, c.w);
  }
#else
  for (uint32_t j = 0; j < group; j++) {
    const random::Words p = random::philox(random::Words{low + j, high + (low + j < low), section, 0}, k0, k1);
    out.x[j] = p.x;
    out.y[j] = p.y;
    out.z[j] = p.z;
    out.w[j] = p.w;
  }
#endif
}

template <class Formula, class Value, size_t... s>
void apply(const Formula& formula, const GroupWords* words, Value (&out)[4][group], std::index_sequence<s...>) {
  for (int j = 0; j < group; j++) {
    const random::Words block[] = {{words[s].x[j], words[s].y[j], words[s].z[j], words[s].w[j]}...};
    const random::Block<Value> values = random::block_of(formula, block);
    for (int k = 0; k < 4; k++) out[k][j] = values.element[k];
  }
}

template <class Formula> void draw(const Formula& formula, const RandomPiece& piece) {
  constexpr int sections = Formula::sections;
  using Value = decltype(formula(0, nullptr));
  using Source = std::conditional_t<std::is_same_v<Value, uint64_t>, int64_t, Value>;
  const CastRow cast = cast_kernel<Isa::VOLTA_ISA>(piece.dtype, dtype_of<Source>());
  const Formula local = formula;
  const int64_t size = size_of(piece.dtype);
  GroupWords words[sections];
  Value rows[4][group], values[4 * group];
  for (int64_t i = 0; i < piece.n; i += 4 * group) {
    for (int s = 0; s < sections; s++) draw_words(words[s], piece.seed, piece.counter + uint64_t(i / 4), uint32_t(s));
    apply(local, words, rows, std::make_index_sequence<sections>{});
    for (int j = 0; j < group; j++)
      for (int k = 0; k < 4; k++) values[4 * j + k] = rows[k][j];
    const int64_t n = piece.n - i < 4 * group ? piece.n - i : 4 * group;
    cast(n, static_cast<std::byte*>(piece.out) + i * size, values);
  }
}

constexpr Draws table = []<class... Formula>(std::tuple<Draw<Formula>...>) { return Draws(draw<Formula>...); }(Draws());

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::Draws& volta::cpu::draws<volta::cpu::Isa::VOLTA_ISA>() { return VOLTA_ISA::table; }

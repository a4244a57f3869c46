// Operands of the packed GEMM: widening loads, rounding stores, the strided packer, and the matrix operand.
#pragma once
#include "backend/cpu/gemm/kernels/micro_kernel.h"
#include "volta/dtype.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace volta::cpu::VOLTA_ISA {
namespace {

// Booleans as they lie in memory.
struct Boolean {
  uint8_t byte;
};

// The type in which values of a stored type are multiplied and summed.
template <class S> struct ComputeOf {
  using Type = std::conditional_t<std::is_integral_v<S>, std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, float>;
};
template <> struct ComputeOf<double> { using Type = double; };
template <class S> using Compute = typename ComputeOf<S>::Type;

template <class S> [[gnu::always_inline]] inline Compute<S> widen(S x) {
  if constexpr (std::is_same_v<S, Boolean>) return float(x.byte != 0);
  else if constexpr (std::is_same_v<S, bfloat16>) return __builtin_bit_cast(float, uint32_t(x.bits) << 16);
  else if constexpr (std::is_same_v<S, float16>) return float16::widen(x.bits);
  else return x;
}

template <class S> [[gnu::always_inline]] inline void narrow(S& to, Compute<S> x) {
  if constexpr (std::is_same_v<S, Boolean>) to.byte = x != 0;
  else if constexpr (std::is_same_v<S, bfloat16> || std::is_same_v<S, float16>) to.bits = S::round(x);
  else to = S(x);
}

// Whether a sum is negative as a value of the stored type. Integers are taken as signed.
template <class S> [[gnu::always_inline]] inline bool negative(Compute<S> x) {
  if constexpr (std::is_integral_v<S>) return std::make_signed_t<S>(x) < 0;
  else return x < 0;
}

// n compute values from consecutive stored ones.
template <int n, class S> [[gnu::always_inline]] inline Some<Compute<S>, n> load_some(const S* from) {
  using T = Compute<S>;
  Some<T, n> values;
  if constexpr (sizeof(S) == sizeof(T)) {
    __builtin_memcpy(&values, from, sizeof values);
    return values;
  } else if constexpr (std::is_same_v<S, bfloat16>) {
    Some<uint16_t, n> bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    return Some<T, n>(__builtin_convertvector(bits, Some<uint32_t, n>) << 16);
  }
#if defined(__aarch64__)
  else if constexpr (std::is_same_v<S, float16>) {
    float16x4_t halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return Some<T, n>(vcvt_f32_f16(halves));
  }
#elif defined(__F16C__)
  else if constexpr (std::is_same_v<S, float16> && n == 8) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  } else if constexpr (std::is_same_v<S, float16> && n == 4) {
    return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
#endif
#if defined(__AVX512F__)
  else if constexpr (std::is_same_v<S, float16>) {
    return _mm512_maskz_cvtph_ps(__mmask16(0xffff), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
#endif
  else {
    for (int l = 0; l < n; ++l) values[l] = widen(from[l]);
    return values;
  }
}

// Squares of values are transposed in registers: quads, or with wide registers eight floats by eight.
template <class T> constexpr int square = register_bytes > 16 && sizeof(T) == 4 ? 8 : quad<T>;

// Rows become columns: to[i * step + l] = r[l][i].
template <class T> [[gnu::always_inline]] inline void store_transposed(const Quad<T>* r, T* to, int64_t step) {
  const auto put = [&](int i, Quad<T> column) { __builtin_memcpy(to + i * step, &column, sizeof column); };
  if constexpr (sizeof(T) == 8) {
    put(0, __builtin_shufflevector(r[0], r[1], 0, 2));
    put(1, __builtin_shufflevector(r[0], r[1], 1, 3));
  } else {
    const Quad<T> x = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
                  y = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const Quad<T> z = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
                  w = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    put(0, __builtin_shufflevector(x, z, 0, 1, 4, 5));
    put(1, __builtin_shufflevector(x, z, 2, 3, 6, 7));
    put(2, __builtin_shufflevector(y, w, 0, 1, 4, 5));
    put(3, __builtin_shufflevector(y, w, 2, 3, 6, 7));
  }
}
// Eight rows at once: their halves are transposed side by side, then joined.
template <class T> [[gnu::always_inline]] inline void store_eight_transposed(const Some<T, 8>* r, T* to, int64_t step) {
  Some<T, 8> pairs[8], fours[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Some<T, 8>&a = pairs[i / 2 * 4 + i % 2], &b = pairs[i / 2 * 4 + i % 2 + 2];
    fours[2 * i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    fours[2 * i + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const Some<T, 8> low = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11),
                     high = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    __builtin_memcpy(to + i * step, &low, sizeof low);
    __builtin_memcpy(to + (i + 4) * step, &high, sizeof high);
  }
}

template <class T> [[gnu::always_inline]] inline void store_square(const Some<T, square<T>>* r, T* to, int64_t step) {
  if constexpr (square<T> == 8) store_eight_transposed<T>(r, to, step);
  else store_transposed<T>(r, to, step);
}

// A rectangle to pack, passed by value so that stores cannot alias it: to[p * tile + i] = from[i * step + p *
// depth_step] for i < n, zero for n <= i < tile.
template <class S> struct PackCall {
  Compute<S>* to;
  int64_t tile, n, k;
  const S* from;
  int64_t step, depth_step;
};

// Rows of so many values, a whole number of vectors or half of one, in which the loop over them leaves nothing to count.
template <int n, class S> void pack_whole(PackCall<S> c) {
  using T = Compute<S>;
  constexpr int width = int(smaller(n, lanes<T>)), line = 64 / int(sizeof(S));
  for (int64_t p = 0; p < c.k; ++p, c.from += c.depth_step, c.to += n) {
#pragma GCC unroll 4
    for (int i = 0; i < n; i += line) __builtin_prefetch(c.from + 8 * c.depth_step + i);
#pragma GCC unroll 4
    for (int i = 0; i < n; i += width) {
      const Some<T, width> values = load_some<width>(c.from + i);
      __builtin_memcpy(c.to + i, &values, sizeof values);
    }
  }
}

// Contiguous along the tile: rows are copied.
template <class S> void pack_rows(PackCall<S> c) {
  using T = Compute<S>;
  constexpr int width = lanes<T>, half = larger(width / 2, quad<T>);
  if (c.n == c.tile && c.n == half) return pack_whole<half>(c);
  if (c.n == c.tile && c.n == 2 * width) return pack_whole<2 * width>(c);
  if (c.n == c.tile && c.n == 3 * width) return pack_whole<3 * width>(c);
  for (int64_t p = 0; p < c.k; ++p) {
    const S* from = c.from + p * c.depth_step;
    T* to = c.to + p * c.tile;
    for (int64_t i = 0; i < c.n; i += 64 / int(sizeof(S))) __builtin_prefetch(from + 8 * c.depth_step + i);
    int64_t i = 0;
    for (; i + lanes<T> <= c.n; i += lanes<T>) store<T>(to + i, load_some<lanes<T>>(from + i));
    for (; i + quad<T> <= c.n; i += quad<T>) {
      const Quad<T> values = load_some<quad<T>>(from + i);
      __builtin_memcpy(to + i, &values, sizeof values);
    }
    for (; i < c.n; ++i) to[i] = widen(from[i]);
    for (; i < c.tile; ++i) to[i] = 0;
  }
}

// Panels side by side in memory, each of n values a row and `apart` from the one before where they go. They share cache lines,
// and their rows often compete for the same few, so each row is read once, as far as all panels reach; a few rows at a time,
// so that lines are written whole.
template <int n, class S> void pack_beside(PackCall<S> c, int64_t count, int64_t apart) {
  using T = Compute<S>;
  constexpr int width = int(smaller(n, lanes<T>)), depths = n * sizeof(T) % 64 == 0 ? 1 : 4, ahead = 8;
  const auto rows = [=]<int some>(int64_t p) __attribute__((always_inline)) {
    const S* from = c.from + p * c.depth_step;
    T* to = c.to + p * n;
    for (int64_t i = 0; i < count; ++i, from += n, to += apart) {
#pragma GCC unroll 4
      for (int d = 0; d < some; ++d) {
#pragma GCC unroll 4
        for (int j = 0; j < n; j += 64 / int(sizeof(S))) __builtin_prefetch(from + (ahead + d) * c.depth_step + j);
#pragma GCC unroll 4
        for (int j = 0; j < n; j += width) {
          const Some<T, width> values = load_some<width>(from + d * c.depth_step + j);
          __builtin_memcpy(to + d * n + j, &values, sizeof values);
        }
      }
    }
  };
  int64_t p = 0;
  for (; p + depths <= c.k; p += depths) rows.template operator()<depths>(p);
  for (; p < c.k; ++p) rows.template operator()<1>(p);
}

template <class S, int vectors = 1> [[gnu::noinline]] void pack_panels(PackCall<S> c, int64_t count, int64_t apart) {
  using T = Compute<S>;
  constexpr int half = larger(lanes<T> / 2, quad<T>);
  if (c.tile == half) return pack_beside<half>(c, count, apart);
  if constexpr (vectors <= 4) {
    if (c.tile == vectors * lanes<T>) return pack_beside<vectors * lanes<T>>(c, count, apart);
    pack_panels<S, vectors + 1>(c, count, apart);
  } else {
    constexpr int64_t depths = 32;
    for (int64_t p = 0; p < c.k; p += depths) {
      for (int64_t i = 0; i < count; ++i)
        pack_rows(PackCall<S>{c.to + i * apart + p * c.tile, c.tile, c.tile, smaller(depths, c.k - p),
                              c.from + i * c.tile + p * c.depth_step, 1, c.depth_step});
    }
  }
}

// Otherwise squares are transposed where k is contiguous, the last overlapping those before, and the rest is gathered one by
// one.
template <class S> [[gnu::noinline]] void pack(PackCall<S> c) {
  if (c.step == 1) return pack_rows(c);
  using T = Compute<S>;
  constexpr int q = square<T>;
  const int64_t squares = c.depth_step == 1 && c.n >= q ? c.k / q * q : 0;
  for (int64_t at = 0; at < c.n; at += q) {
    const int64_t i = c.n >= q ? smaller(at, c.n - q) : at;
    const S* from = c.from + i * c.step;
    for (int64_t p = 0; p < squares; p += q) {
      __builtin_prefetch(from + (q + p / q % q) * c.step + p);  // of the next squares, one row after the other
      Some<T, q> values[q];
#pragma GCC unroll 8
      for (int l = 0; l < q; ++l) values[l] = load_some<q>(from + l * c.step + p);
      store_square<T>(values, c.to + p * c.tile + i, c.tile);
    }
    for (int64_t p = squares; p < c.k; ++p) {
      for (int64_t l = i; l < smaller(i + q, c.n); ++l)
        c.to[p * c.tile + l] = widen(c.from[l * c.step + p * c.depth_step]);
    }
  }
  for (int64_t p = 0; p < c.k && c.n < c.tile; ++p) {
    for (int64_t i = c.n; i < c.tile; ++i) c.to[p * c.tile + i] = 0;
  }
}

// The operand that is a strided matrix. An operand of multiply() is anything with this panel(): it gives the view of
// rows (or columns) [i, i + n) and depths [p, p + k), padded with zeros to `tile`, using `buffer` if it has to pack.
// The views of A may have any strides where the kernel broadcasts; others are contiguous along the tile.
template <class S, bool any_strides> struct MatrixOperand {
  using T = Compute<S>;
  const S* data;
  int64_t step, depth_step;
  bool direct;  // may be read in place: too few uses to repay packing

  bool side_by_side() const { return step == 1 && !direct; }
  // Packs `count` panels that lie side by side.
  void panels(T* to, int64_t count, int64_t i, int64_t tile, int64_t p, int64_t k) const {
    pack_panels(PackCall<S>{to, tile, tile, k, data + i + p * depth_step, 1, depth_step}, count, tile * k);
  }
  View<T> panel(T* buffer, int64_t i, int64_t n, int64_t tile, int64_t p, int64_t k) const {
    const S* from = data + i * step + p * depth_step;
    const bool in_place = sizeof(S) == sizeof(T) && direct && (any_strides || (step == 1 && n == tile));
    if (in_place) return {reinterpret_cast<const T*>(from), step, depth_step};
    pack(PackCall<S>{buffer, tile, n, k, from, step, depth_step});
    return {buffer, 1, tile};
  }
};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

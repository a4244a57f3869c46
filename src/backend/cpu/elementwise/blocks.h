// Blocks of a row as the CPU backend runs them: by vector classes where a formula has them, with shorter formulas for
// ordinary arguments, and prefetching. Included by files that are compiled once per instruction set.
#pragma once
#include <volta/elementwise_rows.h>

#include "backend/cpu/prefetch.h"

namespace volta::detail {

template <class Op, int Kernel, class T, class... X> [[gnu::always_inline]] inline T near(X... x) {
  if constexpr (Kernel == 0) return Op::template near<T>(x...);
  else return Op::template near_back<T>(x...);
}
template <class T> inline constexpr int stretch = 8 * block_size<T>;

template <class Op, class T> [[gnu::always_inline]] inline bool is_near(const T* x) {
  using Bits = scalar::detail::Unsigned<T>;
  const auto larger = [](Bits a, Bits b) __attribute__((always_inline)) { return a > b ? a : b; };
  Bits largest[block_size<T>] = {}, top = 0;
  for (int k = 0; k < stretch<T>; k += block_size<T>)
    for (int i = 0; i < block_size<T>; ++i)
      largest[i] = larger(largest[i], scalar::detail::bits(x[k + i]) & ~scalar::detail::sign_bit<T>);
  for (Bits each : largest) top = larger(top, each);
  return top <= scalar::detail::bits(Op::template near_limit<T>);
}

// Out of line, so that its constants do not take the registers of the loop around it.
template <class Op, int Kernel, class T, class... X>
[[gnu::flatten, gnu::noinline]] void general_block(T* o, const X*... x) {
  block<scalar::Wide<T>::size>(
      [](X... v) __attribute__((always_inline)) { return evaluate<Op, Kernel, T>(v...); }, o, x...);
}

template <class Op, int Kernel, class T> constexpr bool by_lanes() {
  return !std::is_same_v<scalar::Wide<T>, T> && has_near<Op, Kernel, scalar::Wide<T>>();
}
template <int Count, class T> [[gnu::always_inline]] inline void prefetch(const Stream<T>& x, int64_t i) {
  if (prefetch_helps && x.uncached) prefetch_ahead<Count * int64_t(sizeof(T))>(x.start + i);
}
// n is a multiple of Lanes' size.
template <class Op, int Kernel, class T, class... X>
[[gnu::always_inline]] inline void lanes_row(int64_t n, T* o, Stream<X>... x) {
  using Lanes = scalar::Wide<T>;
  for (int64_t i = 0; i < n; i += Lanes::size) {
    const T* const operand[] = {(x + i)...};
    if (Lanes::load(operand[Kernel]).within(Op::template near_limit<T>)) [[likely]]
      near<Op, Kernel, Lanes>(Lanes::load(x + i)...).store(o + i);
    else general_block<Op, Kernel, T>(o + i, (x + i)...);
  }
}
// n is a multiple of the block's size.
template <class Op, int Kernel, class T, class R, class... X>
[[gnu::always_inline]] inline void block_row(int64_t n, R* o, Stream<X>... x) {
  int64_t i = 0;
  const auto blocks = [&](int64_t end, auto f) __attribute__((always_inline)) {
    for (; i < end; i += block_size<T>) block<block_size<T>>(f, o + i, (x + i)...);
  };
  while (i < n) {
    const int64_t end = n - i < stretch<T> ? n : i + stretch<T>;
    (prefetch<stretch<T>>(x, i), ...);
    if constexpr (has_near<Op, Kernel, T>()) {
      const T* const operand[] = {(x + i)...};
      if (end - i == stretch<T> && is_near<Op>(operand[Kernel]))
        blocks(
            end, [](X... v) __attribute__((always_inline)) { return near<Op, Kernel, T>(v...); });
    }
    blocks(
        end, [](X... v) __attribute__((always_inline)) { return evaluate<Op, Kernel, T>(v...); });
  }
}

// Tag keeps the instantiations of different instruction sets apart.
template <class Tag> struct TunedBlocks {
  template <class Op, int Kernel, class T> static constexpr int size = [] {
    if constexpr (by_lanes<Op, Kernel, T>()) return scalar::Wide<T>::size;
    else return block_size<T>;
  }();
  template <class Op, int Kernel, class T, class R, class... X>
  [[gnu::always_inline]] static void run(int64_t n, R* o, Stream<X>... x) {
    if constexpr (by_lanes<Op, Kernel, T>()) lanes_row<Op, Kernel, T>(n, o, x...);
    else block_row<Op, Kernel, T>(n, o, x...);
  }
};

}  // namespace volta::detail

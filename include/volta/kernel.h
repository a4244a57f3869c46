// The loops over contiguous rows that a pointwise op's formula and its derivatives become.
#pragma once
#include <cstdint>
#include <utility>

#include <volta/dual.h>
#include <volta/pointop.h>

namespace volta {

// One row: out[i] = f(in[0][i], in[1][i], …), everything contiguous and in the compute dtype.
using RowFunction = void (*)(int64_t n, void* out, const void* const* in);

using scalar::Dual;

template <class Op, int By, class T> constexpr bool has_rule() {
  constexpr int n = arity<Op>;
  if constexpr (n == 1) return By == 0 && requires(T x) { Op::template back<T>(x, x, x); };
  else if constexpr (n == 2 && By == 0) return requires(T x) { Op::template back0<T>(x, x, x, x); };
  else if constexpr (n == 2) return requires(T x) { Op::template back1<T>(x, x, x, x); };
  else if constexpr (By == 0) return requires(T x) { Op::template back0<T>(x, x, x, x, x); };
  else if constexpr (By == 1) return requires(T x) { Op::template back1<T>(x, x, x, x, x); };
  else return requires(T x) { Op::template back2<T>(x, x, x, x, x); };
}

// g times the derivative of Op by operand By; the arguments are (g, operands…, output).
template <class Op, int By, class T, class... X>
[[gnu::always_inline]] VOLTA_HD constexpr T derivative(T g, X... x) {
  if constexpr (has_rule<Op, By, T>()) {
    if constexpr (arity<Op> == 1) return Op::template back<T>(g, x...);
    else if constexpr (By == 0) return Op::template back0<T>(g, x...);
    else if constexpr (By == 1) return Op::template back1<T>(g, x...);
    else return Op::template back2<T>(g, x...);
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      const T values[] = {T(x)...};
      return g * Op::template f<Dual<T>>(Dual<T>(values[I], T(int(I) == By ? 1 : 0))...).d;
    }(std::make_index_sequence<size_t(arity<Op>)>());
  }
}

// Kernel 0 is the formula, kernel 1 + i its derivative by operand i.
template <class Op, int Kernel> inline constexpr int operands = Kernel == 0 ? arity<Op> : arity<Op> + 2;
template <class Op, int Kernel, int I, class T>
using Element = std::conditional_t<(I >= (Kernel > 0 ? 1 : 0) && I < masks_of<Op>() + (Kernel > 0 ? 1 : 0)), bool, T>;

template <class Op, int Kernel, class T, class... X>
[[gnu::always_inline]] VOLTA_HD constexpr auto evaluate(X... x) {
  if constexpr (Kernel == 0) return Op::template f<T>(x...);
  else return derivative<Op, Kernel - 1, T>(x...);
}

// Ops whose formula has a shorter form, equal to it bit for bit, for arguments of ordinary size.
template <class Op, class T> constexpr bool has_near() {
  return requires(T x) { Op::template near<T>(x) <= Op::template near_limit<T>; };
}
// Long formulas run in blocks of a constant number of elements: the compiler unrolls them to several vectors at a time,
// whose operations overlap.
template <class Op, class T> inline constexpr bool in_blocks = domain_of<Op>() == Domain::floating && sizeof(T) >= 4;
template <class T> inline constexpr int block_size = 64 / int(sizeof(T));
template <class T> inline constexpr int stretch = 8 * block_size<T>;

template <int Count, class F, class R, class... X>
[[gnu::always_inline]] inline void block(F f, R* o, const X*... x) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#pragma GCC unroll 16
#endif
  for (int k = 0; k < Count; ++k) o[k] = f(x[k]...);
}

template <class Op, class T> [[gnu::always_inline]] inline bool is_near(const T* x) {
  namespace bits = scalar::detail;
  bits::Unsigned<T> largest = 0;
  for (int k = 0; k < stretch<T>; ++k) {
    const auto magnitude = bits::bits(x[k]) & ~bits::sign_bit<T>;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest <= bits::bits(Op::template near_limit<T>);
}

// The stretches of a row whose arguments are all near, up to the first one that is not; returns where that begins.
template <class Op, class T> [[gnu::always_inline]] inline int64_t near_row(int64_t n, T* o, const T* x) {
  int64_t i = 0;
  for (; i + stretch<T> <= n && is_near<Op>(x + i); i += stretch<T>)
    for (int k = 0; k < stretch<T>; k += block_size<T>)
      block<block_size<T>>([](T v) __attribute__((always_inline)) { return Op::template near<T>(v); }, o + i + k, x + i + k);
  return i;
}

template <class F, class R, class... X> [[gnu::always_inline]] inline void plain_row(int64_t n, F f, R* o, const X*... x) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i) o[i] = f(x[i]...);
}
template <int Block, class F, class R, class... X>
[[gnu::always_inline]] inline void block_row(int64_t n, F f, R* o, const X*... x) {
  int64_t i = 0;
  for (; i + Block <= n; i += Block) block<Block>(f, o + i, x + i...);
  plain_row(n - i, f, o + i, x + i...);
}

template <class Op, int Kernel, class T, class R, class... X>
[[gnu::always_inline]] inline void any_row(int64_t n, R* o, const X*... x) {
  const auto f = [](X... v) __attribute__((always_inline)) { return evaluate<Op, Kernel, T>(v...); };
  if constexpr (Kernel == 0 && has_near<Op, T>()) {
    for (int64_t i = 0; i < n;) {
      i += near_row<Op>(n - i, o + i, x + i...);
      const int64_t m = n - i < stretch<T> ? n - i : stretch<T>;
      block_row<block_size<T>>(m, f, o + i, x + i...);
      i += m;
    }
  } else if constexpr (in_blocks<Op, T>) {
    block_row<block_size<T>>(n, f, o, x...);
  } else {
    plain_row(n, f, o, x...);
  }
}

// Tag keeps the instantiations of different instruction sets apart.
template <class Tag, class Op, int Kernel, class T> [[gnu::flatten]] void row(int64_t n, void* out, const void* const* in) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    using R = decltype(evaluate<Op, Kernel, T>(Element<Op, Kernel, int(I), T>()...));
    any_row<Op, Kernel, T>(n, static_cast<R*>(out), static_cast<const Element<Op, Kernel, int(I), T>*>(in[I])...);
  }(std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

// Ops such as a < b, whose result is a truth value whatever the operands.
template <class Op> constexpr bool gives_truth() {
  if constexpr (arity<Op> == 1) return std::is_same_v<decltype(Op::template f<float>(0.f)), bool>;
  else if constexpr (arity<Op> == 2) return std::is_same_v<decltype(Op::template f<float>(0.f, 0.f)), bool>;
  else return std::is_same_v<decltype(Op::template f<float>(0.f, 0.f, 0.f)), bool>;
}

// Whether kernel k of Op exists: derivatives only of differentiable ops, and not by a condition.
template <class Op, int Kernel> constexpr bool has_kernel() {
  if (Kernel == 0) return true;
  return Kernel <= arity<Op> && Kernel > masks_of<Op>() && differentiable<Op>() && domain_of<Op>() != Domain::integral &&
         !gives_truth<Op>();
}

// The row of a kernel for every dtype it computes in, null elsewhere.
struct Rows {
  RowFunction by_dtype[dtype_count] = {};
};
template <class Tag, class Op, int Kernel, class T> constexpr RowFunction row_of() {
  if constexpr (has_kernel<Op, Kernel>() && computes_in(Kernel == 0 ? domain_of<Op>() : Domain::floating, dtype_of<T>()))
    return &row<Tag, Op, Kernel, T>;
  else return nullptr;
}
template <class Tag, class Op, int Kernel> constexpr Rows rows_of() {
  Rows r;
  const auto add = [&]<class... T>(TypeTag<T>...) {
    ((r.by_dtype[size_t(dtype_of<T>())] = row_of<Tag, Op, Kernel, T>()), ...);
  };
  add(TypeTag<float>{}, TypeTag<double>{}, TypeTag<bool>{}, TypeTag<int8_t>{}, TypeTag<int16_t>{}, TypeTag<int32_t>{},
      TypeTag<int64_t>{}, TypeTag<uint8_t>{}, TypeTag<uint16_t>{}, TypeTag<uint32_t>{}, TypeTag<uint64_t>{});
  return r;
}

}  // namespace volta

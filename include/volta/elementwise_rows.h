// The loops over contiguous rows that a pointwise op's formula and its derivatives become.
#pragma once
#include <cstdint>
#include <utility>

#include <volta/dual.h>
#include <volta/op_traits.h>

namespace volta::detail {

// One row: out[i] = f(in[0][i], in[1][i], …), everything contiguous and in the compute dtype. Operands whose bit is set in
// `constants` are the same number throughout: their memory is constant_bytes full of it. Those whose bit is set in the
// upper half of it lie beyond the caches: a kernel may prefetch them.
using RowFunction = void (*)(int64_t n, void* out, const void* const* in, uint32_t constants);
inline constexpr int uncached_bit = 16;
inline constexpr int constant_bytes = 96;

using scalar::Dual;

template <class Op, int By, class T> constexpr bool has_rule() {
  constexpr int n = arity<Op>;
  if constexpr (n == 1) return By == 0 && requires(T x) {
      Op::template back<T>(x, x, x);
    };
  else if constexpr (n == 2 && By == 0) return requires(T x) {
      Op::template back0<T>(x, x, x, x);
    };
  else if constexpr (n == 2) return requires(T x) {
      Op::template back1<T>(x, x, x, x);
    };
  else if constexpr (By == 0) return requires(T x) {
      Op::template back0<T>(x, x, x, x, x);
    };
  else if constexpr (By == 1) return requires(T x) {
      Op::template back1<T>(x, x, x, x, x);
    };
  else return requires(T x) {
      Op::template back2<T>(x, x, x, x, x);
    };
}

// g times the derivative of Op by operand By; the arguments are (g, operands…, output).
template <class Op, int By, class T, class... X> [[gnu::always_inline]] VOLTA_HD constexpr T derivative(T g, X... x) {
  if constexpr (has_rule<Op, By, T>()) {
    if constexpr (arity<Op> == 1) return Op::template back<T>(g, x...);
    else if constexpr (By == 0) return Op::template back0<T>(g, x...);
    else if constexpr (By == 1) return Op::template back1<T>(g, x...);
    else return Op::template back2<T>(g, x...);
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      const T values[] = {T(x)...};
      return Op::template f<Dual<T>>((int(I) == By ? Dual<T>(values[I], g) : Dual<T>::fixed(values[I]))...).d;
    }
    (std::make_index_sequence<size_t(arity<Op>)>());
  }
}

// Kernel 0 is the formula, kernel 1 + i its derivative by operand i.
template <class Op, int Kernel> inline constexpr int operands = Kernel == 0 ? arity<Op> : arity<Op> + 2;
template <class Op, int Kernel, int I, class T> using Element =
    std::conditional_t<(I >= (Kernel > 0 ? 1 : 0) && I < masks_of<Op>() + (Kernel > 0 ? 1 : 0)), bool, T>;

template <class Op, int Kernel, class T, class... X> [[gnu::always_inline]] VOLTA_HD constexpr auto evaluate(X... x) {
  if constexpr (Kernel == 0) return Op::template f<T>(x...);
  else return derivative<Op, Kernel - 1, T>(x...);
}

// Ops such as a < b, whose result is a truth value whatever the operands.
template <class Op> constexpr bool gives_truth() {
  if constexpr (arity<Op> == 1) return std::is_same_v<decltype(Op::template f<float>(0.f)), bool>;
  else if constexpr (arity<Op> == 2) return std::is_same_v<decltype(Op::template f<float>(0.f, 0.f)), bool>;
  else return std::is_same_v<decltype(Op::template f<float>(0.f, 0.f, 0.f)), bool>;
}

// Kernels that have a shorter form, equal to the formula bit for bit, for arguments of ordinary size.
template <class Op, int Kernel, class T> constexpr bool has_near() {
  if constexpr (Kernel == 0) return requires(T x) {
      Op::template near<T>(x);
    };
  else return Kernel == 1 && requires(T x) {
      Op::template near_back<T>(x, x, x);
    };
}
// Formulas of floats run in blocks of a constant number of elements: the compiler unrolls them to several vectors at a
// time, whose operations overlap. An op whose formula is too long to gain says in_blocks = false.
template <class Op, class T> constexpr bool in_blocks() {
  if constexpr (requires { Op::in_blocks; }) return Op::in_blocks;
#ifdef __clang__
  return true;  // the only way to tell clang, without a warning where it cannot vectorise, that out may be an operand
#else
  if (domain_of<Op>() == Domain::floating) return std::same_as<T, float> || has_near<Op, 0, T>();
  return std::floating_point<T> && !gives_truth<Op>() && masks_of<Op>() == 0;
#endif
}
template <class T> inline constexpr int block_size = 64 / int(sizeof(T));

// An operand of a row, stepped through by blocks.
template <class T> struct Stream {
  const T* start;
  int64_t step;   // 1, or 0 for a constant
  bool uncached;  // worth a prefetch
  [[gnu::always_inline]] const T* operator+(int64_t i) const { return start + i * step; }
};

// All are read before the first is written, so that out may be an operand.
template <int Size, class F, class R, class... X> [[gnu::always_inline]] inline void block(F f, R* o, const X*... x) {
  R y[Size];
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 16
#endif
  for (int k = 0; k < Size; ++k) y[k] = f(x[k]...);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 16
#endif
  for (int k = 0; k < Size; ++k) o[k] = y[k];
}

// The compiler vectorises these by itself.
template <class Op, int Kernel, class T, class R, class... X>
[[gnu::always_inline]] inline void plain_row(int64_t n, R* o, const X*... x) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < n; ++i) o[i] = evaluate<Op, Kernel, T>(x[i]...);
}

// The last elements of a row, filled up to a block.
template <class T, int Size> struct Padded {
  T value[Size] = {};
  [[gnu::always_inline]] Padded(const T* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) value[i] = x[i];
  }
};

// What is left of a row after its whole blocks. Apart from them, whose loop then needs no stack: stores to it would
// interrupt the stream of the output.
template <class Blocks, int size, class R, class... X>
[[gnu::noinline]] void row_end(RowFunction row, int64_t n, R* o, const X*... x) {
  R last[size];
  [&](Padded<X, size>... operand) {
    const void* const operands_of_last[] = {operand.value...};
    row(size, last, operands_of_last, 0);
  }(Padded<X, size>(x, n)...);
  for (int64_t i = 0; i < n; ++i) o[i] = last[i];
}

// The whole blocks of a row, as a user's op runs them. The backend brings its own, faster form.
struct PlainBlocks {
  template <class Op, int Kernel, class T> static constexpr int size = block_size<T>;
  template <class Op, int Kernel, class T, class R, class... X>
  [[gnu::always_inline]] static void run(int64_t n, R* o, Stream<X>... x) {
    for (int64_t i = 0; i < n; i += block_size<T>)
      block<block_size<T>>(
          [](X... v) __attribute__((always_inline)) { return evaluate<Op, Kernel, T>(v...); }, o + i, (x + i)...);
  }
};

// The type Blocks also keeps the instantiations of different instruction sets apart.
template <class Blocks, class Op, int Kernel, class T>
[[gnu::flatten, gnu::noinline]] void row(int64_t n, void* out, const void* const* in, uint32_t constants) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    using R = decltype(evaluate<Op, Kernel, T>(Element<Op, Kernel, int(I), T>()...));
    [&]<class... X>(R* o, Stream<X>... x) {
      constexpr int size = Blocks::template size<Op, Kernel, T>;
      if constexpr (in_blocks<Op, T>()) {
        const int64_t rest = n % size, whole = n - rest;
        Blocks::template run<Op, Kernel, T>(whole, o, x...);
        if (rest > 0) row_end<Blocks, size>(&row<Blocks, Op, Kernel, T>, rest, o + whole, (x + whole)...);
      } else if (constants & ((1u << uncached_bit) - 1)) {
        int64_t i = 0;
        for (; i + size <= n; i += size) plain_row<Op, Kernel, T>(size, o + i, (x + i)...);
        plain_row<Op, Kernel, T>(n - i, o + i, (x + i)...);
      } else {
        plain_row<Op, Kernel, T>(n, o, x.start...);
      }
    }(static_cast<R*>(out),
      Stream<Element<Op, Kernel, int(I), T>>{static_cast<const Element<Op, Kernel, int(I), T>*>(in[I]),
                                             ~(constants >> I) & 1, (constants & 1u << (uncached_bit + I)) != 0}...);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

// Whether kernel k of Op exists: derivatives only of differentiable ops, and not by a condition.
template <class Op, int Kernel> constexpr bool has_kernel() {
  if (Kernel == 0) return true;
  return Kernel <= arity<Op> && Kernel > masks_of<Op>() && differentiable<Op>() &&
         domain_of<Op>() != Domain::integral && !gives_truth<Op>();
}

// The row of a kernel for every dtype it computes in, null elsewhere.
struct Rows {
  RowFunction by_dtype[dtype_count] = {};
};
template <class Blocks, class Op, int Kernel, class T> constexpr RowFunction row_of() {
  if constexpr (has_kernel<Op, Kernel>() &&
                computes_in(Kernel == 0 ? domain_of<Op>() : Domain::floating, dtype_of<T>()))
    return &row<Blocks, Op, Kernel, T>;
  else return nullptr;
}
template <class Blocks, class Op, int Kernel> constexpr Rows rows_of() {
  Rows r;
  const auto add = [&]<class... T>(TypeTag<T>...) {
    ((r.by_dtype[size_t(dtype_of<T>())] = row_of<Blocks, Op, Kernel, T>()), ...);
  };
  add(TypeTag<float>{}, TypeTag<double>{}, TypeTag<bool>{}, TypeTag<int8_t>{}, TypeTag<int16_t>{}, TypeTag<int32_t>{},
      TypeTag<int64_t>{}, TypeTag<uint8_t>{}, TypeTag<uint16_t>{}, TypeTag<uint32_t>{}, TypeTag<uint64_t>{});
  return r;
}

}  // namespace volta::detail

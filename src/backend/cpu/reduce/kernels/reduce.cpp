// The loops of the reducers, along rows and across them.
#include <concepts>

#include "backend/cpu/simd/spread.h"
#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

using reducers::LogSumExp;
using reducers::Sum;

template <class R, class T> constexpr bool one_number = std::same_as<typename R::template State<T>, T>;

template <class R> struct Merging : R {
  template <class V> static V lift(V x) { return x; }
};

// The numbers f(x) of a row, merged by R as vectors, where f is a formula of numbers.
template <class R, class T, class F> [[gnu::always_inline]] inline T merge_all(int64_t n, const T* x, F f) {
  constexpr int64_t block = 256;
  T buffer[block], total = R::template start<T>();
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    for (int64_t k = 0; k < m; ++k) buffer[k] = f(x[i + k]);
    total = R::merge(total, reduce_row<Vectors<Merging<R>>>(m, buffer));
  }
  return total;
}

// The state that a row leaves: one element after another, unless there is a faster way.
template <class R, class T> struct Row {
  using S = typename R::template State<T>;
  static S take(int64_t n, const T* x, int64_t first, double parameter, bool uncached) {
    if constexpr (one_number<R, T> && R::vectors) return reduce_row<Vectors<R>>(n, x, uncached);
    else if constexpr (one_number<R, T>)
      return merge_all<R>(n, x, [=](T v) { return Reducing<R>::lift(v, 0, parameter); });
    S s = R::template start<T>();
    for (int64_t i = 0; i < n; ++i) s = Reducing<R>::template next<T>(s, x[i], first + i, parameter);
    return s;
  }
};

template <class R> struct Row<R, uint8_t> {
  static auto take(int64_t n, const uint8_t* x, int64_t, double, bool uncached) {
    if constexpr (one_number<R, uint8_t>) return reduce_row<Vectors<R>>(n, x, uncached);
    else return count(n, x);
  }
  static int64_t count(int64_t n, const uint8_t* x) {
    constexpr int64_t width = lanes<uint8_t>, most = 255;  // before a byte overflows
    int64_t total = 0, i = 0;
    while (i + width <= n) {
      Vector<uint8_t> counts{};
      for (int64_t k = 0; k < most && i + width <= n; ++k, i += width)
        counts -= Vector<uint8_t>(load(x + i) != Vector<uint8_t>{});
      for (int64_t k = 0; k < width; ++k) total += counts[k];
    }
    for (; i < n; ++i) total += x[i] != 0;
    return total;
  }
};

// First the best, then where it stands.
template <bool Largest, class T> struct Row<reducers::Best<Largest, false>, T> {
  using R = reducers::Best<Largest, false>;
  using Value = Vectors<reducers::Extreme<Largest>>;
  static typename R::template State<T> take(int64_t n, const T* x, int64_t first, double, bool uncached) {
    constexpr int64_t piece = 512;
    T best = Value::template start<T>();
    int64_t where = 0;
    for (int64_t i = 0; i < n; i += piece) {
      const T top = reduce_row<Value>(n - i < piece ? n - i : piece, x + i, uncached);
      if (!R::better(top, best)) continue;
      best = top;
      where = i;
    }
    return {best, first + where + find(n - where, x + where, best)};
  }
  static int64_t find(int64_t n, const T* x, T value) {
    constexpr int64_t width = lanes<T>, ways = 4;
    int64_t i = 0;
    for (; value == value && i + ways * width <= n; i += ways * width) {
      auto equal = load(x + i) == value;
      for (int64_t k = 1; k < ways; ++k) equal |= load(x + i + k * width) == value;
      uint64_t bits[register_bytes / 8], any = 0;
      __builtin_memcpy(bits, &equal, sizeof bits);
      for (uint64_t b : bits) any |= b;
      if (any) break;
    }
    while (i < n && x[i] != value && (value == value || x[i] == x[i])) ++i;
    return i;
  }
};

// First the mean, then the squares of the differences from it.
template <std::derived_from<reducers::Var> R, class T> struct Row<R, T> {
  using S = typename R::template State<T>;
  static S take(int64_t n, const T* x, int64_t, double, bool uncached) {
    if (n == 0) return R::template start<T>();
    const auto around = [=](T mean) -> S {
      return {T(n), mean, merge_all<Sum>(n, x, [=](T v) { return (v - mean) * (v - mean); })};
    };
    const S s = around(reduce_row<Vectors<Sum>>(n, x, uncached) / T(n));
    if (!within_rounding(s.squares, s.mean, T(n))) return s;
    return around(x[0] + merge_all<Sum>(n, x, [base = x[0]](T v) { return v - base; }) / T(n));
  }
};

// First the largest: one exponential for each element, not two.
template <std::derived_from<LogSumExp> R, class T> struct Row<R, T> {
  static typename R::template State<T> take(int64_t n, const T* x, int64_t, double, bool uncached) {
    const T top = reduce_row<Vectors<reducers::Max>>(n, x, uncached), minus = R::shift(top);
    return {top, merge_all<Sum>(n, x, [=](T v) { return scalar::exp(v - minus); })};
  }
};

// Rows of vectors are added up four at a time. While they are read, the next four are on their way.
template <class R, class T> void across_vectors(int64_t n, int64_t rows, const void* in, int64_t stride, T* a) {
  using F = Vectors<R>;
  const auto at = [=](int64_t r) { return row_at<T>(in, stride, r); };
  const bool uncached = prefetch_helps && stride == n * int64_t(sizeof(T)) && rows * stride >= 1 << 20;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T *p = at(r), *q = at(r + 1), *u = at(r + 2), *v = at(r + 3);
    each<T>(n, [=](auto read, auto write, int64_t i) {
      if (uncached) __builtin_prefetch(v + n + 4 * i, 0, 1);
      const auto lower = F::merge(F::lift(read(p + i)), F::lift(read(q + i)));
      const auto upper = F::merge(F::lift(read(u + i)), F::lift(read(v + i)));
      write(a + i, F::merge(read(a + i), F::merge(lower, upper)));
    });
  }
  for (; r < rows; ++r)
    each<T>(n, [a, x = at(r)](auto read, auto write, int64_t i) {
      write(a + i, F::merge(read(a + i), F::lift(read(x + i))));
    });
}

// Flattened: a function of the list that was compiled out of line might be shared between instruction sets.
template <class R, class T> struct Loops {
  using S = typename R::template State<T>;
  using Result = decltype(Reducing<R>::template finish<T>(S(), 0, 0));

  static void start(int64_t n, ReduceState s) {
    for (int64_t i = 0; i < n; ++i) put<S>(R::template start<T>(), s, i);
  }
  [[gnu::flatten]] static void along(int64_t n, const void* row, ReduceState s, int64_t first, double parameter,
                                     bool uncached) {
    put<S>(R::merge(get<S>(s, 0), Row<R, T>::take(n, static_cast<const T*>(row), first, parameter, uncached)), s, 0);
  }
  [[gnu::flatten]] static void across(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s,
                                      int64_t first, double parameter) {
    if constexpr (one_number<R, T> && R::vectors) return across_vectors<R>(n, rows, in, stride, part<T>(s, 0));
    else if constexpr (std::derived_from<R, LogSumExp>) return across_exponentials(n, rows, in, stride, s);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = row_at<T>(in, stride, r);
      for (int64_t i = 0; i < n; ++i)
        put<S>(Reducing<R>::template next<T>(get<S>(s, i), x[i], first + r, parameter), s, i);
    }
  }
  // The largest of each column first.
  static void across_exponentials(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s) {
    constexpr int64_t block = 256;
    T top[block], sum[block];
    const ReduceState columns{{reinterpret_cast<char*>(top), reinterpret_cast<char*>(sum), nullptr}};
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block, skipped = i * int64_t(sizeof(T));
      start(m, columns);
      across_vectors<reducers::Max>(m, rows, row_at<T>(in, stride, 0) + i, stride, top);
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = row_at<T>(in, stride, r) + i;
        for (int64_t k = 0; k < m; ++k) sum[k] += scalar::exp(x[k] - LogSumExp::shift(top[k]));
      }
      merge(m, {{s.part[0] + skipped, s.part[1] + skipped, nullptr}}, columns);
    }
  }
  [[gnu::flatten]] static void merge(int64_t n, ReduceState into, ReduceState later) {
    for (int64_t i = 0; i < n; ++i) put<S>(R::merge(get<S>(into, i), get<S>(later, i)), into, i);
  }
  [[gnu::flatten]] static void finish(int64_t n, void* out, ReduceState s, int64_t count, double parameter) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<Result*>(out)[i] = Reducing<R>::template finish<T>(get<S>(s, i), double(count), parameter);
  }
  static ReduceKernel describe(DType t) {
    constexpr bool rounds = std::is_floating_point_v<T> && !R::indexed;  // sums of floats, worth adding in levels
    ReduceKernel k{kernel_dtype<T>(t),
                   kernel_dtype<Result>(t),
                   count_parts<S>(),
                   {},
                   rounds,
                   R::indexed,
                   start,
                   along,
                   across,
                   merge,
                   finish};
    S s{};
    for_parts(s, [&]<class P>(P&, int i) { k.size[i] = sizeof(P); });
    return k;
  }
};

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::ReduceKernel volta::cpu::reduce_kernel<volta::cpu::Isa::VOLTA_ISA>(int reducer, DType dtype) {
  return at_index<ReduceKernel>(Reducers{}, reducer, [=]<class R>(TypeTag<R>) {
    return VOLTA_ISA::of_elements<R>(dtype,
                                     [=]<class T>(TypeTag<T>) { return VOLTA_ISA::Loops<R, T>::describe(dtype); });
  });
}

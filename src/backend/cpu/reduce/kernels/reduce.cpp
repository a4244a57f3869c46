// The reductions: what each carries, takes in, merges and ends with; the loops follow from that.
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/simd/spread.h"
#include "backend/cpu/simd/vector.h"
#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace volta::cpu::VOLTA_ISA {
namespace {

// The larger or smaller of two, a NaN if there is one. ARM has instructions that do just that.
template <bool Larger, class V> [[gnu::always_inline]] inline V extreme_of(V a, V b) {
#ifdef __aarch64__
  if constexpr (std::is_same_v<V, Vector<float>>) return Larger ? V(vmaxq_f32(a, b)) : V(vminq_f32(a, b));
  if constexpr (std::is_same_v<V, Vector<double>>) return Larger ? V(vmaxq_f64(a, b)) : V(vminq_f64(a, b));
#endif
  return choose((Larger ? a > b : a < b) | (a != a), a, b);
}

// Reductions of one number. `identity`, `map` and `combine` hold for numbers and for vectors of them.
struct Sum {
  template <class T> static constexpr T identity() { return T(0); }
  template <class V> static V map(V x) { return x; }
  template <class V> static V combine(V a, V b) { return a + b; }
  template <class T> static T finish(T s, int64_t) { return s; }
};
struct Mean : Sum {
  template <class T> static T finish(T s, int64_t count) { return s / T(count); }
};
struct NanSum : Sum {
  template <class V> static V map(V x) { return choose(x == x, x, V{}); }
};
struct SumSquares : Sum {
  template <class V> static V map(V x) { return x * x; }
};
struct SumAbs : Sum {
  template <class V> static V map(V x) { return choose(x < V{}, V(-x), x); }
};
struct Prod : Sum {
  template <class T> static constexpr T identity() { return T(1); }
  template <class V> static V combine(V a, V b) { return a * b; }
};
struct Max : Sum {
  template <class T> static constexpr T identity() { return lowest<T>(); }
  template <class V> static V combine(V a, V b) { return extreme_of<true>(a, b); }
  template <class T> static bool better(T x, T than) { return (x > than) | ((x != x) & (than == than)); }
};
struct Min : Sum {
  template <class T> static constexpr T identity() { return highest<T>(); }
  template <class V> static V combine(V a, V b) { return extreme_of<false>(a, b); }
  template <class T> static bool better(T x, T than) { return (x < than) | ((x != x) & (than == than)); }
};
// Truth values are bytes of any value but 0: is any true, are all.
template <class F> struct Truth : F {
  template <class T> static T finish(T s, int64_t) { return s != 0; }
};

// The loops of a reduction F, which says what state no element leaves and a row leaves, which is next after another
// element, how two merge (the first is of earlier elements) and what comes out. It may bring its own loop across rows.
template <class F> struct Loops {
  using T = typename F::Input;
  using S = decltype(F::none());

  static void start(int64_t n, ReduceState s) {
    for (int64_t i = 0; i < n; ++i) F::none().put(s, i);
  }
  static void along(int64_t n, const void* row, ReduceState s, int64_t first, double parameter, bool uncached) {
    F::merge(S::get(s, 0), F::row(n, static_cast<const T*>(row), first, parameter, uncached)).put(s, 0);
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s, int64_t first,
                     double parameter) {
    if constexpr (requires { F::across; }) return F::across(n, rows, in, stride, s);
    else
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = row_at<T>(in, stride, r);
        for (int64_t i = 0; i < n; ++i) F::next(S::get(s, i), x[i], first + r, parameter).put(s, i);
      }
  }
  static void merge(int64_t n, ReduceState into, ReduceState later) {
    for (int64_t i = 0; i < n; ++i) F::merge(S::get(into, i), S::get(later, i)).put(into, i);
  }
  static void finish(int64_t n, void* out, ReduceState s, int64_t count, double parameter) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<typename F::Result*>(out)[i] = F::finish(S::get(s, i), count, parameter);
  }
};

template <class F, class T> struct Number {
  using Input = T;
  using Result = T;
  static constexpr bool rounds = std::is_floating_point_v<T>, indexed = false;
  static State<T> none() { return {F::template identity<T>()}; }
  static State<T> row(int64_t n, const T* x, int64_t, double, bool uncached) { return {reduce_row<F>(n, x, uncached)}; }
  static State<T> merge(State<T> s, State<T> later) { return {F::combine(s.a, later.a)}; }
  static T finish(State<T> s, int64_t count, double) { return F::finish(s.a, count); }
};

template <class F, class T> struct One : Number<F, T> {
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s) {
    T* a = part<T>(s, 0);
    const auto at = [&](int64_t r) { return row_at<T>(in, stride, r); };
    const bool uncached = prefetch_helps && stride == n * int64_t(sizeof(T)) && rows * stride >= 1 << 20;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) across_four(n, a, at(r), at(r + 1), at(r + 2), at(r + 3), uncached);
    for (; r < rows; ++r) {
      const T* x = at(r);
      each<T>(n, [&](auto read, auto write, int64_t i) { write(a + i, F::combine(read(a + i), F::map(read(x + i)))); });
    }
  }
  // While four rows are read, the next four are on their way.
  static void across_four(int64_t n, T* a, const T* p, const T* q, const T* u, const T* v, bool uncached) {
    each<T>(n, [&](auto read, auto write, int64_t i) {
      if (uncached) __builtin_prefetch(v + n + 4 * i, 0, 1);
      const auto lower = F::combine(F::map(read(p + i)), F::map(read(q + i)));
      const auto upper = F::combine(F::map(read(u + i)), F::map(read(v + i)));
      write(a + i, F::combine(read(a + i), F::combine(lower, upper)));
    });
  }
};

// Of truth values.
struct Count {
  using Input = uint8_t;
  using Result = int64_t;
  static constexpr bool rounds = false, indexed = false;
  static State<int64_t> none() { return {0}; }
  static State<int64_t> next(State<int64_t> s, uint8_t x, int64_t, double) { return {s.a + (x != 0)}; }
  static State<int64_t> merge(State<int64_t> s, State<int64_t> later) { return {s.a + later.a}; }
  static int64_t finish(State<int64_t> s, int64_t, double) { return s.a; }

  static State<int64_t> row(int64_t n, const uint8_t* x, int64_t, double, bool) {
    constexpr int64_t width = lanes<uint8_t>, most = 255;  // before a byte overflows
    int64_t total = 0, i = 0;
    while (i + width <= n) {
      Vector<uint8_t> counts{};
      for (int64_t k = 0; k < most && i + width <= n; ++k, i += width)
        counts -= Vector<uint8_t>(load(x + i) != Vector<uint8_t>{});
      for (int64_t k = 0; k < width; ++k) total += counts[k];
    }
    for (; i < n; ++i) total += x[i] != 0;
    return {total};
  }
};

// The sum of f(x) over a row, where f is a formula of numbers, not of vectors.
template <class T, class F> [[gnu::always_inline]] inline T sum_of(int64_t n, const T* x, F f) {
  constexpr int64_t block = 256;
  T buffer[block], total = 0;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    for (int64_t k = 0; k < m; ++k) buffer[k] = f(x[i + k]);
    total += reduce_row<Sum>(m, buffer);
  }
  return total;
}

// Sum of |x|^p.
template <class T> struct Powers : Number<Sum, T> {
  static State<T> next(State<T> s, T x, int64_t, double p) { return {s.a + scalar::pow(scalar::abs(x), T(p))}; }
  static State<T> row(int64_t n, const T* x, int64_t, double p, bool) {
    return {sum_of(n, x, [power = T(p)](T v) { return scalar::pow(scalar::abs(v), power); })};
  }
};

// The best element and where it first stands; a NaN is better than any number.
template <class F, class T, bool ValuesWanted> struct Best {
  using Input = T;
  using Result = std::conditional_t<ValuesWanted, T, int64_t>;
  using S = State<T, int64_t>;
  static constexpr bool rounds = false, indexed = true;
  static S none() { return {F::template identity<T>(), 0}; }
  static S next(S s, T x, int64_t index, double) { return merge(s, {x, index}); }
  static S merge(S s, S later) {
    const bool take = F::better(later.a, s.a);
    return {take ? later.a : s.a, take ? later.b : s.b};
  }
  static Result finish(S s, int64_t, double) {
    if constexpr (ValuesWanted) return s.a;
    else return s.b;
  }

  static S row(int64_t n, const T* x, int64_t first, double, bool uncached) {
    constexpr int64_t piece = 512;
    T best = F::template identity<T>();
    int64_t where = 0;
    for (int64_t i = 0; i < n; i += piece) {
      const T top = reduce_row<F>(n - i < piece ? n - i : piece, x + i, uncached);
      if (!F::better(top, best)) continue;
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

// Count, mean and the sum of squared deviations, merged by Chan's formula.
template <class T> struct Variance {
  using Input = T;
  using Result = T;
  using S = State<T, T, T>;
  static constexpr bool rounds = true, indexed = false;
  static S none() { return {0, 0, 0}; }
  static S next(S s, T x, int64_t, double) {
    const T count = s.a + T(1), delta = x - s.b, mean = s.b + delta / count;
    return {count, mean, s.c + delta * (x - mean)};
  }
  static S row(int64_t n, const T* x, int64_t, double, bool uncached) {
    if (n == 0) return none();
    const auto around = [=](T mean) -> S {
      return {T(n), mean, sum_of(n, x, [=](T v) { return (v - mean) * (v - mean); })};
    };
    const S s = around(reduce_row<Sum>(n, x, uncached) / T(n));
    return within_rounding(s.c, s.b, T(n)) ? around(x[0] + sum_differences(n, x, x[0]) / T(n)) : s;
  }
  static T sum_differences(int64_t n, const T* x, T base) {
    return sum_of(n, x, [=](T v) { return v - base; });
  }
  static S merge(S s, S later) {
    if (s.a == T(0)) return later;
    const T total = s.a + later.a, delta = later.b - s.b, share = later.a / total;
    return {total, s.b + delta * share, s.c + (later.c + delta * delta * s.a * share)};
  }
  static T finish(S s, int64_t count, double correction) {
    const double freedom = double(count) - correction;
    return s.c / T(freedom > 0 ? freedom : 0);
  }
};

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x).
template <class T> struct LogSumExp {
  using Input = T;
  using Result = T;
  using S = State<T, T>;
  static constexpr bool rounds = true, indexed = false;
  static T shift(T top) { return scalar::select(scalar::isfinite(top), top, T(0)); }
  static T scale(T from, T to) { return scalar::select(from == to, T(1), scalar::exp(from - to)); }
  static S none() { return {lowest<T>(), 0}; }
  static S row(int64_t n, const T* x, int64_t, double, bool uncached) {
    const T top = reduce_row<Max>(n, x, uncached), minus = shift(top);
    return {top, sum_of(n, x, [=](T v) { return scalar::exp(v - minus); })};
  }
  static S merge(S s, S later) {
    const T m = scalar::max(s.a, later.a);
    return {m, s.b * scale(s.a, m) + later.b * scale(later.a, m)};
  }
  static T finish(S s, int64_t, double) { return scalar::log(s.b) + shift(s.a); }

  // The largest of each column first: one exponential for each element, not two.
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, ReduceState s) {
    constexpr int64_t block = 256;
    T top[block], sum[block];
    const ReduceState columns{{reinterpret_cast<char*>(top), reinterpret_cast<char*>(sum), nullptr}};
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block, skipped = i * int64_t(sizeof(T));
      Loops<LogSumExp>::start(m, columns);
      One<Max, T>::across(m, rows, row_at<T>(in, stride, 0) + i, stride, columns);
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = row_at<T>(in, stride, r) + i;
        for (int64_t k = 0; k < m; ++k) sum[k] += scalar::exp(x[k] - shift(top[k]));
      }
      Loops<LogSumExp>::merge(m, {{s.part[0] + skipped, s.part[1] + skipped, nullptr}}, columns);
    }
  }
};

template <class F> ReduceKernel describe(DType t) {
  using L = Loops<F>;
  using S = typename L::S;
  const DType input = kernel_dtype<typename F::Input>(t), result = kernel_dtype<typename F::Result>(t);
  return {input, result, S::parts, S::size, F::rounds, F::indexed, L::start, L::along, L::across, L::merge, L::finish};
}

template <class F> ReduceKernel extreme(DType t, bool indices) {
  return of_ordered(
      t, [=]<class T>(TypeTag<T>) { return indices ? describe<Best<F, T, true>>(t) : describe<One<F, T>>(t); });
}

ReduceKernel find(ReduceOp fold, bool indices, DType t) {
  switch (fold) {
    case ReduceOp::sum: return of_number(t, [=]<class T>(TypeTag<T>) { return describe<One<Sum, T>>(t); });
    case ReduceOp::mean: return of_real(t, [=]<class T>(TypeTag<T>) { return describe<One<Mean, T>>(t); });
    case ReduceOp::prod: return of_number(t, [=]<class T>(TypeTag<T>) { return describe<One<Prod, T>>(t); });
    case ReduceOp::max: return extreme<Max>(t, indices);
    case ReduceOp::min: return extreme<Min>(t, indices);
    case ReduceOp::any: return describe<One<Truth<Max>, uint8_t>>(t);
    case ReduceOp::all: return describe<One<Truth<Min>, uint8_t>>(t);
    case ReduceOp::count_nonzero: return describe<Count>(t);
    case ReduceOp::nansum: return of_number(t, [=]<class T>(TypeTag<T>) { return describe<One<NanSum, T>>(t); });
    case ReduceOp::argmax: return of_ordered(t, [=]<class T>(TypeTag<T>) { return describe<Best<Max, T, false>>(t); });
    case ReduceOp::argmin: return of_ordered(t, [=]<class T>(TypeTag<T>) { return describe<Best<Min, T, false>>(t); });
    case ReduceOp::sum_squares: return of_real(t, [=]<class T>(TypeTag<T>) { return describe<One<SumSquares, T>>(t); });
    case ReduceOp::sum_abs: return of_real(t, [=]<class T>(TypeTag<T>) { return describe<One<SumAbs, T>>(t); });
    case ReduceOp::sum_powers: return of_real(t, [=]<class T>(TypeTag<T>) { return describe<Powers<T>>(t); });
    case ReduceOp::var: return of_real(t, [=]<class T>(TypeTag<T>) { return describe<Variance<T>>(t); });
    case ReduceOp::logsumexp: break;
  }
  return of_real(t, [=]<class T>(TypeTag<T>) { return describe<LogSumExp<T>>(t); });
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::ReduceKernel volta::cpu::reduce_kernel<volta::cpu::Isa::VOLTA_ISA>(ReduceOp fold, bool indices,
                                                                                           DType dtype) {
  return VOLTA_ISA::find(fold, indices, dtype);
}

// The reductions: what each carries, takes in, merges and ends with; the loops follow from that.
#include "backend/cpu/fold.h"

#include <limits>
#include <type_traits>

#include <volta/scalar.h>

#include "backend/cpu/isa/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block = 256;  // elements mapped at a time where the formula is of numbers, not of vectors

template <class T> T* part(const FoldState& s, int i) { return reinterpret_cast<T*>(s.part[i]); }

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
  template <class T> static constexpr T identity() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  template <class V> static V combine(V a, V b) { return choose((a > b) | (a != a), a, b); }
  template <class T> static bool better(T x, T than) { return (x > than) | ((x != x) & (than == than)); }
};
struct Min : Sum {
  template <class T> static constexpr T identity() {
    return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class V> static V combine(V a, V b) { return choose((a < b) | (a != a), a, b); }
  template <class T> static bool better(T x, T than) { return (x < than) | ((x != x) & (than == than)); }
};
// Truth values are bytes of any value but 0.
struct Any : Sum {
  template <class V> static V combine(V a, V b) { return V(a | b); }
  template <class T> static T finish(T s, int64_t) { return s != 0; }
};
struct All : Sum {
  template <class T> static constexpr T identity() { return T(~T(0)); }
  template <class V> static V map(V x) { return x != V{} ? V(~V{}) : V{}; }
  template <class V> static V combine(V a, V b) { return V(a & b); }
  template <class T> static T finish(T s, int64_t) { return s != 0; }
};

template <class F, class T> struct One {
  using Input = T;
  using Result = T;
  static constexpr int parts = 1;
  static constexpr int size[] = {sizeof(T)};
  static constexpr bool rounds = std::is_floating_point_v<T>, indexed = false;

  static void start(int64_t n, const FoldState& s) {
    T* a = part<T>(s, 0);
    for (int64_t i = 0; i < n; ++i) a[i] = F::template identity<T>();
  }
  static void along(int64_t n, const void* row, const FoldState& s, int64_t, double) {
    T* a = part<T>(s, 0);
    *a = F::combine(*a, fold_row<F>(n, static_cast<const T*>(row)));
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t, double) {
    T* a = part<T>(s, 0);
    const auto at = [&](int64_t r) { return reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride); };
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) across_four(n, a, at(r), at(r + 1), at(r + 2), at(r + 3));
    for (; r < rows; ++r) {
      const T* x = at(r);
      each<T>(n, [&](auto read, auto write, int64_t i) { write(a + i, F::combine(read(a + i), F::map(read(x + i)))); });
    }
  }
  static void across_four(int64_t n, T* a, const T* p, const T* q, const T* u, const T* v) {
    each<T>(n, [&](auto read, auto write, int64_t i) {
      const auto lower = F::combine(F::map(read(p + i)), F::map(read(q + i)));
      const auto upper = F::combine(F::map(read(u + i)), F::map(read(v + i)));
      write(a + i, F::combine(read(a + i), F::combine(lower, upper)));
    });
  }
  static void merge(int64_t n, const FoldState& into, const FoldState& later) {
    T* a = part<T>(into, 0);
    const T* b = part<T>(later, 0);
    each<T>(n, [&](auto read, auto write, int64_t i) { write(a + i, F::combine(read(a + i), read(b + i))); });
  }
  static void finish(int64_t n, void* out, const FoldState& s, int64_t count, double) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = F::finish(part<T>(s, 0)[i], count);
  }
};

struct Count {
  using Input = bool;
  using Result = int64_t;
  static constexpr int parts = 1;
  static constexpr int size[] = {sizeof(int64_t)};
  static constexpr bool rounds = false, indexed = false;

  static void start(int64_t n, const FoldState& s) { __builtin_memset(s.part[0], 0, size_t(n) * sizeof(int64_t)); }
  static void along(int64_t n, const void* row, const FoldState& s, int64_t, double) {
    const auto* x = static_cast<const uint8_t*>(row);
    constexpr int64_t width = lanes<uint8_t>, most = 255;  // before a byte overflows
    int64_t total = 0, i = 0;
    while (i + width <= n) {
      Vector<uint8_t> counts{};
      for (int64_t k = 0; k < most && i + width <= n; ++k, i += width)
        counts -= Vector<uint8_t>(load(x + i) != Vector<uint8_t>{});
      for (int64_t k = 0; k < width; ++k) total += counts[k];
    }
    for (; i < n; ++i) total += x[i] != 0;
    *part<int64_t>(s, 0) += total;
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t, double) {
    int64_t* __restrict a = part<int64_t>(s, 0);
    for (int64_t r = 0; r < rows; ++r) {
      const auto* x = static_cast<const uint8_t*>(in) + r * stride;
      for (int64_t i = 0; i < n; ++i) a[i] += x[i] != 0;
    }
  }
  static void merge(int64_t n, const FoldState& into, const FoldState& later) {
    One<Sum, int64_t>::merge(n, into, later);
  }
  static void finish(int64_t n, void* out, const FoldState& s, int64_t, double) {
    __builtin_memcpy(out, s.part[0], size_t(n) * sizeof(int64_t));
  }
};

// Sum of |x|^p.
template <class T> struct Powers : One<Sum, T> {
  static void along(int64_t n, const void* row, const FoldState& s, int64_t, double p) {
    const T* x = static_cast<const T*>(row);
    const T power = T(p);
    T buffer[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      for (int64_t k = 0; k < m; ++k) buffer[k] = scalar::pow(scalar::abs(x[i + k]), power);
      One<Sum, T>::along(m, buffer, s, 0, 0);
    }
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t, double p) {
    T* __restrict a = part<T>(s, 0);
    const T power = T(p);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride);
      for (int64_t i = 0; i < n; ++i) a[i] += scalar::pow(scalar::abs(x[i]), power);
    }
  }
};

// The best element and where it first stands; a NaN is better than any number.
template <class F, class T, bool ValuesWanted> struct Best {
  using Input = T;
  using Result = std::conditional_t<ValuesWanted, T, int64_t>;
  static constexpr int parts = 2;
  static constexpr int size[] = {sizeof(T), sizeof(int64_t)};
  static constexpr bool rounds = false, indexed = true;

  static void start(int64_t n, const FoldState& s) {
    for (int64_t i = 0; i < n; ++i) part<T>(s, 0)[i] = F::template identity<T>();
    for (int64_t i = 0; i < n; ++i) part<int64_t>(s, 1)[i] = 0;
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
  static void along(int64_t n, const void* row, const FoldState& s, int64_t first, double) {
    constexpr int64_t piece = 512;
    const T* x = static_cast<const T*>(row);
    T best = *part<T>(s, 0);
    int64_t where = -1;
    for (int64_t i = 0; i < n; i += piece) {
      const T top = fold_row<F>(n - i < piece ? n - i : piece, x + i);
      if (!F::better(top, best)) continue;
      best = top;
      where = i;
    }
    if (where < 0) return;
    *part<T>(s, 0) = best;
    *part<int64_t>(s, 1) = first + where + find(n - where, x + where, best);
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t first,
                     double) {
    T* __restrict a = part<T>(s, 0);
    int64_t* __restrict index = part<int64_t>(s, 1);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride);
      for (int64_t i = 0; i < n; ++i) {
        const bool take = F::better(x[i], a[i]);
        a[i] = take ? x[i] : a[i];
        index[i] = take ? first + r : index[i];
      }
    }
  }
  static void merge(int64_t n, const FoldState& into, const FoldState& later) {
    T* __restrict a = part<T>(into, 0);
    int64_t* __restrict index = part<int64_t>(into, 1);
    const T* b = part<T>(later, 0);
    const int64_t* j = part<int64_t>(later, 1);
    for (int64_t i = 0; i < n; ++i) {
      const bool take = F::better(b[i], a[i]);
      a[i] = take ? b[i] : a[i];
      index[i] = take ? j[i] : index[i];
    }
  }
  static void finish(int64_t n, void* out, const FoldState& s, int64_t, double) {
    __builtin_memcpy(out, s.part[ValuesWanted ? 0 : 1], size_t(n) * sizeof(Result));
  }
};

// Count, mean and the sum of squared deviations, merged by Chan's formula.
template <class T> struct Variance {
  using Input = T;
  using Result = T;
  static constexpr int parts = 3;
  static constexpr int size[] = {sizeof(T), sizeof(T), sizeof(T)};
  static constexpr bool rounds = true, indexed = false;

  static void start(int64_t n, const FoldState& s) {
    for (int p = 0; p < parts; ++p) __builtin_memset(s.part[p], 0, size_t(n) * sizeof(T));
  }
  static T centred_squares(int64_t n, const T* x, T mean) {
    T buffer[block], total = 0;
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      for (int64_t k = 0; k < m; ++k) buffer[k] = x[i + k] - mean;
      total += fold_row<SumSquares>(m, buffer);
    }
    return total;
  }
  static void along(int64_t n, const void* row, const FoldState& s, int64_t, double) {
    const T* x = static_cast<const T*>(row);
    T count = T(n), mean = fold_row<Sum>(n, x) / T(n), squares = centred_squares(n, x, mean);
    merge(1, s, {{reinterpret_cast<char*>(&count), reinterpret_cast<char*>(&mean), reinterpret_cast<char*>(&squares)}});
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t, double) {
    T* __restrict count = part<T>(s, 0);
    T* __restrict mean = part<T>(s, 1);
    T* __restrict squares = part<T>(s, 2);
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride);
      for (int64_t i = 0; i < n; ++i) {
        const T more = count[i] + T(1), delta = x[i] - mean[i], moved = mean[i] + delta / more;
        squares[i] += delta * (x[i] - moved);
        mean[i] = moved;
        count[i] = more;
      }
    }
  }
  static void merge(int64_t n, const FoldState& into, const FoldState& later) {
    T* __restrict count = part<T>(into, 0);
    T* __restrict mean = part<T>(into, 1);
    T* __restrict squares = part<T>(into, 2);
    const T *more = part<T>(later, 0), *other_mean = part<T>(later, 1), *other_squares = part<T>(later, 2);
    for (int64_t i = 0; i < n; ++i) {
      const T total = count[i] + more[i], delta = other_mean[i] - mean[i];
      const T share = total > T(0) ? more[i] / total : T(0);
      squares[i] += other_squares[i] + delta * delta * count[i] * share;
      mean[i] += delta * share;
      count[i] = total;
    }
  }
  static void finish(int64_t n, void* out, const FoldState& s, int64_t count, double correction) {
    const double freedom = double(count) - correction;
    const T divisor = T(freedom > 0 ? freedom : 0);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = part<T>(s, 2)[i] / divisor;
  }
};

// The largest element m and the sum of exp(x - m); where m is not finite, the sum of exp(x).
template <class T> struct LogSumExp {
  using Input = T;
  using Result = T;
  static constexpr int parts = 2;
  static constexpr int size[] = {sizeof(T), sizeof(T)};
  static constexpr bool rounds = true, indexed = false;

  static T shift(T top) { return scalar::select(scalar::isfinite(top), top, T(0)); }
  static T scale(T from, T to) { return scalar::select(from == to, T(1), scalar::exp(from - to)); }

  static void start(int64_t n, const FoldState& s) {
    for (int64_t i = 0; i < n; ++i) part<T>(s, 0)[i] = Max::identity<T>();
    __builtin_memset(s.part[1], 0, size_t(n) * sizeof(T));
  }
  static T exp_sum(int64_t n, const T* x, T minus) {
    T buffer[block], total = 0;
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      for (int64_t k = 0; k < m; ++k) buffer[k] = scalar::exp(x[i + k] - minus);
      total += fold_row<Sum>(m, buffer);
    }
    return total;
  }
  static void along(int64_t n, const void* row, const FoldState& s, int64_t, double) {
    const T* x = static_cast<const T*>(row);
    T top = fold_row<Max>(n, x), sum = exp_sum(n, x, shift(top));
    merge(1, s, {{reinterpret_cast<char*>(&top), reinterpret_cast<char*>(&sum), nullptr}});
  }
  static void across(int64_t n, int64_t rows, const void* in, int64_t stride, const FoldState& s, int64_t, double) {
    T top[block], sum[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = n - i < block ? n - i : block;
      const FoldState columns{{reinterpret_cast<char*>(top), reinterpret_cast<char*>(sum), nullptr}};
      start(m, columns);
      const auto at = [&](int64_t r) {
        return reinterpret_cast<const T*>(static_cast<const char*>(in) + r * stride) + i;
      };
      One<Max, T>::across(m, rows, at(0), stride, columns, 0, 0);
      for (int64_t r = 0; r < rows; ++r) {
        const T* x = at(r);
        for (int64_t k = 0; k < m; ++k) sum[k] += scalar::exp(x[k] - shift(top[k]));
      }
      merge(m, {{s.part[0] + i * int64_t(sizeof(T)), s.part[1] + i * int64_t(sizeof(T)), nullptr}}, columns);
    }
  }
  static void merge(int64_t n, const FoldState& into, const FoldState& later) {
    T* __restrict top = part<T>(into, 0);
    T* __restrict sum = part<T>(into, 1);
    const T *other_top = part<T>(later, 0), *other_sum = part<T>(later, 1);
    for (int64_t i = 0; i < n; ++i) {
      const T m = scalar::max(top[i], other_top[i]);
      sum[i] = sum[i] * scale(top[i], m) + other_sum[i] * scale(other_top[i], m);
      top[i] = m;
    }
  }
  static void finish(int64_t n, void* out, const FoldState& s, int64_t, double) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = scalar::log(part<T>(s, 1)[i]) + shift(part<T>(s, 0)[i]);
  }
};

template <class K>
FoldKernel describe(DType input = dtype_of<typename K::Input>(), DType result = dtype_of<typename K::Result>()) {
  FoldKernel k;
  k.input = input;
  k.result = result;
  k.parts = K::parts;
  for (int i = 0; i < K::parts; ++i) k.size[i] = K::size[i];
  k.rounds = K::rounds;
  k.indexed = K::indexed;
  k.start = K::start;
  k.along = K::along;
  k.across = K::across;
  k.merge = K::merge;
  k.finish = K::finish;
  return k;
}

template <template <class> class K> FoldKernel of_reals(DType t) {
  return t == f64 ? describe<K<double>>() : describe<K<float>>();
}

template <class F> FoldKernel of_reals(DType t) {
  return t == f64 ? describe<One<F, double>>() : describe<One<F, float>>();
}

// Integers add and multiply as 64-bit numbers that wrap around, signed or not.
template <class F> FoldKernel of_numbers(DType t) {
  if (is_floating(t)) return of_reals<F>(t);
  return t == u64 ? describe<One<F, uint64_t>>(u64, u64) : describe<One<F, uint64_t>>(i64, i64);
}

template <template <class> class K> FoldKernel of_ordered(DType t) {
  switch (t) {
    case DType::f64: return describe<K<double>>();
    case DType::f16:
    case DType::bf16:
    case DType::f32: return describe<K<float>>();
    case DType::u64: return describe<K<uint64_t>>();
    case DType::u32:
    case DType::i64: return describe<K<int64_t>>();
    default: return describe<K<int32_t>>();
  }
}

template <class T> using MaxOf = One<Max, T>;
template <class T> using MinOf = One<Min, T>;
template <class T> using MaxAt = Best<Max, T, true>;
template <class T> using MinAt = Best<Min, T, true>;
template <class T> using ArgMax = Best<Max, T, false>;
template <class T> using ArgMin = Best<Min, T, false>;

FoldKernel find(Fold fold, bool indices, DType t) {
  switch (fold) {
    case Fold::sum: return of_numbers<Sum>(t);
    case Fold::mean: return of_reals<Mean>(t);
    case Fold::prod: return of_numbers<Prod>(t);
    case Fold::max: return indices ? of_ordered<MaxAt>(t) : of_ordered<MaxOf>(t);
    case Fold::min: return indices ? of_ordered<MinAt>(t) : of_ordered<MinOf>(t);
    case Fold::any: return describe<One<Any, uint8_t>>(boolean, boolean);
    case Fold::all: return describe<One<All, uint8_t>>(boolean, boolean);
    case Fold::count_nonzero: return describe<Count>();
    case Fold::nansum: return is_floating(t) ? of_reals<NanSum>(t) : of_numbers<Sum>(t);
    case Fold::argmax: return of_ordered<ArgMax>(t);
    case Fold::argmin: return of_ordered<ArgMin>(t);
    case Fold::sum_squares: return of_reals<SumSquares>(t);
    case Fold::sum_abs: return of_reals<SumAbs>(t);
    case Fold::sum_powers: return of_reals<Powers>(t);
    case Fold::var: return of_reals<Variance>(t);
    case Fold::logsumexp: break;
  }
  return of_reals<LogSumExp>(t);
}

}  // namespace

constinit const FoldTable fold_table = {find};

}  // namespace volta::cpu::VOLTA_ISA

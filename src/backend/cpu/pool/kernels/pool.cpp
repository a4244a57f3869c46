// Pooling: rows of a window are folded into one row, and that along itself.
#include "backend/cpu/pool/pool.h"

#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// For numbers and for vectors. NaN is the largest.
template <class V> [[gnu::always_inline]] inline V larger(V a, V b) { return choose((b > a) | (b != b), b, a); }
template <class T> T* data(const Arg& a) { return static_cast<T*>(a.data); }

// Steps through the rows of the output; of each, what the input's rows are that it sees.
class WindowRows {
 public:
  WindowRows(const PoolShape& call, int64_t row)
      : z_(call.axis[0]),
        y_(call.axis[1]),
        width_(call.axis[2].in),
        oy_(row % y_.out),
        oz_(row / y_.out % z_.out),
        plane_(row / (y_.out * z_.out) * z_.in * y_.in * width_) {}
  void next() {
    if (++oy_ < y_.out) return;
    oy_ = 0;
    if (++oz_ < z_.out) return;
    oz_ = 0;
    plane_ += z_.in * y_.in * width_;
  }
  int64_t plane() const { return plane_; }  // where the plane begins
  int64_t first() const { return (z_.index[oz_] * y_.in + y_.index[oy_]) * width_; }
  // f(where the row begins in its plane, its weight) in the order of the window.
  template <class F> [[gnu::always_inline]] void each(F f) const {
    for (int64_t i = 0; i < z_.taps; ++i)
      for (int64_t j = 0; j < y_.taps; ++j) {
        const int64_t a = i * z_.out + oz_, b = j * y_.out + oy_;
        f((z_.index[a] * y_.in + y_.index[b]) * width_, z_.weight[a] * y_.weight[b]);
      }
  }
  double divisor() const { return (z_.divisor ? z_.divisor[oz_] : 1) * (y_.divisor ? y_.divisor[oy_] : 1); }

 private:
  const PoolAxis &z_, &y_;
  int64_t width_, oy_, oz_, plane_;
};

// f(stride, taps) with constants for those that have a loop of their own, else 0.
template <class F> [[gnu::always_inline]] inline void for_form(const PoolAxis& a, F f) {
  const auto with_stride = [&](auto stride) {
    if (a.taps == 2) f(stride, std::integral_constant<int, 2>());
    else if (a.taps == 3) f(stride, std::integral_constant<int, 3>());
    else f(stride, std::integral_constant<int, 0>());
  };
  if (a.stride == 1) with_stride(std::integral_constant<int, 1>());
  else if (a.stride == 2) with_stride(std::integral_constant<int, 2>());
  else f(std::integral_constant<int, 0>(), std::integral_constant<int, 0>());
}

template <class T> using Position = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Every second number of two vectors, of which the first number of b is the last of a.
template <class T, int... I>
[[gnu::always_inline]] inline Some<T, sizeof...(I)> halved(Some<T, sizeof...(I)> a, Some<T, sizeof...(I)> b,
                                                           std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I < int(sizeof...(I)) ? 2 * I : 2 * I + 1)...);
}

// Neighbouring outputs as a vector, and one output by itself, under the same names.
template <class T, int Stride, int width> struct Wide {
  template <class E> using Values = Some<E, width>;
  template <class E, class V> static void put(E* p, V v) {
    const Values<E> stored = __builtin_convertvector(v, Values<E>);
    __builtin_memcpy(p, &stored, sizeof stored);
  }
  static Values<T> filled(T value) { return Values<T>{} + value; }
  static Values<T> get(const T* p) {
    Values<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  // Every stride-th number from p on, reading nothing behind the last of them.
  static Values<T> spaced(const T* p, int64_t stride) {
    if constexpr (Stride == 1) return get(p);
    if constexpr (Stride == 2) return halved<T>(get(p), get(p + width - 1), std::make_integer_sequence<int, width>());
    Values<T> v{};
    for (int i = 0; i < width; ++i) v[i] = p[i * stride];
    return v;
  }
  static Values<Position<T>> counted(int64_t first, int64_t stride) {
    Values<Position<T>> v{};
    for (int i = 0; i < width; ++i) v[i] = Position<T>(i * stride);
    return v + Position<T>(first);
  }
};
template <class T> struct Single {
  template <class E, class V> static void put(E* p, V v) { *p = v; }
  static T filled(T value) { return value; }
  static T spaced(const T* p, int64_t) { return *p; }
  static Position<T> counted(int64_t first, int64_t) { return Position<T>(first); }
};

// f(Wide, j) for the outputs of a row, by the widest vectors it fills; the last may overlap the one before.
template <class T, int Stride, int width = lanes<T>, class F>
[[gnu::always_inline]] inline void over_row(int64_t n, F f) {
  if constexpr (width * sizeof(T) < 16) {
    for (int64_t j = 0; j < n; ++j) f(Single<T>(), j);
  } else {
    if (n < width) return over_row<T, Stride, width / 2>(n, f);
    for (int64_t j = 0; j + width <= n; j += width) f(Wide<T, Stride, width>(), j);
    if (n % width) f(Wide<T, Stride, width>(), n - width);
  }
}

// The outputs whose taps lie unevenly: f(j).
template <class F> [[gnu::always_inline]] inline void for_edges(const PoolAxis& a, F f) {
  for (int64_t j = 0; j < a.begin; ++j) f(j);
  for (int64_t j = a.end; j < a.out; ++j) f(j);
}

struct Larger {
  template <class V> [[gnu::always_inline]] static V fold(V a, V b) { return larger(a, b); }
};
struct Plus {
  template <class V> [[gnu::always_inline]] static V fold(V a, V b) { return a + b; }
};
// Folds the taps of the even outputs.
template <class F, class T> void fold_even(const PoolAxis& a, const T* row, T* out) {
  const int64_t* index = a.index + a.begin;
  for_form(a, [&](auto stride, auto taps) {
    const int64_t step = stride ? stride : a.stride, count = taps ? taps : a.taps, pitch = a.out;
    over_row<T, stride>(
        a.end - a.begin, [=](auto by, int64_t j) __attribute__((always_inline)) {
          auto folded = by.spaced(row + index[0] + j * step, step);
          for (int64_t k = 1; k < count; ++k)
            folded = F::fold(folded, by.spaced(row + index[k * pitch] + j * step, step));
          by.put(out + j, folded);
        });
  });
}

template <class T> void max_rows(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis& x = call.axis[2];
  T* const folded = static_cast<T*>(room.row);
  WindowRows rows(call, begin);
  for (int64_t r = begin; r < end; ++r, rows.next()) {
    const T *in = data<T>(call.in) + rows.plane(), *row = nullptr;
    rows.each([&](int64_t start, double) {
      if (row)
        each<T>(x.in, [folded, row, more = in + start](auto read, auto write, int64_t i) {
          write(folded + i, larger(read(row + i), read(more + i)));
        });
      row = row ? folded : in + start;
    });
    T* out = data<T>(call.out) + r * x.out;
    fold_even<Larger>(x, row, out + x.begin);
    for_edges(x, [&](int64_t j) {
      T best = row[x.index[j]];
      for (int64_t k = 1; k < x.taps; ++k) best = larger(best, row[x.index[k * x.out + j]]);
      out[j] = best;
    });
  }
}

// Takes a value into the best so far and its position: the first of equals and of NaNs stays.
template <class V, class I> [[gnu::always_inline]] inline void improve(V& best, I& position, V value, I at) {
  const auto better = (value > best) | ((value != value) & (best == best));
  best = choose(better, value, best);
  position = choose(better, at, position);
}

template <class T> void max_positions(const PoolCall& call, const PoolRoom&, int64_t begin, int64_t end) {
  const PoolAxis& x = call.axis[2];
  const int64_t* index = x.index + x.begin;
  WindowRows rows(call, begin);
  for (int64_t r = begin; r < end; ++r, rows.next()) {
    const T* plane = data<T>(call.in) + rows.plane();
    T* out = data<T>(call.out) + r * x.out;
    int64_t* indices = data<int64_t>(call.indices) + r * x.out;
    // The maxima of the outputs from j on; at(k) is the place of tap k in a row.
    const auto best_of = [&](auto by, int64_t j, int64_t step, int64_t count, auto at) __attribute__((always_inline)) {
      auto best = by.filled(lowest<T>());
      auto position = by.counted(rows.first() + at(0), step);
      rows.each([&](int64_t start, double) __attribute__((always_inline)) {
        for (int64_t k = 0; k < count; ++k)
          improve(best, position, by.spaced(plane + start + at(k), step), by.counted(start + at(k), step));
      });
      by.put(out + j, best);
      by.put(indices + j, position);
    };
    for_form(
        x, [&](auto stride, auto taps) __attribute__((always_inline)) {
          const int64_t step = stride ? stride : x.stride, count = taps ? taps : x.taps;
          over_row<T, stride>(
              x.end - x.begin, [&](auto by, int64_t j) __attribute__((always_inline)) {
                best_of(by, x.begin + j, step, count, [&](int64_t k) { return index[k * x.out] + j * step; });
              });
        });
    for_edges(
        x, [&](int64_t j) { best_of(Single<T>(), j, 1, x.taps, [&](int64_t k) { return x.index[k * x.out + j]; }); });
  }
}
template <class T> void max_forward(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  if (call.indices.data) max_positions<T>(call, room, begin, end);
  else max_rows<T>(call, room, begin, end);
}

template <class T> void max_backward(const PoolBackwardCall& call, const PoolRoom&, int64_t begin, int64_t end) {
  const PoolAxis* a = call.axis;
  const int64_t ins = a[0].in * a[1].in * a[2].in, outs = a[0].out * a[1].out * a[2].out;
  for (int64_t p = begin; p < end; ++p) {
    T* plane = data<T>(call.dx) + p * ins;
    const T* g = data<T>(call.g) + p * outs;
    const int64_t* index = data<int64_t>(call.indices) + p * outs;
    __builtin_memset(plane, 0, size_t(ins) * sizeof(T));
    for (int64_t j = 0; j < outs; ++j) plane[index[j]] += g[j];
  }
}

template <class T> void add_scaled(int64_t n, T* __restrict out, const T* __restrict in, T factor) {
  for (int64_t i = 0; i < n; ++i) out[i] += factor * in[i];
}
template <class T> void scale(int64_t n, T* __restrict out, const T* __restrict in, T factor) {
  for (int64_t i = 0; i < n; ++i) out[i] = factor * in[i];
}

template <class T> void sum_rows(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis& x = call.axis[2];
  const T *weight = static_cast<const T*>(room.weight), *divisor = static_cast<const T*>(room.divisor);
  T* const folded = static_cast<T*>(room.row);
  WindowRows rows(call, begin);
  for (int64_t r = begin; r < end; ++r, rows.next()) {
    bool fresh = true;
    rows.each([&](int64_t start, double w) {
      if (w == 0) return;
      (fresh ? scale<T> : add_scaled<T>)(x.in, folded, data<T>(call.in) + rows.plane() + start, T(w));
      fresh = false;
    });
    T* out = data<T>(call.out) + r * x.out;
    fold_even<Plus>(x, folded, out + x.begin);
    for_edges(x, [&](int64_t j) {
      T sum = 0;
      for (int64_t k = 0; k < x.taps; ++k) {
        const T w = weight[k * x.out + j], more = w * folded[x.index[k * x.out + j]];
        sum += w != 0 ? more : T(0);
      }
      out[j] = sum;
    });
    if (!divisor) continue;
    const T beside = T(rows.divisor());
    for (int64_t j = 0; j < x.out; ++j) out[j] /= beside * divisor[j];
  }
}

template <class T> void sum_backward(const PoolBackwardCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis *a = call.axis, &x = a[2];
  const int64_t ins = a[0].in * a[1].in * x.in, per_plane = a[0].out * a[1].out;
  const T *weight = static_cast<const T*>(room.weight), *divisor = static_cast<const T*>(room.divisor);
  T *const spread = static_cast<T*>(room.row), *const scaled = static_cast<T*>(room.position);
  __builtin_memset(data<T>(call.dx) + begin * ins, 0, size_t((end - begin) * ins) * sizeof(T));
  WindowRows rows(call, begin * per_plane);
  for (int64_t r = begin * per_plane; r < end * per_plane; ++r, rows.next()) {
    const T *g = data<T>(call.g) + r * x.out, beside = T(rows.divisor());
    for (int64_t j = 0; j < x.out; ++j) scaled[j] = divisor ? g[j] / (beside * divisor[j]) : g[j];
    __builtin_memset(spread, 0, size_t(x.in) * sizeof(T));
    for (int64_t k = 0; k < x.taps; ++k) {
      const int64_t* index = x.index + k * x.out;
      for (int64_t j = 0; j < x.out; ++j) {
        const T w = weight[k * x.out + j], more = w * scaled[j];
        spread[index[j]] += w != 0 ? more : T(0);
      }
    }
    rows.each([&](int64_t start, double w) {
      if (w != 0) add_scaled(x.in, data<T>(call.dx) + rows.plane() + start, spread, T(w));
    });
  }
}

template <class T> PoolKernel<PoolCall> forward(Pool pool) { return pool == Pool::max ? max_forward<T> : sum_rows<T>; }
template <class T> PoolKernel<PoolBackwardCall> backward(Pool pool) {
  return pool == Pool::max ? max_backward<T> : sum_backward<T>;
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

namespace volta::cpu {
template <> PoolKernel<PoolCall> pool_kernel<Isa::VOLTA_ISA>(Pool pool, DType dtype) {
  return dtype == f64 ? VOLTA_ISA::forward<double>(pool) : VOLTA_ISA::forward<float>(pool);
}
template <> PoolKernel<PoolBackwardCall> pool_backward_kernel<Isa::VOLTA_ISA>(Pool pool, DType dtype) {
  return dtype == f64 ? VOLTA_ISA::backward<double>(pool) : VOLTA_ISA::backward<float>(pool);
}
}  // namespace volta::cpu

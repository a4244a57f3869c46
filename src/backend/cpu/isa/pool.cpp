// Pooling: rows of a window are folded into one row, and that along itself.
#include "backend/cpu/pool.h"

#include "backend/cpu/isa/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

template <class T> [[gnu::always_inline]] inline T larger(T a, T b) { return (b > a) | (b != b) ? b : a; }

// f(constant stride) for the strides worth a loop of their own.
template <class F> [[gnu::always_inline]] inline void for_stride(int64_t stride, F f) {
  if (stride == 1) f(std::integral_constant<int64_t, 1>());
  else if (stride == 2) f(std::integral_constant<int64_t, 2>());
  else f(stride);
}
// f(j, place in the row that tap k reads) for every output j of an axis.
template <class F> [[gnu::always_inline]] inline void for_outputs(const PoolAxis& a, int64_t k, F f) {
  const int64_t* index = a.index + k * a.out;
  for (int64_t j = 0; j < a.begin; ++j) f(j, index[j]);
  for_stride(
      a.stride, [&](auto stride) __attribute__((always_inline)) {
        const int64_t n = a.end - a.begin, first = n > 0 ? index[a.begin] : 0;
        for (int64_t j = 0; j < n; ++j) f(a.begin + j, first + j * stride);
      });
  for (int64_t j = a.end; j < a.out; ++j) f(j, index[j]);
}

// The rows of the input that one row of the output sees.
template <class T> class WindowRows {
 public:
  WindowRows(const PoolCall& call, int64_t row)
      : z_(call.axis[0]), y_(call.axis[1]), width_(call.axis[2].in), oy_(row % y_.out), oz_(row / y_.out % z_.out) {
    plane_ = row / (y_.out * z_.out) * z_.in * y_.in * width_;
  }
  int64_t count() const { return z_.taps * y_.taps; }
  int64_t plane() const { return plane_; }
  // Where row r begins in its plane.
  int64_t start(int64_t r) const {
    return (z_.index[r / y_.taps * z_.out + oz_] * y_.in + y_.index[r % y_.taps * y_.out + oy_]) * width_;
  }
  T weight(int64_t r) const { return T(z_.weight[r / y_.taps * z_.out + oz_] * y_.weight[r % y_.taps * y_.out + oy_]); }
  T divisor() const { return T((z_.divisor ? z_.divisor[oz_] : 1) * (y_.divisor ? y_.divisor[oy_] : 1)); }

 private:
  const PoolAxis &z_, &y_;
  int64_t width_, oy_, oz_, plane_;
};
template <class T> T* data(const Arg& a) { return static_cast<T*>(a.data); }

// out[j] = the largest of a few taps, in one pass.
template <int Taps, class T> void max_taps(const PoolAxis& a, const T* __restrict row, T* __restrict out) {
  const auto edge = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      T best = row[a.index[j]];
      for (int64_t k = 1; k < Taps; ++k) best = larger(best, row[a.index[k * a.out + j]]);
      out[j] = best;
    }
  };
  edge(0, a.begin);
  const int64_t n = a.end - a.begin;
  const T* tap[Taps];
  for (int64_t k = 0; k < Taps; ++k) tap[k] = row + (n > 0 ? a.index[k * a.out + a.begin] : 0);
  T* to = out + a.begin;
  for_stride(
      a.stride, [&](auto stride) __attribute__((always_inline)) {
        for (int64_t j = 0; j < n; ++j) {
          T best = tap[0][j * stride];
          for (int k = 1; k < Taps; ++k) best = larger(best, tap[k][j * stride]);
          to[j] = best;
        }
      });
  edge(a.end, a.out);
}

template <class T> void max_along(const PoolAxis& a, const T* __restrict row, T* __restrict out) {
  if (a.taps == 2) return max_taps<2>(a, row, out);
  if (a.taps == 3) return max_taps<3>(a, row, out);
  for_outputs(a, 0, [=](int64_t j, int64_t i) { out[j] = row[i]; });
  for (int64_t k = 1; k < a.taps; ++k)
    for_outputs(
        a, k, [=](int64_t j, int64_t i) __attribute__((always_inline)) { out[j] = larger(out[j], row[i]); });
}

template <class T> void max_across(int64_t n, T* __restrict out, const T* a, const T* b) {
  for (int64_t i = 0; i < n; ++i) out[i] = larger(a[i], b[i]);
}

template <class T> void max_rows(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis& x = call.axis[2];
  T* folded = static_cast<T*>(room.row);
  for (int64_t r = begin; r < end; ++r) {
    const WindowRows<T> rows(call, r);
    const T *in = data<T>(call.in) + rows.plane(), *row = in + rows.start(0);
    for (int64_t i = 1; i < rows.count(); ++i) {
      max_across(x.in, folded, row, in + rows.start(i));
      row = folded;
    }
    max_along(x, row, data<T>(call.out) + r * x.out);
  }
}

// With positions: tap by tap, in the order of the window, so that the first of equals and of NaNs is found.
template <class T> void max_positions(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const PoolAxis& x = call.axis[2];
  Int* __restrict position = static_cast<Int*>(room.position);
  for (int64_t r = begin; r < end; ++r) {
    const WindowRows<T> rows(call, r);
    T* __restrict best = data<T>(call.out) + r * x.out;
    for (int64_t i = 0; i < rows.count(); ++i) {
      const int64_t start = rows.start(i);
      const T* row = data<T>(call.in) + rows.plane() + start;
      for (int64_t k = 0; k < x.taps; ++k) {
        if (i + k == 0)
          for_outputs(x, k, [=](int64_t j, int64_t at) { best[j] = row[at], position[j] = Int(start + at); });
        else
          for_outputs(
              x, k, [=](int64_t j, int64_t at) __attribute__((always_inline)) {
                const T value = row[at], before = best[j];
                const bool better = (value > before) | ((value != value) & (before == before));
                best[j] = better ? value : before;
                position[j] = better ? Int(start + at) : position[j];
              });
      }
    }
    int64_t* indices = data<int64_t>(call.indices) + r * x.out;
    for (int64_t j = 0; j < x.out; ++j) indices[j] = position[j];
  }
}
template <class T> void max_forward(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  if (call.indices.data) max_positions<T>(call, room, begin, end);
  else max_rows<T>(call, room, begin, end);
}

template <class T> void max_back(const PoolCall& call, const PoolRoom&, int64_t begin, int64_t end) {
  const PoolAxis* a = call.axis;
  const int64_t ins = a[0].in * a[1].in * a[2].in, outs = a[0].out * a[1].out * a[2].out;
  for (int64_t p = begin; p < end; ++p) {
    T* plane = data<T>(call.out) + p * ins;
    const T* g = data<T>(call.in) + p * outs;
    const int64_t* index = data<int64_t>(call.indices) + p * outs;
    __builtin_memset(plane, 0, size_t(ins) * sizeof(T));
    for (int64_t j = 0; j < outs; ++j) plane[index[j]] += g[j];
  }
}

template <class T> void sum_rows(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis& x = call.axis[2];
  T* __restrict folded = static_cast<T*>(room.row);
  for (int64_t r = begin; r < end; ++r) {
    const WindowRows<T> rows(call, r);
    for (int64_t i = 0; i < x.in; ++i) folded[i] = 0;
    for (int64_t i = 0; i < rows.count(); ++i) {
      const T w = rows.weight(i), *row = data<T>(call.in) + rows.plane() + rows.start(i);
      if (w == 0) continue;
      for (int64_t j = 0; j < x.in; ++j) folded[j] += w * row[j];
    }
    T* __restrict out = data<T>(call.out) + r * x.out;
    for (int64_t j = 0; j < x.out; ++j) out[j] = 0;
    for (int64_t k = 0; k < x.taps; ++k) {
      const T* weight = static_cast<const T*>(room.weight) + k * x.out;
      for_outputs(
          x, k, [=](int64_t j, int64_t at) __attribute__((always_inline)) {
            const T w = weight[j], more = w * folded[at];
            out[j] += w != 0 ? more : T(0);
          });
    }
    const T beside = rows.divisor(), *divisor = static_cast<const T*>(room.divisor);
    if (divisor)
      for (int64_t j = 0; j < x.out; ++j) out[j] /= beside * divisor[j];
  }
}

template <class T> void sum_back(const PoolCall& call, const PoolRoom& room, int64_t begin, int64_t end) {
  const PoolAxis *a = call.axis, &x = a[2];
  const int64_t ins = a[0].in * a[1].in * x.in, per_plane = a[0].out * a[1].out;
  T* __restrict spread = static_cast<T*>(room.row), * __restrict scaled = static_cast<T*>(room.position);
  const T* divisor = static_cast<const T*>(room.divisor);
  __builtin_memset(data<T>(call.out) + begin * ins, 0, size_t((end - begin) * ins) * sizeof(T));
  for (int64_t r = begin * per_plane; r < end * per_plane; ++r) {
    const WindowRows<T> rows(call, r);
    const T *g = data<T>(call.in) + r * x.out, beside = rows.divisor();
    for (int64_t j = 0; j < x.out; ++j) scaled[j] = divisor ? g[j] / (beside * divisor[j]) : g[j];
    for (int64_t i = 0; i < x.in; ++i) spread[i] = 0;
    for (int64_t k = 0; k < x.taps; ++k) {
      const T* weight = static_cast<const T*>(room.weight) + k * x.out;
      for_outputs(
          x, k, [=](int64_t j, int64_t at) __attribute__((always_inline)) {
            const T w = weight[j], more = w * scaled[j];
            spread[at] += w != 0 ? more : T(0);
          });
    }
    for (int64_t i = 0; i < rows.count(); ++i) {
      const T w = rows.weight(i);
      T* __restrict row = data<T>(call.out) + rows.plane() + rows.start(i);
      if (w == 0) continue;
      for (int64_t j = 0; j < x.in; ++j) row[j] += w * spread[j];
    }
  }
}

template <class T> PoolKernel of(Pool pool) {
  switch (pool) {
    case Pool::max: return max_forward<T>;
    case Pool::max_back: return max_back<T>;
    case Pool::sum: return sum_rows<T>;
    case Pool::sum_back: break;
  }
  return sum_back<T>;
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::PoolKernel volta::cpu::pool_kernel<volta::cpu::Isa::VOLTA_ISA>(Pool pool, DType dtype) {
  return dtype == f64 ? VOLTA_ISA::of<double>(pool) : VOLTA_ISA::of<float>(pool);
}

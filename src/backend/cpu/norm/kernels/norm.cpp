// Normalisation of one set: its statistics in blocks that stay in the cache, then one pass that writes.
#include "backend/cpu/norm/norm.h"

#include "backend/cpu/simd/spread.h"
#include "backend/cpu/simd/vector.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

constexpr int64_t block = 1024;  // elements of which a partial sum is taken; partial sums add up in double

// The sum of term(read, i) over a block, which may begin at `uncached`, beyond the caches.
template <class T, class F> [[gnu::always_inline]] inline T block_sum(int64_t n, F term, const T* uncached = nullptr) {
  constexpr int ways = 4, width = lanes<T>;
  const auto wide = [](const T* x) { return load(x); };
  Vector<T> acc[ways] = {};
  int64_t i = 0;
  for (; i + ways * width <= n; i += ways * width) {
    if (uncached) prefetch_ahead<ways * register_bytes>(uncached + i);
#pragma GCC unroll 4
    for (int k = 0; k < ways; ++k) acc[k] += term(wide, i + k * width);
  }
  for (; i + width <= n; i += width) acc[0] += term(wide, i);
  const Vector<T> all = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  T sum = 0;
  for (int k = 0; k < width; ++k) sum += all[k];
  for (; i < n; ++i) sum += term([](const T* x) { return *x; }, i);
  return sum;
}
template <class T, class F> [[gnu::always_inline]] inline double row_sum(int64_t n, F term) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += block)
    sum += double(block_sum<T>(
        n - from < block ? n - from : block, [&](auto read, int64_t i)
                                                 __attribute__((always_inline)) { return term(read, from + i); }));
  return sum;
}

// Count, mean and sum of squared differences from it: of each block by itself, then merged (Chan).
struct Moments {
  double n = 0, mean = 0, squares = 0;

  template <class T> void add(int64_t count, const T* x, bool centered, bool uncached) {
    for (int64_t from = 0; from < count; from += block) {
      const int64_t m = count - from < block ? count - from : block;
      const T* row = x + from;
      const auto value = [=](auto read, int64_t i) { return read(row + i); };
      const auto squares_from = [=](T middle) {
        return block_sum<T>(m, [=](auto read, int64_t i) {
          const auto d = read(row + i) - middle;
          return d * d;
        });
      };
      T middle = centered ? block_sum<T>(m, value, uncached ? row : nullptr) / T(m) : T(0), all = squares_from(middle);
      if (centered && within_rounding(all, middle, T(m))) {
        const T base = row[0];
        middle = base + block_sum<T>(m, [=](auto read, int64_t i) { return read(row + i) - base; }) / T(m);
        all = squares_from(middle);
      }
      merge(double(m), double(middle), double(all));
    }
  }
  void merge(double m, double middle, double more) {
    const double apart = middle - mean, total = n + m;
    squares += more + apart * apart * (n * m / total);
    mean += apart * (m / total);
    n = total;
  }
};

// Where a set lies: segments of `inner` elements, each of one channel.
struct Set {
  int64_t first, step, segments, channel, channel_step;
};
Set set_of(const NormOperands& c, int64_t s) {
  if (c.over_outer) return {s * c.inner, c.groups * c.inner, c.outer, s, 0};
  return {s * c.channels * c.inner, c.inner, c.channels, s % c.groups * c.channels, 1};
}
template <class T> T* data(const Arg& a, int64_t at = 0) { return a.data ? static_cast<T*>(a.data) + at : nullptr; }

// f(weight or 1, bias or 0) for each of the four cases: each is read by read(i), of vectors or of numbers.
template <class T, class F> [[gnu::always_inline]] inline void with_affine(const T* w, const T* b, F f) {
  const auto weight = [w](auto read, int64_t i) { return read(w + i); };
  const auto bias = [b](auto read, int64_t i) { return read(b + i); };
  const auto one = [](auto, int64_t) { return T(1); };
  const auto zero = [](auto, int64_t) { return T(0); };
  if (w && b) f(weight, bias);
  else if (w) f(weight, zero);
  else if (b) f(one, bias);
  else f(one, zero);
}

template <class T> T inverse_deviation(const NormOperands& c, double variance) {
  return T(1 / __builtin_sqrt(variance + c.eps));
}

template <class T> void forward(const NormCall& c, int64_t s) {
  const Set set = set_of(c, s);
  const T* x = data<T>(c.x, set.first);
  T* y = data<T>(c.y, set.first);
  if (!c.given) {
    Moments m;
    const bool uncached = prefetch_helps && c.over_outer &&
                          c.outer * c.groups * c.channels * c.inner * int64_t(sizeof(T)) >= uncached_bytes;
    if (c.over_outer)
      for (int64_t k = 0; k < set.segments; ++k) m.add(c.inner, x + k * set.step, c.centered, uncached);
    else m.add(c.channels * c.inner, x, c.centered, uncached);
    *data<T>(c.mean, s) = T(m.mean);
    *data<T>(c.var, s) = T(m.squares / m.n);
  }
  const T mean = *data<T>(c.mean, s), scale = inverse_deviation<T>(c, double(*data<T>(c.var, s)));
  const T *weight = data<T>(c.weight, set.channel), *bias = data<T>(c.bias, set.channel);
  if (c.inner == 1 && !c.over_outer)
    return with_affine<T>(weight, bias, [=, &c](auto w, auto b) {
      each<T>(c.channels, [=](auto read, auto write, int64_t i) {
        write(y + i, (read(x + i) - mean) * scale * w(read, i) + b(read, i));
      });
    });
  for (int64_t k = 0; k < set.segments; ++k) {
    const T a = weight ? scale * weight[k * set.channel_step] : scale, b = bias ? bias[k * set.channel_step] : T(0);
    const T* in = x + k * set.step;
    T* out = y + k * set.step;
    each<T>(c.inner, [=](auto read, auto write, int64_t i) { write(out + i, (read(in + i) - mean) * a + b); });
  }
}

// dx = g w r + (x - mean) q + t, where q and t follow from the sums of g w and of g w (x - mean) over the set.
template <class T> struct Slopes {
  T q = 0, t = 0;
  Slopes(const NormOperands& c, double r, double sum, double product) {
    const double n = double(c.channels * c.inner * (c.over_outer ? c.outer : 1));
    if (c.given) return;
    q = T(-r * r * r * product / n);
    if (c.centered) t = T(-r * sum / n);
  }
};

template <class T> void backward_row(const NormBackwardCall& c, int64_t s, const Set& set, T* dbias, T* dweight) {
  const T *x = data<T>(c.x, set.first), *g = data<T>(c.g, set.first), *weight = data<T>(c.weight, set.channel);
  const T mean = *data<T>(c.mean, s), r = inverse_deviation<T>(c, double(*data<T>(c.var, s)));
  T* dx = data<T>(c.dx, set.first);
  each<T>(c.channels, [=](auto read, auto write, int64_t i) {
    write(dbias + i, read(dbias + i) + read(g + i));
    write(dweight + i, read(dweight + i) + read(g + i) * ((read(x + i) - mean) * r));
  });
  if (!dx) return;
  with_affine<T>(weight, nullptr, [=, &c](auto w, auto) {
    const double sum = row_sum<T>(c.channels, [=](auto read, int64_t i) { return read(g + i) * w(read, i); });
    const double product =
        row_sum<T>(c.channels, [=](auto read, int64_t i) { return read(g + i) * w(read, i) * (read(x + i) - mean); });
    const Slopes<T> slope(c, double(r), sum, product);
    each<T>(c.channels, [=](auto read, auto write, int64_t i) {
      write(dx + i, read(g + i) * w(read, i) * r + (read(x + i) - mean) * slope.q + slope.t);
    });
  });
}

template <class T> void backward(const NormBackwardCall& c, int64_t s, void* sums) {
  const Set set = set_of(c, s);
  T* dbias = static_cast<T*>(sums) + set.channel;
  T* dweight = dbias + c.groups * c.channels;
  if (c.inner == 1 && !c.over_outer) return backward_row<T>(c, s, set, dbias, dweight);
  const T *x = data<T>(c.x, set.first), *g = data<T>(c.g, set.first), *weight = data<T>(c.weight, set.channel);
  const T mean = *data<T>(c.mean, s), r = inverse_deviation<T>(c, double(*data<T>(c.var, s)));
  double total = 0, total_product = 0, sum = 0, product = 0;
  for (int64_t k = 0; k < set.segments; ++k) {
    const T *in = x + k * set.step, *up = g + k * set.step;
    sum += row_sum<T>(c.inner, [=](auto read, int64_t i) { return read(up + i); });
    product += row_sum<T>(c.inner, [=](auto read, int64_t i) { return read(up + i) * (read(in + i) - mean); });
    if (set.channel_step == 0 && k + 1 < set.segments) continue;
    const int64_t channel = k * set.channel_step;
    dbias[channel] += T(sum);
    dweight[channel] += T(product * double(r));
    total += sum * double(weight ? weight[channel] : T(1));
    total_product += product * double(weight ? weight[channel] : T(1));
    sum = product = 0;
  }
  if (!c.dx.data) return;
  const Slopes<T> slope(c, double(r), total, total_product);
  for (int64_t k = 0; k < set.segments; ++k) {
    const T a = weight ? r * weight[k * set.channel_step] : r;
    const T *in = x + k * set.step, *up = g + k * set.step;
    T* out = data<T>(c.dx, set.first) + k * set.step;
    each<T>(c.inner, [=](auto read, auto write, int64_t i) {
      write(out + i, read(up + i) * a + (read(in + i) - mean) * slope.q + slope.t);
    });
  }
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

template <> volta::cpu::NormKernel volta::cpu::norm_kernel<volta::cpu::Isa::VOLTA_ISA>(DType dtype) {
  if (dtype == f64) return {VOLTA_ISA::forward<double>, VOLTA_ISA::backward<double>};
  return {VOLTA_ISA::forward<float>, VOLTA_ISA::backward<float>};
}

// The GEMM of one instruction set: what runs on one thread, as a table of functions.
#include "backend/cpu/gemm/kernels/panels.h"
#include "backend/cpu/gemm/kernels/part.h"

namespace volta::cpu::VOLTA_ISA {
namespace {

// y += the products of x[p .. p + depth) with as many rows of B, which are contiguous.
template <int depth, class S, class T> void add_rows(const T* x, const S* b, int64_t b_step, T* y, int64_t n) {
  T values[depth];  // a copy, which stores to y cannot alias
  __builtin_memcpy(values, x, sizeof values);
  int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    Vector<T> sum = load(y + j);
#pragma GCC unroll 8
    for (int i = 0; i < depth; ++i) sum += load_some<lanes<T>>(b + i * b_step + j) * values[i];
    store<T>(y + j, sum);
  }
  for (; j < n; ++j) {
    for (int i = 0; i < depth; ++i) y[j] += values[i] * widen(b[i * b_step + j]);
  }
}

// y[0 .. columns) = x times columns of B that are contiguous along k.
template <int columns, class S, class T> void dots(const T* x, const S* b, int64_t b_step, int64_t k, T* y, bool add) {
  constexpr int chains = 8 / columns, stride = chains * lanes<T>;
  Vector<T> sums[columns][chains] = {};
  int64_t p = 0;
  for (; p + stride <= k; p += stride) {
#pragma GCC unroll 8
    for (int h = 0; h < chains; ++h) {
      const Vector<T> values = load(x + p + h * lanes<T>);
#pragma GCC unroll 4
      for (int i = 0; i < columns; ++i) sums[i][h] += values * load_some<lanes<T>>(b + i * b_step + p + h * lanes<T>);
    }
  }
  for (int i = 0; i < columns; ++i) {
    for (int h = 1; h < chains; ++h) sums[i][0] += sums[i][h];
    T sum = 0;
    for (int l = 0; l < lanes<T>; ++l) sum += sums[i][0][l];
    for (int64_t q = p; q < k; ++q) sum += x[q] * widen(b[i * b_step + q]);
    y[i] = add ? y[i] + sum : sum;
  }
}

// C[m x n] (+)= A B for a few rows: B is streamed once, at the speed of memory; for the rows after the first, what is
// needed of it is in the first cache.
template <class S, class A, class B, class T = Compute<S>>
[[gnu::noinline]] void multiply_thin(int64_t m, int64_t n, int64_t k, const A& a, const B& b, T* c, int64_t c_step,
                                     bool add) {
  const T* x = reinterpret_cast<const T*>(a.data);
  int64_t x_step = a.step;
  if (a.depth_step != 1 || sizeof(S) != sizeof(T)) {
    T* rows = buffer<T>(Scratch::shared, m * k);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) rows[i * k + p] = widen(a.data[i * a.step + p * a.depth_step]);
    }
    x = rows;
    x_step = k;
  }
  if (b.depth_step == 1) {
    const auto columns = [&]<int count>(int64_t j) {
      for (int64_t i = 0; i < m; ++i)
        dots<count>(x + i * x_step, b.data + j * b.step, b.step, k, c + i * c_step + j, add);
    };
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) columns.template operator()<4>(j);
    for (; j < n; ++j) columns.template operator()<1>(j);
    return;
  }
  const auto rows = [&]<int count>(int64_t p) {
    for (int64_t i = 0; i < m; ++i)
      add_rows<count>(x + i * x_step + p, b.data + p * b.depth_step, b.depth_step, c + i * c_step, n);
  };
  for (int64_t i = 0; i < m && !add; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * c_step + j] = 0;
  }
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) rows.template operator()<8>(p);
  for (; p < k; ++p) rows.template operator()<1>(p);
}

template <class S> void finish(const Gemm& p, Range rows, void* partials, int64_t count) {
  using T = Compute<S>;
  const int64_t n = p.n, size = p.m * n;
  T* sums = static_cast<T*>(partials) + rows.begin * n;
  for (int64_t s = 1; s < count; ++s) {
    for (int64_t i = 0; i < rows.size * n; ++i) sums[i] += sums[s * size + i];
  }
  finish_sums<S>(p, {rows, {0, n}}, sums, n, p.accumulate);
}

template <class S> void part(const Gemm& p, const Rectangle& r, Range depth, void* partial) {
  const int64_t m = r.rows.size, n = r.columns.size, k = depth.size;
  const auto multiply = [&](const auto& a, const auto& b, auto* c, int64_t c_step, bool add, const auto& done)
      __attribute__((always_inline)) {
    if (!p.skinny) return Multiplication(a, b, c, c_step).run(m, n, k, add, done);
    multiply_thin<S>(m, n, k, a, b, c, c_step, add);
    done(Range{0, m}, Range{0, n});
  };
  part_of<S>(p, r, depth, partial, multiply);
}

template <class T> void multiply_erased(const PanelProduct<T>& p) {
  const ErasedOperand<T> a{p.a}, b{p.b};
  Multiplication(a, b, p.c, p.c_step).run(p.m, p.n, p.k, p.add, [&](Range rows, Range columns) {
    for (int64_t i = rows.begin; p.row_bias && i < rows.begin + rows.size; ++i) {
      T* const row = p.c + i * p.c_step + columns.begin;
      for (int64_t j = 0; j < columns.size; ++j) row[j] += p.row_bias[i];
    }
  });
}

template <class S> constexpr GemmKernels kernels() {
  return {gemm_tile<Compute<S>>, sizeof(Compute<S>), part<S>, finish<S>};
}

}  // namespace

void multiply_panels(const PanelProduct<float>& p) { multiply_erased(p); }
void multiply_panels(const PanelProduct<double>& p) { multiply_erased(p); }

static constexpr GemmTable table = {kernels<float16>(), kernels<bfloat16>(), kernels<float>(),    kernels<double>(),
                                    kernels<uint8_t>(), kernels<uint16_t>(), kernels<uint32_t>(), kernels<uint64_t>(),
                                    kernels<uint8_t>(), kernels<uint16_t>(), kernels<uint32_t>(), kernels<uint64_t>(),
                                    kernels<Boolean>()};

}  // namespace volta::cpu::VOLTA_ISA

template <> const volta::cpu::GemmTable& volta::cpu::gemm_table<volta::cpu::Isa::VOLTA_ISA>() {
  return VOLTA_ISA::table;
}

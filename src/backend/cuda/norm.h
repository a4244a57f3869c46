// What the kernels of normalisation share: their arguments, what they sum up, and how partial sums are merged.
#pragma once
#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"
#include "backend/norm.h"

namespace volta::cuda {

// Mean and summed squares of deviations. Merged, equal values stay exactly equal to their mean (Chan, Golub and LeVeque).
template <class T> struct Moments {
  struct State {
    T count, mean, squares;
  };
  __device__ static State start() { return {T(0), T(0), T(0)}; }
  __device__ static State merge(State a, State b) {
    const T count = a.count + b.count;
    return count == T(0) ? a : merge(a, b, b.count / count);
  }
  // With the share of b in both. Where one is empty the means may be so far apart that their square is infinite.
  __device__ static State merge(State a, State b, T share) {
    const T apart = b.mean - a.mean;
    return {a.count + b.count, a.mean + apart * share, a.squares + b.squares + apart * (a.count * share) * apart};
  }
};
// The same of states that have all seen as many elements.
template <class T> struct EvenMoments : Moments<T> {
  using State = typename Moments<T>::State;
  __device__ static State merge(State a, State b) { return Moments<T>::merge(a, b, T(0.5)); }
};
template <class T> struct TwoSums {
  struct State {
    T plain, weighted;
  };
  __device__ static State start() { return {T(0), T(0)}; }
  __device__ static State merge(State a, State b) { return {a.plain + b.plain, a.weighted + b.weighted}; }
};

template <class T> using TwoSumsOf = typename TwoSums<T>::State;

// The moments of N elements by themselves. Counted from the first of them, equal values have exactly that as their mean.
template <class T, int N> __device__ typename Moments<T>::State moments_of(const T* v) {
  typename Moments<T>::State s{T(N), T(0), T(0)};
  unroll<N>([&](int j) { s.mean += v[j] - v[0]; });
  s.mean = v[0] + s.mean / T(N);
  unroll<N>([&](int j) { s.squares += (v[j] - s.mean) * (v[j] - s.mean); });
  return s;
}

// Operands as kernels take them; statistics and weights are of the type that is computed in.
struct NormArgs {
  int64_t outer, groups, channels, inner;
  bool over_outer, centered, given;
  double eps;
  const char *x, *g;  // g: backward
  const void *weight, *bias;
  void *mean, *var;
  char* out;   // y or dx
  void* sums;  // backward, of sets that lie apart: [2, groups]
  Divisor by_inner;
};

template <class T> __device__ inline T scale_of(const NormArgs& a, int64_t set) {
  return T(1) / ::sqrt(static_cast<const T*>(a.var)[set] + T(a.eps));
}

// Lines: the channels of all groups, each of outer runs of `inner` elements. A block goes over a part of a line's elements.
struct LineArgs : NormArgs {
  int64_t parts, per_part;  // elements of a line in a part
  void* partial;            // [parts, lines] states
};

// Merges the parts of each line, always in the same order.
constexpr int finish_columns = 8, finish_rows = threads / finish_columns;
template <class Op> __device__ typename Op::State merged_parts(const LineArgs& a, int64_t lines, int64_t line) {
  auto s = Op::start();
#pragma unroll 4
  for (int64_t k = threadIdx.y; line < lines && k < a.parts; k += finish_rows)
    s = Op::merge(s, static_cast<const typename Op::State*>(a.partial)[k * lines + line]);
  return team_merge<Op>(Team{true}, s);
}
template <class T> __global__ __launch_bounds__(threads) void finish_moments(const __grid_constant__ LineArgs a) {
  const int64_t lines = a.groups * a.channels, line = int64_t(blockIdx.x) * finish_columns + threadIdx.x;
  const auto s = merged_parts<Moments<T>>(a, lines, line);
  if (threadIdx.y != 0 || line >= lines) return;
  static_cast<T*>(a.mean)[line] = a.centered ? s.mean : T(0);
  static_cast<T*>(a.var)[line] = s.squares / s.count + (a.centered ? T(0) : s.mean * s.mean);
}
template <class T> __global__ __launch_bounds__(threads) void finish_sums(const __grid_constant__ LineArgs a) {
  const int64_t lines = a.groups * a.channels, line = int64_t(blockIdx.x) * finish_columns + threadIdx.x;
  const auto s = merged_parts<TwoSums<T>>(a, lines, line);
  if (threadIdx.y != 0 || line >= lines) return;
  static_cast<T*>(a.sums)[line] = s.plain;
  static_cast<T*>(a.sums)[lines + line] = s.weighted;
}
inline void finish(Context& c, void (*kernel)(LineArgs), const LineArgs& a) {
  launch(c, "norm", kernel, blocks_for(a.groups * a.channels, finish_columns), dim3(finish_columns, finish_rows), a);
}

inline bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// f.template operator()<T, S>() with the type computed in and the stored one.
template <class F> void with_types(DType stored, F f) {
  if (stored == f64) f.template operator()<double, double>();
  else if (stored == f32) f.template operator()<float, float>();
  else if (stored == f16) f.template operator()<float, float16>();
  else f.template operator()<float, bfloat16>();
}

// Lines in so many parts, of at least `least` elements, that with `blocks` for each the device is busy.
inline LineArgs split(const NormArgs& from, int64_t line_elements, int64_t blocks, int64_t least) {
  constexpr int64_t wanted_blocks = 132 * 8;
  LineArgs a{from, 1, line_elements, nullptr};
  const int64_t most = (line_elements + least - 1) / least;
  a.parts = std::clamp<int64_t>(wanted_blocks / std::max<int64_t>(blocks, 1), 1, std::min<int64_t>(most, 1024));
  a.per_part = (line_elements + a.parts - 1) / a.parts;
  return a;
}
// The same with memory for partial states, which live as long as `use` runs.
template <class State, class F>
void in_parts(Context& c, const NormArgs& from, int64_t line_elements, int64_t blocks, int64_t least, F use) {
  LineArgs a = split(from, line_elements, blocks, least);
  const Room room = c.memory().take(a.parts * a.groups * a.channels * int64_t(sizeof(State)), "norm");
  a.partial = room->data;
  use(a);
}

// Batch norm of rows of channels, over_outer with an inner size of 1.
void batch_norm_of_rows(Context& c, DType stored, const NormArgs& a);
void batch_norm_of_rows_backward(Context& c, DType stored, const NormArgs& a);

}  // namespace volta::cuda

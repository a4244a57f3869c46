// Cross-entropy on the CPU: rows of scores run in parallel.
#include "backend/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu.h"
#include "backend/cpu/cross_entropy/kernels.h"
#include "backend/cpu/parallel_rows.h"
#include "math/reducers.h"

namespace volta::cpu {
namespace {

CrossEntropyKernel kernel_of(DType dtype) {
  return for_isa([]<Isa level>() { return &cross_entropy_kernel<level>; })(dtype);
}

template <class F> void for_rows(int64_t rows, int64_t classes, F f) {
  parallel_ranges(rows, std::max<int64_t>(1, 8192 / classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

template <class T> const T& at(const Arg& x, int64_t row) {
  return static_cast<const T*>(x.data)[row * x.layout->strides[0]];
}

// One number of all that are in x.
template <class Reducer, class T> T reduced(const Arg& x) {
  T result;
  const Layout one = Layout::contiguous(Shape::filled(x.layout->rank(), 1));
  reduce({index_of<Reducer>(Reducers{}), x.dtype, {&result, &one, x.dtype, {}}, {}, x, ~0u >> (32 - one.rank()), 0});
  return result;
}

template <class T> void take_mean(const CrossEntropyCall& call) {
  T& mean = *static_cast<T*>(call.mean.data);
  if (!call.factors.data) return void(mean = reduced<reducers::Mean, T>(call.losses));
  const T divisor = reduced<reducers::Sum, T>(call.factors);
  mean = reduced<reducers::Sum, T>(call.losses) / divisor;
  *static_cast<T*>(call.divisor.data) = divisor;
}

template <class T> void forward(const CrossEntropyCall& call) {
  const int64_t classes = call.scores.layout->shape[1];
  const CrossEntropyKernel kernel = kernel_of(call.scores.dtype);
  for_rows(call.scores.layout->shape[0], classes, [&](int64_t r) {
    const T* row = static_cast<const T*>(call.scores.data) + r * classes;
    const ScoreSum s = kernel.sum(classes, row);
    auto* statistics = static_cast<double*>(call.statistics.data) + 2 * r;
    const int64_t label = at<int64_t>(call.labels, r);
    const bool counts = label != call.ignore;
    const T factor = !counts ? T(0) : call.weight.data ? static_cast<const T*>(call.weight.data)[label] : T(1);
    const T loss = counts ? T(std::log(s.sum) - (double(row[label]) - s.top)) : T(0);
    // An infinite loss counts nothing under a factor of 0, one of NaN does; an ignored row says nothing of its scores.
    static_cast<T*>(call.losses.data)[r] = factor == T(0) && !std::isnan(loss) ? T(0) : loss * factor;
    statistics[0] = counts ? s.top : 0, statistics[1] = counts ? s.sum : 1;
    if (call.factors.data) static_cast<T*>(call.factors.data)[r] = factor;
  });
  if (call.mean.data) take_mean<T>(call);
}

template <class T> void backward(const CrossEntropyBackwardCall& call) {
  const int64_t classes = call.scores.layout->shape[1];
  const CrossEntropyKernel kernel = kernel_of(call.scores.dtype);
  const T divisor = call.divisor.data ? *static_cast<const T*>(call.divisor.data) : call.divisor.scalar.as<T>();
  for_rows(call.scores.layout->shape[0], classes, [&](int64_t r) {
    const T factor = call.factors.data ? static_cast<const T*>(call.factors.data)[r] : T(1);
    const T upstream = at<T>(call.g, r) / divisor * factor;
    const double* s = static_cast<const double*>(call.statistics.data) + 2 * r;
    T* out = static_cast<T*>(call.grad_scores.data) + r * classes;
    if (factor == T(0) && !std::isnan(s[1])) return void(std::fill_n(out, classes, T(0)));
    kernel.scaled(classes, out, static_cast<const T*>(call.scores.data) + r * classes, s[0], double(upstream) / s[1]);
    out[at<int64_t>(call.labels, r)] -= upstream;
  });
}

}  // namespace

bool offers_cross_entropy(const CrossEntropyCall& call) {
  const Layout& x = *call.scores.layout;
  return x.shape[2] == 1 && x.is_contiguous() && x.numel() > 0 && !is_half(call.scores.dtype);
}

void cross_entropy(const CrossEntropyCall& call) {
  if (call.scores.dtype == f32) forward<float>(call);
  else forward<double>(call);
}

void cross_entropy_backward(const CrossEntropyBackwardCall& call) {
  if (call.scores.dtype == f32) backward<float>(call);
  else backward<double>(call);
}

}  // namespace volta::cpu

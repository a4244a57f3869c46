// Softmax, log-softmax and their gradients on the GPU: a team of threads per row, which it keeps in registers where the
// row is short enough, and reads twice where it is not.
#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

struct RowArgs {
  Strided<3> rows;  // out and the operands
  int64_t step[3];  // along the axis, in bytes
  DType dtype[3];
  int64_t n;
  bool across;
};

// Each op lifts a batch of elements to a state; elements beyond the end of the row are neutral.
template <class T> struct Softmax : folds::LogSumExp<T> {
  using State = typename folds::LogSumExp<T>::State;
  static constexpr int inputs = 1;
  __device__ static T neutral() { return folds::lowest<T>(); }
  template <int U> __device__ static State lift(const T (&x)[1][U]) {
    State s = {x[0][0], T(0)};
#pragma unroll
    for (int u = 1; u < U; ++u) s.top = scalar::max(s.top, x[0][u]);
    const T shift = folds::LogSumExp<T>::shift(s.top);
#pragma unroll
    for (int u = 0; u < U; ++u) s.sum += scalar::exp(x[0][u] - shift);
    return s;
  }
  // A row whose largest element is not finite has no softmax.
  __device__ static State ready(State s) { return {s.top, scalar::isfinite(s.top) ? T(1) / s.sum : s.top - s.top}; }
  template <int U> __device__ static T value(State s, const T (&x)[1][U], int u) {
    return scalar::exp(x[0][u] - s.top) * s.sum;
  }
};
template <class T> struct LogSoftmax : Softmax<T> {
  using State = typename Softmax<T>::State;
  __device__ static State ready(State s) {
    return {s.top, scalar::isfinite(s.top) ? scalar::log(s.sum) : s.top - s.top};
  }
  template <int U> __device__ static T value(State s, const T (&x)[1][U], int u) { return (x[0][u] - s.top) - s.sum; }
};
// The operands are the gradient and the output.
template <class T> struct SoftmaxBack : folds::Sum<T> {
  static constexpr int inputs = 2;
  __device__ static T neutral() { return T(0); }
  template <int U> __device__ static T lift(const T (&x)[2][U]) {
    T sum = T(0);
#pragma unroll
    for (int u = 0; u < U; ++u) sum += x[0][u] * x[1][u];
    return sum;
  }
  __device__ static T ready(T s) { return s; }
  template <int U> __device__ static T value(T s, const T (&x)[2][U], int u) { return x[1][u] * (x[0][u] - s); }
};
template <class T> struct LogSoftmaxBack : SoftmaxBack<T> {
  template <int U> __device__ static T lift(const T (&x)[2][U]) {
    T sum = T(0);
#pragma unroll
    for (int u = 0; u < U; ++u) sum += x[0][u];
    return sum;
  }
  template <int U> __device__ static T value(T s, const T (&x)[2][U], int u) {
    return x[0][u] - scalar::exp(x[1][u]) * s;
  }
};

template <class Op, class T, int U>
__global__ __launch_bounds__(threads) void row_kernel(const __grid_constant__ RowArgs a) {
  const Team team{a.across};
  const uint32_t row = blockIdx.x * team.rows() + team.row();
  const auto at = place(a.rows, row < a.rows.n ? row : 0);
  const int64_t size = team.size(), batch = U * size;
  T x[Op::inputs][U];
  const auto fetch = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < Op::inputs; ++k) {
      load_all(x[k], a.dtype[k + 1], [&](int u) {
        const int64_t i = first + u * size;
        return at.p[0][k + 1] + (i < a.n ? i : first) * a.step[k + 1];
      });
#pragma unroll
      for (int u = 1; u < U; ++u)
        if (first + u * size >= a.n) x[k][u] = Op::neutral();
    }
  };
  typename Op::State s = Op::start();
  for (int64_t first = team.rank(); first < a.n; first += batch) {
    fetch(first);
    s = Op::merge(s, Op::lift(x));
  }
  s = Op::ready(team_merge_all<Op>(team, s));
  if (row >= a.rows.n) return;
  for (int64_t first = team.rank(); first < a.n; first += batch) {
    if (a.n > batch) fetch(first);
    T y[U];
#pragma unroll
    for (int u = 0; u < U; ++u) y[u] = Op::value(s, x, u);
    const int64_t left = (a.n - first + size - 1) / size;
    store_all(
        y, a.dtype[0], [&](int u) { return at.p[0][0] + (first + u * size) * a.step[0]; }, int(left < U ? left : U));
  }
}

using RowKernel = void (*)(RowArgs);

template <class T, int U> RowKernel find(RowOp op) {
  switch (op) {
    case RowOp::softmax: return &row_kernel<Softmax<T>, T, U>;
    case RowOp::log_softmax: return &row_kernel<LogSoftmax<T>, T, U>;
    case RowOp::softmax_back: return &row_kernel<SoftmaxBack<T>, T, U>;
    case RowOp::log_softmax_back: break;
  }
  return &row_kernel<LogSoftmaxBack<T>, T, U>;
}

}  // namespace

void Context::rows(const RowCall& call) {
  const OnDevice current(device);
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const bool forward = call.op == RowOp::softmax || call.op == RowOp::log_softmax;
  const Arg args[] = {call.out, call.in[0], forward ? Arg{} : call.in[1]};
  const Walk<3> walk = walk_of<3>(shape, {&args[0], &args[1], &args[2]}, 1u << call.axis);
  RowArgs a{};
  a.n = shape[call.axis];
  for (int k = 0; k < 3; ++k) {
    a.step[k] = step_of(args[k], call.axis, shape.size());
    a.dtype[k] = args[k].dtype;
  }
  a.across = walk.size[0] >= 8 && walk.stride[0][0] != 0 && std::abs(walk.stride[0][0]) < std::abs(a.step[0]);
  const int64_t wanted = a.across ? a.n / 8 : (a.n + 3) / 4, most = a.across ? 8 : threads;
  const auto team = unsigned(std::bit_ceil(uint64_t(std::clamp<int64_t>(wanted, 1, most)))), together = threads / team;
  const dim3 block = a.across ? dim3(together, team) : dim3(team, together);
  const bool brief = a.n <= 4 * int64_t(team);
  const bool wide = call.out.dtype == f64;
  const RowKernel kernel = brief  ? wide ? find<double, 4>(call.op) : find<float, 4>(call.op)
                            : wide ? find<double, 16>(call.op)
                                  : find<float, 16>(call.op);
  in_chunks<3>(walk, {args[0].data, args[1].data, args[2].data}, [&](const Strided<3>& rows) {
    a.rows = rows;
    launch(*this, "softmax", kernel, blocks_for(rows.n, together), block, a);
  });
}

}  // namespace volta::cuda

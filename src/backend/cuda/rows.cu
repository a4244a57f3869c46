// Softmax, log-softmax and their gradients on the GPU: a team of threads per row, the row read twice.
#include "backend/cuda/element.h"
#include "backend/cuda/fold_formulas.h"
#include "backend/cuda/loops.h"
#include "backend/cuda/team.h"

namespace volta::cuda {
namespace {

struct RowArgs {
  Strided<3> rows;  // out, a, b
  char* data[3];
  int64_t step[3];  // along the axis, in bytes
  DType dtype[3];
  int64_t n;
  bool across;
};

template <class T> struct RowReader {
  const RowArgs& a;
  const int64_t (&offset)[3];
  __device__ T operator()(int k, int64_t i) const { return load<T>(a.data[k] + offset[k] + i * a.step[k], a.dtype[k]); }
  __device__ void write(int64_t i, T value) const { store(a.data[0] + offset[0] + i * a.step[0], a.dtype[0], value); }
};

template <class T> struct Softmax {
  using Formula = folds::LogSumExp<T>;
  using State = typename Formula::State;
  __device__ static State start() { return Formula::start(); }
  __device__ static State take(State s, const RowReader<T>& x, int64_t i) { return Formula::take(s, x(1, i), 0, 0); }
  __device__ static State merge(State a, State b) { return Formula::merge(a, b); }
  // A row whose largest element is not finite has no softmax.
  __device__ static State ready(State s) { return {s.top, scalar::isfinite(s.top) ? T(1) / s.sum : s.top - s.top}; }
  __device__ static T value(State s, const RowReader<T>& x, int64_t i) { return scalar::exp(x(1, i) - s.top) * s.sum; }
};
template <class T> struct LogSoftmax : Softmax<T> {
  using State = typename Softmax<T>::State;
  __device__ static State ready(State s) {
    return {s.top, scalar::isfinite(s.top) ? scalar::log(s.sum) : s.top - s.top};
  }
  __device__ static T value(State s, const RowReader<T>& x, int64_t i) { return (x(1, i) - s.top) - s.sum; }
};
// Operand 1 is the gradient, operand 2 the output.
template <class T> struct SoftmaxBack {
  using State = T;
  __device__ static State start() { return T(0); }
  __device__ static State take(State s, const RowReader<T>& x, int64_t i) { return s + x(1, i) * x(2, i); }
  __device__ static State merge(State a, State b) { return a + b; }
  __device__ static State ready(State s) { return s; }
  __device__ static T value(State s, const RowReader<T>& x, int64_t i) { return x(2, i) * (x(1, i) - s); }
};
template <class T> struct LogSoftmaxBack : SoftmaxBack<T> {
  __device__ static T take(T s, const RowReader<T>& x, int64_t i) { return s + x(1, i); }
  __device__ static T value(T s, const RowReader<T>& x, int64_t i) { return x(1, i) - scalar::exp(x(2, i)) * s; }
};

template <class F, class T>
__global__ __launch_bounds__(team_threads) void row_kernel(const __grid_constant__ RowArgs a) {
  const Team team{a.across};
  const uint32_t row = blockIdx.x * team.rows() + team.row();
  const bool mine = row < a.rows.n;
  int64_t offset[3];
  offsets(a.rows, mine ? row : 0, offset);
  const RowReader<T> x{a, offset};
  typename F::State s = F::start();
#pragma unroll 4
  for (int64_t i = team.rank(); i < a.n; i += team.size()) s = F::take(s, x, i);
  s = F::ready(team_merge_all(team, s, [](const auto& p, const auto& q) { return F::merge(p, q); }));
  if (!mine) return;
#pragma unroll 4
  for (int64_t i = team.rank(); i < a.n; i += team.size()) x.write(i, F::value(s, x, i));
}

using RowKernel = void (*)(RowArgs);

template <class T> RowKernel find(RowOp op) {
  switch (op) {
    case RowOp::softmax: return &row_kernel<Softmax<T>, T>;
    case RowOp::log_softmax: return &row_kernel<LogSoftmax<T>, T>;
    case RowOp::softmax_back: return &row_kernel<SoftmaxBack<T>, T>;
    case RowOp::log_softmax_back: break;
  }
  return &row_kernel<LogSoftmaxBack<T>, T>;
}

}  // namespace

void rows(Context& c, const RowCall& call) {
  const Shape& shape = call.out.layout->shape;
  if (shape.numel() == 0) return;
  const int operands = call.op == RowOp::softmax || call.op == RowOp::log_softmax ? 2 : 3;
  const Arg* args[] = {&call.out, &call.in[0], &call.in[1]};
  RowArgs a{};
  Walk<3> walk;
  for (int i = 0; i < shape.size(); ++i) {
    int64_t strides[3] = {};
    for (int k = 0; k < operands; ++k) strides[k] = args[k]->layout->strides[i] * size_of(args[k]->dtype);
    if (i == call.axis) std::copy(strides, strides + 3, a.step);
    else walk.add_axis(shape[i], strides);
  }
  walk.finish();
  a.n = shape[call.axis];
  for (int k = 0; k < operands; ++k) a.dtype[k] = args[k]->dtype;
  a.across = walk.size[0] >= 8 && walk.stride[0][0] != 0 && std::abs(walk.stride[0][0]) < std::abs(a.step[0]);
  int64_t team = 1;
  const int64_t wanted = a.across ? a.n / 8 : a.n / 4, most = a.across ? 8 : team_threads;
  while (team < wanted && team < most) team *= 2;
  const int64_t together = team_threads / team;
  const dim3 block = a.across ? dim3(unsigned(together), unsigned(team)) : dim3(unsigned(team), unsigned(together));
  const RowKernel kernel = call.out.dtype == f64 ? find<double>(call.op) : find<float>(call.op);
  in_chunks(walk, [&](const Strided<3>& piece, const auto& base) {
    a.rows = piece;
    for (int k = 0; k < operands; ++k) a.data[k] = static_cast<char*>(args[k]->data) + base[size_t(k)];
    launch(c, "softmax", kernel, blocks_for(piece.n, together), block, a);
  });
}

}  // namespace volta::cuda

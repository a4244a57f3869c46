// Softmax, log-softmax and their gradients on the GPU: a team of threads per row, which it keeps in registers where the
// row is short enough, and reads twice where it is not.
#include "backend/cuda/element.h"
#include "backend/cuda/formulas.h"

namespace volta::cuda {
namespace {

struct RowArgs : AxisRows<3> {  // out and the operands
  bool across;
};

// Each op lifts a batch of elements to a state; elements beyond the end of the row are neutral.
template <class T, bool Log> struct Forward : Formula<reducers::LogSumExp, T> {
  using State = reducers::LogSumExp::State<T>;
  static constexpr int inputs = 1;
  __device__ static T neutral() { return reducers::lowest<T>(); }
  template <int E> __device__ static State lift(const T (&x)[1][E]) {
    State s = {x[0][0], T(0)};
#pragma unroll
    for (int e = 1; e < E; ++e) s.top = scalar::max(s.top, x[0][e]);
    const T shift = reducers::LogSumExp::shift(s.top);
    unroll<E>([&](int e) { s.sum += ::exp(x[0][e] - shift); });
    return s;
  }
  // A row whose largest element is not finite has no softmax.
  __device__ static State ready(State s) {
    return {s.top, !scalar::isfinite(s.top) ? s.top - s.top : Log ? scalar::log(s.sum) : T(1) / s.sum};
  }
  template <int E> __device__ static T value(State s, const T (&x)[1][E], int e) {
    return Log ? (x[0][e] - s.top) - s.sum : ::exp(x[0][e] - s.top) * s.sum;
  }
};

// The operands are the gradient and the output.
template <class T, bool Log> struct Back : Formula<reducers::Sum, T> {
  static constexpr int inputs = 2;
  __device__ static T neutral() { return T(0); }
  template <int E> __device__ static T lift(const T (&x)[2][E]) {
    T sum = T(0);
    unroll<E>([&](int e) { sum += Log ? x[0][e] : x[0][e] * x[1][e]; });
    return sum;
  }
  __device__ static T ready(T s) { return s; }
  template <int E> __device__ static T value(T s, const T (&x)[2][E], int e) {
    return Log ? x[0][e] - ::exp(x[1][e]) * s : x[1][e] * (x[0][e] - s);
  }
};

constexpr int most_threads = 1024;  // that share a row of packs

// A thread takes U packs of V elements of type S at a time; with V = 1, elements of any dtype and stride.
template <class Op, class T, class S, int V, int U>
__global__ __launch_bounds__(V > 1 ? most_threads : threads) void softmax_kernel(const __grid_constant__ RowArgs a) {
  using P = Pack<S, V>;
  const Team team{a.across};
  const uint32_t row = blockIdx.x * team.rows() + team.row();
  const auto at = place(a.lines, row < a.lines.n ? row : 0);
  const int64_t count = a.n / V, size = team.size(), batch = U * size;
  T x[Op::inputs][U * V];
  const auto fetch = [&](int64_t first) {
    const auto index = [&](int u) { return first + u * size < count ? first + u * size : first; };
    unroll<Op::inputs>([&](int k) {
      const char* from = at.p[0][k + 1];
      if constexpr (V == 1) {
        load_all(x[k], a.dtype[k + 1], [&](int u) { return from + index(u) * a.step[k + 1]; });
      } else {
        P held[U];
        unroll<U>([&](int u) { held[u] = reinterpret_cast<const P*>(from)[index(u)]; });
        unroll<U * V>([&](int e) { x[k][e] = convert<T>(held[e / V].v[e % V]); });
      }
#pragma unroll
      for (int e = V; e < U * V; ++e)
        if (first + e / V * size >= count) x[k][e] = Op::neutral();
    });
  };
  typename Op::State s = Op::start();
  for (int64_t first = team.rank(); first < count; first += batch) {
    fetch(first);
    s = Op::merge(s, Op::lift(x));
  }
  s = Op::ready(team_merge<Op>(team, s));
  if (row >= a.lines.n) return;
  for (int64_t first = team.rank(); first < count; first += batch) {
    if (count > batch) fetch(first);
    T y[U * V];
    unroll<U * V>([&](int e) { y[e] = Op::value(s, x, e); });
    const int64_t left = (count - first + size - 1) / size;
    if constexpr (V == 1) {
      store_all(
          y, a.dtype[0], [&](int u) { return at.p[0][0] + (first + u * size) * a.step[0]; }, int(left < U ? left : U));
    } else {
      unroll<U>([&](int u) {
        P pack;
        unroll<V>([&](int j) { pack.v[j] = convert<S>(y[u * V + j]); });
        if (u < left) reinterpret_cast<P*>(at.p[0][0])[first + u * size] = pack;
      });
    }
  }
}

using RowKernel = void (*)(RowArgs);

template <class T, class S, int V, int U, int BackU = U> RowKernel find(bool log, bool back) {
  if (back)
    return log ? &softmax_kernel<Back<T, true>, T, S, V, BackU> : &softmax_kernel<Back<T, false>, T, S, V, BackU>;
  return log ? &softmax_kernel<Forward<T, true>, T, S, V, U> : &softmax_kernel<Forward<T, false>, T, S, V, U>;
}

template <int U> RowKernel find_elements(DType t, bool log, bool back) {
  return (t == f64 ? find<double, double, 1, U> : find<float, float, 1, U>)(log, back);
}

RowKernel find_packs(DType t, bool log, bool back) {
  if (t == f32) return find<float, float, 4, 8, 4>(log, back);
  return (t == f16 ? find<float, float16, 8, 4, 2> : find<float, bfloat16, 8, 4, 2>)(log, back);
}

// Whether rows are contiguous elements of one dtype, aligned to 16 bytes.
bool packed(const Operands<3>& rest, const RowArgs& a) {
  const DType t = a.dtype[0];
  bool yes = t == f32 || is_half(t);
  for (int k = 0; k < 3; ++k)
    if (rest.data[k]) yes = yes && a.dtype[k] == t && a.step[k] == size_of(t) && rest.low_bits(k, 0) % 16 == 0;
  return yes && a.n % (16 / size_of(t)) == 0;
}

void softmax_rows(Context& context, const char* op, bool log, bool back, const Args<3>& args, int axis) {
  const OnDevice current(context.device);
  const Shape& shape = args[0]->layout->shape;
  if (shape.numel() == 0) return;
  const Operands<3> rest(shape, args, 1u << axis);
  RowArgs a{{shape, args, axis}, false};
  const int64_t held = back ? 16 : 32;  // elements a thread keeps of a row of packs
  const bool packs = a.n >= 16 * held && packed(rest, a);
  a.across = !packs && rest.size[0] >= 8 && rest.stride[0][0] != 0 && std::abs(rest.stride[0][0]) < std::abs(a.step[0]);
  const int64_t wanted = packs ? std::max<int64_t>(32, (a.n + held - 1) / held) : a.across ? a.n / 8 : (a.n + 3) / 4;
  const int64_t most = packs ? most_threads : a.across ? 8 : threads;
  const auto team = unsigned(std::bit_ceil(uint64_t(std::clamp<int64_t>(wanted, 1, most))));
  const unsigned together = std::max(1u, threads / team);
  const bool brief = a.n <= 4 * int64_t(team);
  const auto find_kernel = packs ? find_packs : brief ? find_elements<4> : find_elements<16>;
  const RowKernel kernel = find_kernel(args[0]->dtype, log, back);
  in_chunks(rest, [&](const Strided<3>& lines) {
    a.lines = lines;
    const dim3 block = a.across ? dim3(together, team) : dim3(team, together);
    launch(context, op, kernel, blocks_for(lines.n, together), block, a);
  });
}

}  // namespace

void Context::softmax(const SoftmaxCall& call) {
  const Arg none;
  softmax_rows(*this, "softmax", call.log, false, {&call.out, &call.in, &none}, call.axis);
}

void Context::softmax_backward(const SoftmaxBackwardCall& call) {
  softmax_rows(*this, "softmax_backward", call.log, true, {&call.out, &call.grad, &call.result}, call.axis);
}

}  // namespace volta::cuda

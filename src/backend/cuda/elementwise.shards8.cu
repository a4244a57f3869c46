// Pointwise loops on the GPU, an eighth of the ops in each part: every formula and derivative over packs, and over any
// strides.
#include <volta/elementwise_rows.h>

#include "backend/cuda/element.h"
#include "math/elementwise.h"
#include "math/inner.h"

namespace volta::cuda {
namespace {

constexpr int max_inputs = ElementwiseOp::max_arity + 2;  // g, the operands, the output

// Everything contiguous, of one dtype, and aligned to 16 bytes; operands without an address are numbers.
struct PackCall {
  int64_t n;
  void* out;
  const void* in[max_inputs];
  float scalar[max_inputs];
};

// Anything else. The bits of `scalar` hold a number of the compute dtype.
struct StridedCall {
  Strided<max_inputs + 1> operands;  // the output first
  uint64_t scalar[max_inputs];
  DType out_dtype, dtype[max_inputs];
};

// Rows that are packs of 16 bytes; operands broadcast along the other axes, or along the rows (`still`, a bit for each).
struct RowsCall {
  Strided<3> operands;  // the output first; its elements are packs
  uint32_t still;
};

constexpr int packs_per_thread(int inputs) { return inputs >= 4 ? 1 : 4 / inputs; }
constexpr int strided_per_thread(int inputs) { return inputs <= 2 ? 4 : 2; }

// An operand's packs for one thread, kept as they were stored until all loads are on their way.
template <class S, int V, int U> struct Packs {
  Pack<S, V> pack[U];
  bool given;

  __device__ void fetch(const void* data, float scalar, const int64_t (&at)[U]) {
    given = data != nullptr;
    unroll<U>([&](int u) {
      if (given) pack[u] = static_cast<const Pack<S, V>*>(data)[at[u]];
      else if constexpr (!is_half_type<S>)
        for (int j = 0; j < V; ++j) pack[u].v[j] = S(scalar);
    });
  }
  // From an address for each pack; one element for the whole of it where the operand stands still.
  template <class P> __device__ void fetch_at(P p, bool still) {
    given = true;
    unroll<U>([&](int u) {
      if (!still) pack[u] = *reinterpret_cast<const Pack<S, V>*>(p(u));
      else unroll<V>([&](int j) { pack[u].v[j] = *reinterpret_cast<const S*>(p(u)); });
    });
  }
  __device__ auto value(int u, int j, float scalar) const {
    if constexpr (is_half_type<S>) return given ? widen(pack[u].v[j]) : scalar;
    else if constexpr (std::is_same_v<S, uint8_t>) return pack[u].v[j] != 0;
    else return pack[u].v[j];
  }
};

// The packs at[0], …, at[count - 1] of V elements.
template <class Op, int Kernel, class S, int V, int U>
__device__ void map_at(const PackCall& c, const int64_t (&at)[U], int count) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    using R = decltype(evaluate<Op, Kernel, float>(Element<Op, Kernel, int(I), float>()...));
    using Out = std::conditional_t<std::is_same_v<R, bool>, bool, S>;
    [&](auto... held) {
      (held.fetch(c.in[I], c.scalar[I], at), ...);
      unroll<U>([&](int u) {
        if (u >= count) return;
        Pack<Out, V> result;
        unroll<V>([&](int j) {
          result.v[j] = convert<Out>(
              evaluate<Op, Kernel, float>(Element<Op, Kernel, int(I), float>(held.value(u, j, c.scalar[I]))...));
        });
        static_cast<Pack<Out, V>*>(c.out)[at[u]] = result;
      });
    }(Packs<std::conditional_t<std::is_same_v<Element<Op, Kernel, int(I), float>, bool>, uint8_t, S>, V, U>()...);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class Op, int Kernel, class S>
__global__ __launch_bounds__(threads) void map_packs(const __grid_constant__ PackCall c) {
  constexpr int V = 16 / sizeof(S), U = packs_per_thread(operands<Op, Kernel>);
  const int64_t first = int64_t(blockIdx.x) * (threads * U) + threadIdx.x, whole = c.n / V;
  if (first < whole) {
    int64_t at[U];
    unroll<U>([&](int u) { at[u] = first + u * threads < whole ? first + u * threads : 0; });
    const int64_t count = (whole - first + threads - 1) / threads;
    map_at<Op, Kernel, S, V>(c, at, int(count < U ? count : U));
  }
  const int64_t rest[] = {whole * V + first};  // less than a pack
  if (rest[0] < c.n) map_at<Op, Kernel, S, 1>(c, rest, 1);
}

// Ops of two numbers, which are often broadcast to each other.
template <class Op> constexpr bool takes_two() {
  if constexpr (operands<Op, 0> != 2) return false;
  else return std::is_same_v<Element<Op, 0, 0, float>, float> && std::is_same_v<Element<Op, 0, 1, float>, float>;
}

template <class Op, class S> __global__ __launch_bounds__(threads) void map_rows(const __grid_constant__ RowsCall c) {
  constexpr int V = 16 / sizeof(S), U = packs_per_thread(2);
  Share<U> share(c.operands.n);
  if (share.count == 0) return;
  const Places<U, 3> places(c.operands, share.index);
  Packs<S, V, U> held[2];
  unroll<2>([&](int k) { held[k].fetch_at([&](int u) { return places.p[u][k + 1]; }, c.still >> (k + 1) & 1); });
  using R = decltype(evaluate<Op, 0, float>(0.0f, 0.0f));
  using Out = std::conditional_t<std::is_same_v<R, bool>, bool, S>;
  unroll<U>([&](int u) {
    if (u >= share.count) return;
    Pack<Out, V> result;
    unroll<V>([&](int j) {
      result.v[j] = convert<Out>(evaluate<Op, 0, float>(held[0].value(u, j, 0), held[1].value(u, j, 0)));
    });
    *reinterpret_cast<Pack<Out, V>*>(places.p[u][0]) = result;
  });
}

template <class Op, int Kernel, class T>
__global__ __launch_bounds__(threads) void map_strided(const __grid_constant__ StridedCall c) {
  constexpr int U = strided_per_thread(operands<Op, Kernel>), K = operands<Op, Kernel> + 1;
  Share<U> share(c.operands.n);
  if (share.count == 0) return;
  const Places<U, K> places(c.operands, share.index);
  const auto fetch = [&]<class X>(Pack<X, U>& operand, int k) {
    if (c.operands.data[k + 1]) return load_all(operand.v, c.dtype[k], [&](int u) { return places.p[u][k + 1]; });
    unroll<U>([&](int u) { memcpy(&operand.v[u], &c.scalar[k], sizeof(X)); });
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    [&](auto... fetched) {
      (fetch(fetched, int(I)), ...);
      decltype(evaluate<Op, Kernel, T>(fetched.v[0]...)) result[U];
      unroll<U>([&](int u) { result[u] = evaluate<Op, Kernel, T>(fetched.v[u]...); });
      store_all(
          result, c.out_dtype, [&](int u) { return places.p[u][0]; }, share.count);
    }(Pack<Element<Op, Kernel, int(I), T>, U>()...);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

struct MapKernels {
  std::array<void (*)(PackCall), 3> packs = {};  // of f16, bf16, f32
  std::array<void (*)(RowsCall), 3> rows = {};
  void (*strided)(StridedCall) = nullptr;
};

template <class Op, int Kernel> MapKernels kernels_of(DType compute) {
  MapKernels k;
  if constexpr (has_kernel<Op, Kernel>()) {
    constexpr Domain domain = Kernel == 0 ? domain_of<Op>() : Domain::floating;
    if constexpr (computes_in(domain, f32))
      k.packs = {&map_packs<Op, Kernel, float16>, &map_packs<Op, Kernel, bfloat16>, &map_packs<Op, Kernel, float>};
    if constexpr (computes_in(domain, f32) && Kernel == 0 && takes_two<Op>())
      k.rows = {&map_rows<Op, float16>, &map_rows<Op, bfloat16>, &map_rows<Op, float>};
    visit(compute, [&]<class T>(TypeTag<T>) {
      if constexpr (computes_in(domain, dtype_of<T>())) k.strided = &map_strided<Op, Kernel, T>;
    });
  }
  return k;
}

template <class... Ops> MapKernels find(List<Ops...>, const ElementwiseCall& call) {
  MapKernels found;
  const auto look = [&]<class Op, int Index>() {
    if constexpr (Index % VOLTA_SHARDS == VOLTA_SHARD) {
      constexpr MapKernels (*of_op[])(DType) = {kernels_of<Op, 0>, kernels_of<Op, 1>, kernels_of<Op, 2>,
                                                kernels_of<Op, 3>};
      if (Index == call.op->index) found = of_op[call.kernel](call.compute);
    }
  };
  (look.template operator()<Ops, index_of<Ops>(ElementwiseOps{})>(), ...);
  return found;
}

bool is_condition(const ElementwiseCall& call, int input) {
  const int first = call.kernel > 0 ? 1 : 0;
  return input >= first && input < first + call.op->masks;
}

// The dtype of packs, where operands are contiguous, aligned and, but for truth values, of one dtype.
std::optional<DType> pack_dtype(const ElementwiseCall& call, const Args<max_inputs + 1>& args,
                                const Operands<max_inputs + 1>& all) {
  if (call.compute != f32 || all.rank != 1 || all.size[0] < 4) return {};
  std::optional<DType> dtype;
  for (int k = 0; k <= call.inputs; ++k) {
    const bool truth = k == 0 ? call.op->truth && call.kernel == 0 : is_condition(call, k - 1);
    if (!all.data[k] && truth && !call.in[k - 1].unused) return {};
    if (!all.data[k]) continue;
    const DType t = args[size_t(k)]->dtype;
    if (all.stride[0][k] != size_of(t) || all.low_bits(k, 1) % 16 != 0) return {};
    if (t != (truth ? boolean : dtype.value_or(t))) return {};
    if (!truth) dtype = t;
  }
  return dtype && (*dtype == f32 || is_half(*dtype)) ? dtype : std::nullopt;
}

// Runs it by rows of packs, where both operands are of one dtype and aligned, and step along the rows or stand still.
bool map_by_rows(const Context& c, const ElementwiseCall& call, const MapKernels& kernels,
                 const Operands<max_inputs + 1>& all) {
  if (call.compute != f32 || call.inputs != 2 || !all.data[1] || !all.data[2]) return false;
  const DType t = call.in[0].dtype;
  if (t != call.in[1].dtype || !(t == f32 || is_half(t)) || !kernels.rows[size_t(t)]) return false;
  const DType expected = call.op->truth ? boolean : t;
  const int64_t size = size_of(t), each = 16 / size;
  if (call.out.dtype != expected || all.size[0] % each != 0 || all.stride[0][0] != size_of(expected)) return false;
  RowsCall rows{};
  Operands<3> x;
  for (int k = 0; k < 3; ++k) {
    const bool still = k > 0 && all.stride[0][k] == 0;
    const int64_t bytes = k == 0 ? each * size_of(expected) : 16;
    if (!still && (all.stride[0][k] != size_of(k == 0 ? expected : t) || all.low_bits(k, 1) % uintptr_t(bytes) != 0))
      return false;
    rows.still |= uint32_t(still) << k;
    x.data[k] = all.data[k];
  }
  for (int i = all.rank - 1; i >= 0; --i) {
    int64_t strides[3];
    for (int k = 0; k < 3; ++k) strides[k] = all.stride[i][k] * (i == 0 ? each : 1);
    x.add_axis(i == 0 ? all.size[0] / each : all.size[i], strides);
  }
  x.finish();
  in_chunks(x, [&](const Strided<3>& chunk) {
    rows.operands = chunk;
    launch(c, call.op->name, kernels.rows[size_t(t)], blocks_for(chunk.n, threads * packs_per_thread(2)), threads,
           rows);
  });
  return true;
}

}  // namespace

template <> void map_part<VOLTA_SHARD>(const Context& c, const ElementwiseCall& call) {
  const char* op = call.op->name;
  const MapKernels k = find(ElementwiseOps{}, call);
  const int read = call.op->arity + (call.kernel > 0 ? 2 : 0);
  const Arg none;
  Args<max_inputs + 1> args{&call.out};
  for (int i = 0; i < max_inputs; ++i) {
    const bool given = i < call.inputs && call.in[i].layout && !call.in[i].unused;
    args[size_t(i) + 1] = given ? &call.in[i] : &none;
  }
  const Operands<max_inputs + 1> all(call.out.layout->shape, args);
  const std::optional<DType> dtype = pack_dtype(call, args, all);
  if (dtype && k.packs[size_t(*dtype)]) {
    PackCall p{all.size[0], call.out.data, {}, {}};
    for (int i = 0; i < call.inputs; ++i) {
      p.in[i] = all.data[i + 1];
      if (!p.in[i] && !call.in[i].unused) p.scalar[i] = call.in[i].scalar.as<float>();
    }
    const int64_t each = threads * packs_per_thread(read) * (16 / size_of(*dtype));
    return launch(c, op, k.packs[size_t(*dtype)], blocks_for(p.n, each), threads, p);
  }
  if (call.kernel == 0 && map_by_rows(c, call, k, all)) return;
  require(k.strided, ErrorKind::internal, op, "no GPU kernel computes in ", call.compute);
  StridedCall s{};
  s.out_dtype = call.out.dtype;
  for (int i = 0; i < call.inputs; ++i) {
    const Arg& x = call.in[i];
    s.dtype[i] = x.dtype;
    if (!x.layout && !x.unused)
      s.scalar[i] = pattern_of(x.scalar, is_condition(call, i) ? boolean : call.compute).bits[0];
  }
  in_chunks(all, [&](const Strided<max_inputs + 1>& chunk) {
    s.operands = chunk;
    launch(c, op, k.strided, blocks_for(chunk.n, threads * strided_per_thread(read)), threads, s);
  });
}

}  // namespace volta::cuda

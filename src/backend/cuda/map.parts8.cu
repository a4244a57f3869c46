// The pointwise kernels of an eighth of the ops: each formula and derivative over packs, and over any strides.
#include "backend/cuda/element.h"
#include "backend/cuda/map.h"
#include "ops/point.h"

namespace volta::cuda {
namespace {

template <class Op, int Kernel> inline constexpr int packs_per_thread = operands<Op, Kernel> == 1   ? 4
                                                                        : operands<Op, Kernel> == 2 ? 2
                                                                                                    : 1;
template <class Op, int Kernel> inline constexpr int strided_per_thread = operands<Op, Kernel> <= 2 ? 4 : 2;

// An operand's packs for one thread, kept as they were stored until all loads are on their way.
template <class S, int V, int U> struct Held {
  Pack<S, V> pack[U];
  bool given;

  __device__ void fetch(const void* data, float scalar, const int64_t (&at)[U]) {
    given = data != nullptr;
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (given) pack[u] = static_cast<const Pack<S, V>*>(data)[at[u]];
      else if constexpr (!is_half_type<S>)
        for (int j = 0; j < V; ++j) pack[u].v[j] = S(scalar);
    }
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
#pragma unroll
      for (int u = 0; u < U; ++u) {
        if (u >= count) continue;
        Pack<Out, V> result;
#pragma unroll
        for (int j = 0; j < V; ++j)
          result.v[j] = convert<Out>(
              evaluate<Op, Kernel, float>(Element<Op, Kernel, int(I), float>(held.value(u, j, c.scalar[I]))...));
        static_cast<Pack<Out, V>*>(c.out)[at[u]] = result;
      }
    }(Held<std::conditional_t<std::is_same_v<Element<Op, Kernel, int(I), float>, bool>, uint8_t, S>, V, U>()...);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class Op, int Kernel, class S>
__global__ __launch_bounds__(threads) void map_packs(const __grid_constant__ PackCall c) {
  constexpr int V = 16 / sizeof(S), U = packs_per_thread<Op, Kernel>;
  const int64_t first = int64_t(blockIdx.x) * (threads * U) + threadIdx.x, whole = c.n / V;
  if (first < whole) {
    int64_t at[U];
#pragma unroll
    for (int u = 0; u < U; ++u) at[u] = first + u * threads < whole ? first + u * threads : 0;
    const int64_t count = (whole - first + threads - 1) / threads;
    map_at<Op, Kernel, S, V>(c, at, int(count < U ? count : U));
  }
  const int64_t rest[] = {whole * V + first};  // less than a pack
  if (rest[0] < c.n) map_at<Op, Kernel, S, 1>(c, rest, 1);
}

template <class T, int U> struct Fetched { T v[U]; };

template <class Op, int Kernel, class T>
__global__ __launch_bounds__(threads) void map_strided(const __grid_constant__ StridedCall c) {
  constexpr int U = strided_per_thread<Op, Kernel>, K = operands<Op, Kernel> + 1;
  Share<U> share(c.operands.n);
  if (share.count == 0) return;
  const Places<U, K> places(c.operands, share.index);
  const auto fetch = [&]<class X>(Fetched<X, U>& operand, int k) {
    if (c.operands.data[k + 1]) return load_all(operand.v, c.dtype[k], [&](int u) { return places.p[u][k + 1]; });
#pragma unroll
    for (int u = 0; u < U; ++u) memcpy(&operand.v[u], &c.scalar[k], sizeof(X));
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    [&](auto... fetched) {
      (fetch(fetched, int(I)), ...);
      decltype(evaluate<Op, Kernel, T>(fetched.v[0]...)) result[U];
#pragma unroll
      for (int u = 0; u < U; ++u) result[u] = evaluate<Op, Kernel, T>(fetched.v[u]...);
      store_all(
          result, c.out_dtype, [&](int u) { return places.p[u][0]; }, share.count);
    }(Fetched<Element<Op, Kernel, int(I), T>, U>()...);
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class Op, int Kernel> constexpr MapKernels kernels_of() {
  MapKernels k;
  if constexpr (has_kernel<Op, Kernel>()) {
    constexpr Domain domain = Kernel == 0 ? domain_of<Op>() : Domain::floating;
    k.packs_per_thread = packs_per_thread<Op, Kernel>;
    k.strided_per_thread = strided_per_thread<Op, Kernel>;
    if constexpr (computes_in(domain, f32)) {
      k.packs[0] = &map_packs<Op, Kernel, float16>;
      k.packs[1] = &map_packs<Op, Kernel, bfloat16>;
      k.packs[2] = &map_packs<Op, Kernel, float>;
    }
    const auto add = [&]<class T>(TypeTag<T>) {
      if constexpr (computes_in(domain, dtype_of<T>())) k.strided[size_t(dtype_of<T>())] = &map_strided<Op, Kernel, T>;
    };
    add(TypeTag<float>{}), add(TypeTag<double>{}), add(TypeTag<bool>{});
    add(TypeTag<int8_t>{}), add(TypeTag<int16_t>{}), add(TypeTag<int32_t>{}), add(TypeTag<int64_t>{});
    add(TypeTag<uint8_t>{}), add(TypeTag<uint16_t>{}), add(TypeTag<uint32_t>{}), add(TypeTag<uint64_t>{});
  }
  return k;
}

template <class Op> const MapKernels* of_op(int kernel) {
  static constexpr MapKernels table[] = {kernels_of<Op, 0>(), kernels_of<Op, 1>(), kernels_of<Op, 2>(),
                                         kernels_of<Op, 3>()};
  return &table[kernel];
}

template <class... Ops> const MapKernels* find(List<Ops...>, int op, int kernel) {
  const MapKernels* found = nullptr;
  const auto look = [&]<class Op, int Index>() {
    if constexpr (Index % VOLTA_PARTS == VOLTA_PART)
      if (Index == op) found = of_op<Op>(kernel);
  };
  (look.template operator()<Ops, index_of<Ops>(PointOps{})>(), ...);
  return found;
}

}  // namespace

template <> const MapKernels* map_part<VOLTA_PART>(int op, int kernel) { return find(PointOps{}, op, kernel); }

}  // namespace volta::cuda

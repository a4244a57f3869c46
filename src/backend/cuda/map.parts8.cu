// The pointwise kernels of an eighth of the ops: each formula and derivative over packs, and over any strides.
#include "backend/cuda/element.h"
#include "backend/cuda/map.h"
#include "ops/point.h"

namespace volta::cuda {
namespace {

template <class Op, int Kernel> inline constexpr int first_mask = Kernel > 0 ? 1 : 0;
template <class Op, int Kernel, int I>
inline constexpr bool is_mask = I >= first_mask<Op, Kernel> && I < first_mask<Op, Kernel> + masks_of<Op>();
template <class Op, int Kernel> inline constexpr int packs_per_thread = operands<Op, Kernel> <= 2 ? 2 : 1;

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

template <class Op, int Kernel, class S> __global__ __launch_bounds__(map_threads) void map_packs(const __grid_constant__ PackCall c) {
  constexpr int V = 16 / sizeof(S), U = packs_per_thread<Op, Kernel>;
  [&]<size_t... I>(std::index_sequence<I...>) {
    using R = decltype(evaluate<Op, Kernel, float>(Element<Op, Kernel, int(I), float>()...));
    using Out = std::conditional_t<std::is_same_v<R, bool>, bool, S>;
    const int64_t first = int64_t(blockIdx.x) * (map_threads * U) + threadIdx.x, whole = c.n / V;
    int64_t at[U];
#pragma unroll
    for (int u = 0; u < U; ++u) at[u] = first + u * map_threads < whole ? first + u * map_threads : 0;
    if (first < whole) {
      [&](auto... held) {
        (held.fetch(c.in[I], c.scalar[I], at), ...);
#pragma unroll
        for (int u = 0; u < U; ++u) {
          if (first + u * map_threads >= whole) continue;
          Pack<Out, V> result;
#pragma unroll
          for (int j = 0; j < V; ++j)
            result.v[j] = convert<Out>(evaluate<Op, Kernel, float>(
                Element<Op, Kernel, int(I), float>(held.value(u, j, c.scalar[I]))...));
          static_cast<Pack<Out, V>*>(c.out)[at[u]] = result;
        }
      }(Held<std::conditional_t<is_mask<Op, Kernel, int(I)>, uint8_t, S>, V, U>()...);
    }
    // The rest of less than a pack.
    const int64_t i = whole * V + first;
    if (i < c.n) {
      const auto single = [&]<class T>(TypeTag<T>, const void* data, float scalar) {
        return data ? read<T, std::conditional_t<std::is_same_v<T, bool>, bool, S>>(static_cast<const Stored<std::conditional_t<std::is_same_v<T, bool>, bool, S>>*>(data) + i) : T(scalar);
      };
      static_cast<Out*>(c.out)[i] = convert<Out>(
          evaluate<Op, Kernel, float>(single(TypeTag<Element<Op, Kernel, int(I), float>>{}, c.in[I], c.scalar[I])...));
    }
  }(std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class T> __device__ T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) return __uint_as_float(uint32_t(bits));
  else if constexpr (std::is_same_v<T, double>) return __longlong_as_double(int64_t(bits));
  else return T(bits);
}

// U elements of one operand; `offset` holds the byte offsets of all operands.
template <class T, int U> struct Fetched {
  T v[U];
  __device__ void fetch(const StridedCall& c, int k, const int64_t (&offset)[U][max_inputs + 1]) {
    const char* data = static_cast<const char*>(c.in[k]);
    if (!data) {
#pragma unroll
      for (int u = 0; u < U; ++u) v[u] = from_bits<T>(c.scalar[k]);
    } else if (c.dtype[k] == dtype_of<T>()) {
#pragma unroll
      for (int u = 0; u < U; ++u) v[u] = read<T, T>(data + offset[u][k + 1]);
    } else {
#pragma unroll
      for (int u = 0; u < U; ++u) v[u] = load<T>(data + offset[u][k + 1], c.dtype[k]);
    }
  }
};

template <class Op, int Kernel, class T> __global__ __launch_bounds__(map_threads) void map_strided(const __grid_constant__ StridedCall c) {
  constexpr int U = strided_per_thread<Op, Kernel>();
  [&]<size_t... I>(std::index_sequence<I...>) {
    const uint32_t first = blockIdx.x * (map_threads * U) + threadIdx.x;
    int64_t offset[U][max_inputs + 1];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const uint32_t i = first + u * map_threads;
      c.geometry.offsets(i < c.geometry.n ? i : c.geometry.n - 1, offset[u]);
    }
    [&](auto... fetched) {
      (fetched.fetch(c, int(I), offset), ...);
#pragma unroll
      for (int u = 0; u < U; ++u)
        if (first + u * map_threads < c.geometry.n)
          store(static_cast<char*>(c.out) + offset[u][0], c.out_dtype, evaluate<Op, Kernel, T>(fetched.v[u]...));
    }(Fetched<Element<Op, Kernel, int(I), T>, U>()...);
  }(std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class Op, int Kernel> constexpr MapKernels kernels_of() {
  MapKernels k;
  if constexpr (has_kernel<Op, Kernel>()) {
    constexpr Domain domain = Kernel == 0 ? domain_of<Op>() : Domain::floating;
    k.packs_per_thread = packs_per_thread<Op, Kernel>;
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
  static constexpr MapKernels table[] = {kernels_of<Op, 0>(), kernels_of<Op, 1>(), kernels_of<Op, 2>(), kernels_of<Op, 3>()};
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

template <int Part> const MapKernels* map_part(int op, int kernel);
template <> const MapKernels* map_part<VOLTA_PART>(int op, int kernel) { return find(PointOps{}, op, kernel); }

}  // namespace volta::cuda

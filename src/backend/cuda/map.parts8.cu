// The pointwise kernels of an eighth of the ops: each formula and derivative over packs, and over any strides.
#include "backend/cuda/element.h"
#include "backend/cuda/map.h"
#include "ops/point.h"

namespace volta::cuda {
namespace {

template <class Op, int Kernel> inline constexpr int first_mask = Kernel > 0 ? 1 : 0;
template <class Op, int Kernel, int I> inline constexpr bool is_mask = I >= first_mask<Op, Kernel>&& I <
                                                                       first_mask<Op, Kernel> + masks_of<Op>();
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

template <class S> __device__ float single(TypeTag<float>, const void* data, int64_t i, float scalar) {
  return data ? read<float, S>(static_cast<const S*>(data) + i) : scalar;
}
template <class S> __device__ bool single(TypeTag<bool>, const void* data, int64_t i, float scalar) {
  return data ? static_cast<const uint8_t*>(data)[i] != 0 : scalar != 0;
}

template <class Op, int Kernel, class S>
__global__ __launch_bounds__(map_threads) void map_packs(const __grid_constant__ PackCall c) {
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
            result.v[j] = convert<Out>(
                evaluate<Op, Kernel, float>(Element<Op, Kernel, int(I), float>(held.value(u, j, c.scalar[I]))...));
          static_cast<Pack<Out, V>*>(c.out)[at[u]] = result;
        }
      }(Held<std::conditional_t<is_mask<Op, Kernel, int(I)>, uint8_t, S>, V, U>()...);
    }
    if (const int64_t i = whole * V + first; i < c.n)  // the rest of less than a pack
      static_cast<Out*>(c.out)[i] = convert<Out>(evaluate<Op, Kernel, float>(
          single<S>(TypeTag<Element<Op, Kernel, int(I), float>>{}, c.in[I], i, c.scalar[I])...));
  }
  (std::make_index_sequence<size_t(operands<Op, Kernel>)>());
}

template <class T> __device__ T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) return __uint_as_float(uint32_t(bits));
  else if constexpr (std::is_same_v<T, double>) return __longlong_as_double(int64_t(bits));
  else return T(bits);
}

// U elements of one operand. The dtype is chosen once, outside the loops, so that the loads are in flight together.
template <class T, int U> struct Fetched {
  T v[U];
  template <class From> __device__ void fetch_as(const char* const (&p)[U]) {
#pragma unroll
    for (int u = 0; u < U; ++u) v[u] = read<T, From>(p[u]);
  }
  __device__ void fetch(const char* const (&p)[U], uint64_t scalar, DType dtype, bool given) {
    if (!given) {
#pragma unroll
      for (int u = 0; u < U; ++u) v[u] = from_bits<T>(scalar);
      return;
    }
    if (dtype == dtype_of<T>()) return fetch_as<T>(p);
    if constexpr (std::is_same_v<T, float>) {
      if (dtype == DType::f16) return fetch_as<float16>(p);
      if (dtype == DType::bf16) return fetch_as<bfloat16>(p);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) v[u] = load_other<T>(p[u], dtype);
  }
};

template <class To, class R, int U> __device__ void put(char* const (&p)[U], const R (&r)[U], int count) {
#pragma unroll
  for (int u = 0; u < U; ++u)
    if (u < count) *reinterpret_cast<To*>(p[u]) = convert<To>(r[u]);
}

template <int U, class R> __device__ void store_all(char* const (&p)[U], const R (&r)[U], int count, DType dtype) {
  if (dtype == dtype_of<R>()) return put<R>(p, r, count);
  if constexpr (std::is_same_v<R, float>) {
    if (dtype == DType::f16) return put<float16>(p, r, count);
    if (dtype == DType::bf16) return put<bfloat16>(p, r, count);
  }
#pragma unroll
  for (int u = 0; u < U; ++u)
    if (u < count) store_other(p[u], dtype, r[u]);
}

template <class Op, int Kernel, class T>
__global__ __launch_bounds__(map_threads) void map_strided(const __grid_constant__ StridedCall c) {
  constexpr int U = strided_per_thread<Op, Kernel>, K = operands<Op, Kernel> + 1;
  const uint32_t first = blockIdx.x * (map_threads * U) + threadIdx.x;
  if (first >= c.geometry.n) return;
  const int count = int((c.geometry.n - first + map_threads - 1) / map_threads);
  uint32_t index[U];
  int64_t offset[U][K];
#pragma unroll
  for (int u = 0; u < U; ++u) index[u] = u < count ? first + u * map_threads : first;
  offsets(c.geometry, index, offset);

  const auto evaluate_all = [&]<size_t... I>(std::index_sequence<I...>, auto... fetched) {
    const auto fetch = [&](auto& operand, int k) {
      const char* p[U];
#pragma unroll
      for (int u = 0; u < U; ++u) p[u] = static_cast<const char*>(c.in[k]) + offset[u][k + 1];
      operand.fetch(p, c.scalar[k], c.dtype[k], c.in[k] != nullptr);
    };
    (fetch(fetched, int(I)), ...);
    decltype(evaluate<Op, Kernel, T>(fetched.v[0]...)) result[U];
    char* p[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      result[u] = evaluate<Op, Kernel, T>(fetched.v[u]...);
      p[u] = static_cast<char*>(c.out) + offset[u][0];
    }
    store_all(p, result, count, c.out_dtype);
  };
  [&]<size_t... I>(std::index_sequence<I...> all) {
    evaluate_all(all, Fetched<Element<Op, Kernel, int(I), T>, U>()...);
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

template <int Part> const MapKernels* map_part(int op, int kernel);
template <> const MapKernels* map_part<VOLTA_PART>(int op, int kernel) { return find(PointOps{}, op, kernel); }

}  // namespace volta::cuda

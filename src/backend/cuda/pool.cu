// Pooling on the GPU, one thread for each element that is written, or for a pack of neighbouring channels: outputs look at the
// window they were given, and, backward, inputs at the outputs whose windows they lie in. So nothing is added by several
// threads, and no table is uploaded.
#include "backend/cuda/element.h"
#include "backend/cuda/planes.h"

namespace volta::cuda {
namespace {

struct Axis {
  int in, out;
  bool window;  // else adaptive
  TapRule::Divisor divisor;
  int kernel, stride, padding, dilation;
  double constant;
  Divisor by_stride;

  struct Places {
    int first, count, step;
  };
  // The inputs that output j sees.
  __device__ Places inputs(int j) const {
    if (!window) {
      const int first = int(int64_t(j) * in / out);
      return {first, int((int64_t(j + 1) * in + out - 1) / out) - first, 1};
    }
    const int start = j * stride - padding, skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int reach = in - 1 - start, end = (dilation == 1 ? reach : reach / dilation) + 1;
    return {start + skipped * dilation, (end < kernel ? end : kernel) - skipped, dilation};
  }
  // The outputs that may see input i; `sees` tells which of them do.
  __device__ Places outputs(int i) const {
    if (!window) {
      const int first = int(int64_t(i) * out / in);
      return {first, int((int64_t(i + 1) * out + in - 1) / in) - first, 1};
    }
    const int last = i + padding, low = last - (kernel - 1) * dilation;
    const int first = low <= 0 ? 0 : int(by_stride.divide(uint32_t(low + stride - 1)));
    const int end = int(by_stride.divide(uint32_t(last))) + 1;
    return {first, (end < out ? end : out) - first, 1};
  }
  __device__ bool sees(int j, int i) const {
    return !window || dilation == 1 || (i + padding - j * stride) % dilation == 0;
  }
  __device__ double divided_by(int j) const {
    if (divisor == TapRule::Divisor::none) return 1;
    if (divisor == TapRule::Divisor::constant) return constant;
    if (!window) return inputs(j).count;
    const int start = j * stride - padding, end = start + kernel, room = in + padding;
    const int stop = end < room ? end : room;
    if (divisor == TapRule::Divisor::padded) return stop - start;
    return (stop < in ? stop : in) - (start > 0 ? start : 0);
  }
};

struct PoolArgs : Planes {
  Axis axis[3];
  int64_t* indices;
};

// Data as packs of V channels; `place` counts those of all planes.
template <class E, int V, bool Channels>
__device__ inline Pack<E, V>& pack(const void* data, const PoolArgs& a, int64_t place, int64_t channel) {
  const int64_t at = Channels ? place * a.channels + channel : place;
  return *reinterpret_cast<Pack<E, V>*>(static_cast<E*>(const_cast<void*>(data)) + at);
}

// Calls f(offset) for all combinations of three lists of places, the last fastest.
template <class F> __device__ inline void for_places(const Axis::Places (&p)[3], int64_t rows, int64_t columns, F f) {
  for (int i = 0, x = p[0].first; i < p[0].count; ++i, x += p[0].step)
    for (int j = 0, y = p[1].first; j < p[1].count; ++j, y += p[1].step)
      for (int k = 0, z = p[2].first; k < p[2].count; ++k, z += p[2].step) f((x * rows + y) * columns + z);
}

template <class T, class S, int V, bool Channels, bool Max>
__global__ __launch_bounds__(threads) void pool_forward(const __grid_constant__ PoolArgs a) {
  const Mine<V, Channels> me(a);
  if (!me.valid) return;
  const Axis::Places p[] = {a.axis[0].inputs(me.at[0]), a.axis[1].inputs(me.at[1]), a.axis[2].inputs(me.at[2])};
  const int64_t out =
      me.plane * a.out_plane + (int64_t(me.at[0]) * a.axis[1].out + me.at[1]) * a.axis[2].out + me.at[2];
  T value[V] = {};
  int best[V];
  unroll<V>([&](int j) { best[j] = -1; });
  for_places(p, a.axis[1].in, a.axis[2].in, [&](int64_t i) {
    const auto seen = pack<S, V, Channels>(a.from, a, me.plane * a.in_plane + i, me.channel);
    unroll<V>([&](int j) {
      const T x = convert<T>(seen.v[j]);
      if constexpr (!Max) value[j] += x;
      else if (best[j] < 0 || (value[j] == value[j] && (x > value[j] || x != x)))
        value[j] = x, best[j] = int(i);  // the first NaN, else the first of the largest
    });
  });
  if constexpr (!Max) {
    const T by = T(a.axis[0].divided_by(me.at[0]) * a.axis[1].divided_by(me.at[1]) * a.axis[2].divided_by(me.at[2]));
    unroll<V>([&](int j) { value[j] /= by; });
  } else if (a.indices) {
    auto& to = pack<int64_t, V, Channels>(a.indices, a, out, me.channel);
    unroll<V>([&](int j) { to.v[j] = best[j]; });
  }
  Pack<S, V> result;
  unroll<V>([&](int j) { result.v[j] = convert<S>(value[j]); });
  pack<S, V, Channels>(a.to, a, out, me.channel) = result;
}

template <class T, class S, int V, bool Channels, bool Max>
__global__ __launch_bounds__(threads) void pool_backward(const __grid_constant__ PoolArgs a) {
  const Mine<V, Channels> me(a);
  if (!me.valid) return;
  const int64_t mine = (int64_t(me.at[0]) * a.axis[1].in + me.at[1]) * a.axis[2].in + me.at[2];
  T sum[V] = {};
  Axis::Places p[3];
  for (int i = 0; i < 3; ++i) p[i] = a.axis[i].outputs(me.at[i]);
  for (int x = p[0].first; x < p[0].first + p[0].count; ++x)
    for (int y = p[1].first; y < p[1].first + p[1].count; ++y)
      for (int z = p[2].first; z < p[2].first + p[2].count; ++z) {
        const int64_t from = me.plane * a.out_plane + (int64_t(x) * a.axis[1].out + y) * a.axis[2].out + z;
        const auto& g = pack<S, V, Channels>(a.from, a, from, me.channel);
        if constexpr (Max) {
          const auto indices = pack<int64_t, V, Channels>(a.indices, a, from, me.channel);
          bool any = false;  // few are: what is not needed is not loaded
          unroll<V>([&](int j) { any |= indices.v[j] == mine; });
          if (!any) continue;
          const auto held = g;
          unroll<V>([&](int j) {
            if (indices.v[j] == mine) sum[j] += convert<T>(held.v[j]);
          });
        } else if (a.axis[0].sees(x, me.at[0]) && a.axis[1].sees(y, me.at[1]) && a.axis[2].sees(z, me.at[2])) {
          const T by = T(a.axis[0].divided_by(x) * a.axis[1].divided_by(y) * a.axis[2].divided_by(z));
          const auto held = g;
          unroll<V>([&](int j) { sum[j] += convert<T>(held.v[j]) / by; });
        }
      }
  Pack<S, V> result;
  unroll<V>([&](int j) { result.v[j] = convert<S>(sum[j]); });
  pack<S, V, Channels>(a.to, a, me.plane * a.in_plane + mine, me.channel) = result;
}

using Kernel = void (*)(PoolArgs);

template <class T, class S, int V, bool Channels> Kernel kernel_of(Pool pool, bool back) {
  if (pool == Pool::max) return back ? &pool_backward<T, S, V, Channels, true> : &pool_forward<T, S, V, Channels, true>;
  return back ? &pool_backward<T, S, V, Channels, false> : &pool_forward<T, S, V, Channels, false>;
}

// With packs of 16 bytes, or of one element.
template <class T, class S, class Call> Kernel kernel_of(const Call& call, int64_t& pack_size) {
  const auto [from, to, back] = data_of(call);
  constexpr int V = 16 / int(sizeof(S));
  pack_size = call.channels % V == 0 ? V : 1;
  const void* const touched[] = {from.data, to.data, call.indices.data};
  for (const void* p : touched)
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0) pack_size = 1;
  if (pack_size == V) return kernel_of<T, S, V, true>(call.pool, back);
  return call.channels > 1 ? kernel_of<T, S, 1, true>(call.pool, back) : kernel_of<T, S, 1, false>(call.pool, back);
}

}  // namespace

bool Context::offers(const PoolCall& call) const {
  if (!counts_planes(call)) return false;
  for (const PoolAxis& a : call.axis) {
    if (a.rule.kind == TapRule::Kind::table) return false;
    for (const int64_t n : {a.rule.kernel, a.rule.stride, a.rule.padding, a.rule.dilation})
      if (n >= chunk_limit / 2) return false;
    // Numbers of places are counted in 32 bits.
    if (a.out * a.rule.stride >= chunk_limit || (a.rule.kernel - 1) * a.rule.dilation >= chunk_limit) return false;
  }
  return true;
}

template <class Call> void Context::run_pool(const Call& call) {
  if (call.axis[2].rule.kind == TapRule::Kind::resampling) return resample(call);
  const OnDevice current(device);
  PoolArgs a{};
  for (int i = 0; i < 3; ++i) {
    const PoolAxis& from = call.axis[i];
    const TapRule& r = from.rule;
    a.axis[i] = {int(from.in),
                 int(from.out),
                 r.kind == TapRule::Kind::window,
                 r.divisor,
                 int(r.kernel),
                 int(r.stride),
                 int(r.padding),
                 int(r.dilation),
                 r.constant,
                 Divisor(uint32_t(r.stride))};
  }
  const DType stored = data_of(call).from.dtype;
  int64_t pack_size = 1;
  const Kernel kernel = stored == f64   ? kernel_of<double, double>(call, pack_size)
                        : stored == f32 ? kernel_of<float, float>(call, pack_size)
                        : stored == f16 ? kernel_of<float, float16>(call, pack_size)
                                        : kernel_of<float, bfloat16>(call, pack_size);
  for_planes(call, pack_size, [&](const Planes& planes, int64_t first) {
    static_cast<Planes&>(a) = planes;
    if (call.indices.data) a.indices = static_cast<int64_t*>(call.indices.data) + first * a.out_plane * a.channels;
    launch(*this, "pool", kernel, blocks_for(a.count, threads), threads, a);
  });
}
void Context::pool(const PoolCall& call) { run_pool(call); }
void Context::pool_backward(const PoolBackwardCall& call) { run_pool(call); }

}  // namespace volta::cuda

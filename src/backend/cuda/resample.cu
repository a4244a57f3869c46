// Interpolation on the GPU, one thread for each element that is written: an output sums the inputs around its place, and,
// backward, an input the outputs that it is a part of. So nothing is added by several threads, and no table is uploaded.
#include "backend/cuda/element.h"
#include "backend/cuda/planes.h"

namespace volta::cuda {
namespace {

using Support = Resampling::Support;

struct ResampleArgs : Planes {
  Resampling axis[3];
};

__device__ inline int64_t inside(const Resampling& axis, int64_t i) {
  return i < 0 ? 0 : i < axis.in ? i : axis.in - 1;
}

// Calls f(input, weight) for what output j sees of an axis; Taps: how many, if that is known.
template <class T, int Taps, class F> __device__ inline void for_inputs(const Resampling& axis, int j, F f) {
  const Support s = axis.support(j);
  const T total = axis.total<T>(s);
  const int64_t taps = Taps ? Taps : s.count;
#pragma unroll
  for (int64_t k = 0; k < taps; ++k) {
    const T weight = axis.weight<T>(s, k);
    if (weight != T(0)) f(inside(axis, s.first + k), weight / total);
  }
}

template <class T, class S, int Taps>
__global__ __launch_bounds__(threads) void resample_forward(const __grid_constant__ ResampleArgs a) {
  const Mine<> me(a);
  if (!me.valid) return;
  const S* in = static_cast<const S*>(a.from) + me.plane * a.in_plane * a.channels + me.channel;
  T sum = T(0);
  for_inputs<T, 0>(a.axis[0], me.at[0], [&](int64_t z, T by_z) {  // two axes unrolled are enough
    for_inputs<T, Taps>(a.axis[1], me.at[1], [&](int64_t y, T by_y) {
      const S* row = in + (z * a.axis[1].in + y) * a.axis[2].in * a.channels;
      T part = T(0);
      for_inputs<T, Taps>(a.axis[2], me.at[2],
                          [&](int64_t x, T by_x) { part += by_x * convert<T>(row[x * a.channels]); });
      sum += by_z * by_y * part;
    });
  });
  const int64_t out = (int64_t(me.at[0]) * a.axis[1].out + me.at[1]) * a.axis[2].out + me.at[2];
  static_cast<S*>(a.to)[(me.plane * a.out_plane + out) * a.channels + me.channel] = convert<S>(sum);
}

// The first output that input i may be a part of: the last inputs that outputs see never move to the left.
__device__ inline int64_t first_output(const Resampling& axis, int i) {
  const auto reaches = [&](int64_t j) {
    const Support s = axis.support(j);
    return inside(axis, s.first + s.count - 1) >= i;
  };
  const double guess = axis.step > 0 ? axis.output(i - axis.radius()) : 0;
  int64_t j = guess <= 0 ? 0 : guess < double(axis.out) ? int64_t(guess) : axis.out - 1;
  while (j > 0 && reaches(j - 1)) --j;
  while (j < axis.out && !reaches(j)) ++j;
  return j;
}

// The weight of input i in an output. An end of the axis also stands for what lies beyond it.
template <class T> __device__ inline T weight_of(const Resampling& axis, const Support& s, int i) {
  const int64_t first = i == 0 || i < s.first ? 0 : i - s.first;
  const int64_t last = i == axis.in - 1 || i - s.first >= s.count ? s.count - 1 : i - s.first;
  T sum = T(0);
  for (int64_t k = first; k <= last; ++k) sum += axis.weight<T>(s, k);
  return sum;
}

// Calls f(output, weight) for the outputs that input i is a part of, from the first of them on.
template <class T, class F> __device__ inline void for_outputs(const Resampling& axis, int i, int64_t first, F f) {
  for (int64_t j = first; j < axis.out; ++j) {
    const Support s = axis.support(j);
    if (inside(axis, s.first) > i) return;
    const T weight = weight_of<T>(axis, s, i);
    if (weight != T(0)) f(j, weight / axis.total<T>(s));
  }
}

template <class T, class S>
__global__ __launch_bounds__(threads) void resample_backward(const __grid_constant__ ResampleArgs a) {
  const Mine<> me(a);
  if (!me.valid) return;
  const S* g = static_cast<const S*>(a.from) + me.plane * a.out_plane * a.channels + me.channel;
  int64_t first[3];
  for (int i = 0; i < 3; ++i) first[i] = first_output(a.axis[i], me.at[i]);
  T sum = T(0);
  for_outputs<T>(a.axis[0], me.at[0], first[0], [&](int64_t z, T by_z) {
    for_outputs<T>(a.axis[1], me.at[1], first[1], [&](int64_t y, T by_y) {
      const S* row = g + (z * a.axis[1].out + y) * a.axis[2].out * a.channels;
      T part = T(0);
      for_outputs<T>(a.axis[2], me.at[2], first[2],
                     [&](int64_t x, T by_x) { part += by_x * convert<T>(row[x * a.channels]); });
      sum += by_z * by_y * part;
    });
  });
  const int64_t in = (int64_t(me.at[0]) * a.axis[1].in + me.at[1]) * a.axis[2].in + me.at[2];
  static_cast<S*>(a.to)[(me.plane * a.in_plane + in) * a.channels + me.channel] = convert<S>(sum);
}

template <class T, class S> auto kernel_of(const Resampling& axis, bool back) {
  if (back) return &resample_backward<T, S>;
  if (axis.antialias) return &resample_forward<T, S, 0>;
  switch (axis.filter) {
    case Resampling::Filter::cubic: return &resample_forward<T, S, 4>;
    case Resampling::Filter::linear: return &resample_forward<T, S, 2>;
    default: return &resample_forward<T, S, 1>;
  }
}

}  // namespace

template <class Call> void Context::resample(const Call& call) {
  const OnDevice current(device);
  const auto [from, to, back] = data_of(call);
  const Resampling& last = call.axis[2].rule.resampling;
  ResampleArgs a{};
  for (int i = 0; i < 3; ++i) {
    a.axis[i] = call.axis[i].rule.resampling;
    a.axis[i].filter = last.filter;  // of axes that a call does not have, too
  }
  const DType stored = from.dtype;
  const auto kernel = stored == f64   ? kernel_of<double, double>(last, back)
                      : stored == f32 ? kernel_of<float, float>(last, back)
                      : stored == f16 ? kernel_of<float, float16>(last, back)
                                      : kernel_of<float, bfloat16>(last, back);
  for_planes(call, 1, [&](const Planes& planes, int64_t) {
    static_cast<Planes&>(a) = planes;
    launch(*this, "interpolate", kernel, blocks_for(a.count, threads), threads, a);
  });
}
template void Context::resample(const PoolCall&);
template void Context::resample(const PoolBackwardCall&);

}  // namespace volta::cuda

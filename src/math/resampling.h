// Resampling along an axis, once for the host's tables and for kernels that compute them: the inputs that an output is made
// of, and their weights.
#pragma once
#include <cstdint>

#include <volta/scalar.h>

#include "math/inner.h"

namespace volta {

struct Resampling {
  enum class Filter : uint8_t { nearest, linear, cubic };
  // Inputs [first, first + count), weighed by their distance from `place`. Those outside the axis stand for its ends.
  struct Support {
    int64_t first, count;
    double place;
  };

  Filter filter = Filter::nearest;
  bool align_corners = false, antialias = false;
  float shift = 0;  // of nearest
  int64_t in = 1, out = 1;
  double step = 1;  // inputs from one output to the next

  // Where the axis shrinks, antialiasing widens the filter, so that every input counts.
  VOLTA_HD double scale() const { return antialias && step > 1 ? step : 1; }
  VOLTA_HD double radius() const {
    return scale() * (filter == Filter::cubic ? 2 : filter == Filter::linear ? 1 : 0.5);
  }
  VOLTA_HD int64_t most_taps() const {
    if (!antialias) return filter == Filter::cubic ? 4 : filter == Filter::linear ? 2 : 1;
    return int64_t(scalar::min(double(in), scalar::ceil(2 * radius()) + 1));
  }

  // Where output j lies among the inputs; and which output lies at a place, for a step that is not 0.
  VOLTA_HD double place(double j) const { return corners() ? step * j : step * (j + 0.5) - 0.5; }
  VOLTA_HD double output(double at) const { return corners() ? at / step : (at + 0.5) / step - 0.5; }

  VOLTA_HD Support support(int64_t j) const {
    if (filter == Filter::nearest) {  // in f32, as PyTorch places them for every dtype
      const auto nearest = int64_t(scalar::floor((float(j) + shift) * float(step)));
      return {nearest < in ? nearest : in - 1, 1, 0};
    }
    const double at = place(double(j)), last = double(in - 1);
    if (antialias) {
      const auto first = int64_t(inside(at - radius() + 1, last)), end = int64_t(inside(at + radius() + 1, last + 1));
      return {first, end > first ? end - first : 1, at};
    }
    if (filter == Filter::linear) return {int64_t(inside(at, last)), 2, inside(at, last)};
    return {int64_t(scalar::floor(at)) - 1, 4, at};
  }
  // The weight of input first + k; those of an output add up to `total`.
  template <class T> VOLTA_HD T weight(const Support& s, int64_t k) const {
    if (filter == Filter::nearest) return T(1);
    const T distance = scalar::abs(T(double(s.first) - s.place) + T(k)),
            x = antialias ? distance / T(scale()) : distance;
    return filter == Filter::linear ? (x < 1 ? 1 - x : T(0)) : cubic(x, antialias ? T(-0.5) : T(-0.75));
  }
  template <class T> VOLTA_HD T total(const Support& s) const {
    if (!antialias) return T(1);
    T sum = T(0);
    for (int64_t k = 0; k < s.count; ++k) sum += weight<T>(s, k);
    return sum;
  }

 private:
  VOLTA_HD bool corners() const { return align_corners && !antialias; }
  VOLTA_HD static double inside(double x, double last) { return scalar::max(0.0, scalar::min(x, last)); }
  // Cubic convolution (Keys), in factors that do not cancel. PIL, and so antialiasing, takes -0.5 for a; OpenCV, and so
  // plain bicubic, -0.75.
  template <class T> VOLTA_HD static T cubic(T x, T a) {
    if (x < 1) return (x - 1) * (((a + 2) * x - 1) * x - 1);
    return x < 2 ? a * (x - 1) * (x - 2) * (x - 2) : T(0);
  }
};

}  // namespace volta

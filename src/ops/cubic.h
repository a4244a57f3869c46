// The cubic convolution kernel of bicubic interpolation.
#pragma once
#include <array>

namespace volta {

// Weights of the four neighbours of a place that lies t in [0, 1) behind the second; T may be a number or a tensor.
template <class T> std::array<T, 4> cubic_weights(const T& t) {
  constexpr double a = -0.75;
  const auto near = [=](const T& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };       // |d| <= 1
  const auto far = [=](const T& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };  // 1 < |d| < 2
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

}  // namespace volta

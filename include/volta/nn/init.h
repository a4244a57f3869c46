// Initialisation in place: nn::init::kaiming_normal_(layer.weight). Each fills the tensor and gives back its handle.
#pragma once
#include <string>

#include <volta/tensor.h>

namespace volta::nn::init {

Tensor uniform_(const Tensor& x, double low = 0, double high = 1,
                Generator* generator = nullptr);  // uniform_(w, -1, 1)
Tensor normal_(const Tensor& x, double mean = 0, double std = 1,
               Generator* generator = nullptr);  // normal_(w, 0, 0.02)
Tensor trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double low = -2, double high = 2,
                     Generator* generator = nullptr);  // trunc_normal_(w, 0, 0.02, -0.04, 0.04)
Tensor constant_(const Tensor& x, double value);       // constant_(w, 0.5)
Tensor zeros_(const Tensor& x);                        // zeros_(bias)
Tensor ones_(const Tensor& x);                         // ones_(scale)
Tensor eye_(const Tensor& x);                          // a matrix: eye_(w)
Tensor dirac_(const Tensor& x, int64_t groups = 1);    // a convolution that copies its channels: dirac_(conv.weight)
// Rows (or columns, if fewer) orthonormal, times gain; axes after the first count as one: orthogonal_(w).
Tensor orthogonal_(const Tensor& x, double gain = 1, Generator* generator = nullptr);
// In each column this part of the elements is 0, the others are normal: sparse_(w, 0.9).
Tensor sparse_(const Tensor& x, double sparsity, double std = 0.01, Generator* generator = nullptr);

// Inputs that reach one output and outputs one input reaches, of a weight [out, in, kernel...]: calculate_fan(w).in
struct Fan {
  int64_t in, out;
};
Fan calculate_fan(const Tensor& weight);
// What keeps the variance through a nonlinearity; `parameter` is leaky_relu's slope: calculate_gain("relu").
enum class Gain {
  linear,
  conv1d,
  conv2d,
  conv3d,
  conv_transpose1d,
  conv_transpose2d,
  conv_transpose3d,
  sigmoid,
  tanh,
  relu,
  leaky_relu,
  selu
};
constexpr std::array<std::string_view, 12> choice_names(Gain) {
  return {"linear",           "conv1d",  "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
          "conv_transpose3d", "sigmoid", "tanh",   "relu",   "leaky_relu",       "selu"};
}
[[nodiscard]] double calculate_gain(const Choice<Gain>& nonlinearity, double parameter = 0.01);

// Variance 2 gain^2 / (fan.in + fan.out): xavier_uniform_(w, calculate_gain("tanh")).
Tensor xavier_uniform_(const Tensor& x, double gain = 1, Generator* generator = nullptr);
Tensor xavier_normal_(const Tensor& x, double gain = 1, Generator* generator = nullptr);

enum class FanMode { fan_in, fan_out };
constexpr std::array<std::string_view, 2> choice_names(FanMode) { return {"fan_in", "fan_out"}; }
struct KaimingOptions {
  double a = 0;  // the slope below 0, of leaky_relu
  Choice<FanMode> mode = FanMode::fan_in;
  Choice<Gain> nonlinearity = Gain::leaky_relu;
  Generator* generator = nullptr;
};
// Variance gain^2 / fan: kaiming_normal_(conv.weight, {.mode = "fan_out", .nonlinearity = "relu"}).
Tensor kaiming_uniform_(const Tensor& x, const KaimingOptions& options = {});
Tensor kaiming_normal_(const Tensor& x, const KaimingOptions& options = {});

}  // namespace volta::nn::init

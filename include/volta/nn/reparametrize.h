// Weights computed from other parameters before each call: weight_norm and spectral_norm around any layer that has
// with_weight(x, w).
#pragma once
#include <utility>

#include <volta/nn/layer.h>
#include <volta/nn/reflect.h>

namespace volta::nn {

Tensor weight_norm_of(const Tensor& v, int64_t dim);  // |v| over all axes but one, those kept with size 1
struct SpectralVectors {
  Tensor u, v;
};
SpectralVectors spectral_start(const Tensor& weight, int64_t dim);
Tensor spectral_weight(const Tensor& weight, const SpectralVectors& vectors, int64_t dim, int64_t iterations,
                       double eps);

// w = g v / |v|, with g per index of one axis. State keys weight_g, weight_v and the layer's others.
template <class L> class WeightNorm : public Layer {
 public:
  explicit WeightNorm(L l, int64_t axis = 0)
      : Layer("WeightNorm"),
        weight_g(weight_norm_of(l.weight, axis).detach()),
        weight_v(std::move(l.weight)),
        layer(std::move(l)),
        dim(axis) {}
  Tensor weight() const { return weight_v * (weight_g / weight_norm_of(weight_v, dim)); }
  Tensor operator()(const Tensor& x) const {
    return call(x, [&](const Tensor& in) { return layer.with_weight(in, weight()); });
  }
  void fields(Fields& f) override { f("weight_g", weight_g), f("weight_v", weight_v), f("", layer); }
  Parameter weight_g, weight_v;
  L layer;
  int64_t dim;
};
// auto fc = nn::weight_norm(nn::Linear(4, 8)); fc(x)
template <class L> WeightNorm<L> weight_norm(L layer, int64_t dim = 0) { return WeightNorm<L>(std::move(layer), dim); }

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;
  double eps = 1e-12;
  int64_t dim = 0;
};
// w = v / (largest singular value), followed by power iteration in training mode. State keys weight_orig, weight_u,
// weight_v and the layer's others.
template <class L> class SpectralNorm : public Layer {
 public:
  explicit SpectralNorm(L l, const SpectralNormOptions& o = {})
      : Layer("SpectralNorm"), weight_orig(std::move(l.weight)), layer(std::move(l)), options(o) {
    SpectralVectors start = spectral_start(weight_orig, o.dim);
    weight_u = start.u, weight_v = start.v;
    spectral_weight(weight_orig, {weight_u, weight_v}, o.dim, 15, o.eps);
  }
  Tensor weight() const {
    return spectral_weight(weight_orig, {weight_u, weight_v}, options.dim, training ? options.n_power_iterations : 0,
                           options.eps);
  }
  Tensor operator()(const Tensor& x) const {
    return call(x, [&](const Tensor& in) { return layer.with_weight(in, weight()); });
  }
  void fields(Fields& f) override {
    f("weight_orig", weight_orig), f("weight_u", weight_u), f("weight_v", weight_v), f("", layer);
  }
  Parameter weight_orig;
  Buffer weight_u, weight_v;
  L layer;
  SpectralNormOptions options;
};
// auto fc = nn::spectral_norm(nn::Linear(4, 8)); fc(x)
template <class L> SpectralNorm<L> spectral_norm(L layer, const SpectralNormOptions& options = {}) {
  return SpectralNorm<L>(std::move(layer), options);
}

}  // namespace volta::nn

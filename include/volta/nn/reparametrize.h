// Weights computed from other parameters before each call: weight_norm and spectral_norm around any layer.
#pragma once
#include <string>
#include <utility>

#include <volta/nn/conv.h>
#include <volta/nn/layer.h>
#include <volta/nn/reflect.h>

namespace volta::nn {

// |v| over all axes but one, those kept with size 1; as in PyTorch, -1 is no axis: one number for the whole.
[[nodiscard]] Tensor weight_norm_of(const Tensor& v, int64_t dim);
struct SpectralVectors {
  Tensor u, v;
};
SpectralVectors spectral_start(const Tensor& weight, int64_t dim);
Tensor spectral_weight(const Tensor& weight, const SpectralVectors& vectors, int64_t dim, int64_t iterations,
                       double eps);
// The parameter of that name, which may hold nothing, or an Error that lists those there are.
Parameter& parameter_named(const ModelView& model, const std::string& name, const char* who);

// A layer one of whose parameters, taken out of it, is computed anew for each call.
template <class L> class Reparametrized : public Layer {
 public:
  L layer;
  std::string name;  // of the parameter in the layer

 protected:
  Reparametrized(const char* type, L l, std::string parameter)
      : Layer(type), layer(std::move(l)), name(std::move(parameter)) {}
  Parameter& place() { return place_in(layer); }

  // The call runs on a copy of the layer that shares everything but this weight: other threads may run it as well.
  template <class... A> auto with(const Tensor& weight, const Tensor& x, const A&... more) const {
    L twin = [&] {
      const SharedCopies on;
      return layer;
    }();
    static_cast<Tensor&>(place_in(twin)) = weight;
    return twin(x, more...);
  }

 private:
  Parameter& place_in(L& l) const { return parameter_named(l, name, this->type()); }
};

// w = g v / |v|, with g per index of one axis, or with dim -1 one for all. State keys weight_g, weight_v and the layer's others.
template <class L> class WeightNorm : public Reparametrized<L> {
 public:
  explicit WeightNorm(L l, const std::string& parameter = "weight", int64_t axis = 0)
      : Reparametrized<L>("WeightNorm", std::move(l), parameter), dim(axis) {
    Parameter& w = this->place();
    weight_g = weight_norm_of(w.checked("weight_norm"), axis).detach();
    weight_v = std::move(w);
    weight_g.requires_grad_(weight_v.requires_grad());
  }
  Tensor weight() const { return weight_v * (weight_g / weight_norm_of(weight_v, dim)); }
  template <class... A> auto operator()(const Tensor& x, const A&... more) const {
    return this->call(x, [&](const Tensor& in) { return this->with(weight(), in, more...); });
  }
  void fields(Fields& f) override {
    f(this->name + "_g", weight_g), f(this->name + "_v", weight_v), f("", this->layer);
  }
  L removed() && {
    Parameter& place = this->place();
    place = Parameter(weight().detach(), weight_v.requires_grad());
    return std::move(this->layer);
  }
  Parameter weight_g, weight_v;
  int64_t dim;
};
// auto fc = nn::weight_norm(nn::Linear(4, 8)); fc(x). Of another parameter: nn::weight_norm(lstm, "weight_hh_l0").
template <class L> [[nodiscard]] WeightNorm<L> weight_norm(L layer, const std::string& name, int64_t dim = 0) {
  return WeightNorm<L>(std::move(layer), name, dim);
}
template <class L> [[nodiscard]] WeightNorm<L> weight_norm(L layer, int64_t dim = 0) {
  return WeightNorm<L>(std::move(layer), "weight", dim);
}
// The layer with the weight as it is now: nn::Linear fc = nn::remove_weight_norm(std::move(normed)).
template <class L> [[nodiscard]] L remove_weight_norm(WeightNorm<L> layer) { return std::move(layer).removed(); }

struct SpectralNormOptions {
  std::string name = "weight";
  Int n_power_iterations = 1;
  double eps = 1e-12;
  std::optional<int64_t> dim = {};  // of the outputs: 0, of transposed convolutions 1
};
template <class L> inline constexpr int64_t output_axis = 0;
template <int Axes> inline constexpr int64_t output_axis<ConvTranspose<Axes>> = 1;

// w = v / (largest singular value), followed by power iteration in training mode. State keys weight_orig, weight_u,
// weight_v and the layer's others.
template <class L> class SpectralNorm : public Reparametrized<L> {
 public:
  explicit SpectralNorm(L l, const SpectralNormOptions& o = {})
      : Reparametrized<L>("SpectralNorm", std::move(l), o.name), options(o) {
    Parameter& w = this->place();
    const SpectralVectors start = spectral_start(w.checked("spectral_norm"), axis());
    weight_u = start.u, weight_v = start.v;
    weight_orig = std::move(w);
    spectral_weight(weight_orig, {weight_u, weight_v}, axis(), 15, o.eps);
  }
  Tensor weight() const {
    return spectral_weight(weight_orig, {weight_u, weight_v}, axis(),
                           this->training ? int64_t(options.n_power_iterations) : 0, options.eps);
  }
  template <class... A> auto operator()(const Tensor& x, const A&... more) const {
    return this->call(x, [&](const Tensor& in) { return this->with(weight(), in, more...); });
  }
  void fields(Fields& f) override {
    const std::string& n = this->name;
    f(n + "_orig", weight_orig), f(n + "_u", weight_u), f(n + "_v", weight_v), f("", this->layer);
  }
  L removed() && {
    Parameter& place = this->place();
    place = Parameter(spectral_weight(weight_orig, {weight_u, weight_v}, axis(), 0, options.eps).detach(),
                      weight_orig.requires_grad());
    return std::move(this->layer);
  }
  Parameter weight_orig;
  Buffer weight_u, weight_v;
  SpectralNormOptions options;

 private:
  int64_t axis() const { return options.dim.value_or(output_axis<L>); }
};
// auto fc = nn::spectral_norm(nn::Linear(4, 8)); fc(x)
template <class L> [[nodiscard]] SpectralNorm<L> spectral_norm(L layer, const SpectralNormOptions& options = {}) {
  return SpectralNorm<L>(std::move(layer), options);
}
// The layer with the weight as it is now: nn::Linear fc = nn::remove_spectral_norm(std::move(normed)).
template <class L> [[nodiscard]] L remove_spectral_norm(SpectralNorm<L> layer) { return std::move(layer).removed(); }

}  // namespace volta::nn

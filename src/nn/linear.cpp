// Layers of linear and bilinear maps.
#include <volta/nn/linear.h>

#include <cmath>

#include <volta/create.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/check.h"

namespace volta::nn {

// As PyTorch: weight and bias uniform within 1 / sqrt(inputs).
Linear::Linear(Int in_features, Int out_features, const BiasOptions& options) : Layer("Linear") {
  positive(out_features, type(), "out_features"), positive(in_features, type(), "in_features");
  blamed_on(type(), [&] {
    weight = empty({out_features, in_features});
    if (options.bias) bias = empty({out_features});
  });
  reset_parameters();
}
void Linear::reset_parameters() {
  const double bound = 1 / std::sqrt(double(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
Tensor Linear::with_weight(const Tensor& x, const Tensor& w) const {
  return call(x, [&](const Tensor& in) { return linear(in, w, bias); });
}
void Linear::fields(Fields& f) { f("weight", weight), f("bias", bias); }
double Linear::flops(const Tensor& x, const Tensor& y) const { return 2.0 * double(x.size(-1)) * double(y.numel()); }

Bilinear::Bilinear(Int in1, Int in2, Int out, const BiasOptions& options) : Layer("Bilinear") {
  const double bound = 1 / std::sqrt(double(positive(in1, "Bilinear", "in1_features")));
  positive(out, type(), "out_features"), positive(in2, type(), "in2_features");
  blamed_on(type(), [&] {
    weight = uniform({out, in1, in2}, -bound, bound);
    if (options.bias) bias = uniform({out}, -bound, bound);
  });
}
Tensor Bilinear::operator()(const Tensor& a, const Tensor& b) const {
  return call(a, [&](const Tensor& in) { return bilinear(in, b, weight, bias); });
}
void Bilinear::fields(Fields& f) { f("weight", weight), f("bias", bias); }
double Bilinear::flops(const Tensor&, const Tensor& y) const {
  return 2.0 * double(y.numel()) * double(weight.size(2)) * double(weight.size(1) + 1);
}

}  // namespace volta::nn

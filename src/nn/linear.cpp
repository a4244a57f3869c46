// Linear and bilinear maps.
#include <volta/nn/linear.h>

#include <cmath>

#include <volta/create.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/check.h"
#include "nn/check.h"

namespace volta {

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  const auto refuse = [&] {
    throw Error(Error::Kind::shape, "bilinear",
                a.shape().str() + " and " + b.shape().str() + " with weight " + weight.shape().str() +
                    ": needs [..., in1], [..., in2] and [out, in1, in2]");
  };
  const Shape &sa = a.shape(), &sb = b.shape(), &sw = weight.shape();
  if (sw.size() != 3 || sa.empty() || sa.size() != sb.size() || sa.back() != sw[1] || sb.back() != sw[2]) refuse();
  for (int i = 0; i + 1 < sa.size(); ++i)
    if (sa[i] != sb[i]) refuse();
  // First a with every W_o, then the inner product with b.
  const Tensor half = linear(a, weight.transpose(1, 2).reshape({sw[0] * sw[2], sw[1]})).unflatten(-1, {sw[0], sw[2]});
  const Tensor y = matmul(half, b.unsqueeze(-1)).squeeze(-1);
  return bias.defined() ? y + bias : y;
}

namespace nn {

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

}  // namespace nn
}  // namespace volta

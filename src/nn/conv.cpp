// The layers of convolution: their parameters, PyTorch's initialisation, and padding that is not zeros.
#include <cmath>

#include <volta/create.h>
#include <volta/nn/conv.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/checked_arithmetic.h"

namespace volta::nn {
namespace {

constexpr const char* conv_names[] = {"Conv1d", "Conv2d", "Conv3d"};
constexpr const char* transpose_names[] = {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"};

void check_groups(int64_t in, int64_t out, int64_t groups, const char* layer) {
  positive(in, layer, "in_channels");
  positive(out, layer, "out_channels");
  require(in % positive(groups, layer, "groups") == 0 && out % groups == 0, ErrorKind::argument, layer, groups,
          " groups do not divide ", in, " and ", out, " channels");
}

Shape kernel_shape(int axes, const PerAxis& kernel, const char* layer, int64_t first, int64_t second) {
  Shape shape = {first, second};
  for (const int64_t k : kernel.of(axes, layer, "kernel_size")) shape.push_back(positive(k, layer, "kernel_size"));
  return shape;
}

// As PyTorch: weight and bias uniform within 1 / sqrt(inputs of one output).
void draw(Parameter& weight, Parameter& bias) {
  const double bound = 1 / std::sqrt(double(init::calculate_fan(weight).in));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

// Multiplications and additions: each element of one side meets every value of its group's part of the weight.
double conv_flops(const Tensor& weight, const Tensor& side) {
  return 2.0 * double(side.numel()) * double(weight.numel()) / double(weight.size(0));
}

// (before, after) of each axis from the last on, as pad() wants them.
std::vector<int64_t> sides(const ConvLayerOptions& o, const Tensor& weight, int axes, const char* op) {
  const Shape sizes = o.padding.sizes().of(axes, op, "padding"), dilation = o.dilation.of(axes, op, "dilation");
  std::vector<int64_t> pairs;
  for (int i = axes - 1; i >= 0; --i) {
    const int64_t reach = (Checked(dilation[i]) * (weight.size(2 + i) - 1)).value(op);
    const bool same = o.padding.name() == "same";
    pairs.push_back(same ? reach / 2 : sizes[i]);
    pairs.push_back(same ? reach - reach / 2 : sizes[i]);
  }
  return pairs;
}

}  // namespace

template <int Axes> Conv<Axes>::Conv(Int in, Int out, const PerAxis& kernel, const ConvLayerOptions& o)
    : Layer(conv_names[Axes - 1]), options(o) {
  check_groups(in, out, o.groups, type());
  o.padding_mode.of(type(), "padding_mode"), o.algorithm.of(type(), "algorithm");
  const std::string& padding = o.padding.name();
  if (!padding.empty() && padding != "same" && padding != "valid")
    throw Error(Error::Kind::argument, type(), "padding '" + padding + "' is neither \"same\" nor \"valid\"");
  for (const int64_t s : o.stride.of(Axes, type(), "stride")) {
    if (padding == "same" && positive(s, type(), "stride") != 1)
      throw Error(Error::Kind::argument, type(), "padding \"same\" needs a stride of 1");
  }
  blamed_on(type(), [&] {
    weight = empty(kernel_shape(Axes, kernel, type(), out, in / o.groups));
    if (o.bias) bias = empty({out});
  });
  reset_parameters();
}
template <int Axes> void Conv<Axes>::reset_parameters() { draw(weight, bias); }
template <int Axes> Tensor Conv<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    constexpr Tensor (*convs[])(const Tensor&, const Tensor&, const Tensor&, const ConvOptions&) = {conv1d, conv2d,
                                                                                                    conv3d};
    constexpr auto conv = convs[Axes - 1];
    constexpr const char* op = Axes == 1 ? "conv1d" : Axes == 2 ? "conv2d" : "conv3d";
    ConvOptions o{options.stride, options.padding, options.dilation, options.groups, options.algorithm};
    if (options.padding_mode == PaddingMode::zeros || options.padding.name() == "valid")
      return conv(in, weight, bias, o);
    o.padding = 0;
    const Tensor padded = pad(in.checked(op), sides(options, weight, Axes, op), {.mode = options.padding_mode.name()});
    return conv(padded, weight, bias, o);
  });
}
template <int Axes> void Conv<Axes>::fields(Fields& f) { f("weight", weight), f("bias", bias); }
template <int Axes> double Conv<Axes>::flops(const Tensor&, const Tensor& y) const { return conv_flops(weight, y); }
template class Conv<1>;
template class Conv<2>;
template class Conv<3>;

template <int Axes>
ConvTranspose<Axes>::ConvTranspose(Int in, Int out, const PerAxis& kernel, const ConvTransposeLayerOptions& o)
    : Layer(transpose_names[Axes - 1]), options(o) {
  check_groups(in, out, o.groups, type());
  blamed_on(type(), [&] {
    weight = empty(kernel_shape(Axes, kernel, type(), in, out / o.groups));
    if (o.bias) bias = empty({out});
  });
  reset_parameters();
}
template <int Axes> void ConvTranspose<Axes>::reset_parameters() { draw(weight, bias); }
template <int Axes> Tensor ConvTranspose<Axes>::operator()(const Tensor& x, const Shape& output_size) const {
  return call(x, [&](const Tensor& in) {
    constexpr Tensor (*convs[])(const Tensor&, const Tensor&, const Tensor&, const ConvTransposeOptions&) = {
        conv_transpose1d, conv_transpose2d, conv_transpose3d};
    constexpr auto conv = convs[Axes - 1];
    PerAxis more = options.output_padding;
    if (!output_size.empty()) {
      if (output_size.size() != Axes || in.checked(type()).dim() < Axes)
        throw Error(Error::Kind::shape, type(), "output_size " + output_size.str() + " needs a size for each axis");
      const Shape stride = options.stride.of(Axes, type(), "stride"),
                  padding = options.padding.of(Axes, type(), "padding");
      const Shape dilation = options.dilation.of(Axes, type(), "dilation");
      Shape missing;
      for (int i = 0; i < Axes; ++i) {
        const Checked least = (Checked(in.size(i - Axes)) - 1) * stride[i] - 2 * Checked(padding[i]) +
                              Checked(dilation[i]) * (weight.size(2 + i) - 1) + 1;
        missing.push_back((output_size[i] - least).value(type()));
      }
      more = missing;
    }
    return conv(in, weight, bias,
                {options.stride, options.padding, more, options.groups, options.dilation, options.algorithm});
  });
}
template <int Axes> void ConvTranspose<Axes>::fields(Fields& f) { f("weight", weight), f("bias", bias); }
template <int Axes> double ConvTranspose<Axes>::flops(const Tensor& x, const Tensor&) const {
  return conv_flops(weight, x);
}
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace volta::nn

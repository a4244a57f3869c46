// Normalisation, composed of differentiable ops.
#include <volta/nn/norm.h>

#include <cmath>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "nn/check.h"

namespace volta {
namespace {

bool is_half(const Tensor& x) { return x.dtype() == f16 || x.dtype() == bf16; }
// Statistics of halves are taken in f32.
Tensor widened(const Tensor& x, const char* op) {
  if (!is_floating(x.checked(op).dtype()))
    throw Error(Error::Kind::dtype, op, "needs a floating input, got " + std::string(name(x.dtype())));
  return is_half(x) ? x.to(f32) : x;
}

// A vector of channels, so that it broadcasts along axis 1.
Tensor per_channel(const Tensor& v, const Tensor& x) {
  Shape shape = Shape::filled(int(x.dim()), 1);
  shape[1] = v.numel();
  return v.reshape(shape);
}
Tensor scaled(Tensor y, const Tensor& weight, const Tensor& bias, DType dtype) {
  if (weight.defined()) y = y * weight;
  if (bias.defined()) y = y + bias;
  return y.to(dtype);
}
Tensor scaled_channels(const Tensor& y, const Tensor& weight, const Tensor& bias, DType dtype) {
  return scaled(y, weight.defined() ? per_channel(weight, y) : weight, bias.defined() ? per_channel(bias, y) : bias,
                dtype);
}
Tensor standardized(const Tensor& x, const Axes& axes, double eps) {
  const Tensor centered = x - x.mean(axes, true);
  return centered * rsqrt(centered.square().mean(axes, true) + eps);
}

void check_vector(const Tensor& v, int64_t channels, const char* op, const char* what, const Tensor& x) {
  if (v.defined() && (v.dim() != 1 || v.numel() != channels))
    throw Error(Error::Kind::shape, op,
                std::string(what) + " of shape " + v.shape().str() + " does not fit the " + std::to_string(channels) +
                    " channels of " + x.shape().str());
}
void check_channels(const Tensor& x, const char* op, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                    const Tensor& var) {
  if (x.dim() < 2) throw Error(Error::Kind::shape, op, "needs [n, channels, ...], got " + x.shape().str());
  check_vector(weight, x.size(1), op, "a weight", x);
  check_vector(bias, x.size(1), op, "a bias", x);
  check_vector(mean, x.size(1), op, "a running mean", x);
  check_vector(var, x.size(1), op, "a running variance", x);
  if (mean.defined() != var.defined())
    throw Error(Error::Kind::argument, op, "the running mean and variance come together");
}

// The last axes of x that `shape` names.
Axes last_axes(const Tensor& x, const Shape& shape, const char* op, const Tensor& weight, const Tensor& bias) {
  const int from = int(x.dim()) - shape.size();
  bool fits = from >= 0 && !shape.empty();
  for (int i = 0; fits && i < shape.size(); ++i) fits = x.shape()[from + i] == shape[i];
  if (!fits)
    throw Error(Error::Kind::shape, op,
                "the last axes of " + x.shape().str() + " are not the normalised shape " + shape.str());
  for (const Tensor& v : {weight, bias})
    if (v.defined() && v.shape() != shape)
      throw Error(Error::Kind::shape, op,
                  "a weight or bias of shape " + v.shape().str() + " for the normalised shape " + shape.str());
  std::vector<int64_t> axes;
  for (int64_t axis = from; axis < x.dim(); ++axis) axes.push_back(axis);
  return axes;
}

// running += momentum * (value - running)
void move_towards(Tensor running, const Tensor& value, double momentum) {
  const NoGrad off;
  running.mul_(1 - momentum).add_((value.detach() * momentum).to(running.dtype()));
}

// Normalises over the axes of x that share a channel; keeps the running statistics.
Tensor channel_norm(const Tensor& x, const Axes& axes, const Tensor& mean, const Tensor& var, double momentum,
                    double eps, const char* op) {
  const Tensor average = x.mean(axes, true), centered = x - average;
  const int64_t n = x.numel() / std::max<int64_t>(average.numel(), 1);
  if (n == 1 && x.numel() > 0)
    throw Error(
        Error::Kind::shape, op,
        "an input of shape " + x.shape().str() + " has one value per channel: nothing to normalise by; use eval");
  const Tensor variance = centered.square().mean(axes, true);
  if (mean.defined() && n > 1) {
    const auto each = [&](const Tensor& s) { return s.detach().mean(0).flatten(); };  // over the samples, if kept apart
    move_towards(mean, each(average), momentum);
    move_towards(var, each(variance) * (double(n) / double(n - 1)), momentum);
  }
  return centered * rsqrt(variance + eps);
}

Tensor with_running(const Tensor& x, const Tensor& mean, const Tensor& var, double eps) {
  return (x - per_channel(mean, x)) * rsqrt(per_channel(var, x).to(x.dtype()) + eps);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor wide = widened(x, "layer_norm");
  const Axes axes = last_axes(x, shape, "layer_norm", weight, bias);
  return scaled(standardized(wide, axes, eps), weight, bias, x.dtype());
}

Tensor rms_norm(const Tensor& x, const Shape& shape, const Tensor& weight, std::optional<double> eps) {
  const Tensor wide = widened(x, "rms_norm");
  const Axes axes = last_axes(x, shape, "rms_norm", weight, {});
  const double small = eps.value_or(wide.dtype() == f64 ? 0x1p-52 : 0x1p-23);
  return scaled(wide * rsqrt(wide.square().mean(axes, true) + small), weight, {}, x.dtype());
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor wide = widened(x, "group_norm");
  check_channels(x, "group_norm", weight, bias, {}, {});
  if (groups < 1 || x.size(1) % groups)
    throw Error(Error::Kind::shape, "group_norm",
                std::to_string(groups) + " groups do not divide the channels of " + x.shape().str());
  if (x.numel() == 0) return scaled_channels(wide, weight, bias, x.dtype());
  const Tensor grouped = wide.reshape({x.size(0), groups, -1});
  return scaled_channels(standardized(grouped, 2, eps).reshape(x.shape()), weight, bias, x.dtype());
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                  bool training, double momentum, double eps) {
  const Tensor wide = widened(x, "batch_norm");
  check_channels(x, "batch_norm", weight, bias, mean, var);
  if (!training && !mean.defined())
    throw Error(Error::Kind::argument, "batch_norm", "needs running statistics when not training");
  std::vector<int64_t> axes{0};
  for (int64_t axis = 2; axis < x.dim(); ++axis) axes.push_back(axis);
  const Tensor y =
      training ? channel_norm(wide, axes, mean, var, momentum, eps, "batch_norm") : with_running(wide, mean, var, eps);
  return scaled_channels(y, weight, bias, x.dtype());
}

Tensor instance_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                     bool use_input_stats, double momentum, double eps) {
  const Tensor wide = widened(x, "instance_norm");
  check_channels(x, "instance_norm", weight, bias, mean, var);
  if (x.dim() < 3) throw Error(Error::Kind::shape, "instance_norm", "needs [n, c, ...], got " + x.shape().str());
  if (!use_input_stats && !mean.defined())
    throw Error(Error::Kind::argument, "instance_norm", "needs running statistics when not using the input's");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < x.dim(); ++axis) axes.push_back(axis);
  const Tensor y = use_input_stats ? channel_norm(wide, axes, mean, var, momentum, eps, "instance_norm")
                                   : with_running(wide, mean, var, eps);
  return scaled_channels(y, weight, bias, x.dtype());
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  if (size < 1 || x.checked("local_response_norm").dim() < 3)
    throw Error(Error::Kind::shape, "local_response_norm",
                "needs [n, c, ...] and a positive size, got " + x.shape().str() + " and " + std::to_string(size));
  const Tensor squares = pad(x.square().movedim(1, -1), {size / 2, (size - 1) / 2});
  const Tensor means = squares.unfold(-1, size, 1).mean(-1).movedim(-1, 1);
  return x / pow(means * alpha + k, beta);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps) {
  return x / clamp_min(norm(x, p, dim, true), eps);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  return (normalize(a, 2, dim, eps) * normalize(b, 2, dim, eps)).sum(dim);
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return norm(a - b + eps, p, -1, keepdim);
}

namespace nn {

ChannelNorm::ChannelNorm(const char* type, int64_t features, double e, bool affine, bool track) : Layer(type), eps(e) {
  positive(features, type, "num_features");
  if (affine) weight = ones({features}), bias = zeros({features});
  if (track) {
    running_mean = zeros({features}), running_var = ones({features});
    num_batches_tracked = zeros({}, {.dtype = i64});
  }
}
void ChannelNorm::fields(Fields& f) {
  f("weight", weight), f("bias", bias);
  f("running_mean", running_mean), f("running_var", running_var), f("num_batches_tracked", num_batches_tracked);
}

namespace {
constexpr const char* batch_names[] = {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"};
constexpr const char* instance_names[] = {"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"};
}  // namespace

template <int Axes> BatchNorm<Axes>::BatchNorm(int64_t features, const BatchNormOptions& o)
    : ChannelNorm(batch_names[Axes - 1], features, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {}
template <int Axes> Tensor BatchNorm<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    const int64_t rank = in.checked("batch_norm").dim();
    if (rank != Axes + 2 && !(Axes == 1 && rank == 2))
      throw Error(Error::Kind::shape, "batch_norm",
                  "an input of shape " + in.shape().str() + " has not " + (Axes == 1 ? "2 or " : "") +
                      std::to_string(Axes + 2) + " axes");
    const bool track = running_mean.defined();
    double factor = momentum.value_or(0);
    if (training && track && !momentum) factor = 1 / (num_batches_tracked.item<double>() + 1);
    const Tensor y = batch_norm(in, running_mean, running_var, weight, bias, training || !track, factor, eps);
    if (training && track) Tensor(num_batches_tracked).add_(1);
    return y;
  });
}
template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

template <int Axes> InstanceNorm<Axes>::InstanceNorm(int64_t features, const InstanceNormOptions& o)
    : ChannelNorm(instance_names[Axes - 1], features, o.eps, o.affine, o.track_running_stats),
      momentum(o.momentum),
      features_(features) {}
template <int Axes> Tensor InstanceNorm<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    const bool batched = in.checked("instance_norm").dim() == Axes + 2;
    if ((!batched && in.dim() != Axes + 1) || in.size(batched ? 1 : 0) != features_)
      throw Error(Error::Kind::shape, "instance_norm",
                  "an input of shape " + in.shape().str() + " for " + std::to_string(features_) + " channels and " +
                      std::to_string(Axes) + " axes after them");
    const bool own = training || !running_mean.defined();
    const Tensor y =
        instance_norm(batched ? in : in.unsqueeze(0), running_mean, running_var, weight, bias, own, momentum, eps);
    if (training && running_mean.defined()) Tensor(num_batches_tracked).add_(1);
    return batched ? y : y.squeeze(0);
  });
}
template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& o)
    : Layer("LayerNorm"), normalized_shape(shape), eps(o.eps) {
  for (const int64_t size : shape) positive(size, "LayerNorm", "a size");
  if (o.elementwise_affine) weight = ones(shape);
  if (o.elementwise_affine && o.bias) bias = zeros(shape);
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return layer_norm(in, normalized_shape, weight, bias, eps); });
}
void LayerNorm::fields(Fields& f) { f("weight", weight), f("bias", bias); }

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& o) : Layer("RMSNorm"), normalized_shape(shape), eps(o.eps) {
  for (const int64_t size : shape) positive(size, "RMSNorm", "a size");
  if (o.elementwise_affine) weight = ones(shape);
}
Tensor RMSNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return rms_norm(in, normalized_shape, weight, eps); });
}
void RMSNorm::fields(Fields& f) { f("weight", weight); }

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& o)
    : Layer("GroupNorm"), num_groups(groups), num_channels(channels), eps(o.eps) {
  positive(channels, "GroupNorm", "num_channels");
  if (channels % positive(groups, "GroupNorm", "num_groups"))
    throw Error(Error::Kind::argument, "GroupNorm",
                std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels");
  if (o.affine) weight = ones({channels}), bias = zeros({channels});
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return group_norm(in, num_groups, weight, bias, eps); });
}
void GroupNorm::fields(Fields& f) { f("weight", weight), f("bias", bias); }

}  // namespace nn
}  // namespace volta

// Layers of normalisation.
#include <volta/nn/norm.h>

#include <volta/create.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/check.h"
#include "graph/composed.h"
#include "ops/normalize.h"

namespace volta::nn {

ChannelNorm::ChannelNorm(const char* type, Int features, double e, bool affine, bool track) : Layer(type), eps(e) {
  positive(features, type, "num_features"), not_negative(e, type, "eps");
  blamed_on(type, [&] {
    if (affine) weight = ones({features}), bias = zeros({features});
    if (track) running_mean = zeros({features}), running_var = ones({features});
  });
  if (track) num_batches_tracked = zeros({}, {.dtype = i64});
}
void ChannelNorm::fields(Fields& f) {
  f("weight", weight), f("bias", bias);
  f("running_mean", running_mean), f("running_var", running_var), f("num_batches_tracked", num_batches_tracked);
}

namespace {
constexpr const char* batch_names[] = {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"};
constexpr const char* instance_names[] = {"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"};
}  // namespace

template <int Axes> BatchNorm<Axes>::BatchNorm(Int features, const BatchNormOptions& o)
    : ChannelNorm(batch_names[Axes - 1], features, o.eps, o.affine, o.track_running_stats), momentum(o.momentum) {
  if (momentum) probability(*momentum, type(), "momentum");
}
template <int Axes> Tensor BatchNorm<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    const int64_t rank = in.checked("batch_norm").dim();
    require(rank == Axes + 2 || (Axes == 1 && rank == 2), ErrorKind::shape, "batch_norm", "an input of shape ", in,
            " has not ", Axes == 1 ? "2 or " : "", Axes + 2, " axes");
    const bool track = running_mean.defined();
    double factor = momentum.value_or(0);
    if (training && track && !momentum) factor = 1 / (num_batches_tracked.item<double>() + 1);
    const Tensor y = batch_norm(in, running_mean, running_var, weight, bias, training || !track, factor, eps);
    if (training && track && !is_replaying()) Tensor(num_batches_tracked).add_(1);
    return y;
  });
}
template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

template <int Axes> InstanceNorm<Axes>::InstanceNorm(Int features, const InstanceNormOptions& o)
    : ChannelNorm(instance_names[Axes - 1], features, o.eps, o.affine, o.track_running_stats),
      momentum(probability(o.momentum, type(), "momentum")),
      features_(features) {}
template <int Axes> Tensor InstanceNorm<Axes>::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) {
    const bool batched = in.checked("instance_norm").dim() == Axes + 2;
    require((batched || in.dim() == Axes + 1) && in.size(batched ? 1 : 0) == features_, ErrorKind::shape,
            "instance_norm", "an input of shape ", in, " for ", features_, " channels and ", Axes, " axes after them");
    const bool own = training || !running_mean.defined();
    const Tensor y =
        instance_norm(batched ? in : in.unsqueeze(0), running_mean, running_var, weight, bias, own, momentum, eps);
    return batched ? y : y.squeeze(0);
  });
}
template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

LayerNorm::LayerNorm(const Shape& shape, const LayerNormOptions& o)
    : Layer("LayerNorm"), normalized_shape(shape), eps(not_negative(o.eps, "LayerNorm", "eps")) {
  for (const int64_t size : shape) positive(size, "LayerNorm", "a size");
  blamed_on(type(), [&] {
    if (o.elementwise_affine) weight = ones(shape);
    if (o.elementwise_affine && o.bias) bias = zeros(shape);
  });
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return layer_norm(in, normalized_shape, weight, bias, eps); });
}
void LayerNorm::fields(Fields& f) { f("weight", weight), f("bias", bias); }

RMSNorm::RMSNorm(const Shape& shape, const RMSNormOptions& o) : Layer("RMSNorm"), normalized_shape(shape), eps(o.eps) {
  if (eps) not_negative(*eps, "RMSNorm", "eps");
  for (const int64_t size : shape) positive(size, "RMSNorm", "a size");
  if (o.elementwise_affine) blamed_on(type(), [&] { weight = ones(shape); });
}
Tensor RMSNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return rms_norm(in, normalized_shape, weight, eps); });
}
void RMSNorm::fields(Fields& f) { f("weight", weight); }

GroupNorm::GroupNorm(Int groups, Int channels, const GroupNormOptions& o)
    : Layer("GroupNorm"), num_groups(groups), num_channels(channels), eps(not_negative(o.eps, "GroupNorm", "eps")) {
  positive(channels, "GroupNorm", "num_channels");
  if (channels % positive(groups, "GroupNorm", "num_groups"))
    throw Error(Error::Kind::argument, "GroupNorm",
                std::to_string(groups) + " groups do not divide " + std::to_string(channels) + " channels");
  if (o.affine) blamed_on(type(), [&] { weight = ones({channels}), bias = zeros({channels}); });
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  return call(x, [&](const Tensor& in) { return group_norm(in, num_groups, weight, bias, eps); });
}
void GroupNorm::fields(Fields& f) { f("weight", weight), f("bias", bias); }

LocalResponseNorm::LocalResponseNorm(Int size, double alpha, double beta, double k)
    : Lambda("LocalResponseNorm", [=](const Tensor& x) { return local_response_norm(x, size, alpha, beta, k); }) {
  positive(size, "LocalResponseNorm", "size"), finite(alpha, "LocalResponseNorm", "alpha");
  finite(beta, "LocalResponseNorm", "beta"), finite(k, "LocalResponseNorm", "k");
}

}  // namespace volta::nn

// Normalisation as one recorded op: a fused loop where the device has one, else composed of tensor ops.
#include "ops/normalize.h"

#include <volta/create.h>
#include <volta/ops.h>

#include "backend/norm.h"
#include "core/arguments.h"
#include "graph/record.h"
#include "ops/channels_last.h"
#include "ops/check.h"
#include "ops/elementwise.h"

namespace volta {
namespace {

DType compute_of(const Tensor& x) { return x.dtype() == f64 ? f64 : f32; }
Axes axes_of(const NormSets& s) { return s.over_outer ? Axes{0, 2, 3} : Axes{2, 3}; }
Shape shape_of(const NormSets& s) { return {s.outer, s.groups, s.channels, s.inner}; }
Shape statistics_shape(const NormSets& s) { return {s.over_outer ? 1 : s.outer, s.groups, 1, 1}; }

// x as the formulas see it, and a weight or bias that broadcasts to it.
Tensor viewed(const Tensor& x, const NormSets& s, DType compute) { return x.to(compute).reshape(shape_of(s)); }
Tensor spread(const Tensor& w, const NormSets& s, DType compute) {
  return w.to(compute).reshape({1, s.groups, s.channels, 1});
}

// How a loop sees x in memory: as it is described, as rows of channels, or, where short segments of channels are spread
// over the outer indices, brought together.
enum class Order { plain, rows, gathered };
Order order_of(const NormSets& s, const Tensor& x) {
  if (!s.over_outer) return Order::plain;
  const bool rows = s.inner == 1 ? backend(x.device()).takes_channels_last() : keeps_channels_last(x);
  if (rows) return Order::rows;
  return s.inner < 16 && s.outer > 1 ? Order::gathered : Order::plain;
}
Tensor ordered(const Tensor& x, const NormSets& s, Order order, DType dtype) {
  const Tensor wide = x.to(dtype);
  if (order == Order::rows && s.inner > 1) return channels_last(wide);
  if (order != Order::gathered) return wide.contiguous();
  return wide.reshape({s.outer, s.groups, s.inner}).transpose(0, 1).contiguous();
}
Tensor restored(const Tensor& y, Order order, const Tensor& like) {
  const Tensor back = order == Order::gathered ? y.transpose(0, 1).contiguous().reshape(like.shape()) : y;
  return back.to(like.dtype());
}

// The mean of each set, taken twice: what the first one lost by rounding, the differences from it still show. Of equal
// values it is exactly their value.
Tensor mean_of(const Tensor& in, const NormSets& s) {
  const Tensor first = in.detach().mean(axes_of(s), true);
  return first + (in - first).mean(axes_of(s), true);
}

// The device's loop, with its operands in memory as it wants them.
class FusedNorm {
 public:
  FusedNorm(const NormSets& s, const Tensor& x, const Tensor& weight, const NormStatistics& statistics)
      : sets_(s), order_(order_of(s, x)), compute_(compute_of(x)) {
    if (weight.defined()) weight_ = weight.to(compute_).contiguous(), operands_.weight = arg(weight_);
    operands_.outer = s.outer, operands_.inner = s.inner;
    if (order_ == Order::rows) operands_.outer = s.outer * s.inner, operands_.inner = 1;
    if (order_ == Order::gathered) operands_.outer = 1, operands_.inner = s.outer * s.inner;
    operands_.groups = s.groups, operands_.channels = s.channels, operands_.eps = s.eps;
    operands_.over_outer = s.over_outer, operands_.centered = s.centered, operands_.given = statistics.given;
    operands_.mean = arg(statistics.mean), operands_.var = arg(statistics.var);
    operands_.x.dtype = x.dtype();
    const auto taken = [&] { return x.numel() > 0 && offered(x.device(), NormCall{operands_, {}, {}}); };
    available_ = taken();
    if (!available_) operands_.x.dtype = compute_, available_ = compute_ != x.dtype() && taken();
    if (!available_) return;
    x_ = ordered(x, s, order_, operands_.x.dtype);
    operands_.x = arg(x_);
  }
  bool available() const { return available_; }

  Tensor forward(const Tensor& bias, const Tensor& like) {
    NormCall call{operands_, {}, {}};
    Tensor shift;
    if (bias.defined()) shift = bias.to(compute_).contiguous(), call.bias = arg(shift);
    const Tensor y = allocate_as(x_, x_.dtype(), x_.device(), sets_.op);
    call.y = arg(y);
    backend(x_.device()).norm(call);
    return restored(y, order_, like);
  }

  void backward(const Tensor& g, const Tensor& like, Gradients& d) {
    NormBackwardCall call{operands_, {}, {}, {}};
    const Tensor up = ordered(g, sets_, order_, x_.dtype());
    const Tensor weights = allocate({2, sets_.groups * sets_.channels}, compute_, x_.device(), sets_.op);
    Tensor dx;
    if (d.needs(0)) dx = allocate_as(x_, x_.dtype(), x_.device(), sets_.op), call.dx = arg(dx);
    call.g = arg(up), call.grad_weights = arg(weights);
    backend(x_.device()).norm_backward(call);
    if (d.needs(0)) d[0] = restored(dx, order_, like);
    if (d.needs(1)) d[1] = weights.select(0, 1);
    if (d.needs(2)) d[2] = weights.select(0, 0);
  }

 private:
  NormSets sets_;
  Order order_;
  DType compute_;
  bool available_ = false;
  Tensor x_, weight_;
  NormOperands operands_{};
};

Tensor composed(const NormSets& s, const Tensor& x, const Tensor& weight, const Tensor& bias, NormStatistics& st) {
  const DType compute = compute_of(x);
  const Tensor in = viewed(x, s, compute);
  const Shape shape = statistics_shape(s);
  if (!st.given) {
    st.mean = s.centered ? mean_of(in, s) : zeros(shape, {compute, x.device()});
    st.var = (in - st.mean).square().mean(axes_of(s), true);
  }
  Tensor y = (in - st.mean.reshape(shape)) * rsqrt(st.var.reshape(shape) + s.eps);
  if (weight.defined()) y = y * spread(weight, s, compute);
  if (bias.defined()) y = y + spread(bias, s, compute);
  return y.reshape(x.shape()).to(x.dtype());
}

// With h = (x - mean) r: dx = r (g w - mean(g w) - h mean(g w h)), all of it differentiable.
void composed_gradients(const NormSets& s, const Tensor& x, const Tensor& weight, const NormStatistics& st,
                        const Tensor& g, Gradients& d) {
  const DType compute = compute_of(x);
  const Axes axes = axes_of(s);
  const Tensor in = viewed(x, s, compute), up = viewed(g, s, compute);
  const Tensor centered = st.given ? in - st.mean.reshape(statistics_shape(s)) : s.centered ? in - mean_of(in, s) : in;
  const Tensor var = st.given ? st.var.reshape(statistics_shape(s)) : centered.square().mean(axes, true);
  const Tensor r = rsqrt(var + s.eps), hat = centered * r;
  if (d.needs(0)) {
    const Tensor scaled = weight.defined() ? up * spread(weight, s, compute) : up;
    Tensor dx = scaled;
    if (!st.given && s.centered) dx = dx - scaled.mean(axes, true);
    if (!st.given) dx = dx - hat * (scaled * hat).mean(axes, true);
    d[0] = (dx * r).reshape(x.shape());
  }
  if (d.needs(1)) d[1] = (up * hat).sum({0, 3}).flatten();
  if (d.needs(2)) d[2] = up.sum({0, 3}).flatten();
}

}  // namespace

Tensor normalized(const NormSets& s, const Tensor& x, const Tensor& weight, const Tensor& bias, NormStatistics& st) {
  not_negative(s.eps, s.op, "eps");
  for (const Tensor& v : {weight, bias, st.mean, st.var})
    if (v.defined()) common_device(x, v, s.op);
  Tensor y;
  {
    const NoGrad off;
    const DType compute = compute_of(x);
    if (st.given) st.mean = st.mean.to(compute).contiguous(), st.var = st.var.to(compute).contiguous();
    else
      for (Tensor* t : {&st.mean, &st.var}) *t = allocate(statistics_shape(s), compute, x.device(), s.op);
    FusedNorm fused(s, x, weight, st);
    y = fused.available() ? fused.forward(bias, x) : composed(s, x, weight, bias, st);
  }
  if (!any_needs_grad(x, weight, bias)) return y;
  const Shape shape = weight.defined() ? weight.shape() : bias.defined() ? bias.shape() : Shape();
  return record(s.op, y, {x, weight, bias},
                [s, shape, given = st.given, x = save(x), weight = save(weight), mean = save(st.mean),
                 var = save(st.var)](const Tensor& g, Gradients& d) {
                  const Tensor in = d.take(x), scale = weight ? d.take(weight) : Tensor();
                  const NormStatistics kept{d.take(mean), d.take(var), given};
                  if (FusedNorm fused(s, in, scale, kept); !grad_enabled() && fused.available())
                    fused.backward(g, in, d);
                  else composed_gradients(s, in, scale, kept, g, d);
                  for (size_t i : {1, 2})
                    if (d.needs(i)) d[i] = d[i].reshape(shape);
                });
}

}  // namespace volta

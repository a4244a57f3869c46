// Losses of several labels at once, and of triplets under a distance of one's own.
#include <volta/create.h>
#include <volta/ops.h>
#include <volta/plain.h>

#include "core/arguments.h"
#include "ops/loss.h"

namespace volta {

Tensor Plain::multilabel_margin_loss(const Tensor& input, const Tensor& target, const LossOptions& o) {
  const char* op = "multilabel_margin_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  require_floating(input, op);
  loss::require_pair(input, target, op);
  require(target.dtype() == i64, ErrorKind::dtype, op, "targets must be i64, not ", target.dtype());
  require(input.dim() > 0 && input.dim() < 3 && input.size(-1) > 0, ErrorKind::shape, op,
          "scores must be [N, C] or [C], not ", input);
  if (const DType dtype = input.dtype(); is_half(dtype))
    return multilabel_margin_loss(input.to(f32), target, o).to(dtype);
  const int64_t classes = input.size(-1);
  const Tensor labels = target.detach().to(input.device());
  const Tensor counts = cumprod((labels >= 0).to(i64), -1) > 0;  // until the first -1
  require(!read_for<bool>(op, any((labels < -1) | (labels >= classes))), ErrorKind::index, op,
          "a label is neither -1 nor one of the ", classes, " classes");
  const Tensor index = where(counts, labels, 0);
  const Tensor wanted = scatter_add(zeros_like(index), -1, index, counts.to(i64)) > 0;
  // What each class that is not wanted lacks of standing 1 below each class that is.
  const Tensor short_of = relu(1 - gather(input, -1, index).unsqueeze(-1) + input.unsqueeze(-2));
  const Tensor asked = counts.unsqueeze(-1) & ~wanted.unsqueeze(-2);
  return loss::reduced(sum(where(asked, short_of, 0), {-2, -1}) / double(classes), how);
}

Tensor Plain::multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const WeightedLossOptions& o) {
  const char* op = "multilabel_soft_margin_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  require_floating(input, op);
  loss::require_pair(input, target, op);
  require(input.dim() > 0 && input.size(-1) > 0, ErrorKind::shape, op, "scores need an axis of classes, got ", input);
  if (const DType dtype = input.dtype(); is_half(dtype))
    return multilabel_soft_margin_loss(input.to(f32), target.to(f32), o).to(loss::with_weight(dtype, o.weight));
  const Tensor y = target.to(input.dtype());
  Tensor losses = (y - 1) * logsigmoid(-input) - y * logsigmoid(input);
  if (o.weight.defined()) losses = blamed_on(op, [&] { return losses * o.weight; });
  return loss::reduced(mean(losses, -1), how);
}

Tensor Plain::triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                const TripletDistanceOptions& o) {
  const char* op = "triplet_margin_with_distance_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  above_zero(o.margin, op, "margin");
  require(anchor.checked(op).dim() == positive.checked(op).dim() && anchor.dim() == negative.checked(op).dim(),
          ErrorKind::shape, op, "anchor ", anchor, ", positive ", positive, " and negative ", negative,
          " differ in their number of axes");
  const DType dtype = promote(promote(anchor.dtype(), positive.dtype()), negative.dtype());
  require(is_floating(dtype), ErrorKind::dtype, op, "needs floats, got ", anchor.dtype(), ", ", positive.dtype(),
          " and ", negative.dtype());
  if (is_half(dtype) && !o.distance_function)
    return triplet_margin_with_distance_loss(anchor.to(f32), positive.to(f32), negative.to(f32), o).to(dtype);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function ? o.distance_function(a, b) : pairwise_distance(a, b);
  };
  return blamed_on(op, [&] {
    const Tensor near = distance(anchor, positive);
    Tensor far = distance(anchor, negative);
    if (o.swap) far = minimum(far, distance(positive, negative));
    const DType own = promote(near.dtype(), far.dtype());
    const Tensor losses = clamp_min(o.margin + loss::widened(near) - loss::widened(far), 0);
    return loss::reduced(losses, how).to(own);
  });
}

}  // namespace volta

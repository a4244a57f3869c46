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
  require(is_floating(promote(promote(anchor.dtype(), positive.dtype()), negative.dtype())), ErrorKind::dtype, op,
          "needs floats, got ", anchor.dtype(), ", ", positive.dtype(), " and ", negative.dtype());
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function ? o.distance_function(a, b) : pairwise_distance(a, b);
  };
  const Tensor losses = blamed_on(op, [&] {
    const Tensor near = distance(anchor, positive);
    Tensor far = distance(anchor, negative);
    if (o.swap) far = minimum(far, distance(positive, negative));
    return clamp_min(o.margin + near - far, 0);
  });
  return loss::reduced(losses, how);
}

}  // namespace volta

// Losses of several labels at once, and of triplets under a distance of one's own.
#include <volta/create.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "ops/loss.h"

namespace volta {

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const LossOptions& o) {
  const char* op = "multilabel_margin_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  loss::require_floats(input, op);
  loss::require_same_shape(input, target, op);
  if (target.dtype() != i64)
    throw Error(Error::Kind::dtype, op, "targets must be i64, not " + std::string(name(target.dtype())));
  if (input.dim() < 1 || input.dim() > 2 || input.size(-1) == 0)
    throw Error(Error::Kind::shape, op, "scores must be [N, C] or [C], not " + input.shape().str());
  const int64_t classes = input.size(-1);
  const Tensor labels = target.detach().to(input.device());
  const Tensor counts = cumprod((labels >= 0).to(i64), -1) > 0;  // until the first -1
  if (any((labels < -1) | (labels >= classes)).item<bool>())
    throw Error(Error::Kind::index, op, "a label is neither -1 nor one of the " + std::to_string(classes) + " classes");
  const Tensor index = where(counts, labels, 0);
  const Tensor wanted = scatter_add(zeros_like(index), -1, index, counts.to(i64)) > 0;
  // What each class that is not wanted lacks of standing 1 below each class that is.
  const Tensor short_of = relu(1 - gather(input, -1, index).unsqueeze(-1) + input.unsqueeze(-2));
  const Tensor asked = counts.unsqueeze(-1) & ~wanted.unsqueeze(-2);
  return loss::reduced(sum(where(asked, short_of, 0), {-2, -1}) / double(classes), how);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const WeightedLossOptions& o) {
  const char* op = "multilabel_soft_margin_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  loss::require_floats(input, op);
  loss::require_same_shape(input, target, op);
  if (input.dim() == 0 || input.size(-1) == 0)
    throw Error(Error::Kind::shape, op, "scores need an axis of classes, got shape " + input.shape().str());
  const Tensor y = target.to(input.dtype());
  Tensor losses = (y - 1) * logsigmoid(-input) - y * logsigmoid(input);
  if (o.weight.defined()) losses = losses * o.weight;
  return loss::reduced(mean(losses, -1), how);
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletDistanceOptions& o) {
  const char* op = "triplet_margin_with_distance_loss";
  const Reduce how = loss::reduction(o.reduction, op);
  above_zero(o.margin, op, "margin");
  if (anchor.checked(op).dim() != positive.checked(op).dim() || anchor.dim() != negative.checked(op).dim())
    throw Error(Error::Kind::shape, op,
                "anchor " + anchor.shape().str() + ", positive " + positive.shape().str() + " and negative " +
                    negative.shape().str() + " differ in their number of axes");
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function ? o.distance_function(a, b) : pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap) far = minimum(far, distance(positive, negative));
  return loss::reduced(clamp_min(o.margin + near - far, 0), how);
}

}  // namespace volta

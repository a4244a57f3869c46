// Losses of class labels. Cross-entropy is fused where the device has a loop for it.
#include <algorithm>
#include <cmath>

#include "backend/cross_entropy.h"
#include "core/arguments.h"
#include "core/room.h"
#include "graph/record.h"
#include "ops/check.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/loss.h"
#include "volta/create.h"
#include "volta/plain.h"

namespace volta {
namespace {

using loss::reduced;

// Labels in range, on the scores' device.
struct Labels {
  Tensor raw;  // i64 [N, …]
  int axis;    // of the classes
  std::optional<int64_t> ignore;
  bool may_ignore;  // some of them may be ones to ignore
  // For composed forms:
  Tensor index = {};   // 0 where ignored
  Tensor factor = {};  // weights of the labels, 0 where ignored; undefined where all are 1
  Tensor kept = {};    // false where ignored; undefined where none is
};

void check_shapes(const Tensor& input, const Tensor& target, int axis, const char* op) {
  Shape expected = input.shape();
  if (input.dim() > 0) expected.erase(axis);
  require(input.dim() > 0 && target.shape() == expected, ErrorKind::shape, op, "scores ", input, " need labels ",
          expected, ", not ", target);
  require(input.size(axis) > 0, ErrorKind::shape, op, "scores ", input, " have no classes");
}

void check_weight(const Tensor& weight, const Tensor& input, int axis, const char* op) {
  if (!weight.defined()) return;
  require(weight.shape() == Shape{input.size(axis)}, ErrorKind::shape, op, "weight ", weight, " does not fit ",
          input.size(axis), " classes");
  common_device(input, weight, op);
}

// Whether a label may be one to ignore; throws for one that is neither that nor a class. A device that does not know
// leaves bad ones for its loop to report.
bool check_labels(const Tensor& labels, int64_t classes, std::optional<int64_t> ignore, const char* op) {
  if (labels.numel() == 0) return false;
  const auto range = backend(labels.device()).index_range(arg(labels));
  if (!range) return ignore.has_value();
  if (range->low >= 0 && range->high < classes) return ignore >= range->low && ignore <= range->high;
  const std::vector<int64_t> all = within_memory(op, [&] { return labels.to_vector<int64_t>(); });
  for (size_t i = 0; i < all.size(); ++i)
    require(all[i] == ignore || (all[i] >= 0 && all[i] < classes), ErrorKind::index, op, "label ", all[i], " (number ",
            i, ") is not one of the ", classes, " classes");
  return true;
}

Labels checked_labels(const Tensor& input, const Tensor& target, const Tensor& weight, std::optional<int64_t> ignore,
                      const char* op) {
  require_floating(input, op);
  const DType dtype = target.checked(op).dtype();
  require(is_integral(dtype), ErrorKind::dtype, op, "labels of ", dtype, ", not integers");
  const int axis = input.dim() > 1 ? 1 : 0;
  check_shapes(input, target, axis, op);
  check_weight(weight, input, axis, op);
  const Tensor raw = target.to(i64).to(input.device());
  return {raw, axis, ignore, check_labels(raw, input.size(axis), ignore, op)};
}

Labels prepare(const Tensor& input, const Tensor& target, const Tensor& weight, std::optional<int64_t> ignore,
               const char* op) {
  Labels labels = checked_labels(input, target, weight, ignore, op);
  labels.index = labels.raw;
  if (labels.may_ignore) {
    labels.kept = labels.raw != *ignore;
    labels.index = where(labels.kept, labels.raw, 0);
    labels.factor = labels.kept.to(input.dtype());
  }
  if (!weight.defined()) return labels;
  const Tensor weights = take(weight.to(input.dtype()), labels.index);
  labels.factor = labels.may_ignore ? where(labels.kept, weights, 0) : weights;
  return labels;
}

// A mean is divided by the sum of the labels' weights. Neither sum need fit into a half.
Tensor divided(const Tensor& losses, const Labels& labels, Reduce how) {
  if (how != Reduce::mean || !labels.factor.defined()) return reduced(losses, how);
  const DType wide = traits(losses.dtype()).compute;
  return (sum(losses.to(wide)) / sum(labels.factor.to(wide))).to(losses.dtype());
}

Tensor finish(const Tensor& losses, const Labels& labels, Reduce how) {
  if (!labels.factor.defined()) return reduced(losses, how);
  // Infinite losses can be ignored, and weigh nothing under a factor of 0; finite ones still give it a gradient, and
  // NaN stays.
  Tensor nothing = logical_and(labels.factor == 0, isinf(losses));
  if (labels.kept.defined()) nothing = logical_or(nothing, !labels.kept);
  return divided(where(nothing, 0, losses) * labels.factor, labels, how);
}

Tensor pick_label(const Tensor& x, const Labels& labels) {
  return gather(x, labels.axis, labels.index.unsqueeze(labels.axis)).squeeze(labels.axis);
}

// (softmax - one hot) g: g has one number for each label.
Tensor composed_gradient(const Tensor& g, const Tensor& x, const Labels& labels) {
  const Tensor upstream = g.unsqueeze(labels.axis);
  const Tensor share = softmax(x, labels.axis) * upstream;
  if (!labels.may_ignore) return scatter_add(share, labels.axis, labels.raw.unsqueeze(labels.axis), -upstream);
  const Tensor ignored = (labels.raw == *labels.ignore).unsqueeze(labels.axis);
  const Tensor index = where(ignored, 0, labels.raw.unsqueeze(labels.axis));
  return where(ignored, 0, scatter_add(share, labels.axis, index, -upstream));
}

// The device's loop over scores [outer, classes, inner], its weights constants.
class FusedCrossEntropy {
 public:
  struct Found {
    Tensor losses, statistics;
    Tensor factors, mean, divisor;  // where they are wanted; the divisor is that of a mean of factors
  };
  FusedCrossEntropy(const Tensor& x, const Tensor& index, const Tensor& weight, std::optional<int64_t> ignore)
      : scores_(x.detach().reshape(view_of(x))), index_(index.reshape({scores_.size(0), scores_.size(2)})) {
    if (weight.defined()) weight_ = weight.detach().to(x.dtype()).contiguous(), call_.weight = arg(weight_);
    call_.scores = arg(scores_), call_.labels = arg(index_), call_.ignore = ignore;
  }
  bool available() const { return scores_.numel() > 0 && offered(scores_.device(), call_); }
  static Shape view_of(const Tensor& x) {
    if (x.dim() == 1) return {1, x.size(0), 1};
    int64_t inner = 1;
    for (int64_t i = 2; i < x.dim(); ++i) inner *= x.size(i);
    return {x.size(0), x.size(1), inner};
  }

  Found forward(bool factors, bool mean) {
    const auto [outer, inner] = std::pair(scores_.size(0), scores_.size(2));
    const DType dtype = scores_.dtype();
    Found y;
    const auto place = [&](Tensor& to, Arg& given, const Shape& shape, DType of) {
      to = allocate(shape, of, scores_.device(), "cross_entropy");
      given = arg(to);
    };
    place(y.losses, call_.losses, {outer, inner}, dtype);
    place(y.statistics, call_.statistics, {outer, inner, 2}, f64);
    if (factors) place(y.factors, call_.factors, {outer, inner}, dtype);
    if (mean) place(y.mean, call_.mean, {}, dtype);
    if (factors && mean) place(y.divisor, call_.divisor, {}, traits(dtype).compute);
    backend(scores_.device()).cross_entropy(call_);
    return y;
  }

  // g / divisor is the gradient of every loss.
  Tensor backward(const Tensor& statistics, const Tensor& factors, const Tensor& g, const Operand& divisor) const {
    const Tensor d = allocate(scores_.shape(), scores_.dtype(), scores_.device(), "cross_entropy");
    CrossEntropyBackwardCall call{call_.scores, call_.labels, {}, arg(statistics), arg(g), arg(d), arg(divisor)};
    if (factors.defined()) call.factors = arg(factors);
    backend(scores_.device()).cross_entropy_backward(call);
    return d;
  }

 private:
  Tensor scores_, index_, weight_;
  CrossEntropyCall call_{};
};

// Undefined where the device has no loop for it, or the weight has a gradient.
Tensor fused_cross_entropy(const Tensor& x, const Labels& labels, const Tensor& weight, Reduce how) {
  FusedCrossEntropy::Found y;
  Tensor loss;
  {
    const NoGrad off;
    FusedCrossEntropy fused(x, labels.raw, weight, labels.ignore);
    if ((weight.defined() && weight.requires_grad()) || !fused.available()) return {};
    y = fused.forward(weight.defined() || labels.may_ignore, how == Reduce::mean);
    loss = how == Reduce::mean ? y.mean : how == Reduce::none ? y.losses.reshape(labels.raw.shape()) : sum(y.losses);
  }
  return record(
      "cross_entropy", loss, {x},
      [x = save(x), target = save(labels.raw), statistics = y.statistics, factors = y.factors, divisor = y.divisor,
       labels, how](const Tensor& g, Gradients& d) {
        d.take(target);  // they were checked: an error if they changed since
        const double count = how == Reduce::mean ? double(labels.raw.numel()) : 1;
        const Operand divide_by = divisor.defined() ? Operand(divisor) : Operand(count);
        const auto for_each = [&](const Tensor& t) { return how == Reduce::none ? t : t.expand(labels.raw.shape()); };
        const Tensor in = d.take(x);
        if (grad_enabled()) {
          const Tensor each = for_each(how == Reduce::mean ? (g / divide_by).to(g.dtype()) : g);
          d[0] = composed_gradient(factors.defined() ? each * factors.reshape(each.shape()) : each, in, labels);
          return;
        }
        const FusedCrossEntropy fused(in, labels.raw, {}, {});
        const Tensor each = for_each(g).reshape({statistics.size(0), statistics.size(1)});
        d[0] = fused.backward(statistics, factors, each, divide_by).reshape(in.shape());
      });
}

// One factor for each class, in the shape of the scores' class axis.
Tensor along_classes(const Tensor& weight, const Tensor& x, int axis) {
  Shape shape = Shape::filled(int(x.dim()), 1);
  shape[axis] = -1;
  return weight.to(x.dtype()).reshape(shape);
}

Tensor smoothed(const Tensor& x, const Labels& labels, const CrossEntropyOptions& o) {
  const Tensor logs = log_softmax(x, labels.axis);
  const Tensor of_label = finish(-pick_label(logs, labels), labels, o.reduction);
  // The even part weighs every class of every label that counts; its mean has the same divisor.
  const Tensor weighted = o.weight.defined() ? logs * along_classes(o.weight, x, labels.axis) : logs;
  Tensor even = -sum(weighted, labels.axis);
  if (labels.kept.defined()) even = where(labels.kept, even, 0);
  const double share = o.label_smoothing / double(x.size(labels.axis));
  return (1 - o.label_smoothing) * of_label + share * divided(even, labels, o.reduction);
}

Tensor of_probabilities(const Tensor& x, const Tensor& target, const CrossEntropyOptions& o) {
  require(x.shape() == target.shape(), ErrorKind::shape, "cross_entropy", "a target of ", target.dtype(),
          " holds probabilities in the shape of the scores, ", x, ", not ", target,
          "; labels are integers: target.to(i64)");
  loss::require_pair(x, target, "cross_entropy");
  if (x.dim() == 0) throw Error(Error::Kind::shape, "cross_entropy", "the scores need an axis of classes");
  const int axis = x.dim() > 1 ? 1 : 0;
  const int64_t classes = x.size(axis);
  check_weight(o.weight, x, axis, "cross_entropy");
  if (is_half(x.dtype()) || is_half(target.dtype()))
    return of_probabilities(loss::widened(x), loss::widened(target), o).to(promote(x.dtype(), target.dtype()));
  Tensor wanted = target;
  if (o.label_smoothing > 0) wanted = (1 - o.label_smoothing) * target + o.label_smoothing / double(classes);
  if (o.weight.defined()) wanted = wanted * along_classes(o.weight, x, axis);
  return reduced(-sum(wanted * log_softmax(x, axis), axis), o.reduction);
}

}  // namespace

Tensor Plain::cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  const char* op = "cross_entropy";
  loss::reduction(o.reduction, op);
  require_floating(input, op);
  probability(o.label_smoothing, op, "label_smoothing");
  if (is_floating(target.checked(op).dtype())) {
    require(o.ignore_index < 0, ErrorKind::argument, op, "ignore_index ", o.ignore_index,
            " leaves labels out, and a target of probabilities has none");
    return of_probabilities(input, target, o);
  }
  if (o.label_smoothing == 0) {
    const Labels labels = checked_labels(input, target, o.weight, o.ignore_index, op);
    if (const Tensor loss = fused_cross_entropy(input, labels, o.weight, o.reduction); loss.defined()) return loss;
  }
  if (const DType dtype = input.dtype(); is_half(dtype))  // rounded once
    return cross_entropy(input.to(f32), target, o).to(dtype);
  const Labels labels = prepare(input, target, o.weight, o.ignore_index, op);
  if (o.label_smoothing > 0) return smoothed(input, labels, o);
  return finish(-pick_label(log_softmax(input, labels.axis), labels), labels, o.reduction);
}

Tensor Plain::nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& o) {
  loss::reduction(o.reduction, "nll_loss");
  if (const DType dtype = input.checked("nll_loss").dtype(); is_half(dtype))
    return nll_loss(input.to(f32), target, o).to(dtype);
  const Labels labels = prepare(input, target, o.weight, o.ignore_index, "nll_loss");
  return finish(-pick_label(input, labels), labels, o.reduction);
}

Tensor Plain::multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o) {
  const char* op = "multi_margin_loss";
  loss::reduction(o.reduction, op);
  finite(o.margin, op, "margin");
  if (o.p != 1 && o.p != 2) throw Error(Error::Kind::argument, op, "p must be 1 or 2, not " + std::to_string(o.p));
  require(input.checked(op).dim() < 3, ErrorKind::shape, op, "scores must be [N, C] or [C], not ", input);
  if (const DType dtype = input.dtype(); is_half(dtype)) return multi_margin_loss(input.to(f32), target, o).to(dtype);
  const Labels labels = prepare(input, target, o.weight, {}, op);
  const Tensor label = labels.index.unsqueeze(labels.axis);
  const Tensor others = arange(input.size(labels.axis)).to(input.device()) != label;
  const Tensor short_of = where(others, relu(o.margin - gather(input, labels.axis, label) + input), 0);
  Tensor losses = mean(o.p == 1 ? short_of : square(short_of), labels.axis);
  if (labels.factor.defined()) losses = losses * labels.factor;
  return reduced(losses, o.reduction);
}

}  // namespace volta

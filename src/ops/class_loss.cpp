// Losses of class labels. Cross-entropy is fused: its gradient, (softmax - one hot) g, is made in one pass.
#include <algorithm>
#include <cmath>

#include "backend/cpu/reduce/cross_entropy.h"
#include "core/arguments.h"
#include "core/parallel.h"
#include "graph/record.h"
#include "ops/loss.h"
#include "volta/create.h"

namespace volta {
namespace {

using loss::reduced;

// Labels ready for use: whole numbers in range, ignored ones replaced by 0 and given the factor 0.
struct Labels {
  Tensor index;   // i64, on the scores' device, [N, …]
  Tensor factor;  // weights of the labels; undefined where all are 1
  Tensor kept;    // false where ignored; undefined where none is
  int axis;       // of the classes
};

void check_shapes(const Tensor& input, const Tensor& target, int axis, const char* op) {
  Shape expected = input.shape();
  if (input.dim() > 0) expected.erase(axis);
  if (input.dim() == 0 || target.shape() != expected)
    throw Error(Error::Kind::shape, op,
                "scores " + input.shape().str() + " need labels " + expected.str() + ", not " + target.shape().str());
  if (input.size(axis) == 0) throw Error(Error::Kind::shape, op, "scores " + input.shape().str() + " have no classes");
}

void check_weight(const Tensor& weight, int64_t classes, const char* op) {
  if (weight.defined() && weight.shape() != Shape{classes})
    throw Error(Error::Kind::shape, op,
                "weight " + weight.shape().str() + " does not fit " + std::to_string(classes) + " classes");
}

// Whether any label is ignored; throws for one that is neither that nor a class.
bool check_labels(const Tensor& labels, int64_t classes, std::optional<int64_t> ignore, const char* op) {
  bool ignored = false;
  const Tensor host = labels.to("cpu").contiguous();
  const int64_t* label = host.data<int64_t>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (label[i] == ignore) ignored = true;
    else if (label[i] < 0 || label[i] >= classes)
      throw Error(Error::Kind::index, op,
                  "label " + std::to_string(label[i]) + " (number " + std::to_string(i) + ") is not one of the " +
                      std::to_string(classes) + " classes");
  }
  return ignored;
}

Labels prepare(const Tensor& input, const Tensor& target, const Tensor& weight, std::optional<int64_t> ignore,
               const char* op) {
  require_floating(input, op);
  if (!is_integral(target.checked(op).dtype()))
    throw Error(Error::Kind::dtype, op, "labels must be integers, not " + std::string(name(target.dtype())));
  const int axis = input.dim() > 1 ? 1 : 0;
  check_shapes(input, target, axis, op);
  check_weight(weight, input.size(axis), op);
  Labels labels{target.to(i64).to(input.device()), {}, {}, axis};
  const bool ignored = check_labels(labels.index, input.size(axis), ignore, op);
  if (ignored) {
    labels.kept = labels.index != *ignore;
    labels.index = where(labels.kept, labels.index, 0);
    labels.factor = labels.kept.to(input.dtype());
  }
  if (!weight.defined()) return labels;
  const Tensor weights = take(weight.to(input.dtype()), labels.index);
  labels.factor = ignored ? where(labels.kept, weights, 0) : weights;
  return labels;
}

// A mean is divided by the sum of the labels' weights.
Tensor divided(const Tensor& losses, const Labels& labels, Reduce how) {
  return how == Reduce::mean && labels.factor.defined() ? sum(losses) / sum(labels.factor) : reduced(losses, how);
}

Tensor finish(const Tensor& losses, const Labels& labels, Reduce how) {
  if (!labels.factor.defined()) return reduced(losses, how);
  // Infinite losses can be ignored, and weigh nothing under a factor of 0; finite ones still give it a gradient.
  Tensor nothing = logical_and(labels.factor == 0, !isfinite(losses));
  if (labels.kept.defined()) nothing = logical_or(nothing, !labels.kept);
  return divided(where(nothing, 0, losses) * labels.factor, labels, how);
}

Tensor pick_label(const Tensor& x, const Labels& labels) {
  return gather(x, labels.axis, labels.index.unsqueeze(labels.axis)).squeeze(labels.axis);
}

// f(first, last) on blocks of rows.
template <class F> void for_rows(int64_t rows, int64_t columns, F f) {
  const int64_t block = std::max<int64_t>(1, 8192 / columns);
  parallel((rows + block - 1) / block, [&](int64_t i) { f(i * block, std::min(rows, (i + 1) * block)); });
}

bool is_plain(const Tensor& x) {
  return x.device().is_cpu() && x.dim() == 2 && x.is_contiguous() && !is_half(x.dtype()) && x.numel() > 0;
}

cpu::CrossEntropyKernel likelihood_of(const Tensor& x) {
  return cpu::for_isa([]<cpu::Isa level>() { return &cpu::cross_entropy_kernel<level>; })(x.dtype());
}

// Of each row the loss, and in `sums` [rows, 2] what the gradient needs: the largest score, and the sum of exponentials.
template <class T> void losses_of_rows(const Tensor& x, const Tensor& index, const Tensor& out, const Tensor& sums) {
  const int64_t columns = x.size(1);
  const cpu::CrossEntropyKernel kernel = likelihood_of(x);
  for_rows(x.size(0), columns, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const T* row = x.data<T>() + r * columns;
      const cpu::ScoreSum s = kernel.sum(columns, row);
      sums.data<double>()[2 * r] = s.top, sums.data<double>()[2 * r + 1] = s.sum;
      out.data<T>()[r] = T(std::log(s.sum) - (double(row[index.data<int64_t>()[r]]) - s.top));
    }
  });
}

// (softmax - one hot) g, in one pass.
template <class T>
void gradient_of_rows(const Tensor& x, const Tensor& index, const Tensor& sums, const Tensor& g, const Tensor& out) {
  const int64_t columns = x.size(1), step = g.stride(0);
  const cpu::CrossEntropyKernel kernel = likelihood_of(x);
  for_rows(x.size(0), columns, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const T upstream = g.data<T>()[r * step];
      const double* s = sums.data<double>() + 2 * r;
      T* row = out.data<T>() + r * columns;
      kernel.scaled(columns, row, x.data<T>() + r * columns, s[0], double(upstream) / s[1]);
      row[index.data<int64_t>()[r]] -= upstream;
    }
  });
}

// g has one number for each label.
Tensor cross_entropy_back(const Tensor& g, const Tensor& x, const Tensor& sums, const Labels& labels) {
  if (sums.defined() && !grad_enabled()) {
    const Tensor d = empty_like(x);
    if (x.dtype() == f32) gradient_of_rows<float>(x, labels.index, sums, g, d);
    else gradient_of_rows<double>(x, labels.index, sums, g, d);
    return d;
  }
  const Tensor upstream = g.unsqueeze(labels.axis);
  return scatter_add(softmax(x, labels.axis) * upstream, labels.axis, labels.index.unsqueeze(labels.axis), -upstream);
}

// -log(softmax(x))[label] of each label, unweighted, or their sum or mean.
Tensor label_losses(const Tensor& x, Labels labels, Reduce how) {
  Tensor losses, sums;
  {
    const NoGrad off;
    labels.index = labels.index.contiguous();
    if (is_plain(x)) {
      losses = empty({x.size(0)}, {.dtype = x.dtype()});
      sums = empty({x.size(0), 2}, {.dtype = f64});
      if (x.dtype() == f32) losses_of_rows<float>(x, labels.index, losses, sums);
      else losses_of_rows<double>(x, labels.index, losses, sums);
    } else {
      losses = -pick_label(log_softmax(x, labels.axis), labels);
    }
    losses = reduced(losses, how);
  }
  return record("cross_entropy", losses, {x}, [x = save(x), sums, labels, how](const Tensor& g, Gradients& d) {
    const Tensor each = how == Reduce::mean ? g / double(labels.index.numel()) : g;
    d[0] = cross_entropy_back(how == Reduce::none ? each : each.expand(labels.index.shape()), d.take(x), sums, labels);
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
  loss::require_pair(x, target, "cross_entropy");
  if (x.dim() == 0) throw Error(Error::Kind::shape, "cross_entropy", "the scores need an axis of classes");
  const int axis = x.dim() > 1 ? 1 : 0;
  const int64_t classes = x.size(axis);
  check_weight(o.weight, classes, "cross_entropy");
  Tensor wanted = target;
  if (o.label_smoothing > 0) wanted = (1 - o.label_smoothing) * target + o.label_smoothing / double(classes);
  if (o.weight.defined()) wanted = wanted * along_classes(o.weight, x, axis);
  return reduced(-sum(wanted * log_softmax(x, axis), axis), o.reduction);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  const char* op = "cross_entropy";
  loss::reduction(o.reduction, op);
  require_floating(input, op);
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    throw Error(Error::Kind::argument, op,
                "label_smoothing must be in [0, 1], not " + std::to_string(o.label_smoothing));
  if (is_floating(target.checked(op).dtype())) return of_probabilities(input, target, o);
  const Labels labels = prepare(input, target, o.weight, o.ignore_index, op);
  if (o.label_smoothing > 0) return smoothed(input, labels, o);
  if (!labels.factor.defined()) return label_losses(input, labels, o.reduction);
  return finish(label_losses(input, labels, Reduce::none), labels, o.reduction);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& o) {
  loss::reduction(o.reduction, "nll_loss");
  const Labels labels = prepare(input, target, o.weight, o.ignore_index, "nll_loss");
  return finish(-pick_label(input, labels), labels, o.reduction);
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o) {
  const char* op = "multi_margin_loss";
  loss::reduction(o.reduction, op);
  finite(o.margin, op, "margin");
  if (o.p != 1 && o.p != 2) throw Error(Error::Kind::argument, op, "p must be 1 or 2, not " + std::to_string(o.p));
  if (input.checked(op).dim() > 2)
    throw Error(Error::Kind::shape, op, "scores must be [N, C] or [C], not " + input.shape().str());
  const Labels labels = prepare(input, target, o.weight, {}, op);
  const Tensor label = labels.index.unsqueeze(labels.axis);
  const Tensor short_of = relu(o.margin - gather(input, labels.axis, label) + input);
  const Tensor others = arange(input.size(labels.axis)).to(input.device()) != label;
  Tensor losses = mean(where(others, o.p == 1 ? short_of : square(short_of), 0), labels.axis);
  if (labels.factor.defined()) losses = losses * labels.factor;
  return reduced(losses, o.reduction);
}

}  // namespace volta

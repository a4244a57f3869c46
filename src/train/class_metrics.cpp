// Metrics of classes: accuracy, top-k, precision, recall, F1, the confusion matrix and the area under the ROC curve.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>
#include <volta/train/metrics.h>

#include "backend/backend.h"
#include "core/check.h"
#include "ops/elementwise.h"
#include "train/labels.h"

namespace volta {

Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; }

void require_same_device(const Tensor& prediction, const Tensor& target, const char* op) {
  require(prediction.checked(op).device() == target.checked(op).device(), ErrorKind::device, op,
          "the prediction is on ", prediction.device(), ", the target on ", target.device());
}

bool holds_scores_of_classes(const Tensor& prediction, const Tensor& target) {
  if (target.dim() < 1 || prediction.dim() != target.dim() + 1) return false;
  Shape rest = prediction.shape();
  rest.erase(1);
  return rest == target.shape();
}

Tensor flat_targets(const Tensor& target, bool binary, const char* op) {
  require(binary || !is_floating(target.dtype()), ErrorKind::dtype, op,
          "targets are class numbers of an integer dtype, got ", target.dtype());
  return (is_floating(target.dtype()) ? target > 0.5 : target).flatten().to(i64);
}

ClassLabels class_labels(const Tensor& prediction, const Tensor& target, double threshold,
                         std::optional<int64_t> classes, const char* op) {
  require_same_device(prediction, target, op);
  const bool scores = is_floating(prediction.dtype());
  if (holds_scores_of_classes(prediction, target)) {
    require(scores, ErrorKind::dtype, op, "scores of classes are floating, got ", prediction.dtype());
    const int64_t found = prediction.size(1);
    require(found > 0 && (!classes || *classes == found), ErrorKind::shape, op, "prediction ", prediction, " has ",
            found, " classes on axis 1", classes ? ", not " + std::to_string(*classes) : "");
    const Tensor best = prediction.numel() > 0 ? prediction.argmax(1) : target;
    return {best.flatten().to(i64), flat_targets(target, false, op), found};
  }
  require(prediction.shape() == target.shape(), ErrorKind::shape, op, "prediction ", prediction, " and target ", target,
          " fit neither as scores [N, C, …] of class numbers [N, …] nor as two of one shape");
  const Tensor predicted = scores ? prediction > threshold : prediction;
  require(!scores || !classes || *classes == 2, ErrorKind::shape, op, "scores of the target's shape ", target,
          " tell two classes, not ", classes.value_or(2), "; give scores [N, C, …]");
  return {predicted.flatten().to(i64), flat_targets(target, scores || classes.value_or(2) == 2, op),
          classes.value_or(2)};
}

namespace metrics {
namespace detail {

void PendingLabels::check(const Tensor& labels, int64_t classes, const char* op) {
  if (labels.numel() == 0) return;
  if (const auto range = backend(labels.device()).index_range(arg(labels))) {
    require(range->low >= 0 && range->high < classes, ErrorKind::index, op, "class number ",
            range->low < 0 ? range->low : range->high, " is not one of the ", classes, " classes");
    return;
  }
  const Tensor low = labels.amin(), excess = labels.amax() - classes;
  low_ = low_.defined() ? minimum(low_, low) : low;
  excess_ = excess_.defined() ? maximum(excess_, excess) : excess;
}

void PendingLabels::settle(const char* op) const {
  if (!low_.defined()) return;
  require(low_.item<int64_t>() >= 0, ErrorKind::index, op, "class number ", low_.item<int64_t>(), " is negative");
  require(excess_.item<int64_t>() < 0, ErrorKind::index, op, "a class number exceeds the last class by ",
          excess_.item<int64_t>() + 1);
}

}  // namespace detail

namespace {

constexpr double undefined_value = std::numeric_limits<double>::quiet_NaN();

std::optional<int64_t> told(Int classes) { return classes == 0 ? std::nullopt : std::optional<int64_t>(classes); }

double fraction(const Tensor& right, int64_t total) {
  return total == 0 ? undefined_value : double(right.item<int64_t>()) / double(total);
}

// How often each number below n occurs, or the sum of its weights.
Tensor histogram_of(const Tensor& numbers, int64_t n, const Tensor& weights) {
  return zeros({n}, {.dtype = i64, .device = numbers.device()}).scatter_add(0, numbers, weights);
}

// The labels of one batch. Bad ones are refused before anything is counted.
ClassLabels checked_labels(volta::metrics::detail::PendingLabels& pending, const Tensor& prediction,
                           const Tensor& target, double threshold, std::optional<int64_t> classes, const char* op) {
  ClassLabels labels = class_labels(prediction, target, threshold, classes, op);
  volta::metrics::detail::PendingLabels next = pending;
  next.check(labels.target, labels.classes, op);
  next.check(labels.predicted, labels.classes, op);
  pending = next;
  return labels;
}

}  // namespace

void Accuracy::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("Accuracy", [&] {
    const ClassLabels l = checked_labels(pending_, prediction, target, o_.threshold, told(o_.num_classes), "Accuracy");
    right_ = plus(right_, (l.predicted == l.target).sum());
    total_ += l.target.numel();
  });
}

double Accuracy::compute() const {
  pending_.settle("Accuracy");
  return fraction(right_, total_);
}

TopK::TopK(Int k) : k_(k) { require(k >= 1, ErrorKind::argument, "TopK", "k is at least 1, got ", k); }

void TopK::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("TopK", [&] {
    require_same_device(prediction, target, "TopK");
    require(holds_scores_of_classes(prediction, target), ErrorKind::shape, "TopK",
            "needs scores [N, C, …] and class numbers [N, …], got ", prediction, " and ", target);
    require(is_floating(prediction.dtype()), ErrorKind::dtype, "TopK", "scores are floating, got ", prediction.dtype());
    require(k_ <= prediction.size(1), ErrorKind::argument, "TopK", "k is ", k_, ", prediction ", prediction, " has ",
            prediction.size(1), " classes");
    const Tensor labels = flat_targets(target, false, "TopK");
    pending_.check(labels, prediction.size(1), "TopK");
    total_ += labels.numel();
    if (labels.numel() == 0) return;
    const Tensor best = prediction.topk(k_, 1).indices;
    right_ = plus(right_, (best == labels.reshape(target.shape()).unsqueeze(1)).sum());
  });
}

double TopK::compute() const {
  pending_.settle("TopK");
  return fraction(right_, total_);
}

ClassScores::ClassScores(const char* op, const ClassScoreOptions& options) : op_(op), o_(options) {
  const Average average = options.average.of(op, "average");
  require(options.num_classes >= 0, ErrorKind::argument, op, "num_classes is negative: ", options.num_classes);
  require(average != Average::binary || options.num_classes == 0 || options.num_classes == 2, ErrorKind::argument, op,
          "the average 'binary' is of two classes, not of ", options.num_classes, "; use macro, micro or weighted");
}

void ClassScores::reset() {
  pending_ = {};
  counts_ = {};
}

void ClassScores::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on(op_, [&] {
    volta::metrics::detail::PendingLabels pending = pending_;
    const ClassLabels l = checked_labels(pending, prediction, target, o_.threshold, told(o_.num_classes), op_);
    require(!(o_.average == Average::binary) || l.classes == 2, ErrorKind::shape, op_,
            "the average 'binary' is of two classes, prediction ", prediction, " has ", l.classes,
            "; use macro, micro or weighted");
    require(!counts_.defined() || counts_.size(1) == l.classes, ErrorKind::shape, op_, "prediction ", prediction,
            " has ", l.classes, " classes, earlier ones had ", counts_.defined() ? counts_.size(1) : 0);
    const Tensor one = ones_like(l.target), right = (l.predicted == l.target).to(i64);
    const Tensor now = stack({histogram_of(l.target, l.classes, right), histogram_of(l.predicted, l.classes, one),
                              histogram_of(l.target, l.classes, one)});
    counts_ = plus(counts_, now);
    pending_ = pending;
  });
}

double ClassScores::averaged(Score score) const {
  if (!counts_.defined()) return undefined_value;
  pending_.settle(op_);
  const std::vector<double> n = counts_.to_vector<double>();
  const size_t classes = n.size() / 3;
  const auto of = [&](double right, double predicted, double actual) {
    const double below = score == Score::precision ? predicted
                         : score == Score::recall  ? actual
                                                   : (predicted + actual) / 2;
    return below > 0 ? right / below : 0;
  };
  const auto sum = [&](size_t row) {
    return std::accumulate(n.begin() + long(row * classes), n.begin() + long((row + 1) * classes), 0.0);
  };
  const Average average = o_.average;
  if (sum(1) + sum(2) == 0) return undefined_value;
  if (average == Average::micro) return of(sum(0), sum(1), sum(2));
  if (average == Average::binary) return of(n[1], n[classes + 1], n[2 * classes + 1]);
  double total = 0, weights = 0;
  for (size_t c = 0; c < classes; ++c) {
    const double predicted = n[classes + c], actual = n[2 * classes + c];
    const double weight = average == Average::weighted ? actual : predicted + actual > 0 ? 1 : 0;
    total += weight * of(n[c], predicted, actual);
    weights += weight;
  }
  return total / weights;
}

ConfusionMatrix::ConfusionMatrix(Int classes, const ConfusionMatrixOptions& options) : classes_(classes), o_(options) {
  constexpr int64_t most = int64_t(1) << 20;  // its square is a size that can be allocated, or fails as one
  require(classes >= 1 && classes <= most, ErrorKind::argument, "ConfusionMatrix", "needs from 1 to ", most,
          " classes, got ", classes);
  options.normalize.of("ConfusionMatrix", "normalize");
}

void ConfusionMatrix::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("ConfusionMatrix", [&] {
    const ClassLabels l =
        checked_labels(pending_, prediction, target, o_.threshold, int64_t(classes_), "ConfusionMatrix");
    const Tensor cell = l.target * l.classes + l.predicted;
    counts_ = plus(counts_, histogram_of(cell, l.classes * l.classes, ones_like(cell)));
  });
}

Tensor ConfusionMatrix::compute() const {
  pending_.settle("ConfusionMatrix");
  const int64_t n = classes_;
  const Tensor counts =
      counts_.defined() ? counts_.reshape({n, n}).clone() : zeros({n, n}, {.dtype = i64, .device = Device()});
  const Normalize by = o_.normalize;
  if (by == Normalize::none) return counts;
  const Tensor sums = by == Normalize::all ? counts.sum() : counts.sum(by == Normalize::target ? 1 : 0, true);
  return counts.to(f64) / maximum(sums, 1).to(f64);
}

void AUC::update(const Tensor& prediction, const Tensor& target) {
  const NoGrad off;
  blamed_on("AUC", [&] {
    require_same_device(prediction, target, "AUC");
    require(is_floating(prediction.dtype()), ErrorKind::dtype, "AUC", "scores are floating, got ", prediction.dtype());
    const bool pairs = holds_scores_of_classes(prediction, target) && prediction.size(1) == 2;
    require(pairs || prediction.shape() == target.shape(), ErrorKind::shape, "AUC",
            "needs scores of the target's shape ", target, " or of two classes on axis 1, got ", prediction);
    const Tensor labels = flat_targets(target, true, "AUC");
    pending_.check(labels, 2, "AUC");
    const Tensor wide = prediction.to(f64);
    scores_.push_back((pairs ? wide.select(1, 1) - wide.select(1, 0) : wide).flatten().clone());
    targets_.push_back(labels.to(boolean));
  });
}

double AUC::compute() const {
  if (scores_.empty()) return undefined_value;
  pending_.settle("AUC");
  const std::vector<double> scores = cat(scores_).to_vector<double>();
  const std::vector<bool> positive = cat(targets_).to_vector<bool>();
  require(std::none_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); }), ErrorKind::argument,
          "AUC", "a score is NaN");
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  // Each positive beats the negatives below it, and half of those that are equal to it.
  double positives = 0, negatives = 0, won = 0;
  for (size_t begin = 0; begin < order.size();) {
    double here[2] = {0, 0};
    size_t end = begin;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) here[positive[order[end]]] += 1;
    won += here[1] * (negatives + here[0] / 2);
    negatives += here[0];
    positives += here[1];
    begin = end;
  }
  return positives * negatives > 0 ? won / (positives * negatives) : undefined_value;
}

}  // namespace metrics
}  // namespace volta

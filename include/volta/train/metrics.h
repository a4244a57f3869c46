// Metrics: measures of a model over many batches. Each is a plain value: update it with every batch, then compute.
//
//   metrics::Accuracy accuracy;
//   for (auto& [x, y] : batches) accuracy.update(model(x), y);
//   std::cout << accuracy.compute();
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <volta/choice.h>
#include <volta/tensor.h>

namespace volta::metrics {

// Metrics of classes take predictions in three forms:
//   scores [N, C, …] with class numbers [N, …]: the class of the largest score is the prediction;
//   floating scores of the target's shape: positive where they exceed `threshold` (for logits that is 0);
//   class numbers of the target's shape, of an integer dtype or boolean.
// Floating targets, as binary losses take them, are positive above 0.5. What is accumulated stays on the device of the
// predictions until compute(). Before the first update compute() gives NaN.

namespace detail {

[[noreturn]] void throw_empty();  // of a metric that was moved from

// Smallest and largest class number, on devices that cannot tell without waiting; compute() then refuses bad ones.
class PendingLabels {
 public:
  void check(const Tensor& labels, int64_t classes, const char* op);
  void settle(const char* op) const;

 private:
  Tensor low_, excess_;  // excess: largest label minus number of classes
};

}  // namespace detail

struct AccuracyOptions {
  double threshold = 0.5;
  Int num_classes = 0;  // of predictions that are class numbers; 0: two
};
// Fraction of right predictions: metrics::Accuracy accuracy; accuracy.update(model(x), y).
class Accuracy {
 public:
  Accuracy(const AccuracyOptions& options = {}) : o_(options) {}
  void update(const Tensor& prediction, const Tensor& target);
  double compute() const;
  void reset() { *this = Accuracy(o_); }
  std::string name() const { return "accuracy"; }

 private:
  AccuracyOptions o_;
  detail::PendingLabels pending_;
  Tensor right_;
  int64_t total_ = 0;
};

// Fraction of targets among the k largest scores; of equal scores the first counts as larger: metrics::TopK top5(5).
class TopK {
 public:
  explicit TopK(Int k);
  void update(const Tensor& prediction, const Tensor& target);  // scores [N, C, …] and class numbers [N, …]
  double compute() const;
  void reset() { *this = TopK(k_); }
  std::string name() const { return "top" + std::to_string(int64_t(k_)); }

 private:
  Int k_;
  detail::PendingLabels pending_;
  Tensor right_;
  int64_t total_ = 0;
};

// How the scores of the classes become one: of all decisions together, the mean, the mean weighted by how often a class
// is the target, or the score of class 1 of two.
enum class Average { micro, macro, weighted, binary };
constexpr std::array<std::string_view, 4> choice_names(Average) { return {"micro", "macro", "weighted", "binary"}; }
struct ClassScoreOptions {
  Choice<Average> average = Average::macro;
  double threshold = 0.5;
  Int num_classes = 0;  // of predictions that are class numbers; 0: two
};

// What precision, recall and F1 count of each class. A class that is neither predicted nor a target is left out of the
// mean; a score of 0/0 (nothing predicted, or no targets) is 0, as in scikit-learn.
class ClassScores {
 public:
  void update(const Tensor& prediction, const Tensor& target);
  void reset();

 protected:
  enum class Score { precision, recall, f1 };
  ClassScores(const char* op, const ClassScoreOptions& options);
  double averaged(Score score) const;

 private:
  const char* op_;
  ClassScoreOptions o_;
  detail::PendingLabels pending_;
  Tensor counts_;  // [3, C]: right, predicted, targets
};

// Share of right ones among what was predicted to be a class: metrics::Precision p({.average = "binary"}).
class Precision : public ClassScores {
 public:
  Precision(const ClassScoreOptions& options = {}) : ClassScores("Precision", options) {}
  double compute() const { return averaged(Score::precision); }
  std::string name() const { return "precision"; }
};
// Share of what is a class that was predicted to be: metrics::Recall r({.average = "weighted"}).
class Recall : public ClassScores {
 public:
  Recall(const ClassScoreOptions& options = {}) : ClassScores("Recall", options) {}
  double compute() const { return averaged(Score::recall); }
  std::string name() const { return "recall"; }
};
// The harmonic mean of both: metrics::F1 f1.
class F1 : public ClassScores {
 public:
  F1(const ClassScoreOptions& options = {}) : ClassScores("F1", options) {}
  double compute() const { return averaged(Score::f1); }
  std::string name() const { return "f1"; }
};

enum class Normalize { none, target, prediction, all };
constexpr std::array<std::string_view, 4> choice_names(Normalize) { return {"none", "true", "pred", "all"}; }
struct ConfusionMatrixOptions {
  Choice<Normalize> normalize = Normalize::none;  // rows, columns or everything add up to 1; empty ones stay 0
  double threshold = 0.5;
};
// How often target i was predicted as j, at [i, j]: metrics::ConfusionMatrix m(10); i64, or f64 when normalised.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(Int classes, const ConfusionMatrixOptions& options = {});
  void update(const Tensor& prediction, const Tensor& target);
  Tensor compute() const;
  void reset() { *this = ConfusionMatrix(classes_, o_); }
  std::string name() const { return "confusion_matrix"; }

 private:
  Int classes_;
  ConfusionMatrixOptions o_;
  detail::PendingLabels pending_;
  Tensor counts_;  // [C * C]
};

// Area under the ROC curve of a binary score, exact, ties counted half: metrics::AUC auc. Takes scores of the target's
// shape, or of two classes [N, 2]. Keeps every score. With targets of one class only it is NaN.
class AUC {
 public:
  void update(const Tensor& prediction, const Tensor& target);
  double compute() const;
  void reset() { *this = AUC(); }
  std::string name() const { return "auc"; }

 private:
  detail::PendingLabels pending_;
  std::vector<Tensor> scores_, targets_;
};

struct PerplexityOptions {
  int64_t ignore_index = -100;
};
// exp of the mean loss of all targets: of logits [N, C, …] and class numbers [N, …], or of mean losses.
//   metrics::Perplexity perplexity; perplexity.update(logits, tokens); perplexity.update_loss(loss, tokens.numel());
class Perplexity {
 public:
  Perplexity(const PerplexityOptions& options = {}) : o_(options) {}
  void update(const Tensor& prediction, const Tensor& target);
  void update_loss(const Tensor& mean_loss, Int count);  // a mean over `count` targets
  double compute() const;
  void reset() { *this = Perplexity(o_); }
  std::string name() const { return "perplexity"; }

 private:
  void add(const Tensor& loss, const Tensor& count);
  PerplexityOptions o_;
  Tensor loss_, count_;
};

// Mean absolute error of all elements: metrics::MAE mae; mae.update(model(x), y).
class MAE {
 public:
  void update(const Tensor& prediction, const Tensor& target);
  double compute() const;
  void reset() { *this = MAE(); }
  std::string name() const { return "mae"; }

 private:
  Tensor sum_;
  int64_t count_ = 0;
};

// Mean squared error of all elements: metrics::MSE mse; mse.update(model(x), y).
class MSE {
 public:
  void update(const Tensor& prediction, const Tensor& target);
  double compute() const;
  void reset() { *this = MSE(); }
  std::string name() const { return "mse"; }

 private:
  Tensor sum_;
  int64_t count_ = 0;
};

// Coefficient of determination, the mean over the outputs of [N, …]: metrics::R2 r2. With fewer than two samples it is
// NaN; a constant target scores 1 when met and 0 otherwise, as in scikit-learn.
class R2 {
 public:
  void update(const Tensor& prediction, const Tensor& target);
  double compute() const;
  void reset() { *this = R2(); }
  std::string name() const { return "r2"; }

 private:
  Tensor mean_, spread_, residual_;  // of each output: mean of the targets, sums of squares about it and of the errors
  int64_t count_ = 0;
};

// What a class offers to be a metric in a list; one's own needs no base.
template <class M>
concept Metric = std::copy_constructible<M> && requires(M& m, const M& c, const Tensor& x) {
  m.update(x, x);
  m.reset();
  { c.compute() } -> std::convertible_to<double>;
  { c.name() } -> std::convertible_to<std::string>;
};

// Any of them, by value: std::vector<metrics::AnyMetric> list = {metrics::Accuracy(), metrics::TopK(5)}.
class AnyMetric {
 public:
  template <class M>
  requires(!std::same_as<M, AnyMetric> && Metric<M>) AnyMetric(M metric)
      : inner_(std::make_unique<Of<M>>(std::move(metric))) {}
  AnyMetric(const AnyMetric& other) : inner_(other.held().copy()) {}
  AnyMetric(AnyMetric&&) noexcept = default;
  AnyMetric& operator=(const AnyMetric& other) { return *this = AnyMetric(other); }
  AnyMetric& operator=(AnyMetric&&) noexcept = default;
  ~AnyMetric() = default;

  void update(const Tensor& prediction, const Tensor& target) { held().update(prediction, target); }
  double compute() const { return held().compute(); }
  void reset() { held().reset(); }
  std::string name() const { return held().name(); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual void update(const Tensor& prediction, const Tensor& target) = 0;
    virtual double compute() const = 0;
    virtual void reset() = 0;
    virtual std::string name() const = 0;
  };
  template <class M> struct Of final : Base {
    explicit Of(M m) : metric(std::move(m)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Of>(metric); }
    void update(const Tensor& prediction, const Tensor& target) override { metric.update(prediction, target); }
    double compute() const override { return metric.compute(); }
    void reset() override { metric.reset(); }
    std::string name() const override { return metric.name(); }
    M metric;
  };
  Base& held() const {
    if (!inner_) detail::throw_empty();
    return *inner_;
  }
  std::unique_ptr<Base> inner_;
};

}  // namespace volta::metrics

// Metrics against scikit-learn's values (tests/oracle/metrics.py prints them), over batches, layouts, dtypes and bad input.
#include <gtest/gtest.h>

#include <cmath>

#include <volta/volta.h>

#include "taken.h"
#include "toy_device.h"

namespace volta::test {
namespace {

using namespace metrics;

constexpr int64_t samples = 60, classes = 5;

template <class F> Tensor table(int64_t columns, F f) {
  std::vector<double> values;
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t c = 0; c < columns; ++c) values.push_back(double(f(i, c)));
  return tensor(values, {samples, columns});
}
template <class F> Tensor column(F f) {
  return table(1, [&](int64_t i, int64_t) { return f(i); }).flatten();
}

Tensor scores() {
  return table(classes, [](int64_t i, int64_t c) { return (i * 37 + c * 61 + i * c * 13) % 101; }) / 101;
}
Tensor labels() {
  return column([](int64_t i) { return (i * 7 + i / 5) % 4; }).to(i64);
}
Tensor probability() {
  return column([](int64_t i) { return (i * 29) % 17; }) / 17;
}
Tensor positive() {
  return column([](int64_t i) { return (i * 29) % 17 + (i * 5) % 11 > 12; }).to(i64);
}
Tensor values() {
  return table(2, [](int64_t i, int64_t c) { return c ? (i * 19) % 29 + 1000 : (i * 31) % 23; }) / 7;
}
Tensor truths() {
  return values() + table(2, [](int64_t i, int64_t c) { return c ? (i * 3) % 7 - 3 : (i * 11) % 5 - 2; }) / 4;
}

// The value of one update, which updates with parts of the set must reach too.
template <class M> double measure(M metric, const Tensor& prediction, const Tensor& target) {
  metric.update(prediction, target);
  const double whole = metric.compute();
  for (const int64_t batch : {1, 7, 60}) {
    metric.reset();
    for (int64_t at = 0; at < samples; at += batch)
      metric.update(prediction.slice(0, at, at + batch), target.slice(0, at, at + batch));
    EXPECT_NEAR(metric.compute(), whole, 1e-12) << metric.name() << " in batches of " << batch;
  }
  M copy = metric;  // a value: what happens to the copy does not reach it
  copy.reset();
  EXPECT_TRUE(std::isnan(copy.compute())) << metric.name();
  EXPECT_NEAR(metric.compute(), whole, 1e-12) << metric.name();
  return whole;
}

template <class M> std::string refused(M metric, const Tensor& prediction, const Tensor& target, Error::Kind kind) {
  const auto r = attempt([&] { metric.update(prediction, target); });
  if (r) return "accepted";
  EXPECT_EQ(r.error().kind(), kind) << r.error().what();
  return r.error().what();
}
bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MetricsClasses, EqualScikitLearn) {
  const Tensor s = scores(), y = labels();
  EXPECT_NEAR(measure(Accuracy(), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(TopK(1), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(TopK(2), s, y), 0.4166666666666667, 1e-15);
  EXPECT_NEAR(measure(TopK(3), s, y), 0.6166666666666667, 1e-15);
  EXPECT_EQ(measure(TopK(5), s, y), 1);
  EXPECT_NEAR(measure(Precision({.average = "micro"}), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(Recall({.average = "micro"}), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(F1({.average = "micro"}), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(Precision(), s, y), 0.23255411255411254, 1e-15);
  EXPECT_NEAR(measure(Recall(), s, y), 0.1833333333333333, 1e-15);
  EXPECT_NEAR(measure(F1(), s, y), 0.19930502584964827, 1e-15);
  EXPECT_NEAR(measure(Precision({.average = "weighted"}), s, y), 0.3182683982683982, 1e-15);
  EXPECT_NEAR(measure(Recall({.average = "weighted"}), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(F1({.average = "weighted"}), s, y), 0.2624629205864904, 1e-15);
}

TEST(MetricsClasses, OfTwoEqualScikitLearn) {
  const Tensor p = probability(), y = positive();
  for (const Tensor& target : {y, y.to(boolean), y.to(f32), y.to(u8)}) {
    EXPECT_NEAR(measure(Accuracy(), p, target), 0.8166666666666667, 1e-15);
    EXPECT_NEAR(measure(Precision({.average = "binary"}), p, target), 0.896551724137931, 1e-15);
    EXPECT_NEAR(measure(Recall({.average = "binary"}), p, target), 0.7647058823529411, 1e-15);
    EXPECT_NEAR(measure(F1({.average = "binary"}), p, target), 0.8253968253968254, 1e-15);
    EXPECT_NEAR(measure(AUC(), p, target), 0.9242081447963801, 1e-15);
  }
  const Tensor logit = (p - 0.5) * 8, pairs = stack({-logit, logit}, 1);
  EXPECT_NEAR(measure(Accuracy({.threshold = 0}), logit, y), 0.8166666666666667, 1e-15);
  EXPECT_NEAR(measure(AUC(), logit, y), 0.9242081447963801, 1e-15);
  EXPECT_NEAR(measure(AUC(), pairs, y), 0.9242081447963801, 1e-15);
  EXPECT_NEAR(measure(Accuracy(), p > 0.5, y), 0.8166666666666667, 1e-15);
  EXPECT_EQ(measure(AUC(), full({samples}, 0.25), y), 0.5);
}

TEST(MetricsClasses, ConfusionMatrixCountsTargetsInRows) {
  const std::vector<int64_t> want = {6, 5, 3, 5, 5, 4, 4, 0, 2, 2, 2, 3, 2, 2, 3, 2, 3, 2, 2, 3, 0, 0, 0, 0, 0};
  ConfusionMatrix whole(classes), parts(classes), of_labels(classes);
  whole.update(scores(), labels());
  of_labels.update(scores().argmax(1), labels());
  for (int64_t at = 0; at < samples; at += 16)
    parts.update(scores().slice(0, at, at + 16), labels().slice(0, at, at + 16));
  EXPECT_EQ(whole.compute().to_vector<int64_t>(), want);
  EXPECT_EQ(parts.compute().to_vector<int64_t>(), want);
  EXPECT_EQ(of_labels.compute().to_vector<int64_t>(), want);
  const auto row = [](const char* how) {
    ConfusionMatrix m(classes, {.normalize = how});
    m.update(scores(), labels());
    return m.compute()[0].to_vector<double>();
  };
  EXPECT_NEAR(row("true")[1], 0.20833333333333334, 1e-15);
  EXPECT_NEAR(row("pred")[4], 0.38461538461538464, 1e-15);
  EXPECT_NEAR(row("all")[0], 0.1, 1e-15);
  parts.reset();
  EXPECT_TRUE(equal(parts.compute(), zeros({classes, classes}, {.dtype = i64})));
}

TEST(MetricsValues, EqualScikitLearn) {
  EXPECT_NEAR(measure(MAE(), values(), truths()), 0.3645833333333333, 1e-13);
  EXPECT_NEAR(measure(MSE(), values(), truths()), 0.1890625, 1e-13);
  EXPECT_NEAR(measure(R2(), values(), truths()), 0.8646156860282762, 1e-12);
  EXPECT_NEAR(measure(Perplexity(), scores(), labels()), 5.061167872232257, 1e-13);
}

// Far from zero the sum of squares about the mean has all its digits.
TEST(MetricsValues, R2HasItsDigitsFarFromZero) {
  R2 far;
  const Tensor v = values() + 1e6, t = truths() + 1e6;  // 1e6 in f64 has steps of 1e-10
  for (int64_t at = 0; at < samples; at += 7) far.update(v.slice(0, at, at + 7), t.slice(0, at, at + 7));
  EXPECT_NEAR(far.compute(), measure(R2(), values(), truths()), 1e-9);
}

TEST(MetricsValues, PerplexityOfLossesAndIgnoredTargets) {
  const Tensor y = labels().clone();
  y.slice(0, 0, 20).fill_(-100);
  Perplexity ignoring, rest, losses;
  ignoring.update(scores(), y);
  rest.update(scores().slice(0, 20, samples), y.slice(0, 20, samples));
  EXPECT_NEAR(ignoring.compute(), rest.compute(), 1e-13);
  for (int64_t at = 20; at < samples; at += 8) {
    const Tensor part = y.slice(0, at, at + 8);
    losses.update_loss(cross_entropy(scores().slice(0, at, at + 8), part), part.numel());
  }
  EXPECT_NEAR(losses.compute(), rest.compute(), 1e-13);
  losses.update_loss(tensor(1e30), 0);
  EXPECT_NEAR(losses.compute(), rest.compute(), 1e-13);
}

TEST(MetricsValues, UndefinedCases) {
  R2 one, constant;
  one.update(ones({1}), ones({1}));
  EXPECT_TRUE(std::isnan(one.compute()));
  constant.update(ones({4}), ones({4}));
  EXPECT_EQ(constant.compute(), 1);
  constant.update(zeros({4}), ones({4}));
  EXPECT_EQ(constant.compute(), 0);
  for (const int64_t n : {3, 10, 100'000}) {  // whose mean is not met to the last bit
    R2 tenth;
    for (int batch = 0; batch < 3; ++batch) tenth.update(ones({n}), full({n}, 0.1, {.dtype = f64}));
    EXPECT_EQ(tenth.compute(), 0) << n;
  }
  AUC same;
  same.update(rand({5}), ones({5}));
  EXPECT_TRUE(std::isnan(same.compute()));
  for (const bool positives : {false, true}) {  // nothing predicted, or no targets: 0
    F1 f1({.average = "binary"});
    f1.update(positives ? ones({3}) : zeros({3}), positives ? zeros({3}) : ones({3}));
    EXPECT_EQ(f1.compute(), 0);
  }
  Accuracy empty;
  empty.update(zeros({0, 3}), zeros({0}, {.dtype = i64}));
  EXPECT_TRUE(std::isnan(empty.compute()));
  MAE none;
  none.update(zeros({0}), zeros({0}));
  EXPECT_TRUE(std::isnan(none.compute()));
}

TEST(MetricsInput, LayoutsAndDtypes) {
  const Tensor s = scores(), y = labels();
  const double want = measure(F1(), s, y);
  const Tensor turned = s.t().clone().t(), spread = stack({s, s}, 2).select(2, 1);
  for (const Tensor& layout : {turned, spread, s.to(f32), s.flip(0).flip(0)})
    for (const DType dtype : {i8, i16, i32, i64, u8, u16, u32, u64})
      EXPECT_NEAR(measure(F1(), layout, y.to(dtype)), want, 1e-15);
  const Tensor images = s.reshape({6, 10, classes}).permute({0, 2, 1}), wanted = y.reshape({6, 10});
  Accuracy flat, deep;
  flat.update(s, y);
  deep.update(images, wanted);
  EXPECT_EQ(flat.compute(), deep.compute());
  TopK top(2), deep_top(2);
  top.update(s, y);
  deep_top.update(images, wanted);
  EXPECT_EQ(top.compute(), deep_top.compute());
  Tensor recorded = s.clone().requires_grad_();
  AUC kept;
  const Tensor p = probability().clone();
  kept.update(p, positive());
  const double before = kept.compute();
  Tensor changed = p;
  changed.fill_(0);
  EXPECT_EQ(kept.compute(), before);
  EXPECT_NEAR(measure(Accuracy(), recorded * 1, y), flat.compute(), 1e-15);
}

TEST(MetricsInput, BadInputNamesTheMetric) {
  using enum Error::Kind;
  const Tensor s = scores(), y = labels();
  const Tensor high = y.clone(), low = y.clone();
  high.slice(0, 3, 4).fill_(5);
  low.slice(0, 3, 4).fill_(-1);
  const auto each = [&](auto metric, const char* name) {
    EXPECT_TRUE(mentions(refused(metric, s, high, index), name)) << refused(metric, s, high, index);
    EXPECT_TRUE(mentions(refused(metric, s, low, index), "-1")) << name;
    EXPECT_TRUE(mentions(refused(metric, s, y.slice(0, 0, 9), shape), name));
    EXPECT_TRUE(mentions(refused(metric, s, y.to(f32), dtype), name));
    EXPECT_NE(refused(metric, s, Tensor(), argument), "accepted");
    EXPECT_NE(refused(metric, Tensor(), y, argument), "accepted");
    (void)attempt([&] { metric.update(s, high); });  // refused, and nothing was counted
    metric.update(s, y);
    auto fresh = metric;
    fresh.reset();
    fresh.update(s, y);
    if constexpr (Metric<decltype(metric)>) EXPECT_EQ(metric.compute(), fresh.compute()) << name;
    else EXPECT_TRUE(equal(metric.compute(), fresh.compute()));
  };
  each(Accuracy(), "Accuracy");
  each(TopK(2), "TopK");
  each(Precision(), "Precision");
  each(Recall(), "Recall");
  each(F1(), "F1");
  each(ConfusionMatrix(classes), "ConfusionMatrix");
  each(Perplexity(), "Perplexity");
  EXPECT_TRUE(mentions(refused(TopK(6), s, y, argument), "6"));
  EXPECT_TRUE(mentions(refused(F1({.average = "binary"}), s, y, shape), "binary"));
  EXPECT_TRUE(mentions(refused(ConfusionMatrix(4), s, y, shape), "5"));
  EXPECT_TRUE(mentions(refused(MAE(), s, y, shape), "MAE"));
  EXPECT_TRUE(mentions(refused(R2(), tensor(1.0), tensor(1.0), shape), "R2"));
  EXPECT_TRUE(mentions(refused(AUC(), s, y, shape), "AUC"));
  EXPECT_TRUE(mentions(refused(AUC(), y, y, dtype), "AUC"));
  EXPECT_TRUE(mentions(refused(Accuracy(), s.to(i64), y, dtype), "floating"));
  AUC broken;
  broken.update(full({3}, std::nan("")), tensor({0, 1, 1}));
  EXPECT_THROW((void)broken.compute(), Error);
  EXPECT_THROW(TopK(0), Error);
  EXPECT_THROW(ConfusionMatrix(0), Error);
  EXPECT_THROW(ConfusionMatrix(int64_t(1) << 62), Error);
  EXPECT_THROW(F1({.average = "samples"}), Error);
  EXPECT_THROW(F1({.average = "binary", .num_classes = 3}), Error);
}

// On a device that cannot tell the range of indices, bad class numbers are refused when the result is asked for.
TEST(MetricsInput, DevicesThatAnswerLater) {
  const Device toy = toy_device();
  const Tensor s = scores().to(toy), y = labels().to(toy);
  EXPECT_NEAR(measure(Accuracy(), s, y), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(measure(F1(), s, y), 0.19930502584964827, 1e-15);
  EXPECT_NEAR(measure(R2(), values().to(toy), truths().to(toy)), 0.8646156860282762, 1e-12);
  EXPECT_NEAR(measure(AUC(), probability().to(toy), positive().to(toy)), 0.9242081447963801, 1e-15);
  Accuracy late;
  late.update(s, (y + 3));
  EXPECT_THROW((void)late.compute(), Error);
  Accuracy negative;
  negative.update(s, y - 1);
  EXPECT_THROW((void)negative.compute(), Error);
  EXPECT_TRUE(mentions(refused(Accuracy(), s, labels(), Error::Kind::device), "Accuracy"));
}

struct Largest {  // one's own metric is any class with these four
  double value = 0;
  void update(const Tensor& prediction, const Tensor&) { value = std::max(value, prediction.max().item<double>()); }
  double compute() const { return value; }
  void reset() { value = 0; }
  std::string name() const { return "largest"; }
};

TEST(MetricsAny, ListsHoldValues) {
  std::vector<AnyMetric> list = {Accuracy(), TopK(3), Largest()};
  for (AnyMetric& m : list) m.update(scores(), labels());
  const std::vector<AnyMetric> copies = list;
  for (AnyMetric& m : list) m.reset();
  EXPECT_NEAR(copies[0].compute(), 0.23333333333333334, 1e-15);
  EXPECT_NEAR(copies[1].compute(), 0.6166666666666667, 1e-15);
  EXPECT_GT(copies[2].compute(), 0.9);
  EXPECT_EQ(list[2].compute(), 0);
  EXPECT_EQ(copies[1].name(), "top3");
  AnyMetric first = list[0];
  const AnyMetric taken = volta::test::taken(first);
  EXPECT_EQ(taken.name(), "accuracy");
  EXPECT_FALSE(attempt([&] { return first.compute(); }));
  EXPECT_FALSE(attempt([&] { return AnyMetric(first).name(); }));
}

// Resident memory does not grow with the number of batches.
TEST(MetricsMemory, StaysFlat) {
  Accuracy accuracy;
  F1 f1;
  R2 r2;
  Perplexity perplexity;
  const Tensor s = scores(), y = labels(), v = values(), t = truths();
  const auto batch = [&] {
    accuracy.update(s, y);
    f1.update(s, y);
    r2.update(v, t);
    perplexity.update(s, y);
  };
  for (int i = 0; i < 20; ++i) batch();
  const int64_t before = memory::stats().in_use;
  for (int i = 0; i < 2000; ++i) batch();
  EXPECT_LE(memory::stats().in_use, before + 65536);
}

}  // namespace
}  // namespace volta::test

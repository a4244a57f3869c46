// Cross-entropy of labels on every device: rows of all lengths, what is not finite, weights, ignored labels, means.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "backend/cross_entropy.h"
#include "ops/elementwise.h"
#include "samples.h"

namespace volta::test {
namespace {

// A weight of 0 hides what is infinite, an ignored label anything, but NaN is not hidden by a weight. Rows short and long,
// as devices have loops for: by one thread, by a warp, by a block; of images.
TEST(CrossEntropyRows, OfNaNStayUnderAWeightOfZero) {
  const Tensor labels = tensor({0, 1}), none = tensor({-100, 1});
  for (const Device& device : devices())
    for (const int64_t classes : {2, 7, 64, 65, 4096, 4097})
      for (const double odd : {double(NAN), double(-INFINITY)})
        for (const DType t : {f16, bf16, f32, f64})
          for (const char* how : {"none", "mean", "sum"}) {
            Tensor scores = zeros({2, classes}), weight = ones({classes});
            scores.select(0, 0).fill_(1), scores.select(0, 0).select(0, 0).fill_(odd);
            weight[0] = 0;
            weight = weight.to(t).to(device);
            const Tensor x = scores.to(t).to(device).requires_grad_();
            const auto at = [&](const Tensor& y) { return y.to(device); };
            const auto any = [](const Tensor& mask) { return mask.any().item<bool>(); };
            const auto check = [&](const Tensor& loss, bool stays) {
              SCOPED_TRACE(std::to_string(classes) + " of " + std::string(name(t)) + " on " + device.str() + " " + how +
                           " " + std::to_string(odd));
              EXPECT_EQ(any(isnan(loss)), stays);
              EXPECT_FALSE(any(isinf(loss)));
              for (const bool again : {true, false}) {
                const Tensor d = isnan(grad(loss.sum(), x, {.create_graph = again}));
                EXPECT_EQ(any(d[0]), stays);
                EXPECT_FALSE(any(d[1]));
              }
            };
            check(cross_entropy(x, at(labels), {.weight = weight, .reduction = how}), std::isnan(odd));
            check(cross_entropy(x, at(none), {.weight = weight, .reduction = how}), false);
            check(cross_entropy(x, at(none), {.reduction = how}), false);
            const Tensor image = x.unsqueeze(2).expand({2, classes, 3});
            check(cross_entropy(image, at(labels).unsqueeze(1).expand({2, 3}), {.weight = weight, .reduction = how}),
                  std::isnan(odd));
            const Tensor loss = nll_loss(x, at(labels), {.weight = weight, .reduction = how});
            EXPECT_EQ(any(isnan(loss)), std::isnan(odd));
            EXPECT_FALSE(any(isnan(nll_loss(x, at(none), {.reduction = how}))));
          }
}

// Rows without a softmax: their largest score is infinite. A finite row beside them stays as it is.
TEST(CrossEntropyRows, WithoutASoftmaxAreNaN) {
  for (const Device& device : devices())
    for (const int64_t classes : {2, 7, 64, 65, 4096, 4097})
      for (const DType t : {f16, bf16, f32, f64})
        for (const bool weighs : {false, true}) {
          SCOPED_TRACE(std::to_string(classes) + " of " + std::string(name(t)) + " on " + device.str());
          Tensor scores = zeros({4, classes}), weight = ones({classes});
          scores.select(0, 0).fill_(-INFINITY);
          scores.select(0, 1).select(0, 0).fill_(INFINITY);
          scores.select(0, 2).select(0, 1).fill_(INFINITY);
          weight[0] = 0;
          const Tensor x = scores.to(t).to(device).requires_grad_(), labels = tensor({0, 0, 0, 1}).to(device);
          CrossEntropyOptions o{.reduction = "none"};
          if (weighs) o.weight = weight.to(t).to(device);
          const Tensor loss = cross_entropy(x, labels, o), d = grad(loss.sum(), x);
          EXPECT_TRUE(isnan(loss.narrow(0, 0, 3)).all().item<bool>()) << loss;
          EXPECT_TRUE(isnan(d.narrow(0, 0, 3)).all().item<bool>());
          EXPECT_TRUE(isfinite(loss[3]).item<bool>() && isfinite(d[3]).all().item<bool>());
        }
}

// Rows short and long, by packs or not, with ignored labels, weights, strides and scores of minus infinity.
TEST(CrossEntropyRows, EqualTheFormulaOnEveryDevice) {
  manual_seed(21);
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const int64_t classes : {3, 8, 9, 64, 1000, 2056, 2057, 9000})
        for (int form = 0; form < 4; ++form) {
          SCOPED_TRACE(std::to_string(classes) + " of " + std::string(name(dtype)) + " on " + device.str() + ", form " +
                       std::to_string(form));
          Tensor scores = (randn({11, classes}) * 3).to(dtype);
          if (form == 1) scores = (randn({11, classes + 8}) * 3).to(dtype).slice(1, 0, classes);
          if (form == 2) scores.slice(1, 0, classes - 1).select(0, 4).fill_(-INFINITY);
          Tensor labels = randint(0, classes, {11});
          labels[4] = classes - 1, labels[0] = 0, labels[10] = classes - 1;
          CrossEntropyOptions o{.reduction = "none"};
          if (form == 3) o.weight = (rand({classes}) + 0.5).to(dtype), o.ignore_index = labels[2].item<int64_t>();
          const Tensor x = scores.to(device).detach().requires_grad_(),
                       exact = scores.to(f64).detach().requires_grad_();
          CrossEntropyOptions there = o, wide = o;
          if (form == 3) there.weight = o.weight.to(device), wide.weight = o.weight.to(f64);
          const Tensor loss = cross_entropy(x, labels.to(device), there), g = rand({11}).to(dtype);
          Tensor want = -log_softmax(exact, 1).gather(1, labels.unsqueeze(1)).squeeze(1);
          if (form == 3) want = where(labels == o.ignore_index, 0, want * wide.weight.index_select(0, labels));
          const double near = dtype == f64 ? 1e-11 : dtype == f32 ? 2e-5 : dtype == f16 ? 2e-2 : 1e-1;
          EXPECT_TRUE(allclose(loss.to("cpu").to(f64), want, {.rtol = near, .atol = near}));
          const Tensor slope = grad(loss, x, {.grad_outputs = {g.to(device)}}).to("cpu").to(f64);
          const Tensor answer = grad(want, exact, {.grad_outputs = {g.to(f64)}});
          EXPECT_TRUE(allclose(slope, answer, {.rtol = near, .atol = near / 5}));
        }
}

// A mean in a dtype on a device, with ignored labels and weights or without, and the same by the formula in f64.
struct MeanCase {
  Tensor scores, labels, weight = {};  // on the CPU
  int64_t classes, ignore = -100;
  MeanCase(const Shape& shape, DType dtype, bool ignores, bool weighs)
      : scores((randn(shape) * 3).to(dtype)), classes(shape[1]) {
    Shape without = shape;
    without.erase(1);
    labels = randint(0, classes, without);
    labels.flatten()[0] = 0;
    if (ignores) ignore = 1;
    if (weighs) weight = (rand({classes}) + 0.5).to(dtype);
  }
  Tensor loss(const Tensor& x) const {
    CrossEntropyOptions o{.ignore_index = ignore};
    if (weight.defined()) o.weight = weight.to(x.device());
    return cross_entropy(x, labels.to(x.device()), o);
  }
  Tensor formula(const Tensor& x) const {
    const Tensor weights = weight.defined() ? weight.to(f64) : ones({classes}, {.dtype = f64});
    const Tensor factor = where(labels == ignore, 0, take(weights, labels));
    return -sum(log_softmax(x, 1).gather(1, labels.unsqueeze(1)).squeeze(1) * factor) / sum(factor);
  }
  Tensor leaf(const Device& device) const { return scores.to(device).detach().clone().requires_grad_(); }
  Tensor exact() const { return scores.to(f64).detach().clone().requires_grad_(); }
};

double nearness(DType dtype) { return dtype == f64 ? 1e-11 : dtype == f32 ? 1e-5 : dtype == f16 ? 4e-3 : 3e-2; }
Tensor on_host(const Tensor& x) { return x.detach().to("cpu").to(f64); }

TEST(CrossEntropyMean, EqualsTheFormulaAndRepeatsItsBits) {
  manual_seed(22);
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const int64_t rows : {1, 2, 1000, 5000, 70000})
        for (int form = 0; form < 4; ++form) {
          SCOPED_TRACE(std::to_string(rows) + " of " + std::string(name(dtype)) + " on " + device.str() + ", form " +
                       std::to_string(form));
          const MeanCase c({rows, 5}, dtype, form % 2 == 1, form / 2 == 1);
          const Tensor x = c.leaf(device), exact = c.exact(), want = c.formula(exact), loss = c.loss(x);
          const double near = nearness(dtype), g = 0.75;
          EXPECT_EQ(loss.dtype(), dtype);
          EXPECT_TRUE(allclose(on_host(loss), want, {.rtol = near, .atol = near}));
          const auto slope = [&](const Tensor& y, const Tensor& by) {
            return grad(y, by, {.grad_outputs = {full({}, g, {.device = by.device()}).to(by.dtype())}});
          };
          const Tensor found = slope(loss, x);
          const double smallest = dtype == f16 ? 2e-7 : 0;
          EXPECT_TRUE(
              allclose(on_host(found), slope(want, exact), {.rtol = near, .atol = near / double(rows) + smallest}));
          const Tensor again = c.loss(x);
          EXPECT_TRUE(equal(again.detach(), loss.detach()));
          EXPECT_TRUE(equal(slope(again, x), found));
        }
}

// Those that a device may take in one go, and a little more.
TEST(CrossEntropyMean, OfSmallBatchesEqualsTheFormula) {
  manual_seed(25);
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const Shape& shape : {Shape{1, 10}, Shape{64, 10}, Shape{63, 16}, Shape{64, 256}, Shape{65, 10},
                                 Shape{64, 257}, Shape{1024, 7}, Shape{1025, 7}, Shape{4, 32, 256}, Shape{4, 33, 256}})
        for (int form = 0; form < 4; ++form) {
          SCOPED_TRACE(shape.str() + " of " + std::string(name(dtype)) + " on " + device.str() + ", form " +
                       std::to_string(form));
          const MeanCase c(shape, dtype, form % 2 == 1, form / 2 == 1);
          const Tensor x = c.leaf(device), exact = c.exact(), want = c.formula(exact), loss = c.loss(x);
          const double near = nearness(dtype);
          EXPECT_TRUE(allclose(on_host(loss), want, {.rtol = near, .atol = near}));
          const Tensor found = grad(loss, x), wanted = grad(want, exact);
          const double smallest = dtype == f16 ? 2e-7 : 0;
          const double count = double(c.labels.numel());
          EXPECT_TRUE(allclose(on_host(found), wanted, {.rtol = near, .atol = near / count + smallest}));
          EXPECT_TRUE(equal(c.loss(x).detach(), loss.detach()));
        }
}

TEST(CrossEntropyMean, HasSecondDerivativesAndTakesImages) {
  manual_seed(23);
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const Shape& shape : {Shape{9, 5}, Shape{4, 5, 3}})
        for (int form = 0; form < 4; ++form) {
          SCOPED_TRACE(std::string(name(dtype)) + " on " + device.str() + ", form " + std::to_string(form));
          const MeanCase c(shape, dtype, form % 2 == 1, form / 2 == 1);
          const Tensor x = c.leaf(device), exact = c.exact(), v = rand(shape).to(dtype);
          const double near = nearness(dtype);
          const auto both = [&](const Tensor& loss, const Tensor& by) {
            const Tensor first = grad(loss * 3, by, {.create_graph = true});
            return std::pair(first, grad(sum(first * v.to(by.device()).to(by.dtype())), by));
          };
          const auto [first, second] = both(c.loss(x), x);
          const auto [want_first, want_second] = both(c.formula(exact), exact);
          EXPECT_TRUE(allclose(on_host(first), want_first.detach(), {.rtol = near, .atol = near}));
          EXPECT_TRUE(allclose(on_host(second), want_second, {.rtol = near, .atol = near}));
          EXPECT_TRUE(allclose(on_host(grad(c.loss(x) * 3, x)), want_first.detach(), {.rtol = near, .atol = near}));
        }
}

TEST(CrossEntropyMean, OfIgnoredLabelsAloneIsNaNAndItsGradientZero) {
  for (const Device& device : devices())
    for (const DType dtype : {f32, f64})
      for (const int64_t rows : {1, 40000}) {
        const Tensor x = randn({rows, 3}).to(dtype).to(device).requires_grad_();
        const Tensor loss = cross_entropy(x, full({rows}, -100).to(device));
        EXPECT_TRUE(std::isnan(loss.item<double>())) << device.str();
        EXPECT_TRUE(equal(grad(loss * 2, x), zeros_like(x))) << device.str();
      }
}

// Without factors the divisor is the number of labels: what ops ask of a device that can tell that none is ignored.
TEST(CrossEntropyMean, CountsLabelsWhereNoFactorsAreWanted) {
  manual_seed(24);
  for (const Device& device : devices())
    for (const DType dtype : {f16, bf16, f32, f64})
      for (const int64_t rows : {1, 1000, 70000}) {
        if (device.is_cpu() && is_half(dtype)) continue;
        SCOPED_TRACE(std::to_string(rows) + " of " + std::string(name(dtype)) + " on " + device.str());
        const Options here{.dtype = dtype, .device = device};
        const Tensor x = (randn({rows, 5, 1}) * 3).to(dtype), labels = randint(0, 5, {rows, 1});
        const Tensor scores = x.to(device), at = labels.to(device), losses = empty({rows, 1}, here),
                     statistics = empty({rows, 1, 2}, {.dtype = f64, .device = device}), mean = empty({}, here),
                     d = empty(scores.shape(), here), g = full({}, 2, here).expand({rows, 1});
        CrossEntropyCall call{};
        call.scores = arg(scores), call.labels = arg(at);
        call.losses = arg(losses), call.statistics = arg(statistics), call.mean = arg(mean);
        backend(device).cross_entropy(call);
        CrossEntropyBackwardCall back{arg(scores), arg(at), {}, arg(statistics), arg(g), arg(d)};
        back.divisor.scalar = rows;
        backend(device).cross_entropy_backward(back);
        const Tensor exact = x.squeeze(2).to(f64).requires_grad_();
        const Tensor want = -volta::mean(log_softmax(exact, 1).gather(1, labels));
        const double near = nearness(dtype);
        EXPECT_TRUE(allclose(on_host(mean), want.detach(), {.rtol = near, .atol = near}));
        const double smallest = dtype == f16 ? 2e-7 : 0;
        EXPECT_TRUE(allclose(on_host(d).squeeze(2), grad(want * 2, exact),
                             {.rtol = near, .atol = near / double(rows) + smallest}));
      }
}

}  // namespace
}  // namespace volta::test

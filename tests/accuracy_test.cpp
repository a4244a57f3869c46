// Formulas that would cancel or leave the range of their dtype on the way to a result within it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <volta/volta.h>

#include "samples.h"

namespace volta::test {
namespace {

bool all_zero(const Tensor& x) { return x.count_nonzero().item<int64_t>() == 0; }

constexpr double values[] = {0.1, 1.1, -3.3, 1e-3, 12345.678, 7e10};
constexpr int64_t counts[] = {2, 3, 7, 16, 63, 257, 1000, 1025, 4097, 100003};

TEST(AccuracyEqualValues, HaveNoSpread) {
  for (const Device& device : devices())
    for (const DType t : {f32, f64, f16, bf16})
      for (const double v : values)
        for (const int64_t n : counts) {
          if (t == f16 && std::abs(v) > 6e4) continue;
          const std::string what =
              std::string(name(t)) + " " + std::to_string(v) + " " + std::to_string(n) + " on " + device.str();
          const Options here{.dtype = t, .device = device};
          const Tensor x = full({n}, v, here), rows = full({3, n}, v, here), columns = full({n, 3}, v, here);
          EXPECT_TRUE(all_zero(var(x))) << what;
          EXPECT_TRUE(all_zero(std_dev(x))) << what;
          EXPECT_TRUE(all_zero(std_dev(rows, 1))) << what;
          EXPECT_TRUE(all_zero(std_dev(columns, 0))) << what;
          EXPECT_TRUE(all_zero(std_dev(columns.t(), 1))) << what;
        }
}

TEST(AccuracyEqualValues, AreNormalizedToZero) {
  for (const Device& device : devices())
    for (const DType t : {f32, f64, f16})
      for (const double v : {0.1, 1.1, -3.3, 123.456, 1e20})
        for (const int64_t n : counts) {
          if (t == f16 && v > 6e4) continue;
          const std::string what =
              std::string(name(t)) + " " + std::to_string(v) + " " + std::to_string(n) + " on " + device.str();
          const auto equals = [&](const Shape& shape) { return full(shape, v, {.dtype = t, .device = device}); };
          EXPECT_TRUE(all_zero(layer_norm(equals({2, n}), {n}))) << what;
          EXPECT_TRUE(all_zero(group_norm(equals({2, 4, n}), 2))) << what;
          EXPECT_TRUE(all_zero(instance_norm(equals({2, 3, n})))) << what;
          EXPECT_TRUE(all_zero(batch_norm(equals({n, 3}), {}, {}, {}, {}, true))) << what;
          EXPECT_TRUE(all_zero(batch_norm(equals({2, 3, n}), {}, {}, {}, {}, true))) << what;
        }
  // And as ordinary ops, with which gradients are differentiated.
  const Tensor x = full({2, 257}, 1.1).requires_grad_();
  const Tensor d = grad(layer_norm(x, {257}).sum(), x, {.create_graph = true});
  EXPECT_TRUE(isfinite(d).all().item<bool>());
}

TEST(AccuracySpread, OfLargeNumbersIsFinite) {
  const auto check = [](const Tensor& x, int64_t dim) {
    const Tensor wanted = std_dev(x.to(f64), dim), found = std_dev(x, dim);
    EXPECT_TRUE(allclose(found.to(f64), wanted, {.rtol = 1e-5})) << found.str() << wanted.str();
  };
  const Tensor near = tensor<float>({1e38f, 1.001e38f, 1.002e38f, 0.999e38f}),
               far = tensor<float>({3e38f, -3e38f, 1e38f, 2e37f});
  for (const Device& device : devices()) {
    SCOPED_TRACE(device.str());
    for (const Tensor& numbers : {near, far}) {
      const Tensor x = numbers.to(device);
      check(x, 0);
      check(x.repeat({100}), 0);
      check(x.repeat({100'000}), 0);  // in pieces
      check(x.unsqueeze(1).repeat({1, 40}), 0);
      check(x.unsqueeze(0).repeat({5, 70}), 1);
    }
    const auto at = [&](const std::vector<float>& numbers) { return tensor(numbers).to(device); };
    EXPECT_TRUE(std::isinf(var(far.to(device)).item<float>()));  // what f32 does not hold
    EXPECT_TRUE(std::isnan(var(at({1, INFINITY})).item<float>()));
    EXPECT_TRUE(std::isnan(std_dev(at({1, NAN})).item<float>()));
    EXPECT_FLOAT_EQ(std_dev(at({1e25f, -1e25f}), 0, {.correction = 0}).item<float>(), 1e25f);
    // A deviation that f32 holds, of squares that it does not; the rows beside it stay as they were.
    const Tensor rows = stack({at({1e19f, -1e19f, 1e19f, -1e19f}), at({1, 2, 3, 4}), at({5, 5, 5, 5})}),
                 found = var(rows, 1, {.correction = 0}).to("cpu");
    EXPECT_FLOAT_EQ(found[0].item<float>(), 1e38f);
    EXPECT_FLOAT_EQ(found[1].item<float>(), 1.25f);
    EXPECT_EQ(found[2].item<float>(), 0);
  }
  EXPECT_FLOAT_EQ(var(tensor<float>({1e8f + 8, 1e8f, 1e8f - 8})).item<float>(), 64);
}

TEST(AccuracySpread, OfNumbersNearTheEndsOfTheRange) {
  for (const Device& device : devices()) {
    for (const float scale : {1e38f, 1e30f, 1e-22f, 1e-25f, 1e-30f}) {
      const std::string what = std::to_string(std::log10(scale)) + " on " + device.str();
      const Tensor x = (tensor<float>({1, 2, 3, -1, 2.5f}).to(device) * scale).requires_grad_();
      const Tensor wide = x.detach().to(f64).requires_grad_();
      EXPECT_TRUE(allclose(std_dev(x).to(f64), std_dev(wide), {.rtol = 1e-5, .atol = 0})) << what;
      EXPECT_TRUE(allclose(grad(std_dev(x), x).to(f64), grad(std_dev(wide), wide), {.rtol = 1e-4, .atol = 1e-7}))
          << what;
      const Tensor rows = x.detach().unsqueeze(0).repeat({3, 20});
      EXPECT_TRUE(allclose(std_dev(rows, 1).to(f64), std_dev(rows.to(f64), 1), {.rtol = 1e-5, .atol = 0})) << what;
    }
    EXPECT_EQ(std_dev(full({300}, 1e-30f, {.device = device})).item<float>(), 0);
  }
}

TEST(AccuracySpread, OfNothingIsNaNHoweverCorrected) {
  const Tensor none = zeros({0}), rows = zeros({2, 0});
  for (const double correction : {-1.0, 0.0, 1.0}) {
    EXPECT_TRUE(std::isnan(var(none, 0, {.correction = correction}).item<double>()));
    EXPECT_TRUE(isnan(std_dev(rows, 1, {.correction = correction})).all().item<bool>());
  }
  EXPECT_EQ(var(ones({1}), 0, {.correction = -1}).item<double>(), 0);
  for (const double odd : {double(NAN), double(INFINITY)}) {
    EXPECT_THROW(var(none, 0, {.correction = odd}), Error);
    EXPECT_THROW(std_dev(ones({3}), 0, {.correction = odd}), Error);
  }
}

TEST(AccuracyRunning, LogOfSumsBeginsWithTheFirst) {
  for (const DType t : {f32, f64})
    for (const int64_t n : {1, 3, 31, 32, 33, 300}) {
      const Tensor x = linspace(0, 29, n, {.dtype = t});
      EXPECT_EQ(logcumsumexp(x, 0)[0].item<double>(), 0);
      const Tensor sums = logcumsumexp(x.to(f64), 0), found = logcumsumexp(x, 0).to(f64);
      EXPECT_TRUE(allclose(found, sums, {.rtol = t == f32 ? 1e-6 : 1e-15, .atol = 0})) << n;
    }
}

TEST(AccuracyQuantile, OfMoreElementsThanFloatsCount) {
  const int64_t n = (int64_t(1) << 25) + 3;
  const Tensor x = zeros({1}).expand({n}).clone();
  x[n - 1] = 1.f;
  EXPECT_EQ(quantile(x, 1.0).item<float>(), 1);
  EXPECT_EQ(quantile(x, 0.5).item<float>(), 0);
}

TEST(AccuracyCorrelation, StaysWithinOne) {
  const Tensor x = randn({3, 50}), c = corrcoef(cat({x, x * 3, x * -0.1}));
  EXPECT_LE(c.abs().amax().item<float>(), 1);
}

TEST(AccuracyShrink, TanhshrinkNearZero) {
  for (const double sign : {1.0, -1.0})
    for (double x = 1e-12; x < 3; x *= 1.3) {
      const double wanted = sign * (x - std::tanh(x)), q = x * x;
      const double series = sign * x * q * (1.0 / 3 - q * (2.0 / 15 - q * (17.0 / 315 - q * 62 / 2835)));
      const double reference = x < 0.01 ? series : wanted;  // which cancels to eps / x^2
      EXPECT_NEAR(tanhshrink(full({}, sign * x, {f64})).item<double>() / reference, 1, 1e-11) << x;
      if (x * x * x / 3 < 1e-37) continue;
      EXPECT_NEAR(double(tanhshrink(full({}, sign * x, {f32})).item<float>()) / reference, 1, 1e-4) << x;
    }
  EXPECT_GT(tanhshrink(full({}, 1.2e-8, {f32})).item<float>(), 0);
  EXPECT_TRUE(gradcheck([](const Tensor& x) { return tanhshrink(x); },
                        tensor<double>({-2, -0.11, -0.09, 0, 0.05, 0.2, 1}).requires_grad_()));
}

// Sizes at which a product or quotient of two halves is not one.
TEST(AccuracyHalves, SimilarityOfSmallVectors) {
  for (const double size : {0.0005, 0.002, 0.1, 300.0}) {
    const Tensor a = (full({2, 3}, size) * tensor<float>({1, -0.5, 0.25})).to(f16).requires_grad_(),
                 b = (full({2, 3}, size) * tensor<float>({0.5, 1, -1})).to(f16).requires_grad_();
    const auto wide = [](const Tensor& x) { return x.detach().to(f64).requires_grad_(); };
    const Tensor c = wide(a), d = wide(b);
    const auto found = grad(cosine_similarity(a, b).sum(), {a, b}),
               wanted = grad(cosine_similarity(c, d).sum(), {c, d});
    EXPECT_TRUE(allclose(cosine_similarity(a, b).to(f64), cosine_similarity(c, d), {.rtol = 2e-3}));
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(allclose(found[i].to(f64), wanted[i], {.rtol = 2e-3, .atol = 1e-3})) << size << found[i].str();
    EXPECT_TRUE(
        allclose(grad(normalize(a).sum(), a).to(f64), grad(normalize(c).sum(), c), {.rtol = 2e-3, .atol = 1e-3}));
    EXPECT_TRUE(allclose(pairwise_distance(a, b).to(f64), pairwise_distance(c, d), {.rtol = 2e-3, .atol = 1e-6}));
  }
  const Tensor x = full({1, 4, 2}, 300, {f16});
  EXPECT_TRUE(allclose(local_response_norm(x, 3).to(f32), local_response_norm(x.to(f32), 3), {.rtol = 1e-3}));
}

struct HalfCall {
  std::string name;
  std::function<Tensor(const Tensor&, const Tensor&)> f;
};

std::vector<HalfCall> half_losses() {
  static const std::vector<std::string> words = {"none", "mean", "sum"};
  const Tensor labels = arange(24).remainder(6), signs = where(arange(24) % 3 == 0, 1, -1).unsqueeze(1).expand({24, 6});
  const Tensor some = tensor({{0, 2, -1, 0, 0, 0}}).expand({24, 6});
  const Tensor weight = linspace(0.25, 1.5, 6), wide = linspace(0.3, 1.7, 6);
  std::vector<HalfCall> list;
  for (const std::string& how : words) {
    const auto add = [&](const char* name, std::function<Tensor(const Tensor&, const Tensor&)> f) {
      list.push_back({name + (", " + how), std::move(f)});
    };
    add("mse_loss", [=](auto& x, auto& y) { return mse_loss(x, y, {how}); });
    add("l1_loss", [=](auto& x, auto& y) { return l1_loss(x, y, {how}); });
    add("smooth_l1_loss", [=](auto& x, auto& y) { return smooth_l1_loss(x, y, {how}); });
    add("huber_loss", [=](auto& x, auto& y) { return huber_loss(x, y, {how}); });
    add("binary_cross_entropy",
        [=](auto& x, auto& y) { return binary_cross_entropy((x.abs() + 0.5) / 16, y.abs() / 16, {.reduction = how}); });
    add("binary_cross_entropy_with_logits",
        [=](auto& x, auto& y) { return binary_cross_entropy_with_logits(x, y.abs() / 16, {.reduction = how}); });
    add("with logits and weights", [=](auto& x, auto& y) {
      const Tensor w = weight.to(x.dtype());
      return binary_cross_entropy_with_logits(x, y.abs() / 16, {.weight = w, .reduction = how, .pos_weight = w});
    });
    add("sigmoid_focal_loss",
        [=](auto& x, auto& y) { return sigmoid_focal_loss(x, y.abs() / 16, {.reduction = how}); });
    add("kl_div", [=](auto& x, auto& y) { return kl_div(x, y.abs() / 16, {.reduction = how}); });
    add("kl_div of logarithms", [=](auto& x, auto& y) { return kl_div(x, y, {.reduction = how, .log_target = true}); });
    add("gaussian_kl", [=](auto& x, auto& y) { return gaussian_kl(x, y, {how}); });
    add("gaussian_nll_loss",
        [=](auto& x, auto& y) { return gaussian_nll_loss(x, y, y.abs() + 0.5, {.full = true, .reduction = how}); });
    add("poisson_nll_loss",
        [=](auto& x, auto& y) { return poisson_nll_loss(x, y.abs(), {.full = true, .reduction = how}); });
    add("poisson_nll_loss of rates", [=](auto& x, auto& y) {
      return poisson_nll_loss(x.abs() + 0.25, y.abs(), {.log_input = false, .reduction = how});
    });
    add("hinge_embedding_loss", [=](auto& x, auto&) { return hinge_embedding_loss(x, signs, {.reduction = how}); });
    add("soft_margin_loss", [=](auto& x, auto& y) { return soft_margin_loss(x, y, {how}); });
    add("margin_ranking_loss",
        [=](auto& x, auto& y) { return margin_ranking_loss(x, y, signs, {.margin = 0.1, .reduction = how}); });
    add("cosine_embedding_loss",
        [=](auto& x, auto& y) { return cosine_embedding_loss(x, y, signs.select(1, 0), {.reduction = how}); });
    add("triplet_margin_loss", [=](auto& x, auto& y) { return triplet_margin_loss(x, y, x + y, {.reduction = how}); });
    add("triplet_margin_with_distance_loss",
        [=](auto& x, auto& y) { return triplet_margin_with_distance_loss(x, y, x.flip(0), {.reduction = how}); });
    add("cross_entropy", [=](auto& x, auto&) { return cross_entropy(x, labels, {.reduction = how}); });
    add("cross_entropy, smoothed", [=](auto& x, auto&) {
      return cross_entropy(x, labels, {.weight = wide, .reduction = how, .label_smoothing = 0.1});
    });
    add("cross_entropy of probabilities",
        [=](auto& x, auto& y) { return cross_entropy(x, y.abs() / 16, {.reduction = how, .label_smoothing = 0.1}); });
    add("nll_loss", [=](auto& x, auto&) { return nll_loss(x, labels, {.weight = wide, .reduction = how}); });
    add("multi_margin_loss",
        [=](auto& x, auto&) { return multi_margin_loss(x, labels, {.p = 2, .weight = wide, .reduction = how}); });
    add("multilabel_margin_loss", [=](auto& x, auto&) { return multilabel_margin_loss(x, some, {how}); });
    add("multilabel_soft_margin_loss",
        [=](auto& x, auto& y) { return multilabel_soft_margin_loss(x, y.abs() / 16, {.reduction = how}); });
  }
  return list;
}

std::vector<HalfCall> half_statistics() {
  const Tensor places = cumsum(arange(24).remainder(3).to(f32) / 8 + 0.125, 0);
  return {
      {"cdist", [](auto& x, auto& y) { return cdist(x, y); }},
      {"dist", [](auto& x, auto& y) { return dist(x, y); }},
      {"pdist", [](auto& x, auto&) { return pdist(x); }},
      {"addr", [](auto& x, auto& y) { return addr(x.narrow(0, 0, 6), x.select(0, 2), y.select(0, 3), 0.7); }},
      {"vander", [](auto& x, auto&) { return vander(x.select(1, 0) / 4, 5); }},
      {"std_dev", [](auto& x, auto&) { return std_dev(x, 0); }},
      {"var", [](auto& x, auto&) { return var(x, 0); }},
      {"nanmean", [](auto& x, auto&) { return nanmean(x, 1); }},
      {"quantile", [](auto& x, auto&) { return quantile(x, 0.3, 0); }},
      {"cov", [](auto& x, auto&) { return cov(x); }},
      {"corrcoef", [](auto& x, auto&) { return corrcoef(x); }},
      {"trapezoid", [](auto& x, auto&) { return trapezoid(x, {}, {.dx = 0.3, .dim = 0}); }},
      {"cumulative_trapezoid", [](auto& x, auto&) { return cumulative_trapezoid(x, {}, {.dx = 0.3, .dim = 0}); }},
      {"trapezoid over places", [=](auto& x, auto&) { return trapezoid(x, places.to(x.dtype()), {.dim = 0}); }},
  };
}

// The result and its gradients are those of f64, rounded once; what f32 loses on the way is far less.
void expect_one_rounding(const HalfCall& call, DType t) {
  SCOPED_TRACE(call.name + " of " + std::string(name(t)));
  const auto exact = [](const Tensor& x) { return x.detach().to(f64).requires_grad_(); };
  // Multiples of 1/16 up to 8: what the calls make of them before the op itself is exact in either half.
  const Tensor places = arange(144).reshape({24, 6});
  const auto data = [&](int64_t step, int64_t start) {
    return (((places * step + start) % 127 - 63).to(f64) / 16).to(t).requires_grad_();
  };
  const Tensor x = data(37, 5), y = data(53, 11), x64 = exact(x), y64 = exact(y);
  const Tensor found = call.f(x, y), wanted = call.f(x64, y64);
  EXPECT_EQ(found.dtype(), t);
  const double unit = t == f16 ? 0x1p-11 : 0x1p-8;
  const auto close = [&](const Tensor& a, const Tensor& b) {
    EXPECT_TRUE(allclose(a.to(f64), b, {.rtol = unit * 1.01, .atol = 2e-5}))
        << max(abs(a.to(f64) - b)).template item<double>();
  };
  close(found, wanted);
  const auto backward = [](const Tensor& loss, const Tensor& in) { return grad(loss.to(f64).sum(), in); };
  const Tensor d = backward(found, x);
  EXPECT_EQ(d.dtype(), t);
  const Tensor d64 = backward(wanted, x64);
  EXPECT_TRUE(allclose(d.to(f64), d64, {.rtol = 3 * unit, .atol = 2 * unit}))
      << max(abs(d.to(f64) - d64)).item<double>();
}

TEST(AccuracyHalves, LossesAreRoundedOnce) {
  for (const DType t : {f16, bf16})
    for (const HalfCall& call : half_losses()) expect_one_rounding(call, t);
}

TEST(AccuracyHalves, DistancesAndStatisticsAreRoundedOnce) {
  for (const DType t : {f16, bf16})
    for (const HalfCall& call : half_statistics()) expect_one_rounding(call, t);
}

TEST(AccuracyHalves, TrapezoidsBesideOtherFloats) {
  const Tensor y = (arange(40.f).sin() * 3).to(bf16), x = arange(40.f) / 7;
  for (const auto& [a, b] : {std::pair(y, x), std::pair(x, y)}) {
    const Tensor found = trapezoid(a, b);
    EXPECT_EQ(found.dtype(), f32);
    EXPECT_TRUE(allclose(found.to(f64), trapezoid(a.to(f64), b.to(f64)), {.rtol = 1e-5, .atol = 1e-5}));
  }
}

TEST(AccuracyHalves, LossesThatHalvesDoNotHoldOnTheWay) {
  // 20,000 classes: the sum of their logarithms is beyond f16, the loss is not.
  const Tensor scores = zeros({1, 20000}, {f16}).requires_grad_();
  const Tensor loss = cross_entropy(scores, tensor({3}), {.label_smoothing = 0.1});
  EXPECT_NEAR(loss.item<double>(), 9.9, 0.01);
  EXPECT_TRUE(isfinite(grad(loss, scores)).all().item<bool>());
  EXPECT_EQ(mse_loss(tensor({256, 0, 0, 0}).to(f16), zeros({4}, {f16})).item<double>(), 16384);  // its square is 65536
  const Tensor x = full({1}, 6, {bf16}), one = ones({1}, {bf16});
  const double exact = std::log1p(std::exp(-6.0));
  EXPECT_NEAR(binary_cross_entropy_with_logits(x, one).item<double>() / exact, 1, 0x1p-8);
}

}  // namespace
}  // namespace volta::test

// Formulas that would cancel or leave the range of their dtype on the way to a result within it.
#include <gtest/gtest.h>

#include <cmath>

#include <volta/volta.h>

namespace volta::test {
namespace {

bool all_zero(const Tensor& x) { return x.count_nonzero().item<int64_t>() == 0; }

constexpr double values[] = {0.1, 1.1, -3.3, 1e-3, 12345.678, 7e10};
constexpr int64_t counts[] = {2, 3, 7, 16, 63, 257, 1000, 1025, 4097, 100003};

TEST(AccuracyEqualValues, HaveNoSpread) {
  for (const DType t : {f32, f64, f16, bf16})
    for (const double v : values)
      for (const int64_t n : counts) {
        if (t == f16 && std::abs(v) > 6e4) continue;
        const Tensor x = full({n}, v, {t}), rows = full({3, n}, v, {t}), columns = full({n, 3}, v, {t});
        EXPECT_TRUE(all_zero(var(x))) << name(t) << " " << v << " " << n;
        EXPECT_TRUE(all_zero(std_dev(x)));
        EXPECT_TRUE(all_zero(std_dev(rows, 1))) << name(t) << " " << v << " " << n;
        EXPECT_TRUE(all_zero(std_dev(columns, 0))) << name(t) << " " << v << " " << n;
        EXPECT_TRUE(all_zero(std_dev(columns.t(), 1)));
      }
}

TEST(AccuracyEqualValues, AreNormalizedToZero) {
  for (const DType t : {f32, f64, f16})
    for (const double v : {0.1, 1.1, -3.3, 123.456})
      for (const int64_t n : counts) {
        const std::string what = std::string(name(t)) + " " + std::to_string(v) + " " + std::to_string(n);
        EXPECT_TRUE(all_zero(layer_norm(full({2, n}, v, {t}), {n}))) << what;
        EXPECT_TRUE(all_zero(group_norm(full({2, 4, n}, v, {t}), 2))) << what;
        EXPECT_TRUE(all_zero(instance_norm(full({2, 3, n}, v, {t})))) << what;
        EXPECT_TRUE(all_zero(batch_norm(full({n, 3}, v, {t}), {}, {}, {}, {}, true))) << what;
        EXPECT_TRUE(all_zero(batch_norm(full({2, 3, n}, v, {t}), {}, {}, {}, {}, true))) << what;
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
  for (const Tensor& x : {near, far}) {
    check(x, 0);
    check(x.repeat({100}), 0);
    check(x.unsqueeze(1).repeat({1, 40}), 0);
    check(x.unsqueeze(0).repeat({5, 70}), 1);
  }
  EXPECT_TRUE(std::isinf(var(far).item<float>()));  // what f32 does not hold
  EXPECT_TRUE(std::isnan(var(tensor<float>({1, INFINITY})).item<float>()));
  EXPECT_TRUE(std::isnan(std_dev(tensor<float>({1, NAN})).item<float>()));
  EXPECT_FLOAT_EQ(std_dev(tensor<float>({1e25f, -1e25f}), 0, {.correction = 0}).item<float>(), 1e25f);
  EXPECT_FLOAT_EQ(var(tensor<float>({1e8f + 8, 1e8f, 1e8f - 8})).item<float>(), 64);
}

TEST(AccuracySpread, OfNumbersNearTheEndsOfTheRange) {
  for (const float scale : {1e38f, 1e30f, 1e-22f, 1e-25f, 1e-30f}) {
    const Tensor x = (tensor<float>({1, 2, 3, -1, 2.5f}) * scale).requires_grad_();
    const Tensor wide = x.detach().to(f64).requires_grad_();
    EXPECT_TRUE(allclose(std_dev(x).to(f64), std_dev(wide), {.rtol = 1e-5, .atol = 0})) << scale;
    EXPECT_TRUE(allclose(grad(std_dev(x), x).to(f64), grad(std_dev(wide), wide), {.rtol = 1e-4, .atol = 1e-7}))
        << scale;
    const Tensor rows = x.detach().unsqueeze(0).repeat({3, 20});
    EXPECT_TRUE(allclose(std_dev(rows, 1).to(f64), std_dev(rows.to(f64), 1), {.rtol = 1e-5, .atol = 0})) << scale;
  }
  EXPECT_EQ(std_dev(full({300}, 1e-30f)).item<float>(), 0);
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

}  // namespace
}  // namespace volta::test

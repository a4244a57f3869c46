// Initialisation: distributions, exact patterns, fans, bad input.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <cmath>

namespace volta {
namespace {

namespace init = nn::init;

double mean_of(const Tensor& x) { return x.mean().item<double>(); }
double deviation_of(const Tensor& x) { return x.std().item<double>(); }

TEST(NnInit, Distributions) {
  manual_seed(1);
  nn::Parameter w = empty({300, 200});
  init::uniform_(w, -2, 4);
  EXPECT_NEAR(mean_of(w), 1, 0.05);
  EXPECT_GE(w.min().item<double>(), -2);
  EXPECT_LT(w.max().item<double>(), 4);
  EXPECT_TRUE(w.requires_grad() && w.is_leaf());
  init::normal_(w, 3, 0.5);
  EXPECT_NEAR(mean_of(w), 3, 0.02);
  EXPECT_NEAR(deviation_of(w), 0.5, 0.02);
  init::trunc_normal_(w, 0, 1, -1, 0.5);
  EXPECT_GE(w.min().item<double>(), -1);
  EXPECT_LE(w.max().item<double>(), 0.5);
  init::constant_(w, 0.25);
  EXPECT_TRUE(w.eq(0.25).all().item<bool>());
  EXPECT_TRUE(init::zeros_(w).eq(0).all().item<bool>());
  EXPECT_TRUE(init::ones_(w).eq(1).all().item<bool>());
  Generator a(5), b(5);
  const Tensor first = init::normal_(empty({10}), 0, 1, &a);
  EXPECT_TRUE(equal(first, init::normal_(empty({10}), 0, 1, &b)));
  EXPECT_EQ(init::uniform_(empty({3}, {.dtype = bf16})).dtype(), bf16);
  EXPECT_FALSE(attempt([] { init::uniform_(zeros({3}, {.dtype = i32})); }));
  EXPECT_FALSE(attempt([] { init::normal_(Tensor()); }));
}

TEST(NnInit, Fans) {
  EXPECT_EQ(init::calculate_fan(empty({5, 3})).in, 3);
  EXPECT_EQ(init::calculate_fan(empty({5, 3})).out, 5);
  EXPECT_EQ(init::calculate_fan(empty({8, 4, 3, 2})).in, 24);
  EXPECT_EQ(init::calculate_fan(empty({8, 4, 3, 2})).out, 48);
  EXPECT_FALSE(attempt([] { return init::calculate_fan(empty({5})).in; }));
  EXPECT_DOUBLE_EQ(init::calculate_gain("tanh"), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain("leaky_relu", 0.2), std::sqrt(2 / 1.04));
  EXPECT_DOUBLE_EQ(init::calculate_gain("conv2d"), 1);
  EXPECT_FALSE(attempt([] { return init::calculate_gain("magic"); }));
}

TEST(NnInit, XavierAndKaiming) {
  manual_seed(2);
  const Tensor w = empty({100, 50, 3, 3});
  const double in = 450, out = 900;
  init::xavier_uniform_(w, 2);
  EXPECT_NEAR(deviation_of(w), 2 * std::sqrt(2 / (in + out)), 1e-3);
  EXPECT_LE(w.abs().max().item<double>(), 2 * std::sqrt(6 / (in + out)));
  init::xavier_normal_(w);
  EXPECT_NEAR(deviation_of(w), std::sqrt(2 / (in + out)), 1e-3);
  init::kaiming_uniform_(w, {.a = std::sqrt(5.0)});
  EXPECT_LE(w.abs().max().item<double>(), 1 / std::sqrt(in) * 1.00001);
  init::kaiming_normal_(w, {.mode = "fan_out", .nonlinearity = "relu"});
  EXPECT_NEAR(deviation_of(w), std::sqrt(2 / out), 1e-3);
  EXPECT_FALSE(attempt([&] { init::kaiming_normal_(w, {.mode = "fan"}); }));
  EXPECT_EQ(init::kaiming_normal_(empty({0, 3})).numel(), 0);
}

TEST(NnInit, EyeAndDirac) {
  EXPECT_TRUE(equal(init::eye_(empty({2, 3})), tensor({{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}})));
  EXPECT_FALSE(attempt([] { init::eye_(empty({2})); }));
  const Tensor w = init::dirac_(empty({4, 2, 3, 3}), 2);
  EXPECT_EQ(w.sum().item<double>(), 4);
  for (int o = 0; o < 4; ++o) EXPECT_EQ((w[{o, o % 2, 1, 1}].item<double>()), 1);
  EXPECT_EQ(init::dirac_(empty({5, 2, 3})).sum().item<double>(), 2);
  EXPECT_EQ((init::dirac_(empty({1, 1, 7, 5}))[{0, 0, 3, 2}].item<double>()), 1);  // in the middle
  EXPECT_FALSE(attempt([] { init::dirac_(empty({4, 2})); }));
  EXPECT_FALSE(attempt([] { init::dirac_(empty({4, 2, 3}), 3); }));
}

TEST(NnInit, Orthogonal) {
  for (const Shape& shape : {Shape{5, 8}, Shape{8, 5}, Shape{6, 2, 3}}) {
    const Tensor w = init::orthogonal_(empty(shape, {.dtype = f64}), 3).flatten(1);
    const Tensor gram = w.size(0) <= w.size(1) ? matmul(w, w.t()) : matmul(w.t(), w);
    EXPECT_TRUE(allclose(gram, eye(gram.size(0), {}, {.dtype = f64}) * 9, {.atol = 1e-12}));
  }
  EXPECT_FALSE(attempt([] { init::orthogonal_(empty({5})); }));
}

TEST(NnInit, Sparse) {
  const Tensor w = init::sparse_(empty({10, 7}), 0.35, 2);
  EXPECT_TRUE(equal((w == 0).to(i64).sum(0), full({7}, 4, {.dtype = i64})));
  EXPECT_FALSE(attempt([] { init::sparse_(empty({3, 3}), 1.5); }));
  EXPECT_FALSE(attempt([] { init::sparse_(empty({3}), 0.5); }));
}

// Any number divides no outputs at all: there is nothing to do in any of the groups.
TEST(InitDirac, OfNoOutputsReturnsAtOnce) {
  const Tensor x = zeros({0, 2, 5});
  EXPECT_EQ(nn::init::dirac_(x, int64_t(1) << 54).numel(), 0);
}

}  // namespace
}  // namespace volta

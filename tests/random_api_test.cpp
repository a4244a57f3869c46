// Random tensors: bounds, moments, seeds, generators, permutations, draws by weight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include <volta/volta.h>

namespace volta {
namespace {

template <class F> std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
template <class F> void expect_says(F f, const char* words) {
  const std::string text = message(f);
  EXPECT_NE(text.find(words), std::string::npos) << "'" << text << "' lacks '" << words << "'";
}

TEST(RandomApi, BoundsAndMoments) {
  manual_seed(11);
  for (const DType dt : {f16, bf16, f32, f64}) {
    const Tensor u = rand({20000}, {.dtype = dt}).to(f64), z = randn({20000}, {.dtype = dt}).to(f64);
    EXPECT_GE(u.min().item<double>(), 0);
    EXPECT_LT(u.max().item<double>(), 1);
    EXPECT_NEAR(u.mean().item<double>(), 0.5, 0.01);
    EXPECT_NEAR(z.mean().item<double>(), 0, 0.03);
    EXPECT_NEAR(z.var().item<double>(), 1, 0.05);
  }
  const Tensor like = zeros({20000}, {.dtype = f64});
  EXPECT_NEAR(randn_like(like).mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(randn_like(like).var().item<double>(), 1, 0.05);
  EXPECT_NEAR(rand_like(like).mean().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(rand_like(like).var().item<double>(), 1. / 12, 0.01);
  const Tensor r = uniform({10000}, -3, -1);
  EXPECT_GE(r.min().item<float>(), -3);
  EXPECT_LT(r.max().item<float>(), -1);
  EXPECT_NEAR(normal({20000}, 5, 2).mean().item<float>(), 5, 0.1);
  EXPECT_EQ(rand({0, 3}).numel(), 0);
  EXPECT_EQ(rand({}).dim(), 0);
  EXPECT_TRUE(randn({2}, {.requires_grad = true}).is_leaf());
}

TEST(RandomApi, SeedsAndGenerators) {
  manual_seed(5);
  const Tensor a = rand({100}), b = rand({100});
  manual_seed(5);
  EXPECT_TRUE(equal(rand({100}), a));
  EXPECT_TRUE(equal(rand({100}), b));
  EXPECT_FALSE(equal(a, b));
  Generator g(9);
  const auto before = default_generator().state();
  const Tensor c = randn({7}, {.generator = &g}), d = randperm(9, {.generator = &g});
  EXPECT_EQ(default_generator().state(), before);
  g.manual_seed(9);
  EXPECT_TRUE(equal(randn({7}, {.generator = &g}), c));
  EXPECT_TRUE(equal(randperm(9, {.generator = &g}), d));
}

TEST(RandomApi, InPlace) {
  manual_seed(7);
  const Tensor u = uniform({3, 4}, -2, 5), z = normal({3, 4}, 1, 3, {.dtype = f64});
  manual_seed(7);
  Tensor x = zeros({4, 3}).t(), y = zeros({3, 4}, {.dtype = f64});
  EXPECT_TRUE(equal(x.uniform_(-2, 5), u));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE(equal(y.normal_(1, 3), z));
  Tensor whole = zeros({2}, {.dtype = i32});
  expect_says([&] { whole.uniform_(); }, "uniform_");
  expect_says([&] { y.normal_(0, -1); }, "negative");
  EXPECT_TRUE(equal(y, z));
}

TEST(ThreadsGenerator, EveryDrawIsTakenOnce) {
  Generator g(3);
  std::vector<std::thread> threads;
  std::vector<std::vector<uint64_t>> taken(4);
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) mine.push_back(g.take(2).offset);
    });
  for (auto& t : threads) t.join();
  std::set<uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(g.state().offset, 4000u);
}

TEST(RandomApi, Integers) {
  for (const DType dt : {i8, i16, i32, i64, u8, u16, u32, u64, f32}) {
    const auto x = randint(3, 10, {5000}, {.dtype = dt}).to_vector<int>();
    EXPECT_EQ(std::set<int>(x.begin(), x.end()), (std::set<int>{3, 4, 5, 6, 7, 8, 9})) << name(dt);
  }
  EXPECT_EQ(randint(0, 2, {3}).dtype(), i64);
  const Tensor wide = randint(INT64_MIN, INT64_MAX, {1000});
  EXPECT_LT(wide.min().item<int64_t>(), -(int64_t(1) << 60));
  EXPECT_GT(wide.max().item<int64_t>(), int64_t(1) << 60);
  for (const Tensor& x : {wide, randint(0, int64_t(1) << 40, {1000}), randn({1000}, {.dtype = f64})}) {
    const auto values = x.to_vector<double>();  // far more possible ones than drawn: each element has words of its own
    EXPECT_EQ(std::set<double>(values.begin(), values.end()).size(), values.size());
  }
  expect_says([] { return randint(3, 3, {1}); }, "randint: nothing lies between 3 and 3");
  expect_says([] { return randint(0, 300, {1}, {.dtype = u8}); }, "u8");
  expect_says([] { return randint(0, 3, {1}, {.requires_grad = true}); }, "grad");
}

TEST(RandomApi, TruncatedNormal) {
  manual_seed(12);
  for (const DType dt : {bf16, f32, f64}) {
    const Tensor x = truncated_normal({20000}, 1, 2, 0, 3, {.dtype = dt}).to(f64);
    EXPECT_GE(x.min().item<double>(), 0);
    EXPECT_LE(x.max().item<double>(), 3);
    // Cut at -0.5 and 1 deviations: the mean follows from the density there.
    const auto density = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); };
    const auto below = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
    const double want = 1 + 2 * (density(-0.5) - density(1)) / (below(1) - below(-0.5));
    EXPECT_NEAR(x.mean().item<double>(), want, 0.03);
  }
  EXPECT_TRUE(truncated_normal({3}, 0, 1, -2, 2, {.requires_grad = true}).is_leaf());
  expect_says([] { return truncated_normal({3}, 0, 0, -1, 1); }, "not positive");
  expect_says([] { return truncated_normal({3}, 0, 1, 2, 1); }, "not below");
}

TEST(RandomApi, Bernoulli) {
  manual_seed(13);
  const Tensor p = tensor({0., 1., 0.25}).expand({4000, 3}), x = bernoulli(p);
  EXPECT_EQ(x.dtype(), f32);
  const auto mean = x.mean(0).to_vector<float>();
  EXPECT_EQ(mean[0], 0);
  EXPECT_EQ(mean[1], 1);
  EXPECT_NEAR(mean[2], 0.25, 0.03);
  EXPECT_EQ(bernoulli(p.to(bf16)).dtype(), bf16);
  expect_says([] { return bernoulli(tensor({0.5, 1.5})); }, "between 0 and 1");
  expect_says([] { return bernoulli(tensor({NAN})); }, "between 0 and 1");
  expect_says([] { return bernoulli(tensor({0, 1})); }, "i64");
  expect_says([] { return bernoulli(ones({2}, {.requires_grad = true})); }, "bernoulli");
}

TEST(RandomApi, Permutations) {
  manual_seed(14);
  for (const int64_t n : {0, 1, 2, 1000}) {
    auto x = randperm(n).to_vector<int64_t>();
    EXPECT_TRUE(n < 10 || !std::is_sorted(x.begin(), x.end()));
    std::sort(x.begin(), x.end());
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(x[size_t(i)], i);
  }
  int first[3] = {};
  for (int i = 0; i < 3000; ++i) ++first[randperm(3)[0].item<int>()];
  for (const int count : first) EXPECT_NEAR(count, 1000, 120);
  EXPECT_EQ(randperm(256, {.dtype = u8}).dtype(), u8);
  expect_says([] { return randperm(-1); }, "randperm");
  expect_says([] { return randperm(257, {.dtype = u8}); }, "u8");
}

TEST(RandomApi, PermutationsOfFloats) {
  for (const auto& [dtype, most] : {std::pair(f16, 2049), std::pair(bf16, 257)}) {
    auto x = randperm(most, {.dtype = dtype}).to_vector<int>();
    std::sort(x.begin(), x.end());
    for (int i = 0; i < most; ++i) EXPECT_EQ(x[size_t(i)], i);
    EXPECT_THROW((void)randperm(most + 1, {.dtype = dtype}), Error);
  }
  expect_says([] { return randperm((1 << 24) + 2, {.dtype = f32}); }, "f32");
}

TEST(RandomApi, WhatFailsDrawsNothing) {
  Generator generator;
  const auto before = generator.state().offset;
  Tensor wide = zeros({1}).expand({3}), leaf = zeros({3}, {.requires_grad = true}), x = zeros({3});
  EXPECT_THROW(wide.uniform_(0, 1, &generator), Error);
  EXPECT_THROW(leaf.uniform_(0, 1, &generator), Error);
  EXPECT_THROW(wide.normal_(0, 1, &generator), Error);
  EXPECT_THROW(leaf.normal_(0, 1, &generator), Error);
  EXPECT_THROW(x.bernoulli_(ones({2}), &generator), Error);
  EXPECT_EQ(generator.state().offset, before);
}

TEST(RandomApi, DrawsReplaceTheGraph) {
  const Tensor x = ones({3}, {.requires_grad = true});
  Tensor y = x * 2;
  y.bernoulli_(full({3}, 0.5));
  EXPECT_TRUE(equal(grad((y + x * 0).sum(), x), zeros({3})));
}

TEST(RandomApi, MultinomialFollowsTheWeights) {
  manual_seed(15);
  const Tensor w = tensor({{1., 0., 3.}, {0., 2., 0.}});
  const Tensor x = multinomial(w, 8000, true);
  EXPECT_EQ(x.shape(), (Shape{2, 8000}));
  EXPECT_EQ(x.dtype(), i64);
  const auto counts = bincount(x[0]).to_vector<int>();
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 2000, 200);
  EXPECT_TRUE((x[1] == 1).all().item<bool>());
  int first[3] = {};
  for (int i = 0; i < 2000; ++i) {
    const auto two = multinomial(tensor({1., 0., 3.}), 2).to_vector<int>();
    EXPECT_NE(two[0], two[1]);
    EXPECT_EQ(two[0] + two[1], 2);
    ++first[two[0]];
  }
  EXPECT_NEAR(first[2], 1500, 110);
  EXPECT_EQ(multinomial(w.to(bf16), 1).shape(), (Shape{2, 1}));
  EXPECT_EQ(multinomial(w, 0).shape(), (Shape{2, 0}));
  for (int i = 0; i < 100; ++i)  // what weighs nothing is never drawn
    for (const auto& [large, small] : {std::pair(5e-324, 5e-324), std::pair(1e308, 1e308), std::pair(1e308, 5e-324)}) {
      const Tensor rest = zeros({6}, {f64});
      const Tensor drawn = multinomial(cat({rest, tensor<double>({small, 0, large, 0}), rest}), 2);
      EXPECT_EQ(drawn.sum().item<int>(), 14) << drawn.str();
      EXPECT_EQ(drawn.to_vector<int>()[0] * drawn.to_vector<int>()[1], 48);
      const Tensor again = multinomial(cat({rest, tensor<double>({small, 0, large})}), 20, true);
      EXPECT_TRUE(((again == 8) | (again == (small < large ? 8 : 6))).all().item<bool>()) << again.str();
    }
}

TEST(RandomApi, MultinomialRefusals) {
  expect_says([] { return multinomial(tensor({1., -1.}), 1); }, "negative");
  expect_says([] { return multinomial(tensor({1., INFINITY}), 1); }, "finite");
  expect_says([] { return multinomial(tensor({1., NAN}), 1); }, "finite");
  expect_says([] { return multinomial(tensor({{1., 1.}, {0., 0.}}), 1); }, "all zero");
  expect_says([] { return multinomial(tensor({1., 0., 1.}), 3); }, "3 samples without replacement of 2");
  expect_says([] { return multinomial(tensor({1, 2}), 1); }, "i64");
  expect_says([] { return multinomial(ones({1, 2, 3}), 1); }, "[1, 2, 3]");
  expect_says([] { return multinomial(ones({2}), -1); }, "-1 samples");
  expect_says([] { return multinomial(zeros({0}), 1, true); }, "nothing to draw");
}

TEST(RandomApi, Refusals) {
  expect_says([] { return rand({2}, {.dtype = i32}); }, "rand: needs a floating dtype, got i32");
  expect_says([] { return randn({-1}); }, "randn: [-1]");
  expect_says([] { return uniform({1}, 2, 1); }, "lower bound");
  expect_says([] { return uniform({1}, 0, INFINITY); }, "finite");
  expect_says([] { return normal({1}, 0, -1); }, "negative");
  expect_says([] { return rand({1}, {.device = "cuda:99"}); }, "cuda:99");
  expect_says([] { return randn_like(tensor({1})); }, "randn_like");
}

}  // namespace
}  // namespace volta

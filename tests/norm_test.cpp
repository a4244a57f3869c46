// Normalisation: the fused loops against the composed form and the formulas, gradients, running statistics, threads.
#include <gtest/gtest.h>

#include <array>

#include "ops/fused.h"
#include "samples.h"

namespace volta {
namespace {

constexpr auto wide = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };

struct Composed {
  Composed() { use_fused_loops = false; }
  ~Composed() { use_fused_loops = true; }
};

// A normalisation of x, weight and bias; the weights are of one number per channel, or per element of the last axis.
struct Norm {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>&)> f;
  bool rows;
};
std::vector<Norm> norms() {
  const auto statistics = [](const Tensor& x) {
    const Tensor order = arange(0, x.size(1), 1).to(is_half(x.dtype()) ? f32 : x.dtype()).to(x.device());
    return std::pair{order * 0.1 - 0.2, order * 0.05 + 0.7};
  };
  return {
      {"layer", [](const auto& in) { return layer_norm(in[0], {in[0].size(-1)}, in[1], in[2]); }, true},
      {"layer plain", [](const auto& in) { return layer_norm(in[0], {in[0].size(-1)}); }, true},
      {"layer without bias", [](const auto& in) { return layer_norm(in[0], {in[0].size(-1)}, in[1]); }, true},
      {"layer without weight", [](const auto& in) { return layer_norm(in[0], {in[0].size(-1)}, {}, in[2]); }, true},
      {"rms", [](const auto& in) { return rms_norm(in[0], {in[0].size(-1)}, in[1], 1e-5); }, true},
      {"group", [](const auto& in) { return group_norm(in[0], 2, in[1], in[2]); }, false},
      {"group plain", [](const auto& in) { return group_norm(in[0], in[0].size(1)); }, false},
      {"batch", [](const auto& in) { return batch_norm(in[0], {}, {}, in[1], in[2], true); }, false},
      {"batch plain", [](const auto& in) { return batch_norm(in[0], {}, {}, {}, {}, true); }, false},
      {"batch in eval",
       [=](const auto& in) {
         const auto [mean, var] = statistics(in[0]);
         return batch_norm(in[0], mean, var, in[1], in[2]);
       },
       false},
      {"instance", [](const auto& in) { return instance_norm(in[0], {}, {}, in[1], in[2]); }, false},
      {"instance in eval",
       [=](const auto& in) {
         const auto [mean, var] = statistics(in[0]);
         return instance_norm(in[0], mean, var, in[1], in[2], false);
       },
       false},
  };
}
std::vector<Tensor> inputs(const Norm& norm, const Tensor& x) {
  const DType weights = is_half(x.dtype()) ? f32 : x.dtype();
  const Shape shape{norm.rows ? x.size(-1) : x.size(1)};
  return {x, randn(shape).to(weights).to(x.device()), randn(shape).to(weights).to(x.device())};
}

// The result and the gradients of all inputs.
std::vector<Tensor> run(const Norm& norm, const std::vector<Tensor>& in, const Tensor& g) {
  std::vector<Tensor> leaves, results;
  for (const Tensor& t : in) leaves.push_back(t.detach().requires_grad_());
  const Tensor y = norm.f(leaves);
  y.backward(g);
  results.push_back(y.detach());
  for (const Tensor& t : leaves)
    if (t.grad()) results.push_back(*t.grad());
  return results;
}

TEST(NormForms, FusedEqualsComposed) {
  manual_seed(1);
  for (const Device& device : test::devices())
    for (const Norm& norm : norms())
      for (const DType dtype : {f16, bf16, f32, f64})
        for (const Shape& shape : {Shape{4, 6, 5}, Shape{3, 4, 7, 9}, Shape{2, 2, 33, 40}, Shape{37, 70, 1, 3}})
          for (int layout = 0; layout < 3; ++layout) {
            SCOPED_TRACE(std::string(norm.name) + " " + shape.str() + " " + std::string(name(dtype)));
            Tensor x = (randn(shape) * 2 + 3).to(dtype).to(device);
            if (layout == 1) x = x.transpose(0, 1).contiguous().transpose(0, 1);
            if (layout == 2) x = x.flip({-1}).contiguous().flip({-1});
            const auto in = inputs(norm, x);
            const Tensor g = randn(shape).to(dtype).to(device);
            const auto fused = run(norm, in, g);
            const Composed only;
            const auto composed = run(norm, in, g);
            ASSERT_EQ(fused.size(), composed.size());
            const double tolerance = is_half(dtype) ? 2e-2 : dtype == f32 ? 3e-4 : 1e-11;
            for (size_t i = 0; i < fused.size(); ++i) {
              EXPECT_EQ(fused[i].dtype(), composed[i].dtype());
              EXPECT_EQ(fused[i].shape(), composed[i].shape());
              EXPECT_TRUE(allclose(fused[i].to(f64), composed[i].to(f64), {.rtol = tolerance, .atol = tolerance})) << i;
            }
          }
}

TEST(NormGradients, BothOrders) {
  manual_seed(2);
  for (const Norm& norm : norms()) {
    SCOPED_TRACE(norm.name);
    auto in = inputs(norm, wide({3, 4, 3}));
    for (Tensor& t : in) t.requires_grad_();
    const TensorFunction f = [&](const std::vector<Tensor>& x) { return std::vector{norm.f(x)}; };
    EXPECT_TRUE(gradcheck_all(f, in, {.raise = true}));
    EXPECT_TRUE(gradgradcheck_all(f, in, {.atol = 1e-4, .raise = true}));
  }
  const Tensor flat = wide({6, 4}).requires_grad_(), weight = wide({4}).requires_grad_();
  const auto batch = [](const Tensor& x, const Tensor& w) { return batch_norm(x, {}, {}, w, {}, true); };
  EXPECT_TRUE(gradcheck(batch, flat, weight));
  EXPECT_TRUE(gradgradcheck(batch, flat, weight));
}

// Numbers far from 0 and close together, where a sum of squares would have lost everything.
TEST(NormValues, StableFarFromZero) {
  manual_seed(3);
  const Tensor small = randn({64, 1000}), x = small + 4000;
  const Tensor exact = layer_norm(x.to(f64), {1000}, {}, {}, 0);
  EXPECT_LT((layer_norm(x, {1000}, {}, {}, 0).to(f64) - exact).abs().max().item<double>(), 1e-3);
  const Tensor channels = x.reshape({8, 8, 1000});
  const Tensor wanted = batch_norm(channels.to(f64), {}, {}, {}, {}, true);
  EXPECT_LT((batch_norm(channels, {}, {}, {}, {}, true).to(f64) - wanted).abs().max().item<double>(), 1e-3);
}

TEST(NormValues, RunningStatistics) {
  manual_seed(4);
  const Tensor x = wide({5, 3, 4, 2}) * 2 + 1;
  for (const double momentum : {0.1, 0.5, 1.0}) {
    const Tensor mean = wide({3}), var = wide({3}).square();
    const Tensor wanted_mean = mean * (1 - momentum) + x.mean({0, 2, 3}) * momentum;
    const Tensor wanted_var = var * (1 - momentum) + x.var({0, 2, 3}) * momentum;
    batch_norm(x, mean, var, {}, {}, true, momentum);
    EXPECT_TRUE(allclose(mean, wanted_mean, {.rtol = 1e-12}));
    EXPECT_TRUE(allclose(var, wanted_var, {.rtol = 1e-12}));
  }
  Tensor mean = zeros({3}, {.dtype = f64}), var = ones({3}, {.dtype = f64});
  instance_norm(x, mean, var, {}, {}, true, 0.25);
  EXPECT_TRUE(allclose(mean, x.mean({2, 3}).mean(0) * 0.25, {.rtol = 1e-12}));
  EXPECT_TRUE(allclose(var, x.var({2, 3}).mean(0) * 0.25 + 0.75, {.rtol = 1e-12}));
  batch_norm(x, mean.fill_(1), var.fill_(4), {}, {}, false);  // leaves them alone
  EXPECT_TRUE(equal(mean, ones({3}, {.dtype = f64})));
}

TEST(NormValues, EmptyBatches) {
  const Tensor x = zeros({0, 4, 5}, {.requires_grad = true}), w = ones({4}, {.requires_grad = true});
  const Tensor mean = zeros({4}), var = ones({4});
  EXPECT_EQ(batch_norm(x, mean, var, w, {}, true).shape(), x.shape());
  EXPECT_TRUE(equal(var, ones({4})));
  group_norm(x, 2, w).sum().backward();
  EXPECT_TRUE(equal(*w.grad(), zeros({4})));
  EXPECT_EQ(layer_norm(zeros({0, 3}), {3}).shape(), (Shape{0, 3}));
}

TEST(NormErrors, BeforeAnythingChanged) {
  const Tensor mean = zeros({3}), var = ones({3});
  EXPECT_FALSE(attempt([&] { batch_norm(ones({1, 3}), mean, var, {}, {}, true); }));
  EXPECT_FALSE(attempt([&] { instance_norm(ones({2, 3, 1}), mean, var); }));
  EXPECT_FALSE(attempt([&] { batch_norm(ones({2, 4}), mean, var, {}, {}, true); }));
  EXPECT_FALSE(attempt([&] { batch_norm(ones({2, 3}), {}, {}, {}, {}, false); }));
  EXPECT_FALSE(attempt([&] { batch_norm(ones({2, 3}, {.dtype = i32}), mean, var, {}, {}, true); }));
  EXPECT_FALSE(attempt([&] { layer_norm(ones({2, 3}), {4}); }));
  EXPECT_FALSE(attempt([&] { layer_norm(ones({2, 3}), {3}, ones({4})); }));
  EXPECT_FALSE(attempt([&] { group_norm(ones({2, 3}), 2); }));
  EXPECT_TRUE(equal(mean, zeros({3})) && equal(var, ones({3})));
}

// Statistics that change between an eval pass and its gradient are noticed.
// Statistics that cannot be moved are refused before one of the two has been.
TEST(NormErrors, StatisticsOfIntegers) {
  const Tensor x = randn({4, 3, 2}), mean = zeros({3}), var = ones({3}, {.dtype = i64});
  EXPECT_THROW(batch_norm(x, mean, var, {}, {}, true), Error);
  EXPECT_THROW(instance_norm(x, mean, var), Error);
  EXPECT_TRUE(equal(mean, zeros({3})));
}

TEST(NormErrors, ChangedStatistics) {
  Tensor mean = zeros({3}), var = ones({3});
  const Tensor x = randn({2, 3}, {.requires_grad = true});
  const Tensor y = batch_norm(x, mean, var);
  mean.add_(1);
  EXPECT_FALSE(attempt([&] { y.sum().backward(); }));
}

TEST(NormThreads, BitEqual) {
  manual_seed(5);
  const int before = get_num_threads();
  for (const Norm& norm : norms()) {
    const auto in = inputs(norm, randn({19, 8, 13, 31}));
    const Tensor g = randn({19, 8, 13, 31});
    set_num_threads(1);
    const auto one = run(norm, in, g);
    set_num_threads(3);
    const auto three = run(norm, in, g);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(equal(one[i], three[i])) << norm.name << " " << i;
  }
  set_num_threads(before);
}

TEST(NormSimilarity, LengthsAreOfTheBroadcastRows) {
  const auto counted = [](const Shape& shape, double from) {
    return arange(from, from + double(shape.numel())).reshape(shape);
  };
  const Tensor x = counted({2, 4}, 1);
  const auto expect = [](const Tensor& found, const Tensor& want) {
    EXPECT_EQ(found.shape(), want.shape());
    EXPECT_TRUE(allclose(found.to(f64), want, {.rtol = 1e-6})) << found.str();
  };
  expect(cosine_similarity(x, counted({2, 1}, 2), 1), tensor<double>({0.9128709435462952, 0.9855274558067322}));
  expect(cosine_similarity(x, counted({4}, 2), 0),
         tensor<double>({0.8320502638816833, 0.8944272398948669, 0.9284766912460327, 0.9486832618713379}));
  for (const int dim : {1, -1})
    expect(cosine_similarity(x, counted({4}, 2), dim), tensor<double>({0.9938079714775085, 0.9903751611709595}));
  expect(cosine_similarity(counted({3, 1, 4}, 1), counted({2, 4}, 2), -1),
         tensor<double>({{0.9938079714775085, 0.9630868434906006},
                         {0.9903751611709595, 0.9997501373291016},
                         {0.9794432520866394, 0.9991223216056824}}));
  expect(cosine_similarity(ones({}), ones({}), 0), tensor<double>(1));
}

}  // namespace
}  // namespace volta

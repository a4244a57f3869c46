// Gradients of reductions, row ops and scans, first and second order, at ties, zeros and in half precision.
#include "reduce_reference.h"

namespace volta {
namespace {

struct GradCase {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
};

class GradcheckReduce : public testing::TestWithParam<GradCase> {};

TEST_P(GradcheckReduce, FirstAndSecondOrder) {
  const GradCase& c = GetParam();
  const Tensor x = reshape(tensor({0.3, -1.2, 2.1, 0.7, -0.4, 1.6, -2.3, 0.9, 1.1, -0.8, 0.5, 1.9}).to(f64), {3, 4});
  GradcheckOptions options;
  options.raise = true;
  for (const Tensor& v : {x, transpose(contiguous(transpose(x, 0, 1)), 0, 1)}) {
    const auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{c.f(in[0])}; };
    Tensor leaf = v.detach();
    leaf.requires_grad_();
    EXPECT_TRUE(gradcheck_all(f, {leaf}, options));
    EXPECT_TRUE(gradgradcheck_all(f, {leaf}, options));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GradcheckReduce,
    testing::Values(GradCase{"sum", [](const Tensor& x) { return sum(x); }},
                    GradCase{"sum_axis", [](const Tensor& x) { return sum(x, 0, true); }},
                    GradCase{"mean",
                             [](const Tensor& x) {
                               return mean(x, {0, 1});
                             }},
                    GradCase{"mean_axis", [](const Tensor& x) { return mean(x, 1); }},
                    GradCase{"prod", [](const Tensor& x) { return prod(x); }},
                    GradCase{"prod_axis", [](const Tensor& x) { return prod(x, 0); }},
                    GradCase{"prod_two_axes",
                             [](const Tensor& x) {
                               return prod(unsqueeze(x, 1), {0, 1}, true);
                             }},
                    GradCase{"nansum", [](const Tensor& x) { return nansum(x, 1); }},
                    GradCase{"amax", [](const Tensor& x) { return amax(x, 1); }},
                    GradCase{"amin", [](const Tensor& x) { return amin(x); }},
                    GradCase{"max_axis", [](const Tensor& x) { return max(x, 0).values; }},
                    GradCase{"min_axis", [](const Tensor& x) { return min(x, 1, true).values; }},
                    GradCase{"max", [](const Tensor& x) { return max(x); }},
                    GradCase{"var", [](const Tensor& x) { return var(x); }},
                    GradCase{"var_axis", [](const Tensor& x) { return var(x, 1, {.correction = 0, .keepdim = true}); }},
                    GradCase{"std", [](const Tensor& x) { return std_dev(x, 0); }},
                    GradCase{"std_all", [](const Tensor& x) { return std_dev(x); }},
                    GradCase{"norm1", [](const Tensor& x) { return norm(x, 1, 1); }},
                    GradCase{"norm2", [](const Tensor& x) { return norm(x); }},
                    GradCase{"norm3", [](const Tensor& x) { return norm(x, 3, 0, true); }},
                    GradCase{"norm_half", [](const Tensor& x) { return norm(x, 0.5, 1); }},
                    GradCase{"norm_inf", [](const Tensor& x) { return norm(x, inf, 1); }},
                    GradCase{"norm_minus_inf", [](const Tensor& x) { return norm(x, -inf, 1); }},
                    GradCase{"logsumexp", [](const Tensor& x) { return logsumexp(x, 1); }},
                    GradCase{"logsumexp_all",
                             [](const Tensor& x) {
                               return logsumexp(x, {0, 1}, true);
                             }},
                    GradCase{"median", [](const Tensor& x) { return median(x); }},
                    GradCase{"median_axis", [](const Tensor& x) { return median(x, 1).values; }},
                    GradCase{"softmax", [](const Tensor& x) { return softmax(x, 1); }},
                    GradCase{"softmax_outer", [](const Tensor& x) { return softmax(x, 0); }},
                    GradCase{"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }},
                    GradCase{"log_softmax_outer", [](const Tensor& x) { return log_softmax(x, 0); }},
                    GradCase{"cumsum", [](const Tensor& x) { return cumsum(x, 1); }},
                    GradCase{"cumprod", [](const Tensor& x) { return cumprod(x, 1); }},
                    GradCase{"cumprod_outer", [](const Tensor& x) { return cumprod(x, 0); }},
                    GradCase{"cummax", [](const Tensor& x) { return cummax(x, 1).values; }},
                    GradCase{"cummin", [](const Tensor& x) { return cummin(x, 0).values; }},
                    GradCase{"logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 1); }},
                    GradCase{"diff", [](const Tensor& x) { return diff(x, 2, 1); }}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Products have their derivatives also where elements are 0, once and twice in a row.
TEST(GradcheckProducts, WithZeros) {
  Tensor x = reshape(tensor({0.5, 0.0, 2.0, 1.5, 0.0, 3.0, 0.0, -1.0, 1.0, 2.0, -2.0, 0.0}).to(f64), {3, 4});
  x.requires_grad_();
  GradcheckOptions options;
  options.raise = true;
  for (int64_t axis : {0, 1}) {
    const TensorFunction functions[] = {
        [axis](const std::vector<Tensor>& in) { return std::vector<Tensor>{prod(in[0], axis)}; },
        [axis](const std::vector<Tensor>& in) { return std::vector<Tensor>{cumprod(in[0], axis)}; }};
    for (const TensorFunction& f : functions) {
      EXPECT_TRUE(gradcheck_all(f, {x}, options));
      EXPECT_TRUE(gradgradcheck_all(f, {x}, options));
    }
  }
}

TEST(GradReduce, TiesAndZeros) {
  Tensor x = tensor({2.0, 5.0, 5.0, 1.0}).to(f64);
  x.requires_grad_();
  EXPECT_EQ(grad(amax(x), x).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(grad(max(x, 0).values, x).to_vector<double>(), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(grad(sum(cummax(x, 0).values), x).to_vector<double>(), (std::vector<double>{1, 1, 2, 0}));
  Tensor zero = zeros({3}, {.dtype = f64, .requires_grad = true});
  for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, inf})
    EXPECT_EQ(grad(norm(zero, p), zero).to_vector<double>(), (std::vector<double>{0, 0, 0})) << p;
  EXPECT_EQ(grad(std_dev(zero), zero).to_vector<double>(), (std::vector<double>{0, 0, 0}));
  Tensor low = full({2}, -inf, {.dtype = f64, .requires_grad = true});
  EXPECT_EQ(grad(logsumexp(low, 0), low).to_vector<double>(), (std::vector<double>{0, 0}));
  Tensor holes = tensor({1.0, nan}).to(f64);
  holes.requires_grad_();
  EXPECT_EQ(grad(nansum(holes), holes).to_vector<double>(), (std::vector<double>{1, 0}));
}

Tensor half_leaf(const Tensor& x) { return x.to(f16).requires_grad_(); }

// d y / d x for a gradient g of every element of y, with and without a graph of its own, which must agree.
template <class F> std::vector<double> gradient_of(F f, const Tensor& x, double g) {
  const Tensor y = f(x);
  const GradOptions plain{.grad_outputs = {full(y.shape(), g, {.dtype = y.dtype()})}};
  GradOptions graph = plain;
  graph.create_graph = true;
  const Tensor first = grad({f(x)}, {x}, plain)[0], again = grad({f(x)}, {x}, graph)[0];
  EXPECT_EQ(first.dtype(), x.dtype());
  EXPECT_TRUE(allclose(first.to(f64), again.to(f64), {.rtol = 2e-3, .atol = 1e-7}));
  return first.to_vector<double>();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double relative) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i]) + 1e-7) << i;
}

// Products and quotients on the way leave the range of the dtype, the gradient does not.
TEST(GradReduce, NormsOfSmallNumbers) {
  const Tensor x = half_leaf(tensor({.003, .004}));
  const auto second = [](const Tensor& t) { return norm(t); };
  expect_near(gradient_of(second, x, 1024), {614.4, 819.2}, 1e-3);
  expect_near(gradient_of([](const Tensor& t) { return norm(t, 3); }, x, 1024), {455.5, 809.8}, 2e-3);
  expect_near(gradient_of([](const Tensor& t) { return norm(t, .5); }, x, 10), {21.55, 18.66}, 2e-3);
  expect_near(gradient_of(second, tensor({3e-20f, 4e-20f}).requires_grad_(), 1e25), {6e24, 8e24}, 1e-6);
  expect_near(gradient_of(second, half_leaf(tensor({0., 0.})), 1), {0, 0}, 0);
  const Tensor rows = half_leaf(tensor({{.003, .004}, {0., 0.}}));
  expect_near(gradient_of([](const Tensor& t) { return pdist(t); }, rows, 1024), {614.4, 819.2, -614.4, -819.2}, 1e-3);
}

TEST(GradReduce, ProductsOfHalves) {
  const Tensor x = half_leaf(tensor({60., -30., 20., -25.}));
  expect_near(gradient_of([](const Tensor& t) { return glu(t, 0); }, x, 32768), {32768, 4.77e-7, 0, -1.365e-5}, 2e-2);
  const Tensor a = half_leaf(tensor({300.})), b = tensor({300.}).to(f16);
  const auto multiplied = [&](const Tensor& t) { return addcmul(ones({1}, {.dtype = f16}), t, b, 1e-3); };
  expect_near(gradient_of(multiplied, a, 327.68), {98.3}, 1e-3);
  EXPECT_EQ(multiplied(a).item<float>(), 91);
  const auto divided = [&](const Tensor& t) { return addcdiv(ones({1}, {.dtype = f16}), t, b * 1e-5, 1e-3); };
  EXPECT_NEAR(divided(a).item<float>(), 101, 0.1);
  const Tensor c = half_leaf(tensor({300., 300., 1e-3}));
  expect_near(gradient_of([](const Tensor& t) { return prod(t); }, c, .5), {.15, .15, 45000}, 1e-3);
  const Tensor m = half_leaf(full({1, 1}, 300.));
  EXPECT_NEAR(addmm(ones({1}, {.dtype = f16}), m, m, 1, 1e-3).item<float>(), 91, 0.1);
  EXPECT_NEAR(addmv(ones({1}, {.dtype = f16}), m, m[0], 1, 1e-3).item<float>(), 91, 0.1);
  const Tensor long_row = half_leaf(tensor({0., 2000.}).repeat({500000}));
  EXPECT_NEAR(gradient_of([](const Tensor& t) { return var(t); }, long_row, 1)[1], 2e-3, 2e-6);
}

TEST(GradReduce, CountsThatAHalfDoesNotHold) {
  const int64_t n = 70000;
  const Tensor x = half_leaf(ones({n})), zero = zeros({n}, {.dtype = i64}), start = ones({1}, {.dtype = f16});
  EXPECT_NEAR(gradient_of([](const Tensor& t) { return nanmedian(t); }, x, 1000)[3], 1. / 70, 1e-5);
  for (const char* how : {"amax", "amin", "mean"}) {
    const auto f = [&](const Tensor& t) { return scatter_reduce(start, 0, zero, t, how, false); };
    EXPECT_EQ(f(x).item<float>(), 1) << how;
    EXPECT_NEAR(gradient_of(f, x, 1000)[3], 1. / 70, 1e-5) << how;
  }
  const Tensor factors = half_leaf(tensor({2., 3.})), two = tensor({0, 0});
  const auto product = [&](const Tensor& t) { return scatter_reduce(start, 0, two, t * 200, "prod", true); };
  expect_near(gradient_of(product, half_leaf(tensor({2., 300.})), 1e-3), {12000, 80}, 2e-3);
  const Tensor table = half_leaf(tensor({{2.}, {5.}}));
  const auto frequent = [&](const Tensor& t) { return embedding(zero, t, {.scale_grad_by_freq = true}); };
  expect_near(gradient_of(frequent, table, 3), {3, 0}, 1e-3);
  const auto bag = [&](const Tensor& t) { return embedding_bag(zero.unsqueeze(0), t, {}, {.mode = "mean"}); };
  EXPECT_EQ(bag(table).item<float>(), 2);
  expect_near(gradient_of(bag, table, 3), {3, 0}, 1e-3);
  const Tensor far = (arange(200.) * 2 - 200).to(f16);
  EXPECT_NEAR(cov(far).item<float>(), var(far.to(f32)).item<float>(), 8);
  const Tensor pair = stack({far * 100, far * -50});
  EXPECT_TRUE(allclose(corrcoef(pair).to(f64), tensor<double>({{1, -1}, {-1, 1}}), {.rtol = 1e-3}));
}

TEST(GradReduce, PowersAndSumsOfHalves) {
  const Tensor x = half_leaf(full({1, 1, 2}, 300.));
  const auto pooled = [](const Tensor& t) { return lp_pool1d(t, 2, 2); };
  EXPECT_NEAR(pooled(x).item<float>(), 300 * std::sqrt(2.), 0.2);
  expect_near(gradient_of(pooled, x, 1), {std::sqrt(.5), std::sqrt(.5)}, 1e-3);
  const Tensor high = full({3}, 60000, {.dtype = f16});
  EXPECT_EQ(trapezoid(high, {}, {.dx = .25}).item<float>(), 30000);
  EXPECT_EQ(cumulative_trapezoid(high, {}, {.dx = .25})[1].item<float>(), 30000);
  const Tensor small = half_leaf(tensor({{1e-4, 1e-4}, {0., 0.}}));
  EXPECT_NEAR(nn::weight_norm_of(small, 0)[0][0].item<float>(), std::sqrt(2.) * 1e-4, 1e-6);
  const auto sizes = [](const Tensor& t) { return nn::weight_norm_of(t, 0); };
  expect_near(gradient_of(sizes, small, 1), {std::sqrt(.5), std::sqrt(.5), 0, 0}, 2e-3);
  Tensor table = full({1, 4}, 60000, {.dtype = f16});
  EXPECT_NEAR(embedding(tensor({0}), table, {.max_norm = 1})[0][0].item<float>(), .5, 1e-3);
}

// As in f32, rounded once.
TEST(GradReduce, LossesOfHalves) {
  manual_seed(3);
  const Tensor y = (rand({4, 8}) * 300).to(f16), z = (rand({4, 8}) * 1e-3).to(f16);
  const Tensor sides = tensor({1, -1, 1, -1});
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> losses[] = {
      {"smooth_l1", [&](const Tensor& x) { return smooth_l1_loss(x, z.to(x.dtype()), {.beta = 1e-3}); }},
      {"huber", [&](const Tensor& x) { return huber_loss(x * 2, y.to(x.dtype()), {.delta = 1000}); }},
      {"gaussian", [&](const Tensor& x) { return gaussian_nll_loss(x, y.to(x.dtype()), (y * 50).to(x.dtype())); }},
      {"cosine", [&](const Tensor& x) { return cosine_embedding_loss(x * 2, y.to(x.dtype()), sides); }},
      {"triplet",
       [&](const Tensor& x) { return triplet_margin_loss(x * 1e-2, z.to(x.dtype()), (z * 2).to(x.dtype())); }},
      {"kl_div", [&](const Tensor& x) { return kl_div(x / 3, (y / 3).to(x.dtype()), {.reduction = "batchmean"}); }},
      {"bce", [&](const Tensor& x) { return binary_cross_entropy(x / 301, (z * 900).to(x.dtype())); }},
  };
  for (const auto& [name, f] : losses) {
    const Tensor x = half_leaf((rand({4, 8}) * 300)), wide = x.detach().to(f32).requires_grad_();
    const Tensor loss = f(x), exact = f(wide);
    EXPECT_EQ(loss.dtype(), f16) << name;
    const double value = exact.item<double>();
    EXPECT_NEAR(loss.item<double>(), value, 4e-3 * std::abs(value)) << name;
    const Tensor g = grad(loss, x).to(f32), expected = grad(exact, wide);
    EXPECT_TRUE(allclose(g, expected, {.rtol = 1e-2, .atol = 1e-3 * expected.abs().max().item<double>() + 1e-6}))
        << name << g << expected;
  }
}

TEST(GradReduce, HalvesAtLength) {
  for (DType t : {f16, bf16}) {
    Tensor x = full({70000}, 0.25, {.dtype = t, .requires_grad = true});
    EXPECT_NEAR(grad(mean(x), x).to(f64).to_vector<double>()[69999], 1.0 / 70000, 1e-6);
    EXPECT_NEAR(grad(norm(x), x).to(f64).to_vector<double>()[5], 0.25 / std::sqrt(70000 / 16.0), 1e-4);
    const Tensor g = grad(amax(x), x).to(f64);
    EXPECT_NEAR(g.to_vector<double>()[3], 1.0 / 70000, 1e-6);
    EXPECT_EQ(grad(sum(x), x).dtype(), t);
    EXPECT_NEAR(grad(logsumexp(x, 0), x).to(f64).to_vector<double>()[9], 1.0 / 70000, 1e-6);
  }
}

TEST(GradReduce, LogcumsumexpOfLargeHalves) {
  for (const DType t : {f16, bf16}) {
    const Tensor x = full({3}, 9984, {.dtype = t, .requires_grad = true});
    EXPECT_TRUE(
        allclose(grad(logcumsumexp(x, 0).sum(), x).to(f64), tensor<double>({11. / 6, 5. / 6, 1. / 3}), {.rtol = 1e-2}));
  }
}

}  // namespace
}  // namespace volta

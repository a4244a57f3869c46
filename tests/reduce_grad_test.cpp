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

}  // namespace
}  // namespace volta

// dropout on every device and in every layout gives the bits of the CPU, where it is composed; its gradients draw the same
// numbers again, also in captured steps.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include <volta/volta.h>

#include "ops/fused.h"
#include "samples.h"

namespace volta::test {
namespace {

using View = std::function<Tensor(const Tensor&)>;
constexpr DType dtypes[] = {f16, bf16, f32, f64};

testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return testing::AssertionFailure() << a << " against " << b;
  const Tensor x = a.detach().to("cpu").contiguous(), y = b.detach().to("cpu").contiguous();
  if (std::memcmp(x.raw_data(), y.raw_data(), size_t(x.nbytes())) == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << count_nonzero(x != y).item<int64_t>() << " of " << x.numel() << " differ";
}

Tensor dropped(const Tensor& x, double p) {
  manual_seed(31);
  return dropout(x, p);
}

// The result and the gradient of x for the cotangent g, both seen through views.
Tensors both_ways(const Tensor& x, const View& view, const Tensor& g, const View& cotangent) {
  const Tensor leaf = x.detach().requires_grad_(), y = dropped(view(leaf), 0.3);
  return {y.detach(), grad(y, leaf, {.grad_outputs = {cotangent(g)}})};
}

void expect_all(const std::string& what, const Tensors& got, const Tensors& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], wanted[i])) << what << ", result " << i;
}

Tensors composed(const std::function<Tensors()>& f) {
  use_fused_loops = false;
  const Tensors y = f();
  use_fused_loops = true;
  return y;
}

TEST(DropoutFused, EqualsTheCpuAtEverySize) {
  for (const Device& device : devices())
    for (const DType dtype : dtypes)
      for (const int64_t n : {1, 3, 4, 5, 1000, 100003})
        for (const double p : {1e-9, 0.1, 0.5, 0.97}) {
          const Tensor x = randn({n}).to(dtype), wanted = dropped(x, p);
          const auto after = default_generator().state();
          EXPECT_TRUE(same_bits(dropped(x.to(device), p), wanted)) << name(dtype) << " " << n << " " << p;
          EXPECT_EQ(default_generator().state(), after);
          EXPECT_TRUE(same_bits(composed([&] { return Tensors{dropped(x.to(device), p)}; })[0], wanted));
        }
}

TEST(DropoutFused, TakesEveryLayout) {
  const std::pair<const char*, View> views[] = {
      {"as it is", [](const Tensor& x) { return x; }},
      {"transposed", [](const Tensor& x) { return x.t(); }},
      {"flipped", [](const Tensor& x) { return x.flip({1}); }},
      {"narrowed rows", [](const Tensor& x) { return x.narrow(0, 1, 30); }},
      {"narrowed columns", [](const Tensor& x) { return x.narrow(1, 3, 41); }},
      {"from an odd place", [](const Tensor& x) { return x.flatten().narrow(0, 1, 1203); }},
      {"every second", [](const Tensor& x) { return x.slice(1, 1, {}, 2); }},
      {"expanded",
       [](const Tensor& x) {
         return x.unsqueeze(0).expand({3, -1, -1});
       }},
      {"one number", [](const Tensor& x) {
         return x[{0, 0}];
       }}};
  for (const Device& device : devices())
    for (const DType dtype : dtypes)
      for (const auto& entry : views) {
        const auto& view = entry.second;
        const Tensor x = randn({37, 53}).to(dtype);
        const std::string where = std::string(name(dtype)) + " " + entry.first;
        EXPECT_TRUE(same_bits(dropped(view(x.to(device)), 0.3), dropped(view(x), 0.3))) << where;
        // A gradient that expand adds up is compared on its own device: devices add in their own order.
        const Tensor g = randn(view(x).shape()).to(dtype), there = x.to(device);
        const auto run = [&] { return both_ways(there, view, g.to(device), [](const Tensor& t) { return t; }); };
        expect_all(where, run(), composed(run));
      }
}

TEST(DropoutFused, TakesEveryCotangent) {
  const View same = [](const Tensor& t) { return t; };
  const std::tuple<const char*, Shape, View> cotangents[] = {
      {"whole", {37, 53}, same},
      {"transposed", {53, 37}, [](const Tensor& g) { return g.t(); }},
      {"expanded rows",
       {1, 53},
       [](const Tensor& g) {
         return g.expand({37, 53});
       }},
      {"expanded columns",
       {37, 1},
       [](const Tensor& g) {
         return g.expand({37, 53});
       }},
      {"one number",
       {},
       [](const Tensor& g) {
         return g.expand({37, 53});
       }},
      {"from an odd place", {37 * 53 + 1}, [](const Tensor& g) {
         return g.narrow(0, 1, 37 * 53).reshape({37, 53});
       }}};
  for (const Device& device : devices())
    for (const DType dtype : dtypes)
      for (const auto& [what, shape, view] : cotangents) {
        const Tensor x = randn({37, 53}).to(dtype), g = randn(shape).to(dtype);
        expect_all(std::string(name(dtype)) + " " + what, both_ways(x.to(device), same, g.to(device), view),
                   both_ways(x, same, g, view));
      }
}

TEST(DropoutFused, CanBeDifferentiatedTwice) {
  for (const Device& device : devices())
    for (const DType dtype : dtypes) {
      const Tensor x = randn({37, 53}).to(dtype).to(device), c = randn({37, 53}).to(dtype).to(device);
      const auto run = [&] {
        const Tensor leaf = x.detach().requires_grad_(), y = dropped(leaf, 0.3);
        const Tensor first = grad(y.square().sum(), leaf, {.create_graph = true});
        return Tensors{y.detach(), first.detach(), grad(first, leaf, {.grad_outputs = {c}})};
      };
      const Tensors got = run();
      expect_all(std::string(name(dtype)), got, composed(run));
      const Tensor factor = dropped(ones_like(x), 0.3).to(f64), wanted = 2 * factor * factor * c.to(f64);
      EXPECT_TRUE(allclose(got[2].to(f64), wanted, {.rtol = is_half(dtype) ? 0.03 : 1e-6})) << name(dtype);
    }
}

TEST(DropoutFused, DropsItsShare) {
  for (const Device& device : devices())
    for (const double p : {0.1, 0.5, 0.9}) {
      const Tensor y = dropout(ones({1 << 20}, {.device = device}), p);
      EXPECT_NEAR((y == 0).to(f64).mean().item<double>(), p, 0.005);
      EXPECT_NEAR(y.to(f64).mean().item<double>(), 1, 0.02);
      EXPECT_EQ(y.max().item<float>(), float(1 / (1 - p)));
    }
}

TEST(DropoutFused, KeepsWhatIsNotFinite) {
  for (const Device& device : devices())
    for (const DType dtype : dtypes)
      for (const double value : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        const Tensor x = full({1001}, value).to(dtype), y = dropped(x.to(device), 0.4).to("cpu"), z = dropped(x, 0.4);
        EXPECT_TRUE(equal(isnan(y), isnan(z)) && equal(isinf(y), isinf(z))) << name(dtype) << " " << value;
        EXPECT_TRUE(isnan(y).any().item<bool>());
      }
}

TEST(DropoutFused, MayBeEmpty) {
  for (const Device& device : devices()) {
    const auto before = default_generator().state();
    const Tensor x = zeros({0, 3}, {.device = device}).requires_grad_(), y = dropout(x, 0.5);
    EXPECT_EQ(y.shape(), (Shape{0, 3}));
    EXPECT_EQ(grad(y.sum(), x).shape(), (Shape{0, 3}));
    EXPECT_EQ(default_generator().state(), before);
  }
}

TEST(DropoutFused, RepeatsItselfInACheckpoint) {
  for (const Device& device : devices()) {
    const auto run = [&](bool kept) {
      manual_seed(8);
      const Tensor x = randn({1000}).to(device).requires_grad_();
      const auto f = [](const Tensor& t) { return dropout(dropout(t, 0.2).square(), 0.3); };
      const Tensor y = kept ? f(x) : checkpoint(f, x);
      return Tensors{y.detach(), grad(y, x, {.grad_outputs = {ones_like(y.detach())}})};
    };
    expect_all(device.str(), run(false), run(true));
  }
}

TEST(DropoutFused, DrawsAfreshInEveryReplay) {
  for (const Device& device : devices())
    for (const DType dtype : dtypes) {
      const auto run = [&](bool captured) {
        manual_seed(11);
        const Tensor x = randn({1003}).to(dtype).to(device).requires_grad_();
        const auto step = [&] {
          const Tensor y = dropout(dropout(x, 0.3), 0.1);
          return stack({y.detach(), grad(y.square().sum(), x)}, 0);
        };
        auto replayed = capture(step);
        Tensors results;
        for (int i = 0; i < 7; ++i) {
          if (i == 4) manual_seed(77);
          results.push_back((captured ? replayed() : step()).to("cpu").clone());
        }
        return results;
      };
      const Tensors got = run(true);
      expect_all(device.str() + " " + std::string(name(dtype)), got, run(false));
      for (size_t i = 1; i < got.size(); ++i) EXPECT_FALSE(equal(got[i], got[i - 1])) << i;
    }
}

// What was dropped before the step stays so: its numbers are no draw of the step's.
TEST(DropoutFused, GoesBackFromACapturedStepThroughAnEarlierCall) {
  for (const Device& device : devices()) {
    const Tensor x = randn({1003}).to(device).requires_grad_(), y = dropout(x, 0.3), g = randn({1003}).to(device);
    const auto back = [&] { return grad(y, x, {.grad_outputs = {g}, .retain_graph = true}); };
    const Tensor wanted = back();
    auto replayed = capture(back);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(replayed(), wanted)) << device.str() << " " << i;
  }
}

TEST(DropoutFused, KeepsNoMaskOnAGpu) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const Tensor x = ones({1 << 22}, {.device = "cuda"}).requires_grad_();
  cuda::synchronize();
  const int64_t before = cuda::memory_stats().in_use;
  const Tensor y = dropout(x, 0.5);
  cuda::synchronize();
  EXPECT_LT(cuda::memory_stats().in_use - before, y.nbytes() * 3 / 2);
}

}  // namespace
}  // namespace volta::test

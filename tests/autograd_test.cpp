// Autograd: accumulation, graphs, modes, hooks, in-place changes, views, custom rules, depth.
#include <gtest/gtest.h>

#include <cmath>

#include <volta/volta.h>

#include "why.h"

namespace volta::test {
namespace {

Tensor leaf(std::initializer_list<Data> values) { return tensor<double>(Data(values)).requires_grad_(); }

TEST(AutogradEngine, AccumulatesUsesAndDiamonds) {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor a = x * 3, b = a.exp(), c = a * b;
  const auto want = 3 * (a.exp() + a * a.exp());
  EXPECT_TRUE(allclose(grad(c.sum(), x), want.detach()));
  (x * x).sum().backward();
  (x * x).sum().backward();
  EXPECT_TRUE(allclose(*x.grad(), 4 * x.detach()));
  x.zero_grad();
  EXPECT_FALSE(x.grad());
}

TEST(AutogradEngine, RetainedGraphsRunTwiceReleasedOnesSay) {
  const Tensor x = leaf({3.0});
  const Tensor y = (x * x * x).sum();
  EXPECT_DOUBLE_EQ(grad(y, x, {.retain_graph = true}).item<double>(), 27);
  EXPECT_DOUBLE_EQ(grad(y, x).item<double>(), 27);
  EXPECT_NE(why([&] { grad(y, x); }).find("retain_graph"), std::string::npos);
  EXPECT_NE(why([&] { y.backward(); }).find("retain_graph"), std::string::npos);
}

TEST(AutogradEngine, PrunesAndReportsUnused) {
  const Tensor x = leaf({1.0}), z = leaf({2.0});
  EXPECT_NE(why([&] { grad((x * 2).sum(), {x, z}); }).find("allow_unused"), std::string::npos);
  const auto g = grad((x * 2).sum(), {x, z}, {.allow_unused = true});
  EXPECT_TRUE(g[0].defined() && !g[1].defined());
  EXPECT_NE(why([&] { grad(x.detach().sum(), x); }).find("requires_grad"), std::string::npos);
}

TEST(AutogradEngine, NonScalarRootsNeedACotangent) {
  const Tensor x = leaf({1.0, 2.0});
  EXPECT_NE(why([&] { (x * 2).backward(); }).find("cotangent"), std::string::npos);
  (x * 2).backward(tensor<double>({1, 10}));
  EXPECT_TRUE(equal(*x.grad(), tensor<double>({2, 20})));
  EXPECT_NE(why([&] { (x * 2).backward(ones({3})); }).find("[3]"), std::string::npos);
}

TEST(AutogradEngine, IntermediateResultsHaveGradientsOnRequest) {
  const Tensor x = leaf({1.0, 2.0}), h = x.exp();
  EXPECT_TRUE(allclose(grad((h * h).sum(), h), 2 * h.detach()));
}

TEST(AutogradEngine, GradientsKeepShapeAndDtype) {
  const Tensor x = ones({3, 1}, {.dtype = f32, .requires_grad = true}),
               y = ones({4}, {.dtype = f64, .requires_grad = true});
  const auto g = grad((x * y).sum(), {x, y});
  EXPECT_EQ(g[0].shape(), (Shape{3, 1}));
  EXPECT_EQ(g[0].dtype(), f32);
  EXPECT_EQ(g[1].shape(), Shape{4});
  EXPECT_EQ(g[1].dtype(), f64);
}

TEST(AutogradEngine, LeavesDoNotShareTheirGradient) {
  const Tensor a = leaf({1.0, 2.0}), b = leaf({3.0, 4.0});
  (a + b).sum().backward();
  EXPECT_FALSE(a.grad()->shares_storage(*b.grad()));
  a.grad()->add_(1);
  EXPECT_TRUE(equal(*b.grad(), ones({2}, {.dtype = f64})));
}

TEST(AutogradEngine, HigherOrders) {
  const Tensor x = leaf({0.5, 1.5});
  Tensor y = x.sin().sum();
  for (int order = 1; order <= 4; ++order) y = grad(y, x, {.create_graph = true}).sum();
  EXPECT_NEAR(y.item<double>(), std::sin(0.5) + std::sin(1.5), 1e-12);
}

TEST(AutogradEngine, DeepGraphs) {
  const Tensor x = leaf({1.0, 2.0, 3.0});
  Tensor deep = x;
  for (int i = 0; i < 2'000'000; ++i) deep = deep + 1e-6;
  EXPECT_TRUE(equal(grad(deep.sum(), x), ones({3}, {.dtype = f64})));
  Tensor products = x;
  for (int i = 0; i < 200'000; ++i) products = products * 1.0;
  EXPECT_TRUE(equal(grad(products.sum(), x), ones({3}, {.dtype = f64})));
}

TEST(AutogradModes, GuardsNest) {
  const Tensor x = leaf({1.0});
  {
    const NoGrad off;
    EXPECT_FALSE((x * 2).requires_grad());
    const EnableGrad on;
    EXPECT_TRUE((x * 2).requires_grad());
  }
  {
    const InferenceMode inference;
    EXPECT_TRUE(is_inference_mode());
    const EnableGrad on;
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_NE(why([&] { zeros({2}, {.dtype = i64, .requires_grad = true}); }).find("i64"), std::string::npos);
}

TEST(AutogradModes, AnomalyNamesTheOp) {
  const Tensor x = leaf({0.0});
  const Tensor y = (x.sqrt() * 0).sum();
  const DetectAnomaly watch;
  const std::string text = why([&] { grad(y, x); });
  EXPECT_NE(text.find("sqrt"), std::string::npos) << text;
  EXPECT_NE(text.find("NaN"), std::string::npos) << text;
}

TEST(AutogradHooks, SeeAndReplace) {
  const Tensor x = leaf({1.0, 2.0});
  int seen = 0;
  const int hook = x.register_hook([&](const Tensor& g) -> std::optional<Tensor> {
    ++seen;
    EXPECT_TRUE(equal(g, tensor<double>({5, 5})));  // both uses, accumulated, once
    return std::nullopt;
  });
  (x * 2 + x * 3).sum().backward();
  EXPECT_EQ(seen, 1);
  x.remove_hook(hook);
  x.zero_grad();
  (x * 2).sum().backward();
  EXPECT_EQ(seen, 1);
}

TEST(AutogradInPlace, VersionsAreChecked) {
  const Tensor x = leaf({1.0, 2.0});
  Tensor s = x * 1, y = s * s;
  s.add_(1);
  const std::string text = why([&] { grad(y.sum(), x); });
  EXPECT_NE(text.find("mul"), std::string::npos) << text;
  EXPECT_NE(text.find("in place"), std::string::npos) << text;
  // Addition saves nothing, so changing its operands is fine.
  Tensor t = x * 1, u = t + 1;
  t.mul_(2);
  EXPECT_TRUE(equal(grad(u.sum(), x), ones({2}, {.dtype = f64})));
}

TEST(AutogradInPlace, ChainsThroughInPlaceOps) {
  const Tensor x = leaf({1.0, 2.0});
  Tensor y = x * 2;
  const Tensor same = y;
  y.mul_(3).add_(x);
  EXPECT_TRUE(equal(grad(same.sum(), x), full({2}, 7, {.dtype = f64})));
  const Tensor z = leaf({0.5});
  EXPECT_TRUE(gradcheck(
      [](const Tensor& v) {
        Tensor w = v * 1;
        w.mul_(2);
        w.exp_();
        return w;
      },
      z));
}

TEST(AutogradInPlace, OverwrittenOperandsAreKeptForTheirGradient) {
  const Tensor x = leaf({1.0, 2.0}), v = leaf({3.0, 5.0});
  EXPECT_TRUE(gradcheck(
      [](const Tensor& a, const Tensor& b) {
        Tensor y = a * 1;
        y.mul_(b);
        y.mul_(y);
        return y;
      },
      x, v));
}

TEST(AutogradInPlace, LeavesAndTheirViewsAreProtected) {
  Tensor x = leaf({1.0, 2.0});
  EXPECT_NE(why([&] { x.add_(1); }).find("leaf"), std::string::npos);
  EXPECT_NE(why([&] { x.select(0, 0).add_(1); }).find("leaf"), std::string::npos);
  EXPECT_NE(why([&] { x[0] = 5; }).find("leaf"), std::string::npos);
  EXPECT_TRUE(equal(x.detach(), tensor<double>({1, 2})));
  const NoGrad off;
  x.add_(1);
  EXPECT_TRUE(equal(x.detach(), tensor<double>({2, 3})));
}

TEST(AutogradInPlace, WritingThroughAViewReachesTheBase) {
  const Tensor x = leaf({1.0, 2.0, 3.0}), w = leaf({10.0});
  Tensor y = x * 2;
  Tensor head = y.slice(0, 0, 1), sibling = y.slice(0, 0, 2);
  head.mul_(10).add_(w);
  const auto g = grad(y.sum(), {x, w}, {.retain_graph = true});
  EXPECT_TRUE(equal(g[0], tensor<double>({20, 2, 2})));
  EXPECT_DOUBLE_EQ(g[1].item<double>(), 1);
  EXPECT_TRUE(equal(grad(sibling.sum(), x), tensor<double>({20, 2, 0})));
  Tensor buffer = zeros({3}, {.dtype = f64});
  buffer[1] = x[2];
  EXPECT_TRUE(equal(grad(buffer.sum(), x), tensor<double>({0, 0, 1})));
}

TEST(AutogradInPlace, ExpandedMemoryRefusesWrites) {
  Tensor wide = zeros({3, 1}).expand({3, 4});
  EXPECT_NE(why([&] { wide.add_(1); }).find("share memory"), std::string::npos);
}

TEST(AutogradInPlace, OverlappingOperandsAreCopiedFirst) {
  Tensor x = arange(0, 6).to(f32);
  x.slice(0, 1, 6).copy_(x.slice(0, 0, 5));
  EXPECT_TRUE(equal(x, tensor({0., 0., 1., 2., 3., 4.})));
  Tensor y = arange(0, 5).to(f32);
  y.add_(y.flip({0}));
  EXPECT_TRUE(equal(y, full({5}, 4.0)));
}

TEST(AutogradCustom, RulesAreChecked) {
  const Tensor x = leaf({1.0, 2.0});
  const Tensor y = with_backward("mine", x.detach() * 2, {x}, [](const Tensor&) { return std::vector<Tensor>{}; });
  EXPECT_NE(why([&] { grad(y.sum(), x); }).find("mine"), std::string::npos);
}

TEST(AutogradCustom, CheckpointRecomputes) {
  const Tensor x = leaf({0.3, 0.7});
  int runs = 0;
  const auto f = [&](const Tensor& t) {
    ++runs;
    return (t.sin() * rand({2}, {.dtype = f64})).exp();
  };
  const Tensor y = checkpoint(f, x);
  EXPECT_EQ(runs, 1);
  const Tensor g = grad(y.sum(), x);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(allclose(g, y.detach() * y.detach().log() / x.detach().sin() * x.detach().cos()));
}

TEST(AutogradCustom, CheckpointThatThrowsLeavesTheGenerator) {
  const Tensor x = leaf({0.3, 0.7});
  int runs = 0;
  const Tensor y = checkpoint(
      [&](const Tensor& t) {
        if (++runs == 2) throw Error(Error::Kind::argument, "second", "run fails");
        return t * rand({2}, {.dtype = f64});
      },
      x);
  rand({8});
  const Generator::State before = default_generator().state();
  EXPECT_NE(why([&] { grad(y.sum(), x); }).find("second"), std::string::npos);
  EXPECT_EQ(default_generator().state(), before);
}

TEST(AutogradFunctional, Derivatives) {
  const Tensor x = tensor<double>({0.5, 1.5, -1.0});
  const auto f = [](const Tensor& t) { return t * t.sum(); };
  const Tensor j = jacobian(f, x);
  EXPECT_TRUE(allclose(j, eye(3, {}, {.dtype = f64}) * x.sum() + x.unsqueeze(1)));
  const Tensor v = tensor<double>({1, -2, 0.5});
  EXPECT_TRUE(allclose(vjp(f, x, v).product, v.matmul(j)));
  EXPECT_TRUE(allclose(jvp(f, x, v).product, j.matmul(v)));
  EXPECT_TRUE(allclose(hessian([](const Tensor& t) { return t.pow(3).sum(); }, x), diag(6 * x)));
}

TEST(AutogradFunctional, GradcheckFindsWrongRules) {
  const Tensor x = leaf({1.0, 2.0});
  const auto wrong = [](const Tensor& t) {
    return with_backward("wrong", t.detach().exp(), {t}, [](const Tensor& g) { return std::vector{g}; });
  };
  EXPECT_FALSE(gradcheck(wrong, x));
  EXPECT_NE(
      why([&] { gradcheck_all(detail::as_function(wrong, "gradcheck", x), {x}, {.raise = true}); }).find("numeric"),
      std::string::npos);
  // What checks nothing does not pass.
  EXPECT_NE(why([&] { (void)gradcheck(wrong, x.detach()); }).find("nothing to check"), std::string::npos);
  EXPECT_NE(why([&] { (void)gradgradcheck(wrong, x.detach().to(f32)); }).find("nothing to check"), std::string::npos);
  const Tensor big = randn({200, 300}, {.dtype = f64, .requires_grad = true});
  EXPECT_TRUE(
      gradcheck_all(detail::as_function([](const Tensor& t) { return t.softmax(1).pow(2).sum(); }, "gradcheck", big),
                    {big}, {.fast = true}));
}

TEST(AutogradGraph, Printable) {
  const Tensor x = leaf({1.0});
  const Tensor y = (x * 2).exp();
  EXPECT_NE(graph_text(y).find("exp [1] f64"), std::string::npos) << graph_text(y);
  EXPECT_NE(graph_dot(y).find("digraph"), std::string::npos);
}

// Gradients of parts are added in place to what has arrived, but never into memory that others see.
TEST(AutogradParts, AddUpInPlace) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const Tensor h = x * 2;
    const Tensor parts = h[0] * h[1] + h.slice(0, 1, 3).sum(0) + h.diagonal().sum() + h.as_strided({4}, {2}, 1);
    return (parts * w).sum() + (h + w).sum() + h.t()[2].square().sum();
  };
  const Tensor x = randn({3, 4}, {.dtype = f64, .requires_grad = true});
  const Tensor w = randn({4}, {.dtype = f64, .requires_grad = true});
  EXPECT_TRUE(gradcheck(f, x, w));
  EXPECT_TRUE(gradgradcheck(f, x, w));

  Tensor h = x * 1, v = zeros({3, 4}, {.dtype = f64, .requires_grad = true});
  const std::vector<Tensor> g =
      grad((h + v).sum() + h[0].sum() + h[2].sum(), {v, x});  // h and v are handed one gradient
  EXPECT_TRUE(equal(g[0], ones({3, 4}, {.dtype = f64})));
  EXPECT_EQ(g[1].to_vector<double>(), (std::vector<double>{2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2}));
}

// Whoever owns a gradient's memory may ask for the gradient, or take a lock that someone who asks for it holds.
TEST(AutogradGrad, IsReleasedOutsideItsLock) {
  float memory[2] = {1, 2};
  const Tensor x = ones({2}, {.requires_grad = true});
  bool gone = false;
  x.set_grad(from_blob(memory, {2}, {}, [&] { gone = !x.grad(); }));
  x.zero_grad();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace volta::test

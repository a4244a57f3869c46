// What belongs to whom in the graph: views and their bases, leaves that are off for a while, gradients, memory of others.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include <volta/volta.h>

#include "why.h"

namespace volta::test {
namespace {

void expect_values(const Tensor& got, const Data& want) { EXPECT_TRUE(equal(got, tensor(want, {got.dtype()}))) << got; }

Tensor leaf(const Tensor& values) { return values.clone().requires_grad_(); }

// Runs f in so many threads and returns how many threw an Error.
template <class F> int errors_in_threads(int threads, F f) {
  std::atomic<int> errors = 0;
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&] {
      try {
        f();
      } catch (const Error&) {
        ++errors;
      }
    });
  all.clear();
  return errors;
}

TEST(MemoryBorrowed, ATemporaryOverItIsNotWrittenTo) {
  float host[4] = {1, 2, 3, 4};
  const auto borrowed = [&] { return from_blob(host, {4}, {.dtype = f32}); };
  Tensor a = borrowed() + 1, b = borrowed() * 2, c = clamp(borrowed(), 2, 3), d = borrowed().relu() - borrowed();
  Tensor named = borrowed();
  Tensor e = std::move(named) * 3;
  EXPECT_EQ(std::vector<float>(host, host + 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_NE(a.data<float>(), host);
  expect_values(a, {2, 3, 4, 5});
  expect_values(e, {3, 6, 9, 12});
}

TEST(MemoryBorrowed, AParameterDoesNotTakeItOver) {
  float host[2] = {1, 2};
  nn::Parameter p(zeros({2}));
  p = from_blob(host, {2}, {.dtype = f32});
  {
    const NoGrad off;
    Tensor(p).mul_(10);
  }
  expect_values(p, {10, 20});
  EXPECT_EQ(host[0], 1);
}

TEST(MemoryBorrowed, NeitherDoesAGradient) {
  float host[2] = {1, 2};
  const Tensor x = leaf(zeros({2}));
  with_backward("borrowed", x.detach() * 1, {x},
                [&](const Tensor&) { return std::vector{from_blob(host, {2}, {.dtype = f32})}; })
      .sum()
      .backward();
  x.grad()->mul_(5);
  EXPECT_EQ(host[1], 2);
}

// Dense results that are not contiguous are bases like others.
TEST(GraphViews, OfAResultInAnotherOrder) {
  const Tensor a = leaf(tensor({{1, 2, 3}, {4, 5, 6}}, {f32}));
  Tensor y = a.t() * 2;  // [3, 2], its rows in memory are those of a
  Tensor w = y.t().view({6});
  w.mul_(3);
  expect_values(y, {{6, 24}, {12, 30}, {18, 36}});
  y.sum().backward();
  expect_values(*a.grad(), {{6, 6, 6}, {6, 6, 6}});
}

TEST(GraphViews, PartsOfAResultInAnotherOrder) {
  const Tensor a = leaf(tensor({{1, 2, 3}, {4, 5, 6}}, {f32}));
  Tensor y = a.t() * 1;
  Tensor flat = y.t().view({6});
  Tensor part = flat.slice(0, 1, 3);  // a[0][1], a[0][2]
  part.mul_(10);
  y[0].mul_(7);  // a[0][0], a[1][0]
  y.sum().backward();
  expect_values(*a.grad(), {{7, 10, 10}, {7, 1, 1}});
  EXPECT_TRUE(gradcheck(
      [](const Tensor& x) {
        Tensor z = x.permute({2, 0, 1}) * 1;
        Tensor v = z.permute({1, 2, 0}).view({-1});
        v.slice(0, 2, 9).mul_(v.slice(0, 2, 9).clone());
        z.select(1, 1).exp_();
        return z * z;
      },
      randn({2, 3, 2}, {.dtype = f64, .requires_grad = true})));
}

// Backwards, of size 0, with expanded and reversed cotangents.
TEST(GraphViews, OddViewsOfAResultInAnotherOrder) {
  const auto changed = [](const Tensor& x) {
    Tensor z = x.permute({2, 0, 1}) * 1;
    z.flip({0, 2}).slice(1, 0, 1).mul_(x.select(2, 0).sum());
    Tensor v = z.permute({1, 2, 0}).view({-1});
    v.flip({0}).slice(0, 1, 8, 3).copy_(x.reshape({-1}).slice(0, 0, 3));
    v.slice(0, 4, 4).fill_(7);
    return z;
  };
  const Tensor x = randn({2, 3, 2}, {.dtype = f64, .requires_grad = true});
  EXPECT_TRUE(gradcheck([&](const Tensor& t) { return changed(t).exp(); }, x));
  EXPECT_TRUE(gradcheck([&](const Tensor& t) { return changed(t).sum(1).square().sum(); }, x));
  EXPECT_TRUE(gradcheck([&](const Tensor& t) { return changed(t).flip({0, 1}) * x.detach().permute({2, 0, 1}); }, x));
  EXPECT_TRUE(gradgradcheck([&](const Tensor& t) { return changed(t).square(); }, x));
  const Tensor none = leaf(zeros({0, 3}));
  Tensor y = none.t() * 1;
  y.t().view({0}).mul_(2);
  y.sum().backward();
  EXPECT_EQ(none.grad()->shape(), (Shape{0, 3}));
}

TEST(GraphViews, AsStridedOfAViewOfSuchABase) {
  const Tensor a = leaf(ones({2, 3}));
  Tensor y = a.t() * 1;
  Tensor s = as_strided(y.t(), {2}, {1});
  s.mul_(10);
  y.sum().backward();
  expect_values(*a.grad(), {{10, 10, 1}, {1, 1, 1}});
}

TEST(GraphViews, AsStridedPassesAGraphOnToItsBase) {
  const Tensor w = leaf(ones({2}));
  Tensor base = zeros({4}), v = as_strided(base, {2}, {1});
  v.copy_(w * 2);
  EXPECT_TRUE(base.requires_grad());
  (base.sum() + w.sum()).backward();
  expect_values(*w.grad(), {3, 3});
  // Beyond what x shows of the storage there is no base that could notice.
  Tensor part = zeros({4}).slice(0, 0, 2).detach();
  Tensor beyond = as_strided(part, {2}, {1}, 2);
  beyond.fill_(1);
  EXPECT_TRUE(says([&] { beyond.copy_(w * 2); }, "view"));
}

TEST(GraphViews, OfMemoryThatTheBaseHasNoMore) {
  nn::Parameter p(zeros({1000}));
  Tensor v = Tensor(p)[{slice(990, 1000)}];
  p = zeros({3});
  {
    const NoGrad off;
    v.mul_(2);
  }
  EXPECT_EQ((v * 2).sum().item<float>(), 0);
  nn::Buffer b(zeros({1000}));
  Tensor u = Tensor(b)[{slice(990, 1000)}];
  b = zeros({3});
  const Tensor w = leaf(ones({10}));
  u.copy_(w);
  EXPECT_FALSE(b.requires_grad());
  u.sum().backward({.retain_graph = true});
  EXPECT_TRUE(equal(*w.grad(), ones({10})));
  Tensor piece = u.slice(0, 0, 2);
  piece.mul_(3);
  u.sum().backward();
  EXPECT_EQ(w.grad()->sum().item<float>(), 24);
}

TEST(GraphViews, MadeBeforeTheBaseBecameALeaf) {
  const Tensor w = leaf(ones({1}));
  Tensor x = zeros({3}), v = x[{slice(0, 1)}];
  x.requires_grad_();
  EXPECT_TRUE(says([&] { v.copy_(w * 2); }, "leaf"));
  EXPECT_TRUE(says([&] { v.add_(w); }, "leaf"));
  EXPECT_TRUE(says([&] { v.mul_(2); }, "leaf"));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(x.sum().item<float>(), 0);
}

// A view takes part as soon as what it views requires grad, whenever that was said.
TEST(GraphViews, OfABaseThatRequiresGradLater) {
  Tensor flat = ones({4}), part = flat.narrow(0, 0, 2), turned = flat.reshape({2, 2}).t()[1];
  const Tensor u = leaf(full({2}, 2.0));
  EXPECT_FALSE(part.requires_grad());
  flat.requires_grad_();
  EXPECT_TRUE(part.requires_grad() && turned.requires_grad() && !part.is_leaf());
  (part * u + turned * 3).sum().backward();
  expect_values(*flat.grad(), {2, 5, 0, 3});
  nn::Linear layer(2, 2);
  freeze(layer);
  const Tensor row = layer.weight[0];
  EXPECT_FALSE(row.requires_grad());
  unfreeze(layer);
  (row * u).sum().backward();
  expect_values(layer.weight.grad()->reshape({4}), {2, 2, 0, 0});
  // One that was made a leaf of its own stays one.
  Tensor base = ones({2}), own = base.narrow(0, 0, 1);
  own.requires_grad_(), base.requires_grad_();
  (own * 3).sum().backward();
  expect_values(*own.grad(), {3});
  EXPECT_FALSE(base.grad());
}

TEST(ThreadsGraph, ReadAViewWhoseBaseRequiresGradLater) {
  for (int round = 0; round < 200; ++round) {
    Tensor w = ones({4});
    const Tensor v = w[{slice(0, 2)}];
    w.requires_grad_();
    EXPECT_EQ(errors_in_threads(4, [&] { EXPECT_TRUE((v * 2).requires_grad()); }), 0);
  }
}

// What nobody recorded cannot follow a later change: a gradient that is missing says so.
TEST(GraphViews, MadeUnderNoGradAreNotReadAfterARecordedChange) {
  const Tensor w = leaf(full({3}, 2.0));
  const auto read = [&](auto make, auto change) {
    Tensor a = ones({3}), v = make(a);
    const Tensor before = v * 3;  // as long as nothing happened it is a constant
    EXPECT_FALSE(before.requires_grad());
    change(a);
    return why([&] { (v * w).sum().backward(); });
  };
  const auto whole = [](const Tensor& a) {
    const NoGrad off;
    return a[{slice()}];
  };
  const auto frozen = [](const Tensor& a) {
    const InferenceMode off;
    return a.as_strided({3}, {1});
  };
  const auto scaled = [&](Tensor& a) { a.mul_(w); };
  const auto written = [&](Tensor& a) { a[{slice(0, 1)}].copy_(w.narrow(0, 0, 1)); };
  EXPECT_NE(read(whole, scaled).find("NoGrad"), std::string::npos);
  EXPECT_NE(read(whole, written).find("NoGrad"), std::string::npos);
  EXPECT_NE(read(frozen, scaled).find("NoGrad"), std::string::npos);
  EXPECT_EQ(read(whole, [](Tensor& a) { a.mul_(2); }), "");
  EXPECT_EQ(read([&](const Tensor& a) { return whole(a).detach(); }, scaled), "");
  // Made after the change it is a constant, as any result under NoGrad; and without recording it is read.
  Tensor a = ones({3});
  const Tensor early = whole(a);
  a.mul_(w);
  EXPECT_FALSE((whole(a) * 3).requires_grad());
  const NoGrad off;
  EXPECT_EQ((early * 3).sum().item<float>(), 18);
}

TEST(GraphLeaves, AGradientThatWasSetIsAddedTo) {
  const Tensor x = leaf(ones({2}));
  x.set_grad(ones({1}).expand({2}));
  (x * 2).sum().backward();
  expect_values(*x.grad(), {3, 3});
}

TEST(ThreadsGraph, ReadAViewOfAChangedParameter) {
  const Tensor w = leaf(ones({8}));
  const Tensor v = w[{slice(0, 4)}];
  for (int round = 0; round < 200; ++round) {
    {
      const NoGrad off;
      Tensor(w).mul_(1);
    }
    EXPECT_EQ(errors_in_threads(4, [&] { EXPECT_EQ((v * 2).sum().item<float>(), 8); }), 0);
  }
  (v * 2).sum().backward();
  expect_values(*w.grad(), {2, 2, 2, 2, 0, 0, 0, 0});
}

TEST(ThreadsGraph, ConsumedByOneOfThem) {
  for (int round = 0; round < 100; ++round) {
    const Tensor w = leaf(ones({100}));
    const Tensor h = (w * 2).exp() * w;
    EXPECT_EQ(errors_in_threads(3, [&] { (h * 2).sum().backward(); }), 2);
  }
}

TEST(ThreadsGraph, RetainedByAll) {
  const Tensor w = leaf(ones({100}));
  const Tensor h = (w * 2).exp() * w;
  EXPECT_EQ(errors_in_threads(4,
                              [&] {
                                for (int i = 0; i < 25; ++i) h.sum().backward({.retain_graph = true});
                              }),
            0);
  EXPECT_NEAR(w.grad()->select(0, 0).item<float>(), 100 * 3 * std::exp(2.f), 0.1);
}

TEST(GraphConsumed, NothingByARuleThatThrew) {
  const Tensor w = leaf(ones({2}));
  const Tensor h = w * w;
  bool fails = true;
  h.register_hook([&](const Tensor& g) -> std::optional<Tensor> {
    if (fails) throw Error(Error::Kind::argument, "test", "not yet");
    return g;
  });
  const Tensor y = (h * h).sum();
  EXPECT_THROW(y.backward({.retain_graph = true}), Error);
  fails = false;
  y.backward();
  expect_values(*w.grad(), {4, 4});
  EXPECT_TRUE(says([&] { y.backward(); }, "consumed"));
}

TEST(GraphLeaves, OwnTheirGradientsWithCreateGraph) {
  const Tensor a = leaf(zeros({2})), b = leaf(zeros({2})), c = tensor({3, 4}, {f32});
  ((a + b) * c).sum().backward({.create_graph = true});
  EXPECT_FALSE(a.grad()->shares_storage(*b.grad()));
  nn::clip_grad_norm_({a, b}, 1.0);
  EXPECT_TRUE(allclose(*a.grad(), c / std::sqrt(50.), {.rtol = 1e-5}));
  const Tensor d = leaf(zeros({2})), e = leaf(zeros({2})), v = tensor({3, 4}, {f32});
  (d + e).backward(v, {.create_graph = true});
  (d + e).backward(v);
  expect_values(*d.grad(), {6, 8});
  expect_values(v, {3, 4});
  const Tensor f = leaf(zeros({3}));
  (f + 1).sum().backward({.create_graph = true});
  f.sum().backward();
  expect_values(*f.grad(), {2, 2, 2});
  Tensor kept = f * 1;
  kept.retain_grad();
  kept.sum().backward({.create_graph = true});
  kept.grad()->mul_(3);
  expect_values(*kept.grad(), {3, 3, 3});
}

TEST(GraphLeaves, OffForAWhile) {
  Tensor w = leaf(ones({2}));
  int calls = 0;
  w.register_hook([&](const Tensor&) -> std::optional<Tensor> { return ++calls, std::nullopt; });
  const Tensor y = (w * 3).sum();
  w.requires_grad_(false);
  EXPECT_FALSE(w.requires_grad());
  EXPECT_FALSE((w * 2).requires_grad());
  EXPECT_FALSE(w.grad());
  w.mul_(1);
  EXPECT_TRUE(w.is_leaf());
  w.requires_grad_(true);
  EXPECT_TRUE(says([&] { w.mul_(1); }, "leaf"));
  y.backward();
  expect_values(*w.grad(), {3, 3});
  EXPECT_EQ(calls, 1);
  w.requires_grad_(false);
  const Tensor z = leaf(ones({2}));
  w.requires_grad_(true);
  (w * z).sum().backward();
  expect_values(*w.grad(), {4, 4});
}

TEST(GraphLeaves, OffWhileTheGradientArrives) {
  Tensor w = leaf(ones({2})), u = leaf(ones({2}));
  const Tensor y = (w * u).sum();
  w.requires_grad_(false);
  y.backward();
  expect_values(*u.grad(), {1, 1});
  w.requires_grad_(true);
  EXPECT_FALSE(w.grad());
  u.requires_grad_(false);
  u.zero_grad();
  u.requires_grad_(true);
  EXPECT_FALSE(u.grad());
}

TEST(GraphLeaves, FrozenLayers) {
  nn::Linear layer(2, 1);
  const Tensor x = ones({1, 2});
  const Tensor loss = layer(x).sum();
  freeze(layer);
  EXPECT_FALSE(layer(x).requires_grad());
  unfreeze(layer);
  loss.backward();
  layer(x).sum().backward();
  expect_values(*layer.weight.grad(), {{2, 2}});
}

TEST(GraphHooks, MustKeepTheShape) {
  const Tensor w = leaf(ones({2}));
  const int id = w.register_hook([](const Tensor&) { return std::optional(ones({3, 2})); });
  EXPECT_TRUE(says([&] { (w * 1).sum().backward(); }, "hook"));
  w.remove_hook(id);
  w.register_hook([](const Tensor&) { return std::optional(Tensor()); });
  EXPECT_TRUE(says([&] { (w * 1).sum().backward(); }, "hook"));
}

TEST(GraphHooks, AreRemovedAfterAChangeInPlace) {
  const Tensor w = leaf(ones({2}));
  Tensor h = w * 2;
  int calls = 0;
  const int id = h.register_hook([&](const Tensor&) -> std::optional<Tensor> { return ++calls, std::nullopt; });
  h.mul_(3);
  h.remove_hook(id);
  h.remove_hook(id);
  h.sum().backward();
  EXPECT_EQ(calls, 0);
  expect_values(*w.grad(), {6, 6});
}

TEST(GraphCopy, OntoTheSameMemoryTakesTheGraph) {
  const Tensor w = leaf(ones({2}));
  Tensor y = w * 2;
  y.copy_(y.detach());
  (y + w).sum().backward();
  expect_values(*w.grad(), {1, 1});
  const Tensor z = w * 2;
  Tensor d = z.detach();
  d.copy_(z);
  EXPECT_TRUE(d.requires_grad());
  d.sum().backward();
  expect_values(*w.grad(), {3, 3});
}

TEST(GraphCustom, AResultHasMemoryOfItsOwn) {
  const Tensor w = leaf(ones({3}));
  const Tensor h = w * 1;
  const auto pass = [](const Tensor& g) { return std::vector{g}; };
  Tensor z = with_backward("pass", h, {h}, pass);
  z.mul_(10);
  EXPECT_EQ(h.sum().item<float>(), 3);
  Tensor y = with_backward("pass", w.detach(), {w}, pass);
  y.mul_(10);
  EXPECT_EQ(w.sum().item<float>(), 3);
  const Tensor v = ones({3});
  std::vector<Tensor> two = with_backward("two", std::vector{v, v}, std::vector{w},
                                          [](const std::vector<Tensor>& g) { return std::vector{g[0] + g[1]}; });
  two[0].mul_(5);
  EXPECT_EQ(two[1].sum().item<float>(), 3);
  two[0].sum().backward();
  expect_values(*w.grad(), {5, 5, 5});
}

// The gradient of an intermediate result leaves its own graph for another pass to go on.
TEST(GraphBackward, GoesOnFromAnIntermediateResult) {
  const Tensor x = leaf(ones({3}));
  Tensor h = x * 3, y = (h * h).sum();
  const Tensor g = grad(y, h);
  expect_values(g, {6, 6, 6});
  h.backward(g);
  expect_values(*x.grad(), {18, 18, 18});
  // Neither a function of one's own nor a checkpoint runs for a gradient that ends at its result.
  int backwards = 0, forwards = 0;
  const Tensor own = with_backward("own", x.detach() * 2, {x}, [&](const Tensor& t) {
    ++backwards;
    return std::vector<Tensor>{t * 2};
  });
  const Tensor g_own = grad(own.square().sum(), own);
  EXPECT_EQ(backwards, 0);
  own.backward(g_own);
  EXPECT_EQ(backwards, 1);
  const Tensor kept = checkpoint(
      [&](const Tensor& t) {
        ++forwards;
        return t.exp();
      },
      x);
  const Tensor g_kept = grad(kept.sum(), kept);
  EXPECT_EQ(forwards, 1);
  kept.backward(g_kept);
  EXPECT_EQ(forwards, 2);
  // Wanted beside what lies before it: both.
  Tensor m = x * 2, z = m.square().sum();
  const auto both = grad(z, {m, x});
  expect_values(both[0], {4, 4, 4});
  expect_values(both[1], {8, 8, 8});
  // The result itself.
  Tensor s = (x * 5).sum();
  EXPECT_EQ(grad({s}, std::vector{s})[0].item<float>(), 1);
  x.zero_grad();
  s.backward();
  expect_values(*x.grad(), {5, 5, 5});
}

TEST(GraphFunctional, DerivativesAreRefusedInInferenceMode) {
  const Tensor x = ones({2});
  const auto f = [](const Tensor& t) { return t * t; };
  const auto total = [](const Tensor& t) { return (t * t).sum(); };
  const InferenceMode off;
  for (const auto& text :
       {why([&] { static_cast<void>(jacobian(f, x)); }), why([&] { static_cast<void>(hessian(total, x)); }),
        why([&] { static_cast<void>(vjp(f, x, x)); }), why([&] { static_cast<void>(jvp(f, x, x)); })})
    EXPECT_NE(text.find("InferenceMode"), std::string::npos) << text;
}

TEST(GraphBackward, AnAbsentCotangentIsOne) {
  const Tensor w = leaf(ones({2}));
  const Tensor y = (w * 3).sum();
  y.backward({}, {.retain_graph = true});
  y.backward(Tensor());
  expect_values(*w.grad(), {6, 6});
}

}  // namespace
}  // namespace volta::test

// checkpoint: gradients of everything the function uses, equal bits, less memory; and with_backward of several results.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <tuple>

#include <volta/volta.h>

#include "why.h"

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;

Tensor leaf(const Shape& shape, uint64_t seed) {
  manual_seed(seed);
  return randn(shape, {.dtype = f64}).requires_grad_();
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.shape() == b.shape() && equal(a.detach(), b.detach());
}

// net(true) computes with checkpoints, net(false) without: values, gradients by both ways and the stream are the same.
void expect_same(const std::function<Tensor(bool)>& net, const Tensors& leaves) {
  std::vector<Tensors> by_grad, by_backward;
  std::vector<Generator::State> after;
  Tensors values;
  for (const bool checkpointed : {false, true}) {
    manual_seed(5);
    Tensor y = net(checkpointed);
    values.push_back(y);
    after.push_back(default_generator().state());
    rand({100});  // the backward pass must not use what is drawn from here on
    by_grad.push_back(grad(y, leaves));
    manual_seed(5);
    y = net(checkpointed);
    for (const Tensor& x : leaves) x.zero_grad();
    y.backward();
    Tensors found;
    for (const Tensor& x : leaves) found.push_back(x.grad() ? x.grad()->clone() : Tensor());
    by_backward.push_back(found);
  }
  EXPECT_TRUE(same_bits(values[0], values[1]));
  EXPECT_EQ(after[0], after[1]);
  for (size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(same_bits(by_grad[0][i], by_grad[1][i])) << "grad of " << i;
    EXPECT_TRUE(same_bits(by_backward[0][i], by_backward[1][i])) << "backward of " << i;
  }
}
template <class F, class... X> auto maybe(bool on, F&& f, const X&... x) {
  if (on) return checkpoint(f, x...);
  return f(x...);
}

TEST(CheckpointCaptures, LayersByReferenceAndAsTheFunction) {
  manual_seed(1);
  const nn::Linear one(4, 4), two(4, 4), three(4, 4);
  const Tensor x = randn({3, 4}).requires_grad_();
  Tensors leaves = {x};
  for (const nn::Linear* l : {&one, &two, &three}) leaves.push_back(l->weight), leaves.push_back(l->bias);
  expect_same(
      [&](bool on) {
        const Tensor a = maybe(
            on, [&](const Tensor& t) { return tanh(two(one(t))); }, x);
        return maybe(on, three, a).square().sum();
      },
      leaves);
}

TEST(CheckpointCaptures, ALayerIsNotCopiedAndMayGoAway) {
  Tensor weight, y;
  {
    nn::Linear layer(2, 2);
    weight = layer.weight;
    y = checkpoint(layer, ones({1, 2}));
  }
  EXPECT_TRUE(y.requires_grad());
  y.sum().backward();
  EXPECT_TRUE(weight.grad());
}

TEST(CheckpointCaptures, InputsThatNeedNoGradient) {
  const Tensor w = leaf({3, 3}, 1), x = leaf({2, 3}, 2).detach();
  const Tensor y = checkpoint([w](const Tensor& t) { return t.matmul(w).exp(); }, x);
  ASSERT_TRUE(y.requires_grad());
  EXPECT_TRUE(same_bits(grad(y.sum(), w), grad(x.matmul(w).exp().sum(), w)));
  EXPECT_FALSE(checkpoint([](const Tensor& t) { return t * 2; }, x).requires_grad());
  const NoGrad off;
  EXPECT_FALSE(checkpoint([w](const Tensor& t) { return t.matmul(w); }, x).requires_grad());
}

// A captured activation depends on a captured leaf: the way through the activation counts once.
TEST(CheckpointCaptures, ActivationsAndTheirLeaves) {
  const Tensor w = leaf({3, 3}, 1), x = leaf({2, 3}, 2);
  expect_same(
      [&](bool on) {
        const Tensor h = tanh(x.matmul(w)), row = w[0];
        return maybe(
                   on, [=](const Tensor& t) { return (t * h).matmul(w) + row + t * x; }, h * 2)
            .square()
            .sum();
      },
      {x, w});
}

TEST(CheckpointCaptures, NestedAndRandom) {
  const Tensor w = leaf({8, 8}, 1), v = leaf({8, 8}, 2), x = leaf({4, 8}, 3);
  const auto inner = [&](const Tensor& t) { return dropout(tanh(t.matmul(v)), 0.5); };
  expect_same(
      [&](bool on) {
        const auto outer = [&, on](const Tensor& t) {
          const Tensor noisy = t.matmul(w) * rand({4, 8}, {.dtype = f64});
          return maybe(on, inner, maybe(on, inner, noisy)) + dropout(noisy, 0.25);
        };
        return maybe(on, outer, maybe(on, outer, x)).sum();
      },
      {x, w, v});
}

TEST(CheckpointCaptures, SeveralResults) {
  const Tensor w = leaf({4, 4}, 1), x = leaf({3, 4}, 2);
  struct Pair {
    Tensor first, second;
  };
  const auto sum_of = [](const auto&... t) { return (t.sum() + ...); };
  expect_same(
      [&](bool on) {
        const Tensors list = maybe(
            on, [&](const Tensor& t) { return split(t.matmul(w), 2, 1); }, x);
        const auto [a, b] = maybe(
            on, [&](const Tensor& t) { return std::tuple(t.exp(), t * w[0]); }, list[0].repeat({1, 2}));
        const auto [c, d] = maybe(
            on,
            [&](const Tensor& t) {
              return Pair{t * w[1], t.sin()};
            },
            b);
        const auto [values, indices] = maybe(
            on, [&](const Tensor& t) { return (t * w[2]).max(1); }, d);
        const std::array<Tensor, 2> ends = maybe(
            on,
            [&](const Tensor& t) {
              return std::array{t * 2, t * w[3][0]};
            },
            values);
        EXPECT_EQ(indices.dtype(), i64);
        return sum_of(list[1] * list[1], a, c, ends[0], ends[1].square());
      },
      {x, w});
  const auto both = checkpoint([&](const Tensor& t) { return Pair{t * w, ones({2}, {.dtype = f64})}; }, w);
  EXPECT_TRUE(both.first.requires_grad());
  EXPECT_FALSE(both.second.requires_grad());
}

TEST(CheckpointCaptures, RecurrentLayersAndLists) {
  manual_seed(3);
  const nn::LSTM lstm(3, 4);
  const Tensor x = randn({2, 5, 3}).requires_grad_();
  expect_same(
      [&](bool on) {
        return maybe(
                   on, [&](const Tensor& t) { return lstm(t).output; }, x)
            .square()
            .sum();
      },
      {x, lstm.weights[0].ih, lstm.weights[0].hh});
  const Tensor a = leaf({3}, 1), b = leaf({3}, 2);
  const auto product = [](const Tensors& in) { return in[0] * in[1].exp(); };
  const Tensors two = {a, b};
  EXPECT_TRUE(same_bits(grad(checkpoint(product, two).sum(), b), grad(product(two).sum(), b)));
}

// What reaches an input by another way stays, whichever comes first.
TEST(CheckpointCaptures, InputsThatTheResultDoesNotNeed) {
  const Tensor x = leaf({3}, 1), y = leaf({3}, 2);
  const auto first = [](const Tensors& t) { return Tensors{t[0] * 2}; };
  for (const bool before : {false, true}) {
    const Tensor a = x * 1, b = y * 1, one = checkpoint(first, Tensors{a, b})[0].sum(), other = (b * 3).sum();
    const Tensors g = grad(before ? one + other : other + one, {x, y});
    EXPECT_TRUE(same_bits(g[0], full({3}, 2.0, {.dtype = f64})));
    EXPECT_TRUE(same_bits(g[1], full({3}, 3.0, {.dtype = f64})));
  }
}

TEST(CheckpointCaptures, ResultsThatAreNothingNew) {
  const Tensor w = leaf({3}, 1), x = leaf({3}, 2);
  const auto [same, captured] = checkpoint([=](const Tensor& t) { return std::pair(t, w); }, x);
  EXPECT_TRUE(same_bits(grad((same * 2).sum(), x), full({3}, 2, {.dtype = f64})));
  EXPECT_TRUE(
      same_bits(grad((checkpoint([=](const Tensor&) { return w; }, x) * 3).sum(), w), full({3}, 3, {.dtype = f64})));
  const Tensor h = x * 1;
  Tensor y = checkpoint([](const Tensor& t) { return t[{slice(0, 2)}]; }, h);
  y.mul_(5);  // h must not change with it
  EXPECT_TRUE(same_bits(h, x));
  EXPECT_TRUE(same_bits(grad(y.sum() + h.sum(), x), tensor<double>({6.0, 6.0, 1.0})));
}

TEST(CheckpointOrders, SecondDerivativesAreThoseWithout) {
  const Tensor w = leaf({3, 3}, 1), x = leaf({2, 3}, 2), h0 = leaf({2, 3}, 3);
  const auto second = [&](bool on) {
    const Tensor h = h0.sin();
    const Tensor y = maybe(
        on, [&](const Tensor& t) { return tanh(t.matmul(w)) * h; }, x);
    const Tensors first = grad(y.exp().sum(), {x, w, h0}, {.create_graph = true});
    return grad((first[0].square().sum() + first[1].sin().sum() + first[2].exp().sum()), {x, w, h0});
  };
  const Tensors want = second(false), got = second(true);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(allclose(got[i], want[i], {.rtol = 1e-12})) << i;
  EXPECT_TRUE(gradgradcheck(
      [&](const Tensor& t, const Tensor& u) { return checkpoint([u](const Tensor& s) { return (s * u).tanh(); }, t); },
      x, h0));
}

TEST(CheckpointGuards, ChangesBetweenThePassesAreErrors) {
  const Tensor x = leaf({3}, 1), w = leaf({3}, 2), mask = ones({3}, {.dtype = f64});
  const auto run = [&] { return checkpoint([=](const Tensor& t) { return (t * w * mask).exp(); }, x).sum(); };
  for (Tensor changed : {x, w, mask}) {
    const Tensor y = run();
    {
      const NoGrad off;
      changed.mul_(2);
    }
    EXPECT_TRUE(says([&] { grad(y, w); }, "changed in place"));
  }
  EXPECT_TRUE(same_bits(grad(run(), w), grad((x * w * mask).exp().sum(), w)));
}

// Constants that only meet other constants, in whatever way they are read.
TEST(CheckpointGuards, ConstantsThatChangedAreErrors) {
  const Tensor x = ones({5, 4}), w = ones({4}).requires_grad_();
  const std::function<Tensor(const Tensor&, const Tensor&)> readers[] = {
      [&](const Tensor& t, const Tensor& k) { return t * k * w; },
      [&](const Tensor& t, const Tensor& k) { return t.matmul(k.diag()) * w; },
      [&](const Tensor& t, const Tensor& k) { return (t * k).detach() * w; },
      [&](const Tensor&, const Tensor& k) { return w * k.sum().item<float>(); },
      [&](const Tensor&, const Tensor& k) { return w * k[0].item<float>(); },
      [&](const Tensor&, const Tensor& k) { return w * k.to_vector<float>()[1]; },
      [&](const Tensor& t, const Tensor& k) { return (t + k.narrow(0, 0, 4)).exp() * w; },
      [&](const Tensor& t, const Tensor& k) {
        return cat({t, k.unsqueeze(0)}) * w;
      },
      [&](const Tensor& t, const Tensor& k) { return layer_norm(t, {4}, k) * w; },
      [&](const Tensor& t, const Tensor& k) { return t.index_select(1, k.to(i64)) * w; },
      [&](const Tensor& t, const Tensor& k) { return checkpoint([&](const Tensor& s) { return s * k * w; }, t); },
  };
  for (size_t i = 0; i < std::size(readers); ++i) {
    SCOPED_TRACE(i);
    Tensor k = ones({4});
    const auto run = [&] { return checkpoint([&](const Tensor& t) { return readers[i](t, k); }, x).sum(); };
    EXPECT_TRUE(equal(grad(run(), w), grad(readers[i](x, k).sum(), w)));
    const Tensor y = run();
    k.mul_(2);
    EXPECT_TRUE(says([&] { grad(y, w); }, "changed in place"));
  }
  nn::Buffer buffer = zeros({4});
  const Tensor y = checkpoint([&](const Tensor& t) { return (t + buffer).exp() * w; }, x);
  buffer = ones({4});
  EXPECT_TRUE(says([&] { grad(y.sum(), w); }, "changed in place"));
  // What the function changes itself is its own affair: running statistics between two passes and one backward.
  nn::BatchNorm1d norm(4);
  const auto forward = [&] { return checkpoint([&](const Tensor& t) { return norm(t) * w; }, x).sum(); };
  EXPECT_NO_THROW((forward() + forward()).backward());
}

TEST(CheckpointGuards, FunctionsThatDoSomethingElseTheSecondTime) {
  const Tensor x = leaf({3}, 1), a = leaf({3}, 2), b = leaf({3}, 3);
  Tensor chosen = a;
  const Tensor y = checkpoint([&](const Tensor& t) { return t * chosen; }, x);
  chosen = b;
  EXPECT_TRUE(says([&] { grad(y.sum(), x); }, "other tensors"));
  int runs = 0;
  const Tensor z = checkpoint([&](const Tensor& t) { return ++runs == 1 ? t * 2 : t * rand({3}, {.dtype = f64}); }, x);
  EXPECT_TRUE(says([&] { grad(z.sum(), x); }, "random"));
}

TEST(CheckpointGuards, InPlaceAndWhatLeaves) {
  const Tensor x = leaf({3}, 1), h = x * 1;
  EXPECT_TRUE(says([&] { checkpoint([](Tensor t) { return t.mul_(2); }, h); }, "in place"));
  Tensor stolen;
  const Tensor y = checkpoint([&](const Tensor& t) { return (stolen = t.exp()) * 2; }, x);
  EXPECT_TRUE(says([&] { grad(stolen.sum(), x); }, "checkpoint"));
  EXPECT_TRUE(says([&] { (y + stolen).sum().backward(); }, "checkpoint"));
  EXPECT_TRUE(says([&] { checkpoint([](const Tensor& t) { return grad(t.exp().sum(), t); }, x); }, "checkpoint"));
}

TEST(CheckpointGuards, HooksRunOnce) {
  const Tensor x = leaf({3}, 1), w = leaf({3}, 2), h = w * 2;
  int on_leaf = 0, on_activation = 0;
  w.register_hook([&](const Tensor&) { return ++on_leaf, std::nullopt; });
  h.register_hook([&](const Tensor&) { return ++on_activation, std::nullopt; });
  (checkpoint([=](const Tensor& t) { return t * h * w; }, x) * h).sum().backward();
  EXPECT_EQ(on_leaf, 1);
  EXPECT_EQ(on_activation, 1);
}

TEST(CheckpointGuards, RunningStatisticsMoveOnce) {
  manual_seed(4);
  nn::BatchNorm2d plain(3);
  nn::BatchNorm2d kept = plain;
  const Tensor x = randn({4, 3, 5, 5}).requires_grad_();
  const Tensor a = grad(plain(x).square().sum(), plain.weight);
  const Tensor b = grad(checkpoint(kept, x).square().sum(), kept.weight);
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_TRUE(same_bits(plain.running_mean, kept.running_mean));
  EXPECT_TRUE(same_bits(plain.running_var, kept.running_var));
  EXPECT_EQ(kept.num_batches_tracked.item<int64_t>(), 1);
}

TEST(CheckpointGuards, AViewWhoseBaseChanged) {
  const Tensor x = leaf({4}, 1), base = x * 1;
  const Tensor view = base[{slice(0, 2)}];
  Tensor(base).mul_(3);
  const Tensor y = checkpoint([=](const Tensor& t) { return t * view; }, x[{slice(2, 4)}]);
  EXPECT_TRUE(same_bits(grad(y.sum(), x, {.retain_graph = true}),
                        cat({x.detach()[{slice(2, 4)}] * 3, x.detach()[{slice(0, 2)}] * 3})));
  EXPECT_TRUE(same_bits(grad(view.sum(), x), tensor<double>({3.0, 3.0, 0.0, 0.0})));
}

TEST(CheckpointThreads, BackwardElsewhereAndManyAtOnce) {
  const Tensor w = leaf({16, 16}, 1), x = leaf({4, 16}, 2);
  const auto loss = [&] {
    return checkpoint([&](const Tensor& t) { return dropout(tanh(t.matmul(w)), 0.5) * t; }, x).sum();
  };
  manual_seed(9);
  const Tensor want = grad(loss(), w);
  manual_seed(9);
  const Tensor y = loss();
  Tensor got;
  std::thread([&] { got = grad(y, w); }).join();
  EXPECT_TRUE(same_bits(want, got));
  // Each run repeats its own numbers, whatever the others draw meanwhile: what was dropped gets no gradient.
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Tensor one = ones({64}, {.dtype = f64}).requires_grad_();
        const Tensor kept = checkpoint([](const Tensor& t) { return dropout(t, 0.5) * 1; }, one);
        wrong += !same_bits(grad(kept.sum(), one), kept);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CheckpointMemory, PeakOfADeepNetIsSmaller) {
  constexpr int blocks = 16, layers = 8;
  const Tensor w = full({64, 64}, 0.01).requires_grad_(), x = ones({512, 64});  // an activation has 128 KiB
  const auto block = [&](const Tensor& in) {
    Tensor t = in;
    for (int i = 0; i < layers; ++i) t = tanh(t.matmul(w));
    return t;
  };
  const auto peak = [&](bool on) {
    const int64_t before = memory::stats().in_use;
    memory::reset_peak();
    Tensor t = x;
    for (int i = 0; i < blocks; ++i) t = maybe(on, block, t);
    t.sum().backward();
    w.zero_grad();
    return (memory::stats().peak - before) >> 10;
  };
  const int64_t plain = peak(false), saved = peak(true);
  RecordProperty("plain_kib", int(plain));
  RecordProperty("checkpointed_kib", int(saved));
  EXPECT_GE(plain, 128 * blocks * layers);
  EXPECT_LE(saved, 128 * (blocks + 2 * layers + 12));
}

TEST(AutogradCustom, SeveralResults) {
  const Tensor x = leaf({3}, 1), y = leaf({3}, 2);
  int runs = 0;
  const auto polar = [&] {
    const NoGrad off;
    return Tensors{x * y, x + y};
  };
  const Tensors both = with_backward("both", polar(), {x, y}, [=, &runs](const Tensors& g) {
    ++runs;
    return Tensors{g[0] * y + g[1], g[0] * x + g[1]};
  });
  EXPECT_TRUE(same_bits(grad(both[0].sum(), x, {.retain_graph = true}), y));
  EXPECT_TRUE(same_bits(grad(both[1].sum(), x, {.retain_graph = true}), ones({3}, {.dtype = f64})));
  const Tensors g = grad((both[0] + both[1]).sum(), {x, y});
  EXPECT_TRUE(same_bits(g[1], x + 1));
  EXPECT_EQ(runs, 3);
  EXPECT_TRUE(says([&] { grad(both[0].sum(), x); }, "retain_graph"));
  const auto held = std::make_shared<int>(1);
  const Tensor once = with_backward("once", x.detach(), {x}, [held](const Tensor& d) { return Tensors{d}; });
  EXPECT_EQ(held.use_count(), 2);
  grad(once.sum(), x);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(AutogradCustom, WhatTheInputsDoNotNameIsAnError) {
  const Tensor x = leaf({3}, 1), w = leaf({3}, 2), h = x * 2;
  const auto pass = [](const Tensor& g) { return Tensors{g}; };
  EXPECT_TRUE(says([&] { with_backward("mine", x * w, {x}, pass); }, "mine"));
  EXPECT_TRUE(with_backward("mine", x.round(), {x}, pass).requires_grad());
  EXPECT_FALSE(with_backward("mine", x.detach(), {x.detach()}, pass).requires_grad());
  EXPECT_TRUE(with_backward("mine", h * h.exp(), {x}, pass).requires_grad());
  EXPECT_TRUE(with_backward("mine", x * w.detach(), {x}, pass).requires_grad());
  EXPECT_TRUE(says([&] { with_backward("mine", w * 2, {x.detach()}, pass); }, "mine"));
  EXPECT_TRUE(says([&] { with_backward("mine", x * 1, {x}, std::function<Tensors(const Tensor&)>()); }, "empty"));
}

TEST(AutogradEngine, BracesAreLists) {
  const Tensor x = leaf({2, 3}, 1), y = (x * x).sum();
  EXPECT_EQ(grad({y}, {x}, {.retain_graph = true})[0].shape(), Shape({2, 3}));
  EXPECT_EQ(grad(y, {x})[0].shape(), Shape({2, 3}));
}

}  // namespace
}  // namespace volta::test

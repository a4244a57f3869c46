// Autocast: the guard, layers under it, gradients, kept casts, checkpoints.
#include <gtest/gtest.h>

#include <thread>

#include <volta/volta.h>

#include "toy_device.h"

namespace volta::test {
namespace {

Tensor weight(const Shape& shape, uint64_t seed = 1) {
  manual_seed(seed);
  return randn(shape).requires_grad_();
}
Tensor values(const Shape& shape, uint64_t seed = 2) {
  manual_seed(seed);
  return randn(shape);
}

// f of the arguments as Autocast is to compute it: with casts written out.
Tensor by_hand(const Tensor& x, const Tensor& w, DType half) { return matmul(x.to(half), w.to(half)); }

TEST(AutocastGuard, NestsAndIsTheThreadsOwn) {
  EXPECT_FALSE(is_autocast_enabled());
  const Tensor x = values({2, 3}), w = values({3, 2});
  {
    const Autocast outer(f16);
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(autocast_dtype(), f16);
    EXPECT_EQ(matmul(x, w).dtype(), f16);
    {
      const Autocast inner(bf16);
      EXPECT_EQ(matmul(x, w).dtype(), bf16);
      {
        const Autocast off(f16, {.enabled = false});
        EXPECT_FALSE(is_autocast_enabled());
        EXPECT_EQ(matmul(x, w).dtype(), f32);
      }
      EXPECT_EQ(matmul(x, w).dtype(), bf16);
    }
    EXPECT_EQ(autocast_dtype(), f16);
    DType there = f64;
    std::thread([&] { there = matmul(x, w).dtype(); }).join();
    EXPECT_EQ(there, f32);
  }
  EXPECT_FALSE(is_autocast_enabled());
  EXPECT_EQ(matmul(x, w).dtype(), f32);
}

TEST(AutocastGuard, TakesHalvesOnlyAndSurvivesErrors) {
  for (const DType wrong : {f32, f64, i32, boolean}) EXPECT_THROW(Autocast(wrong).~Autocast(), Error);
  EXPECT_FALSE(is_autocast_enabled());
  const Autocast guard(f16);
  EXPECT_THROW((void)matmul(values({2, 3}), values({2, 3})), Error);
  EXPECT_TRUE(is_autocast_enabled());  // the op turns it off while it runs
  EXPECT_EQ(matmul(values({2, 3}), values({3, 2})).dtype(), f16);
  EXPECT_THROW((void)exp(Tensor()), Error);
  EXPECT_TRUE(is_autocast_enabled());
}

TEST(AutocastGuard, ErrorsNameTheOpAsBefore) {
  const auto message = [](bool guarded) {
    const Autocast guard(f16, {.enabled = guarded});
    try {
      (void)matmul(values({2, 3}), values({4, 5}));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(true), message(false));
}

TEST(AutocastGuard, DoublesWinOverHalves) {
  const Tensor x = values({2, 3}), w = values({3, 2}).to(f64);
  const Autocast guard(f16);
  const Tensor y = matmul(x, w);
  EXPECT_EQ(y.dtype(), f64);
  const Autocast off(f16, {.enabled = false});
  EXPECT_TRUE(equal(y, matmul(x, w)));  // x was not rounded on the way
}

TEST(AutocastGuard, DoublesInOptionsAreLeftAlone) {
  const Tensor scores = values({4, 3}), target = ones({4, 3}), weights = tensor<double>({0.1, 0.2, 0.7});
  const Tensor want = binary_cross_entropy_with_logits(scores, target, {.pos_weight = weights});
  EXPECT_EQ(want.dtype(), f64);
  const Autocast guard(bf16);
  const Tensor y = binary_cross_entropy_with_logits(scores, target, {.pos_weight = weights});
  EXPECT_EQ(y.dtype(), want.dtype());
  EXPECT_TRUE(equal(y, want));
}

TEST(AutocastGuard, OptimizersStepExactly) {
  const auto stepped = [](bool guarded) {
    const Tensor p = weight({4, 4});
    optim::Muon opt({p}, {.lr = 0.1});
    p.set_grad(values({4, 4}));
    const Autocast guard(bf16, {.enabled = guarded});
    opt.step();
    return p.detach();
  };
  EXPECT_TRUE(equal(stepped(true), stepped(false)));
}

TEST(AutocastGuard, IntegersAreLeftAlone) {
  const Autocast guard(f16);
  EXPECT_EQ(matmul(ones({2, 3}, {.dtype = i64}), ones({3, 2}, {.dtype = i64})).dtype(), i64);
  EXPECT_EQ(ones({3}, {.dtype = i32}).sum().dtype(), i64);
}

TEST(AutocastGuard, InPlaceKeepsTheDtype) {
  Tensor x = ones({3}, {.dtype = f16});
  const Autocast guard(f16);
  x.exp_();
  EXPECT_EQ(x.dtype(), f16);
  EXPECT_EQ(exp(x).dtype(), f32);
}

TEST(AutocastGradients, AreOfTheParametersDtype) {
  for (const DType half : {f16, bf16}) {
    const Tensor w = weight({3, 2}), twin = w.detach().clone().requires_grad_(), x = values({4, 3});
    Tensor loss;
    {
      const Autocast guard(half);
      const Tensor y = matmul(x, w);
      EXPECT_EQ(y.dtype(), half);
      loss = mse_loss(y, zeros({4, 2}));
    }
    EXPECT_EQ(loss.dtype(), f32);
    loss.backward();
    mse_loss(by_hand(x, twin, half).to(f32), zeros({4, 2})).backward();
    ASSERT_EQ(w.grad()->dtype(), f32);
    EXPECT_TRUE(equal(*w.grad(), *twin.grad()));
  }
}

TEST(AutocastGradients, AreTheSameUnderTheGuardAndAfter) {
  const Tensor x = values({4, 3});
  const auto run = [&](bool inside) {
    const Tensor w = weight({3, 3});
    Tensor loss;
    {
      const Autocast guard(bf16);
      loss = softmax(matmul(tanh(matmul(x, w)), w), -1).square().sum();
      if (inside) loss.backward();
    }
    if (!inside) loss.backward();
    return *w.grad();
  };
  EXPECT_TRUE(equal(run(true), run(false)));
}

TEST(AutocastGradients, OfAnF32GraphStaySoUnderALaterGuard) {
  const Tensor x = values({4, 3});
  const auto run = [&](bool inside) {
    const Tensor w = weight({3, 3});
    const Tensor loss = matmul(matmul(x, w), w).square().sum();
    const Autocast guard(bf16, {.enabled = inside});
    loss.backward();
    EXPECT_EQ(is_autocast_enabled(), inside);
    return *w.grad();
  };
  EXPECT_TRUE(equal(run(true), run(false)));
}

TEST(AutocastGradients, SecondOrder) {
  const auto run = [](bool guarded) {
    const Tensor w = weight({3, 3}), x = values({3, 3});
    const Tensor y = [&] {
      const Autocast guard(bf16, {.enabled = guarded});
      return guarded ? matmul(x, w).pow(3).sum() : matmul(x.to(bf16), w.to(bf16)).to(f32).pow(3).sum();
    }();
    const Tensor g = grad(y, w, {.create_graph = true});
    EXPECT_EQ(g.dtype(), f32);
    return grad(g.square().sum(), w);
  };
  EXPECT_TRUE(equal(run(true), run(false)));
}

// How many allocations a call makes: a cast that is kept is made once.
int64_t allocations(const std::function<void()>& f) {
  const int64_t before = memory::stats().requests;
  f();
  return memory::stats().requests - before;
}

TEST(AutocastCache, CastsAParameterOnce) {
  const Tensor w = weight({64, 64}), x = values({4, 64}).to(bf16);
  const auto call = [&] { (void)matmul(x, w); };
  const Tensor cast = w.detach().to(bf16).requires_grad_();
  const auto plain = [&] { (void)matmul(x, cast); };
  plain();  // the product's own buffers are there
  const int64_t second = allocations(plain);
  {
    const Autocast guard(bf16);
    EXPECT_GT(allocations(call), second);
    EXPECT_EQ(allocations(call), second);
    {
      const Autocast inner(bf16);  // an inner guard keeps what the outer one has
      EXPECT_EQ(allocations(call), second);
    }
    EXPECT_EQ(allocations(call), second);
  }
  const Autocast guard(bf16, {.cache_enabled = false});
  EXPECT_GT(allocations(call), second);
  EXPECT_GT(allocations(call), second);
}

TEST(AutocastCache, EndsWithTheOutermostGuard) {
  const Tensor w = weight({64, 64}), x = values({4, 64}).to(bf16);
  memory::empty_cache();
  const int64_t before = memory::stats().in_use;
  {
    const Autocast guard(bf16);
    (void)matmul(x, w);
    EXPECT_GE(memory::stats().in_use, before + 64 * 64 * 2);
  }
  EXPECT_LT(memory::stats().in_use, before + 64 * 64 * 2);
}

TEST(AutocastCache, SeesChangesInPlace) {
  const Tensor w = weight({3, 3}), x = values({2, 3});
  const Autocast guard(bf16);
  (void)matmul(x, w);
  {
    const NoGrad off;
    Tensor(w).mul_(2);
  }
  EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, bf16)));
  optim::SGD opt({w}, {.lr = 0.5});
  matmul(x, w).sum().backward();
  opt.step();
  EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, bf16)));
}

TEST(AutocastCache, IsNotChangedThroughAResult) {
  const Tensor w = weight({3, 3}), x = values({2, 3});
  const Autocast guard(bf16);
  const Tensor want = matmul(x, w).detach().clone();
  {
    const NoGrad off;
    Tensor turned = einsum("ij->ji", w);  // may be a view of the kept cast
    turned.zero_();
  }
  EXPECT_TRUE(equal(matmul(x, w), want));
}

TEST(AutocastCache, DoesNotCutGraphs) {
  const Tensor x = values({2, 3});
  const auto gradient = [&](int first) {
    const Tensor w = weight({3, 3});
    const Autocast guard(bf16);
    if (first == 1) {
      const NoGrad off;
      EXPECT_FALSE(matmul(x, w).requires_grad());
    } else if (first == 2) {
      const InferenceMode off;
      EXPECT_FALSE(matmul(x, w).requires_grad());
    }
    matmul(x, w).sum().backward();
    return *w.grad();
  };
  EXPECT_TRUE(equal(gradient(0), gradient(1)));
  EXPECT_TRUE(equal(gradient(0), gradient(2)));
}

TEST(AutocastCache, FollowsRequiresGrad) {
  Tensor w = weight({3, 3});
  const Tensor x = values({2, 3});
  const Autocast guard(bf16);
  (void)matmul(x, w);
  w.requires_grad_(false);
  EXPECT_FALSE(matmul(x, w).requires_grad());
  w.requires_grad_(true);  // a new leaf, whose gradient the first cast does not know
  matmul(x, w).sum().backward();
  ASSERT_TRUE(w.grad());
  EXPECT_EQ(w.grad()->dtype(), f32);
}

TEST(AutocastCache, ServesSeveralGraphs) {
  const Tensor w = weight({3, 3}), x = values({2, 3}), twin = w.detach().clone().requires_grad_();
  {
    const Autocast guard(bf16);
    const Tensor a = matmul(x, w).sum(), b = matmul(x * 2, w).sum();
    a.backward();  // consumes its graph, but not the cast that both share
    b.backward();
    matmul(x * 4, w).sum().backward();
  }
  for (const double factor : {1, 2, 4}) by_hand(x * factor, twin, bf16).to(f32).sum().backward();
  EXPECT_TRUE(equal(*w.grad(), *twin.grad()));
}

TEST(AutocastCache, KnowsParametersThatComeAndGo) {
  const Tensor x = values({2, 3});
  const Autocast guard(f16);
  for (uint64_t i = 0; i < 20; ++i) {
    nn::Parameter w = weight({3, 3}, i);
    EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, f16))) << i;
    w = weight({3, 3}, i + 100);
    EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, f16))) << i;
    w = weight({3, 5}, i + 200);  // other memory under the same handle
    EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, f16))) << i;
  }
}

TEST(AutocastCache, KnowsTheDtypeOfInnerGuards) {
  const Tensor w = weight({3, 3}), x = values({2, 3});
  const Autocast outer(f16);
  EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, f16)));
  {
    const Autocast inner(bf16);
    EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, bf16)));
  }
  EXPECT_TRUE(equal(matmul(x, w), by_hand(x, w, f16)));
}

// Forward and backward in and out of the guard, to the bit. Within a checkpoint no cast is kept, so gradients of several uses
// add up in f32: as they do without a cache.
TEST(AutocastCheckpoint, ComputesAgainInTheSameDtypes) {
  const Tensor x = values({4, 3});
  const auto run = [&](bool checkpointed, bool backward_inside, bool uses_before) {
    const Tensor w = weight({3, 3});
    const auto f = [&](const Tensor& t) { return softmax(matmul(tanh(matmul(t, w)), w), -1); };
    Tensor loss;
    {
      const Autocast guard(f16, {.cache_enabled = checkpointed});
      if (uses_before) (void)matmul(x, w);  // a cast is kept that the checkpoint must not confuse with its own
      Tensor y = checkpointed ? checkpoint(f, x) : f(x);
      if (uses_before) y = y + matmul(x, w);
      loss = y.square().sum();
      if (backward_inside) loss.backward();
    }
    if (!backward_inside) loss.backward();
    return *w.grad();
  };
  for (const bool before : {false, true}) {
    const Tensor want = run(false, false, before);
    for (const bool inside : {false, true}) EXPECT_TRUE(equal(run(true, inside, before), want)) << inside << before;
  }
}

TEST(AutocastCheckpoint, StaysSingleUnderALaterGuard) {
  const Tensor w = weight({3, 3}), x = values({2, 3}), twin = w.detach().clone().requires_grad_();
  const Tensor loss = checkpoint([&](const Tensor& t) { return matmul(t, w); }, x).square().sum();
  {
    const Autocast guard(f16);
    loss.backward();
  }
  matmul(x, twin).square().sum().backward();
  EXPECT_TRUE(equal(*w.grad(), *twin.grad()));
}

// A layer in a half dtype and its twin in f32 under the guard give the same bits.
template <class L, class F> void expect_like_half(L single, F call) {
  L half = single;
  to(half, bf16);
  const Tensor x = values({5, 2, 4});
  const std::vector<Tensor> want = call(half, x.to(bf16));
  std::vector<Tensor> got;
  {
    const Autocast guard(bf16);
    got = call(single, x);
    for (const Tensor& y : call(single, x.to(bf16))) EXPECT_EQ(y.dtype(), bf16);  // what a product before it would give
  }
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), bf16);
    EXPECT_TRUE(equal(got[i], want[i]));
  }
  got[0].to(f32).sum().backward();
  for (const Tensor& p : parameters(single)) {
    ASSERT_TRUE(p.grad());
    EXPECT_EQ(p.grad()->dtype(), f32);
  }
}

TEST(AutocastLayers, RecurrentLayersAndCells) {
  using List = std::vector<Tensor>;
  manual_seed(3);
  expect_like_half(nn::LSTM(4, 3, {.num_layers = 2, .bidirectional = true}), [](const nn::LSTM& l, const Tensor& x) {
    const auto y = l(x);
    return List{y.output, y.h_n, y.c_n};
  });
  expect_like_half(nn::GRU(4, 3), [](const nn::GRU& l, const Tensor& x) {
    const auto [y, h] = l(x, zeros({1, 2, 3}, {.dtype = x.dtype()}));
    return List{y, h};
  });
  expect_like_half(nn::RNN(4, 3), [](const nn::RNN& l, const Tensor& x) { return List{l(x).output}; });
  expect_like_half(nn::LSTMCell(4, 3), [](const nn::LSTMCell& l, const Tensor& x) {
    const auto [h, c] = l(x[0]);
    return List{h + c};
  });
  expect_like_half(nn::GRUCell(4, 3), [](const nn::GRUCell& l, const Tensor& x) { return List{l(x[0])}; });
  expect_like_half(nn::RNNCell(4, 3), [](const nn::RNNCell& l, const Tensor& x) { return List{l(x[0])}; });
}

TEST(AutocastLayers, RecurrentLayersStillRefuseOtherDtypes) {
  const nn::LSTM lstm(4, 3);
  const Tensor x = values({5, 2, 4});
  EXPECT_THROW((void)lstm(x.to(bf16)), Error);
  const Autocast guard(bf16);
  EXPECT_THROW((void)lstm(x.to(f64)), Error);
}

struct Net {
  nn::Conv2d conv{1, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::LayerNorm rows{{8}};
  nn::Linear fc{4 * 8 * 8, 5};
  Tensor operator()(const Tensor& x) const { return fc(rows(relu(norm(conv(x)))).flatten(1)); }
};

TEST(AutocastLayers, DtypesAlongANetwork) {
  for (const Device& device : {Device(), toy_device()}) {
    manual_seed(4);
    Net net;
    to(net, device);
    const Tensor x = values({6, 1, 8, 8}).to(device);
    Tensor loss;
    {
      const Autocast guard(f16);
      const Tensor a = net.conv(x), b = net.norm(a), c = net.rows(b), d = net(x);
      EXPECT_EQ(a.dtype(), f16);
      EXPECT_EQ(b.dtype(), f16);  // computed in f32, its running statistics are f32
      EXPECT_EQ(c.dtype(), f32);
      EXPECT_EQ(d.dtype(), f16);
      loss = cross_entropy(d, zeros({6}, {.dtype = i64, .device = device}));
    }
    EXPECT_EQ(loss.dtype(), f32);
    loss.backward();
    for (const Tensor& p : parameters(net)) {
      EXPECT_EQ(p.dtype(), f32);
      ASSERT_TRUE(p.grad());
      EXPECT_EQ(p.grad()->dtype(), f32);
      EXPECT_TRUE(isfinite(*p.grad()).all().item<bool>());
    }
    EXPECT_EQ(net.norm.running_mean.dtype(), f32);
  }
}

TEST(AutocastLayers, Transformers) {
  manual_seed(5);
  const nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0, .batch_first = true});
  const Tensor x = values({2, 5, 8}), want = layer(x);
  const Autocast guard(bf16);
  const Tensor y = layer(x);
  EXPECT_TRUE(allclose(y.to(f32), want, {.rtol = 0.05, .atol = 0.05}));  // bf16 has 8 bits
  EXPECT_FALSE(equal(y.to(f32), want));
  y.sum().backward();
  for (const Tensor& p : parameters(layer)) EXPECT_EQ(p.grad()->dtype(), f32);
}

}  // namespace
}  // namespace volta::test

// The allocator: flat over thousands of steps, catchable when it runs out, reused.
#include <gtest/gtest.h>

#include <set>

#include <volta/volta.h>

namespace volta::test {
namespace {

template <class Step> void expect_flat(Step step) {
  for (int i = 0; i < 50; ++i) step(i);
  const int64_t before = memory::stats().in_use, cached = memory::stats().cached;
  for (int i = 0; i < 10'000; ++i) step(i);
  EXPECT_EQ(memory::stats().in_use, before);
  EXPECT_LE(memory::stats().cached, cached + 4096);
}

// Reads and writes of tensors at the same place of a page would hinder each other.
TEST(MemoryPlaces, LargeTensorsBeginAtVariousOnesOfAPage) {
  std::vector<Tensor> all;
  std::set<uintptr_t> places;
  for (int i = 0; i < 16; ++i) {
    all.push_back(empty({1 << 18}));
    const auto at = reinterpret_cast<uintptr_t>(all.back().data<float>());
    EXPECT_EQ(at % 64, 0u);
    places.insert(at % 4096);
  }
  EXPECT_GE(places.size(), 12u);
}

TEST(MemoryFlat, Training) {
  const Tensor w = randn({8, 8}, {.requires_grad = true}), x = randn({4, 8});
  expect_flat([&](int) {
    matmul(x, w).tanh().pow(2).mean().backward();
    const NoGrad off;
    Tensor weights = w;
    weights.sub_(*w.grad() * 0.01);
    w.zero_grad();
  });
}
// A layer of each kind, its loss and its optimizer.
template <class Model> void expect_flat_training(Model model, const Tensor& x) {
  optim::Adam adam(parameters(model), {.lr = 1e-4});
  expect_flat([&](int) {
    adam.zero_grad();
    model(x).square().mean().backward();
    adam.step();
  });
}
TEST(MemoryFlat, ConvolutionalSteps) {
  expect_flat_training(nn::Sequential(nn::Conv2d(1, 2, 3, {.padding = 1}), nn::BatchNorm2d(2), nn::ReLU(),
                                      nn::MaxPool2d(2), nn::Flatten(), nn::Dropout(0.1), nn::Linear(8, 2)),
                       randn({2, 1, 4, 4}));
}
TEST(MemoryFlat, SequenceSteps) {
  struct Model {
    nn::LayerNorm norm{4};
    nn::MultiheadAttention attention{4, 2};
    nn::LSTM lstm{4, 3};
    Tensor operator()(const Tensor& x) const {
      const Tensor y = norm(x);
      return lstm(attention(y, y, y, {.need_weights = false}).output).output;
    }
  };
  expect_flat_training(Model{}, randn({3, 2, 4}));
}
TEST(MemoryFlat, ForwardOnly) {
  const Tensor w = randn({8, 8}, {.requires_grad = true}), x = randn({4, 8});
  expect_flat([&](int) { matmul(x, w).softmax(-1); });
}
TEST(MemoryFlat, Inference) {
  const Tensor w = randn({8, 8}, {.requires_grad = true}), x = randn({4, 8});
  expect_flat([&](int) {
    const InferenceMode off;
    matmul(x, w).relu().sum(1);
  });
}
TEST(MemoryFlat, MetricAccumulation) {
  const Tensor w = randn({8}, {.requires_grad = true});
  Tensor total = zeros({});
  expect_flat([&](int) { total += (w * w).sum().detach(); });
}
TEST(MemoryFlat, StepsThatThrowHalfWay) {
  const Tensor w = randn({8, 8}, {.requires_grad = true});
  expect_flat([&](int) {
    const Tensor h = matmul(w, w).exp();
    EXPECT_FALSE(attempt([&] { return matmul(h, zeros({3, 3})); }));
  });
}
TEST(MemoryFlat, Views) {
  Tensor x = randn({16, 16});
  expect_flat([&](int i) { x[{i % 16, slice({}, {}, -2)}] = x.t()[i % 16].slice(0, 0, 8); });
}

TEST(MemoryLimit, RunningOutIsCatchableAndTheNextStepWorks) {
  EXPECT_EQ(attempt([] { return empty({int64_t(1) << 42}); }).error().kind(), Error::Kind::memory);
  memory::empty_cache();
  const int64_t limit = memory::stats().limit;
  memory::set_limit(memory::stats().in_use + (1 << 20));
  const auto big = attempt([] { return zeros({1 << 20}); });
  EXPECT_FALSE(big);
  const auto small = attempt([] { return zeros({1 << 10}).sum(); });
  memory::set_limit(limit);
  EXPECT_TRUE(small);
  EXPECT_EQ((ones({1000}) * 2).sum().item<float>(), 2000.f);
}

TEST(MemoryReuse, TemporariesAndCacheAreReused) {
  const Tensor x = randn({1 << 16}), y = randn({1 << 16});
  (x * y + 1.0) * 0.5;
  memory::reset_peak();
  const auto before = memory::stats();
  const Tensor z = (x * y + 1.0) * 0.5;
  const auto after = memory::stats();
  EXPECT_LT(after.peak - before.in_use, int64_t(2) * 4 * (1 << 16));
  EXPECT_GT(after.requests, before.requests);
  EXPECT_EQ(after.reused - before.reused, after.requests - before.requests);  // all of them, the second time
}

TEST(MemoryReuse, FreshMemoryIsNotCountedAsReused) {
  memory::empty_cache();
  const auto before = memory::stats();
  const Tensor fresh = empty({1 << 21});
  const auto after = memory::stats();
  EXPECT_GE(after.requests - after.reused, before.requests - before.reused + 1);
}

TEST(MemoryReuse, EveryRequestIsCountedOnce) {
  for (const int64_t n : {8, 1 << 20}) {
    const int64_t before = memory::stats().requests;
    for (int i = 0; i < 100; ++i) (void)empty({n});
    EXPECT_EQ(memory::stats().requests - before, 200) << n;  // the handle's block and the data's
  }
}

TEST(MemoryGraph, SavedTensorsAreFreedAsTheyAreUsed) {
  const Tensor x = randn({1 << 16}, {.requires_grad = true});
  Tensor y = x;
  for (int i = 0; i < 50; ++i) y = y.tanh();
  y = y.sum();
  memory::reset_peak();
  const int64_t before = memory::stats().in_use;
  const Tensor g = grad(y, x);
  EXPECT_LT(memory::stats().in_use, before);
  EXPECT_LT(memory::stats().peak - before, int64_t(6) * 4 * (1 << 16));
}

TEST(MemoryForeign, ReleaseIsCalledOnce) {
  std::vector<float> host{1, 2, 3, 4};
  int released = 0;
  {
    const Tensor t = from_blob(host.data(), {2, 2}, {.dtype = f32}, [&] { ++released; });
    const Tensor view = t.t();
    EXPECT_EQ((view[{1, 0}].item<float>()), 2.f);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(MemoryTransfers, ATrainingStepOnTheGpuStaysThere) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  Tensor w = randn({64, 32}, {.device = "cuda", .requires_grad = true}),
         b = zeros({64}, {.device = "cuda", .requires_grad = true});
  const Tensor x = randn({128, 32}, {.device = "cuda"}), labels = randint(0, 64, {128}, {.device = "cuda"});
  const cuda::MemoryStats before = cuda::memory_stats();
  for (int i = 0; i < 20; ++i) {
    const Tensor logits = linear(x, w, b, {.activation = "relu"});
    (-log_softmax(logits, 1).gather(1, labels.unsqueeze(1)).mean()).backward();
    const NoGrad off;
    w.sub_(*w.grad() * 0.1);
    b.sub_(*b.grad() * 0.1);
    w.zero_grad();
    b.zero_grad();
  }
  EXPECT_EQ(cuda::memory_stats().transfers, before.transfers);
  EXPECT_EQ(cuda::memory_stats().reads, before.reads);
  EXPECT_TRUE(isfinite(w.detach()).all().item<bool>());
  EXPECT_EQ(cuda::memory_stats().transfers, before.transfers);
  EXPECT_EQ(cuda::memory_stats().reads, before.reads + 1);
  w.to("cpu");
  EXPECT_EQ(cuda::memory_stats().transfers, before.transfers + 1);
}

TEST(MemoryTransfers, TenThousandStepsOnTheGpuTakeNoMoreMemoryThanAHundred) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const DefaultDevice on("cuda");
  const nn::Sequential net{nn::Conv2d(1, 6, 5), nn::ReLU(),       nn::MaxPool2d(2),
                           nn::Flatten(),       nn::Dropout(0.1), nn::Linear(864, 10)};
  optim::AdamW adam(parameters(net));
  const Tensor x = randn({16, 1, 28, 28}), labels = randint(0, 10, {16});
  const auto steps = [&](int n) {
    for (int i = 0; i < n; ++i) {
      adam.zero_grad();
      cross_entropy(net(x), labels).backward();
      adam.step();
    }
    cuda::synchronize();
    return cuda::memory_stats();
  };
  const cuda::MemoryStats early = steps(100), late = steps(9900);
  EXPECT_EQ(late.in_use, early.in_use);
  EXPECT_EQ(late.cached, early.cached);
  EXPECT_EQ(late.peak, early.peak);
  EXPECT_EQ(late.transfers, early.transfers);
}

TEST(MemoryTransfers, InterpolationUploadsNoTable) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const Tensor x = randn({2, 3, 19, 23}, {.device = "cuda", .requires_grad = true});
  const cuda::MemoryStats before = cuda::memory_stats();
  for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic", "area"})
    for (const bool antialias : {false, true})
      if (!antialias || mode[0] == 'b')
        interpolate(x, {.size = {31, 11}, .mode = mode, .antialias = antialias}).sum().backward();
  EXPECT_EQ(cuda::memory_stats().transfers, before.transfers);
  EXPECT_EQ(cuda::memory_stats().reads, before.reads);
}

#if !defined(__SANITIZE_THREAD__)  // seven minutes of it, for loops that smaller tests run on threads
TEST(MemoryLarge, MoreThanTwoToTheThirtyOneElements) {
  const int64_t n = (int64_t(1) << 31) + 5;
  Tensor x = zeros({n}, {.dtype = i8});
  x[n - 1] = 7;
  x[int64_t(1) << 31] = 3;
  EXPECT_EQ(x.sum().item<int64_t>(), 10);
  EXPECT_EQ(x.argmax().item<int64_t>(), n - 1);
  x += 1;
  EXPECT_EQ(x[n - 1].item<int>(), 8);
  const Tensor wide = ones({1}).expand({n});
  EXPECT_EQ(wide.numel(), n);
  x = Tensor();
  memory::empty_cache();
}
#endif

}  // namespace
}  // namespace volta::test

// Sharing tensors between threads: const is safe, modes are per thread, results do not depend on who runs them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <volta/volta.h>

namespace volta::test {
namespace {

template <class F> void on_threads(int n, F f) {
  std::vector<std::thread> pool;
  for (int i = 0; i < n; ++i) pool.emplace_back([&f, i] { f(i); });
  for (std::thread& t : pool) t.join();
}

TEST(ThreadsTensor, ForwardAndGradOnSharedWeights) {
  const Tensor w = randn({48, 48}, {.requires_grad = true}), x = randn({16, 48});
  const auto loss = [&] { return matmul(x, w).tanh().softmax(-1).pow(2).sum(); };
  const Tensor want = loss().detach(), want_grad = grad(loss(), w);
  std::vector<int> good(6);
  on_threads(6, [&](int i) {
    bool ok = true;
    for (int k = 0; k < 20; ++k) {
      if (i % 2) {
        const NoGrad off;
        ok = ok && equal(loss(), want) && !loss().requires_grad();
      } else {
        ok = ok && equal(grad(loss(), w), want_grad);
      }
    }
    good[size_t(i)] = ok;
  });
  for (int g : good) EXPECT_TRUE(g);
}

TEST(ThreadsTensor, BackwardAccumulatesFromManyThreads) {
  const Tensor w = ones({100}, {.dtype = f64, .requires_grad = true});
  on_threads(8, [&](int) {
    for (int k = 0; k < 25; ++k) (w * 2).sum().backward();
  });
  EXPECT_TRUE(equal(*w.grad(), full({100}, 400, {.dtype = f64})));
}

TEST(ThreadsTensor, OneGraphManyWalkers) {
  const Tensor w = ones({10}, {.dtype = f64, .requires_grad = true});
  const Tensor y = (w.exp() * w).sum();
  const Tensor want = grad(y, w, {.retain_graph = true});
  std::vector<int> good(4);
  on_threads(4, [&](int i) {
    bool ok = true;
    for (int k = 0; k < 25; ++k) ok = ok && equal(grad(y, w, {.retain_graph = true}), want);
    good[size_t(i)] = ok;
  });
  for (int g : good) EXPECT_TRUE(g);
}

TEST(ThreadsTensor, FirstHooksFromManyThreads) {
  for (int round = 0; round < 50; ++round) {
    const Tensor x = ones({2}, {.requires_grad = true});
    std::atomic<int> seen{0};
    on_threads(4, [&](int) {
      x.register_hook([&](const Tensor&) {
        ++seen;
        return std::optional<Tensor>();
      });
    });
    x.sum().backward();
    EXPECT_EQ(seen, 4);
  }
}

TEST(ThreadsTensor, TensorsTravelBetweenThreads) {
  Tensor made;
  std::thread([&] { made = arange(0, 1000).to(f32) * 2; }).join();
  EXPECT_EQ(made.sum().item<float>(), 999000.f);
  std::thread([x = std::move(made)]() mutable { x = Tensor(); }).join();
}

TEST(ThreadsTensor, RandomStreamsAreSafeToShare) {
  Generator shared(3);
  on_threads(4, [&](int) {
    for (int k = 0; k < 50; ++k) rand({64}, {.generator = &shared});
  });
  EXPECT_EQ(shared.state().offset, 4u * 50u * 16u);
}

TEST(ThreadsTensor, LargeOpsFromManyCallers) {
  const Tensor x = randn({1 << 18});
  const Tensor want = (x * 2 + 1).exp().sum();
  std::vector<int> good(4);
  on_threads(4, [&](int i) {
    bool ok = true;
    for (int k = 0; k < 5; ++k) ok = ok && equal((x * 2 + 1).exp().sum(), want);
    good[size_t(i)] = ok;
  });
  for (int g : good) EXPECT_TRUE(g);
}

}  // namespace
}  // namespace volta::test

// Page-locked memory: what it holds, copies that are not waited for, and the batches of a loader.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <volta/volta.h>

#include "samples.h"

namespace volta::test {
namespace {

#define NEEDS_GPU \
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU"

template <class F> void expect_error(const F& f, Error::Kind kind, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error that says " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(CudaPinned, WithoutAGpu) {
  if (cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  const Tensor x = randn({3});
  EXPECT_FALSE(cuda::is_pinned(x));
  expect_error([&] { (void)cuda::pin_memory(x); }, Error::Kind::device, "not available");
  expect_error([&] { (void)cuda::copy_async(x); }, Error::Kind::device, "");
  const data::TensorDataset set(arange(12).reshape({6, 2}), arange(6));
  int64_t rows = 0;
  for (const auto& [a, b] : data::DataLoader(set, {.batch_size = 4, .pin_memory = true})) {
    EXPECT_TRUE(equal(a.select(1, 0), b * 2));
    rows += b.numel();
  }
  EXPECT_EQ(rows, 6);
}

TEST(CudaPinned, HoldsAnyTensor) {
  NEEDS_GPU;
  for (const DType dtype : {boolean, u8, i64, f16, bf16, f32, f64}) {
    const Tensor base = randint(0, 2, {6, 10}).to(dtype);
    for (const Tensor& x : {base, base.t(), base.flip({0}), base.narrow(1, 3, 4), base.narrow(0, 0, 0),
                            base.select(0, 0).select(0, 0), base.narrow(0, 1, 1).expand({5, 10})}) {
      EXPECT_FALSE(cuda::is_pinned(x));
      const Tensor y = cuda::pin_memory(x);
      EXPECT_TRUE(cuda::is_pinned(y) && y.is_contiguous() && y.device().is_cpu());
      EXPECT_TRUE(equal(x, y));
      EXPECT_TRUE(cuda::pin_memory(y).shares_storage(y));
      EXPECT_TRUE(y.numel() == 0 || cuda::is_pinned(y.flatten().narrow(0, 0, 1)));
      EXPECT_TRUE(equal(y.to("cuda").to("cpu"), x));
      EXPECT_TRUE(equal(cuda::copy_async(y).to("cpu"), x));
      EXPECT_FALSE(cuda::is_pinned(y + y));
    }
  }
  Tensor y = cuda::pin_memory(zeros({4}));  // an ordinary tensor of the CPU
  y += 3;
  y[1] = 7;
  EXPECT_TRUE(equal(y.to("cuda").to("cpu"), tensor({3., 7., 3., 3.})));
  const Tensor leaf = cuda::pin_memory(randn({3}, {.requires_grad = true}));
  EXPECT_FALSE(leaf.requires_grad());
}

TEST(CudaPinned, Refuses) {
  NEEDS_GPU;
  const Tensor here = randn({4, 4}), there = here.to("cuda"), pinned = cuda::pin_memory(here);
  expect_error([&] { (void)cuda::pin_memory(there); }, Error::Kind::device, "cuda");
  expect_error([&] { (void)cuda::pin_memory(Tensor()); }, Error::Kind::argument, "");
  expect_error([&] { (void)cuda::is_pinned(Tensor()); }, Error::Kind::argument, "");
  expect_error([&] { (void)cuda::copy_async(here); }, Error::Kind::argument, "pin_memory");
  expect_error([&] { (void)cuda::copy_async(pinned.t()); }, Error::Kind::argument, "contiguous");
  expect_error([&] { (void)cuda::copy_async(there); }, Error::Kind::device, "cuda");
  expect_error([&] { (void)cuda::copy_async(pinned, "cpu"); }, Error::Kind::device, "cpu");
  expect_error([&] { (void)cuda::copy_async(pinned, "cuda:200"); }, Error::Kind::device, "cuda:200");
  auto step = capture([&] { return cuda::copy_async(pinned); });
  step();
  expect_error([&] { step(); }, Error::Kind::device, "cannot be part of a captured step");
}

// The source goes at once, while the device is busy: its memory must not come back before the copy has read it.
TEST(CudaPinned, CopiesOutliveTheirSource) {
  NEEDS_GPU;
  Tensor busy = rand({1024, 1024}, {.device = "cuda"});
  std::vector<Tensor> copies;
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 5; ++k) busy = tanh(matmul(busy, busy));
    copies.push_back(cuda::copy_async(cuda::pin_memory(full({1 << 16}, double(i)))));
  }
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(equal(copies[size_t(i)].to("cpu"), full({1 << 16}, double(i)))) << i;
  EXPECT_TRUE(all(isfinite(busy)).item<bool>());
}

TEST(CudaPinned, FromManyThreadsAndStreams) {
  NEEDS_GPU;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const cuda::Stream stream;
      const cuda::OnStream on(stream);
      for (int i = 0; i < 100; ++i) {
        const int64_t n = 1 + (i * 7919 + t) % 50000;
        const Tensor y = cuda::copy_async(cuda::pin_memory(full({n}, double(t * 1000 + i))));
        EXPECT_EQ((y - double(t * 1000 + i)).abs().max().item<float>(), 0);
        if (i % 20 == 0) cuda::empty_cache();
      }
    });
  for (auto& thread : threads) thread.join();
}

struct Example {
  Tensor image;
  int64_t label;
};
struct Examples {
  int64_t size() const { return 20; }
  Example get(int64_t i) const { return {full({3, 4}, double(i)), i}; }
};

TEST(CudaPinned, BatchesOfALoader) {
  NEEDS_GPU;
  const Tensor items = rand({50, 3000}), labels = arange(50);
  const data::TensorDataset set(items, labels);
  for (const int workers : {0, 2}) {
    std::vector<Tensor> x, y;
    for (const auto& [a, b] : data::DataLoader(set, {.batch_size = 8, .num_workers = workers, .pin_memory = true})) {
      EXPECT_TRUE(cuda::is_pinned(a) && cuda::is_pinned(b));
      x.push_back(cuda::copy_async(a));
      y.push_back(b.to("cuda"));
    }
    EXPECT_TRUE(equal(cat(x).to("cpu"), items) && equal(cat(y).to("cpu"), labels));
    for (const auto& [a, b] :
         data::DataLoader(Examples{}, {.batch_size = 5, .num_workers = workers, .pin_memory = true}))
      EXPECT_TRUE(cuda::is_pinned(a) && cuda::is_pinned(b) && equal(a.select(2, 0).select(1, 0), b.to(f32)));
    const auto twice = data::on_batch([](const Tensor& a, const Tensor& b) { return std::tuple(a * 2, b); });
    for (const auto& [a, b] :
         data::DataLoader(set, {.batch_size = 8, .num_workers = workers, .pin_memory = true}, twice))
      EXPECT_TRUE(cuda::is_pinned(a) && cuda::is_pinned(b));
    for (const auto& [a, b] :
         data::DataLoader(set, {.batch_size = 8, .num_workers = workers, .device = Device("cuda"), .pin_memory = true}))
      EXPECT_TRUE(a.device().is_cuda() && b.device().is_cuda());
  }
}

}  // namespace
}  // namespace volta::test

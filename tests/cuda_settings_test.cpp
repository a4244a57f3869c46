// Settings of the CUDA backend: the timeout, limits of memory and what it holds, debug mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <volta/volta.h>

#include "backend/backend.h"

namespace volta::test {
namespace {

#define NEEDS_GPU \
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU"

constexpr int64_t mib = 1 << 20;

struct Timeout {
  explicit Timeout(double seconds) { cuda::set_timeout(seconds); }
  ~Timeout() { cuda::set_timeout(0); }
};
struct Debug {
  explicit Debug(bool on) { cuda::set_debug(on); }
  ~Debug() { cuda::set_debug(false); }
};
struct MemoryLimit {
  explicit MemoryLimit(int64_t bytes) { cuda::set_memory_limit(bytes); }
  ~MemoryLimit() { cuda::set_memory_limit(std::numeric_limits<int64_t>::max()); }
};
struct LowMemory {
  LowMemory(double share, std::function<void(const cuda::MemoryStats&)> call) {
    cuda::on_low_memory(share, std::move(call));
  }
  ~LowMemory() { cuda::on_low_memory(1, {}); }
};

template <class F> void expect_error(const F& f, Error::Kind kind, const std::string& op, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error from " << op;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_TRUE(op.empty() || e.op() == op) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

Tensor on_gpu(int64_t bytes) { return empty({bytes / 4}, {.device = "cuda"}); }

// Bytes in use on a device, where nothing is cached that could go back.
int64_t held() {
  cuda::synchronize();
  cuda::empty_cache();
  const cuda::MemoryStats now = cuda::memory_stats();
  return now.in_use + now.cached;
}

TEST(CudaSettings, RefuseWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const auto& f, const char* op) { expect_error(f, Error::Kind::argument, op, ""); };
  const auto ignore = [](const cuda::MemoryStats&) {};
  for (const double seconds : {-1.0, nan, -std::numeric_limits<double>::infinity()})
    refused([&] { cuda::set_timeout(seconds); }, "cuda::set_timeout");
  refused([] { cuda::set_memory_limit(-1); }, "cuda::set_memory_limit");
  for (const double share : {0.0, -0.5, 1.5, nan})
    refused([&] { cuda::on_low_memory(share, ignore); }, "cuda::on_low_memory");
}

TEST(CudaSettings, NeedAGpuWhereTheyAreOfOne) {
  if (cuda::is_available()) GTEST_SKIP() << "there is one";
  EXPECT_THROW(cuda::set_memory_limit(mib), Error);
  EXPECT_THROW(cuda::on_low_memory(0.5, {}), Error);
  EXPECT_THROW(cuda::memory_snapshot(), Error);
  cuda::set_timeout(1);
  cuda::set_timeout(0);
  cuda::set_debug(false);
}

TEST(CudaTimeout, EveryWaitThrowsAndTheWorkGoesOn) {
  NEEDS_GPU;
  const Debug queued(false);
  const Tensor a = randn({4096, 4096}, {.device = "cuda"}) / 64, host = ones({1 << 18});
  cuda::Stream side;
  cuda::Event end;
  const auto work = [&] {
    Tensor y = a;
    for (int i = 0; i < 50; ++i) y = y.matmul(a);
    return y;
  };
  const Tensor expected = work().to("cpu");
  const float sum = work().sum().item<float>();
  EXPECT_TRUE(host.to("cuda").defined());  // now all that is needed below is loaded and allocated
  const Tensor y = work(), total = y.sum();
  {
    const Timeout brief(1e-4);
    const auto too_long = [](const char* op, const auto& f) { expect_error(f, Error::Kind::device, op, "0.0001"); };
    too_long("synchronize", [] { cuda::synchronize(); });
    too_long("item", [&] { total.item<float>(); });
    too_long("", [&] { return y.to("cpu"); });
    too_long("", [&] { return host.to("cuda"); });
    end.record();
    too_long("event", [&] { end.synchronize(); });
    {
      const cuda::OnStream on(side);
      end.wait();
    }
    too_long("stream", [&] { side.synchronize(); });
  }
  EXPECT_EQ(total.item<float>(), sum);
  cuda::synchronize();
  EXPECT_TRUE(equal(y.to("cpu"), expected));
}

TEST(CudaTimeout, LongOnesChangeNothing) {
  NEEDS_GPU;
  for (const double seconds : {60.0, std::numeric_limits<double>::infinity()}) {
    const Timeout on(seconds);
    const Tensor x = ones({1 << 18}).to("cuda");
    EXPECT_EQ((x * 2).sum().item<float>(), float(2 << 18));
    EXPECT_TRUE(equal((x + 1).to("cpu"), full({1 << 18}, 2.0)));
    cuda::synchronize();
  }
}

void expect_whole_snapshot() {
  const cuda::MemoryStats now = cuda::memory_stats();
  const std::vector<cuda::MemoryBlock> blocks = cuda::memory_snapshot();
  int64_t in_use = 0, all = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const cuda::MemoryBlock& block = blocks[i];
    EXPECT_GT(block.bytes, 0);
    all += block.bytes;
    if (block.in_use) in_use += block.bytes;
    const bool first = i == 0 || blocks[i - 1].slab != block.slab;
    EXPECT_TRUE(!first || block.address == block.slab);
    if (i == 0) continue;
    const uint64_t end = blocks[i - 1].address + uint64_t(blocks[i - 1].bytes);
    EXPECT_TRUE(first ? end <= block.address : end == block.address);
  }
  EXPECT_EQ(in_use, now.in_use);
  EXPECT_EQ(all, now.in_use + now.cached);
}

TEST(CudaMemory, ASnapshotShowsEveryBlock) {
  NEEDS_GPU;
  std::vector<Tensor> all;
  for (const int64_t bytes : {int64_t(4), int64_t(100'000), mib, 3 * mib, 5 * mib, 40 * mib})
    for (int i = 0; i < 3; ++i) all.push_back(on_gpu(bytes));
  expect_whole_snapshot();
  const auto blocks = cuda::memory_snapshot();
  for (const Tensor& x : all) {
    const auto address = uint64_t(reinterpret_cast<uintptr_t>(x.raw_data()));
    const auto found = std::ranges::find(blocks, address, &cuda::MemoryBlock::address);
    ASSERT_NE(found, blocks.end());
    EXPECT_TRUE(found->in_use);
    EXPECT_GE(found->bytes, x.numel() * 4);
  }
  for (size_t i = 0; i < all.size(); i += 2) all[i] = Tensor();
  expect_whole_snapshot();
  cuda::empty_cache();
  expect_whole_snapshot();
}

// Blocks that were given back and wait for another stream count as free.
TEST(CudaMemory, ASnapshotHoldsBesideBusyStreams) {
  NEEDS_GPU;
  cuda::Stream side;
  Tensor x = ones({2048, 2048}, {.device = "cuda"}), y;
  cuda::synchronize();
  {
    const cuda::OnStream on(side);
    for (int i = 0; i < 20; ++i) y = x.matmul(x);
  }
  x = Tensor();
  expect_whole_snapshot();
  side.synchronize();
  expect_whole_snapshot();
}

TEST(CudaMemory, ALimitIsKeptAndNamed) {
  NEEDS_GPU;
  const int64_t limit = held() + 64 * mib;
  {
    const MemoryLimit on(limit);
    const auto too_much = [&] { on_gpu(256 * mib); };
    expect_error(too_much, Error::Kind::memory, "", std::to_string(limit) + " that cuda::set_memory_limit allows");
    on_gpu(48 * mib);  // is cached from now on, and goes for the next
    const Tensor x = on_gpu(60 * mib);
    EXPECT_LE(cuda::memory_stats().in_use + cuda::memory_stats().cached, limit);
    expect_error([] { on_gpu(40 * mib); }, Error::Kind::memory, "", "cuda::set_memory_limit");
    cuda::set_memory_limit(limit + 64 * mib);
    EXPECT_TRUE(attempt([] { return on_gpu(40 * mib); }));
  }
  EXPECT_TRUE(attempt([] { return on_gpu(256 * mib); }));
  {
    const MemoryLimit lower(limit);  // what is cached beyond it goes at once
    EXPECT_LE(cuda::memory_stats().in_use + cuda::memory_stats().cached, limit);
  }
}

TEST(CudaMemory, MiddlingBlocksTakeNoMoreThanThereIs) {
  NEEDS_GPU;
  const MemoryLimit on(held() + 8 * mib);
  EXPECT_TRUE(attempt([] { return on_gpu(5 * mib); }));
}

TEST(CudaMemory, TheCallForLowMemoryComesOnceAndAgain) {
  NEEDS_GPU;
  const int64_t limit = held() + 512 * mib, mark = cuda::memory_stats().in_use + 100 * mib;
  const MemoryLimit on(limit);
  int calls = 0;
  Tensor spare = on_gpu(16 * mib);
  {
    const LowMemory watched(double(mark) / double(limit), [&](const cuda::MemoryStats& now) {
      ++calls;
      EXPECT_GE(now.in_use, mark - mib);
      spare = Tensor();
      cuda::empty_cache();
      const Tensor x = ones({10, 10}, {.device = "cuda"});
      EXPECT_EQ(x.matmul(x).sum().item<float>(), 1000);
    });
    const Tensor a = on_gpu(64 * mib);
    EXPECT_EQ(calls, 0);
    Tensor b = on_gpu(64 * mib);
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(spare.defined());
    const Tensor c = on_gpu(16 * mib);
    EXPECT_EQ(calls, 1);
    b = Tensor();
    b = on_gpu(64 * mib);
    EXPECT_EQ(calls, 2);
  }
  const Tensor d = on_gpu(128 * mib);
  EXPECT_EQ(calls, 2);
}

TEST(CudaMemory, WhatTheCallThrowsComesOutOfTheOp) {
  NEEDS_GPU;
  const int64_t before = cuda::memory_stats().in_use;
  const LowMemory watched(1e-9, [](const cuda::MemoryStats&) { throw Error(Error::Kind::memory, "mine", "no more"); });
  expect_error([] { on_gpu(mib); }, Error::Kind::memory, "", "no more");
  EXPECT_EQ(cuda::memory_stats().in_use, before);
}

TEST(CudaDebug, AnIndexIsReportedByItsOp) {
  NEEDS_GPU;
  const Tensor x = arange(12).to(f32).reshape({3, 4}).to("cuda"), at = tensor({{0, 1, 7, 2}}).to("cuda"),
               rows = tensor({0, 7}).to("cuda");
  const auto index = [](const char* op, const auto& f) { expect_error(f, Error::Kind::index, op, "index 7"); };
  {
    const Debug off(false);
    const Tensor y = gather(x, 0, at);
    index("synchronize", [] { cuda::synchronize(); });
  }
  const Debug on(true);
  index("gather", [&] { return gather(x, 0, at); });
  index("index_select", [&] { return index_select(x, 0, rows); });
  index("scatter", [&] { return scatter(x, 0, at, ones({1, 4}, {.device = "cuda"})); });
  cuda::synchronize();
  EXPECT_EQ(x.sum().item<float>(), 66);
}

TEST(CudaDebug, ResultsAreTheSame) {
  NEEDS_GPU;
  const NoGrad off;
  nn::Sequential net{nn::Conv2d(1, 4, 3), nn::ReLU(), nn::Flatten(), nn::Linear(144, 8)};
  to(net, "cuda");
  const Tensor x = randn({16, 1, 8, 8}, {.device = "cuda"});
  const auto results = [&] { return cat({net(x).sort(-1).values.flatten(), x.flatten().cumsum(0)}).to("cpu"); };
  const Tensor expected = results();
  const Debug on(true);
  EXPECT_TRUE(allclose(results(), expected));
  auto step = capture([&] { return net(x); });  // which may not wait while it is recorded
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(allclose(step().to("cpu"), net(x).to("cpu")));
}

// What goes on aside may throw, in its own words or for want of memory: the thread is back on its own stream, and the next
// upload goes the same way.
TEST(CudaUploads, AsideMayThrow) {
  NEEDS_GPU;
  Backend& device = backend(Device("cuda"));
  const Tensor x = rand({1000}), large = rand({16 * mib});
  const auto uploads = [&] {
    Tensor y;
    device.aside([&] { y = x.to("cuda"); });
    return equal((y + 1).to("cpu"), x + 1);
  };
  EXPECT_TRUE(uploads());
  const int64_t before = held();
  for (int i = 0; i < 20; ++i) {
    const auto fails = [&] {
      device.aside([&] {
        (void)x.to("cuda");
        throw Error(Error::Kind::io, "reader", "no further bytes");
      });
    };
    expect_error(fails, Error::Kind::io, "reader", "no further bytes");
    EXPECT_THROW(device.aside([&] { throw i; }), int);
    EXPECT_TRUE(uploads());
  }
  {
    const MemoryLimit limit(before + 16 * mib);
    expect_error([&] { device.aside([&] { (void)large.to("cuda"); }); }, Error::Kind::memory, "", "");
    EXPECT_TRUE(equal((x.to("cuda") + 1).to("cpu"), x + 1));
  }
  EXPECT_TRUE(uploads());
  EXPECT_LE(held(), before + 8 * mib);  // one stream's memory, not one for each that threw
}

}  // namespace
}  // namespace volta::test

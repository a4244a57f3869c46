// capture and streams. On the CPU a captured step runs; the toy device shows the host's side of a replay; the rest needs a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <thread>

#include <volta/volta.h>

#include "toy_device.h"
#include "why.h"

namespace volta::test {
namespace {

struct Net {
  nn::Linear in{20, 32};
  nn::Dropout drop{0.3};
  nn::Linear out{32, 4};
  Tensor operator()(const Tensor& x) const { return out(drop(relu(in(x)))); }
};

std::vector<Device> places() {
  std::vector<Device> all = {Device()};
  if (cuda::is_available()) all.emplace_back("cuda");
  return all;
}

using Optimizers = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;
template <class O> Optimizers make(typename O::Options options) {
  return [options](std::vector<Tensor> p) { return std::make_unique<O>(std::move(p), options); };
}

// Losses and then parameters of `steps` steps, as they are or captured; `between` is called before each.
std::vector<Tensor> trained(Device device, bool captured, const Optimizers& optimizer, int steps,
                            const std::function<void(int, optim::Optimizer&)>& between = {}, DType dtype = f32) {
  manual_seed(5);
  Net net;
  to(net, device);
  to(net, dtype);
  Tensor x = zeros({16, 20}, {.device = device}).to(dtype), y = zeros({16}, {.dtype = i64, .device = device});
  const Tensor inputs = randn({steps, 16, 20}).to(device).to(dtype), labels = randint(0, 4, {steps, 16}).to(device);
  const auto opt = optimizer(parameters(net));
  const auto step = [&] {
    opt->zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    opt->step();
    return loss.detach();
  };
  auto replayed = capture(step);
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    if (between) between(i, *opt);
    x.copy_(inputs[i]), y.copy_(labels[i]);
    results.push_back((captured ? replayed() : step()).to("cpu").clone());
  }
  for (const Tensor& p : parameters(net)) results.push_back(p.detach().to("cpu").clone());
  return results;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(equal(a[i], b[i])) << i << ": " << a[i] << " against " << b[i];
}

TEST(CaptureSteps, EqualEagerOnesBitForBit) {
  const std::pair<const char*, Optimizers> optimizers[] = {
      {"SGD", make<optim::SGD>({.lr = 0.1})},
      {"momentum", make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true})},
      {"Adam", make<optim::Adam>({.lr = 1e-2, .amsgrad = true})},
      {"AdamW", make<optim::AdamW>({.lr = 1e-2, .weight_decay = 0.1})},
      {"RMSprop", make<optim::RMSprop>({.lr = 1e-3, .momentum = 0.9, .centered = true})},
      {"Adagrad", make<optim::Adagrad>({.lr = 1e-2})},
      {"Adadelta", make<optim::Adadelta>({.lr = 1})},
      {"Lion", make<optim::Lion>({.lr = 1e-3})}};
  for (const Device& device : places())
    for (const auto& [name, optimizer] : optimizers) {
      SCOPED_TRACE(std::string(name) + " on " + device.str());
      expect_same(trained(device, true, optimizer, 12), trained(device, false, optimizer, 12));
    }
}

TEST(CaptureSteps, FollowTheOptimizersSettings) {
  const auto between = [](int i, optim::Optimizer& opt) { opt.set_lr(0.1 / (1 + i)); };
  for (const Device& device : places())
    expect_same(trained(device, true, make<optim::AdamW>({.lr = 1}), 10, between),
                trained(device, false, make<optim::AdamW>({.lr = 1}), 10, between));
}

TEST(CaptureSteps, FollowASeed) {
  const auto between = [](int i, optim::Optimizer&) {
    if (i == 6) manual_seed(77);
    if (i == 8) rand({100});
  };
  for (const Device& device : places())
    expect_same(trained(device, true, make<optim::SGD>({.lr = 0.1}), 10, between),
                trained(device, false, make<optim::SGD>({.lr = 0.1}), 10, between));
}

TEST(CaptureSteps, TakeMasterWeights) {
  const auto optimizer = make<optim::AdamW>({.lr = 1e-2, .master_weights = true});
  for (const Device& device : places())
    expect_same(trained(device, true, optimizer, 8, {}, bf16), trained(device, false, optimizer, 8, {}, bf16));
}

// Parameters of f32 have no master weights; those of halves after them do.
TEST(CaptureSteps, TakeMasterWeightsOfSomeParameters) {
  const auto run = [](Device device, bool captured) {
    manual_seed(3);
    const Tensor wide = randn({20, 8}).to(device).requires_grad_(),
                 narrow = randn({8, 4}).to(device).to(bf16).requires_grad_();
    const Tensor x = randn({16, 20}).to(device);
    optim::AdamW opt({wide, narrow}, {.lr = 1e-2, .master_weights = true});
    const auto step = [&] {
      opt.zero_grad();
      const Tensor loss = matmul(tanh(matmul(x, wide)).to(bf16), narrow).square().mean();
      loss.backward();
      opt.step();
      return loss.detach();
    };
    auto replayed = capture(step);
    std::vector<Tensor> results;
    for (int i = 0; i < 8; ++i) results.push_back((captured ? replayed() : step()).to("cpu").clone());
    for (const auto& [number, slots] : opt.state_dict().state)
      for (const auto& [name, value] : slots) results.push_back(value.to("cpu"));
    results.push_back(wide.detach().to("cpu")), results.push_back(narrow.detach().to("cpu"));
    return results;
  };
  for (const Device& device : places()) expect_same(run(device, true), run(device, false));
}

// One step after another with a scheduler inside, and a checkpoint that draws its numbers twice.
TEST(CaptureSteps, HoldSchedulersAndCheckpoints) {
  const auto run = [](Device device, bool captured) {
    manual_seed(9);
    Net net;
    to(net, device);
    const Tensor x = randn({16, 20}).to(device);
    optim::SGD opt(parameters(net), {.lr = 0.1, .momentum = 0.5});
    optim::ExponentialLR schedule(opt, {.gamma = 0.9});
    const auto step = [&] {
      opt.zero_grad();
      checkpoint([&](const Tensor& t) { return net(t); }, x).square().mean().backward();
      nn::clip_grad_norm_(parameters(net), 0.5);
      opt.step();
      schedule.step();
    };
    auto replayed = capture(step);
    for (int i = 0; i < 9; ++i) captured ? replayed() : step();
    EXPECT_NEAR(opt.lr(), 0.1 * std::pow(0.9, 9), 1e-12);
    std::vector<Tensor> results;
    for (const Tensor& p : parameters(net)) results.push_back(p.detach().to("cpu").clone());
    return results;
  };
  for (const Device& device : places()) expect_same(run(device, true), run(device, false));
}

// Steps that overflow are left out, and the scale falls and grows: replays decide that as the function would.
TEST(CaptureSteps, TakeAGradScaler) {
  const auto run = [](Device device, bool captured, const Optimizers& optimizer) {
    manual_seed(5);
    Net net;
    to(net, device);
    const Tensor x = randn({16, 20}).to(device), y = randint(0, 4, {16}).to(device);
    const auto opt = optimizer(parameters(net));
    GradScaler scaler({.init_scale = 0x1p26, .growth_interval = 3});
    const auto step = [&] {
      opt->zero_grad();
      Tensor loss;
      {
        const Autocast half(f16);
        loss = cross_entropy(net(x), y);
      }
      scaler.scale(loss).backward();
      scaler.unscale_(*opt);
      nn::clip_grad_norm_(parameters(net), 0.5);
      scaler.step(*opt);
      scaler.update();
      return loss.detach();
    };
    auto replayed = capture(step);
    std::vector<Tensor> results;
    double least = scaler.get_scale();
    for (int i = 0; i < 30; ++i) {
      opt->set_lr(0.1 / (1 + i));
      results.push_back((captured ? replayed() : step()).to("cpu").clone());
      results.push_back(tensor(scaler.get_scale()));
      least = std::min(least, scaler.get_scale());
    }
    EXPECT_LT(least, 0x1p26);
    EXPECT_GT(scaler.get_scale(), 1);
    for (const Tensor& p : parameters(net)) results.push_back(p.detach().to("cpu").clone());
    for (const auto& [number, slots] : opt->state_dict().state)
      for (const auto& [name, value] : slots) results.push_back(value.to("cpu"));
    return results;
  };
  for (const Device& device : places())
    for (const Optimizers& optimizer :
         {make<optim::SGD>({.lr = 0.1, .momentum = 0.9}), make<optim::AdamW>({.lr = 0.1}),
          make<optim::Adam>({.lr = 0.1, .amsgrad = true}), make<optim::Lion>({.lr = 0.1})})
      expect_same(run(device, true, optimizer), run(device, false, optimizer));
}

TEST(CaptureSteps, RunOnTheCpu) {
  int runs = 0;
  auto count = capture([&] { return ++runs; });
  for (int i = 1; i < 6; ++i) EXPECT_EQ(count(), i);
  auto moved = std::move(count);
  EXPECT_EQ(moved(), 6);
}

TEST(CaptureOnToy, RunsTwiceAndThenReplays) {
  const Tensor x = ones({4}, {.device = toy_device()});
  int runs = 0;
  auto step = capture([&] {
    ++runs;
    return rand({8}, {.device = toy_device()}) + x[0];
  });
  manual_seed(3);
  const int64_t before = toy_traffic().replays;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(toy_traffic().replays - before, 4);
  EXPECT_EQ(default_generator().state().offset, 5u * 2);
}

TEST(CaptureOnToy, RefusesWhatNoReplayWouldRepeat) {
  const Tensor x = ones({4}, {.device = toy_device()}), p = ones({4}, {.device = toy_device()}).requires_grad_();
  const auto refused = [&](const std::function<void()>& f, const char* text) {
    auto step = capture([&] {
      Tensor y = x + 1;
      f();
    });
    step();
    EXPECT_TRUE(says([&] { step(); }, text));
  };
  refused([&] { ones({3}); }, "makes a tensor on the CPU");
  refused([&] { x.to("cpu"); }, "makes a tensor on the CPU");
  optim::Adafactor factored({p});
  optim::SGD plain({p}, {.lr = 0.1});
  p.square().sum().backward();
  refused([&] { factored.step(); }, "Adafactor");
  refused([&] { plain.step(); }, "SGD");  // the toy has no loop for it
  auto inner = capture([&] { x.exp(); });
  inner();
  refused([&] { inner(); }, "part of another");
  optim::ReduceLROnPlateau plateau(plain);
  refused([&] { plateau.step(1.0); }, "ReduceLROnPlateau");
}

// What depends on data that the host must read is refused by the name that the user called.
TEST(CaptureErrors, NameTheOp) {
  std::vector<Device> devices = {toy_device()};
  if (cuda::is_available()) devices.emplace_back("cuda");
  for (const Device& device : devices) {
    const Tensor x = tensor<float>({0.25, 0, 0.5, 0.5}).to(device), whole = tensor({1, 0, 2, 2}).to(device);
    const Tensor mask = x > 0, y = ones({4}, {.device = device});
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"item", [&] { x.sum().item<float>(); }},
        {"to_vector", [&] { x.to_vector<float>(); }},
        {"nonzero", [&] { nonzero(x); }},
        {"argwhere", [&] { argwhere(x); }},
        {"unique", [&] { unique(whole); }},
        {"unique_consecutive", [&] { unique_consecutive(whole); }},
        {"masked_select", [&] { masked_select(x, mask); }},
        {"masked_scatter", [&] { masked_scatter(x, mask, y); }},
        {"index", [&] { x[{mask}]; }},
        {"index", [&] { x[{whole[0]}]; }},
        {"repeat_interleave", [&] { repeat_interleave(x, whole); }},
        {"bincount", [&] { bincount(whole); }},
        {"histogram", [&] { histogram(x, 3); }},
        {"histc", [&] { histc(x, 3); }},
        {"is_nonzero", [&] { (void)is_nonzero(x.sum()); }},
        {"one_hot", [&] { one_hot(whole); }},
        {"multinomial", [&] { multinomial(x, 2); }},
        {"bernoulli", [&] { bernoulli(x); }},
        {"poisson", [&] { poisson(x); }},
        {"quantile", [&] { quantile(x, y); }},
        {"equal", [&] { equal(x, y); }},
        {"allclose", [&] { allclose(x, y); }},
        {"check_finite", [&] { check_finite(x); }},
        {"binary_cross_entropy", [&] { binary_cross_entropy(x, y); }},
        {"embedding_bag", [&] {
           embedding_bag(whole, ones({3, 2}, {.device = device}), whole.narrow(0, 1, 1));
         }}};
    for (const auto& [op, call] : calls) {
      bool first = true;
      auto step = capture([&, &reads = call] {
        const Tensor z = x + 1;
        if (!std::exchange(first, false)) reads();
      });
      step();
      EXPECT_TRUE(says([&] { step(); }, (std::string(op) + ": cannot be part of a captured step").c_str())) << op;
    }
  }
}

TEST(CaptureOnToy, AnErrorLeavesAScalerAsItWas) {
  const Tensor p = ones({4}, {.device = toy_device()}).requires_grad_();
  optim::SGD opt({p}, {.lr = 0.1});
  GradScaler scaler;
  int runs = 0;
  auto step = capture([&] {
    opt.zero_grad();
    scaler.scale(p.sum()).backward();
    scaler.unscale_(opt);
    if (++runs == 2) p.sum().item<float>();
    scaler.update();
  });
  step();
  EXPECT_TRUE(says([&] { step(); }, "item"));
  step();
  EXPECT_EQ(runs, 3);
}

TEST(CaptureOnToy, CanBeTriedAgainAfterAnError) {
  const Tensor x = ones({4}, {.device = toy_device()});
  bool wrong = true;
  auto step = capture([&] {
    if (wrong) ones({3});
    return x * 2;
  });
  step();
  EXPECT_THROW(step(), Error);
  wrong = false;
  EXPECT_EQ(step().sum().item<float>(), 8);
}

TEST(CaptureOnToy, AGeneratorMadeInTheStepIsRefused) {
  auto step = capture([&] {
    Generator own(3);
    return rand({4}, {.device = toy_device(), .generator = &own});
  });
  step();
  EXPECT_TRUE(says([&] { step(); }, "generator"));
  Generator outside(3);
  auto fine = capture([&] {
    Generator unused(4);
    return rand({4}, {.device = toy_device(), .generator = &outside});
  });
  for (int i = 0; i < 3; ++i) fine();
  EXPECT_EQ(outside.state().offset, 3u);
}

// Attention in parts draws from where its own state says, not from a generator of its own that would be gone by the replay.
TEST(CaptureOnToy, AttentionWithDropout) {
  const Tensor x = ones({2, 3, 4}, {.device = toy_device()}).requires_grad_();
  auto step = capture([&] { return grad(scaled_dot_product_attention(x, x, x, {.dropout_p = 0.5}).sum(), x); });
  manual_seed(7);
  for (int i = 0; i < 4; ++i) step();
  const uint64_t drawn = default_generator().state().offset;
  manual_seed(7);
  for (int i = 0; i < 5; ++i) (void)scaled_dot_product_attention(x, x, x, {.dropout_p = 0.5});
  EXPECT_LE(drawn, default_generator().state().offset);
}

#define NEEDS_GPU \
  if (!cuda::is_available()) GTEST_SKIP() << "needs a GPU"

TEST(CaptureOnGpu, RefusesTheHost) {
  NEEDS_GPU;
  const Tensor x = ones({4}, {.device = "cuda"});
  const auto refused = [&](const std::function<void()>& f, const char* text) {
    bool first = true;
    auto step = capture([&] {
      const Tensor y = x + 1;
      if (!std::exchange(first, false)) f();
      return y;
    });
    step();
    EXPECT_TRUE(says([&] { step(); }, text));
    EXPECT_EQ((x * 3).sum().item<float>(), 12);  // the device is as before
  };
  refused([&] { x.sum().item<float>(); }, "captured step");
  refused([&] { nonzero(x); }, "captured step");
  refused([&] { tensor({1.f, 2.f}, {.device = "cuda"}); }, "captured step");
  refused([&] { cuda::synchronize(); }, "captured step");
  GradScaler scaler;
  const Tensor p = ones({4}, {.device = "cuda"}).requires_grad_();
  optim::Adam opt({p});
  scaler.scale(p.square().sum()).backward();
  scaler.step(opt);
  refused([&] { scaler.step(opt); }, "update() is no part of it");
  GradScaler fresh;
  refused([&] { fresh.scale(p.square().sum()); }, "first loss");
  const Tensor late = ones({4}, {.device = "cuda"}).requires_grad_();
  optim::Adam other({late});
  late.square().sum().backward();
  refused([&] { other.step(); }, "first gradient");
}

TEST(CaptureOnGpu, AnErrorCountsNoStep) {
  NEEDS_GPU;
  const Tensor p = ones({4}, {.device = "cuda"}).requires_grad_();
  optim::Adam opt({p}, {.lr = 0.1});
  bool wrong = true;
  auto step = capture([&] {
    opt.zero_grad();
    p.square().sum().backward();
    opt.step();
    if (wrong) p.sum().item<float>();
  });
  step();
  EXPECT_THROW(step(), Error);
  EXPECT_EQ(opt.state_dict().state.at(0).at("step").item<float>(), 1);
  wrong = false;
  step();
  step();
  EXPECT_EQ(opt.state_dict().state.at(0).at("step").item<float>(), 3);
  const Tensor q = ones({4}).requires_grad_();
  optim::Adam other({q}, {.lr = 0.1});
  for (int i = 0; i < 3; ++i) {
    other.zero_grad();
    q.square().sum().backward();
    other.step();
  }
  EXPECT_TRUE(allclose(p.detach().to("cpu"), q.detach(), {.rtol = 1e-6}));
}

TEST(CaptureOnGpu, KeepsMemoryAndCountsNoTransfer) {
  NEEDS_GPU;
  cuda::synchronize();
  const int64_t at_first = cuda::memory_stats().in_use;
  {
    Net net;
    to(net, "cuda");
    const Tensor x = randn({64, 20}).to("cuda"), y = randint(0, 4, {64}).to("cuda");
    optim::AdamW opt(parameters(net));
    auto step = capture([&] {
      opt.zero_grad();
      cross_entropy(net(x), y).backward();
      opt.step();
    });
    for (int i = 0; i < 3; ++i) step();
    const auto before = cuda::memory_stats();
    for (int i = 0; i < 200; ++i) step();
    EXPECT_EQ(cuda::memory_stats().in_use, before.in_use);
    EXPECT_EQ(cuda::memory_stats().cached, before.cached);
    EXPECT_EQ(cuda::memory_stats().transfers, before.transfers);
    EXPECT_EQ(cuda::memory_stats().reads, before.reads);
    cuda::empty_cache();  // leaves a captured step's memory alone
    for (int i = 0; i < 20; ++i) step();
    EXPECT_LT(cross_entropy(net(x), y).item<float>(), 2);
  }
  cuda::synchronize();
  EXPECT_EQ(cuda::memory_stats().in_use, at_first);
}

// What the step reads is kept, though nobody else holds it.
TEST(CaptureOnGpu, KeepsWhatItReads) {
  NEEDS_GPU;
  auto hidden = std::make_unique<Tensor>(full({1000}, 3.0, {.device = "cuda"}));
  auto step = capture([&] { return hidden ? *hidden * 2 : Tensor(); });
  step();
  step();
  hidden.reset();
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(zeros({1000}, {.device = "cuda"}));
  EXPECT_EQ(step().sum().item<float>(), 6000);
}

TEST(CaptureOnGpu, HoldsConvolutionsNormsAndRecurrence) {
  NEEDS_GPU;
  manual_seed(1);
  struct Cnn {
    nn::Conv2d conv{1, 8, 3, {.padding = 1}};
    nn::BatchNorm2d norm{8};
    nn::Linear fc{8 * 7 * 7, 10};
    Tensor operator()(const Tensor& x) const { return fc(max_pool2d(relu(norm(conv(x))), 4).flatten(1)); }
  };
  const auto losses = [](bool captured) {
    manual_seed(4);
    Cnn net;
    nn::LSTM lstm(28, 16);
    to(net, "cuda"), to(lstm, "cuda");
    const Tensor x = randn({32, 1, 28, 28}).to("cuda"), y = randint(0, 10, {32}).to("cuda");
    std::vector<Tensor> all = parameters(net);
    for (const Tensor& p : parameters(lstm)) all.push_back(p);
    optim::AdamW opt(all, {.lr = 1e-3});
    const auto step = [&] {
      opt.zero_grad();
      Tensor loss = cross_entropy(net(x), y) + lstm(x.squeeze(1).transpose(0, 1)).output.square().mean();
      loss.backward();
      opt.step();
      return loss.detach();
    };
    auto replayed = capture(step);
    std::vector<float> values;
    for (int i = 0; i < 10; ++i) values.push_back((captured ? replayed() : step()).item<float>());
    EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 10);
    return values;
  };
  const auto a = losses(true), b = losses(false);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4 * std::abs(b[i])) << i;
}

TEST(CudaStreams, AreRefusedWithoutAGpu) {
  if (cuda::is_available()) GTEST_SKIP() << "there is one";
  EXPECT_THROW(cuda::Stream(), Error);
  EXPECT_THROW(cuda::Event(), Error);
}

TEST(CudaStreams, WorkBesideEachOther) {
  NEEDS_GPU;
  const Tensor a = randn({512, 512}, {.device = "cuda"});
  const Tensor expected = (a.matmul(a) + 1).to("cpu");
  cuda::Stream side;
  cuda::Event ready, made;
  ready.record();
  Tensor y;
  {
    const cuda::OnStream on(side);
    ready.wait();
    y = a.matmul(a);
    made.record();
  }
  made.wait();
  EXPECT_TRUE(equal((y + 1).to("cpu"), expected));
  side.synchronize();
  EXPECT_TRUE(side.query() && made.query());
}

TEST(CudaStreams, MeasureTime) {
  NEEDS_GPU;
  cuda::Event begin, end;
  const Tensor a = randn({2048, 2048}, {.device = "cuda"});
  begin.record();
  Tensor y = a.matmul(a);
  end.record();
  end.synchronize();
  EXPECT_GT(begin.elapsed_time(end), 0);
}

// A tensor that a stream still reads goes, and its memory is asked for again at once by others.
TEST(CudaStreams, MovedFromOnesAreErrors) {
  if (!cuda::is_available()) GTEST_SKIP();
  cuda::Event event;
  cuda::Stream stream;
  cuda::Event& no_event = event;
  const cuda::Stream& no_stream = stream;
  const cuda::Event taken = std::move(event);
  const cuda::Stream kept = std::move(stream);
  EXPECT_THROW(no_event.record(), Error);
  EXPECT_THROW(no_event.wait(), Error);
  EXPECT_THROW((void)no_event.query(), Error);
  EXPECT_THROW(no_event.synchronize(), Error);
  EXPECT_THROW((void)taken.elapsed_time(no_event), Error);
  EXPECT_THROW((void)no_stream.query(), Error);
  EXPECT_THROW(no_stream.synchronize(), Error);
  EXPECT_THROW({ const cuda::OnStream on(no_stream); }, Error);
  kept.synchronize();
}

TEST(CudaStreams, KeepMemoryThatAnotherStreamReads) {
  NEEDS_GPU;
  cuda::Stream side;
  for (int round = 0; round < 20; ++round) {
    Tensor x = full({1 << 20}, 1.0, {.device = "cuda"}), sum;
    cuda::Event made;
    made.record();
    {
      const cuda::OnStream on(side);
      made.wait();
      Tensor slow = x;
      for (int i = 0; i < 50; ++i) slow = slow * 1.0;
      sum = (slow + x).sum();
    }
    x = Tensor();
    for (int i = 0; i < 4; ++i) full({1 << 20}, 100.0, {.device = "cuda"});
    side.synchronize();
    EXPECT_EQ(sum.item<float>(), float(2 << 20)) << round;
  }
}

TEST(CudaStreams, NestAndBelongToTheirThread) {
  NEEDS_GPU;
  cuda::Stream one, two;
  const Tensor x = ones({8}, {.device = "cuda"});
  cuda::synchronize();
  {
    const cuda::OnStream on(one);
    {
      const cuda::OnStream inner(two);
      EXPECT_EQ((x + 1).sum().item<float>(), 16);
    }
    std::thread([&] { EXPECT_EQ((x + 2).sum().item<float>(), 24); }).join();
    EXPECT_EQ((x + 3).sum().item<float>(), 32);
  }
  EXPECT_EQ((x + 4).sum().item<float>(), 40);
}

}  // namespace
}  // namespace volta::test

// Half parameters with f32 masters: every optimizer follows its f32 twin, small steps add up, and state is saved whole.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include <volta/volta.h>

#include "toy_device.h"

namespace volta::test {
namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(const Tensor&, bool)>;

template <class Opt> Make maker(typename Opt::Options options) {
  return [options](const Tensor& p, bool master) mutable {
    options.master_weights = master;
    return std::make_unique<Opt>(optim::Params({p}), options);
  };
}
std::vector<std::pair<std::string, Make>> optimizers() {
  return {
      {"SGD", maker<optim::SGD>({.lr = 0.1, .momentum = 0.9})},
      {"Adam", maker<optim::Adam>({.lr = 0.1})},
      {"AdamW", maker<optim::AdamW>({.lr = 0.1, .amsgrad = true})},
      {"Adamax", maker<optim::Adamax>({.lr = 0.1})},
      {"NAdam", maker<optim::NAdam>({.lr = 0.1})},
      {"RAdam", maker<optim::RAdam>({.lr = 0.1})},
      {"RMSprop", maker<optim::RMSprop>({.lr = 0.1})},
      {"Adagrad", maker<optim::Adagrad>({.lr = 0.1})},
      {"Adadelta", maker<optim::Adadelta>({.lr = 0.1})},
      {"Lion", maker<optim::Lion>({.lr = 0.1})},
      {"LAMB", maker<optim::LAMB>({.lr = 0.1})},
      {"Rprop", maker<optim::Rprop>({.lr = 0.1})},
      {"ASGD", maker<optim::ASGD>({.lr = 0.1})},
      {"Adafactor", maker<optim::Adafactor>({.lr = 0.1})},
      {"Muon", maker<optim::Muon>({.lr = 0.1})},
  };
}

Tensor start(DType dtype, Device device) {
  return linspace(-2, 2, 16, {.device = device}).to(bf16).to(dtype).reshape({4, 4}).requires_grad_();
}
// Numbers that halves hold, so that the twin in f32 is given the same.
Tensor gradient(int i, DType dtype, Device device) {
  manual_seed(uint64_t(i));
  return randn({4, 4}).to(bf16).to(dtype).to(device);
}

TEST(MasterWeights, FollowAnF32TwinToTheBit) {
  for (const Device& device : {Device(), toy_device()})
    for (const auto& [name, make] : optimizers()) {
      const Tensor p = start(bf16, device), twin = start(f32, device);
      const auto opt = make(p, true), plain = make(twin, false);
      for (int i = 0; i < 5; ++i) {
        p.set_grad(gradient(i, bf16, device)), twin.set_grad(gradient(i, f32, device));
        opt->step(), plain->step();
        EXPECT_EQ(p.dtype(), bf16);
        EXPECT_TRUE(equal(p.detach(), twin.detach().to(bf16))) << name << " step " << i;
      }
      EXPECT_TRUE(equal(opt->state_dict().state.at(0).at("master_param"), twin.detach())) << name;
    }
}

TEST(MasterWeights, AddUpSmallSteps) {
  const auto moved = [](bool master) {
    const Tensor p = ones({4}, {.dtype = bf16}).requires_grad_();
    optim::SGD opt({p}, {.lr = 1e-4, .master_weights = master});
    for (int i = 0; i < 1000; ++i) {
      p.set_grad(ones({4}, {.dtype = bf16}));
      opt.step();
    }
    return 1 - p.detach().to(f32).mean().item<float>();
  };
  EXPECT_EQ(moved(false), 0);  // each step is below half a unit in the last place
  EXPECT_NEAR(moved(true), 0.1, 0.004);
}

TEST(MasterWeights, AreSavedAndRestored) {
  for (const auto& [name, make] : optimizers()) {
    const Tensor p = start(f16, {}), q = start(f16, {});
    const auto opt = make(p, true);
    const auto run = [](optim::Optimizer& o, const Tensor& x, int from, int to) {
      for (int i = from; i < to; ++i) {
        x.set_grad(gradient(i, f16, {}));
        o.step();
      }
    };
    run(*opt, p, 0, 3);
    const optim::StateDict saved = opt->state_dict();
    const Tensor weights = p.detach().clone();
    const auto again = make(q, true);
    if (name == "Adam") {  // weights after the state, or before it
      again->load_state_dict(saved);
      q.detach().copy_(weights);
    } else {
      q.detach().copy_(weights);
      again->load_state_dict(saved);
    }
    run(*opt, p, 3, 6), run(*again, q, 3, 6);
    EXPECT_TRUE(equal(p.detach(), q.detach())) << name;
    EXPECT_TRUE(
        equal(opt->state_dict().state.at(0).at("master_param"), again->state_dict().state.at(0).at("master_param")))
        << name;
  }
}

TEST(MasterWeights, GiveWayToWhatIsWritten) {
  const Tensor p = ones({3}, {.dtype = bf16}).requires_grad_();
  optim::SGD opt({p}, {.lr = 1e-4, .master_weights = true});
  const auto step = [&] {
    p.set_grad(ones({3}, {.dtype = bf16}));
    opt.step();
  };
  step();
  p.detach()[0].fill_(5);
  step();
  const auto master = opt.state_dict().state.at(0).at("master_param").to_vector<float>();
  EXPECT_FLOAT_EQ(master[0], 5 - 1e-4f);
  EXPECT_FLOAT_EQ(master[1], 1 - 2e-4f);  // not written: the small steps are kept
  EXPECT_EQ(p.detach()[0].item<float>(), 5);
}

TEST(MasterWeights, OfF32AreTheParameters) {
  const Tensor p = start(f32, {}), twin = start(f32, {});
  optim::AdamW opt({p}, {.master_weights = true}), plain({twin});
  p.set_grad(gradient(1, f32, {})), twin.set_grad(gradient(1, f32, {}));
  opt.step(), plain.step();
  EXPECT_TRUE(equal(p.detach(), twin.detach()));
  EXPECT_FALSE(opt.state_dict().state.at(0).contains("master_param"));
}

TEST(MasterWeights, RefuseAnotherShape) {
  const Tensor p = start(bf16, {});
  optim::SGD opt({p}, {.momentum = 0.9, .master_weights = true});
  p.set_grad(gradient(1, bf16, {}));
  opt.step();
  auto saved = opt.state_dict();
  saved.state.at(0).at("master_param") = zeros({3});
  EXPECT_THROW(opt.load_state_dict(saved), Error);
}

TEST(MasterWeights, SkipWithAScaler) {
  for (const Device& device : {Device(), toy_device()}) {
    const Tensor p = start(bf16, device);
    optim::AdamW opt({p}, {.lr = 0.1, .master_weights = true});
    GradScaler scaler;
    const Tensor before = p.detach().clone();
    scaler.scale(p.to(f32).sum() * INFINITY).backward();
    scaler.step(opt);
    scaler.update();
    EXPECT_TRUE(equal(p.detach(), before));
    opt.zero_grad();
    scaler.scale(p.to(f32).sum()).backward();
    scaler.step(opt);
    const Tensor twin = start(f32, device);
    optim::AdamW plain({twin}, {.lr = 0.1});
    twin.sum().backward();
    plain.step();
    EXPECT_TRUE(equal(p.detach(), twin.detach().to(bf16)));
  }
}

}  // namespace
}  // namespace volta::test

// GradScaler: the factor, steps left out, several optimizers, errors, and training with Autocast; on the CPU and on a device.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include <volta/volta.h>

#include "toy_device.h"
#include "why.h"

namespace volta::test {
namespace {

const double inf = std::numeric_limits<double>::infinity();

std::vector<Device> places() {
  std::vector<Device> all = {Device(), toy_device()};
  if (cuda::is_available()) all.emplace_back("cuda");
  return all;
}

Tensor parameter(Device device = {}) { return tensor<float>({1, -2, 3}, {.device = device}).requires_grad_(); }

// A loss whose gradient is `slope` everywhere.
Tensor loss_of(const Tensor& p, double slope) { return (p * slope).sum(); }

TEST(ScalerFactor, HasPyTorchsDefaults) {
  const GradScaler scaler;
  EXPECT_EQ(scaler.get_scale(), 65536);
  EXPECT_EQ(scaler.get_growth_factor(), 2);
  EXPECT_EQ(scaler.get_backoff_factor(), 0.5);
  EXPECT_EQ(scaler.get_growth_interval(), 2000);
  EXPECT_TRUE(scaler.is_enabled());
}

TEST(ScalerFactor, GrowsAndBacksOff) {
  for (const Device& device : places()) {
    const Tensor p = parameter(device);
    optim::SGD opt({p}, {.lr = 0});
    GradScaler scaler({.init_scale = 8, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 3});
    const auto iteration = [&](double slope) {
      opt.zero_grad();
      scaler.scale(loss_of(p, slope)).backward();
      scaler.step(opt);
      scaler.update();
      return scaler.get_scale();
    };
    EXPECT_EQ(iteration(1), 8);
    EXPECT_EQ(iteration(1), 8);
    EXPECT_EQ(iteration(1), 32);  // the third in a row
    EXPECT_EQ(iteration(1), 32);
    EXPECT_EQ(iteration(1), 32);
    EXPECT_EQ(iteration(inf), 8);
    EXPECT_EQ(iteration(1), 8);  // counted anew
    EXPECT_EQ(iteration(1), 8);
    EXPECT_EQ(iteration(1), 32);
    EXPECT_EQ(iteration(std::nan("")), 8);
  }
}

TEST(ScalerFactor, NeverGrowsToInfinity) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 0});
  GradScaler scaler({.init_scale = 0x1p126, .growth_interval = 1});
  for (int i = 0; i < 4; ++i) {
    opt.zero_grad();
    scaler.scale(loss_of(p, 0x1p-100)).backward();
    scaler.step(opt);
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 0x1p127);
}

TEST(ScalerFactor, ScalesListsAndKeepsTheGraph) {
  const Tensor p = parameter();
  GradScaler scaler({.init_scale = 4});
  const std::vector<Tensor> scaled = scaler.scale(std::vector{loss_of(p, 1), loss_of(p, 2)});
  EXPECT_EQ(scaled[0].item<float>(), 8);
  EXPECT_EQ(scaled[1].item<float>(), 16);
  scaled[1].backward();
  EXPECT_EQ(p.grad()->to_vector<float>(), (std::vector<float>{8, 8, 8}));
}

using Make = std::function<std::unique_ptr<optim::Optimizer>(const Tensor&)>;

template <class Opt> Make maker(typename Opt::Options options) {
  return [options](const Tensor& p) { return std::make_unique<Opt>(optim::Params({p}), options); };
}
std::vector<std::pair<std::string, Make>> optimizers() {
  return {
      {"SGD", maker<optim::SGD>({.lr = 0.1})},
      {"momentum", maker<optim::SGD>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01})},
      {"dampening", maker<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5})},
      {"Adam", maker<optim::Adam>({.lr = 0.1})},
      {"AdamW", maker<optim::AdamW>({.lr = 0.1, .weight_decay = 0.1, .amsgrad = true})},
      {"Adamax", maker<optim::Adamax>({.lr = 0.1})},
      {"NAdam", maker<optim::NAdam>({.lr = 0.1})},
      {"RAdam", maker<optim::RAdam>({.lr = 0.1})},
      {"RMSprop", maker<optim::RMSprop>({.lr = 0.1, .momentum = 0.5, .centered = true})},
      {"Adagrad", maker<optim::Adagrad>({.lr = 0.1})},
      {"Adagrad decaying", maker<optim::Adagrad>({.lr = 0.1, .lr_decay = 0.5})},
      {"Adadelta", maker<optim::Adadelta>({.lr = 0.1})},
      {"Lion", maker<optim::Lion>({.lr = 0.1})},
      {"LAMB", maker<optim::LAMB>({.lr = 0.1})},
      {"Rprop", maker<optim::Rprop>({.lr = 0.1})},
      {"ASGD", maker<optim::ASGD>({.lr = 0.1})},
      {"Adafactor", maker<optim::Adafactor>({.lr = 0.1})},
      {"Muon", maker<optim::Muon>({.lr = 0.1})},
  };
}

void expect_same_state(const optim::StateDict& a, const optim::StateDict& b, const std::string& name) {
  ASSERT_EQ(a.state.size(), b.state.size()) << name;
  for (const auto& [number, tensors] : a.state) {
    ASSERT_EQ(tensors.size(), b.state.at(number).size()) << name;
    for (const auto& [key, value] : tensors) {
      const Tensor x = value.to("cpu").to(f64), y = b.state.at(number).at(key).to("cpu").to(f64);
      EXPECT_TRUE(allclose(x, y, {.rtol = 1e-6, .atol = 0})) << name << " " << key << x.str() << y.str();
    }
  }
}

// Steps whose gradients overflow leave no trace: neither in the parameter nor in what is remembered, the count included.
TEST(ScalerSteps, ThatOverflowLeaveNoTrace) {
  const double slopes[] = {inf, 0.5, -0.25, inf, std::nan(""), 0.125, -inf, 0.75};
  for (const Device& device : places())
    for (const auto& [name, make] : optimizers()) {
      const Tensor p = parameter(device), twin = parameter(device);
      const auto opt = make(p), plain = make(twin);
      GradScaler scaler({.init_scale = 1024});
      for (const double slope : slopes) {
        opt->zero_grad();
        scaler.scale(loss_of(p, slope)).backward();
        const Tensor before = p.detach().clone();
        scaler.step(*opt);
        scaler.update();
        if (!std::isfinite(slope)) {
          EXPECT_TRUE(equal(before, p.detach())) << name;
          continue;
        }
        plain->zero_grad();
        loss_of(twin, slope).backward();
        plain->step();
        EXPECT_TRUE(name == "Rprop" || !equal(before, p.detach())) << name;  // Rprop rests where the sign changes
      }
      EXPECT_TRUE(allclose(p.detach().to("cpu"), twin.detach().to("cpu"), {.rtol = 1e-6, .atol = 0}))
          << name << p.str() << twin.str();
      expect_same_state(opt->state_dict(), plain->state_dict(), name);
      // What was saved goes on like the original.
      const auto again = make(p);
      again->load_state_dict(opt->state_dict());
      plain->load_state_dict(opt->state_dict());
      p.set_grad(full({3}, 0.5, {.device = device})), twin.set_grad(full({3}, 0.5, {.device = device}));
      again->step(), plain->step();
      EXPECT_TRUE(allclose(p.detach().to("cpu"), twin.detach().to("cpu"), {.rtol = 1e-6, .atol = 0})) << name;
    }
}

TEST(ScalerSteps, WithoutAScalerFollowSkippedOnes) {
  for (const Device& device : places()) {
    const Tensor p = parameter(device), twin = parameter(device);
    optim::AdamW opt({p}, {.lr = 0.1}), plain({twin}, {.lr = 0.1});
    GradScaler scaler;
    scaler.scale(loss_of(p, inf)).backward();
    scaler.step(opt);
    scaler.update();
    for (int i = 0; i < 2; ++i) {
      opt.zero_grad(), plain.zero_grad();
      loss_of(p, 0.5 + i).backward(), loss_of(twin, 0.5 + i).backward();
      opt.step(), plain.step();
    }
    EXPECT_TRUE(allclose(p.detach().to("cpu"), twin.detach().to("cpu"), {.rtol = 1e-6, .atol = 0}));
  }
}

// A parameter that joins later counts its own steps.
TEST(ScalerSteps, CountForEachParameter) {
  for (const Device& device : places()) {
    const Tensor p = parameter(device), late = parameter(device), twin = parameter(device);
    optim::Adam opt({p, late}, {.lr = 0.1}), plain({twin}, {.lr = 0.1});
    GradScaler scaler;
    const auto iteration = [&](double slope, bool both) {
      opt.zero_grad();
      scaler.scale(both ? loss_of(p, slope) + loss_of(late, slope) : loss_of(p, slope)).backward();
      scaler.step(opt);
      scaler.update();
    };
    iteration(inf, false);
    iteration(1, false);
    iteration(inf, true);
    iteration(0.5, true);
    iteration(inf, true);
    iteration(0.25, true);
    for (const double slope : {0.5, 0.25}) {
      plain.zero_grad();
      loss_of(twin, slope).backward();
      plain.step();
    }
    EXPECT_TRUE(allclose(late.detach().to("cpu"), twin.detach().to("cpu"), {.rtol = 1e-6, .atol = 0}));
    const auto saved = opt.state_dict().state;
    EXPECT_EQ(saved.at(0).at("step").item<float>(), 3);
    EXPECT_EQ(saved.at(1).at("step").item<float>(), 2);
  }
}

// As often tried, but not as often taken.
TEST(ScalerSteps, CountWhatWasTakenNotWhatWasTried) {
  for (const Device& device : places()) {
    const Tensor a = parameter(device), b = parameter(device);
    optim::Adam opt({a, b}, {.lr = 0.1});
    GradScaler scaler;
    const auto iteration = [&](const Tensor& loss) {
      opt.zero_grad();
      scaler.scale(loss).backward();
      scaler.step(opt);
      scaler.update();
    };
    iteration(loss_of(a, inf));
    iteration(loss_of(b, 1));
    iteration(loss_of(a, 0.5) + loss_of(b, 0.5));
    const auto follow = [&](const std::vector<double>& slopes) {
      const Tensor twin = parameter(device);
      optim::Adam plain({twin}, {.lr = 0.1});
      for (const double slope : slopes) {
        plain.zero_grad();
        loss_of(twin, slope).backward();
        plain.step();
      }
      return twin.detach().to("cpu");
    };
    EXPECT_TRUE(allclose(a.detach().to("cpu"), follow({0.5}), {.rtol = 1e-6, .atol = 0}));
    EXPECT_TRUE(allclose(b.detach().to("cpu"), follow({1, 0.5}), {.rtol = 1e-6, .atol = 0}));
  }
}

TEST(ScalerSteps, DoNotWaitForADevice) {
  const Device toy = toy_device();
  for (const auto& [name, make] : optimizers()) {
    if (name != "SGD" && name != "momentum" && name != "Adam" && name != "AdamW" && name != "RMSprop" &&
        name != "Adagrad" && name != "Adadelta" && name != "Lion")
      continue;
    const Tensor p = parameter(toy);
    const auto opt = make(p);
    GradScaler scaler;
    const int64_t before = toy_traffic().downloads;
    for (const double slope : {1.0, inf, 0.5}) {
      opt->zero_grad();
      scaler.scale(loss_of(p, slope)).backward();
      scaler.unscale_(*opt);
      (void)nn::clip_grad_norm_({p}, 1);
      scaler.step(*opt);
      scaler.update();
    }
    EXPECT_EQ(toy_traffic().downloads, before) << name;
  }
}

TEST(ScalerUnscale, GivesTheGradientsForClipping) {
  for (const Device& device : places()) {
    const Tensor p = parameter(device), twin = parameter(device);
    optim::SGD opt({p}, {.lr = 0.1}), plain({twin}, {.lr = 0.1});
    GradScaler scaler;
    scaler.scale(loss_of(p, 3)).backward();
    loss_of(twin, 3).backward();
    scaler.unscale_(opt);
    EXPECT_TRUE(equal(*p.grad(), *twin.grad()));
    const Tensor norm = nn::clip_grad_norm_({p}, 1);
    EXPECT_TRUE(equal(norm, nn::clip_grad_norm_({twin}, 1)));
    scaler.step(opt);
    plain.step();
    EXPECT_TRUE(equal(p.detach(), twin.detach()));
    EXPECT_TRUE(equal(*p.grad(), *twin.grad()));  // divided once
    scaler.update();
  }
}

TEST(ScalerUnscale, SeesWhatClippingWouldHide) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 0.1});
  GradScaler scaler;
  scaler.scale(loss_of(p, inf)).backward();
  scaler.unscale_(opt);
  p.set_grad(zeros({3}));
  scaler.step(opt);  // found before: still no step
  EXPECT_TRUE(equal(p.detach(), parameter().detach()));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 32768);
}

TEST(ScalerUnscale, OfDoublesAndBfloats) {
  for (const DType dtype : {f64, bf16}) {
    const Tensor p = tensor<float>({1, 2}).to(dtype).requires_grad_();
    optim::SGD opt({p}, {.lr = 1});
    GradScaler scaler;
    scaler.scale(loss_of(p, 0.5)).backward();
    scaler.step(opt);
    scaler.update();
    EXPECT_EQ(p.detach().to_vector<float>(), (std::vector<float>{0.5, 1.5}));
  }
}

TEST(ScalerOptimizers, ShareOneFactor) {
  for (const Device& device : places()) {
    const Tensor a = parameter(device), b = parameter(device);
    optim::SGD first({a}, {.lr = 1}), second({b}, {.lr = 1});
    GradScaler scaler({.init_scale = 16});
    scaler.scale(loss_of(a, inf)).backward();
    scaler.scale(loss_of(b, 1)).backward();
    scaler.step(first);
    scaler.step(second);
    scaler.update();
    EXPECT_TRUE(equal(a.detach(), parameter(device).detach()));
    EXPECT_TRUE(equal(b.detach(), parameter(device).detach() - 1));  // only the first overflowed
    EXPECT_EQ(scaler.get_scale(), 8);
  }
}

TEST(ScalerUpdate, MayBeLeftOutWithOneOptimizer) {
  for (const Device& device : places()) {
    const Tensor p = parameter(device);
    optim::SGD opt({p}, {.lr = 1});
    GradScaler scaler({.init_scale = 16, .growth_interval = 2});
    const auto iteration = [&](double slope) {
      opt.zero_grad();
      scaler.scale(loss_of(p, slope)).backward();
      scaler.step(opt);
      return scaler.get_scale();
    };
    EXPECT_EQ(iteration(inf), 16);
    EXPECT_EQ(iteration(1), 8);  // now it knows, and the step itself counts
    EXPECT_TRUE(equal(p.detach(), parameter(device).detach() - 1));
    EXPECT_EQ(iteration(inf), 4);
    EXPECT_EQ(iteration(1), 4);
    EXPECT_EQ(iteration(1), 8);
    EXPECT_TRUE(equal(p.detach(), parameter(device).detach() - 3));
  }
}

TEST(ScalerUpdate, IsNeededWithSeveral) {
  const Tensor a = parameter(), b = parameter();
  optim::SGD first({a}, {.lr = 1}), second({b}, {.lr = 1});
  GradScaler scaler;
  scaler.scale(loss_of(a, 1) + loss_of(b, 1)).backward();
  scaler.step(first);
  scaler.step(second);
  EXPECT_TRUE(says([&] { scaler.step(first); }, "step() has already been called since the last update()."));
  EXPECT_TRUE(says([&] { scaler.unscale_(first); }, "unscale_() is being called after step()."));
  scaler.update();
}

TEST(ScalerUpdate, SetsAScaleOfOnesOwn) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 1});
  GradScaler scaler;
  scaler.scale(loss_of(p, 1)).backward();
  scaler.step(opt);
  scaler.update(32);
  EXPECT_EQ(scaler.get_scale(), 32);
  EXPECT_THROW(scaler.update(0), Error);
  EXPECT_THROW(scaler.update(inf), Error);
}

TEST(ScalerErrors, HavePyTorchsTexts) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 1});
  GradScaler scaler;
  EXPECT_TRUE(says([&] { scaler.step(opt); }, "Attempted step but _scale is None."));
  EXPECT_TRUE(says([&] { scaler.unscale_(opt); }, "Attempted unscale_ but _scale is None."));
  EXPECT_TRUE(says([&] { scaler.update(); }, "Attempted update but _scale is None."));
  const Tensor scaled = scaler.scale(loss_of(p, 1));
  EXPECT_TRUE(says([&] { scaler.step(opt); }, "No inf checks were recorded for this optimizer."));
  EXPECT_TRUE(says([&] { scaler.update(); }, "No inf checks were recorded prior to update."));
  scaled.backward();
  scaler.unscale_(opt);
  EXPECT_TRUE(says([&] { scaler.unscale_(opt); },
                   "unscale_() has already been called on this optimizer since the last update()."));
  scaler.step(opt);
  scaler.update();
  EXPECT_TRUE(says([&] { scaler.update(); }, "No inf checks were recorded prior to update."));
  const Tensor half = tensor<float>({1, 2}).to(f16).requires_grad_();
  optim::SGD halves({half}, {.lr = 1});
  scaler.scale(half.sum()).backward();
  EXPECT_TRUE(says([&] { scaler.unscale_(halves); }, "Attempting to unscale FP16 gradients."));
}

TEST(ScalerErrors, OfOptions) {
  EXPECT_TRUE(says([] { GradScaler({.growth_factor = 1}); }, "The growth factor must be > 1.0."));
  EXPECT_TRUE(says([] { GradScaler({.backoff_factor = 1}); }, "The backoff factor must be < 1.0."));
  EXPECT_THROW(GradScaler({.init_scale = 0}), Error);
  EXPECT_THROW(GradScaler({.init_scale = inf}), Error);
  EXPECT_THROW(GradScaler({.backoff_factor = 0}), Error);
  EXPECT_THROW(GradScaler({.growth_interval = 0}), Error);
  GradScaler scaler;
  EXPECT_THROW(scaler.set_growth_factor(0.5), Error);
  EXPECT_THROW(scaler.set_backoff_factor(2), Error);
  EXPECT_THROW(scaler.set_growth_interval(0), Error);
}

TEST(ScalerState, GoesOnWhereItStopped) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 0});
  const auto iteration = [&](GradScaler& scaler) {
    opt.zero_grad();
    scaler.scale(loss_of(p, 1)).backward();
    scaler.step(opt);
    scaler.update();
  };
  GradScaler scaler({.init_scale = 4, .growth_factor = 3, .backoff_factor = 0.125, .growth_interval = 3});
  iteration(scaler), iteration(scaler);
  const auto saved = scaler.state_dict();
  EXPECT_EQ(saved.at("scale"), 4);
  EXPECT_EQ(saved.at("_growth_tracker"), 2);
  GradScaler fresh, used;
  iteration(used);
  for (GradScaler* other : {&fresh, &used}) {
    other->load_state_dict(saved);
    EXPECT_EQ(other->state_dict(), saved);
    iteration(*other);
    EXPECT_EQ(other->get_scale(), 12);
  }
  EXPECT_TRUE(says([&] { fresh.load_state_dict({}); }, "The source state dict is empty"));
  auto wrong = saved;
  wrong["growth_interval"] = 0;
  EXPECT_THROW(fresh.load_state_dict(wrong), Error);
  wrong.erase("scale");
  EXPECT_THROW(fresh.load_state_dict(wrong), Error);
  EXPECT_EQ(fresh.get_scale(), 12);
}

TEST(ScalerDisabled, DoesNothing) {
  const Tensor p = parameter();
  optim::SGD opt({p}, {.lr = 1});
  GradScaler scaler({.enabled = false});
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
  scaler.load_state_dict({});
  scaler.scale(loss_of(p, 1)).backward();
  scaler.unscale_(opt);
  scaler.step(opt);
  scaler.update();
  EXPECT_TRUE(equal(p.detach(), parameter().detach() - 1));
}

struct Net {
  nn::Conv2d conv{1, 8, 3, {.padding = 1}};
  nn::Linear fc{8 * 4 * 4, 10};
  Tensor operator()(const Tensor& x) const { return fc(max_pool2d(relu(conv(x)), 2).flatten(1)); }
};

// The loop of the contract program for GPUs, here on every device: a network learns its batch, with and without update().
TEST(ScalerTraining, LearnsABatch) {
  for (const Device& device : places())
    for (const DType half : {f16, bf16})
      for (const bool updates : {true, false}) {
        manual_seed(1);
        Net net;
        to(net, device);
        const Tensor x = randn({32, 1, 8, 8}, {.device = device}), y = randint(0, 10, {32}, {.device = device});
        optim::AdamW opt(parameters(net), {.lr = 1e-2});
        GradScaler scaler;
        const double first = cross_entropy(net(x), y).item<double>();
        for (int i = 0; i < 40; ++i) {
          opt.zero_grad();
          Tensor loss;
          {
            Autocast guard(half);
            loss = cross_entropy(net(x), y);
          }
          scaler.scale(loss).backward();
          scaler.step(opt);
          if (updates) scaler.update();
        }
        EXPECT_LT(cross_entropy(net(x), y).item<double>(), 0.5 * first);
        for (const Tensor& p : parameters(net)) EXPECT_EQ(p.dtype(), f32);
      }
}

// Without update(), the scale goes on as with it, one step later, whether gradients are unscaled first or by step().
TEST(ScalerTraining, UpdatesItselfAfterUnscale) {
  for (const bool unscaled_first : {true, false}) {
    const Tensor w = ones({4}).requires_grad_();
    optim::SGD opt({w}, {.lr = 0});
    GradScaler scaler({.init_scale = 8, .growth_interval = 2});
    for (int i = 0; i < 7; ++i) {
      opt.zero_grad();
      scaler.scale((w * 1e-3).sum()).backward();
      if (unscaled_first) scaler.unscale_(opt);
      scaler.step(opt);
    }
    EXPECT_EQ(scaler.get_scale(), 64) << unscaled_first;
  }
}

// Gradients too small for f16 vanish without the scaler, and arrive with it.
TEST(ScalerTraining, KeepsSmallGradients) {
  const auto gradient = [](bool scaled) {
    const Tensor w = ones({4, 4}).requires_grad_();
    optim::SGD opt({w}, {.lr = 0});
    GradScaler scaler({.enabled = scaled});
    Tensor loss;
    {
      const Autocast guard(f16);
      loss = matmul(ones({1, 4}), w).sum() * 1e-9;
    }
    scaler.scale(loss).backward();
    scaler.unscale_(opt);
    return w.grad()->sum().item<double>();
  };
  EXPECT_EQ(gradient(false), 0);
  EXPECT_NEAR(gradient(true), 16e-9, 1e-11);
}

// Finite in f64, though not in f32.
TEST(ScalerTraining, LargeGradientsOfDoublesAreFinite) {
  const Tensor w = zeros({2}, {.dtype = f64}).requires_grad_();
  optim::SGD opt({w}, {.lr = 1});
  GradScaler scaler({.init_scale = 2});
  scaler.scale((w * 1e100).sum()).backward();
  scaler.step(opt);
  EXPECT_EQ(w[0].item<double>(), -1e100);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 2);
}

}  // namespace
}  // namespace volta::test

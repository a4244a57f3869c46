// Schedulers against PyTorch's rates; clipping of gradients; averages of weights.
#include <gtest/gtest.h>

#include <limits>

#include "oracle/training.h"

namespace volta::test {
namespace {

using optim::Optimizer;
using oracle::Args;
using oracle::Case;
using Tensors = std::vector<Tensor>;
using Schedule = std::unique_ptr<optim::Scheduler>;
using Make = std::function<Schedule(Optimizer&, const Args&)>;

template <class S, class... X> Schedule made(Optimizer& o, X&&... x) {
  return std::make_unique<S>(o, std::forward<X>(x)...);
}

optim::OneCycleLROptions one_cycle(const Args& a) {
  return {.max_lr = a.number("max_lr", 0),
          .total_steps = a.whole("total_steps", 0),
          .anneal_strategy = a.has("anneal_strategy") ? optim::Anneal::linear : optim::Anneal::cos,
          .three_phase = a.text("total_steps") == "41"};
}

optim::CyclicLROptions cyclic(const Args& a) {
  const std::string& mode = a.text("mode");
  return {.base_lr = a.number("base_lr", 0),
          .max_lr = a.number("max_lr", 0),
          .step_size_up = a.whole("step_size_up", 0),
          .step_size_down = a.maybe("step_size_down"),
          .mode = mode == "triangular"    ? optim::Cycle::triangular
                  : mode == "triangular2" ? optim::Cycle::triangular2
                                          : optim::Cycle::exp_range,
          .gamma = a.number("gamma", 1)};
}

const std::map<std::string, Make>& makers() {
  using namespace optim;
  static const std::map<std::string, Make> table = {
      {"StepLR",
       [](auto& o, auto& a) {
         return made<StepLR>(o, StepLROptions{a.whole("step_size", 0), a.number("gamma", 0)});
       }},
      {"MultiStepLR",
       [](auto& o, auto& a) {
         return made<MultiStepLR>(o, MultiStepLROptions{a.list("milestones"), a.number("gamma", 0)});
       }},
      {"ConstantLR",
       [](auto& o, auto& a) {
         return made<ConstantLR>(o, ConstantLROptions{a.number("factor", 0), a.whole("total_iters", 0)});
       }},
      {"ExponentialLR",
       [](auto& o, auto& a) { return made<ExponentialLR>(o, ExponentialLROptions{a.number("gamma", 0)}); }},
      {"PolynomialLR",
       [](auto& o, auto& a) {
         return made<PolynomialLR>(o, PolynomialLROptions{a.whole("total_iters", 0), a.number("power", 0)});
       }},
      {"LinearLR",
       [](auto& o, auto& a) {
         return made<LinearLR>(
             o, LinearLROptions{a.number("start_factor", 0), a.number("end_factor", 0), a.whole("total_iters", 0)});
       }},
      {"CosineAnnealingLR",
       [](auto& o, auto& a) {
         return made<CosineAnnealingLR>(o, CosineAnnealingLROptions{a.whole("T_max", 0), a.number("eta_min", 0)});
       }},
      {"CosineAnnealingWarmRestarts",
       [](auto& o, auto& a) {
         return made<CosineAnnealingWarmRestarts>(
             o, CosineAnnealingWarmRestartsOptions{a.whole("T_0", 0), a.whole("T_mult", 0), a.number("eta_min", 0)});
       }},
      {"OneCycleLR", [](auto& o, auto& a) { return made<OneCycleLR>(o, one_cycle(a)); }},
      {"CyclicLR", [](auto& o, auto& a) { return made<CyclicLR>(o, cyclic(a)); }},
      {"LambdaLR",
       [](auto& o, auto&) { return made<LambdaLR>(o, [](int64_t t) { return 1 / std::sqrt(double(t) + 1); }); }},
      {"SequentialLR",
       [](auto& o, auto&) {
         std::vector<AnyScheduler> list{LinearLR(o, {.start_factor = 0.1, .total_iters = 6}),
                                        StepLR(o, {.step_size = 5, .gamma = 0.5}), ExponentialLR(o, {.gamma = 0.9})};
         return made<SequentialLR>(o, std::move(list), std::vector<int64_t>{8, 20});
       }},
      {"ChainedScheduler",
       [](auto& o, auto&) {
         std::vector<AnyScheduler> list{ConstantLR(o, {.factor = 0.1}), ExponentialLR(o, {.gamma = 0.9}),
                                        StepLR(o, {.step_size = 7, .gamma = 0.5})};
         return made<ChainedScheduler>(o, std::move(list));
       }},
  };
  return table;
}

struct Trained {
  Tensor w = zeros({1}).requires_grad_();
  optim::SGD opt{{w}, {.lr = 0.5, .momentum = 0.9}};
};

class ScheduleOracle : public testing::TestWithParam<std::string> {};

// PyTorch multiplies rates step by step and so gathers rounding errors; ours compute each from its step.
TEST_P(ScheduleOracle, EqualsPyTorchAndResumes) {
  for (const Case& c : oracle::training().cases.at(GetParam())) {
    Trained one, two;
    const Make& make = makers().at(GetParam());
    const Schedule schedule = make(one.opt, c.args);
    std::vector<double> rates;
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(schedule->get_last_lr()[0], one.opt.lr());
      rates.push_back(one.opt.lr());
      rates.push_back(one.opt.param_groups()[0].momentum);
      if (i % 13 == 5) {
        const Schedule resumed = make(two.opt, c.args);
        resumed->load_state_dict(schedule->state_dict());
        EXPECT_EQ(two.opt.lr(), one.opt.lr());
        EXPECT_EQ(resumed->last_epoch(), i);
      }
      schedule->step();
    }
    EXPECT_EQ(oracle::difference(tensor(rates, {40, 2}), oracle::stored(c.outputs[0].data), 64), "") << c.label;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, make] : makers()) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, ScheduleOracle, testing::ValuesIn(names()), [](const auto& one) { return one.param; });

TEST(SchedulePlateau, EqualsPyTorchAndResumes) {
  for (const Case& c : oracle::training().cases.at("ReduceLROnPlateau")) {
    const bool highest = c.args.has("mode");
    const optim::ReduceLROnPlateauOptions options{
        .mode = highest ? optim::Plateau::max : optim::Plateau::min,
        .factor = c.args.number("factor", 0.1),
        .patience = c.args.whole("patience", 10),
        .threshold = c.args.number("threshold", 1e-4),
        .threshold_mode = highest ? optim::Threshold::absolute : optim::Threshold::relative,
        .cooldown = c.args.whole("cooldown", 0),
        .min_lr = c.args.number("min_lr", 0)};
    Trained trained;
    auto schedule = std::make_unique<optim::ReduceLROnPlateau>(trained.opt, options);
    std::vector<double> rates;
    for (double metric : oracle::operand(c, 0).to_vector<double>()) {
      schedule->step(metric);
      rates.push_back(schedule->get_last_lr()[0]);
      auto next = std::make_unique<optim::ReduceLROnPlateau>(trained.opt, options);
      next->load_state_dict(schedule->state_dict());
      schedule = std::move(next);
    }
    EXPECT_EQ(oracle::difference(tensor(rates), oracle::stored(c.outputs[0].data), 4), "") << c.label;
  }
}

TEST(ScheduleWarmup, RisesThenFollowsAnother) {
  Trained t;
  optim::WarmupLR s(t.opt, {.steps = 10}, optim::CosineAnnealingLR(t.opt, {.t_max = 20}));
  EXPECT_EQ(t.opt.lr(), 0);
  for (int i = 0; i < 5; ++i) s.step();
  EXPECT_DOUBLE_EQ(t.opt.lr(), 0.25);
  for (int i = 0; i < 5; ++i) s.step();
  EXPECT_DOUBLE_EQ(t.opt.lr(), 0.5);
  for (int i = 0; i < 10; ++i) s.step();
  EXPECT_DOUBLE_EQ(t.opt.lr(), 0.25);
}

TEST(ScheduleGroups, KeepTheirOwnRatesAndAdamsBetas) {
  Tensor a = zeros({1}).requires_grad_(), b = zeros({1}).requires_grad_();
  optim::Adam opt({{.params = {a}, .lr = 1.0}, {.params = {b}, .lr = 0.1}});
  optim::OneCycleLR cycle(opt, {.max_lrs = {1, 0.1}, .total_steps = 10});
  EXPECT_NEAR(opt.param_groups()[0].lr, 1. / 25, 1e-15);
  EXPECT_NEAR(opt.param_groups()[1].lr, 0.1 / 25, 1e-15);
  EXPECT_DOUBLE_EQ(opt.param_groups()[1].betas.first, 0.95);
  for (int i = 0; i < 10; ++i) cycle.step();
  EXPECT_THROW(cycle.step(), Error);
  const auto kept = cycle.last_epoch();
  EXPECT_EQ(kept, 10);
  const optim::OneCycleLR one(opt, {.max_lr = 0.5, .total_steps = 10});  // of all groups
  for (const auto& group : opt.param_groups()) EXPECT_NEAR(group.lr, 0.5 / 25, 1e-15);
}

TEST(ErrorsSchedule, AreThrown) {
  Trained t;
  Tensor w = zeros({1}).requires_grad_();
  optim::SGD plain({w}, {.lr = 1});
  using namespace optim;
  EXPECT_THROW(StepLR(t.opt, {.step_size = 0}), Error);
  EXPECT_THROW(ConstantLR(t.opt, {.factor = 2}), Error);
  EXPECT_THROW(LinearLR(t.opt, {.start_factor = 0}), Error);
  EXPECT_THROW(PolynomialLR(t.opt, {.total_iters = 0}), Error);
  EXPECT_THROW(CosineAnnealingLR(t.opt, {.t_max = 0}), Error);
  EXPECT_THROW(CosineAnnealingWarmRestarts(t.opt, {.t_0 = 0}), Error);
  EXPECT_THROW(OneCycleLR(t.opt, {.max_lr = 1}), Error);
  EXPECT_THROW(OneCycleLR(t.opt, {.total_steps = 5}), Error);
  EXPECT_THROW(OneCycleLR(plain, {.max_lr = 1, .total_steps = 5}), Error);
  EXPECT_THROW(CyclicLR(plain, {.base_lr = 0, .max_lr = 1}), Error);
  EXPECT_THROW(LambdaLR(t.opt, std::vector<LambdaLR::Factor>{}), Error);
  EXPECT_THROW(SequentialLR(t.opt, {StepLR(t.opt, {.step_size = 1})}, {3}), Error);
  EXPECT_THROW(ChainedScheduler(t.opt, {}), Error);
  EXPECT_THROW(ReduceLROnPlateau(t.opt, {.factor = 1}), Error);
  EXPECT_THROW(WarmupLR(t.opt, {.steps = 0}), Error);
  EXPECT_THROW(StepLR(t.opt, {.step_size = 1}).load_state_dict({}), Error);
}

Tensors with_gradients() {
  Tensor a = zeros({2}).requires_grad_(), b = zeros({1}).requires_grad_(), without = zeros({3}).requires_grad_();
  a.set_grad(tensor({3.f, 0.f}));
  b.set_grad(tensor({-4.f}));
  return {a, without, b};
}

TEST(OptimClip, Norms) {
  Tensors p = with_gradients();
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_(p, 10).item<float>(), 5);
  EXPECT_EQ(p[0].grad()->to_vector<float>()[0], 3);
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_(p, 1).item<float>(), 5);
  EXPECT_NEAR(p[0].grad()->to_vector<float>()[0], 0.6, 1e-6);
  EXPECT_NEAR(nn::clip_grad_norm_(p, 1).item<float>(), 1, 1e-6);
  p[0].set_grad(tensor({3e-6f, 0.f}));  // 1e-6 is added to the norm, as PyTorch does
  EXPECT_NEAR(nn::clip_grad_norm_({p[0]}, 1e-6).item<float>(), 3e-6, 1e-11);
  EXPECT_NEAR(p[0].grad()->to_vector<float>()[0], 3e-6 * 1e-6 / 4e-6, 1e-11);
  p = with_gradients();
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_(p, 1, {.norm_type = 1}).item<float>(), 7);
  p = with_gradients();
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_(p, 2, {.norm_type = std::numeric_limits<double>::infinity()}).item<float>(), 4);
  EXPECT_NEAR(p[2].grad()->item<float>(), -2, 1e-6);
  EXPECT_EQ(nn::clip_grad_norm_({p[1]}, 1).item<float>(), 0);
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_({p[2]}, 9, {.error_if_nonfinite = true}).item<float>(), 2);

  p[2].set_grad(tensor({INFINITY}));
  EXPECT_THROW(nn::clip_grad_norm_(p, 1, {.error_if_nonfinite = true}), Error);
  EXPECT_NEAR(p[0].grad()->to_vector<float>()[0], 1.5, 1e-6);  // nothing was changed
  EXPECT_TRUE(std::isinf(nn::clip_grad_norm_(p, 1).item<float>()));
  EXPECT_THROW(nn::clip_grad_norm_(p, -1), Error);
  EXPECT_THROW(nn::clip_grad_norm_(p, 1, {.norm_type = 0}), Error);
}

TEST(OptimClip, Values) {
  const Tensors p = with_gradients();
  nn::clip_grad_value_(p, 2.5);
  EXPECT_EQ(p[0].grad()->to_vector<float>(), (std::vector<float>{2.5, 0}));
  EXPECT_EQ(p[2].grad()->item<float>(), -2.5);
  EXPECT_THROW(nn::clip_grad_value_(p, -1), Error);
}

TEST(OptimAverage, ExponentialAndEqual) {
  Tensor w = tensor({1.f}).requires_grad_();
  optim::EMA ema({w}, 0.9);
  optim::SWA swa({w});
  for (float value : {2.f, 4.f, 9.f}) {
    w.detach().fill_(value);
    ema.update();
    swa.update();
  }
  EXPECT_FLOAT_EQ(ema.averages()[0].item<float>(), 0.9f * (0.9f * 2 + 0.1f * 4) + 0.1f * 9);
  EXPECT_FLOAT_EQ(swa.averages()[0].item<float>(), 5);
  EXPECT_EQ(swa.updates(), 3);
  {
    const auto averaged = swa.swap();
    EXPECT_EQ(w.detach().item<float>(), 5);
  }
  EXPECT_EQ(w.detach().item<float>(), 9);
  optim::SWA other({w});
  other.load(swa.averages(), swa.updates());
  w.detach().fill_(1);
  other.update();
  EXPECT_FLOAT_EQ(other.averages()[0].item<float>(), 4);
  Tensor copy = zeros({1});
  other.copy_to({copy});
  EXPECT_FLOAT_EQ(copy.item<float>(), 4);
  EXPECT_THROW(other.copy_to({copy, copy}), Error);
  EXPECT_THROW(optim::EMA({w}, 1.5), Error);
  EXPECT_THROW(optim::SWA(Tensors{}), Error);
}

}  // namespace
}  // namespace volta::test

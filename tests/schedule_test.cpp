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

// The rates before each step and after the last, with some set by hand before a step.
using Steps = std::vector<std::function<void()>>;
std::vector<double> rates_of(const std::function<Steps(Optimizer&)>& make, int steps,
                             const std::map<int, double>& by_hand = {}) {
  Tensor w = zeros({1}).requires_grad_();
  optim::SGD opt({w}, {.lr = 1, .momentum = 0.9});
  const Steps schedules = make(opt);
  std::vector<double> rates{opt.lr()};
  for (int i = 0; i < steps; ++i) {
    if (by_hand.contains(i)) opt.set_lr(by_hand.at(i));
    for (const auto& step : schedules) step();
    rates.push_back(opt.lr());
  }
  return rates;
}
template <class S> std::function<void()> stepped(S schedule) {
  return [kept = std::make_shared<S>(std::move(schedule))] { kept->step(); };
}
void expect_rates(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << "step " << i;
}

// The expected rates are PyTorch's.
TEST(ScheduleTogether, SeveralOfOneOptimizer) {
  using namespace optim;
  expect_rates(
      rates_of(
          [](Optimizer& o) {
            return Steps{stepped(StepLR(o, {.step_size = 1, .gamma = 0.5})), stepped(ExponentialLR(o, {.gamma = 0.9}))};
          },
          3),
      {1, 0.45, 0.2025, 0.091125});
  expect_rates(rates_of(
                   [](Optimizer& o) {
                     auto plateau =
                         std::make_shared<ReduceLROnPlateau>(o, ReduceLROnPlateauOptions{.factor = 0.5, .patience = 1});
                     return Steps{stepped(LinearLR(o, {.start_factor = 0.1, .total_iters = 3})),
                                  [plateau] { plateau->step(1); }};
                   },
                   8),
               {0.1, 0.4, 0.7, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125});
  expect_rates(rates_of(
                   [](Optimizer& o) {
                     return Steps{stepped(ConstantLR(o, {.factor = 0.5, .total_iters = 2})),
                                  stepped(LinearLR(o, {.start_factor = 0.1, .total_iters = 4}))};
                   },
                   5),
               {0.05, 0.1625, 0.55, 0.775, 1, 1});
  expect_rates(rates_of(
                   [](Optimizer& o) {
                     return Steps{stepped(CosineAnnealingLR(o, {.t_max = 3})),
                                  stepped(MultiStepLR(o, {.milestones = {2, 4}, .gamma = 0.5}))};
                   },
                   8),
               {1, 0.75, 0.125, 0, 0.125, 0.375, 0.5, 0.375, 0.125});
  expect_rates(rates_of(
                   [](Optimizer& o) {
                     return Steps{stepped(ExponentialLR(o, {.gamma = 0.5})),
                                  stepped(SWALR(o, {.swa_lr = 0.1, .anneal_epochs = 4, .anneal_strategy = "linear"}))};
                   },
                   6),
               {1, 0.4, 1. / 6, 11. / 120, 0.1, 0.1, 0.1});
  expect_rates(rates_of(
                   [](Optimizer& o) {
                     StepLR before(o, {.step_size = 1, .gamma = 0.5});
                     before.step(), before.step();
                     return Steps{stepped(ExponentialLR(o, {.gamma = 0.9}))};
                   },
                   2),
               {0.25, 0.225, 0.2025});
}

TEST(ScheduleTogether, RatesSetByHandStay) {
  using namespace optim;
  const auto of = [](auto make) { return [make](Optimizer& o) { return Steps{stepped(make(o))}; }; };
  const auto linear = of([](Optimizer& o) { return LinearLR(o, {.start_factor = 0.1, .total_iters = 3}); });
  expect_rates(rates_of(linear, 6, {{1, 0.2}, {4, 0.01}}), {0.1, 0.4, 0.35, 0.5, 0.5, 0.01, 0.01});
  const auto power = of([](Optimizer& o) { return PolynomialLR(o, {.total_iters = 4, .power = 2}); });
  expect_rates(rates_of(power, 6, {{1, 0.2}, {5, 0.3}}),
               {1, 0.5625, 0.08888888888888889, 0.02222222222222222, 0, 0, 0.3});
  const auto cosine = of([](Optimizer& o) { return CosineAnnealingLR(o, {.t_max = 4, .eta_min = 0.1}); });
  expect_rates(rates_of(cosine, 10, {{2, 0.2}}),
               {1, 0.86819805153394636, 0.55, 0.12928932188134526, 0.1, 0.23180194846605359, 0.55, 0.86819805153394669,
                1, 0.8681980515339468, 0.55});
  const auto swa = of([](Optimizer& o) { return SWALR(o, {.swa_lr = 0.1, .anneal_epochs = 4}); });
  expect_rates(rates_of(swa, 6, {{2, 0.4}}), {1, 0.86819805153394636, 0.55, 0.18786796564403579, 0.1, 0.1, 0.1});
  const auto sequence = of([](Optimizer& o) {
    return SequentialLR(o, {LinearLR(o, {.start_factor = 0.1, .total_iters = 3}), ExponentialLR(o, {.gamma = 0.5})},
                        {4});
  });
  expect_rates(rates_of(sequence, 7, {{1, 0.2}, {5, 0.3}}), {0.1, 0.4, 0.35, 0.5, 1, 0.5, 0.15, 0.075});
  const auto chain = of([](Optimizer& o) {
    return ChainedScheduler(o, {ConstantLR(o, {.factor = 0.1, .total_iters = 2}), ExponentialLR(o, {.gamma = 0.9})});
  });
  expect_rates(rates_of(chain, 4, {{1, 0.2}}), {0.1, 0.09, 1.8, 1.62, 1.458});
  const auto warm = of([](Optimizer& o) {
    return WarmupLR(o, {.steps = 2, .start_factor = 0.5}, StepLR(o, {.step_size = 1, .gamma = 0.5}));
  });
  expect_rates(rates_of(warm, 4, {{1, 0.3}}), {0.5, 0.75, 0.4, 0.2, 0.1});
  const auto before = [](Optimizer& o) {
    const StepLR first(o, {.step_size = 1});
    o.set_lr(1e-3);
    return Steps{stepped(StepLR(o, {.step_size = 100}))};
  };
  expect_rates(rates_of(before, 1), {1e-3, 1e-3});
}

// These set rates of their own whatever is in use, in PyTorch too.
TEST(ScheduleTogether, SomeOverwrite) {
  using namespace optim;
  const auto of = [](auto make) { return [make](Optimizer& o) { return Steps{stepped(make(o))}; }; };
  const auto lambda = of([](Optimizer& o) { return LambdaLR(o, [](int64_t t) { return std::pow(0.9, double(t)); }); });
  expect_rates(rates_of(lambda, 3, {{1, 0.2}}), {1, 0.9, 0.81, 0.729});
  const auto restarts = of([](Optimizer& o) { return CosineAnnealingWarmRestarts(o, {.t_0 = 2}); });
  expect_rates(rates_of(restarts, 3, {{1, 0.2}}), {1, 0.5, 1, 0.5});
  const auto cycle = of([](Optimizer& o) { return OneCycleLR(o, {.max_lr = 0.5, .total_steps = 5}); });
  expect_rates(rates_of(cycle, 3, {{1, 0.2}}), {0.02, 0.47524231600673683, 0.30563101096814466, 0.094129173025118487});
  const auto cyclic = of([](Optimizer& o) { return CyclicLR(o, {.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 2}); });
  expect_rates(rates_of(cyclic, 3, {{1, 0.2}}), {0.1, 0.3, 0.5, 0.3});
}

TEST(ScheduleTogether, RatesThatAreNotItsOwnAreSaved) {
  Trained one, two;
  optim::StepLR step(one.opt, {.step_size = 2, .gamma = 0.5});
  optim::ExponentialLR exponential(one.opt, {.gamma = 0.9});
  EXPECT_EQ(step.state_dict().size(), 2u);  // a rate of its own follows from the step
  for (int i = 0; i < 3; ++i) step.step(), exponential.step();
  optim::StepLR step2(two.opt, {.step_size = 2, .gamma = 0.5});
  optim::ExponentialLR exponential2(two.opt, {.gamma = 0.9});
  exponential2.load_state_dict(exponential.state_dict());
  step2.load_state_dict(step.state_dict());
  EXPECT_EQ(two.opt.lr(), one.opt.lr());
  for (int i = 0; i < 3; ++i) {
    step.step(), exponential.step(), step2.step(), exponential2.step();
    EXPECT_EQ(two.opt.lr(), one.opt.lr());
  }
  auto broken = step.state_dict();
  broken["last_lrs.0"] = NAN;
  EXPECT_THROW(step2.load_state_dict(broken), Error);
  EXPECT_EQ(two.opt.lr(), one.opt.lr());
}

TEST(ScheduleTogether, GroupsAddedLater) {
  Tensor a = zeros({1}).requires_grad_(), b = zeros({1}).requires_grad_();
  optim::SGD opt({a}, {.lr = 1});
  optim::StepLR step(opt, {.step_size = 2, .gamma = 0.5});
  optim::ExponentialLR exponential(opt, {.gamma = 0.9});
  step.step(), exponential.step();
  opt.add_param_group({.params = {b}, .lr = 0.4});
  const auto saved = step.state_dict();
  for (const auto& [first, second] : {std::pair(0.405, 0.18), {0.3645, 0.162}, {0.164025, 0.0729}}) {
    step.step(), exponential.step();
    EXPECT_NEAR(opt.param_groups()[0].lr, first, 1e-12);
    EXPECT_NEAR(opt.param_groups()[1].lr, second, 1e-12);
  }
  step.load_state_dict(saved);
  EXPECT_EQ(opt.param_groups()[1].lr, 0.4);

  optim::LambdaLR all(opt, [](int64_t) { return 0.5; });
  optim::LambdaLR each(opt, {[](int64_t) { return 0.5; }, [](int64_t) { return 0.25; }});
  optim::SWALR swa(opt, {.swa_lr = 0.2, .anneal_epochs = 1});
  Tensor c = zeros({1}).requires_grad_();
  opt.add_param_group({.params = {c}, .lr = 0.8});
  EXPECT_THROW(each.step(), Error);  // it has no function for the third
  EXPECT_EQ(each.last_epoch(), 0);
  all.step();
  EXPECT_EQ(opt.param_groups()[2].lr, 0.4);
  swa.step();
  EXPECT_EQ(opt.param_groups()[2].lr, 0.2);
}

// The expected rates are PyTorch's.
TEST(ScheduleTogether, SWALRGoesOnInASequence) {
  using namespace optim;
  const auto sequence = [](int64_t epochs, int64_t at) {
    return [=](Optimizer& o) {
      return SequentialLR(o,
                          {ExponentialLR(o, {.gamma = 0.5}),
                           SWALR(o, {.swa_lr = 0.5, .anneal_epochs = epochs, .anneal_strategy = "linear"}),
                           ExponentialLR(o, {.gamma = 0.5})},
                          {at, at + 4});
    };
  };
  const auto of = [](auto make) { return [make](Optimizer& o) { return Steps{stepped(make(o))}; }; };
  const std::vector<double> expected{1, 0.5, 0.25, 0.25, 0.375, 0.5, 0.5, 1, 0.5};
  expect_rates(rates_of(of(sequence(2, 3)), 8), expected);
  expect_rates(rates_of(of(sequence(0, 3)), 8), {1, 0.5, 0.25, 0.5, 0.5, 0.5, 0.5, 1, 0.5});
  expect_rates(rates_of(of(sequence(4, 2)), 5, {{4, 3}}), {1, 0.5, 0.5, 0.5, 0.5, 1.75});
  for (int stop = 0; stop < 8; ++stop) {
    Tensor w = zeros({1}).requires_grad_();
    SGD one({w}, {.lr = 1}), two({w}, {.lr = 1});
    SequentialLR first = sequence(2, 3)(one), second = sequence(2, 3)(two);
    for (int i = 0; i < stop; ++i) first.step();
    second.load_state_dict(first.state_dict());
    for (int i = stop; i < 8; ++i) {
      EXPECT_NEAR(two.lr(), expected[size_t(i)], 1e-12);
      second.step();
    }
  }
  const auto warm = of([](Optimizer& o) {
    return WarmupLR(o, {.steps = 2}, SWALR(o, {.swa_lr = 0.5, .anneal_epochs = 2, .anneal_strategy = "linear"}));
  });
  expect_rates(rates_of(warm, 5), {0, 0.5, 1, 0.75, 0.5, 0.5});
  expect_rates(rates_of(warm, 5, {{2, 0.9}}), {0, 0.5, 1, 0.7, 0.5, 0.5});
}

TEST(ErrorsSchedule, AreThrown) {
  Trained t;
  Tensor w = zeros({1}).requires_grad_();
  optim::Adagrad plain({w}, {.lr = 1});
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

TEST(ScheduleErrors, MilestonesAscendAndPeriodsGrow) {
  using namespace optim;
  SGD opt({zeros({1}).requires_grad_()}, {.lr = 0.1});
  const auto sequence = [&](std::vector<int64_t> milestones) {
    std::vector<AnyScheduler> parts;
    for (size_t i = 0; i <= milestones.size(); ++i) parts.emplace_back(ExponentialLR(opt, {.gamma = 0.9}));
    return attempt([&] { SequentialLR(opt, std::move(parts), milestones); });
  };
  EXPECT_TRUE(sequence({2, 2, 5}));
  EXPECT_FALSE(sequence({5, 2}));
  EXPECT_FALSE(sequence({-1, 2}));
  EXPECT_TRUE(attempt([&] { CosineAnnealingWarmRestarts(opt, {.t_0 = 3, .t_mult = 1}); }));
  EXPECT_FALSE(attempt([&] { CosineAnnealingWarmRestarts(opt, {.t_0 = 3, .t_mult = 0}); }));
}

// What a function of one's own is given: the number of the cycle, or of the step.
TEST(ScheduleValues, CyclicLRScalesByCyclesOrSteps) {
  using namespace optim;
  const auto seen = [](const std::string& mode) {
    SGD opt({zeros({1}).requires_grad_()}, {.lr = 0.1});
    std::vector<double> given;
    CyclicLR s(opt, {.base_lr = 0.1,
                     .max_lr = 1,
                     .step_size_up = 2,
                     .scale_fn = [&](double at) { return given.push_back(at), 1; },
                     .scale_mode = mode,
                     .cycle_momentum = false});
    for (int i = 0; i < 5; ++i) s.step();
    return given.back();
  };
  EXPECT_EQ(seen("cycle"), 2);
  EXPECT_EQ(seen("iterations"), 5);
  EXPECT_FALSE(attempt([&] { seen("step"); }));
}

// A group that was added after SWALR began goes on from its own rate.
TEST(ScheduleTogether, SWALRTakesGroupsAddedLater) {
  using namespace optim;
  SGD opt({zeros({1}).requires_grad_()}, {.lr = 0.1});
  SWALR swa(opt, {.swa_lr = 0.2, .anneal_epochs = 4, .anneal_strategy = "linear"});
  opt.add_param_group({.params = {zeros({1}).requires_grad_()}, .lr = 0.8});
  EXPECT_NEAR(swa.rate(0.1, 1, 0), 0.125, 1e-12);
  for (const size_t later : {1, 2, 7}) EXPECT_NEAR(swa.rate(0.8, 1, later), 0.65, 1e-12);
  for (const auto& [first, second] : {std::pair(0.125, 0.65), {0.15, 0.5}, {0.175, 0.35}, {0.2, 0.2}, {0.2, 0.2}}) {
    swa.step();
    EXPECT_NEAR(opt.param_groups()[0].lr, first, 1e-12);
    EXPECT_NEAR(opt.param_groups()[1].lr, second, 1e-12);
  }
}

}  // namespace
}  // namespace volta::test

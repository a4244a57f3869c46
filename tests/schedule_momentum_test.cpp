// Schedulers that cycle the momentum, alone and inside others; what is left of a scheduler's call that failed.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <volta/volta.h>

namespace volta::test {
namespace {

using optim::Optimizer;

struct Trained {
  Tensor w = zeros({1}).requires_grad_();
  optim::SGD opt{{w}, {.lr = 0.5, .momentum = 0.9}};
};

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << "step " << i;
}

// The rates and the momenta (the first of betas, where there are some) before each step and after the last.
std::pair<std::vector<double>, std::vector<double>> followed(Optimizer& opt, optim::Scheduler& schedule, int steps) {
  std::vector<double> rates, momenta;
  for (int i = 0; i <= steps; ++i) {
    if (i > 0) schedule.step();
    const optim::ParamGroup& group = opt.param_groups()[0];
    rates.push_back(group.lr);
    momenta.push_back(group.betas == optim::Betas{0, 0} ? group.momentum : group.betas.first);
  }
  return {rates, momenta};
}

// The expected momenta are PyTorch's; it has no WarmupLR.
TEST(ScheduleMomentum, ReachesSchedulesInOthers) {
  using namespace optim;
  const OneCycleLROptions cycle{.max_lr = 1, .total_steps = 6};
  const std::vector<double> turn{0.95, 0.8505584586887436, 0.8688255099070633, 0.9037365046793212};
  const auto shifted = [&](std::vector<double> before) {
    before.insert(before.end(), turn.begin(), turn.end());
    return before;
  };
  {
    Trained t;
    SequentialLR s(t.opt, {ConstantLR(t.opt, {.factor = 0.5, .total_iters = 2}), OneCycleLR(t.opt, cycle)}, {2});
    const auto [rates, momenta] = followed(t.opt, s, 5);
    expect_near(momenta, shifted({0.95, 0.95}));
    expect_near(rates, {0.25, 0.25, 0.04, 0.9944154354509117, 0.811745653949763, 0.46263710266697505});
    Trained other;
    SequentialLR resumed(other.opt, {ConstantLR(other.opt), OneCycleLR(other.opt, cycle)}, {2});
    resumed.load_state_dict(s.state_dict());
    EXPECT_EQ(other.opt.param_groups()[0].momentum, t.opt.param_groups()[0].momentum);
  }
  {
    Trained t;
    SequentialLR s(t.opt, {OneCycleLR(t.opt, {.max_lr = 1, .total_steps = 4}), ConstantLR(t.opt)}, {3});
    expect_near(followed(t.opt, s, 4).second,
                {0.95, 0.8688255099070633, 0.9216941869558779, 0.9216941869558779, 0.9216941869558779});
  }
  {
    Trained t;
    WarmupLR s(t.opt, {.steps = 2}, OneCycleLR(t.opt, cycle));
    expect_near(followed(t.opt, s, 5).second, shifted({0.95, 0.95}));
  }
  {
    Trained t;
    ChainedScheduler s(t.opt, {ExponentialLR(t.opt, {.gamma = 0.5}), OneCycleLR(t.opt, cycle)});
    expect_near(followed(t.opt, s, 3).second, turn);
  }
  Tensor w = zeros({1}).requires_grad_();
  Adam adam({w}, {.lr = 0.1});
  SequentialLR s(adam, {ConstantLR(adam), CyclicLR(adam, {.base_lr = 0.1, .max_lr = 1, .step_size_up = 2})}, {2});
  expect_near(followed(adam, s, 6).second, {0.9, 0.9, 0.9, 0.85, 0.8, 0.85, 0.9});
}

TEST(ScheduleMomentum, OfMuonAndWhereItWasNone) {
  using namespace optim;
  const OneCycleLROptions cycle{
      .max_lr = 1, .total_steps = 5, .pct_start = 0.6, .anneal_strategy = "linear", .base_momentum = 0};
  const std::vector<double> turn{0.95, 0.475, 0, 0.475, 0.95};
  Tensor w = zeros({2, 2}).requires_grad_();
  Muon muon({w}, {.lr = 0.1});
  OneCycleLR of_muon(muon, cycle);
  for (const double expected : turn) {
    EXPECT_NEAR(muon.param_groups()[0].momentum, expected, 1e-12);
    EXPECT_NEAR(muon.param_groups()[0].betas.first, expected, 1e-12);  // of what it leaves to AdamW
    of_muon.step();
  }
  const auto check = [&](Optimizer&& opt) {
    OneCycleLR s(opt, cycle);
    expect_near(followed(opt, s, 4).second, turn);
  };
  check(SGD({w}, {.lr = 0.1}));
  check(RMSprop({w}, {.lr = 0.1}));
  SGD two({{.params = {w}, .momentum = 0.9}, {.params = {zeros({1}).requires_grad_()}}}, {.lr = 0.1});
  const CyclicLR each(two, {.base_lr = 0.1, .max_lr = 1});
  for (const ParamGroup& group : two.param_groups()) EXPECT_EQ(group.momentum, 0.9);
  Adam adam({w}, {.lr = 0.1, .betas = {0, 0}});
  const OneCycleLR of_adam(adam, cycle);
  EXPECT_EQ(adam.param_groups()[0].betas, (Betas{0.95, 0}));
  EXPECT_EQ(adam.param_groups()[0].momentum, 0);
}

TEST(ErrorsSchedule, LeaveEverythingAsItWas) {
  using namespace optim;
  Trained t;
  const auto refused = [&](Scheduler& s, const std::map<std::string, double>& changes) {
    const SchedulerState before = s.state_dict();
    const double lr = t.opt.lr(), momentum = t.opt.param_groups()[0].momentum;
    SchedulerState broken = before;
    broken["base_lrs.0"] = 7;
    for (const auto& [key, value] : changes) broken[key] = value;
    EXPECT_THROW(s.load_state_dict(broken), Error);
    EXPECT_EQ(s.state_dict(), before);
    EXPECT_EQ(t.opt.lr(), lr);
    EXPECT_EQ(t.opt.param_groups()[0].momentum, momentum);
  };
  EXPECT_THROW(StepLR(t.opt, {.step_size = 0}), Error);
  EXPECT_FALSE(t.opt.param_groups()[0].initial_lr);
  StepLR step(t.opt, {.step_size = 1});
  refused(step, {{"base_lrs.0", NAN}});
  refused(step, {{"base_lrs.0", NAN}, {"last_lrs.0", 1}});
  refused(step, {{"last_lrs.0", NAN}});
  SWALR swa(t.opt, {.swa_lr = 0.1});
  refused(swa, {{"from_lrs.0", 9}, {"last_lrs.0", NAN}});
  refused(swa, {{"from_lrs.0", NAN}, {"last_lrs.0", 1}});
  SequentialLR sequence(t.opt, {SWALR(t.opt, {.swa_lr = 0.1}), OneCycleLR(t.opt, {.max_lr = 1, .total_steps = 10})},
                        {5});
  refused(sequence, {{"schedulers.0.from_lrs.0", 9}, {"last_epoch", 50}});
  OneCycleLR cycle(t.opt, {.max_lr = 1, .total_steps = 10});
  refused(cycle, {{"last_epoch", 50}});
  refused(cycle, {{"base_lrs.0", INFINITY}});

  Tensor late = zeros({1}).requires_grad_();
  SGD two({{.params = {t.w}}, {.params = {late}}}, {.lr = 1});
  LambdaLR each(two, {[](int64_t) { return 0.5; }, [](int64_t) { return 0.25; }});
  ReduceLROnPlateau reduce(two, {.patience = 0, .min_lr = {0.1, 0.2}});
  Tensor later = zeros({1}).requires_grad_();
  two.add_param_group({.params = {later}});
  const auto before = reduce.state_dict();
  EXPECT_THROW(reduce.step(1), Error);
  EXPECT_EQ(reduce.state_dict(), before);
  EXPECT_THROW(each.step(), Error);
  EXPECT_FALSE(two.param_groups()[2].initial_lr);
}

}  // namespace
}  // namespace volta::test

// Optimizers against 100 steps of PyTorch, on problems they must solve, in every layout and dtype; their state, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ops/fused.h"
#include "oracle/training.h"
#include "samples.h"

namespace volta::test {
namespace {

using oracle::Args;
using oracle::Case;
using Tensors = std::vector<Tensor>;
using Made = std::unique_ptr<optim::Optimizer>;
using Make = std::function<Made(optim::Params, const Args&)>;

void read_betas(const Args& a, optim::Betas& betas) {
  if (!a.has("betas")) return;
  const std::string& text = a.text("betas");
  betas = {std::stod(text), std::stod(text.substr(text.find(',') + 1))};
}

template <class O> O common(const Args& a) {
  O o;
  o.lr = a.number("lr", o.lr);
  o.weight_decay = a.number("weight_decay", o.weight_decay);
  o.maximize = a.flag("maximize");
  if constexpr (requires { o.betas; }) read_betas(a, o.betas);
  if constexpr (requires { o.momentum; }) o.momentum = a.number("momentum", o.momentum);
  if constexpr (requires { o.amsgrad; }) o.amsgrad = a.flag("amsgrad");
  if constexpr (requires { o.decoupled_weight_decay; }) o.decoupled_weight_decay = a.flag("decoupled_weight_decay");
  if constexpr (requires { o.nesterov; }) o.nesterov = a.whole("nesterov", o.nesterov) != 0;
  if constexpr (requires { o.dampening; }) o.dampening = a.number("dampening", 0);
  if constexpr (requires { o.alpha; }) o.alpha = a.number("alpha", o.alpha);
  if constexpr (requires { o.centered; }) o.centered = a.flag("centered");
  if constexpr (requires { o.lr_decay; }) o.lr_decay = a.number("lr_decay", 0);
  if constexpr (requires { o.initial_accumulator_value; })
    o.initial_accumulator_value = a.number("initial_accumulator_value", 0);
  if constexpr (requires { o.match_rms_adamw; }) o.match_rms_adamw = a.has("adjust_lr_fn");
  return o;
}

template <class O> Make making() {
  return
      [](optim::Params p, const Args& a) { return std::make_unique<O>(std::move(p), common<typename O::Options>(a)); };
}

const std::map<std::string, Make>& makers() {
  static const std::map<std::string, Make> table = {
      {"SGD", making<optim::SGD>()},           {"Adam", making<optim::Adam>()},
      {"AdamW", making<optim::AdamW>()},       {"Adamax", making<optim::Adamax>()},
      {"NAdam", making<optim::NAdam>()},       {"RAdam", making<optim::RAdam>()},
      {"RMSprop", making<optim::RMSprop>()},   {"Adagrad", making<optim::Adagrad>()},
      {"Adadelta", making<optim::Adadelta>()}, {"Lion", making<optim::Lion>()},
      {"LAMB", making<optim::LAMB>()},         {"Muon", making<optim::Muon>()},
  };
  return table;
}

// How memory lies: as the one-pass loops want it, or so that the formula runs on whole tensors.
enum class Memory { plain, strided, resumed };

Tensor leaf(const Tensor& x, Memory how) {
  if (how != Memory::strided) return x.detach().clone().requires_grad_();
  return stack({x, x}, -1).select(-1, 0).detach().requires_grad_();
}

std::string difference(const Case& c, Memory how, Device device) {
  const size_t count = c.operands.size() / 2;
  Tensors params, gradients;
  for (size_t i = 0; i < count; ++i) {
    params.push_back(leaf(oracle::operand(c, i).to(device), how));
    gradients.push_back(oracle::operand(c, count + i).to(device));
  }
  const Make& make = makers().at(c.op);
  Made opt = make(params, c.args);
  std::vector<Tensors> after(count);
  for (int64_t step = 0; step < 100; ++step) {
    for (size_t i = 0; i < count; ++i) params[i].set_grad(gradients[i].select(0, step));
    opt->step();
    if (how == Memory::resumed && step % 30 == 10) {
      Made next = make(params, c.args);
      next->load_state_dict(opt->state_dict());
      opt = std::move(next);
    }
    if (step == 0 || step == 9 || step == 99)
      for (size_t i = 0; i < count; ++i) after[i].push_back(params[i].detach().clone());
  }
  // Every step rounds: a hundred steps agree to 16 epsilons. Muon's polynomial magnifies what it is given.
  const double epsilons = c.op == "Muon" ? 128 : 16;
  for (size_t i = 0; i < count; ++i) {
    const std::string wrong = oracle::difference(stack(after[i]), oracle::stored(c.outputs[i].data), epsilons);
    if (!wrong.empty()) return "parameter " + std::to_string(i) + ": " + wrong;
  }
  return "";
}

class OptimOracle : public testing::TestWithParam<std::string> {};

TEST_P(OptimOracle, HundredStepsEqualPyTorch) {
  for (const Case& c : oracle::training().cases.at(GetParam()))
    for (const Device& device : devices())
      for (Memory how : {Memory::plain, Memory::strided, Memory::resumed})
        EXPECT_EQ(difference(c, how, device), "")
            << c.dtype << " " << c.label << " " << int(how) << " " << device.str();
}

double rate_for(const std::string& name) {
  static const std::map<std::string, double> rates = {{"SGD", 0.1},   {"Adagrad", 0.5}, {"Adadelta", 10},
                                                      {"Lion", 0.03}, {"LAMB", 0.02},   {"RMSprop", 0.01},
                                                      {"Muon", 0.02}, {"RAdam", 0.1}};
  const auto found = rates.find(name);
  return found == rates.end() ? 0.05 : found->second;
}

// Half the square of A w - b, whose least value is 0.
TEST_P(OptimOracle, SolvesAConvexProblem) {
  manual_seed(1);
  const Tensor a = eye(6) + 0.2 * randn({6, 6}), goal = randn({6, 2}), b = matmul(a, goal);
  Tensor w = ones({6, 2}).requires_grad_();
  const Made opt = makers().at(GetParam())({w}, Args("lr=" + std::to_string(rate_for(GetParam())) + ";weight_decay=0"));
  optim::CosineAnnealingLR schedule(*opt, {.t_max = 600});
  const auto loss = [&] { return mse_loss(matmul(a, w), b); };
  const double first = loss().item<double>();
  for (int i = 0; i < 600; ++i) {
    opt->zero_grad();
    loss().backward();
    opt->step();
    schedule.step();
  }
  EXPECT_LT(loss().item<double>(), 1e-3 * first);
}

TEST_P(OptimOracle, TrainsANetwork) {
  manual_seed(2);
  const Tensor x = randn({128, 3}), y = sin(x.sum(1, true));
  Tensors p = {randn({16, 3}) * 0.5, zeros({16}), randn({1, 16}) * 0.25, zeros({1})};
  for (Tensor& one : p) one.requires_grad_();
  const std::string weight_decay = ";weight_decay=0";
  const Made opt = makers().at(GetParam())(p, Args("lr=" + std::to_string(rate_for(GetParam())) + weight_decay));
  optim::CosineAnnealingLR schedule(*opt, {.t_max = 400});
  const auto loss = [&] { return mse_loss(linear(tanh(linear(x, p[0], p[1])), p[2], p[3]), y); };
  const double first = loss().item<double>();
  for (int i = 0; i < 400; ++i) {
    opt->step([&] {
      opt->zero_grad();
      const Tensor l = loss();
      l.backward();
      return l;
    });
    schedule.step();
  }
  EXPECT_LT(loss().item<double>(), 0.2 * first);
}

// Halves keep f32 state, and come out as f32 does, to their precision.
TEST_P(OptimOracle, TakesHalves) {
  manual_seed(3);
  const Tensor start = randn({4, 6}), slope = randn({4, 6});
  for (DType t : {f16, bf16}) {
    Tensor half = start.to(t).clone().requires_grad_(), full = half.detach().to(f32).requires_grad_();
    const Made a = makers().at(GetParam())({half}, Args("lr=0.05")),
               b = makers().at(GetParam())({full}, Args("lr=0.05"));
    for (int i = 0; i < 5; ++i) {
      half.set_grad(slope.to(t));
      full.set_grad(half.grad()->to(f32));
      a->step();
      b->step();
    }
    const double most = max(abs(half.detach().to(f32) - full.detach())).item<double>();
    EXPECT_LT(most, t == f16 ? 0.01 : 0.08) << name(t);
    EXPECT_EQ(half.dtype(), t);
    const optim::StateDict saved = a->state_dict();
    for (const auto& [key, value] : saved.state.at(0)) EXPECT_TRUE(value.dim() == 0 || value.dtype() == f32) << key;
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, make] : makers()) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, OptimOracle, testing::ValuesIn(names()), [](const auto& one) { return one.param; });

Tensor rosenbrock(const Tensor& x) {
  const Tensor left = x.narrow(0, 0, x.size(0) - 1), right = x.narrow(0, 1, x.size(0) - 1);
  return (100 * square(right - square(left)) + square(1 - left)).sum();
}

optim::Optimizer::Closure closure_of(optim::Optimizer& opt, const Tensor& x) {
  return [&opt, x] {
    opt.zero_grad();
    const Tensor loss = rosenbrock(x);
    loss.backward();
    return loss;
  };
}

// Curvature divides differences of gradients: each step multiplies the rounding errors of the last, which depend on how
// the compiler contracts products. The first five steps (twenty iterations) agree to 2e-12.
// An update written by hand passes both at once.
TEST(OptimState, ReferencesToSlotsStayValidWhileOthersAreMade) {
  optim::State state;
  const Tensor p = ones({3});
  const auto both = [](const Tensor& a, const Tensor& b) { return a.sum().item<double>() + b.sum().item<double>(); };
  EXPECT_EQ(both(state.at(0, p, 1), state.at(1, p, 2)), 9);
  Tensor& first = state.at(0, p);
  for (size_t i = 2; i < 16; ++i) (void)state.at(i, p);
  EXPECT_EQ(&first, &state.at(0, p));
  EXPECT_THROW((void)state.at(16, p), Error);
}

TEST(OptimLBFGS, FollowsPyTorch) {
  for (const Case& c : oracle::training().cases.at("LBFGS")) {
    const optim::LBFGS::Options options{.lr = c.args.number("lr", 1),
                                        .max_iter = int(c.args.whole("max_iter", 20)),
                                        .history_size = int(c.args.whole("history_size", 100)),
                                        .strong_wolfe = c.args.flag("strong_wolfe")};
    Tensor x = oracle::operand(c, 0).requires_grad_();
    auto opt = std::make_unique<optim::LBFGS>(optim::Params{x}, options);
    Tensors after;
    for (int i = 0; i < 5; ++i) {
      opt->step(closure_of(*opt, x));
      after.push_back(x.detach().clone());
      auto next = std::make_unique<optim::LBFGS>(optim::Params{x}, options);
      next->load_state_dict(opt->state_dict());
      opt = std::move(next);
    }
    const Tensor want = oracle::stored(c.outputs[0].data).narrow(0, 0, 5);
    EXPECT_EQ(oracle::difference(stack(after), want, 1e4), "") << c.label;
  }
}

TEST(OptimLBFGS, FindsTheMinimum) {
  for (DType t : {f32, f64}) {
    Tensor x = (zeros({6}, {.dtype = t}) - 0.5).requires_grad_();
    optim::LBFGS opt({x}, {.max_iter = 100, .strong_wolfe = true});
    for (int i = 0; i < 5; ++i) opt.step(closure_of(opt, x));
    EXPECT_TRUE(allclose(x.detach(), ones_like(x), {.atol = t == f32 ? 1e-2 : 1e-6})) << name(t);
  }
  Tensor x = zeros({2}).requires_grad_();
  optim::LBFGS opt({x});
  EXPECT_THROW(opt.step(), Error);
  Tensor y = zeros({2}).requires_grad_();
  EXPECT_THROW(optim::LBFGS({{.params = {x}}, {.params = {y}}}), Error);
}

TEST(OptimGroups, ResolveTheirSettings) {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_(), c = ones({2}).requires_grad_();
  optim::AdamW opt({{.params = {a}, .lr = 1e-2}, {.params = {b}, .weight_decay = 0.0, .betas = optim::Betas{0.5, 0.6}}},
                   {.lr = 1e-3});
  opt.add_param_group({.params = {c}, .eps = 1e-3});
  const auto& groups = opt.param_groups();
  EXPECT_EQ(groups[0].lr, 1e-2);
  EXPECT_EQ(groups[1].lr, 1e-3);
  EXPECT_EQ(groups[1].weight_decay, 0);
  EXPECT_EQ(groups[0].weight_decay, 1e-2);
  EXPECT_EQ(groups[1].betas, (optim::Betas{0.5, 0.6}));
  EXPECT_EQ(groups[2].eps, 1e-3);
  opt.param_groups()[0].lr = 0.5;
  EXPECT_EQ(opt.lr(), 0.5);
  opt.set_lr(0.25);
  EXPECT_EQ(groups[2].lr, 0.25);
  a.set_grad(ones({2}));  // b and c have no gradient: they stay
  opt.step();
  EXPECT_NE(a.detach().to_vector<float>()[0], 1);
  EXPECT_EQ(b.detach().to_vector<float>()[0], 1);
  opt.zero_grad(false);
  EXPECT_EQ(a.grad()->to_vector<float>(), (std::vector<float>{0, 0}));
  opt.zero_grad();
  EXPECT_FALSE(a.grad());
}

TEST(OptimState, HasPyTorchsFormAndIsCheckedBeforeLoading) {
  Tensor w = ones({2, 3}).requires_grad_(), b = ones({3}).requires_grad_();
  optim::Adam opt({{.params = {w}}, {.params = {b}, .lr = 0.5}}, {.amsgrad = true});
  w.set_grad(ones({2, 3}));
  opt.step();
  optim::StateDict saved = opt.state_dict();
  ASSERT_EQ(saved.state.size(), 1u);
  EXPECT_EQ(saved.state[0]["step"].item<float>(), 1);
  EXPECT_EQ(saved.state[0]["exp_avg"].shape(), w.shape());
  EXPECT_TRUE(saved.state[0].contains("max_exp_avg_sq"));
  EXPECT_EQ(saved.param_groups[1].params, (std::vector<int64_t>{1}));
  EXPECT_EQ(saved.param_groups[1].options["lr"], (std::vector<double>{0.5}));
  EXPECT_EQ(saved.param_groups[0].options["betas"], (std::vector<double>{0.9, 0.999}));
  EXPECT_EQ(saved.param_groups[0].options["amsgrad"], (std::vector<double>{1}));

  optim::Adam other({{.params = {w}}, {.params = {b}}});
  saved.state[0]["exp_avg"] = zeros({3, 2});
  EXPECT_THROW(other.load_state_dict(saved), Error);
  EXPECT_EQ(other.param_groups()[1].lr, 1e-3);
  other.load_state_dict(opt.state_dict());
  EXPECT_EQ(other.param_groups()[1].lr, 0.5);
  EXPECT_TRUE(other.state_dict().state[0].contains("max_exp_avg_sq"));
  optim::Adam single({w});
  EXPECT_THROW(single.load_state_dict(opt.state_dict()), Error);
  optim::Adam wide({{.params = {w, b}}, {.params = {ones({1})}}});
  EXPECT_THROW(wide.load_state_dict(opt.state_dict()), Error);
}

// No more and no less than PyTorch's, under its names: what is kept per parameter is memory.
TEST(OptimState, KeepsWhatTheRuleNeeds) {
  using Names = std::vector<std::string>;
  const auto kept = [](auto make, const Shape& shape) {
    Tensor p = ones(shape).requires_grad_();
    auto opt = make(Tensors{p});
    for (int i = 0; i < 2; ++i) {
      p.set_grad(ones(shape));
      opt.step();
    }
    Names names;
    const optim::StateDict saved = opt.state_dict();
    for (const auto& [name, value] : saved.state.at(0)) names.push_back(name);
    return names;
  };
  const Shape any{3};
  EXPECT_EQ(kept([](const Tensors& p) { return optim::SGD(p, {.lr = 0.1, .momentum = 0.9}); }, any),
            Names{"momentum_buffer"});
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adam(p); }, any), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::AdamW(p); }, any), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adam(p, {.amsgrad = true}); }, any),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adamax(p); }, any), (Names{"exp_avg", "exp_inf", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::NAdam(p); }, any),
            (Names{"exp_avg", "exp_avg_sq", "mu_product", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::RAdam(p); }, any), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::RMSprop(p); }, any), (Names{"square_avg", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::RMSprop(p, {.momentum = 0.9, .centered = true}); }, any),
            (Names{"grad_avg", "momentum_buffer", "square_avg", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adagrad(p); }, any), (Names{"step", "sum"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adadelta(p); }, any), (Names{"acc_delta", "square_avg", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Rprop(p); }, any), (Names{"prev", "step", "step_size"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Lion(p); }, any), Names{"exp_avg"});
  EXPECT_EQ(kept([](const Tensors& p) { return optim::LAMB(p); }, any), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Muon(p); }, {3, 2}), (Names{"momentum_buffer", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Muon(p); }, any), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adafactor(p); }, {3, 2}), (Names{"col_var", "row_var", "step"}));
  EXPECT_EQ(kept([](const Tensors& p) { return optim::Adafactor(p); }, any), (Names{"step", "variance"}));
  Tensor p = ones(any).requires_grad_();
  const auto options = optim::SGD({p}, {.lr = 0.1}).state_dict().param_groups[0].options;
  EXPECT_FALSE(options.contains("betas"));
  EXPECT_FALSE(options.contains("eps"));
}

TEST(OptimMuon, UpdatesVectorsAndMarkedGroupsByAdamW) {
  const Tensor start = randn({4, 3}), g = randn({4, 3});
  Tensor matrix = start.clone().requires_grad_(), table = start.clone().requires_grad_(),
         vector = ones({4}).requires_grad_();
  Tensor same = start.clone().requires_grad_(), filters = randn({4, 2, 3, 3}).requires_grad_();
  optim::Muon muon({{.params = {matrix, vector, filters}}, {.params = {table}, .adamw = true}},
                   {.lr = 0.02, .weight_decay = 0.1, .adamw_lr = 1e-3});
  optim::AdamW adam({same}, {.lr = 1e-3, .weight_decay = 0.1});
  for (Tensor* p : {&matrix, &table, &same}) p->set_grad(g);
  vector.set_grad(ones({4}));
  filters.set_grad(randn({4, 2, 3, 3}));
  muon.step();
  adam.step();
  EXPECT_TRUE(equal(table.detach(), same.detach()));
  EXPECT_FALSE(allclose(matrix.detach(), same.detach()));
  EXPECT_NEAR(vector.detach().to_vector<float>()[0], 1 - 1e-3 - 1e-4, 1e-6);
  EXPECT_TRUE(isfinite(filters.detach()).all().item<bool>());
}

// The switch to composed forms reaches optimizers: their rules then run as expressions of tensors, to the same result.
TEST(OptimForms, ComposedWhereFusedLoopsAreOff) {
  const auto trained = [](const auto& make, bool fused, int64_t& loops) {
    manual_seed(5);
    Tensor p = randn({37}).requires_grad_();
    const auto optimizer = make(optim::Params{p});
    use_fused_loops = fused;
    const Profiler profiler;
    for (int i = 0; i < 3; ++i) {
      p.set_grad(randn({37}));
      optimizer->step();
    }
    use_fused_loops = true;
    for (const ProfileRow& r : profiler.rows())
      if (r.name.starts_with("update_")) loops += r.calls;
    return p.detach();
  };
  const auto each = [&]<class O>(std::type_identity<O>, const char* name, typename O::Options options) {
    const auto make = [&](const optim::Params& p) { return std::make_unique<O>(p, options); };
    int64_t fused = 0, composed = 0;
    EXPECT_TRUE(allclose(trained(make, true, fused), trained(make, false, composed), {.rtol = 1e-5, .atol = 1e-6}))
        << name;
    EXPECT_EQ(fused, 3) << name;
    EXPECT_EQ(composed, 0) << name;
  };
  each(std::type_identity<optim::SGD>(), "SGD", {.lr = 0.01, .momentum = 0.9});
  each(std::type_identity<optim::AdamW>(), "AdamW", {.lr = 0.01});
  each(std::type_identity<optim::RMSprop>(), "RMSprop", {.lr = 0.01});
  each(std::type_identity<optim::Lion>(), "Lion", {.lr = 0.01});

  const auto own = [](bool fused) {
    const Tensor p = ones({5}), m = zeros({5});
    use_fused_loops = fused;
    const Profiler profiler;
    optim::fused_update(
        p, arange(5).to(f32), std::array{0.5},
        [](const auto& c, auto& x, const auto& d, auto& seen) {
          seen = seen + d;
          x = x - c[0] * seen;
        },
        m);
    use_fused_loops = true;
    const auto rows = profiler.rows();
    EXPECT_EQ(std::any_of(rows.begin(), rows.end(), [](auto& r) { return r.name == "update_fused_update"; }), fused);
    return cat({p, m});
  };
  EXPECT_TRUE(equal(own(true), own(false)));
}

// The same bits on any number of threads.
TEST(OptimThreads, DoNotChangeTheResult) {
  const int before = get_num_threads();
  Tensors results;
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    manual_seed(4);
    Tensor p = randn({100003}).requires_grad_();
    optim::AdamW opt({p});
    for (int i = 0; i < 3; ++i) {
      p.set_grad(randn({100003}));
      opt.step();
    }
    results.push_back(p.detach());
  }
  set_num_threads(before);
  EXPECT_TRUE(equal(results[0], results[1]));
}

TEST(OptimOwn, DerivesFromTheBase) {
  struct Signs : optim::Optimizer {
    Signs(optim::Params p, double lr) : Optimizer("Signs", std::move(p), {.lr = lr}, {"seen"}) {}
    void update(const Tensor& p, const Tensor& g, optim::State& state, const optim::ParamGroup& group) override {
      optim::fused_update(
          p, g, std::array{group.lr},
          [](const auto& c, auto& x, const auto& d, auto& seen) {
            seen = seen + d * d;
            x = x - c[0] * d;
          },
          state.at(0, p));
    }
  };
  Tensor w = zeros({3}).requires_grad_();
  Signs opt({w}, 0.5);
  w.set_grad(tensor({1.f, -2.f, 0.f}));
  const uint32_t version = w.version();
  opt.step();
  EXPECT_EQ(w.detach().to_vector<float>(), (std::vector<float>{-0.5, 1, 0}));
  EXPECT_EQ(opt.state_dict().state[0]["seen"].to_vector<float>(), (std::vector<float>{1, 4, 0}));
  EXPECT_GT(w.version(), version);
}

TEST(ErrorsOptim, SayWhatIsWrong) {
  Tensor w = ones({2}).requires_grad_();
  const auto error_of = [](auto f) {
    const auto r = attempt(f);
    return std::string(r ? "" : r.error().what());
  };
  using optim::SGD;
  EXPECT_EQ(error_of([] { SGD(Tensors{}, {.lr = 1}); }), "SGD: no parameters to optimize in group 0");
  EXPECT_EQ(error_of([] { SGD(std::vector<optim::Group>{}, {.lr = 1}); }), "SGD: no parameters to optimize");
  EXPECT_EQ(error_of([&] { SGD({w}, {.lr = std::numeric_limits<double>::quiet_NaN()}); }),
            "SGD: lr must be a finite number of at least 0, not nan");
  EXPECT_EQ(error_of([&] { SGD({w, w}, {.lr = 1}); }), "SGD: parameter 1 of group 0 appears twice");
  EXPECT_EQ(error_of([&] {
              SGD({{.params = {w}}, {.params = {w}}}, {.lr = 1});
            }),
            "SGD: parameter 0 of group 1 appears twice");
  EXPECT_EQ(error_of([&] { SGD({w * 2}, {.lr = 1}); }),
            "SGD: parameter 0 of group 0 is a computed tensor; only leaves can be optimized");
  EXPECT_EQ(error_of([&] { SGD({ones({2}, {.dtype = i64})}, {.lr = 1}); }),
            "SGD: parameter 0 of group 0 is of i64, not floating");
  EXPECT_THROW(SGD({Tensor()}, {.lr = 1}), Error);
  EXPECT_THROW(SGD({w}, {.lr = -1}), Error);
  EXPECT_THROW(SGD({w}, {.lr = 1, .nesterov = true}), Error);
  EXPECT_THROW(SGD({w}, {.lr = 1, .momentum = -1}), Error);
  EXPECT_THROW(optim::Adam({w}, {.betas = {1.0, 0.9}}), Error);
  EXPECT_THROW(optim::Adam({{.params = {w}, .weight_decay = -1.0}}), Error);
  EXPECT_THROW(optim::RMSprop({w}, {.alpha = 2}), Error);
  EXPECT_THROW(optim::Muon({w}, {.ns_steps = 0}), Error);
  SGD opt({w}, {.lr = 1});
  EXPECT_THROW(opt.set_lr(std::numeric_limits<double>::infinity()), Error);
  EXPECT_EQ(opt.lr(), 1);
}

TEST(OptimState, AHandMadeStateOfLBFGSIsChecked) {
  Tensor x = tensor<double>({1.0, 2.0, 3.0}).requires_grad_();
  optim::LBFGS opt({x}, {.lr = 0.1, .max_iter = 3});
  opt.step(closure_of(opt, x));
  const optim::StateDict good = opt.state_dict();
  const auto refused = [&](const std::string& key, const Tensor& value) {
    optim::StateDict bad = good;
    bad.param_groups[0].options["lr"] = {7};
    if (value.defined()) bad.state[0][key] = value;
    else bad.state[0].erase(key);
    const bool thrown = !attempt([&] { opt.load_state_dict(bad); });
    return thrown && opt.lr() == 0.1 && equal(opt.state_dict().state.at(0).at("d"), good.state.at(0).at("d"));
  };
  const Options wide{.dtype = f64};
  for (const auto& [key, saved] : good.state.at(0)) EXPECT_TRUE(refused(key, {})) << key;
  EXPECT_TRUE(refused("old_stps", zeros({40, 3}, wide)));
  EXPECT_TRUE(refused("old_dirs", zeros({2, 2}, wide)));
  EXPECT_TRUE(refused("old_dirs", zeros({3}, wide)));
  EXPECT_TRUE(refused("d", zeros({1}, wide)));
  EXPECT_TRUE(refused("prev_flat_grad", zeros({3, 1}, wide)));
  EXPECT_TRUE(refused("n_iter", tensor<double>({1.0, 2.0})));
  EXPECT_TRUE(refused("n_iter", tensor<double>(std::nan(""))));
  EXPECT_TRUE(refused("func_evals", tensor<int64_t>(-1)));
  opt.load_state_dict(good);
  opt.step(closure_of(opt, x));
  // A history longer than this optimizer keeps is shortened.
  optim::LBFGS brief({x}, {.lr = 0.1, .max_iter = 3, .history_size = 1});
  brief.load_state_dict(good);
  brief.step(closure_of(brief, x));
  EXPECT_EQ(brief.state_dict().state.at(0).at("old_dirs").size(0), 1);
}

TEST(OptimState, NumbersOfAParameterStayNumbers) {
  const Tensor w = ones({3}).requires_grad_();
  w.set_grad(ones({3}));
  const auto refuses = [&](optim::Optimizer& opt, const char* key) {
    opt.step();
    optim::StateDict bad = opt.state_dict();
    bad.state[0][key] = ones({3});
    return !attempt([&] { opt.load_state_dict(bad); });
  };
  optim::NAdam nadam({w});
  EXPECT_TRUE(refuses(nadam, "mu_product"));
  optim::ASGD asgd({w});
  EXPECT_TRUE(refuses(asgd, "eta"));
}

// The states stand beside the groups: a list changed by hand is refused before anything moves.
TEST(OptimGroups, ChangedByHand) {
  const auto made = [](const Tensor& w, const Tensor& v) {
    auto opt = std::make_unique<optim::SGD>(optim::Params{{.params = {w}}, {.params = {v}}},
                                            optim::SGDOptions{.lr = 1, .momentum = 0.9});
    w.set_grad(full({2}, 100.0)), v.set_grad(ones({2}));
    opt->step();
    return opt;
  };
  const std::vector<std::pair<const char*, std::function<void(std::vector<optim::ParamGroup>&)>>> changes = {
      {"erased", [](auto& groups) { groups.erase(groups.begin()); }},
      {"cleared", [](auto& groups) { groups.clear(); }},
      {"swapped", [](auto& groups) { std::swap(groups[0], groups[1]); }},
      {"added", [](auto& groups) { groups.push_back(groups[0]); }},
      {"replaced", [](auto& groups) { groups[0].params[0] = zeros({2}).requires_grad_(); }},
      {"longer", [](auto& groups) { groups[1].params.push_back(zeros({2}).requires_grad_()); }},
      {"shorter", [](auto& groups) { groups[1].params.clear(); }}};
  for (const auto& [name, change] : changes) {
    const Tensor w = ones({2}).requires_grad_(), v = ones({2}).requires_grad_();
    const Made opt = made(w, v);
    const optim::StateDict state = opt->state_dict();
    const Tensor before = v.detach().clone();
    change(opt->param_groups());
    for (const std::function<void()>& use : std::vector<std::function<void()>>{
             [&] { opt->step(); }, [&] { static_cast<void>(opt->state_dict()); }, [&] { opt->load_state_dict(state); },
             [&] { opt->add_param_group({.params = {ones({2}).requires_grad_()}}); }})
      EXPECT_FALSE(attempt([&] { use(); })) << name;
    EXPECT_TRUE(equal(v.detach(), before)) << name;
    if (opt->param_groups().empty()) {
      EXPECT_FALSE(attempt([&] { return opt->lr(); }));
    }
  }
}

TEST(OptimGroups, ALeafThatOverlapsItselfIsRefused) {
  const Tensor w = ones({3}).requires_grad_(), spread = ones({1}).expand({3}).requires_grad_();
  EXPECT_FALSE(attempt([&] { optim::Adam({w, spread}, {.lr = 1}); }));
  optim::Adam opt({w}, {.lr = 1});
  EXPECT_FALSE(attempt([&] { opt.add_param_group({.params = {spread}}); }));
  EXPECT_EQ(opt.param_groups().size(), 1u);
}

}  // namespace
}  // namespace volta::test

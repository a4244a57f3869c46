// fit against loops written by hand, its options, and what it leaves behind when something goes wrong.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <list>
#include <sstream>
#include <thread>

#include <volta/volta.h>

#include "toy_device.h"
#include "train_common.h"

namespace volta::test {
namespace {

StateDict snapshot(const ModelView& model) {
  StateDict copy;
  for (const auto& [name, value] : named_parameters(model)) copy.add(name, value.detach().clone());
  return copy;
}
bool unchanged(const ModelView& model, const StateDict& before) {
  for (const auto& [name, value] : named_parameters(model))
    if (!equal(value, before.at(name))) return false;
  return true;
}

std::string error_of(const std::function<void()>& f) {
  const auto r = attempt(f);
  return r ? "" : r.error().what();
}

TEST(TrainFit, EqualsTheLoopWrittenByHand) {
  const Pairs data = batches(7, 16, 1);
  Net by_hand = seeded_net();
  optim::AdamW own(parameters(by_hand), {.lr = 1e-2});
  optim::CosineAnnealingLR rate(own, {.t_max = 21});
  manual_seed(9);
  train(by_hand);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& [x, y] : data) {
      own.zero_grad();
      cross_entropy(by_hand(x), y).backward();
      nn::clip_grad_value_(parameters(by_hand), 0.5);
      nn::clip_grad_norm_(parameters(by_hand), 1.0);
      own.step();
      rate.step();
    }

  Net net = seeded_net();
  optim::AdamW optimizer(parameters(net), {.lr = 1e-2});
  optim::CosineAnnealingLR schedule(optimizer, {.t_max = 21});
  manual_seed(9);
  const History history = fit(net, data, optimizer,
                              {.epochs = 3,
                               .metrics = {metrics::Accuracy()},
                               .scheduler = schedule,
                               .schedule_every = "step",
                               .max_grad_norm = 1.0,
                               .clip_value = 0.5});
  EXPECT_TRUE(same(net, by_hand));
  EXPECT_EQ(schedule.last_epoch(), 21);  // the one with a name was stepped, not a copy
  EXPECT_EQ(optimizer.lr(), own.lr());
  ASSERT_EQ(history.epochs.size(), 3u);
  EXPECT_EQ(history.epochs[2].step, 21);
  EXPECT_LT(history.values("loss")[2], history.values("loss")[0]);
  EXPECT_GT(history.epochs[2].values.at("accuracy"), 0.5);
  EXPECT_FALSE(history.interrupted || history.stopped);
}

// Validation, progress and metrics change nothing of the training.
TEST(TrainFit, WatchingChangesNothing) {
  const Pairs data = batches(5, 8, 1), test = batches(3, 8, 2);
  Net plain = seeded_net(), watched = seeded_net();
  optim::SGD a(parameters(plain), {.lr = 0.1}), b(parameters(watched), {.lr = 0.1});
  manual_seed(4);
  fit(plain, data, a, {.epochs = 3});
  manual_seed(4);
  double seen = 0;
  const History history = fit(watched, data, b,
                              {.epochs = 3,
                               .validation = test,
                               .metrics = {metrics::Accuracy(), metrics::F1()},
                               .callbacks = {callbacks::lambda({.step_end = [&](FitState& s) { seen += s.loss(); }})}});
  EXPECT_TRUE(same(plain, watched));
  EXPECT_GT(seen, 0);
  const Dict<double> again = evaluate(watched, test, {.metrics = {metrics::Accuracy()}});
  EXPECT_EQ(again.at("loss"), history.epochs.back().values.at("val_loss"));
  EXPECT_EQ(again.at("accuracy"), history.epochs.back().values.at("val_accuracy"));
  EXPECT_TRUE(watched.drop.training);
  const std::string table = history.str();
  for (const char* part : {"epoch", "loss", "val_f1", "lr", "seconds"}) EXPECT_NE(table.find(part), std::string::npos);
  std::ostringstream out;
  out << history;
  EXPECT_EQ(out.str(), table);
}

TEST(TrainFit, AccumulationEqualsTheLargeBatch) {
  const auto linear = [] {
    manual_seed(5);
    nn::Linear model(4, 3);
    to(model, f64);
    return model;
  };
  Pairs small;
  for (const auto& [x, y] : batches(1, 40, 8)) {  // of unequal sizes, and a rest
    const Tensor wide = x.to(f64);
    for (const auto& [begin, end] : {std::pair{0, 10}, {10, 16}, {16, 26}, {26, 40}})
      small.emplace_back(wide.slice(0, begin, end), y.slice(0, begin, end));
  }
  const auto joined = [&](size_t begin, size_t end) {
    std::vector<Tensor> x, y;
    for (size_t i = begin; i < end; ++i) x.push_back(small[i].first), y.push_back(small[i].second);
    return std::pair(cat(x), cat(y));
  };
  const Pairs large = {joined(0, 3), joined(3, 4)};
  nn::Linear a = linear(), b = linear();
  optim::SGD sgd_a(parameters(a), {.lr = 0.5, .momentum = 0.9}), sgd_b(parameters(b), {.lr = 0.5, .momentum = 0.9});
  const History one = fit(a, large, sgd_a, {.epochs = 4});
  const History two = fit(b, small, sgd_b, {.epochs = 4, .accumulate = 3});
  EXPECT_EQ(two.epochs.back().step, one.epochs.back().step);
  EXPECT_TRUE(allclose(a.weight, b.weight, {.rtol = 1e-12, .atol = 1e-12}));
  EXPECT_TRUE(allclose(a.bias, b.bias, {.rtol = 1e-12, .atol = 1e-12}));
}

TEST(TrainFit, AnyRangeIsData) {
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 0.1});
  const std::list<std::tuple<Tensor, Tensor>> tuples = {{randn({4, 4}), tensor({0, 1, 2, 0})}};
  struct Sample {
    Tensor image, label;
  };
  std::vector<Sample> structs = {{randn({4, 4}), tensor({0, 1, 2, 0})}};
  EXPECT_EQ(fit(net, tuples, sgd).epochs.size(), 1u);
  EXPECT_EQ(fit(net, structs, sgd).epochs.size(), 1u);
  EXPECT_EQ(fit(net, batches(2, 4, 1), sgd, {.epochs = 2, .validation = batches(1, 4, 2)}).epochs.size(), 2u);
  const Batches none;
  EXPECT_FALSE(none);
  EXPECT_EQ(Batches(structs).size(), 1);
}

TEST(TrainFit, LoadersAreData) {
  manual_seed(1);
  const data::TensorDataset set(randn({50, 4}), randint(0, 3, {50}));
  const auto trained = [&](int workers) {
    data::DataLoader loader(set, {.batch_size = 8, .shuffle = true, .num_workers = workers, .seed = 5});
    EXPECT_EQ(Batches(loader).size(), 7);
    Net net = seeded_net();
    optim::SGD sgd(parameters(net), {.lr = 0.1});
    manual_seed(6);
    const History h = fit(net, loader, sgd, {.epochs = 3, .validation = data::DataLoader(set, {.batch_size = 25})});
    EXPECT_EQ(h.epochs.back().step, 21);
    int seen = 0;  // leaving in the middle is clean
    fit(net, loader, sgd, {.callbacks = {callbacks::lambda({.step_end = [&](FitState& s) { s.stop = ++seen == 2; }})}});
    EXPECT_EQ(seen, 2);
    return net;
  };
  EXPECT_TRUE(same(trained(0), trained(3)));
}

TEST(TrainFit, OwnLossAndRegression) {
  manual_seed(2);
  const Tensor x = randn({64, 3}), y = matmul(x, tensor<float>({{1}, {-2}, {0.5}}));
  nn::Linear model(3, 1);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  const History h = fit(model, Pairs{{x, y}}, sgd,
                        {.epochs = 100,
                         .loss = [](const Tensor& p, const Tensor& t) { return mse_loss(p, t); },
                         .metrics = {metrics::R2(), metrics::MAE()}});
  EXPECT_GT(h.epochs.back().values.at("r2"), 0.999);
}

TEST(TrainFit, SchedulersByEpochAndOnPlateau) {
  const Pairs data = batches(2, 8, 1);
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 1});
  optim::AnyScheduler shared = optim::ExponentialLR(sgd, {.gamma = 0.5});
  EXPECT_EQ(fit(net, data, sgd, {.epochs = 3, .scheduler = shared}).values("lr"), (std::vector{1.0, 0.5, 0.25}));
  EXPECT_EQ(shared.last_epoch(), 3);
  EXPECT_EQ(shared.get_last_lr()[0], 0.125);
  sgd.set_lr(1e-30);  // nothing improves
  fit(net, data, sgd,
      {.epochs = 4,
       .validation = data,
       .scheduler = optim::ReduceLROnPlateau(sgd, {.factor = 0.5, .patience = 1, .eps = 0})});
  EXPECT_LT(sgd.lr(), 1e-30);
  optim::ReduceLROnPlateau plateau(sgd);
  EXPECT_NE(error_of([&] { fit(net, data, sgd, {.scheduler = plateau, .schedule_every = "step"}); }), "");
}

// Training that a callback stops within an epoch goes on there when it is resumed; the epoch is counted once.
TEST(TrainFit, AnEpochCutShortDoesNotStepTheScheduler) {
  const Pairs data = batches(4, 8, 1);
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 1e-3});
  optim::ExponentialLR schedule(sgd, {.gamma = 0.5});
  const auto stop_after = [](int64_t steps) {
    return callbacks::lambda({.step_end = [steps](FitState& s) { s.stop = s.step == steps; }});
  };
  EXPECT_TRUE(fit(net, data, sgd, {.epochs = 3, .callbacks = {stop_after(6)}, .scheduler = schedule}).stopped);
  EXPECT_EQ(schedule.last_epoch(), 1);
  fit(net, data, sgd, {.epochs = 3, .callbacks = {stop_after(4)}, .scheduler = schedule});  // with the last batch
  EXPECT_EQ(schedule.last_epoch(), 2);
}

TEST(TrainFit, ExceptionsLeaveTheModelAsAfterTheLastStep) {
  const Pairs data = batches(6, 8, 1);
  for (const int64_t accumulate : {1, 2}) {
    Net net = seeded_net();
    optim::Adam adam(parameters(net), {.lr = 0.01});
    StateDict last;
    int calls = 0;
    const LossFunction loss = [&](const Tensor& p, const Tensor& t) {
      if (++calls == 4) throw std::runtime_error("no more");
      return cross_entropy(p, t);
    };
    EXPECT_THROW(fit(net, data, adam,
                     {.loss = loss,
                      .callbacks = {callbacks::lambda({.step_end = [&](FitState& s) { last = snapshot(s.model); }})},
                      .accumulate = accumulate}),
                 std::runtime_error);
    EXPECT_TRUE(unchanged(net, last));
    for (const Tensor& p : parameters(net)) EXPECT_FALSE(p.grad());
    calls = 100;
    EXPECT_EQ(fit(net, data, adam, {.loss = loss}).epochs.size(), 1u);
  }
}

TEST(TrainFit, NonFiniteLosses) {
  Pairs data = batches(6, 8, 1);
  data[3].first = full({8, 4}, std::nan(""));
  nn::Linear model(4, 3);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  const std::string why = error_of([&] { fit(model, data, sgd); });
  EXPECT_NE(why.find("batch 4 of epoch 0"), std::string::npos) << why;
  EXPECT_TRUE(isfinite(model.weight).all().item<bool>());
  const History skipped = fit(model, data, sgd, {.non_finite = "skip"});
  EXPECT_EQ(skipped.epochs[0].skipped, 1);
  EXPECT_EQ(skipped.epochs[0].step, 5);
  EXPECT_TRUE(std::isfinite(skipped.epochs[0].values.at("loss")));
  EXPECT_TRUE(isfinite(model.weight).all().item<bool>());
  // A finite loss whose gradient is not: sqrt at 0.
  const LossFunction steep = [](const Tensor& p, const Tensor&) { return (p * 0).sqrt().sum(); };
  const StateDict before = snapshot(model);
  EXPECT_EQ(fit(model, batches(2, 8, 1), sgd, {.loss = steep, .non_finite = "skip"}).epochs[0].skipped, 2);
  EXPECT_TRUE(unchanged(model, before));
  EXPECT_TRUE(std::isnan(fit(model, data, sgd, {.non_finite = "ignore"}).epochs[0].values.at("loss")));
  EXPECT_FALSE(isfinite(model.weight).all().item<bool>());
}

TEST(TrainFit, CtrlCEndsAfterTheStep) {
  const Pairs data = batches(6, 8, 1);
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 0.1});
  int64_t saved = -1, ended = 0;
  struct sigaction before {};
  before.sa_handler = [](int) {};  // in place of the program's end
  sigaction(SIGINT, &before, nullptr);
  const History history = fit(net, data, sgd,
                              {.epochs = 5,
                               .callbacks = {callbacks::lambda({.step_end =
                                                                    [&](FitState& s) {
                                                                      if (s.step == 4) std::raise(SIGINT);
                                                                    },
                                                                .end = [&](FitState& s) { ended = s.step; }}),
                                             callbacks::checkpoint([&](FitState& s) { saved = s.step; })},
                               .catch_interrupt = true});
  EXPECT_TRUE(history.interrupted);
  EXPECT_TRUE(history.epochs.empty());
  EXPECT_EQ(saved, 4);
  EXPECT_EQ(ended, 4);
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, before.sa_handler);
  EXPECT_FALSE(fit(net, data, sgd, {.catch_interrupt = true}).interrupted);
  EXPECT_FALSE(
      fit(net, data, sgd, {.callbacks = {callbacks::lambda({.step_end = [](FitState&) { std::raise(SIGINT); }})}})
          .interrupted);
  now.sa_handler = SIG_DFL;
  sigaction(SIGINT, &now, nullptr);
}

TEST(TrainFit, CtrlCThatIsIgnoredStaysSo) {
  const Pairs data = batches(6, 8, 1);
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 0.1});
  struct sigaction ignored {
  }, before{}, now{};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignored, &before);
  const CallbackPtr press = callbacks::lambda({.step_end = [](FitState&) { std::raise(SIGINT); }});
  EXPECT_FALSE(fit(net, data, sgd, {.callbacks = {press}, .catch_interrupt = true}).interrupted);
  sigaction(SIGINT, &before, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

// Ctrl-C in a group that the end of the epoch closes: data that is at its end has gone on to the next epoch.
TEST(TrainFit, CtrlCWithinTheLastGroupFinishesTheEpoch) {
  manual_seed(1);
  const data::TensorDataset set(randn({6, 4}), randint(0, 3, {6}));
  const auto run = [&](bool interrupt) {
    Net net = seeded_net();
    optim::SGD sgd(parameters(net), {.lr = 0.1});
    data::DataLoader loader(set, {.batch_size = 2, .seed = 1});
    int calls = 0;
    int64_t step = 0;
    FitOptions options{.epochs = 2,
                       .loss =
                           [&](const Tensor& p, const Tensor& t) {
                             if (++calls == 3 && interrupt) std::raise(SIGINT);
                             return cross_entropy(p, t);
                           },
                       .callbacks = {callbacks::lambda({.step_end = [&](FitState& s) { step = s.step; }})},
                       .accumulate = 2,
                       .catch_interrupt = true};
    const History history = fit(net, loader, sgd, options);
    if (interrupt) {
      EXPECT_TRUE(history.interrupted);
      EXPECT_EQ(history.epochs.size(), 1u);
      options.start_epoch = loader.state().epoch;
      options.start_step = step;
      fit(net, loader, sgd, options);
    }
    EXPECT_EQ(step, 4);
    return net;
  };
  EXPECT_TRUE(same(run(true), run(false)));
}

// Saved behind the last batch of an epoch, resumed before its end: there is no loss of that epoch to go by.
TEST(TrainFit, AnEpochOfWhichOnlyTheEndIsLeftIsNoPlateau) {
  manual_seed(3);
  nn::Linear net(4, 3);  // without dropout: the loss falls in each epoch
  optim::SGD sgd(parameters(net), {.lr = 0.05});
  const Tensor x = randn({8, 4}), y = randint(0, 3, {8});
  data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 4, .seed = 1});
  loader.set_state({.epoch = 0, .batch = 2, .seed = 1});
  optim::ReduceLROnPlateau plateau(sgd, {.factor = 0.5, .patience = 0});
  const History history = fit(net, loader, sgd,
                              {.epochs = 3,
                               .callbacks = {callbacks::early_stopping({.monitor = "loss", .patience = 1})},
                               .scheduler = plateau,
                               .start_epoch = 0,
                               .start_step = 2});
  ASSERT_EQ(history.epochs.size(), 3u);
  EXPECT_TRUE(std::isnan(history.epochs[0].values.at("loss")));
  EXPECT_LT(history.epochs[2].values.at("loss"), history.epochs[1].values.at("loss"));
  EXPECT_EQ(sgd.lr(), 0.05);
}

TEST(TrainFit, ResumedEqualsUninterrupted) {
  const Pairs data = batches(4, 8, 1);
  const auto options = [](int64_t epochs, int64_t from, const Schedule& schedule) {
    return FitOptions{.epochs = epochs, .scheduler = schedule, .start_epoch = from, .start_step = from * 4};
  };
  Net whole = seeded_net(), parts = seeded_net();
  optim::Adam a(parameters(whole), {.lr = 0.01}), b(parameters(parts), {.lr = 0.01});
  optim::StepLR rate_a(a, {.step_size = 2}), rate_b(b, {.step_size = 2});
  manual_seed(1);
  fit(whole, data, a, options(5, 0, rate_a));
  manual_seed(1);
  fit(parts, data, b, options(2, 0, rate_b));
  const History rest = fit(parts, data, b, options(5, 2, rate_b));
  EXPECT_TRUE(same(whole, parts));
  ASSERT_EQ(rest.epochs.size(), 3u);
  EXPECT_EQ(rest.epochs[0].epoch, 2);
  EXPECT_EQ(rest.epochs[2].step, 20);
  EXPECT_TRUE(fit(parts, data, b, {.epochs = 3, .start_epoch = 3}).epochs.empty());
}

// Killed after any step and resumed from the checkpoint of that step, within an epoch or at its end.
TEST(TrainFit, ResumedFromACheckpointEqualsUninterrupted) {
  manual_seed(1);
  const data::TensorDataset set(randn({40, 4}), randint(0, 3, {40}));
  const std::string path =
      (std::filesystem::temp_directory_path() / ("volta_fit_" + std::to_string(::getpid()))).string();
  const auto run = [&](int64_t kill_at, bool resume, std::optional<DType> half) {
    Net net = seeded_net();
    optim::Adam adam(parameters(net), {.lr = 0.01});
    GradScaler scaler({.init_scale = 0x1p30, .growth_interval = 3, .enabled = half == f16});
    optim::StepLR rate(adam, {.step_size = 1, .gamma = 0.5});
    data::DataLoader loader(set, {.batch_size = 8, .shuffle = true, .seed = 5});
    manual_seed(6);
    Checkpoint from;
    if (resume) {
      from = load_checkpoint(path);
      load_state_dict(net, from.model);
      adam.load_state_dict(from.optimizer);
      rate.load_state_dict(from.scheduler);
      if (!from.scaler.empty()) scaler.load_state_dict(from.scaler);
      default_generator().set_state(from.generator);
      loader.set_state(from.loader);
    }
    const auto save = [&](FitState& s) {
      save_checkpoint(path, {.model = state_dict(net),
                             .optimizer = adam.state_dict(),
                             .scheduler = rate.state_dict(),
                             .generator = default_generator().state(),
                             .loader = loader.state(),
                             .step = s.step,
                             .scaler = scaler.state_dict()});
    };
    const auto kill = [&](FitState& s) {
      if (s.step == kill_at) throw std::runtime_error("killed");
    };
    try {
      fit(net, loader, adam,
          {.epochs = 3,
           .callbacks = {callbacks::checkpoint(save, {.unit = "step"}), callbacks::lambda({.step_end = kill})},
           .scheduler = rate,
           .autocast = half,
           .scaler = &scaler,
           .start_epoch = from.loader.epoch,
           .start_step = from.step});
    } catch (const std::runtime_error&) {}
    return net;
  };
  for (const std::optional<DType> half : {std::optional<DType>(), std::optional(f16)}) {
    const Net whole = run(-1, false, half);
    for (int64_t step = 1; step <= 15; ++step) {
      (void)run(step, false, half);
      EXPECT_TRUE(same(run(-1, true, half), whole)) << "killed after step " << step;
    }
  }
  std::filesystem::remove(path);
}

TEST(TrainFit, MovesToTheDevice) {
  const Pairs data = batches(3, 8, 1);
  nn::Linear model(4, 3);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  const History h = fit(model, data, sgd,
                        {.epochs = 2, .validation = data, .metrics = {metrics::Accuracy()}, .device = toy_device()});
  EXPECT_EQ(model.weight.device(), toy_device());
  EXPECT_TRUE(std::isfinite(h.epochs.back().values.at("val_accuracy")));
  Pairs bad = batches(120, 2, 1);
  bad[10].first = full({2, 4}, std::nan(""));
  EXPECT_NE(error_of([&] { fit(model, bad, sgd, {.device = toy_device()}); }), "");
}

TEST(TrainFit, BadArguments) {
  const Pairs data = batches(2, 8, 1);
  Net net = seeded_net();
  optim::SGD sgd(parameters(net), {.lr = 0.1});
  const StateDict before = snapshot(net);
  const auto why = [&](FitOptions options) { return error_of([&] { fit(net, data, sgd, options); }); };
  EXPECT_NE(why({.epochs = -1}), "");
  EXPECT_NE(why({.max_grad_norm = 0.0}), "");
  EXPECT_NE(why({.max_grad_norm = std::nan("")}), "");
  EXPECT_NE(why({.clip_value = -1.0}), "");
  EXPECT_NE(why({.accumulate = 0}), "");
  EXPECT_NE(why({.non_finite = "explode"}).find("error, skip, ignore"), std::string::npos);
  EXPECT_NE(why({.schedule_every = "day"}), "");
  EXPECT_NE(why({.autocast = f64}).find("bf16 or f16, not f64"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)evaluate(net, data, {.autocast = i32}); }), "");
  EXPECT_NE(why({.callbacks = {nullptr}}), "");
  EXPECT_NE(why({.metrics = {metrics::Accuracy(), metrics::Accuracy()}}).find("accuracy"), std::string::npos);
  EXPECT_NE(why({.loss = [](const Tensor& p, const Tensor&) { return p; }}).find("one number"), std::string::npos);
  EXPECT_NE(error_of([&] { fit(net, Pairs{}, sgd); }).find("no batch"), std::string::npos);
  EXPECT_NE(error_of([&] { fit(net, Batches(), sgd); }), "");
  EXPECT_NE(error_of([&] { fit(net, Pairs{{Tensor(), Tensor()}}, sgd); }), "");
  EXPECT_NE(error_of([&] { (void)evaluate(net, Pairs{}); }), "");
  struct Deaf {
    nn::Linear l{2, 2};
  } deaf;
  EXPECT_NE(error_of([&] { fit(deaf, data, sgd); }).find("call operator"), std::string::npos);
  EXPECT_NE(why({.loss = [](const Tensor&, const Tensor&) -> Tensor { throw std::bad_alloc(); }}).find("memory"),
            std::string::npos);
  EXPECT_TRUE(unchanged(net, before));
}

TEST(TrainFit, MemoryStaysFlat) {
  const Pairs data = batches(4, 8, 1);
  Net net = seeded_net();
  optim::Adam adam(parameters(net), {.lr = 0.01});
  const auto epochs = [&](int64_t n) {
    fit(net, data, adam, {.epochs = n, .validation = data, .metrics = {metrics::Accuracy()}});
  };
  epochs(5);
  const int64_t before = memory::stats().in_use;
  epochs(200);
  EXPECT_LE(memory::stats().in_use, before + 65536);
}

TEST(TrainThreads, ModelsAreTrainedSideBySide) {
  const Pairs data = batches(4, 8, 1);
  const auto trained = [&] {
    nn::Linear model(4, 3);
    model.weight.detach().fill_(0.1);
    model.bias.detach().fill_(0);
    optim::SGD sgd(parameters(model), {.lr = 0.1});
    fit(model, data, sgd, {.epochs = 10, .metrics = {metrics::Accuracy()}, .catch_interrupt = true});
    return model.weight.detach().clone();
  };
  const Tensor want = trained();
  std::vector<Tensor> got(4);
  std::vector<std::thread> threads;
  for (Tensor& g : got) threads.emplace_back([&] { g = trained(); });
  for (std::thread& t : threads) t.join();
  for (const Tensor& g : got) EXPECT_TRUE(equal(g, want));
}

}  // namespace
}  // namespace volta::test

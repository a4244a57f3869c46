// Callbacks of fit: when they are told of what, what they write, how they stop the training.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <sys/ioctl.h>

#include <volta/volta.h>

#include "taken.h"

namespace volta::test {
namespace {

using Pairs = std::vector<std::pair<Tensor, Tensor>>;

class TrainCallbacks : public ::testing::Test {
 protected:
  TrainCallbacks() {
    manual_seed(1);
    for (int i = 0; i < 4; ++i) data.emplace_back(randn({8, 4}), randint(0, 3, {8}));
    folder = std::filesystem::temp_directory_path() / ("volta_callbacks_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  ~TrainCallbacks() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  static std::string read(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> list;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) list.push_back(line);
    return list;
  }
  History run(const FitOptions& options) { return fit(model, data, sgd, options); }

  Pairs data;
  nn::Linear model{4, 3};
  optim::SGD sgd{parameters(model), {.lr = 0.1}};
  std::filesystem::path folder;
};

TEST_F(TrainCallbacks, AreToldInOrder) {
  std::string order;
  const auto note = [&](char c) { return [&order, c](FitState&) { order += c; }; };
  run({.epochs = 2, .callbacks = {callbacks::lambda({note('b'), note('e'), note('s'), note('d'), note('x')})}});
  EXPECT_EQ(order, "bessssdessssdx");
  order.clear();
  run({.callbacks = {callbacks::lambda({.step_end = note('s')})}, .accumulate = 3});
  EXPECT_EQ(order, "ss");
}

TEST_F(TrainCallbacks, SeeTheState) {
  std::vector<int64_t> batches, steps;
  run({.epochs = 2, .metrics = {metrics::Accuracy()}, .callbacks = {callbacks::lambda({.step_end = [&](FitState& s) {
                                                        batches.push_back(s.batch);
                                                        steps.push_back(s.step);
                                                        EXPECT_EQ(s.batches, 4);
                                                        EXPECT_EQ(s.samples, 8 * s.batch);
                                                        EXPECT_TRUE(std::isfinite(s.loss()));
                                                        EXPECT_EQ(s.metrics().names(),
                                                                  std::vector<std::string>{"accuracy"});
                                                        EXPECT_TRUE(model.weight.grad());
                                                        EXPECT_EQ(&s.optimizer, &sgd);
                                                      }})}});
  EXPECT_EQ(batches, (std::vector<int64_t>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(steps.back(), 8);
}

TEST_F(TrainCallbacks, EmptyFunctionsAreErrors) {
  const auto refuses = [](auto&& f) {
    const auto r = attempt(f);
    return !r && r.error().kind() == Error::Kind::argument;
  };
  EXPECT_TRUE(refuses([] { Batches().each([](const Tensor&, const Tensor&) { return true; }); }));
  EXPECT_TRUE(refuses([&] { Batches(data).each({}); }));
  EXPECT_FALSE(Batches().size());
  EXPECT_TRUE(refuses([] { Schedule().step(1); }));
  Schedule one = optim::StepLR(sgd, {});
  const Schedule taken = volta::test::taken(one);
  EXPECT_TRUE(refuses([&] { one.step(1); }));
}

TEST_F(TrainCallbacks, StopTheTraining) {
  const History by_step =
      run({.epochs = 5, .callbacks = {callbacks::lambda({.step_end = [](FitState& s) { s.stop = s.step == 2; }})}});
  EXPECT_TRUE(by_step.stopped);
  ASSERT_EQ(by_step.epochs.size(), 1u);
  EXPECT_EQ(by_step.epochs[0].step, 2);
  const History by_epoch =
      run({.epochs = 5, .callbacks = {callbacks::lambda({.epoch_end = [](FitState& s) { s.stop = s.epoch == 1; }})}});
  EXPECT_EQ(by_epoch.epochs.size(), 2u);
}

// A metric that takes given values, one per epoch.
struct Given {
  std::vector<double> values;
  size_t epoch = 0;
  void update(const Tensor&, const Tensor&) {}
  double compute() const { return epoch == 0 ? 0 : values[std::min(epoch, values.size()) - 1]; }
  void reset() { ++epoch; }
  std::string name() const { return "given"; }
};

TEST_F(TrainCallbacks, EarlyStoppingCountsEpochsWithoutImprovement) {
  const auto epochs = [&](const std::vector<double>& values, callbacks::EarlyStoppingOptions options) {
    options.monitor = "given";
    return run({.epochs = 20, .metrics = {Given{values}}, .callbacks = {callbacks::early_stopping(options)}})
        .epochs.size();
  };
  EXPECT_EQ(epochs({5, 4, 3, 3, 3, 3, 3}, {.patience = 2}), 5u);
  EXPECT_EQ(epochs({5, 4, 3.95, 3.9, 3.8, 3}, {.patience = 2, .min_delta = 0.15}), 4u);
  EXPECT_EQ(epochs({5, 4, 3.95, 3.8, 3.7, 3.7}, {.patience = 2, .min_delta = 0.15}), 6u);
  EXPECT_EQ(epochs({1, 2, 3, 2, 2, 2}, {.patience = 3, .mode = "max"}), 6u);
  EXPECT_EQ(epochs({std::nan(""), 1, std::nan(""), std::nan("")}, {.patience = 2}), 4u);
  EXPECT_EQ(epochs({1, 1}, {.patience = 0}), 2u);
}

TEST_F(TrainCallbacks, EarlyStoppingRestoresTheBest) {
  std::vector<Tensor> weights;
  const auto keep =
      callbacks::lambda({.epoch_end = [&](FitState&) { weights.push_back(model.weight.detach().clone()); }});
  run({.epochs = 20,
       .metrics = {Given{{3, 1, 2, 2}}},
       .callbacks = {keep, callbacks::early_stopping({.monitor = "given", .patience = 2, .restore_best = true})}});
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_TRUE(equal(model.weight, weights[1]));
  EXPECT_FALSE(equal(model.weight, weights[3]));
}

TEST_F(TrainCallbacks, EarlyStoppingRefusesWhatIsNotThere) {
  const auto r = attempt([&] { run({.callbacks = {callbacks::early_stopping()}}); });
  ASSERT_FALSE(r);
  EXPECT_NE(std::string(r.error().what()).find("need .validation"), std::string::npos) << r.error().what();
  EXPECT_THROW(callbacks::early_stopping({.patience = -1}), Error);
  EXPECT_THROW(callbacks::early_stopping({.mode = "up"}), Error);
}

TEST_F(TrainCallbacks, CheckpointsEveryEpochOrStepAndAtTheEnd) {
  std::vector<int64_t> saved;
  const auto save = [&](FitState& s) { saved.push_back(s.step); };
  run({.epochs = 3, .callbacks = {callbacks::checkpoint(save)}});
  EXPECT_EQ(saved, (std::vector<int64_t>{4, 8, 12}));
  saved.clear();
  run({.epochs = 3, .callbacks = {callbacks::checkpoint(save, {.every = 2})}});
  EXPECT_EQ(saved, (std::vector<int64_t>{8, 12}));
  saved.clear();
  run({.epochs = 2, .callbacks = {callbacks::checkpoint(save, {.every = 3, .unit = "step"})}});
  EXPECT_EQ(saved, (std::vector<int64_t>{3, 6, 8}));
  EXPECT_THROW(callbacks::checkpoint({}), Error);
  EXPECT_THROW(callbacks::checkpoint(save, {.every = 0}), Error);
}

TEST_F(TrainCallbacks, CsvHasARowPerEpoch) {
  struct Odd : Given {
    std::string name() const { return "a,\"b\""; }
  };
  const FitOptions options = {
      .epochs = 2, .metrics = {Odd{{{1.5, std::nan("")}}}}, .callbacks = {callbacks::csv(path("a.csv"))}};
  const History h = run(options);
  const auto rows = lines(read(path("a.csv")));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], "epoch,step,loss,\"a,\"\"b\"\"\",lr,seconds");
  EXPECT_EQ(rows[1].substr(0, 4), "0,4,");
  EXPECT_EQ(std::stod(rows[1].substr(4)), h.epochs[0].values.at("loss"));  // reads back to the last bit
  EXPECT_NE(rows[2].find(",nan,"), std::string::npos);
  run({.epochs = 3,
       .metrics = {Odd{{{1.5}}}},
       .callbacks = {callbacks::csv(path("a.csv"), {.append = true})},
       .start_epoch = 2});
  EXPECT_EQ(lines(read(path("a.csv"))).size(), 4u);
  // Rows of other columns do not go below these.
  const std::string before = read(path("a.csv"));
  const auto other = attempt([&] { run({.callbacks = {callbacks::csv(path("a.csv"), {.append = true})}}); });
  ASSERT_FALSE(other);
  EXPECT_NE(std::string(other.error().what()).find("epoch,step,loss,lr,seconds"), std::string::npos);
  EXPECT_EQ(read(path("a.csv")), before);
  run({.callbacks = {callbacks::csv(path("a.csv"))}});
  EXPECT_EQ(lines(read(path("a.csv"))).size(), 2u);
}

TEST_F(TrainCallbacks, JsonLinesHaveAnObjectPerEpoch) {
  run({.epochs = 2, .metrics = {Given{{std::nan(""), 0.5}}}, .callbacks = {callbacks::json_lines(path("a.jsonl"))}});
  const auto rows = lines(read(path("a.jsonl")));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].substr(0, 32), "{\"epoch\": 0, \"step\": 4, \"loss\": ");
  EXPECT_NE(rows[0].find("\"given\": null"), std::string::npos);
  EXPECT_NE(rows[1].find("\"given\": 0.5"), std::string::npos);
  EXPECT_EQ(rows[1].back(), '}');
}

TEST_F(TrainCallbacks, RatesAreLogged) {
  run({.callbacks = {callbacks::lr_logger(path("lr.csv"), {.every = 2})},
       .scheduler = optim::ExponentialLR(sgd, {.gamma = 0.5}),
       .schedule_every = "step"});
  EXPECT_EQ(read(path("lr.csv")), "step,lr0\n0,0.1\n2,0.025\n4,0.00625\n");
  optim::SGD two({{.params = {model.weight}}, {.params = {model.bias}}}, {.lr = 0.1});
  EXPECT_FALSE(
      attempt([&] { fit(model, data, two, {.callbacks = {callbacks::lr_logger(path("lr.csv"), {.append = true})}}); }));
  EXPECT_EQ(lines(read(path("lr.csv"))).size(), 4u);
}

TEST_F(TrainCallbacks, FilesThatCannotBeWritten) {
  const auto why = [](auto make) {
    const auto r = attempt(make);
    return r ? std::string() : std::string(r.error().what());
  };
  EXPECT_NE(why([&] { return callbacks::csv(path("none/a.csv")); }).find("none/a.csv"), std::string::npos);
  EXPECT_NE(why([&] { return callbacks::json_lines(path("")); }), "");
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_NE(why([&] { run({.callbacks = {callbacks::csv("/dev/full")}}); }).find("space"), std::string::npos);
    EXPECT_NE(why([&] { run({.callbacks = {callbacks::json_lines("/dev/full")}}); }).find("space"), std::string::npos);
    EXPECT_NE(why([&] { run({.callbacks = {callbacks::lr_logger("/dev/full")}}); }).find("space"), std::string::npos);
  }
}

TEST_F(TrainCallbacks, ProgressOnATerminalAndElsewhere) {
  const auto shown = [&](std::optional<bool> terminal) {
    std::FILE* out = std::tmpfile();
    run({.epochs = 2,
         .metrics = {metrics::Accuracy()},
         .callbacks = {callbacks::progress({.out = out, .terminal = terminal, .interval = 0})}});
    std::string text(size_t(std::ftell(out)), ' ');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return text;
  };
  const std::string plain = shown({});
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_EQ(plain.find('\r'), std::string::npos);
  ASSERT_EQ(lines(plain).size(), 2u);
  EXPECT_EQ(lines(plain)[1].substr(0, 16), "epoch 2/2  loss ");
  ::unsetenv("NO_COLOR");
  const std::string terminal = shown(true);
  EXPECT_NE(terminal.find("\r\033[K"), std::string::npos);
  EXPECT_NE(terminal.find("] "), std::string::npos);
  EXPECT_NE(terminal.find("3/4"), std::string::npos);
  EXPECT_NE(terminal.find("eta"), std::string::npos);
  EXPECT_NE(terminal.find("\033[1m"), std::string::npos);
  EXPECT_EQ(terminal.back(), '\n');
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(shown(true).find("\033[1m"), std::string::npos);
  ::unsetenv("NO_COLOR");
  EXPECT_THROW(callbacks::progress({.interval = -1}), Error);
}

// What a terminal would break into two lines could not be cleared at the next update.
TEST_F(TrainCallbacks, ProgressStaysOnOneLine) {
  for (const unsigned short columns : {120, 80, 60, 20}) {
    const int ours = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(ours >= 0 && ::grantpt(ours) == 0 && ::unlockpt(ours) == 0);
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(::ioctl(ours, TIOCSWINSZ, &size), 0);
    std::FILE* const out = std::fopen(::ptsname(ours), "w");
    ASSERT_TRUE(out);
    run({.metrics = {metrics::Accuracy(), metrics::F1()},
         .callbacks = {callbacks::progress({.out = out, .terminal = true, .interval = 0})}});
    std::fclose(out);
    std::string text;
    char some[4096];
    for (ssize_t n; (n = ::read(ours, some, sizeof some)) > 0;)
      text.append(some, size_t(n));  // to the end: then it fails
    ::close(ours);
    const std::regex codes("\033\\[[0-9;]*[mK]");
    std::istringstream updates(std::regex_replace(text, codes, ""));
    int seen = 0;
    for (std::string line; std::getline(updates, line, '\r');)
      if (line.find("/4") != std::string::npos) {  // how long the rate is, the clock decides
        EXPECT_LT(line.size(), size_t(columns)) << line;
        if (columns == 120 || columns == 20) {
          EXPECT_EQ(line.find("] ") != std::string::npos, columns == 120) << line;
        }
        ++seen;
      }
    EXPECT_EQ(seen, 4) << text;
  }
}

}  // namespace
}  // namespace volta::test

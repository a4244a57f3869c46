// Checkpoints: equal to the bit, whole or not there, and rotated.
#include "io/checkpoint.h"

#include <cmath>
#include <csignal>

#include <sys/resource.h>
#include <sys/wait.h>

#include "io/safetensors.h"
#include "io_common.h"

namespace volta {
namespace {

Checkpoint sample() {
  nn::Linear net(3, 2);
  optim::Adam opt({{.params = {net.weight}, .lr = 0.1}, {.params = {net.bias}}}, {.lr = 1. / 3});
  net(randn({4, 3})).sum().backward();
  opt.step();
  Checkpoint c{.model = state_dict(net),
               .optimizer = opt.state_dict(),
               .scheduler = {{"last_epoch", 7}, {"best", INFINITY}, {"tenth", 0.1}, {"tiny", 5e-324}},
               .generator = {.seed = ~uint64_t(0), .offset = uint64_t(1) << 63},
               .loader = {.epoch = 3, .batch = 17, .seed = ~uint64_t(1)},
               .step = 123456789012,
               .values = {{"name", "a \"run\"\n"}, {"größe", ""}},
               .scaler = {{"scale", 65536}, {"_growth_tracker", 3}}};
  c.model.add("big", arange(0, 5));
  c.model.add("truth", tensor({true, false}));
  return c;
}

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.model.names(), b.model.names());
  for (const auto& [name, x] : a.model) EXPECT_TRUE(same(x, b.model.at(name))) << name;
  ASSERT_EQ(a.optimizer.state.size(), b.optimizer.state.size());
  for (const auto& [number, slots] : a.optimizer.state) {
    ASSERT_EQ(slots.size(), b.optimizer.state.at(number).size());
    for (const auto& [slot, x] : slots) EXPECT_TRUE(same(x, b.optimizer.state.at(number).at(slot))) << slot;
  }
  ASSERT_EQ(a.optimizer.param_groups.size(), b.optimizer.param_groups.size());
  for (size_t i = 0; i < a.optimizer.param_groups.size(); ++i) {
    EXPECT_EQ(a.optimizer.param_groups[i].options, b.optimizer.param_groups[i].options);
    EXPECT_EQ(a.optimizer.param_groups[i].params, b.optimizer.param_groups[i].params);
  }
  EXPECT_EQ(a.scheduler, b.scheduler);
  EXPECT_EQ(a.scaler, b.scaler);
  EXPECT_EQ(a.generator, b.generator);
  EXPECT_EQ(a.loader, b.loader);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.values.names(), b.values.names());
  for (const auto& [key, value] : a.values) EXPECT_EQ(value, b.values.at(key));
}

TEST(IoCheckpoint, RoundTripsToTheBit) {
  const Scratch dir;
  const Checkpoint c = sample();
  save_checkpoint(dir / "x", c);
  expect_equal(c, load_checkpoint(dir / "x"));
  save_checkpoint(dir / "y", {});
  expect_equal({}, load_checkpoint(dir / "y"));
  // Others read it too: it is a safetensors file.
  EXPECT_TRUE(same(read_safetensors(dir / "x").at("model.weight"), c.model.at("weight")));
  Checkpoint empty_slots;
  empty_slots.optimizer.state[5] = {};
  save_checkpoint(dir / "z", empty_slots);
  EXPECT_TRUE(load_checkpoint(dir / "z").optimizer.state.contains(5));
}

struct Net {
  nn::Linear fc1{4, 8};
  nn::Dropout drop{0.5};
  nn::Linear fc2{8, 1};
  Tensor operator()(const Tensor& x) const { return fc2(drop(relu(fc1(x)))); }
};

template <class Optimizer> struct Training {
  Net net;
  Optimizer opt{parameters(net), {.lr = 0.02}};
  optim::CosineAnnealingLR schedule{opt, {.t_max = 50}};
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      opt.step([&] {
        opt.zero_grad();
        Tensor loss = net(randn({8, 4})).pow(2).mean();
        loss.backward();
        return loss;
      });
      schedule.step();
    }
  }
  Checkpoint checkpoint() const {
    return {.model = state_dict(net),
            .optimizer = opt.state_dict(),
            .scheduler = schedule.state_dict(),
            .generator = default_generator().state()};
  }
  void restore(const Checkpoint& c) {
    load_state_dict(net, c.model);
    opt.load_state_dict(c.optimizer);
    schedule.load_state_dict(c.scheduler);
    default_generator().set_state(c.generator);
  }
};

template <class Optimizer> void resumes() {
  const Scratch dir;
  manual_seed(5);
  Training<Optimizer> whole;
  whole.steps(5);
  save_checkpoint(dir / "x", whole.checkpoint());
  whole.steps(5);
  const Generator::State after = default_generator().state();
  manual_seed(77);
  Training<Optimizer> again;
  again.steps(2);
  again.restore(load_checkpoint(dir / "x"));
  again.steps(5);
  EXPECT_EQ(default_generator().state(), after);
  for (const auto& [name, x] : state_dict(whole.net)) EXPECT_TRUE(same(x, state_dict(again.net).at(name))) << name;
}

TEST(IoCheckpoint, ResumesToTheBit) {
  resumes<optim::SGD>();
  resumes<optim::Adam>();
  resumes<optim::AdamW>();
  resumes<optim::RMSprop>();
  resumes<optim::NAdam>();
  resumes<optim::ASGD>();
  resumes<optim::Adafactor>();
  resumes<optim::Muon>();
  resumes<optim::Lion>();
  resumes<optim::LAMB>();
  resumes<optim::LBFGS>();
}

TEST(IoCheckpoint, EveryDamageIsNoticed) {
  const Scratch dir;
  save_checkpoint(
      dir / "x",
      {.model = {{"w", known_values({3}, f32)}}, .scheduler = {{"a", 0.1}}, .step = 3, .values = {{"k", "v"}}});
  const std::string whole = read_file(dir / "x");
  const auto read = [](const std::string& text) {
    return attempt([&] { return io::read_checkpoint(in_memory(text)); });
  };
  ASSERT_TRUE(read(whole));
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(read(whole.substr(0, n))) << n;
  const size_t end = whole.find_last_not_of(' ', whole.size() - 13);  // blanks between header and data are not summed
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at > end && at < whole.size() - 12) continue;
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = whole;
      bad[at] = char(bad[at] ^ 1 << bit);
      EXPECT_FALSE(read(bad)) << at << " " << bit << " " << bad.substr(at, 8);
    }
  }
}

std::string edited(const Checkpoint& c, const std::string& from, const std::string& to) {
  const Scratch dir;
  save_checkpoint(dir / "x", c);
  Metadata metadata = read_safetensors_metadata(dir / "x");
  for (const char* key : {"format", "version", "state"})
    if (const size_t at = metadata.at(key).find(from); at != std::string::npos)
      metadata.at(key).replace(at, from.size(), to);
  write_safetensors(dir / "y", read_safetensors(dir / "x"), metadata);
  return error_of([&] { return load_checkpoint(dir / "y"); });
}

TEST(IoCheckpoint, OtherFilesAreRefused) {
  const Scratch dir;
  save(nn::Linear(2, 2), dir / "net");
  expect_in("not a checkpoint", error_of([&] { return load_checkpoint(dir / "net"); }));
  expect_in("no such file", error_of([&] { return load_checkpoint(dir / "absent"); }));
  expect_in("version '2'", edited({}, "1", "2"));
  expect_in("checksum", edited({.step = 3}, "\"step\":3", "\"step\":4"));
  expect_in("UTF-8", error_of([&] { return save_checkpoint(dir / "x", {.values = {{"\xff", ""}}}), 0; }));
  expect_in("undefined", error_of([&] { return save_checkpoint(dir / "x", {.model = {{"a", Tensor()}}}), 0; }));
  EXPECT_EQ(dir.files(), 1u);
}

TEST(IoCheckpoint, FolderKeepsTheLastAndTheBest) {
  const Scratch dir;
  const CheckpointFolder folder(dir / "runs/1", {.keep_last = 2, .keep_best = 1});
  EXPECT_FALSE(folder.latest() || folder.best() || folder.load_latest());
  const double losses[] = {5, 1, 4, 3, NAN, 2};
  for (int64_t step = 0; step < 6; ++step) folder.save({.model = {{"x", full({2}, step)}}, .step = step}, losses[step]);
  std::vector<int64_t> steps;
  for (const auto& item : folder.list()) steps.push_back(item.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 4, 5}));
  EXPECT_EQ(load_checkpoint(*folder.latest()).step, 5);
  EXPECT_EQ(load_checkpoint(*folder.best()).step, 1);
  EXPECT_EQ(folder.load_latest()->model.at("x")[0].item<int>(), 5);
  const CheckpointFolder highest(dir / "runs/1", {.keep_last = 1, .keep_best = 1, .best = "max"});
  highest.save({.step = 6}, 3);
  EXPECT_EQ(highest.list().size(), 1u);
  highest.save({.step = 7});
  EXPECT_EQ(highest.list().size(), 2u);
  EXPECT_EQ(load_checkpoint(*highest.best()).step, 6);
  const CheckpointFolder lost(dir / "runs/3");
  lost.save({.step = 1}, NAN);
  EXPECT_FALSE(lost.best());  // not a number is no measure
  const CheckpointFolder all(dir / "runs/2", {.keep_last = 0});
  for (int64_t step = 0; step < 6; ++step) all.save({.step = step});
  EXPECT_EQ(all.list().size(), 6u);
  EXPECT_FALSE(attempt([&] { return CheckpointFolder(dir / "r", {.keep_last = -1}).list(); }));
  EXPECT_FALSE(attempt([&] { return CheckpointFolder(dir / "r", {.best = "least"}).list(); }));
  EXPECT_FALSE(attempt([&] { return all.save({.step = -1}); }));
  write_file(dir / "file", "");
  expect_in("cannot be made", error_of([&] { return CheckpointFolder(dir / "file").list(); }));
}

TEST(IoCheckpoint, DamagedOnesArePassedOver) {
  const Scratch dir;
  const CheckpointFolder folder(dir.path());
  const std::string first = folder.save({.model = {{"x", ones({100})}}, .step = 1});
  const std::string second = folder.save({.model = {{"x", ones({100})}}, .step = 2});
  std::string text = read_file(second);
  text.back() = char(text.back() ^ 1);
  write_file(second, text);
  EXPECT_EQ(folder.load_latest()->step, 1);
  text = read_file(first);
  text.back() = char(text.back() ^ 1);
  write_file(first, text);
  expect_in("checksum", error_of([&] { return folder.load_latest(); }));
  write_file(first, "nothing");
  EXPECT_EQ(folder.list().size(), 1u);
}

// A run that is begun anew in a folder saves lower steps than those that are there.
TEST(IoCheckpoint, WhatWasJustSavedStays) {
  const Scratch dir;
  const CheckpointFolder folder(dir.path(), {.keep_last = 3, .keep_best = 0});
  for (const int64_t step : {100, 200, 300}) folder.save({.step = step});
  write_file(dir / "step_best.ckpt", read_file(*folder.latest()));
  const std::string saved = folder.save({.step = 10});
  EXPECT_EQ(load_checkpoint(saved).step, 10);
  EXPECT_EQ(folder.list().size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(dir / "step_best.ckpt"));  // of another name: the user's
}

// To begin anew without a word would overwrite what there is.
TEST(IoCheckpoint, WhereNoneCanBeReadTheNewestSaysWhy) {
  const Scratch dir;
  const CheckpointFolder folder(dir.path());
  const std::string path = folder.save({.model = {{"x", ones({100})}}, .step = 10});
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() - 8));
  EXPECT_NE(error_of([&] { return folder.load_latest(); }), "");
  std::string newer = whole;
  newer[newer.find("\"version\":\"1\"") + 11] = '2';
  write_file(path, newer);
  expect_in("version '2'", error_of([&] { return folder.load_latest(); }));
  write_file(dir / "step_000000000011.ckpt", "nothing");
  expect_in("000000000011", error_of([&] { return folder.load_latest(); }));
  write_file(path, whole);
  EXPECT_EQ(folder.load_latest()->step, 10);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = dup(0);
  close(next);
  rlimit few = before;
  few.rlim_cur = rlim_t(next) + 1;  // the folder's own, and no more
  setrlimit(RLIMIT_NOFILE, &few);
  const std::string why = error_of([&] { return folder.load_latest(); });
  setrlimit(RLIMIT_NOFILE, &before);
  expect_in("cannot be opened", why);
}

// Killed at any moment, what is there can be read, and what was cut short is cleared away.
TEST(IoCheckpoint, KilledWhileSaving) {
  const Scratch dir;
  const CheckpointFolder folder(dir.path(), {.keep_last = 2});
  folder.save({.model = {{"x", full({50'000}, 0)}}, .step = 0});
  int64_t before = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t step = before + 1;; ++step) folder.save({.model = {{"x", full({50'000}, step)}}, .step = step});
    }
    usleep(useconds_t(3000 + 1777 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::optional<Checkpoint> last = folder.load_latest();
    ASSERT_TRUE(last);
    ASSERT_GE(last->step, before);
    EXPECT_TRUE(same(last->model.at("x"), full({50'000}, last->step)));
    for (const auto& item : folder.list()) EXPECT_TRUE(attempt([&] { return load_checkpoint(item.path); }));
    before = last->step;
  }
  folder.save({.step = before + 1});
  EXPECT_LE(dir.files(), 2u);
}

}  // namespace
}  // namespace volta

#include "training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "resuming.h"

namespace volta::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainFlags& f, const std::vector<Tensor>& params) {
  const std::string& o = f.optimizer;
  const double lr = learning_rate(f);
  if (o == "adamw")
    return std::make_unique<optim::AdamW>(params, optim::AdamWOptions{.lr = lr, .weight_decay = f.weight_decay});
  if (o == "adam")
    return std::make_unique<optim::Adam>(params, optim::AdamOptions{.lr = lr, .weight_decay = f.weight_decay / 100});
  if (o == "sgd")
    return std::make_unique<optim::SGD>(
        params, optim::SGDOptions{.lr = lr, .momentum = 0.9, .weight_decay = f.weight_decay / 100});
  if (o == "lion")
    return std::make_unique<optim::Lion>(params, optim::LionOptions{.lr = lr / 4, .weight_decay = f.weight_decay});
  refuse_training("there is no optimizer '" + o + "'");  // which check_words has seen to
}

std::optional<optim::AnyScheduler> make_schedule(const TrainFlags& f, optim::Optimizer& o, int64_t steps) {
  const double lr = o.param_groups()[0].lr;
  if (f.schedule == "constant") return {};
  if (f.schedule == "onecycle")
    return optim::OneCycleLR(o, {.max_lr = lr, .total_steps = steps + 1, .cycle_momentum = false});
  if (f.schedule == "cosine") return optim::CosineAnnealingLR(o, {.t_max = steps});
  if (f.schedule == "warmup-cosine")
    return optim::WarmupLR(o, {.steps = std::max<int64_t>(1, steps / 20)},
                           optim::CosineAnnealingLR(o, {.t_max = steps}));
  refuse_training("there is no schedule '" + f.schedule + "'");
}

// Nothing: all in f32.
std::optional<DType> half_of(const TrainFlags& f) {
  if (f.precision == "f32") return {};
  if (f.precision == "bf16") return bf16;
  return f16;
}

// Whatever the architecture insists on, then the data, then the flags.
Recipe combined(const TrainFlags& f, const NamedSet& set) {
  Recipe recipe = set.recipe;
  recipe.model = f.model;
  recipe.held_out = f.set.held_out, recipe.seed = f.seed;
  const auto from_data = [&](const std::string& name) { return set.recipe.sizes.contains(name) && name != "context"; };
  const std::map<std::string, int64_t>& sizes = architecture(f.model).sizes;
  std::string known;
  for (const auto& [name, value] : sizes)
    if (!from_data(name)) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [name, value] : f.sizes) {
    if (from_data(name)) {
      if (value == set.recipe.size(name)) continue;
      refuse_training("the size '" + name + "' follows from the data: it is " + std::to_string(set.recipe.size(name)) +
                      ", not " + std::to_string(value));
    }
    if (!sizes.contains(name))
      refuse_training("the model " + f.model + " has no size '" + name + "'" +
                      (known.empty() ? "; all of its sizes follow from the data" : "; known are " + known));
    recipe.sizes[name] = value;
  }
  return recipe;
}

SetFlags sized_for(const TrainFlags& f) {
  SetFlags set = f.set;
  set.seed = f.seed;
  const Architecture& a = architecture(f.model);
  for (auto [name, side] : {std::pair("height", &set.height), std::pair("width", &set.width)}) {
    const auto given = f.sizes.find(name);
    if (given == f.sizes.end()) continue;
    if (given->second < 1 || given->second > 1 << 14)
      refuse_training("the size '" + given->first + "' is " + std::to_string(given->second) +
                      "; it must be from 1 to 16384");
    *side = given->second;
  }
  const bool fixed = a.name == "lenet";
  if (fixed) set.height = set.width = 28;
  if (f.sizes.count("context")) set.context = f.sizes.at("context");
  if (set.context < 1)
    refuse_training("the size 'context' is " + std::to_string(set.context) + "; it must be at least 1");
  const std::string kind = kind_of_items(set.name);
  if (std::find(a.inputs.begin(), a.inputs.end(), kind) == a.inputs.end())
    refuse_training("the model " + a.name + " does not take " + kind + "s, which '" + set.name + "' is made of");
  return set;
}

// A run's folder: checkpoints while it trains, the model when it is done, and what was measured.
struct RunFolder {
  fs::path path;
  CheckpointFolder checkpoints;

  explicit RunFolder(const std::string& folder)
      : path(made(folder)), checkpoints((path / "checkpoints").string(), {.keep_last = 2, .keep_best = 0}) {}
  static fs::path made(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder / "checkpoints", error);
    if (error)
      throw Error(Error::Kind::io, "train", "cannot make the folder " + folder.string() + ": " + error.message());
    return folder;
  }
  // Removes the checkpoints and the rows of the logs of a run that was here before; other files are not ours.
  void start_anew(const fs::path& but) const {
    std::vector<fs::path> old;
    std::error_code error;
    for (fs::directory_iterator i(path / "checkpoints", error), end; !error && i != end; i.increment(error)) {
      const std::string name = i->path().filename().string();
      if (name.starts_with("step_") && name.size() > 10 && name.find_first_not_of("0123456789", 5) == name.size() - 5 &&
          name.ends_with(".ckpt") && i->path() != but)
        old.push_back(i->path());
    }
    for (size_t i = 0; i < old.size() && !error; ++i) fs::remove(old[i], error);
    for (const char* log : {"log.csv", "log.jsonl"})
      if (!error) fs::resize_file(path / log, 0, error);
    if (error)
      throw Error(Error::Kind::io, "train", "cannot remove the old run in " + path.string() + ": " + error.message());
  }
  std::string file(const char* name) const { return (path / name).string(); }
};

// Whether an epoch would end with a batch of one, by which batch norm cannot normalise: another item is left out in each.
bool leaves_one(int64_t items, int64_t batch, const ModelView& model) {
  if (items <= batch || items % batch != 1) return false;
  const auto buffers = named_buffers(model);
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const auto& buffer) { return buffer.first.ends_with("running_mean"); });
}

// What fit says in the words of its options, in those of the command line. To be called while e is handled.
[[noreturn]] void refuse_loss(const Error& e) {
  const std::string said = e.what();
  const size_t advice = said.find(": lower the learning rate");
  if (advice == std::string::npos) throw;
  throw Error(e.kind(), "train",
              said.substr(said.find(": ") + 2, advice - said.find(": ") - 2) +
                  ": lower --lr, or bound the gradients with --clip 1");
}

}  // namespace

double learning_rate(const TrainFlags& f) { return f.lr > 0 ? f.lr : f.optimizer == "sgd" ? 0.05 : 4e-3; }

void check_words(const TrainFlags& f) {
  const auto check = [](const std::string& what, const std::string& word, const std::vector<std::string>& words) {
    std::string known;
    for (const std::string& one : words) {
      if (one == word) return;
      known += (known.empty() ? "" : ", ") + one;
    }
    refuse_training("there is no " + what + " '" + word + "'; known are " + known);
  };
  check("optimizer", f.optimizer, {"adamw", "adam", "sgd", "lion"});
  check("schedule", f.schedule, {"onecycle", "cosine", "warmup-cosine", "constant"});
  check("precision", f.precision, {"f32", "bf16", "f16"});
  check_device(f.device);
  architecture(f.model), kind_of_items(f.set.name);
}

void check_device(const std::string& name) {
  if (!attempt([&] { return Device(name); }))
    throw Error(Error::Kind::argument, "device", "there is no device '" + name + "'; known are cpu, cuda, cuda:0 …");
}

LossFunction loss_of(const Recipe& recipe) {
  switch (recipe.task) {
    case Task::classify: return [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); };
    case Task::regress: return [](const Tensor& y, const Tensor& t) { return mse_loss(y, t); };
    case Task::language:
      return [](const Tensor& y, const Tensor& t) { return cross_entropy(y.flatten(0, 1), t.flatten()); };
  }
  return {};
}

std::vector<metrics::AnyMetric> metrics_of(const Recipe& recipe) {
  switch (recipe.task) {
    case Task::classify: return {metrics::Accuracy()};
    case Task::regress: return {metrics::MAE(), metrics::R2()};
    case Task::language: return {};
  }
  return {};
}

std::function<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&)> preparing(const Network& network) {
  return [&network](const Tensor& x, const Tensor& y) {
    return std::tuple(network.prepared(x.unsqueeze(0)).squeeze(0), y);
  };
}

TrainResult train_run(const TrainFlags& f, std::optional<Checkpoint> last, RunLock& lock, const Terminal& terminal) {
  const auto start = Clock::now();
  const std::optional<DType> half = half_of(f);
  manual_seed(f.seed);
  NamedSet set = open_set(sized_for(f));
  if (set.train.size() == 0) refuse_training("'" + f.set.name + "' is too small: it has no items to train on");
  if (set.test.size() == 0)
    refuse_training("'" + f.set.name + "' has no items left to test on: raise --held-out, now " +
                    nlohmann::json(f.set.held_out).dump() + ", or give more data");
  for (const std::string& column : set.left_out)
    std::fprintf(stderr, "volta: the column '%s' is left out: it holds words\n", printable(column).c_str());
  Network network(combined(f, set));
  const std::string counts =
      std::to_string(set.train.size()) + " training and " + std::to_string(set.test.size()) + " test";
  if (last) go_on_with(*last, f, counts, network.recipe);
  const Device device(f.device);
  to(network.module, device);

  Items items = set.train;
  if (f.augment && network.recipe.takes_images()) {
    const PerAxis size{network.recipe.size("height"), network.recipe.size("width")};
    items = data::map(
        items,
        data::on_first(data::random_crop(
            size, {.padding = std::max<int64_t>(1, network.recipe.size("height") / 14), .padding_mode = "replicate"})));
  }
  const auto prepare = preparing(network);
  data::DataLoader loader(data::map(items, prepare), {.batch_size = f.batch,
                                                      .shuffle = true,
                                                      .num_workers = f.workers,
                                                      .drop_last = leaves_one(items.size(), f.batch, network.module),
                                                      .seed = f.seed});
  data::DataLoader test(data::map(set.test, prepare), {.batch_size = 256, .num_workers = f.workers});

  const auto optimizer = make_optimizer(f, parameters(network.module));
  const int64_t steps = f.epochs * ((loader.size() + f.accumulate - 1) / f.accumulate);
  const std::optional<optim::AnyScheduler> schedule = make_schedule(f, *optimizer, steps);

  const RunFolder run(f.out);
  lock.take(f.out);
  GradScaler scaler({.enabled = half == f16});
  FitOptions options{.epochs = f.epochs,
                     .loss = loss_of(network.recipe),
                     .validation = test,
                     .metrics = metrics_of(network.recipe),
                     .autocast = half,
                     .scaler = &scaler};
  const auto patience = std::make_shared<Patience>(f.patience);
  if (last) {
    patience->take(*last);
    load_state_dict(network.module, last->model);
    optimizer->load_state_dict(last->optimizer);
    if (schedule) schedule->load_state_dict(last->scheduler);
    if (!last->scaler.empty()) scaler.load_state_dict(last->scaler);
    default_generator().set_state(last->generator);
    loader.set_state(last->loader);
    options.start_epoch = last->loader.epoch, options.start_step = last->step;
    for (const std::string& file : passed_over(f.out, *last))
      std::fprintf(stderr, "volta: %s is damaged: the checkpoint before it is taken\n", printable(file).c_str());
    if (!terminal.json) std::printf("resumed after %lld steps\n", static_cast<long long>(last->step));
    for (const char* log : {"log.csv", "log.jsonl"}) drop_epochs(run.file(log), options.start_epoch);
  } else if (f.resume && !terminal.json) {
    std::printf("nothing to resume in %s: starting anew\n", f.out.c_str());
  }
  if (schedule) options.scheduler = *schedule, options.schedule_every = "step";
  if (f.clip > 0) options.max_grad_norm = f.clip;
  options.accumulate = f.accumulate;
  options.device = device;
  options.catch_interrupt = true;

  // As late as this: a run that fails at once leaves alone what was there before it.
  bool old_is_there = !last;
  last.reset();  // its weights have been copied
  const auto found_good = [&](const std::string& saved) {
    if (std::exchange(old_is_there, false)) run.start_anew(saved);
  };
  const auto save = [&](FitState& state) {
    data::LoaderState place = loader.state();
    // Behind the step of an epoch's last, smaller group the loader stands in the next epoch, but this one has yet to end.
    const auto& ended = state.history.epochs;
    if (place.epoch == state.epoch + 1 && (ended.empty() || ended.back().epoch != state.epoch))
      place.epoch = state.epoch, place.batch = loader.size();
    Checkpoint checkpoint{.model = state_dict(network.module),
                          .optimizer = optimizer->state_dict(),
                          .scheduler = schedule ? schedule->state_dict() : optim::SchedulerState{},
                          .generator = default_generator().state(),
                          .loader = place,
                          .step = state.step,
                          .scaler = scaler.state_dict()};
    keep_settings(f, network.recipe, counts, checkpoint);
    if (f.patience > 0) patience->keep(checkpoint);
    try {
      found_good(run.checkpoints.save(checkpoint));
    } catch (const Error& e) {
      if (e.kind() != Error::Kind::io) throw;
      throw Error(Error::Kind::io, "train",
                  std::string(e.what()) + "; checkpoints before this one are whole: make room and go on with --resume");
    }
  };
  callbacks::CheckpointOptions every{};
  if (f.save_every > 0) every = {.every = f.save_every, .unit = "step"};
  if (f.patience > 0) options.callbacks.push_back(patience);  // first: checkpoints hold what it makes of the epoch
  int64_t steps_done = options.start_step;
  for (const CallbackPtr& one : {callbacks::checkpoint(save, every),
                                 callbacks::lambda({.epoch_end = [&](FitState&) { found_good(""); },
                                 .end = [&](FitState& state) { steps_done = state.step; }}),
                                 callbacks::csv(run.file("log.csv"), {.append = true}),
                                 callbacks::json_lines(run.file("log.jsonl"), {.append = true})})
    options.callbacks.push_back(one);
  if (f.tensorboard) options.callbacks.push_back(callbacks::tensorboard(run.file("events")));
  options.callbacks.push_back(callbacks::progress({.out = terminal.json ? stderr : stdout}));

  History history;
  try {
    history = fit(network.module, loader, *optimizer, options);
  } catch (const Error& e) {
    refuse_loss(e);
  }
  TrainResult result;
  result.interrupted = history.interrupted;
  result.parameters = num_parameters(network.module);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (result.interrupted && steps_done == 0) return result;  // weights that nothing was learned by are no result
  patience->restore(network.module);
  result.test =
      evaluate(network.module, test, {.loss = options.loss, .metrics = metrics_of(network.recipe), .device = device});
  result.file = run.file("model.safetensors");
  to(network.module, Device("cpu"));
  network.save(result.file);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace volta::app

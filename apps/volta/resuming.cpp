#include "resuming.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace volta::app {
namespace {

namespace fs = std::filesystem;

constexpr const char *flag_key = "flag.", *recipe_key = "recipe", *sizes_key = "sizes", *items_key = "items",
                     *best_key = "patience.best", *since_key = "patience.since", *weights_key = "best/";

std::string text_of(double value) { return nlohmann::json(value).dump(); }

bool is_utf8(std::string_view text) {
  for (size_t at = 0, n = 0; at < text.size(); at += n)
    if (n = utf8_length(text.substr(at)); n == 0) return false;
  return true;
}

std::string the_flag(const std::string& name) { return name == "model" ? "the model" : "--" + name; }

// A row's epoch; nothing for a head.
std::optional<int64_t> epoch_of(const std::string& row) {
  constexpr std::string_view start = "{\"epoch\": ";
  const size_t at = row.starts_with(start) ? start.size() : 0;
  if (at >= row.size() || row[at] < '0' || row[at] > '9') return {};
  return std::strtoll(row.c_str() + at, nullptr, 10);
}

}  // namespace

RunLock::~RunLock() {
  if (file_ >= 0) close(file_);
}

void RunLock::take(const std::string& run) {
  if (file_ >= 0) return;
  const std::string path = (fs::path(run) / "run.lock").string();
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw Error(Error::Kind::io, "train", "cannot open " + path + ": " + std::generic_category().message(errno));
  // Some file systems have no locks; there a run goes on without.
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse_training("another training writes to " + run + " and holds " + path +
                    ": wait for its end, or begin another with another --out");
}

Settings settings_of(const TrainFlags& f) {
  const auto if_any = [](auto value, const std::string& text) { return value > 0 ? text : std::string(); };
  return {{"model", f.model},
          {"epochs", std::to_string(f.epochs)},
          {"batch", std::to_string(f.batch)},
          {"optimizer", f.optimizer},
          {"lr", text_of(learning_rate(f))},
          {"schedule", f.schedule},
          {"weight-decay", text_of(f.weight_decay)},
          {"clip", if_any(f.clip, text_of(f.clip))},
          {"accumulate", std::to_string(f.accumulate)},
          {"seed", std::to_string(f.seed)},
          {"precision", f.precision},
          {"held-out", text_of(f.set.held_out)},
          {"patience", if_any(f.patience, std::to_string(f.patience))},
          {"no-augment", f.augment ? "" : "true"}};
}

std::optional<Checkpoint> last_checkpoint(const std::string& run) {
  const fs::path folder = fs::path(run) / "checkpoints";
  std::error_code error;
  if (!fs::is_directory(folder, error)) return {};
  try {
    return CheckpointFolder(folder.string()).load_latest();
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::io) throw;
    throw Error(Error::Kind::io, "train", std::string(e.what()) + "; to begin anew, leave out --resume");
  }
}

std::vector<std::string> passed_over(const std::string& run, const Checkpoint& last) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator i(fs::path(run) / "checkpoints", error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    long long step = 0;
    int length = 0;
    if (std::sscanf(name.c_str(), "step_%lld.ckpt%n", &step, &length) == 1 && size_t(length) == name.size() &&
        step > last.step)
      files.push_back(i->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void keep_settings(const TrainFlags& f, const Recipe& recipe, const std::string& items, Checkpoint& to) {
  for (const auto& [name, value] : settings_of(f)) to.values.add(flag_key + name, value);
  for (const auto& [name, value] : {std::pair("data", f.set.name), std::pair("target", f.set.target)})
    if (is_utf8(value)) to.values.add(std::string(flag_key) + name, value);
  to.values.add(recipe_key, recipe.json());
  to.values.add(items_key, items);
  to.values.add(sizes_key, nlohmann::json(f.sizes).dump());
}

Settings kept_settings(const Checkpoint& from) {
  Settings list;
  for (const auto& [name, value] : from.values)
    if (name.starts_with(flag_key)) list.emplace_back(name.substr(std::string(flag_key).size()), value);
  return list;
}

std::map<std::string, int64_t> kept_sizes(const Checkpoint& from) {
  if (!from.values.contains(sizes_key)) return {};
  const auto j = nlohmann::json::parse(from.values.at(sizes_key), nullptr, false);
  return j.is_object() ? j.get<std::map<std::string, int64_t>>() : std::map<std::string, int64_t>();
}

void check_setting(const TrainFlags& f, const std::string& name, const std::string& now, const std::string& before) {
  if (now == before || name == "epochs") return;  // which check_epochs looks at
  refuse_training(the_flag(name) + " is " + now + ", but " + (before.empty() ? "not set" : before) + " in the run in " +
                  f.out + ": leave it out to go on with that run, or begin another with another --out");
}

void check_epochs(const TrainFlags& f, const Checkpoint& last) {
  const int64_t done = last.loader.epoch;
  if (f.epochs < done)
    refuse_training("--epochs is " + std::to_string(f.epochs) + ", but the run in " + f.out + " has trained " +
                    std::to_string(done) + " epochs already");
  for (const auto& [name, before] : kept_settings(last))
    if (name == "epochs" && before != std::to_string(f.epochs) && f.schedule != "constant")
      refuse_training("--epochs is " + std::to_string(f.epochs) + ", but the schedule " + f.schedule +
                      " of the run in " + f.out + " is laid out for " + before +
                      ": leave it out to go on with that run, or begin another with another --out (a run with "
                      "--schedule constant can be made longer)");
}

void go_on_with(const Checkpoint& last, const TrainFlags& f, const std::string& items, Recipe& recipe) {
  if (!last.values.contains(recipe_key)) return;
  const Recipe before = Recipe::parse(last.values.at(recipe_key), f.out);
  const auto same = [&](const auto& now, const auto& then, const std::string& what) {
    if (now != then)
      refuse_training("'" + f.set.name + "' has other " + what + " than the data of the run in " + f.out);
  };
  same(recipe.task, before.task, "targets"), same(recipe.target, before.target, "columns to predict");
  same(recipe.labels, before.labels, "labels"), same(recipe.columns, before.columns, "columns");
  same(recipe.tokens, before.tokens, "characters");
  if (last.values.contains(items_key) && last.values.at(items_key) != items)
    refuse_training("'" + f.set.name + "' has " + items + " items, but " + last.values.at(items_key) +
                    " in the run in " + f.out + ": give the data of the run, or begin another with another --out");
  for (const auto& [name, value] : before.sizes)
    if (recipe.sizes.contains(name) && recipe.size(name) != value)
      refuse_training("the size '" + name + "' is " + std::to_string(recipe.size(name)) + ", but " +
                      std::to_string(value) + " in the run in " + f.out);
  recipe.mean = before.mean, recipe.deviation = before.deviation;
}

void drop_epochs(const std::string& log, int64_t from) {
  std::ifstream in(log, std::ios::binary);
  if (!in) return;
  std::string kept, row;
  bool all = true;
  while (std::getline(in, row)) {
    const bool whole = !in.eof();  // the last row ends in a line end unless its writing was cut short
    if (whole && epoch_of(row).value_or(-1) < from) kept += row + "\n";
    else all = false;
  }
  if (all) return;
  const std::string fresh = log + ".new";
  std::ofstream out(fresh, std::ios::binary);
  out << kept;
  out.close();
  std::error_code error;
  if (out) fs::rename(fresh, log, error);
  if (!out || error) throw Error(Error::Kind::io, "train", "cannot write " + fresh);
}

void Patience::epoch_end(FitState& state) {
  const double now = state.history.epochs.back().values.at("val_loss");
  if (!std::isnan(now) && (!best_ || now < *best_)) {
    best_ = now, since_ = 0;
    weights_ = {};
    for (const auto& [name, value] : state_dict(state.model)) weights_.add(name, value.clone());
  } else if (++since_ >= epochs_) {
    state.stop = true;
  }
}

void Patience::keep(Checkpoint& to) const {
  to.values.add(since_key, std::to_string(since_));
  if (!best_) return;
  char text[48];
  std::snprintf(text, sizeof text, "%.17g", *best_);
  to.values.add(best_key, text);
  for (const auto& [name, value] : weights_) to.model.add(weights_key + name, value);
}

void Patience::take(Checkpoint& from) {
  if (from.values.contains(since_key)) since_ = std::strtoll(from.values.at(since_key).c_str(), nullptr, 10);
  if (from.values.contains(best_key)) best_ = std::strtod(from.values.at(best_key).c_str(), nullptr);
  StateDict model;
  for (const auto& [name, value] : from.model)
    if (name.starts_with(weights_key)) weights_.add(name.substr(std::string(weights_key).size()), value.clone());
    else model.add(name, value);
  from.model = std::move(model);
}

void Patience::restore(const ModelRef& model) const {
  if (!weights_.empty()) load_state_dict(model, weights_);
}

}  // namespace volta::app

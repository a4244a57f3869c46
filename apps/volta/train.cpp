// volta train: a model on a data set, from flags or a TOML file.
#include <toml++/toml.h>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "requests.h"
#include "resuming.h"
#include "training.h"

namespace volta::app {
namespace {

// The file's values for the options that the command line does not give. Its keys are the long names of the flags.
void read_config(const std::string& path, Command command) {
  toml::table table;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) refuse_training("--config " + path + " is a folder");
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& e) {
    const auto line = e.source().begin.line;  // 0: there is no text
    refuse_training(path + (line > 0 ? ", line " + std::to_string(line) : "") + ": " + std::string(e.description()));
  }
  const auto wrong = [&](const std::string& start, const std::string& name, const std::string& end) {
    refuse_training(path + ": " + start + "'" + name + "'" + end);
  };
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const auto text = [&](const toml::node& node) -> std::string {
      if (const auto v = node.value<std::string>()) return *v;
      if (const auto v = node.value_exact<bool>()) return std::string(*v ? "true" : "false");
      if (const auto v = node.value_exact<int64_t>()) return std::to_string(*v);
      if (const auto v = node.value_exact<double>(); v && std::isfinite(*v)) return nlohmann::json(*v).dump();
      if (node.is_floating_point()) wrong("", name, " must be finite");
      wrong("", name, " must be a text, a number, true or false, or a list of such");
      return "";
    };
    const auto texts = [&, &node = value] {
      std::vector<std::string> list;
      if (const toml::array* several = node.as_array())
        for (const toml::node& one : *several) list.push_back(text(one));
      else list.push_back(text(node));
      return list;
    };
    try {
      if (name == "config" || !command.fill(name, texts)) wrong("there is no option ", name, "");
    } catch (const Program::UsageError& e) {
      throw Program::UsageError(path + ": " + e.what());
    }
  }
}

std::map<std::string, int64_t> sizes_of(const std::vector<std::string>& pairs) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& pair : pairs) {
    const size_t at = pair.find('=');
    int64_t value = 0;
    const char* const end = pair.data() + pair.size();
    const auto [stop, error] = std::from_chars(pair.data() + at + 1, end, value);
    if (at == std::string::npos || stop != end || error != std::errc())
      refuse_training("--set takes NAME=NUMBER, not '" + pair + "'");
    sizes[pair.substr(0, at)] = value;
  }
  return sizes;
}

std::string default_folder(const TrainFlags& f) {
  std::string set = f.set.name;
  for (char& c : set)
    if (c == ':' || c == '/' || c == '.') c = '-';
  return "runs/" + f.model + "-" + set;
}

// What decides the weights is in the checkpoints; the rest is not.
std::string command_to_go_on(const TrainFlags& f, int threads) {
  const TrainFlags usual;
  std::string line = "volta train " + quoted(f.model) + " --data " + quoted(f.set.name) + " --out " + quoted(f.out);
  if (f.device != usual.device) line += " --device " + quoted(f.device);
  if (f.workers != usual.workers) line += " --workers " + std::to_string(f.workers);
  if (f.save_every != usual.save_every) line += " --save-every " + std::to_string(f.save_every);
  if (f.tensorboard) line += " --tensorboard";
  if (threads > 0) line += " --threads " + std::to_string(threads);
  return line + " --resume";
}

void report(const TrainResult& r, const TrainFlags& f, const Common& common) {
  const Terminal terminal = common.terminal();
  nlohmann::json test = nlohmann::json::object();
  std::string text;
  for (const auto& [name, value] : r.test) {
    test[name] = value;
    char number[48];
    const bool share = name == "accuracy";
    std::snprintf(number, sizeof number, share ? "%s %.2f%%" : "%s %.4f", name.c_str(), share ? 100 * value : value);
    text += (text.empty() ? "" : ", ") + std::string(number);
  }
  if (terminal.json) {
    std::printf("%s\n", dumped({{"file", r.file.empty() ? nlohmann::json() : nlohmann::json(r.file)},
                                {"test", test},
                                {"seconds", r.seconds},
                                {"parameters", r.parameters},
                                {"interrupted", r.interrupted}})
                            .c_str());
    return;
  }
  if (r.file.empty()) {
    std::printf("interrupted before the first step: nothing was saved\n");
    return;
  }
  std::printf("%s%s\n", r.interrupted ? "interrupted; so far on the test items: " : "on the test items: ",
              terminal.bold(text).c_str());
  std::printf("%s parameters, %.1f s, saved to %s\n", with_commas(r.parameters).c_str(), r.seconds,
              terminal.bold(r.file).c_str());
  const std::string file = quoted(r.file), data = quoted(f.set.name);
  if (r.interrupted) std::printf("go on with: %s\n", command_to_go_on(f, common.threads).c_str());
  else
    std::printf("%s\n", terminal
                            .faint("try next: volta eval " + file + " --data " + data + "   |   volta " +
                                   (kind_of_items(f.set.name) == "text" ? "generate " : "serve ") + file +
                                   "   |   volta plot " + quoted(f.out))
                            .c_str());
}

struct State {
  TrainFlags flags;
  std::string config;
  std::vector<std::string> sizes;
  bool no_augment = false;
};

// Flags that the command line leaves out are those of the run; others than those would not go on with it.
void take_over(const Checkpoint& last, State& state, Command command) {
  TrainFlags& f = state.flags;
  const Settings given = settings_of(f);
  for (const auto& [name, before] : kept_settings(last)) {
    if (!command.given(name)) {
      if (!before.empty()) command.fill(name, [&text = before] { return std::vector<std::string>{text}; });
      continue;
    }
    for (const auto& [other, now] : given)
      if (other == name) check_setting(f, name, now, before);
  }
  f.sizes.merge(kept_sizes(last));  // one that was given stays, for go_on_with to compare
  check_epochs(f, last);
}

void train(State& state, Common& common, Command command) {
  TrainFlags& f = state.flags;
  if (!state.config.empty()) read_config(state.config, command);
  const bool named = !f.model.empty() && !f.set.name.empty();
  Program::check_usage([&] { f.sizes = sizes_of(state.sizes); });
  f.augment = !state.no_augment;
  if (f.out.empty() && named) f.out = default_folder(f);
  RunLock lock;
  std::error_code error;
  if (f.resume && std::filesystem::is_directory(f.out, error)) lock.take(f.out);  // nobody writes what is read now
  std::optional<Checkpoint> last = f.resume && !f.out.empty() ? last_checkpoint(f.out) : std::nullopt;
  if (last) take_over(*last, state, command);
  f.augment = !state.no_augment;
  Program::check_usage([&] {
    if (f.model.empty()) refuse_training("which model? volta train MODEL --data SET (see volta summary)");
    if (f.set.name.empty()) refuse_training("on which data? --data digits, for example");
    check_words(f);
  });
  if (common.threads > 0) set_num_threads(common.threads);
  const TrainResult result = train_run(f, std::move(last), lock, common.terminal());
  report(result, f, common);
  if (result.interrupted) common.status = Exit::interrupted;
}

}  // namespace

void add_train(Command program, Common& common) {
  Command command = program.command("train", "train a model on a data set");
  auto state = std::make_shared<State>();
  TrainFlags& f = state->flags;
  command.option("model,--model", f.model, "mlp, lenet, resnet18, gpt …: see volta summary");
  command.option("--data", f.set.name,
                 "digits, austen, mnist:FOLDER, cifar10:FOLDER, images:FOLDER, csv:FILE, text:FILE …");
  command.option("--target", f.set.target, "of a table: the column to predict (default: the last)");
  command.option("--epochs", f.epochs, "times through the data").shown().within(1, 1 << 20);
  command.option("--batch", f.batch, "items per step").shown().within(1, 1 << 20);
  command.option("--lr", f.lr, "highest learning rate (default: as suits the optimizer)").positive();
  command.option("--optimizer", f.optimizer, "adamw, adam, sgd or lion").shown();
  command.option("--schedule", f.schedule, "onecycle, cosine, warmup-cosine or constant").shown();
  command
      .option("--weight-decay", f.weight_decay,
              "pull of the weights to zero; of adam and sgd a hundredth, in the gradient")
      .shown()
      .not_negative();
  command.option("--clip", f.clip, "largest norm of the gradients (default: any)").positive();
  command.option("--accumulate", f.accumulate, "batches per step").shown().within(1, 1 << 20);
  command.option("--seed", f.seed, "the same seed gives the same model").shown().not_negative();
  command.option("--workers", f.workers, "threads that prepare batches").shown().within(0, 256);
  command.option("--device", f.device, "cpu or cuda").shown();
  command.option("--precision", f.precision, "f32, or mixed with halves: bf16 or f16").shown();
  command.option("--set", state->sizes, "a size of the model: --set hidden=256");
  command.option("--held-out", f.set.held_out, "share of the items kept for testing, where the set does not say")
      .shown()
      .within(0.01, 0.9);
  command.option("--patience", f.patience, "stop after so many epochs without improvement").within(1, 1 << 20);
  command.option("--save-every", f.save_every, "steps between checkpoints (default: an epoch)").within(1, 1 << 30);
  command.option("--out", f.out, "folder of the run (default: runs/MODEL-DATA)");
  command.flag("--resume", f.resume, "go on where the run in that folder stopped, with its flags");
  command.flag("--tensorboard", f.tensorboard, "write event files for TensorBoard");
  command.flag("--no-augment", state->no_augment, "train on images as they are");
  command.option("--config", state->config, "a TOML file with these options; flags override it");
  command.on_run([&common, state, command] { train(*state, common, command); });
}

}  // namespace volta::app

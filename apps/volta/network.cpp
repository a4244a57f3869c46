#include "network.h"

#include <models/char_lstm.h>
#include <models/gpt.h>
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/mobilenet.h>
#include <models/resnet.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "terminal.h"

namespace volta::app {
namespace {

using nlohmann::json;

constexpr const char* task_names[] = {"classify", "regress", "language"};

[[noreturn]] void fail(const std::string& op, const std::string& why, Error::Kind kind = Error::Kind::argument) {
  throw Error(kind, op, why);
}

// Images as one row for a model over rows.
struct Flattened {
  nn::Sequential rows;
  Tensor operator()(const Tensor& x) const { return rows(x.dim() > 2 ? x.flatten(1) : x); }
};

nn::AnyModule make_mlp(const Recipe& r) {
  const int64_t inputs = r.takes_images() ? r.input().numel() : r.size("inputs"), hidden = r.size("hidden");
  return Flattened{models::mlp({.widths = {inputs, hidden, hidden, r.size("classes")}})};
}

nn::AnyModule make_lenet(const Recipe& r) {
  if (r.size("height") != 28 || r.size("width") != 28) fail("lenet", "takes images of 28 x 28 pixels");
  return models::LeNet5{{.channels = r.size("channels"), .classes = r.size("classes")}};
}

models::ResNetConfig resnet_config(const Recipe& r) {
  return {.channels = r.size("channels"), .classes = r.size("classes")};
}

nn::AnyModule make_gpt(const Recipe& r) {
  return models::gpt({.vocab = r.size("vocab"),
                      .context = r.size("context"),
                      .width = r.size("width"),
                      .heads = r.size("heads"),
                      .layers = r.size("layers"),
                      .dropout = 0.1});
}

nn::AnyModule make_char_lstm(const Recipe& r) {
  return models::CharLSTM{{.vocab = r.size("vocab"),
                           .embedding = r.size("embedding"),
                           .hidden = r.size("hidden"),
                           .layers = r.size("layers")}};
}

// JSON holds UTF-8 only: to find out when the trained model is saved is too late.
void check_names(const std::vector<std::string>& names, const std::string& what) {
  for (const std::string& name : names)
    for (size_t at = 0, n = 0; at < name.size(); at += n) {
      n = utf8_length(std::string_view(name).substr(at));
      if (n == 0)
        fail("model", "the " + what + " '" + printable(name) +
                          "' is not UTF-8; convert the data first, with iconv -f latin1 -t utf8 for example");
    }
}

// What goes with the weights must fit them where it is there at all.
void check(const Recipe& r) {
  const auto count = [&](size_t found, const std::string& of, const std::string& size) {
    if (found > 0 && r.sizes.contains(size) && int64_t(found) != r.size(size))
      fail(r.model, "its recipe has " + std::to_string(found) + " " + of + ", but the size '" + size + "' is " +
                        std::to_string(r.size(size)));
  };
  check_names(r.labels, "label"), check_names(r.columns, "column"), check_names(r.tokens, "token");
  check_names({r.target}, "target");
  count(r.labels.size(), "labels", "classes");
  count(r.tokens.size(), "tokens", "vocab");
  count(r.columns.size(), "columns", "inputs");
  const std::string channels = r.takes_images() ? "channels" : "inputs";
  count(r.mean.size(), "means", channels), count(r.deviation.size(), "deviations", channels);
  if (r.mean.size() != r.deviation.size())
    fail(r.model, "its recipe has " + std::to_string(r.mean.size()) + " means, but " +
                      std::to_string(r.deviation.size()) + " deviations");
  if (!std::all_of(r.deviation.begin(), r.deviation.end(), [](double d) { return d > 0; }))
    fail(r.model, "its recipe has deviations that are not positive");
}

template <class T> void read(const json& j, const char* name, T& to) {
  if (j.contains(name)) j.at(name).get_to(to);
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::map<std::string, int64_t> image = {{"channels", 1}, {"height", 28}, {"width", 28}, {"classes", 10}};
  static const std::vector<Architecture> list = {
      {"mlp", "two hidden layers with ReLU", {"image", "table"}, {{"hidden", 128}, {"classes", 10}}, make_mlp},
      {"lenet", "LeNet-5 (1998): small images of 28 x 28", {"image"}, image, make_lenet},
      {"resnet18",
       "residual network of 18 layers (2015)",
       {"image"},
       image,
       [](const Recipe& r) { return models::resnet18(resnet_config(r)); }},
      {"resnet34",
       "residual network of 34 layers",
       {"image"},
       image,
       [](const Recipe& r) { return models::resnet34(resnet_config(r)); }},
      {"resnet50",
       "residual network of 50 layers, with bottlenecks",
       {"image"},
       image,
       [](const Recipe& r) { return models::resnet50(resnet_config(r)); }},
      {"gpt",
       "GPT-2's architecture, small by default",
       {"text"},
       {{"vocab", 256}, {"context", 128}, {"width", 128}, {"heads", 4}, {"layers", 4}},
       make_gpt},
      {"char-lstm",
       "an LSTM over characters",
       {"text"},
       {{"vocab", 256}, {"context", 128}, {"embedding", 64}, {"hidden", 256}, {"layers", 1}},
       make_char_lstm},
  };
  return list;
}

const Architecture& architecture(const std::string& name) {
  std::string known;
  for (const Architecture& a : architectures()) {
    if (a.name == name) return a;
    known += (known.empty() ? "" : ", ") + a.name;
  }
  fail("model", "there is no model '" + name + "'; known are " + known);
}

Task usual_task(const Architecture& made) { return made.inputs[0] == "text" ? Task::language : Task::classify; }

int64_t Recipe::size(const std::string& name) const {
  const auto found = sizes.find(name);
  if (found == sizes.end()) fail(model, "its recipe lacks the size '" + name + "'");
  return found->second;
}

Shape Recipe::input() const {
  if (takes_images()) return {size("channels"), size("height"), size("width")};
  return {task == Task::language ? size("context") : size("inputs")};
}

std::string Recipe::json() const {
  nlohmann::json j = {{"version", 1},           {"model", model},     {"task", task_names[int(task)]},
                      {"sizes", sizes},         {"labels", labels},   {"mean", mean},
                      {"deviation", deviation}, {"columns", columns}, {"tokens", tokens}};
  if (!target.empty()) j["target"] = target;
  if (held_out) j["held_out"] = *held_out;
  if (seed) j["seed"] = *seed;
  return j.dump();
}

Recipe Recipe::parse(const std::string& text, const std::string& file) {
  try {
    const nlohmann::json j = nlohmann::json::parse(text);
    if (j.value("version", 0) != 1)
      fail("load", file + ": its recipe is of a version this program does not know", Error::Kind::io);
    Recipe r;
    j.at("model").get_to(r.model);
    j.at("sizes").get_to(r.sizes);
    const std::string task = j.at("task");
    const auto* const found = std::find(std::begin(task_names), std::end(task_names), task);
    if (found == std::end(task_names)) fail("load", file + ": unknown task '" + task + "'", Error::Kind::io);
    r.task = Task(found - std::begin(task_names));
    read(j, "labels", r.labels), read(j, "mean", r.mean), read(j, "deviation", r.deviation);
    read(j, "columns", r.columns), read(j, "tokens", r.tokens), read(j, "target", r.target);
    if (j.contains("held_out")) r.held_out = j.at("held_out").get<double>();
    if (j.contains("seed")) r.seed = j.at("seed").get<uint64_t>();
    return r;
  } catch (const nlohmann::json::exception& e) {
    fail("load", file + ": its recipe cannot be read: " + e.what(), Error::Kind::io);
  }
}

Network::Network(Recipe r) : recipe(std::move(r)) {
  const Architecture& made = architecture(recipe.model);
  for (const auto& [name, value] : made.sizes) recipe.sizes.try_emplace(name, value);
  for (const auto& [name, value] : recipe.sizes)
    if (value < 1 || value > int64_t(1) << 24)
      fail(recipe.model, "the size '" + name + "' is " + std::to_string(value));
  check(recipe);
  module = made.make(recipe);
}

Tensor Network::prepared(const Tensor& raw) const {
  if (recipe.task == Task::language) return raw.to(i64);
  Tensor x = recipe.takes_images() && raw.dtype() == u8 ? raw.to(f32) / 255 : raw.to(f32);
  if (recipe.mean.empty()) return x;
  Shape shape{1};
  shape.push_back(int64_t(recipe.mean.size()));
  for (int64_t axis = 2; axis < x.dim(); ++axis) shape.push_back(1);
  return (x - tensor(recipe.mean).to(x.device()).to(f32).reshape(shape)) /
         tensor(recipe.deviation).to(x.device()).to(f32).reshape(shape);
}

void Network::save(const std::string& path) const {
  write_safetensors(path, state_dict(module), {{"format", "pt"}, {recipe_entry, recipe.json()}});
}

Network Network::load(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  if (!metadata.contains(recipe_entry))
    fail("load",
         path +
             " holds weights without a recipe: train it with `volta train`, or convert it with `volta convert --model "
             "NAME`",
         Error::Kind::io);
  Network network(Recipe::parse(metadata.at(recipe_entry), path));
  network.read_tokenizer(metadata, path);
  volta::load(network.module, path);
  eval(network.module);
  return network;
}

void Network::read_tokenizer(const Metadata& metadata, const std::string& file) {
  if (recipe.task != Task::language || !metadata.contains(vocab_entry) || !metadata.contains(merges_entry)) return;
  const std::string& vocab = metadata.at(vocab_entry);
  data::Gpt2Options options;
  if (vocab.find("\"<|endoftext|>\"") != std::string::npos) options.special_tokens = {"<|endoftext|>"};
  try {
    tokenizer = data::Gpt2Tokenizer::from_text(vocab, metadata.at(merges_entry), options);
  } catch (const Error& e) {
    fail("load", file + ": its vocabulary cannot be read: " + e.what(), e.kind());
  }
  if (!recipe.tokens.empty()) fail(recipe.model, "its recipe has tokens, and " + file + " a vocabulary of byte pairs");
  if (tokenizer->vocab_size() > recipe.size("vocab"))
    fail(recipe.model, "the vocabulary has " + std::to_string(tokenizer->vocab_size()) +
                           " tokens, but the size 'vocab' is " + std::to_string(recipe.size("vocab")));
}

}  // namespace volta::app

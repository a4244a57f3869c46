// volta convert: weights from one file format to another, renamed on the way.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "network.h"
#include "requests.h"

namespace volta::app {
namespace {

struct Flags {
  std::string from, to, part, map, strip, add, cast, model, select, tokenizer;
  std::vector<std::string> rename, exclude, transpose;
  bool dry_run = false;
};

StateMap ready_map(const std::string& name) {
  if (name == "resnet") return maps::resnet();
  if (name == "gpt2") return maps::gpt2();
  if (name == "bert") return maps::bert();
  throw Error(Error::Kind::argument, "convert", "there is no map '" + name + "'; known are bert, gpt2, resnet");
}

DType dtype_named(const std::string& text) {
  std::string known;
  for (const DType dtype : {f16, bf16, f32, f64}) {
    if (name(dtype) == text) return dtype;
    known += (known.empty() ? "" : ", ") + std::string(name(dtype));
  }
  throw Error(Error::Kind::argument, "convert", "--cast takes one of " + known + ", not '" + text + "'");
}

StateMap map_of(const Flags& f) {
  StateMap map;
  if (!f.strip.empty()) map = map.strip_prefix(f.strip);
  if (!f.map.empty()) map = map.then(ready_map(f.map));
  for (const std::string& pair : f.rename) {
    const size_t at = pair.find('=');
    if (at == std::string::npos || at == 0)
      throw Error(Error::Kind::argument, "convert", "--rename takes OLD=NEW, not '" + pair + "'");
    map = map.rename_pattern(pair.substr(0, at), pair.substr(at + 1));
  }
  for (const std::string& pattern : f.transpose) map = map.transpose_pattern(pattern);
  if (!f.select.empty()) map = map.select(f.select);
  for (const std::string& pattern : f.exclude) map = map.exclude(pattern);
  if (!f.add.empty()) map = map.add_prefix(f.add);
  if (!f.cast.empty()) map = map.cast(dtype_named(f.cast));
  return map;
}

void write(const std::string& path, const StateDict& state, const Metadata& metadata) {
  const std::string kind = std::filesystem::path(path).extension().string();
  if (kind == ".safetensors") return write_safetensors(path, state, metadata);
  if (kind == ".npz") {
    for (const auto& [name, x] : state)
      if (x.dtype() == bf16) {
        std::string why = path;
        why.append(": tensor '").append(name).append("' is of bf16, which NumPy does not have: add --cast f32");
        throw Error(Error::Kind::dtype, "convert", why);
      }
    return write_npz(path, state);
  }
  if (kind == ".pt" || kind == ".pth" || kind == ".bin") return write_torch(path, state);
  throw Error(Error::Kind::argument, "convert",
              "cannot tell the format of '" + path + "' from its ending; use .safetensors, .pt or .npz");
}

bool same_tensors(const StateDict& given, const StateDict& made) {
  return given.size() == made.size() && std::all_of(given.begin(), given.end(), [&](const auto& entry) {
           return made.contains(entry.first) && made.at(entry.first).shape() == entry.second.shape();
         });
}

// What the source says, but no recipe for tensors that are other ones now.
Metadata carried_over(const Flags& f, const StateDict& given, const StateDict& made) {
  Metadata kept;
  if (const auto found = attempt([&] { return read_safetensors_metadata(f.from); })) kept = *found;
  if (kept.contains("format") && kept.at("format") == "volta.checkpoint") kept = {};
  if (!same_tensors(given, made))
    for (const char* key : {recipe_entry, vocab_entry, merges_entry})
      if (kept.contains(key)) kept.erase(key);
  if (!kept.contains("format")) kept.add("format", "pt");
  return kept;
}

// NAME, or NAME:RECIPE, which need not repeat the name and says what the architecture leaves open.
Recipe recipe_for(const std::string& model) {
  const size_t colon = model.find(':');
  const std::string name = model.substr(0, colon);
  const Task task = usual_task(architecture(name));
  Recipe recipe;
  recipe.model = name, recipe.task = task;
  if (colon == std::string::npos) return recipe;
  const nlohmann::json given = nlohmann::json::parse(model.substr(colon + 1), nullptr, false);
  if (!given.is_object())
    throw Error(Error::Kind::argument, "convert", "--model " + name + ":RECIPE takes an object in JSON as RECIPE");
  nlohmann::json whole = nlohmann::json::parse(recipe.json());
  whole.update(given);
  recipe = Recipe::parse(whole.dump(), "--model");
  if (recipe.model != name)
    throw Error(Error::Kind::argument, "convert", "--model " + name + " has a recipe of the model " + recipe.model);
  if ((recipe.task == Task::language) != (task == Task::language))
    throw Error(Error::Kind::argument, "convert",
                "--model " + name + (task == Task::language ? " is a language model" : " is no language model") +
                    ", which is not what the task in its recipe says");
  return recipe;
}

// What makes safetensors a file that `eval`, `predict` and `serve` take: the recipe, checked against the weights, and the
// vocabulary.
Metadata metadata_for(const Flags& f, const StateDict& given, const StateDict& state) {
  Metadata metadata = carried_over(f, given, state);
  if (f.model.empty() && f.tokenizer.empty()) return metadata;
  if (!f.model.empty()) metadata[recipe_entry] = recipe_for(f.model).json();
  if (!metadata.contains(recipe_entry))
    throw Error(Error::Kind::argument, "convert", f.from + " does not say which model it is for: add --model");
  Network network(Recipe::parse(metadata.at(recipe_entry), f.from));
  if (!f.tokenizer.empty()) {
    if (network.recipe.task != Task::language)
      throw Error(Error::Kind::argument, "convert",
                  "--tokenizer is for a language model, as " + network.recipe.model + " is not");
    for (const auto& [key, name] : {std::pair(vocab_entry, "vocab.json"), std::pair(merges_entry, "merges.txt")})
      metadata[key] = data::read_text((std::filesystem::path(f.tokenizer) / name).string());
  }
  network.read_tokenizer(metadata, f.tokenizer.empty() ? f.from : f.tokenizer);
  load_state_dict(network.module, state);
  metadata[recipe_entry] = network.recipe.json();
  return metadata;
}

void print_json(const StatePlan& plan) {
  for (const StatePlan::Line& line : plan.lines) {
    nlohmann::json one = {
        {"from", line.from}, {"to", line.to.empty() ? nlohmann::json() : nlohmann::json(line.to)}, {"what", line.what}};
    if (!line.to.empty()) {
      one["shape"] = std::vector<int64_t>(line.shape.begin(), line.shape.end());
      one["dtype"] = name(line.dtype);
    }
    std::printf("%s\n", dumped(one).c_str());
  }
  if (!plan.unmatched_rules.empty()) std::printf("%s\n", dumped({{"without_effect", plan.unmatched_rules}}).c_str());
}

// The weights, or those that PyTorch's file keeps beside others: {"model": …, "optimizer": …, "epoch": 3}.
StateDict given_state(const Flags& f) {
  try {
    if (f.part.empty()) return read_state(f.from);
    const TorchValue all = read_torch_value(f.from);
    if (!all.is(TorchValue::Kind::dict) || !all.contains(f.part))
      throw Error(Error::Kind::argument, "convert", f.from + " has no part '" + f.part + "'");
    const TorchValue& part = all.at(f.part);
    if (!part.is(TorchValue::Kind::dict))
      throw Error(Error::Kind::argument, "convert",
                  f.from + ": the part '" + f.part + "' is of type " + std::string(name(part.kind())) + ", no weights");
    return part.state_dict();
  } catch (const Error& e) {  // whose advice is for a program
    const std::string said = std::string(e.what()).substr(e.op().size() + 2);
    const size_t advice = said.find(". Take the part you want");
    if (advice == std::string::npos) throw;
    throw Error(e.kind(), "convert",
                (said.starts_with(f.from) ? "" : f.from + ": ") + said.substr(0, advice) +
                    ". Say which part has the weights, with --part model for example");
  }
}

// A misspelt pattern should not go unseen. Of a ready map, rules for other kinds of files may find nothing.
void warn_of_idle_rules(const Flags& f, const StateMap& map, const StateDict& given) {
  if (!f.map.empty()) return;
  for (const std::string& rule : map.plan(given).unmatched_rules)
    std::fprintf(stderr, "volta: without effect: %s\n", printable(rule).c_str());
}

// Only safetensors have a place for a recipe.
void check_place(const Flags& f) {
  if ((!f.model.empty() || !f.tokenizer.empty()) && std::filesystem::path(f.to).extension() != ".safetensors")
    throw Error(Error::Kind::argument, "convert",
                "--model and --tokenizer need a file to write that ends in .safetensors, not '" + f.to + "'");
}

void convert(const Flags& f, const Common& common) {
  StateMap map;
  Program::check_usage([&] {
    map = map_of(f);
    if (!f.model.empty()) (void)recipe_for(f.model);
    check_place(f);
  });
  const StateDict given = given_state(f);
  if (f.dry_run) {
    StatePlan plan = map.plan(given);
    if (common.json) return print_json(plan);
    for (StatePlan::Line& line : plan.lines) line.from = printable(line.from), line.to = printable(line.to);
    for (std::string& key : plan.unmatched_keys) key = printable(key);
    std::printf("%s", plan.str().c_str());
    return;
  }
  const StateDict state = map.apply(given);
  if (state.empty() && !given.empty())
    throw Error(Error::Kind::argument, "convert", "none of the tensors of " + f.from + " is kept: nothing was written");
  warn_of_idle_rules(f, map, given);
  write(f.to, state, metadata_for(f, given, state));
  if (common.json) std::printf("%s\n", dumped({{"file", f.to}, {"tensors", state.size()}}).c_str());
  else std::printf("%zu tensors written to %s\n", state.size(), f.to.c_str());
}

}  // namespace

void add_convert(Command program, Common& common) {
  Command command = program.command("convert", "weights from one format to another (safetensors, pt, npz)");
  auto f = std::make_shared<Flags>();
  command.option("from", f->from, "the file to read").required();
  command.option("to", f->to, "the file to write; its ending says the format").required();
  command.option("--part", f->part, "of a PyTorch file that holds more than weights: which entry they are");
  command.option("--map", f->map, "a ready map: bert, gpt2 or resnet");
  command.option("--strip-prefix", f->strip, "remove this from the front of names");
  command.option("--add-prefix", f->add, "put this in front of names");
  command.option("--rename", f->rename, "OLD=NEW, where * stands for anything");
  command.option("--transpose", f->transpose, "exchange the axes of the matrices that fit this pattern");
  command.option("--select", f->select, "keep only names that fit this pattern");
  command.option("--exclude", f->exclude, "leave out names that fit this pattern");
  command.option("--cast", f->cast, "convert to this dtype: f32, f16, bf16 …");
  command.option(
      "--model", f->model,
      "the model these weights are for, as NAME or NAME:RECIPE, such as gpt:{\"sizes\":{\"layers\":12}}, so that eval "
      "and serve take the file");
  command.option("--tokenizer", f->tokenizer,
                 "a folder with vocab.json and merges.txt: GPT-2's vocabulary, for generate");
  command.flag("--dry-run", f->dry_run, "print what would happen to each tensor");
  command.on_run([&common, f] { convert(*f, common); });
}

}  // namespace volta::app

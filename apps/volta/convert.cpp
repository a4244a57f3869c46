// volta convert: weights from one file format to another, renamed on the way.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "network.h"
#include "requests.h"

namespace volta::app {
namespace {

struct Flags {
  std::string from, to, map, strip, add, cast, model, select;
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
  if (kind == ".npz") return write_npz(path, state);
  if (kind == ".pt" || kind == ".pth" || kind == ".bin") return write_torch(path, state);
  throw Error(Error::Kind::argument, "convert",
              "cannot tell the format of '" + path + "' from its ending; use .safetensors, .pt or .npz");
}

// What makes safetensors a file that `eval`, `predict` and `serve` take: the recipe, checked against the weights.
Metadata recipe_for(const Flags& f, const StateDict& state) {
  if (f.model.empty()) return {{"format", "pt"}};
  Recipe recipe;
  recipe.model = f.model;
  const size_t colon = f.model.find(':');
  if (colon != std::string::npos) recipe = Recipe::parse(f.model.substr(colon + 1), "--model");
  Network network(recipe);
  load_state_dict(network.module, state);
  return {{"format", "pt"}, {"volta.recipe", network.recipe.json()}};
}

void convert(const Flags& f, const Common& common) {
  const StateDict given = read_state(f.from);
  const StateMap map = map_of(f);
  if (f.dry_run) {
    StatePlan plan = map.plan(given);
    for (StatePlan::Line& line : plan.lines) line.from = printable(line.from), line.to = printable(line.to);
    for (std::string& key : plan.unmatched_keys) key = printable(key);
    std::printf("%s", plan.str().c_str());
    return;
  }
  const StateDict state = map.apply(given);
  write(f.to, state, recipe_for(f, state));
  if (common.json) std::printf("%s\n", dumped({{"file", f.to}, {"tensors", state.size()}}).c_str());
  else std::printf("%zu tensors written to %s\n", state.size(), f.to.c_str());
}

}  // namespace

void add_convert(Command program, Common& common) {
  Command command = program.command("convert", "weights from one format to another (safetensors, pt, npz)");
  auto f = std::make_shared<Flags>();
  command.option("from", f->from, "the file to read").required();
  command.option("to", f->to, "the file to write; its ending says the format").required();
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
      "the model these weights are for, as NAME or NAME:RECIPE in JSON, so that eval and serve take the file");
  command.flag("--dry-run", f->dry_run, "print what would happen to each tensor");
  command.on_run([&common, f] { convert(*f, common); });
}

}  // namespace volta::app

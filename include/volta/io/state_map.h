// StateMap: turns the names and layouts of one framework's weights into those of a model.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <volta/nn/model.h>

namespace volta {

// What a map would do to a state, one line for each tensor: std::cout << map.plan(state).str().
struct StatePlan {
  struct Line {
    std::string from, to;  // `to` is empty where the tensor is left out
    std::string what;      // the rules that took part: "rename, transpose"; "kept" where none did
    Shape shape = {};      // of the result
    DType dtype = f32;
  };
  std::vector<Line> lines = {};
  std::vector<std::string> unmatched_rules = {};  // rules that found nothing to do
  std::vector<std::string> unmatched_keys = {};   // tensors that no rule touched
  std::string str() const;
};

// Rules that are applied in the order in which they are given, each to the results of those before:
//   StateDict mapped = StateMap().strip_prefix("model.").transpose_pattern("fc*.weight").apply(foreign);
// Patterns match whole names; * stands for any text, also of several parts, ? for one character. In a new name the
// first * stands for what the first * of the pattern matched, and so on: rename_pattern("layer.*.attn.*", "h.*.attention.*").
// Two tensors that would get one name are an Error. Results share the memory of the state where that is possible.
class StateMap {
 public:
  using Custom = std::function<StateDict(const StateDict&)>;

  StateMap rename(const std::string& from, const std::string& to) const;  // .rename("fc1.weight", "first.weight")
  StateMap rename_pattern(const std::string& pattern, const std::string& to) const;
  StateMap rename_prefix(const std::string& from, const std::string& to) const;  // .rename_prefix("bert.", "encoder.")
  StateMap strip_prefix(const std::string& prefix) const;                        // .strip_prefix("module.")
  StateMap add_prefix(const std::string& prefix) const;                          // .add_prefix("backbone.")
  StateMap transpose(const std::string& name) const;             // the last two axes: .transpose("fc.weight")
  StateMap transpose_pattern(const std::string& pattern) const;  // .transpose_pattern("h.*.c_fc.weight")
  StateMap select(const std::string& pattern) const;             // keeps these alone: .select("encoder.*")
  StateMap exclude(const std::string& pattern) const;            // leaves these out: .exclude("*.num_batches_tracked")
  StateMap cast(DType dtype, const std::string& pattern = "*") const;  // floating tensors: .cast(f32)
  // Cuts into equal parts: .split("h.*.attn.qkv.weight", 0, {"h.*.attn.q.weight", "h.*.attn.k.weight", "h.*.attn.v.weight"}).
  StateMap split(const std::string& pattern, int64_t dim, const std::vector<std::string>& names) const;
  // The reverse; the patterns match the same texts: .merge({"*.q.weight", "*.k.weight", "*.v.weight"}, 0, "*.qkv.weight").
  StateMap merge(const std::vector<std::string>& patterns, int64_t dim, const std::string& name) const;
  StateMap custom(Custom function,
                  const std::string& description = "custom") const;  // .custom([](const StateDict& s) {…})
  // Gives tensors the names of the model's, layer by layer in order, where they have the same parts and shapes:
  // "0.weight" becomes "fc1.weight", and the reverse. Layers with numbers for names are taken in the order of the numbers.
  StateMap by_order(const ModelView& model) const;
  StateMap then(const StateMap& next) const;  // maps::gpt2().then(StateMap().cast(bf16))

  [[nodiscard]] StateDict apply(const StateDict& state) const;
  // What apply would do. Nothing is computed; custom functions see zeros of the right shapes.
  [[nodiscard]] StatePlan plan(const StateDict& state) const;

  struct Rule;

 private:
  StateMap with(std::shared_ptr<const Rule> rule) const;
  std::vector<std::shared_ptr<const Rule>> rules_;
};

// From the published names onto the models of models/: load_state_dict(net, maps::gpt2().apply(read_state("gpt2.safetensors"))).
namespace maps {
[[nodiscard]] StateMap resnet();  // torchvision's resnet18 … resnet152
[[nodiscard]] StateMap gpt2();    // the Hub's gpt2 (GPT2Model and GPT2LMHeadModel)
[[nodiscard]] StateMap bert();    // the Hub's bert-base and bert-large (BertModel, BertForPreTraining and others)
}  // namespace maps

}  // namespace volta

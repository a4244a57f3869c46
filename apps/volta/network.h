// A model together with what one must know to use it: its architecture and sizes, its task, and how inputs are prepared.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <volta/volta.h>

namespace volta::app {

enum class Task { classify, regress, language };

// Saved with the weights, so that a file of weights is all that `eval`, `predict` and `serve` need.
struct Recipe {
  std::string model;  // the name of an architecture
  Task task = Task::classify;
  std::map<std::string, int64_t> sizes;  // channels, height, classes …: what the architecture asks for
  std::vector<std::string> labels;       // of the classes, in order; of the columns that are predicted
  std::vector<double> mean, deviation;   // inputs are normalised with these, per channel or column
  std::vector<std::string> columns;      // of a table: the inputs' names
  std::vector<std::string> tokens;       // of a language model over characters: its vocabulary
  std::string target;                    // of a table: the column that is predicted
  std::optional<double> held_out;        // how the data was split for the training: the share kept for testing,
  std::optional<uint64_t> seed;          // and the seed; files of other programs do not say

  int64_t size(const std::string& name) const;  // throws where it is not there
  bool takes_images() const { return sizes.count("height") > 0; }
  Shape input() const;  // of one item
  std::string json() const;
  static Recipe parse(const std::string& json, const std::string& file);  // throws Error, naming the file
};

struct Architecture {
  std::string name, summary;
  std::vector<std::string> inputs;       // kinds of data: image, table, text
  std::map<std::string, int64_t> sizes;  // those it takes, and what they are unless data or flags say otherwise
  std::function<nn::AnyModule(const Recipe&)> make;
};
const std::vector<Architecture>& architectures();
const Architecture& architecture(const std::string& name);  // throws, listing the known
Task usual_task(const Architecture& made);                  // what it learns where nothing else is said

// Entries of a file's metadata: the recipe, and of a vocabulary of byte pairs the texts of vocab.json and merges.txt.
constexpr const char *vocab_entry = "volta.vocab", *merges_entry = "volta.merges", *recipe_entry = "volta.recipe";

struct Network {
  Recipe recipe;
  nn::AnyModule module;
  std::optional<data::Gpt2Tokenizer> tokenizer = {};  // of a language model over byte pairs

  explicit Network(Recipe r);
  Tensor operator()(const Tensor& x) const { return module(x); }
  Tensor prepared(const Tensor& raw) const;  // what the module wants of [n, …] inputs as files hold them
  void save(const std::string& path) const;
  static Network load(const std::string& path);
  // From a file's metadata, where they hold one; throws where it does not fit the recipe.
  void read_tokenizer(const Metadata& metadata, const std::string& file);
};

}  // namespace volta::app

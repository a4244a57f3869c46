// Data sets by the names the command line knows: digits, austen, mnist:FOLDER, cifar10:FOLDER, images:FOLDER, csv:FILE, text:FILE.
#pragma once
#include <string>
#include <tuple>

#include "network.h"

namespace volta::app {

using Items =
    data::AnyDataset<std::tuple<Tensor, Tensor>>;  // inputs in 0 … 1 (images), numbers, or tokens; and targets

struct SetFlags {
  std::string name;               // as above
  std::string target;             // of a table: the column to predict; the last one unless given
  double held_out = 0.1;          // share of the items kept for testing where the set does not say which
  int64_t context = 128;          // of a text: tokens in an item
  int64_t height = 0, width = 0;  // images are brought to this size; 0: as they are, of a folder 224
  uint64_t seed = 1;
};

struct NamedSet {
  Items train, test;
  Recipe recipe;                           // what the data knows: task, sizes, labels, normalisation
  std::vector<std::string> left_out = {};  // columns of words
};

// "image", "table" or "text": what the set of this name is made of, without opening it. Throws Error, listing the known
// names, where there is none such.
std::string kind_of_items(const std::string& name);
// Throws Error where the name is unknown (listing the known) or its files cannot be read.
NamedSet open_set(const SetFlags& flags);
// The test items of a set as a network that was trained before wants them: same sizes, classes, columns and vocabulary.
Items test_items(SetFlags flags, const Recipe& recipe);

}  // namespace volta::app

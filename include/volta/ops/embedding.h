// Options of embeddings: rows of a table, one by one or reduced in bags.
#pragma once
#include <string>

#include <volta/tensor.h>

namespace volta {

struct EmbeddingOptions {
  std::optional<Int> padding_idx = {};  // this row gets no gradient; negative counts from the end
  std::optional<double> max_norm = {};  // rows that are looked up are first shortened to this length, in place
  double norm_type = 2;
  bool scale_grad_by_freq = false;  // gradients divided by how often the row occurs in the indices
};

enum class BagMode { sum, mean, max };
constexpr std::array<std::string_view, 3> choice_names(BagMode) { return {"sum", "mean", "max"}; }
struct EmbeddingBagOptions {
  Choice<BagMode> mode = BagMode::mean;
  std::optional<Int> padding_idx = {};  // left out of the bags
  std::optional<double> max_norm = {};
  double norm_type = 2;
  bool include_last_offset = false;  // the last offset is the end of the last bag
};

}  // namespace volta

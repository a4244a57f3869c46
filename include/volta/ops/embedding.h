// Embeddings: rows of a table, one by one or reduced in bags.
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
// embedding(ids, weight, {.padding_idx = 0}); without options the plain op.
[[nodiscard]] Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingOptions& options);

enum class BagMode { sum, mean, max };
constexpr std::array<std::string_view, 3> choice_names(BagMode) { return {"sum", "mean", "max"}; }
struct EmbeddingBagOptions {
  Choice<BagMode> mode = BagMode::mean;
  std::optional<Int> padding_idx = {};  // left out of the bags
  std::optional<double> max_norm = {};
  double norm_type = 2;
  bool include_last_offset = false;  // the last offset is the end of the last bag
};
// Bags are the rows of `indices` [bags, n], or start at `offsets` in `indices` [n]: embedding_bag(ids, w, offsets). The
// weights, one per index, need mode sum. An empty bag gives 0.
[[nodiscard]] Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets = {},
                                   const EmbeddingBagOptions& options = {}, const Tensor& per_sample_weights = {});

}  // namespace volta

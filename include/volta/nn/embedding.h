// Layers of embeddings.
#pragma once
#include <string>

#include <volta/nn/layer.h>
#include <volta/ops.h>

namespace volta::nn {

// nn::Embedding(50257, 768)(ids): [...] to [..., 768]. Weight [rows, dim], standard normal, the padding row 0.
class Embedding : public Layer {
 public:
  Embedding(Int num_embeddings, Int embedding_dim, const EmbeddingOptions& options = {});
  // nn::Embedding::from_pretrained(table), frozen unless told.
  static Embedding from_pretrained(const Tensor& table, bool freeze = true, const EmbeddingOptions& options = {});
  Tensor operator()(const Tensor& indices) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  Parameter weight;
  EmbeddingOptions options;
};

// nn::EmbeddingBag(1000, 16, {.mode = "sum"})(ids, offsets).
class EmbeddingBag : public Layer {
 public:
  EmbeddingBag(Int num_embeddings, Int embedding_dim, const EmbeddingBagOptions& options = {});
  Tensor operator()(const Tensor& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) const;
  void fields(Fields& f) override;
  Parameter weight;
  EmbeddingBagOptions options;
};

}  // namespace volta::nn

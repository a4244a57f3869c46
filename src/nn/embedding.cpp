// Layers of embeddings.
#include <volta/nn/embedding.h>

#include <volta/create.h>
#include <volta/nn/init.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "core/check.h"
#include "ops/embedding.h"

namespace volta::nn {

namespace {
Parameter table(int64_t rows, int64_t dim, const std::optional<int64_t>& padding, const char* layer) {
  positive(rows, layer, "num_embeddings"), positive(dim, layer, "embedding_dim");
  Parameter weight = blamed_on(layer, [&] { return randn({rows, dim}); });
  if (padding) init::zeros_(weight.detach().select(0, checked_padding(weight, *padding, layer)));
  return weight;
}
}  // namespace

Embedding::Embedding(Int rows, Int dim, const EmbeddingOptions& o)
    : Layer("Embedding"), weight(table(rows, dim, o.padding_idx, "Embedding")), options(o) {
  check_norm(o.max_norm, o.norm_type, type());
}
Embedding Embedding::from_pretrained(const Tensor& values, bool freeze, const EmbeddingOptions& o) {
  if (values.checked("Embedding").dim() != 2)
    throw Error(Error::Kind::shape, "Embedding", "a table is [rows, dim], not " + values.shape().str());
  Embedding made(values.size(0), values.size(1), o);
  made.weight = Parameter(values.detach().clone(), !freeze);
  return made;
}
Tensor Embedding::operator()(const Tensor& indices) const {
  return call(indices, [&](const Tensor& in) {
    const bool plain = !options.padding_idx && !options.max_norm && !options.scale_grad_by_freq;
    return plain ? embedding(in, weight) : embedding(in, weight, options);
  });
}
void Embedding::fields(Fields& f) { f("weight", weight); }

EmbeddingBag::EmbeddingBag(Int rows, Int dim, const EmbeddingBagOptions& o)
    : Layer("EmbeddingBag"), weight(table(rows, dim, o.padding_idx, "EmbeddingBag")), options(o) {
  o.mode.of(type(), "mode");
  check_norm(o.max_norm, o.norm_type, type());
}
Tensor EmbeddingBag::operator()(const Tensor& indices, const Tensor& offsets, const Tensor& sample_weights) const {
  return call(indices, [&](const Tensor& in) { return embedding_bag(in, weight, offsets, options, sample_weights); });
}
void EmbeddingBag::fields(Fields& f) { f("weight", weight); }

}  // namespace volta::nn

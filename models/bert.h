// The BERT encoder of Devlin et al. 2018, with the names of its published weights:
// embeddings.word_embeddings.weight, encoder.layer.0.attention.self.query.weight, pooler.dense.bias.
#pragma once
#include <volta/volta.h>

#include <cmath>
#include <optional>
#include <vector>

namespace volta::models {

struct BertConfig {
  int64_t vocab = 30522, width = 768, layers = 12, heads = 12, intermediate = 3072, context = 512, types = 2;
  double dropout = 0.1, eps = 1e-12;
  bool pooler = true;  // the Hub's BertForMaskedLM, BertForTokenClassification and BertForQuestionAnswering have none
};

struct BertEmbeddings {
  BertConfig config;
  nn::Embedding word_embeddings{config.vocab, config.width, {.padding_idx = 0}};
  nn::Embedding position_embeddings{config.context, config.width}, token_type_embeddings{config.types, config.width};
  nn::LayerNorm LayerNorm{config.width, {.eps = config.eps}};
  nn::Dropout dropout{config.dropout};

  Tensor operator()(const Tensor& ids, const Tensor& types) const {
    const Tensor x = word_embeddings(ids) + position_embeddings.weight.slice(0, 0, ids.size(1));
    return dropout(LayerNorm(x + token_type_embeddings(types.defined() ? types : zeros_like(ids))));
  }
};

inline const BertConfig& checked(const BertConfig& config) {
  if (config.heads < 1 || config.width % config.heads != 0)
    throw Error(Error::Kind::argument, "BERT",
                "a width of " + std::to_string(config.width) + " cannot be divided among " +
                    std::to_string(config.heads) + " heads");
  return config;
}

struct BertSelfAttention {
  BertConfig config;
  nn::Linear query{checked(config).width, config.width}, key{config.width, config.width},
      value{config.width, config.width};

  Tensor operator()(const Tensor& x, const Tensor& mask) const {
    const auto [batch, time, width] = sizes<3>(x);
    const Shape split = {batch, time, config.heads, width / config.heads};
    const auto heads = [&](const nn::Linear& l) { return l(x).view(split).transpose(1, 2); };
    const double dropout = query.training ? config.dropout : 0;
    const Tensor y =
        scaled_dot_product_attention(heads(query), heads(key), heads(value), {.attn_mask = mask, .dropout_p = dropout});
    return y.transpose(1, 2).reshape(x.shape());
  }
};

// A linear layer whose result is added to `input` and normalised.
struct BertOutput {
  BertConfig config;
  int64_t in;
  nn::Linear dense{in, config.width};
  nn::LayerNorm LayerNorm{config.width, {.eps = config.eps}};
  nn::Dropout dropout{config.dropout};
  Tensor operator()(const Tensor& x, const Tensor& input) const { return LayerNorm(dropout(dense(x)) + input); }
};

struct BertAttention {
  BertConfig config;
  BertSelfAttention self{config};
  BertOutput output{config, config.width};
  Tensor operator()(const Tensor& x, const Tensor& mask) const { return output(self(x, mask), x); }
};

struct BertIntermediate {
  BertConfig config;
  nn::Linear dense{config.width, config.intermediate};
  Tensor operator()(const Tensor& x) const { return gelu(dense(x)); }
};

struct BertLayer {
  BertConfig config;
  BertAttention attention{config};
  BertIntermediate intermediate{config};
  BertOutput output{config, config.intermediate};
  Tensor operator()(Tensor x, const Tensor& mask) const {
    x = attention(x, mask);
    return output(intermediate(x), x);
  }
};

struct BertEncoder {
  BertConfig config;
  std::vector<BertLayer> layer = nn::repeat<BertLayer>(config.layers, config);
};

struct BertPooler {
  BertConfig config;
  nn::Linear dense{config.width, config.width};
  Tensor operator()(const Tensor& x) const { return tanh(dense(x.select(1, 0))); }
};

// models::Bert net{{.layers = 2}}; auto [hidden, pooled] = net(ids, attended); `attended` [n, t] is 1 where a token counts.
struct Bert {
  struct Output {
    Tensor hidden, pooled;  // [n, t, width] and, with a pooler, [n, width]
  };
  BertConfig config;
  BertEmbeddings embeddings{config};
  BertEncoder encoder{config};
  std::optional<BertPooler> pooler = config.pooler ? std::optional(BertPooler{config}) : std::nullopt;

  Output operator()(const Tensor& ids, const Tensor& attended = {}, const Tensor& types = {}) const {
    Tensor mask, x = embeddings(ids, types);
    if (attended.defined()) mask = (attended != 0).unsqueeze(1).unsqueeze(1);
    for (const BertLayer& layer : encoder.layer) x = layer(x, mask);
    return {x, pooler ? (*pooler)(x) : Tensor()};
  }
};

}  // namespace volta::models

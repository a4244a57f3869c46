// GPT-2 of Radford et al. 2019, with its names: wte.weight, h.0.attn.c_attn.weight, h.0.mlp.c_fc.bias, ln_f.weight.
// Weights are [out, in] as everywhere here; GPT-2's own files hold those of c_attn, c_proj and c_fc transposed.
#pragma once
#include <volta/volta.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace volta::models {

struct GPTConfig {
  int64_t vocab = 50257, context = 1024, width = 768, heads = 12, layers = 12;
  double dropout = 0.1;
};

inline const GPTConfig& checked(const GPTConfig& config) {
  if (config.heads < 1 || config.width % config.heads != 0)
    throw Error(Error::Kind::argument, "GPT",
                "a width of " + std::to_string(config.width) + " cannot be divided among " +
                    std::to_string(config.heads) + " heads");
  return config;
}

struct GPTAttention {
  GPTConfig config;
  nn::Linear c_attn{checked(config).width, 3 * config.width}, c_proj{config.width, config.width};
  nn::Dropout drop{config.dropout};

  // With a cache, x are the steps after those it holds.
  Tensor operator()(const Tensor& x, nn::KeyValueCache* cache = nullptr) const {
    const auto [batch, time, width] = sizes<3>(x);
    const Tensor qkv = c_attn(x).view({batch, time, 3, config.heads, width / config.heads}).permute({2, 0, 3, 1, 4});
    Tensor k = qkv[1], v = qkv[2];
    AttentionOptions options{.dropout_p = drop.training ? config.dropout : 0, .is_causal = true};
    if (cache) {
      const int64_t past = cache->size();
      std::tie(k, v) = cache->append(k, v);
      options.is_causal = past == 0;
      if (past > 0 && time > 1)
        options.attn_mask = ones({time, past + time}, {.dtype = boolean, .device = x.device()}).tril(past);
    }
    const Tensor y = scaled_dot_product_attention(qkv[0], k, v, options);
    return drop(c_proj(y.transpose(1, 2).reshape({batch, time, width})));
  }
};

struct GPTFeedForward {
  GPTConfig config;
  nn::Linear c_fc{config.width, 4 * config.width}, c_proj{4 * config.width, config.width};
  nn::Dropout drop{config.dropout};
  Tensor operator()(const Tensor& x) const { return drop(c_proj(gelu_tanh(c_fc(x)))); }
};

struct GPTBlock {
  GPTConfig config;
  nn::LayerNorm ln_1{config.width};
  GPTAttention attn{config};
  nn::LayerNorm ln_2{config.width};
  GPTFeedForward mlp{config};
  Tensor operator()(Tensor x, nn::KeyValueCache* cache = nullptr) const {
    x = x + attn(ln_1(x), cache);
    return x + mlp(ln_2(x));
  }
};

// models::GPT net = models::gpt({.vocab = 65, .context = 64, .width = 128, .heads = 4, .layers = 4});
// net(ids) gives logits [n, t, vocab] of [n, t]; the last layer shares wte's weight. Decoding step by step, with NoGrad:
// std::vector<nn::KeyValueCache> caches; net(prompt, &caches); net(next, &caches) for the tokens that follow.
struct GPT {
  GPTConfig config;
  nn::Embedding wte{config.vocab, config.width}, wpe{config.context, config.width};
  nn::Dropout drop{config.dropout};
  std::vector<GPTBlock> h = nn::repeat<GPTBlock>(config.layers, config);
  nn::LayerNorm ln_f{config.width};

  Tensor operator()(const Tensor& ids, std::vector<nn::KeyValueCache>* caches = nullptr) const {
    if (caches) caches->resize(h.size());
    const int64_t past = caches && !h.empty() ? caches->front().size() : 0;
    if (past + ids.size(1) > config.context)
      throw Error(Error::Kind::shape, "GPT",
                  std::to_string(past) + " tokens before " + std::to_string(ids.size(1)) +
                      " more leave the context of " + std::to_string(config.context));
    Tensor x = drop(wte(ids) + wpe.weight.slice(0, past, past + ids.size(1)));
    for (size_t i = 0; i < h.size(); ++i) x = h[i](x, caches ? &(*caches)[i] : nullptr);
    return linear(ln_f(x), wte.weight);
  }
};

// As GPT-2 starts: normal with deviation 0.02, what is added to the residual stream smaller by its number of terms.
inline GPT gpt(const GPTConfig& config = {}) {
  GPT net{config};
  apply<nn::Embedding>(net, [](nn::Embedding& e) { nn::init::normal_(e.weight, 0, 0.02); });
  apply<nn::Linear>(net, [](nn::Linear& l) { nn::init::normal_(l.weight, 0, 0.02), nn::init::zeros_(l.bias); });
  for (GPTBlock& block : net.h)
    for (nn::Linear* last : {&block.attn.c_proj, &block.mlp.c_proj})
      nn::init::normal_(last->weight, 0, 0.02 / std::sqrt(2.0 * double(config.layers)));
  return net;
}

struct GenerateOptions {
  int64_t tokens = 100;
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // 0, or more than there are: all
  bool use_cache = true;   // keep keys and values of the steps so far; without, each step runs over all of them
};

// ids [n, t] with new tokens appended: generate(net, prompt, {.tokens = 50, .temperature = 0.8}).
inline Tensor generate(const GPT& net, Tensor ids, const GenerateOptions& options = {}) {
  const NoGrad off;
  std::vector<nn::KeyValueCache> caches;
  int64_t done = 0;  // steps in the caches
  for (int64_t i = 0; i < options.tokens; ++i) {
    const int64_t length = ids.size(1), begin = std::max<int64_t>(0, length - net.config.context);
    const bool cached = options.use_cache && begin == 0;  // past the context every position moves
    const Tensor steps = ids.slice(1, cached ? done : begin, length);
    Tensor logits = net(steps, cached ? &caches : nullptr).select(1, -1);
    done = length;
    if (options.temperature == 0) {
      ids = cat({ids, logits.argmax(-1, true)}, 1);
      continue;
    }
    logits = logits / options.temperature;
    if (options.top_k > 0 && options.top_k < logits.size(1)) {
      const Tensor least = topk(logits, options.top_k, -1).values.slice(1, options.top_k - 1, options.top_k);
      logits = logits.masked_fill(logits < least, -INFINITY);
    }
    ids = cat({ids, multinomial(softmax(logits, -1), 1)}, 1);
  }
  return ids;
}

}  // namespace volta::models

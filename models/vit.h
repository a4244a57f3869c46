// Vision transformer of Dosovitskiy et al. 2020, with torchvision's names:
// class_token, conv_proj.weight, encoder.layers.encoder_layer_0.self_attention.in_proj_weight, heads.head.bias.
#pragma once
#include <volta/volta.h>

#include <string>

namespace volta::models {

struct ViTConfig {
  int64_t image = 224, patch = 16, channels = 3, classes = 1000;
  int64_t width = 768, layers = 12, heads = 12, hidden = 3072;
  double dropout = 0;
  int64_t tokens() const { return (image / patch) * (image / patch) + 1; }
};

struct ViTBlock {
  ViTConfig config;
  nn::LayerNorm ln_1{config.width, {.eps = 1e-6}};
  nn::MultiheadAttention self_attention{config.width, config.heads, {.dropout = config.dropout, .batch_first = true}};
  nn::LayerNorm ln_2{config.width, {.eps = 1e-6}};
  nn::Sequential mlp{nn::Linear(config.width, config.hidden), nn::GELU(), nn::Dropout(config.dropout),
                     nn::Linear(config.hidden, config.width), nn::Dropout(config.dropout)};
  Tensor operator()(Tensor x) const {
    const Tensor y = ln_1(x);
    x = x + self_attention(y, y, y, {.need_weights = false}).output;
    return x + mlp(ln_2(x));
  }
};

struct ViTEncoder {
  ViTConfig config;
  nn::Parameter pos_embedding = randn({1, config.tokens(), config.width}) * 0.02;
  nn::Dropout dropout{config.dropout};
  nn::Dict<ViTBlock> layers = make_layers(config);
  nn::LayerNorm ln{config.width, {.eps = 1e-6}};

  static nn::Dict<ViTBlock> make_layers(const ViTConfig& config) {
    nn::Dict<ViTBlock> layers;
    for (int64_t i = 0; i < config.layers; ++i) layers.add("encoder_layer_" + std::to_string(i), ViTBlock{config});
    return layers;
  }
  Tensor operator()(Tensor x) const {
    x = dropout(x + pos_embedding);
    for (const auto& [name, layer] : layers) x = layer(x);
    return ln(x);
  }
};

struct ViTHeads {
  ViTConfig config;
  nn::Linear head{config.width, config.classes};
  Tensor operator()(const Tensor& x) const { return head(x); }
};

// models::ViT net{{.image = 32, .patch = 4, .width = 64}}; net(images) for [n, 3, 32, 32].
struct ViT {
  ViTConfig config;
  nn::Parameter class_token = zeros({1, 1, config.width});
  nn::Conv2d conv_proj{config.channels, config.width, config.patch, {.stride = config.patch}};
  ViTEncoder encoder{config};
  ViTHeads heads{config};

  Tensor operator()(const Tensor& images) const {
    const Tensor patches = conv_proj(images).flatten(2).transpose(1, 2);
    const Tensor token = class_token.expand({images.size(0), 1, config.width});
    return heads(encoder(cat({token, patches}, 1)).select(1, 0));
  }
};

}  // namespace volta::models

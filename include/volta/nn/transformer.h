// Transformer layers, with PyTorch's parameter names.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <volta/nn/attention.h>
#include <volta/nn/dropout.h>
#include <volta/nn/norm.h>

namespace volta::nn {

// [size, size] with 0 where a key is seen and -inf after: nn::generate_square_subsequent_mask(16).
[[nodiscard]] Tensor generate_square_subsequent_mask(Int size, const Options& options = {});

enum class TransformerActivation { relu, gelu };
constexpr std::array<std::string_view, 2> choice_names(TransformerActivation) { return {"relu", "gelu"}; }
struct TransformerOptions {
  Int dim_feedforward = 2048;
  double dropout = 0.1;
  Choice<TransformerActivation> activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
};
// Masks as of MultiheadAttention.
struct EncoderInput {
  Tensor mask = {}, src_key_padding_mask = {};
  bool is_causal = false;
  // Decoding step by step, without gradients: what is given are the steps after those in the cache.
  KeyValueCache* cache = nullptr;                // of a TransformerEncoderLayer
  std::vector<KeyValueCache>* caches = nullptr;  // of a TransformerEncoder, one for each layer; an empty list is filled
};
struct DecoderInput {
  Tensor tgt_mask = {}, memory_mask = {}, tgt_key_padding_mask = {}, memory_key_padding_mask = {};
  bool tgt_is_causal = false, memory_is_causal = false;
};

// nn::TransformerEncoderLayer layer(512, 8); layer(x).
class TransformerEncoderLayer : public Layer {
 public:
  TransformerEncoderLayer(Int d_model, Int nhead, const TransformerOptions& options = {});
  Tensor operator()(const Tensor& src, const EncoderInput& input = {}) const;
  void fields(Fields& f) override;
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;
  TransformerOptions options;
};

// nn::TransformerDecoderLayer layer(512, 8); layer(tgt, memory, {.tgt_is_causal = true}).
class TransformerDecoderLayer : public Layer {
 public:
  TransformerDecoderLayer(Int d_model, Int nhead, const TransformerOptions& options = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderInput& input = {}) const;
  void fields(Fields& f) override;
  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout, dropout1, dropout2, dropout3;
  TransformerOptions options;
};

// Copies of a layer one after the other: nn::TransformerEncoder(layer, 6)(x).
class TransformerEncoder : public Layer {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, Int num_layers, std::optional<LayerNorm> norm = {});
  Tensor operator()(const Tensor& src, const EncoderInput& input = {}) const;
  void fields(Fields& f) override;
  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;
};
class TransformerDecoder : public Layer {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, Int num_layers, std::optional<LayerNorm> norm = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderInput& input = {}) const;
  void fields(Fields& f) override;
  std::vector<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;
};

// nn::Transformer(512, 8, 6, 6)(src, tgt, {.mask = …}, {.tgt_is_causal = true}).
class Transformer : public Layer {
 public:
  explicit Transformer(Int d_model = 512, Int nhead = 8, Int num_encoder_layers = 6, Int num_decoder_layers = 6,
                       const TransformerOptions& options = {});
  Tensor operator()(const Tensor& src, const Tensor& tgt, const EncoderInput& encoder_input = {},
                    const DecoderInput& decoder_input = {}) const;
  void fields(Fields& f) override;
  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace volta::nn

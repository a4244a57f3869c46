// Transformer layers: attention and feed-forward blocks with their norms and residual sums.
#include <volta/nn/transformer.h>

#include <limits>

#include <volta/create.h>
#include <volta/nn/init.h>
#include <volta/nn/model.h>
#include <volta/nn/reflect.h>
#include <volta/ops.h>

#include "core/arguments.h"
#include "nn/cache.h"
#include "ops/check.h"

namespace volta::nn {
namespace {

MultiheadAttention attention(int64_t width, int64_t heads, const TransformerOptions& o) {
  MultiheadOptions m;
  m.dropout = o.dropout, m.bias = o.bias, m.batch_first = o.batch_first;
  return {width, heads, m};
}
LayerNorm layer_norm_of(int64_t width, const TransformerOptions& o) {
  return LayerNorm(width, {.eps = o.layer_norm_eps, .bias = o.bias});
}

// linear2(dropout(activation(linear1(x)))), of an encoder or decoder layer.
template <class L> Tensor feed_forward(const L& l, const Tensor& x) {
  const Tensor h = l.linear1(x);
  return l.linear2(l.dropout(l.options.activation == TransformerActivation::relu ? relu(h) : gelu(h)));
}

// x + block(norm(x)), or norm(x + block(x)).
template <class F> Tensor residual(const Tensor& x, const LayerNorm& norm, bool norm_first, F block) {
  return norm_first ? x + block(norm(x)) : norm(x + block(x));
}

}  // namespace

Tensor generate_square_subsequent_mask(Int size, const Options& options) {
  require(size >= 0, ErrorKind::argument, "generate_square_subsequent_mask", "size ", size, " is negative");
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), options), 1);
}

TransformerEncoderLayer::TransformerEncoderLayer(Int width, Int heads, const TransformerOptions& o)
    : Layer("TransformerEncoderLayer"),
      self_attn(attention(width, heads, o)),
      linear1(width, o.dim_feedforward, {o.bias}),
      linear2(o.dim_feedforward, width, {o.bias}),
      norm1(layer_norm_of(width, o)),
      norm2(layer_norm_of(width, o)),
      dropout(o.dropout),
      dropout1(o.dropout),
      dropout2(o.dropout),
      options(o) {
  o.activation.of(type(), "activation");
}
Tensor TransformerEncoderLayer::operator()(const Tensor& src, const EncoderInput& in) const {
  return call(src, [&](const Tensor& x) {
    require(!in.caches, ErrorKind::argument, type(), "one layer takes .cache, not .caches");
    return all_or_nothing(one(in.cache), [&] {
      const Tensor y = residual(x, norm1, options.norm_first, [&](const Tensor& h) {
        MultiheadInput input{in.src_key_padding_mask, in.mask, in.is_causal};
        input.cache = in.cache;
        return dropout1(self_attn(h, h, h, input).output);
      });
      return residual(y, norm2, options.norm_first, [&](const Tensor& h) { return dropout2(feed_forward(*this, h)); });
    });
  });
}
void TransformerEncoderLayer::fields(Fields& f) {
  f("self_attn", self_attn), f("linear1", linear1), f("dropout", dropout), f("linear2", linear2);
  f("norm1", norm1), f("norm2", norm2), f("dropout1", dropout1), f("dropout2", dropout2);
}

TransformerDecoderLayer::TransformerDecoderLayer(Int width, Int heads, const TransformerOptions& o)
    : Layer("TransformerDecoderLayer"),
      self_attn(attention(width, heads, o)),
      multihead_attn(attention(width, heads, o)),
      linear1(width, o.dim_feedforward, {o.bias}),
      linear2(o.dim_feedforward, width, {o.bias}),
      norm1(layer_norm_of(width, o)),
      norm2(layer_norm_of(width, o)),
      norm3(layer_norm_of(width, o)),
      dropout(o.dropout),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      options(o) {
  o.activation.of(type(), "activation");
}
Tensor TransformerDecoderLayer::operator()(const Tensor& tgt, const Tensor& memory, const DecoderInput& in) const {
  return call(tgt, [&](const Tensor& x) {
    const bool first = options.norm_first;
    const Tensor y = residual(x, norm1, first, [&](const Tensor& h) {
      return dropout1(self_attn(h, h, h, {in.tgt_key_padding_mask, in.tgt_mask, in.tgt_is_causal}).output);
    });
    const Tensor z = residual(y, norm2, first, [&](const Tensor& h) {
      const MultiheadInput masks{in.memory_key_padding_mask, in.memory_mask, in.memory_is_causal};
      return dropout2(multihead_attn(h, memory, memory, masks).output);
    });
    return residual(z, norm3, first, [&](const Tensor& h) { return dropout3(feed_forward(*this, h)); });
  });
}
void TransformerDecoderLayer::fields(Fields& f) {
  f("self_attn", self_attn), f("multihead_attn", multihead_attn), f("linear1", linear1), f("dropout", dropout);
  f("linear2", linear2), f("norm1", norm1), f("norm2", norm2), f("norm3", norm3);
  f("dropout1", dropout1), f("dropout2", dropout2), f("dropout3", dropout3);
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, Int n, std::optional<LayerNorm> last)
    : Layer("TransformerEncoder"),
      layers(size_t(layer_count(n, "TransformerEncoder", "num_layers")), layer),
      norm(std::move(last)) {}
Tensor TransformerEncoder::operator()(const Tensor& src, const EncoderInput& in) const {
  return call(src, [&](const Tensor& x) {
    require(!layers.empty(), ErrorKind::argument, type(), "has no layers: it was moved from");
    require(!in.cache, ErrorKind::argument, type(), "takes .caches, one for each layer, not .cache");
    require(!in.caches || in.caches->empty() || in.caches->size() == layers.size(), ErrorKind::argument, type(),
            in.caches ? in.caches->size() : 0, " caches for ", layers.size(), " layers");
    if (in.caches) in.caches->resize(layers.size());
    EncoderInput own = in;
    own.caches = nullptr;
    return all_or_nothing(in.caches ? std::span(*in.caches) : std::span<KeyValueCache>(), [&] {
      Tensor y = x;
      for (size_t i = 0; i < layers.size(); ++i) {
        own.cache = in.caches ? &(*in.caches)[i] : nullptr;
        y = layers[i](y, own);
      }
      return norm ? (*norm)(y) : y;
    });
  });
}
void TransformerEncoder::fields(Fields& f) { f("layers", layers), f("norm", norm); }

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, Int n, std::optional<LayerNorm> last)
    : Layer("TransformerDecoder"),
      layers(size_t(layer_count(n, "TransformerDecoder", "num_layers")), layer),
      norm(std::move(last)) {}
Tensor TransformerDecoder::operator()(const Tensor& tgt, const Tensor& memory, const DecoderInput& in) const {
  return call(tgt, [&](const Tensor& x) {
    require(!layers.empty(), ErrorKind::argument, type(), "has no layers: it was moved from");
    Tensor y = x;
    for (const auto& layer : layers) y = layer(y, memory, in);
    return norm ? (*norm)(y) : y;
  });
}
void TransformerDecoder::fields(Fields& f) { f("layers", layers), f("norm", norm); }

Transformer::Transformer(Int width, Int heads, Int encoders, Int decoders, const TransformerOptions& o)
    : Layer("Transformer"),
      encoder(TransformerEncoderLayer(width, heads, o), encoders, layer_norm_of(width, o)),
      decoder(TransformerDecoderLayer(width, heads, o), decoders, layer_norm_of(width, o)) {
  for (const Tensor& p : parameters(*this))
    if (p.dim() > 1) init::xavier_uniform_(p);
}
Tensor Transformer::operator()(const Tensor& src, const Tensor& tgt, const EncoderInput& e,
                               const DecoderInput& d) const {
  return call(src, [&](const Tensor& x) { return decoder(tgt, encoder(x, e), d); });
}
void Transformer::fields(Fields& f) { f("encoder", encoder), f("decoder", decoder); }

}  // namespace volta::nn

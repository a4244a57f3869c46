// Attention: the function, positions, and the multi-head layer with its key-value cache.
#pragma once
#include <volta/nn/dropout.h>
#include <volta/nn/linear.h>

namespace volta {

struct AttentionOptions {
  Tensor attn_mask = {};  // boolean: true where a key is seen; floating: added to the scores. Broadcasts to them
  double dropout_p = 0;   // of the weights
  bool is_causal = false;  // query i sees keys 0 … i; may go with a mask
  std::optional<double> scale = {};  // 1 / sqrt(width)
  bool enable_gqa = false;           // groups of query heads share a key head
};
// softmax(q k^T scale + mask) v over [..., heads, time, width], without the matrix of scores:
// scaled_dot_product_attention(q, k, v, {.is_causal = true}). A query that sees no key gets zeros, and gives none back.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace volta

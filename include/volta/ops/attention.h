// Attention as a function, and positions.
#pragma once
#include <volta/create.h>
#include <volta/tensor.h>

namespace volta {

struct AttentionOptions {
  Tensor attn_mask = {};   // boolean: true where a key is seen; floating: added to the scores. Broadcasts to them
  double dropout_p = 0;    // of the weights
  bool is_causal = false;  // query i sees keys 0 … i; may go with a mask
  std::optional<double> scale = {};  // 1 / sqrt(width)
  bool enable_gqa = false;           // groups of query heads share a key head
};
// softmax(q k^T scale + mask) v over [..., heads, time, width], without the matrix of scores:
// scaled_dot_product_attention(q, k, v, {.is_causal = true}). A query that sees no key gets zeros, and gives none back.
// The gradient of a mask, where one is wanted, does take that matrix.
[[nodiscard]] Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const AttentionOptions& options = {});

// Sines and cosines of falling frequencies, [length, width]: x + sinusoidal_positions(x.size(1), x.size(2)).
[[nodiscard]] Tensor sinusoidal_positions(Int length, Int width, double base = 10000, const Options& options = {});

struct RotaryOptions {
  Int offset = 0;  // the position of the first step
  double base = 10000;
  bool interleaved = false;  // pairs are neighbours, not halves
};
// Pairs of features of [..., time, width] turned by angles that grow with the position: rotary_positions(q).
[[nodiscard]] Tensor rotary_positions(const Tensor& x, const RotaryOptions& options = {});

}  // namespace volta

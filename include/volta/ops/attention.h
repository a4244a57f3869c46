// Options of attention and of positions.
#pragma once
#include <volta/create.h>
#include <volta/tensor.h>

namespace volta {

struct AttentionOptions {
  Tensor attn_mask = {};   // boolean: true where a key is seen; floating: added to the scores. Broadcasts to them.
                           // Its gradient takes the whole matrix of scores
  double dropout_p = 0;    // of the weights
  bool is_causal = false;  // query i sees keys 0 … i; may go with a mask
  std::optional<double> scale = {};  // 1 / sqrt(width)
  bool enable_gqa = false;           // groups of query heads share a key head
};

// Sines and cosines of falling frequencies, [length, width]: x + sinusoidal_positions(x.size(1), x.size(2)).
[[nodiscard]] Tensor sinusoidal_positions(Int length, Int width, double base = 10000, const Options& options = {});

struct RotaryOptions {
  Int offset = 0;  // the position of the first step
  double base = 10000;
  bool interleaved = false;  // pairs are neighbours, not halves
};

}  // namespace volta

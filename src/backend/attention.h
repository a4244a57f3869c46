// The fused loop of attention, forward and backward.
#pragma once
#include "backend/backend.h"

namespace volta {

// out = softmax(q k^T scale + mask) v for each matrix of the batch axes; the score matrix is never kept. The Args have one
// rank: q [..., heads, queries, width], k [..., few heads, keys, width], v [..., few heads, keys, value width]; query
// head h meets key head h / (heads / few heads). The mask is boolean (true: seen) or of the compute dtype, and has the
// shape of the scores with stride 0 where it broadcasts. A query that sees no key gets zeros. Element (b, h, i, j) of the
// weights is dropped by element number ((b heads + h) queries + i) keys + j of the uniform stream.
struct AttentionCall {
  Arg q, k, v, mask, out;
  Arg logsumexp;  // [..., heads, queries] in the compute dtype, contiguous: written forward, read backward
  double scale;
  bool causal;  // query i sees keys 0 … i
  double dropout = 0;
  uint64_t seed = 0, offset = 0;
};

// The operands as the forward call left them; what is written is contiguous.
struct AttentionBackwardCall : AttentionCall {
  Arg grad_out, grad_k, grad_v;
  Arg grad_q;  // in the compute dtype
};

}  // namespace volta

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
  bool backward;
  Arg q, k, v, mask, out;
  Arg logsumexp;  // [..., heads, queries] in the compute dtype: written forward, read backward
  double scale;
  bool causal;  // query i sees keys 0 … i
  double dropout = 0;
  uint64_t seed = 0, offset = 0;
  Arg grad_out, grad_k, grad_v;
  Arg grad_q;  // in the compute dtype, zeros, [parts, ...]: the sum over parts is the gradient
};

// Parts of grad_q: keys are cut into so many pieces that run at the same time. By shape alone.
inline int64_t attend_parts(int64_t matrices, int64_t keys) {
  const int64_t wanted = matrices >= 8 ? 1 : (8 + matrices - 1) / (matrices > 0 ? matrices : 1);
  const int64_t most = keys / 256 + 1;
  return wanted < most ? wanted : most;
}

}  // namespace volta

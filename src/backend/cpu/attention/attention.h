// What the driver of attention and its kernels share: one head as matrices.
#pragma once
#include "backend/attention.h"
#include "backend/cpu/gemm/plan.h"
#include "backend/cpu/isa.h"

namespace volta::cpu {

struct HeadMatrix {
  void* data = nullptr;
  int64_t row = 0, column = 0;  // strides in elements
};

// One query head and the key head it meets.
struct AttendHead {
  int64_t queries, keys, width, value_width;
  HeadMatrix q, k, v, mask, out, grad_out, grad_q, grad_k, grad_v;
  void *logsumexp, *delta;  // a number per query; delta: sum of grad_out * out
  bool boolean_mask, causal;
  double scale;
  double dropout;
  uint64_t seed, offset, first;  // first: number of its first weight in the random stream
};

inline constexpr int64_t attend_block = 96;  // queries, or keys, whose scores are kept at a time

struct AttentionKernel {
  void (*forward)(const AttendHead& head, Range queries);  // at most attend_block of them
  void (*delta)(const AttendHead& head);
  void (*backward)(const AttendHead* heads, int64_t count, Range keys);  // of heads that share k and v
};
template <Isa> AttentionKernel attention_kernel(DType dtype);

}  // namespace volta::cpu

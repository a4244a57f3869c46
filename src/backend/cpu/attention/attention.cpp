// Attention on the CPU: cuts the heads into blocks of queries (forward) or pieces of keys (backward) and runs them.
#include "backend/cpu/attention/attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backend/cpu/cpu.h"
#include "core/parallel.h"

namespace volta::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The heads of a call: addresses of number i of the batch axes.
class Heads {
 public:
  explicit Heads(const AttentionBackwardCall& call) : Heads(call, {call.grad_out, call.grad_k, call.grad_v}) {}
  explicit Heads(const AttentionCall& call, const std::array<Arg, 3>& gradients = {})
      : call_(call), gradients_(gradients), rank_(call.q.layout->rank()) {
    const Shape &q = call.q.layout->shape, &k = call.k.layout->shape;
    for (int i = 0; i + 2 < rank_; ++i) count *= q[i];
    if (rank_ > 2 && k[rank_ - 3] > 0) group = q[rank_ - 3] / k[rank_ - 3];
    head_.queries = q[rank_ - 2], head_.width = q[rank_ - 1];
    head_.keys = k[rank_ - 2], head_.value_width = call.v.layout->shape[rank_ - 1];
    head_.causal = call.causal, head_.boolean_mask = call.mask.dtype == boolean;
    head_.scale = call.scale, head_.dropout = call.dropout;
    head_.seed = call.seed, head_.offset = call.offset;
  }

  AttendHead operator[](int64_t index) const {
    AttendHead h = head_;
    h.q = matrix(call_.q, index, 1), h.out = matrix(call_.out, index, 1), h.mask = matrix(call_.mask, index, 1);
    h.k = matrix(call_.k, index, group), h.v = matrix(call_.v, index, group);
    h.grad_out = matrix(gradients_[0], index, 1);
    h.grad_k = matrix(gradients_[1], index, group), h.grad_v = matrix(gradients_[2], index, group);
    h.first = uint64_t(index) * uint64_t(h.queries) * uint64_t(h.keys);
    h.logsumexp = number(call_.logsumexp, index * h.queries);
    return h;
  }
  const AttendHead& any() const { return head_; }

  int64_t count = 1, group = 1;  // query heads in all, and those that share a key head

 private:
  static void* number(const Arg& x, int64_t at) {
    return x.data ? static_cast<char*>(x.data) + at * size_of(x.dtype) : nullptr;
  }
  HeadMatrix matrix(const Arg& x, int64_t index, int64_t shared) const {
    if (!x.data) return {};
    const Layout& l = *x.layout;
    int64_t at = 0;
    for (int i = rank_ - 3; i >= 0; --i) {
      const int64_t size = call_.q.layout->shape[i], here = index % size;
      at += (i == rank_ - 3 ? here / shared : here) * l.strides[i];
      index /= size;
    }
    return {number(x, at), l.strides[rank_ - 2], l.strides[rank_ - 1]};
  }

  const AttentionCall& call_;
  std::array<Arg, 3> gradients_;  // of out, k and v
  int rank_;
  AttendHead head_{};
};

AttentionKernel kernel_of(const AttentionCall& call) {
  return for_isa([&]<Isa level> { return attention_kernel<level>(call.q.dtype); });
}

// Pieces of keys that run at the same time, each with a gradient of q of its own. By shape alone.
int64_t key_pieces(int64_t matrices, int64_t keys) {
  const int64_t wanted = matrices >= 8 ? 1 : ceil_div(8, std::max<int64_t>(matrices, 1));
  return std::min(wanted, keys / 256 + 1);
}

}  // namespace

void attention(const AttentionCall& call) {
  const Heads heads(call);
  const AttentionKernel kernel = kernel_of(call);
  const int64_t queries = heads.any().queries, blocks = ceil_div(queries, attend_block);
  if (heads.count == 0 || blocks == 0) return;
  const int64_t size = ceil_div(ceil_div(queries, blocks), 8) * 8;
  parallel(heads.count * blocks, [&](int64_t i) {
    // Late queries see more when causal: the long parts come first.
    const int64_t begin = (blocks - 1 - i / heads.count) * size, n = std::min(size, queries - begin);
    if (n > 0) kernel.forward(heads[i % heads.count], {begin, n});
  });
}

void attention_backward(const AttentionBackwardCall& call) {
  const Heads heads(call);
  if (heads.count == 0) {  // no query head meets the key heads there may be
    for (const Arg& x : {call.grad_k, call.grad_v})
      std::memset(x.data, 0, size_t(x.layout->numel() * size_of(x.dtype)));
    return;
  }
  const AttentionKernel kernel = kernel_of(call);
  const int64_t queries = heads.any().queries, keys = heads.any().keys, size = size_of(call.grad_q.dtype);
  const int64_t shared = heads.count / heads.group, parts = key_pieces(shared, keys);
  const int64_t matrix = queries * heads.any().width, numbers = heads.count * matrix;
  IntrusivePtr<Storage> sums;
  if (parts > 1) sums = host_storage(parts * numbers * size, "attention");
  char* grad_q = static_cast<char*>(parts > 1 ? sums->data : call.grad_q.data);
  std::vector<char> deltas(size_t(heads.count * queries * size));
  const auto delta = [&](int64_t index) { return deltas.data() + index * queries * size; };
  parallel(heads.count, [&](int64_t i) {
    AttendHead h = heads[i];
    h.delta = delta(i);
    kernel.delta(h);
  });
  parallel(shared * parts, [&](int64_t i) {
    const int64_t part = i / shared, first = i % shared * heads.group;
    std::vector<AttendHead> group;
    char* own = grad_q + (part * heads.count + first) * matrix * size;
    std::memset(own, 0, size_t(heads.group * matrix * size));
    for (int64_t j = 0; j < heads.group; ++j) {
      group.push_back(heads[first + j]);
      group.back().delta = delta(first + j);
      group.back().grad_q = {own + j * matrix * size, heads.any().width, 1};
    }
    const int64_t begin = keys * part / parts, end = keys * (part + 1) / parts;
    kernel.backward(group.data(), heads.group, {begin, end - begin});
  });
  if (parts > 1) sum_parts(call.grad_q, sums->data, parts, numbers);
}

}  // namespace volta::cpu

// The CPU backend's loops.
#pragma once
#include <vector>

#include "backend/backend.h"

namespace volta::cpu {

void copy(const Arg& out, const Arg& in);
void elementwise(const ElementwiseCall& call);
void reduce(const ReduceCall& call);
void softmax(const SoftmaxCall& call);
void softmax_backward(const SoftmaxBackwardCall& call);
void scan(const ScanCall& call);
void gather(const GatherCall& call);
void scatter(const ScatterCall& call);
void sort(const SortCall& call);
void search(const SearchCall& call);
void iota(const Arg& out, Scalar start, Scalar step);
void fill_random(const RandomCall& call);
void matmul(const MatmulCall& call);
void conv(const ConvCall& call);
IntrusivePtr<Storage> keep_weights(ConvCall& call);
ConvAlgorithm chosen_algorithm(const ConvCall& call);  // x and w need only their dtype
bool offers_pool(const PoolCall& call);
void pool(const PoolCall& call);
void pool_backward(const PoolBackwardCall& call);
void norm(const NormCall& call);
void norm_backward(const NormBackwardCall& call);
void attention(const AttentionCall& call);
void attention_backward(const AttentionBackwardCall& call);
bool fuses_inputs(const RecurrentCall& call);
void recurrent(const RecurrentCall& call);
void recurrent_backward(const RecurrentBackwardCall& call);
bool offers_cross_entropy(const CrossEntropyCall& call);
void cross_entropy(const CrossEntropyCall& call);
void cross_entropy_backward(const CrossEntropyBackwardCall& call);
void update(const UpdateCall& call);
void positions(const PositionsCall& call);
IndexRange index_range(const Arg& index);  // of i64, not empty

// out = the sum of parts, `numbers` contiguous floats each; `out` is contiguous and of their dtype.
void sum_parts(const Arg& out, void* parts, int64_t count, int64_t numbers);

// Sorting and selection in one contiguous row. Order is total: NaN is the largest value, -0.0 equals +0.0, and of equal
// elements the one with the lower index comes first, also when descending, so every result is unique.
//
// The row sorted, and where each element came from. Long rows use several threads; for many rows, call it from several.
void sort_row(DType dtype, int64_t n, const void* in, void* values_out, int64_t* indices_out, bool descending);
// The k first elements of that order (descending for the largest), sorted, or in any order when `sorted` is false.
void topk_row(DType dtype, int64_t n, int64_t k, const void* in, void* values_out, int64_t* indices_out, bool largest,
              bool sorted);
// The element that ascending order puts at position k.
void nth_row(DType dtype, int64_t n, int64_t k, const void* in, void* value_out, int64_t* index_out);

}  // namespace volta::cpu

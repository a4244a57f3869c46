// The CPU backend's loops.
#pragma once
#include <vector>

#include "backend/backend.h"

namespace volta::cpu {

void copy(const Arg& out, const Arg& in);
void elementwise(const ElementwiseCall& call);
void reduce(const ReduceCall& call);
void softmax(const SoftmaxCall& call);
void scan(const ScanCall& call);
void gather(const GatherCall& call);
void scatter(const ScatterCall& call);
void sort(const SortCall& call);
void search(const SearchCall& call);
void iota(const Arg& out, Scalar start, Scalar step);
void fill_random(const RandomCall& call);
void matmul(const MatmulCall& call);
bool norm(const NormCall& call);
bool pool(const PoolCall& call);
bool attention(const AttentionCall& call);
bool recurrent(const RecurrentCall& call);

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

// Smallest and largest element of an i64 tensor that is not empty.
struct IndexRange {
  int64_t low, high;
};
IndexRange index_range(const Arg& index);

// Positions of the true elements of a mask. Borrows n contiguous bytes, each true when not 0.
class TruePositions {
 public:
  TruePositions(const uint8_t* mask, int64_t n);
  int64_t count() const { return starts_.back(); }
  void write(int64_t* out) const;  // in ascending order

 private:
  const uint8_t* mask_;
  int64_t n_;
  std::vector<int64_t> starts_;  // of each block's positions, and their number
};

}  // namespace volta::cpu

// The CPU backend's loops, one file each.
#pragma once
#include "backend/backend.h"

namespace volta::cpu {

void copy(const Arg& out, const Arg& in);
void map(const MapCall& call);
void fold(const FoldCall& call);
void rows(const RowCall& call);
void scan(const ScanCall& call);
void gather(const GatherCall& call);
void scatter(const ScatterCall& call);
void sort(const SortCall& call);
void search(const SearchCall& call);
void iota(const Arg& out, Scalar start, Scalar step);
void matmul(const MatmulCall& call);

// Smallest and largest element of an i64 tensor that is not empty.
struct IndexRange {
  int64_t low, high;
};
IndexRange index_range(const Arg& index);

}  // namespace volta::cpu

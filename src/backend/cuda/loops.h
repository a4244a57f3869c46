// The CUDA backend's loops, one file each.
#pragma once
#include "backend/backend.h"
#include "backend/cuda/context.h"

namespace volta::cuda {

void copy(Context& c, const Arg& out, const Arg& in);
void map(Context& c, const MapCall& call);
void fold(Context& c, const FoldCall& call);
void rows(Context& c, const RowCall& call);
void scan(Context& c, const ScanCall& call);
void gather(Context& c, const GatherCall& call);
void scatter(Context& c, const ScatterCall& call);
void sort(Context& c, const SortCall& call);
void search(Context& c, const SearchCall& call);
void random(Context& c, const RandomCall& call);
void iota(Context& c, const Arg& out, Scalar start, Scalar step);
void matmul(Context& c, const MatmulCall& call);

}  // namespace volta::cuda

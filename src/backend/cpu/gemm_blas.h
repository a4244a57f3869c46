// An optional BLAS behind gemm(), for builds with VOLTA_BLAS.
#pragma once
#include "backend/cpu/gemm.h"

namespace volta::cpu {

// Computes g with the BLAS and returns true, or returns false if there is none or it does not cover g. Whether a BLAS
// gives the same bits for every number of threads is up to it.
bool blas_gemm(const Gemm& g);

}  // namespace volta::cpu

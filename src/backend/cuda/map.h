// The pointwise kernels of the CUDA backend: what they take and where they are found.
#pragma once
#include <volta/kernel.h>

#include "backend/cuda/geometry.h"

namespace volta::cuda {

inline constexpr int max_inputs = PointOp::max_arity + 2;  // g, the operands, the output

// Everything contiguous, of one dtype, and aligned to 16 bytes; operands without an address are numbers.
struct PackCall {
  int64_t n;
  void* out;
  const void* in[max_inputs];
  float scalar[max_inputs];
};

// Anything else. The bits of `scalar` hold a number of the compute dtype.
struct StridedCall {
  Strided<max_inputs + 1> operands;  // the output first
  uint64_t scalar[max_inputs];
  DType out_dtype, dtype[max_inputs];
};

struct MapKernels {
  void (*packs[3])(PackCall) = {};                 // of f16, bf16, f32
  void (*strided[dtype_count])(StridedCall) = {};  // by compute dtype
  int packs_per_thread = 1, strided_per_thread = 2;
};

inline constexpr int map_parts = 8;
template <int Part> const MapKernels* map_part(int op, int kernel);  // of an op that falls to this part

}  // namespace volta::cuda

// The pointwise kernels of the CUDA backend: what they take and where they are found.
#pragma once
#include <volta/kernel.h>

#include "backend/cuda/geometry.h"

namespace volta::cuda {

inline constexpr int max_inputs = 5;  // g, three operands, the output

// Everything contiguous, of one dtype, and aligned to 16 bytes; operands without an address are numbers.
struct PackCall {
  int64_t n;
  void* out;
  const void* in[max_inputs];
  float scalar[max_inputs];
};

// Anything else. Operand 0 of the geometry is the output. The bits of `scalar` hold a number of the compute dtype.
struct StridedCall {
  Strided<max_inputs + 1> geometry;
  void* out;
  const void* in[max_inputs];
  uint64_t scalar[max_inputs];
  DType out_dtype, dtype[max_inputs];
};

using PackKernel = void (*)(PackCall);
using StridedKernel = void (*)(StridedCall);

struct MapKernels {
  PackKernel packs[3] = {};                 // of f16, bf16, f32
  StridedKernel strided[dtype_count] = {};  // by compute dtype
  int packs_per_thread = 1, strided_per_thread = 2;
};

inline constexpr int map_threads = 256, map_parts = 8;

const MapKernels* map_kernels(int op, int kernel);

}  // namespace volta::cuda

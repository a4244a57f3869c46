// Which instruction set the CPU kernels use, chosen once at run time.
//
// Convention: every file in a family's kernels/ is compiled once per level with VOLTA_ISA defined as baseline, v3 or v4
// (ARM64: baseline only); files in gemm/amx/ and gemm/bfloat/ (ARM64) only for the level of that name. Its code lives in
// namespace volta::cpu::VOLTA_ISA and specialises function templates of the level, found by for_isa. It calls no inline
// function of a shared header that might be emitted out of line: the linker would keep one copy for all levels.
#pragma once
#include <cstdint>

namespace volta::cpu {

// On x86-64: x86-64-v2, v3 (AVX2, FMA, F16C, BMI) and v4 (AVX-512 F, BW, CD, DQ, VL). Elsewhere baseline. With products
// of bf16 besides: amx (AMX-TILE, AMX-BF16), and on ARM64 bfloat.
enum class Isa : uint8_t { baseline, v3, v4, amx, bfloat };

// What this processor has, lowered by the environment variable VOLTA_ISA=baseline|v3|v4.
Isa isa();

// f<level>() for the best level that was built and that this machine has.
template <class F> decltype(auto) for_isa(F f) {
#if defined(VOLTA_HAVE_ISA_V4)
  if (isa() >= Isa::v4) return f.template operator()<Isa::v4>();
#endif
#if defined(VOLTA_HAVE_ISA_V3)
  if (isa() >= Isa::v3) return f.template operator()<Isa::v3>();
#endif
  return f.template operator()<Isa::baseline>();
}

}  // namespace volta::cpu

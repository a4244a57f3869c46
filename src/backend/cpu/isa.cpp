// Run-time detection of the instruction set.
#include "backend/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace volta::cpu {
namespace {

Isa detected() {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::baseline;
#elif defined(__aarch64__) && defined(__linux__)
  return getauxval(AT_HWCAP2) & HWCAP2_BF16 ? Isa::bfloat : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

Isa allowed() {
  const char* text = std::getenv("VOLTA_ISA");
  const std::string_view name = text ? text : "";
  return name == "baseline" ? Isa::baseline : name == "v3" ? Isa::v3 : name == "v4" ? Isa::v4 : Isa::bfloat;
}

}  // namespace

Isa isa() {
  static const Isa level = std::min(detected(), allowed());
  return level;
}

}  // namespace volta::cpu

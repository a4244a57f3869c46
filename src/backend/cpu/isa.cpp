// Run-time detection of the instruction set.
#include "backend/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace volta::cpu {
namespace {

#ifdef __x86_64__
// The registers are large: the kernel saves them only for processes that asked for them.
bool may_use_amx() {
#ifdef __linux__
  constexpr unsigned leaf = 7, bf16_bit = 1u << 22, tile_bit = 1u << 24;
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has = __get_cpuid_count(leaf, 0, &a, &b, &c, &d) && (d & bf16_bit) && (d & tile_bit);
  return has && syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}
#endif

Isa detected() {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4 && may_use_amx()) return Isa::amx;
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

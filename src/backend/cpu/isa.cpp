// Run-time detection of the instruction set.
#include "backend/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace volta::cpu {
namespace {

#ifdef __x86_64__
struct Cpuid {
  unsigned a = 0, b = 0, c = 0, d = 0;
  explicit Cpuid(unsigned leaf) { __get_cpuid_count(leaf, 0, &a, &b, &c, &d); }
};

bool has_f16c() { return Cpuid(1).c >> 29 & 1; }  // clang's __builtin_cpu_supports does not know the name

// The tile registers are large: Linux saves them only for processes that have asked for them.
bool has_amx() {
#if defined(VOLTA_HAVE_ISA_AMX) && defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  const unsigned features = Cpuid(7).d, bf16_bit = 1u << 22, tile_bit = 1u << 24;
  return (features & bf16_bit) && (features & tile_bit) && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}
#endif

Isa detected(Isa most) {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && has_f16c();
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const bool amx = v4 && most >= Isa::amx && has_amx();
  return std::min(most, amx ? Isa::amx : v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::baseline);
#elif defined(__aarch64__) && defined(__linux__)
  return std::min(most, getauxval(AT_HWCAP2) & HWCAP2_BF16 ? Isa::bfloat : Isa::baseline);
#else
  return std::min(most, Isa::baseline);
#endif
}

Isa allowed() {
  const char* text = std::getenv("VOLTA_ISA");
  const std::string_view name = text ? text : "";
  return name == "baseline" ? Isa::baseline : name == "v3" ? Isa::v3 : name == "v4" ? Isa::v4 : Isa::bfloat;
}

}  // namespace

Isa isa() {
  static const Isa level = detected(allowed());
  return level;
}

}  // namespace volta::cpu

// Asking the memory for what a loop will read later.
#pragma once
#include <cstdint>

namespace volta::detail {

// Neoverse's hardware prefetcher keeps fewer lines in flight than the memory can serve. Software prefetch 16 KiB ahead, at
// most 1 KiB at a time, raises the bandwidth of tensors larger than the caches by half. x86-64 needs no help.
#ifdef __aarch64__
inline constexpr bool prefetch_helps = true;
#else
inline constexpr bool prefetch_helps = false;
#endif
inline constexpr int64_t uncached_bytes = 4 << 20;  // a tensor of at least this size is not found in the caches

template <int64_t Bytes> [[gnu::always_inline]] static inline void prefetch_ahead(const void* from) {
  constexpr int64_t distance = 16 * 1024, line = 64;
  const auto at = reinterpret_cast<uintptr_t>(from) + distance;  // where nothing may lie that could be read
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 1  // unrolled, the distances would take up the registers
#endif
  for (int64_t i = 0; i < Bytes; i += line) __builtin_prefetch(reinterpret_cast<const void*>(at + uintptr_t(i)), 0, 1);
}

}  // namespace volta::detail

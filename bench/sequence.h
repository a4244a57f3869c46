// The sequence cases that both programs run.
#pragma once
#include "cases.h"

namespace bench {

inline constexpr std::int64_t attention_times[] = {128, 512, 2048, 8192};

// Counts `products` of queries with keys or values of [2, 8, time, 64], half of each when causal.
inline auto attention_flops(std::int64_t time, bool causal, double products) {
  const double pairs = static_cast<double>(time) * static_cast<double>(time);
  return flops(products * 2 * 16 * 64 * pairs / (causal ? 2 : 1));
}

void add_sequence(std::vector<Case>& cases);

}  // namespace bench

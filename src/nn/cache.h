// Caches of keys and values around a call that may fail.
#pragma once
#include <span>
#include <vector>

#include <volta/nn/attention.h>

namespace volta::nn {

// A call that throws leaves the caches with what they held before.
template <class F> auto all_or_nothing(std::span<KeyValueCache> caches, F&& call) {
  std::vector<int64_t> held;
  for (const KeyValueCache& cache : caches) held.push_back(cache.size());
  try {
    return call();
  } catch (...) {
    for (size_t i = 0; i < held.size(); ++i) caches[i].truncate(held[i]);
    throw;
  }
}
inline std::span<KeyValueCache> one(KeyValueCache* cache) { return {cache, cache ? 1u : 0u}; }

}  // namespace volta::nn

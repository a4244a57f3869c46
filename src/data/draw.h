// Single random numbers from a generator's stream, for transforms that need one or two.
#pragma once
#include <volta/random.h>

#include "core/distributions.h"

namespace volta::data {

// On [low, high).
inline double uniform_from(Generator& g, double low, double high) {
  const Generator::State at = g.take(1);
  return low + (high - low) * random::unit<double>(random::block_words(at.seed, at.offset, 0));
}
// From low to high, both included.
inline int64_t integer_from(Generator& g, int64_t low, int64_t high) {
  const int64_t x = low + int64_t(uniform_from(g, 0, double(high - low) + 1));
  return x < high ? x : high;
}
inline bool chance(Generator& g, double p) { return uniform_from(g, 0, 1) < p; }

}  // namespace volta::data

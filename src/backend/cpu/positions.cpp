// Positions of the true elements of a mask: blocks are counted, then each writes its own positions.
#include "backend/cpu/positions.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace volta::cpu {
namespace {

constexpr int64_t block = 1 << 12;

}  // namespace

TruePositions::TruePositions(const uint8_t* mask, int64_t n)
    : mask_(mask), n_(n), starts_(size_t((n + block - 1) / block) + 1) {
  const auto blocks = int64_t(starts_.size()) - 1;
  constexpr int64_t together = 16;
  parallel((blocks + together - 1) / together, [&](int64_t part) {
    for (int64_t b = part * together; b < std::min(blocks, (part + 1) * together); ++b)
      starts_[size_t(b) + 1] =
          std::count_if(mask_ + b * block, mask_ + std::min(n_, (b + 1) * block), [](uint8_t m) { return m != 0; });
  });
  for (size_t b = 1; b < starts_.size(); ++b) starts_[b] += starts_[b - 1];
}

void TruePositions::write(int64_t* out) const {
  const auto blocks = int64_t(starts_.size()) - 1;
  parallel(blocks, [&](int64_t b) {
    int64_t found[block];  // every position is written and only the true ones are stepped over: no branch to mispredict
    int64_t count = 0;
    for (int64_t i = b * block; i < std::min(n_, (b + 1) * block); ++i) {
      found[count] = i;
      count += mask_[i] != 0;
    }
    std::memcpy(out + starts_[size_t(b)], found, size_t(count) * sizeof(int64_t));
  });
}

}  // namespace volta::cpu

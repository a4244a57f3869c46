// Positions of the true elements of a mask.
#pragma once
#include <cstdint>
#include <vector>

namespace volta::cpu {

// Borrows n contiguous bytes, each true when not 0.
class TruePositions {
 public:
  TruePositions(const uint8_t* mask, int64_t n);
  int64_t count() const { return starts_.back(); }
  void write(int64_t* out) const;  // in ascending order

 private:
  const uint8_t* mask_;
  int64_t n_;
  std::vector<int64_t> starts_;  // of each block's positions, and their number
};

}  // namespace volta::cpu

// When a mean is too coarse for the squares of differences from it.
#pragma once
#include <cstdint>
#include <limits>

namespace volta::cpu::VOLTA_ISA {
namespace {

// Whether the squared differences of n values from their mean may be those of its rounding, or the mean is not finite. It is
// then taken again by differences from one of the values: of equal values it is exactly their value.
template <class T> bool within_rounding(T squares, T mean, T n) {
  const T reach = 256 * std::numeric_limits<T>::epsilon() * mean;  // of sums of blocks
  return !(squares > n * (reach * reach));
}

}  // namespace
}  // namespace volta::cpu::VOLTA_ISA

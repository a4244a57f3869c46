// How far a result may lie from PyTorch's.
#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <volta/dtype.h>

namespace volta::oracle {

inline int significand_bits(DType t) { return t == f64 ? 53 : t == f32 ? 24 : t == f16 ? 11 : 8; }
inline int least_exponent(DType t) { return t == f64 ? -1022 : t == f16 ? -14 : -126; }
inline double epsilon(DType t) { return std::ldexp(1.0, 1 - significand_bits(t)); }

// The distance between neighbours at x.
inline double ulp(double x, DType t) {
  const int exponent = x == 0 || !std::isfinite(x) ? least_exponent(t) : std::max(std::ilogb(x), least_exponent(t));
  return std::ldexp(1.0, exponent + 1 - significand_bits(t));
}

struct Bound {
  double ulps;            // of the element itself
  double of_largest = 0;  // epsilons of the largest element
};

inline Bound value_bound(const std::string& op, bool pointwise) { (void)op; return pointwise ? Bound{2} : Bound{2, 2}; }
inline Bound gradient_bound(const std::string& op, bool elementwise) { (void)op; return elementwise ? Bound{4} : Bound{4, 4}; }

}  // namespace volta::oracle

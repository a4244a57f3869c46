// The part of the oracle about training (training.py), and how near to it is near enough.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "oracle/reader.h"

namespace volta::oracle {

inline const Oracle& training() {
  static const Oracle oracle = read(std::string(VOLTA_TEST_DATA) + "/training");
  return oracle;
}

inline Tensor stored(const Stored& s) {
  return tensor_from(training().data.data() + s.at, s.dtype, s.shape, {.dtype = s.dtype});
}

inline Tensor operand(const Case& c, size_t i) { return stored(std::get<Input>(c.operands[i]).data); }

// Empty if got lies within `epsilons` of want, measured in its dtype at the largest element; else what is wrong.
inline std::string difference(const Tensor& got, const Tensor& want, double epsilons) {
  if (got.dtype() != want.dtype()) return "dtype " + std::string(name(got.dtype()));
  if (got.shape() != want.shape()) return "shape " + got.shape().str() + ", not " + want.shape().str();
  const std::vector<double> a = got.detach().to(f64).to_vector<double>(), b = want.to(f64).to_vector<double>();
  double largest = 0;
  for (double v : b) largest = std::isfinite(v) ? std::max(largest, std::fabs(v)) : largest;
  const double slack = epsilons * largest * (want.dtype() == f64 ? 0x1p-52 : 0x1p-23);
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i] || std::fabs(a[i] - b[i]) <= slack || (std::isnan(a[i]) && std::isnan(b[i]))))
      return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]) +
             "; off by " + std::to_string((a[i] - b[i]) / slack * epsilons) + " epsilons of the largest";
  return "";
}

}  // namespace volta::oracle

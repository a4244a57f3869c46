// Naive references for reductions, rows and scans, and the layouts a tensor's values can lie in.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <volta/volta.h>

namespace volta {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr DType floats[] = {f16, bf16, f32, f64};
inline constexpr DType all_dtypes[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};

// The same values lying differently in memory.
inline std::vector<Tensor> layouts(const Tensor& x) {
  if (x.dim() == 0) return {x};
  Shape reversed;
  for (int64_t i = x.dim() - 1; i >= 0; --i) reversed.push_back(i);
  std::vector<int64_t> axes(static_cast<size_t>(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<Tensor> result{x, permute(contiguous(permute(x, reversed)), reversed), select(stack({x, x}, -1), -1, 0),
                             flip(contiguous(flip(x, axes)), axes)};
  if (x.dim() > 1) result.push_back(transpose(contiguous(transpose(x, 0, 1)), 0, 1));
  return result;
}

using Row = std::vector<double>;
using RowResult = std::function<double(const Row&)>;

// Calls f with the values of each row along the axes, in row-major order of the results.
inline std::vector<double> reference(const Tensor& x, const std::vector<int64_t>& axes, const RowResult& f) {
  Shape order;
  int64_t count = 1, results = 1;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i), results *= x.size(i);
  for (int64_t a : axes) order.push_back(a), count *= x.size(a);
  const auto values = contiguous(permute(x, order)).to(f64).to_vector<double>();
  std::vector<double> y;
  for (int64_t r = 0; r < results; ++r)
    y.push_back(f(Row(values.begin() + r * count, values.begin() + (r + 1) * count)));
  return y;
}

inline void expect_near(const Tensor& y, const std::vector<double>& expected, double tolerance,
                        const std::string& what) {
  const auto values = y.to(f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) EXPECT_TRUE(std::isnan(values[i])) << what << " at " << i;
    else if (std::isinf(expected[i]) || tolerance == 0) EXPECT_EQ(values[i], expected[i]) << what << " at " << i;
    else EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " at " << i;
  }
}

inline double rounding(DType t) { return t == f16 ? 1e-3 : t == bf16 ? 8e-3 : t == f32 ? 2e-6 : 1e-13; }

inline double sum_of(const Row& r) { return double(std::accumulate(r.begin(), r.end(), 0.0L)); }
inline double mean_of(const Row& r) { return sum_of(r) / double(r.size()); }
inline double var_of(const Row& r) {
  const double m = mean_of(r);
  long double s = 0;
  for (double v : r) s += (v - m) * (v - m);
  return double(s) / double(r.size() - 1);
}
inline double prod_of(const Row& r) { return std::accumulate(r.begin(), r.end(), 1.0, std::multiplies<>()); }
inline double max_of(const Row& r) {
  double m = -inf;
  for (double v : r) m = std::isnan(m) || v <= m ? m : v;
  return m;
}
inline double min_of(const Row& r) {
  double m = inf;
  for (double v : r) m = std::isnan(m) || v >= m ? m : v;
  return m;
}
inline double index_of(const Row& r, double value) {
  for (size_t i = 0; i < r.size(); ++i)
    if (r[i] == value || (std::isnan(value) && std::isnan(r[i]))) return double(i);
  return -1;
}
inline double logsumexp_of(const Row& r) {
  const double m = max_of(r), shift = std::isfinite(m) ? m : 0;
  long double s = 0;
  for (double v : r) s += std::exp(v - shift);
  return double(std::log(s)) + shift;
}
inline RowResult norm_of(double p) {
  return [p](const Row& r) {
    long double s = 0;
    for (double v : r) s += p == 0 ? v != 0 : std::pow(std::abs(v), p);
    return p == 0 ? double(s) : double(std::pow(s, 1 / p));
  };
}

}  // namespace volta

// A tensor as plain numbers and shapes as plain lists: what naive references compute with.
#pragma once
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include <volta/volta.h>

namespace volta::test {

inline constexpr DType all_dtypes[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean};
inline constexpr DType index_dtypes[] = {i8, i16, i32, i64, u8, u16, u32, u64};

struct Dense {
  Shape shape;
  std::vector<double> values;

  explicit Dense(const Shape& s, double value = 0) : shape(s), values(size_t(s.numel()), value) {}
  explicit Dense(const Tensor& x) : shape(x.shape()), values(x.detach().to(f64).to_vector<double>()) {}
  double& at(const Shape& i) {
    int64_t place = 0;
    for (int k = 0; k < shape.size(); ++k) place = place * shape[k] + i[k];
    return values.at(size_t(place));
  }
  double at(const Shape& i) const { return const_cast<Dense*>(this)->at(i); }
};

// Calls f with every index of a shape, row by row.
template <class F> void each_index(const Shape& shape, F f) {
  Shape i = Shape::filled(shape.size(), 0);
  for (int64_t n = shape.numel(); n > 0; --n) {
    f(static_cast<const Shape&>(i));
    for (int k = shape.size() - 1; k >= 0 && ++i[k] == shape[k]; --k) i[k] = 0;
  }
}

inline void expect_same(const Tensor& y, const Dense& expected, const std::string& what = "") {
  const Dense got(y);
  ASSERT_EQ(got.shape, expected.shape) << what;
  for (size_t i = 0; i < got.values.size(); ++i) ASSERT_EQ(got.values[i], expected.values[i]) << what << " at " << i;
}

// Whole numbers 0, 1, 2 … wrapped to what every dtype holds exactly.
inline Tensor numbers(const Shape& shape, DType dtype = f64) {
  const Tensor x = (arange(0, shape.numel()) * 7 % 101).reshape(shape);
  return dtype == boolean ? (x % 3) == 0 : x.to(dtype);
}

// The same values lying differently in memory.
inline std::vector<Tensor> layouts(const Tensor& x) {
  if (x.dim() == 0) return {x, stack({x, x})[1]};
  Shape reversed;
  for (int64_t i = x.dim() - 1; i >= 0; --i) reversed.push_back(i);
  std::vector<int64_t> axes(static_cast<size_t>(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  return {x, x.permute(reversed).contiguous().permute(reversed), stack({x, x}, -1).select(-1, 0),
          x.flip(axes).contiguous().flip(axes)};
}

template <class F> Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(Error::Kind::internal, "", "");
}

template <class F>
void expect_error(Error::Kind kind, const std::string& op, std::initializer_list<const char*> words, F f) {
  const Error e = error_of(f);
  EXPECT_EQ(int(e.kind()), int(kind)) << e.what();
  EXPECT_EQ(e.op(), op) << e.what();
  for (const char* w : words) EXPECT_NE(std::string(e.what()).find(w), std::string::npos) << e.what() << " lacks " << w;
}

}  // namespace volta::test

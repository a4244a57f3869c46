// Sorting and selection against std::stable_sort with an independent comparison, for every dtype.
#include "backend/cpu/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <volta/threads.h>

namespace volta::cpu {
namespace {

template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T> auto comparable(Stored<T> x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) return float(x);
  else return x;
}

// NaN above everything, everything else by value.
template <class T> bool before(Stored<T> a, Stored<T> b) {
  const auto x = comparable<T>(a), y = comparable<T>(b);
  if constexpr (std::is_floating_point_v<decltype(x)>) {
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  }
  return x < y;
}

template <class T> std::vector<int64_t> reference(const std::vector<Stored<T>>& in, bool descending) {
  std::vector<int64_t> order(in.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto x = in[size_t(a)], y = in[size_t(b)];
    return descending ? before<T>(y, x) : before<T>(x, y);
  });
  return order;
}

enum class Fill { anything, few_values, ascending, equal };

template <class T> Stored<T> special(uint64_t pick) {
  constexpr float specials[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0.5f};
  if constexpr (std::is_same_v<T, double>) return -double(specials[pick % 8]);
  else if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2) return T(specials[pick % 8]);
  else return Stored<T>(pick % 2 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
}

template <class T> std::vector<Stored<T>> make_row(int64_t n, Fill fill) {
  std::mt19937_64 generator(uint64_t(n) * 31 + uint64_t(fill));
  std::vector<Stored<T>> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = generator();
    if (fill == Fill::few_values) bits = 0x4010101010101010 * (bits % 3);
    if (fill == Fill::ascending) bits = uint64_t(i);
    if (fill == Fill::equal) bits = 7;
    if (std::is_same_v<T, bool>) bits &= 1;
    std::memcpy(static_cast<void*>(&row[size_t(i)]), &bits, sizeof(T));
    if constexpr (!std::is_integral_v<T>) {
      if (fill == Fill::anything && generator() % 4 == 0) row[size_t(i)] = special<T>(generator());
    }
  }
  return row;
}

template <class T> bool same_bits(const Stored<T>& a, const Stored<T>& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T> void expect_sorted(int64_t n, Fill fill, bool descending) {
  const auto in = make_row<T>(n, fill);
  const auto order = reference<T>(in, descending);
  std::vector<Stored<T>> values(in.size());
  std::vector<int64_t> indices(in.size());
  sort_row(dtype_of<T>(), n, in.data(), values.data(), indices.data(), descending);
  ASSERT_EQ(indices, order) << name(dtype_of<T>()) << " n " << n << " fill " << int(fill) << " descending "
                            << descending;
  for (size_t i = 0; i < in.size(); i++) ASSERT_TRUE(same_bits<T>(values[i], in[size_t(order[i])]));
}

class Sort : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, Sort,
                         testing::Values(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean),
                         [](const auto& chosen) { return std::string(name(chosen.param)); });

TEST_P(Sort, EveryLengthAndFilling) {
  visit(GetParam(), [](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Fill fill : {Fill::anything, Fill::few_values, Fill::ascending, Fill::equal}) {
      for (const bool descending : {false, true}) {
        for (int64_t n = 0; n <= 40; n++) expect_sorted<T>(n, fill, descending);
        for (const int64_t n : {100, 255, 256, 257, 1000, 5000}) expect_sorted<T>(n, fill, descending);
      }
    }
  });
}

TEST_P(Sort, LongRows) {
  visit(GetParam(), [](auto tag) {
    using T = typename decltype(tag)::type;
    expect_sorted<T>(100000, Fill::anything, false);
    expect_sorted<T>(300001, Fill::anything, true);
    expect_sorted<T>(200000, Fill::few_values, false);
  });
}

TEST_P(Sort, ThreadsDoNotChangeTheResult) {
  visit(GetParam(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const int before_test = get_num_threads();
    const auto in = make_row<T>(400000, Fill::anything);
    std::vector<Stored<T>> values(in.size());
    std::vector<int64_t> one(in.size()), three(in.size());
    set_num_threads(1);
    sort_row(dtype_of<T>(), 400000, in.data(), values.data(), one.data(), false);
    set_num_threads(3);
    sort_row(dtype_of<T>(), 400000, in.data(), values.data(), three.data(), false);
    set_num_threads(before_test);
    EXPECT_TRUE(one == three);
  });
}

TEST_P(Sort, TopK) {
  visit(GetParam(), [](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Fill fill : {Fill::anything, Fill::few_values, Fill::ascending, Fill::equal}) {
      for (const int64_t n : {1, 2, 10, 100, 3000, 20000}) {
        const auto in = make_row<T>(n, fill);
        for (const bool largest : {false, true}) {
          const auto order = reference<T>(in, largest);
          for (const int64_t k : {int64_t(0), int64_t(1), n / 3, n - 1, n}) {
            std::vector<Stored<T>> values(static_cast<size_t>(k));
            std::vector<int64_t> indices(static_cast<size_t>(k)), want(order.begin(), order.begin() + k);
            topk_row(dtype_of<T>(), n, k, in.data(), values.data(), indices.data(), largest, true);
            ASSERT_EQ(indices, want) << "n " << n << " k " << k;
            for (size_t i = 0; i < values.size(); i++) ASSERT_TRUE(same_bits<T>(values[i], in[size_t(want[i])]));
            topk_row(dtype_of<T>(), n, k, in.data(), values.data(), indices.data(), largest, false);
            for (size_t i = 0; i < values.size(); i++) ASSERT_TRUE(same_bits<T>(values[i], in[size_t(indices[i])]));
            std::sort(indices.begin(), indices.end());
            std::sort(want.begin(), want.end());
            ASSERT_EQ(indices, want);
          }
        }
      }
    }
  });
}

TEST_P(Sort, Nth) {
  visit(GetParam(), [](auto tag) {
    using T = typename decltype(tag)::type;
    for (const Fill fill : {Fill::anything, Fill::few_values, Fill::ascending, Fill::equal}) {
      for (const int64_t n : {1, 2, 3, 50, 1000, 20000}) {
        const auto in = make_row<T>(n, fill);
        const auto order = reference<T>(in, false);
        for (const int64_t k : {int64_t(0), n / 4, n / 2, n - 1}) {
          Stored<T> value{};
          int64_t index = -1;
          nth_row(dtype_of<T>(), n, k, in.data(), &value, &index);
          ASSERT_EQ(index, order[size_t(k)]) << "n " << n << " k " << k;
          ASSERT_TRUE(same_bits<T>(value, in[size_t(index)]));
        }
      }
    }
  });
}

TEST(SortOrder, NanIsLargestAndZerosAreEqual) {
  const std::vector<float> in{NAN, 1, -0.0f, INFINITY, 0.0f, -INFINITY, -NAN, -0.0f};
  std::vector<float> values(8);
  std::vector<int64_t> indices(8);
  sort_row(f32, 8, in.data(), values.data(), indices.data(), false);
  EXPECT_EQ(indices, (std::vector<int64_t>{5, 2, 4, 7, 1, 3, 0, 6}));
  EXPECT_TRUE(std::signbit(values[1]) && !std::signbit(values[2]) && std::signbit(values[3]));
  sort_row(f32, 8, in.data(), values.data(), indices.data(), true);
  EXPECT_EQ(indices, (std::vector<int64_t>{0, 6, 3, 1, 2, 4, 7, 5}));
}

TEST(SortOrder, BoolsOfAnyByte) {
  const std::vector<uint8_t> in{2, 0, 1, 255, 0};
  std::vector<uint8_t> values(5);
  std::vector<int64_t> indices(5);
  sort_row(boolean, 5, in.data(), values.data(), indices.data(), false);
  EXPECT_EQ(indices, (std::vector<int64_t>{1, 4, 0, 2, 3}));
}

}  // namespace
}  // namespace volta::cpu

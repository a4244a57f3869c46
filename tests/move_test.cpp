// Strided moves and the transposed copy against plain loops, for every element size, length and kind of stride.
#include "backend/cpu/copy/move.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <volta/threads.h>

namespace volta::cpu {
namespace {

std::vector<std::byte> random_bytes(size_t n, uint64_t seed = 1) {
  std::mt19937_64 generator(seed);
  std::vector<std::byte> bytes(n);
  for (auto& b : bytes) b = std::byte(generator());
  return bytes;
}

class Move : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Move, testing::Values(1, 2, 4, 8), testing::PrintToStringParamName());

TEST_P(Move, GatherEveryStrideAndLength) {
  const int64_t size = GetParam();
  const auto source = random_bytes(65536);
  for (const int64_t stride : {0, 1, 2, 3, 4, 5, 8, 17, -1, -2, -3, -8}) {
    for (const int64_t n : {0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129}) {
      const std::byte* in = source.data() + 32768;
      std::vector<std::byte> out(size_t(n * size + 16), std::byte(0x5a)), want = out;
      for (int64_t i = 0; i < n; i++) std::memcpy(want.data() + i * size, in + i * stride * size, size_t(size));
      gather_row(size, n, out.data(), in, stride * size);
      ASSERT_EQ(out, want) << "stride " << stride << ", n " << n;
    }
  }
}

TEST_P(Move, ScatterEveryStrideAndLength) {
  const int64_t size = GetParam();
  const auto source = random_bytes(4096);
  for (const int64_t stride : {0, 1, 2, 3, 4, 5, 8, 17, -1, -2, -3, -8}) {
    for (const int64_t n : {0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129}) {
      std::vector<std::byte> out(65536, std::byte(0x5a)), want = out;
      for (int64_t i = 0; i < n; i++)
        std::memcpy(want.data() + 32768 + i * stride * size, source.data() + i * size, size_t(size));
      scatter_row(size, n, out.data() + 32768, stride * size, source.data());
      ASSERT_EQ(out, want) << "stride " << stride << ", n " << n;
    }
  }
}

TEST_P(Move, UnalignedElements) {
  const int64_t size = GetParam();
  const auto source = random_bytes(4096);
  std::vector<std::byte> out(size_t(50 * size)), want(size_t(50 * size));
  for (int64_t i = 0; i < 50; i++) std::memcpy(want.data() + i * size, source.data() + 1 + i * 3 * size, size_t(size));
  gather_row(size, 50, out.data(), source.data() + 1, 3 * size);
  EXPECT_EQ(out, want);
}

TEST_P(Move, FillEveryLength) {
  const int64_t size = GetParam();
  const auto value = random_bytes(8);
  for (const int64_t n : {0, 1, 2, 3, 5, 8, 16, 31, 100, 1000}) {
    std::vector<std::byte> out(size_t(n * size + 16), std::byte(0x5a)), want = out;
    for (int64_t i = 0; i < n; i++) std::memcpy(want.data() + i * size, value.data(), size_t(size));
    fill_row(size, n, out.data(), value.data());
    ASSERT_EQ(out, want) << n;
  }
}

void expect_transposed(int64_t size, int64_t rows, int64_t cols, int64_t in_gap, int64_t out_gap) {
  const int64_t in_stride = (cols + in_gap) * size, out_stride = (rows + out_gap) * size;
  const auto in = random_bytes(size_t(rows * in_stride + 1));
  std::vector<std::byte> out(size_t(cols * out_stride + 64), std::byte(0x5a)), want = out;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c++) {
      std::memcpy(want.data() + c * out_stride + r * size, in.data() + r * in_stride + c * size, size_t(size));
    }
  }
  transpose(size, rows, cols, out.data(), out_stride, in.data(), in_stride);
  ASSERT_TRUE(out == want) << rows << "x" << cols << " of " << size << " bytes";
}

TEST_P(Move, TransposeEveryShape) {
  const int64_t size = GetParam();
  for (const int64_t rows : {0, 1, 2, 3, 5, 8, 16, 17, 31, 64, 65, 127, 130, 257}) {
    for (const int64_t cols : {0, 1, 2, 3, 7, 8, 16, 19, 33, 64, 66, 128, 131, 260}) {
      expect_transposed(size, rows, cols, 0, 0);
      expect_transposed(size, rows, cols, 3, 5);
    }
  }
}

TEST_P(Move, TransposeLargeAndThin) {
  const int64_t size = GetParam();
  expect_transposed(size, 1024, 1024, 0, 0);
  expect_transposed(size, 1027, 900, 0, 2);
  expect_transposed(size, 3, 100000, 0, 0);
  expect_transposed(size, 100000, 3, 0, 0);
}

// Reversed axes: strides below zero, from the last row.
TEST_P(Move, TransposeNegativeStrides) {
  const int64_t size = GetParam(), rows = 70, cols = 37;
  const auto in = random_bytes(size_t(rows * cols * size));
  std::vector<std::byte> out(in.size()), want(in.size());
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c++) {
      std::memcpy(want.data() + ((cols - 1 - c) * rows + r) * size, in.data() + ((rows - 1 - r) * cols + c) * size,
                  size_t(size));
    }
  }
  transpose(size, rows, cols, out.data() + (cols - 1) * rows * size, -rows * size, in.data() + (rows - 1) * cols * size,
            -cols * size);
  EXPECT_EQ(out, want);
}

TEST(MoveThreads, TransposeIsTheSameOnAnyNumber) {
  const int before = get_num_threads();
  const auto in = random_bytes(1000 * 1200 * 4);
  std::vector<std::byte> one(in.size()), three(in.size());
  set_num_threads(1);
  transpose(4, 1000, 1200, one.data(), 4000, in.data(), 4800);
  set_num_threads(3);
  transpose(4, 1000, 1200, three.data(), 4000, in.data(), 4800);
  set_num_threads(before);
  EXPECT_TRUE(one == three);
}

}  // namespace
}  // namespace volta::cpu

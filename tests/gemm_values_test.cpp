// What matrix products of f32 make of values: exact where they can be, as accurate as a chain of multiply-adds, and right among
// infinities, NaN and numbers at the ends of the range.
#include <gtest/gtest.h>
#include <thread>

#include <volta/volta.h>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/gemm/plan.h"
#include "core/parallel.h"
#include "stored.h"

namespace volta::cpu {
namespace {

// Whole numbers of nine bits, a few in each sum: exact in every order.
TEST(GemmValues, WholeNumbersAreExact) {
  std::mt19937 random(18);
  for (Order order : orders) {
    for (auto [m, n, k] : {Shape3{25, 31, 70}, {67, 61, 1031}, {100, 130, 290}, {160, 33, 64}}) {
      Stored<float> a(1, m, k, order), b(1, k, n, order), c(1, m, n, Order::rows);
      for (float& x : a.data) x = random() % 16 ? 0.0f : float(int(random() % 801) - 400);
      for (float& x : b.data) x = float(int(random() % 801) - 400);
      gemm({f32,
            m,
            n,
            k,
            {a.start(), a.row_stride, a.column_stride},
            {b.start(), b.row_stride, b.column_stride},
            c.start(),
            c.row_stride,
            c.column_stride});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int64_t sum = 0;
          for (int64_t p = 0; p < k; ++p) sum += int64_t(a.at(0, i, p)) * int64_t(b.at(0, p, j));
          ASSERT_EQ(c.at(0, i, j), float(sum)) << m << "x" << n << "x" << k << " at " << i << "," << j;
        }
      }
    }
  }
}

// f32 products are at least as accurate as a chain of multiply-adds along k.
TEST(GemmValues, AsAccurateAsAChain) {
  std::mt19937 random(19);
  std::normal_distribution<float> normal;
  for (auto [m, n, k] : {Shape3{70, 90, 100}, {128, 96, 512}, {33, 200, 1500}}) {
    std::vector<float> a(size_t(m * k)), b(size_t(k * n)), c(size_t(m * n));
    for (auto* v : {&a, &b})
      for (float& x : *v) x = normal(random);
    gemm({f32, m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n, 1});
    double error = 0, of_chain = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        float chain = 0;
        for (int64_t p = 0; p < k; ++p) {
          const float x = a[size_t(i * k + p)], y = b[size_t(p * n + j)];
          sum += double(x) * double(y);
          chain = std::fma(x, y, chain);
        }
        error += std::pow(double(c[size_t(i * n + j)]) - sum, 2);
        of_chain += std::pow(double(chain) - sum, 2);
      }
    }
    EXPECT_LE(std::sqrt(error), 1.05 * std::sqrt(of_chain)) << m << "x" << n << "x" << k;
  }
}

// Ordinary numbers, and among them what has no neighbours in range: infinities, NaN, the largest and the smallest.
void fill_unusual(std::vector<float>& a, std::vector<float>& b, const Shape3& s, uint32_t seed) {
  std::mt19937 random(seed);
  fill(a, random), fill(b, random);
  const auto at_a = [&](int64_t i, int64_t p) -> float& { return a[size_t(i * s.k + p)]; };
  const auto at_b = [&](int64_t p, int64_t j) -> float& { return b[size_t(p * s.n + j)]; };
  for (int64_t p = 0; p < s.k; ++p) {
    at_a(3, p) *= 1e-36f, at_b(p, 5) *= 1e36f;     // products that are ordinary
    at_a(40, p) *= 1e-40f, at_b(p, 37) *= 1e-33f;  // and some that are not
  }
  at_a(10, 7) = INFINITY, at_a(11, s.k - 1) = -INFINITY, at_a(12, 0) = NAN, at_a(13, 20) = 3.4e38f;
  at_b(9, 50) = INFINITY, at_b(s.k - 2, 51) = NAN, at_b(31, 52) = -3e38f, at_b(32, 53) = 1e-45f;
  at_a(15, 9) = 0, at_b(7, 60) = 0;  // zero times infinity
}

TEST(GemmValues, UnusualValuesAmongOrdinaryOnes) {
  for (const Shape3 s : {Shape3{70, 80, 90}, {130, 100, 300}, {64, 70, 700}}) {
    std::vector<float> a(size_t(s.m * s.k)), b(size_t(s.k * s.n)), c(size_t(s.m * s.n));
    fill_unusual(a, b, s, 3);
    gemm({f32, s.m, s.n, s.k, {a.data(), s.k, 1}, {b.data(), s.n, 1}, c.data(), s.n, 1});
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < s.k; ++p) {
          const double product = double(a[size_t(i * s.k + p)]) * double(b[size_t(p * s.n + j)]);
          sum += product, size += std::abs(product);
        }
        const double got = c[size_t(i * s.n + j)], expected = double(float(sum));
        if (!std::isfinite(expected)) {
          ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
              << got << " is not " << expected << " at " << i << "," << j;
        } else if (std::isfinite(float(size))) {
          ASSERT_NEAR(got, expected, size * 0x1p-24 * double(s.k + 4) + double(s.k) * 0x1p-149) << i << "," << j;
        }
      }
    }
  }
}

TEST(GemmValues, HaveTheSameBitsForAnyNumberOfThreads) {
  const int before = get_num_threads();
  for (const Shape3 s : {Shape3{70, 80, 90}, {130, 200, 300}, {500, 64, 300}}) {
    std::vector<float> a(size_t(s.m * s.k)), b(size_t(s.k * s.n)), one(size_t(s.m * s.n)), many(one.size());
    fill_unusual(a, b, s, 4);
    const auto run = [&](int threads, std::vector<float>& c) {
      set_num_threads(threads);
      gemm({f32, s.m, s.n, s.k, {a.data(), s.k, 1}, {b.data(), s.n, 1}, c.data(), s.n, 1});
    };
    run(1, one);
    for (int threads : {2, 3, 8}) {
      run(threads, many);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
  set_num_threads(before);
}

// Segments of a long k are summed apart, each matrix of a batch in memory of its own. A thread that multiplies nothing else has no
// other working memory for it.
TEST(GemmBatch, SegmentsOfSeveralMatrices) {
  for (const int64_t batch : {1, 2, 5, 7}) {
    const Tensor a = randint(-3, 4, {batch, 96, 8192}).to(f32), b = randint(-3, 4, {batch, 8192, 80}).to(f32);
    Tensor y;
    std::thread([&] { y = matmul(a, b); }).join();
    for (int64_t i = 0; i < batch; ++i)
      EXPECT_TRUE(equal(y[i], matmul(a[i].to(f64), b[i].to(f64)).to(f32))) << i << " of " << batch;
  }
}

}  // namespace
}  // namespace volta::cpu

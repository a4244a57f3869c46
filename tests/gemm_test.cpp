// Matrix products against a naive reference in higher precision: shapes, strides, batches, epilogues, dtypes, threads.
#include "backend/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "backend/cpu/gemm/plan.h"
#include "core/parallel.h"
#include "stored.h"
#include "volta/error.h"

namespace volta::cpu {
namespace {

template <class T> double value(T x) {
  if constexpr (std::is_same_v<T, double>) return x;
  else return double(float(x));
}

struct Case {
  int64_t m, n, k;
  Order a = Order::rows, b = Order::rows, c = Order::rows;
  bool accumulate = false;
  bool bias = false;
  Activation activation = Activation::none;
  int64_t batch = 1;
  bool broadcast_a = false, broadcast_b = false;

  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " orders " + std::to_string(int(a)) +
           std::to_string(int(b)) + std::to_string(int(c)) + " accumulate " + std::to_string(accumulate) + " bias " +
           std::to_string(bias) + " activation " + std::to_string(int(activation)) + " batch " + std::to_string(batch);
  }
};

template <class T> void triple(T* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) values[i] *= 3;
}

// Relative rounding of one stored value.
template <class T> double unit() {
  return std::is_same_v<T, float16>    ? 0x1p-11
         : std::is_same_v<T, bfloat16> ? 0x1p-8
         : std::is_same_v<T, float>    ? 0x1p-24
                                       : 0x1p-53;
}
// Sums are formed in f32 for every type but f64.
template <class T> double sum_unit() { return std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24; }

template <class S, class C> void check_floating(const Case& t, uint32_t seed) {
  std::mt19937 random(seed);
  Stored<S> a(t.batch, t.m, t.k, t.a), b(t.batch, t.k, t.n, t.b);
  Stored<C> c(t.batch, t.m, t.n, t.c);
  std::vector<C> bias(size_t(2 * t.n));
  fill(a.data, random), fill(b.data, random), fill(c.data, random), fill(bias, random);
  Stored<C> before = c;
  const BatchAxis axis = {t.batch, t.broadcast_a ? 0 : a.batch_stride, t.broadcast_b ? 0 : b.batch_stride,
                          c.batch_stride};
  Gemm g = {dtype_of<S>(),
            t.m,
            t.n,
            t.k,
            {a.start(), a.row_stride, a.column_stride},
            {b.start(), b.row_stride, b.column_stride},
            c.start(),
            c.row_stride,
            c.column_stride};
  g.accumulate = t.accumulate;
  g.epilogue.bias = t.bias ? bias.data() : nullptr;
  g.epilogue.bias_stride = 2;
  g.epilogue.activation = t.activation;
  g.epilogue.row_f32 = triple<float>;
  g.epilogue.row_f64 = triple<double>;
  g.c_dtype = dtype_of<C>();
  if (t.batch != 1) g.batch = {&axis, 1};
  gemm(g);
  using Wide = std::conditional_t<std::is_same_v<S, double>, long double, double>;
  std::vector<bool> written(c.data.size(), false);
  // Large products are sampled: one element in `step`, a step that visits all rows and columns in turn.
  const int64_t step = 1 + t.batch * t.m * t.n * t.k / (std::is_same_v<S, double> ? 300000 : 3000000);
  int64_t turn = 0;
  for (int64_t q = 0; q < t.batch; ++q) {
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        written[size_t(&c.at(q, i, j) - c.data.data())] = true;
        if (turn++ % step != 0) continue;
        Wide sum = 0, size = 0;
        for (int64_t p = 0; p < t.k; ++p) {
          const Wide x = value(a.at(t.broadcast_a ? 0 : q, i, p)), y = value(b.at(t.broadcast_b ? 0 : q, p, j));
          sum += x * y, size += std::abs(x * y);
        }
        if (t.accumulate) sum += value(before.at(q, i, j)), size += 1;
        if (t.bias) sum += value(bias[size_t(2 * j)]), size += 1;
        if (t.activation == Activation::relu) sum = std::max(sum, Wide(0));
        if (t.activation == Activation::gelu) sum *= 3, size *= 3;
        const double error = std::abs(double(value(c.at(q, i, j)) - sum));
        const double bound =
            double(size) * sum_unit<S>() * double(t.k + 4) + 2 * unit<C>() * std::abs(double(sum)) + 1e-30;
        ASSERT_LE(error, bound + (std::is_same_v<C, float16> ? 0x1p-25 : 0))
            << t.text() << " at " << q << "," << i << "," << j;
      }
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const bool untouched = std::memcmp(&c.data[i], &before.data[i], sizeof(C)) == 0;
    ASSERT_TRUE(written[i] || untouched) << t.text() << " wrote outside C";
  }
}

void check_all_floating(const Case& t, uint32_t seed = 1) {
  check_floating<float, float>(t, seed);
  check_floating<double, double>(t, seed);
  check_floating<bfloat16, bfloat16>(t, seed);
  check_floating<float16, float16>(t, seed);
  check_floating<bfloat16, float>(t, seed);
  check_floating<float16, float>(t, seed);
}

TEST(GemmTest, ShapesAroundTheTiles) {
  for (int64_t m : {1, 2, 4, 5, 8, 13, 33}) {
    for (int64_t n : {1, 3, 4, 12, 17, 31, 50}) {
      for (int64_t k : {0, 1, 7, 16, 65}) check_all_floating({m, n, k});
    }
  }
}

TEST(GemmTest, EveryOrderOfEveryOperand) {
  for (Order a : orders) {
    for (Order b : orders) {
      for (Order c : orders) {
        for (auto [m, n, k] : {Shape3{37, 45, 29}, {3, 130, 90}, {120, 2, 70}, {1, 40, 33}}) {
          Case t = {m, n, k, a, b, c};
          check_floating<float, float>(t, 3);
          t.accumulate = t.bias = true;
          t.activation = Activation::relu;
          check_floating<float, float>(t, 4);
          check_floating<bfloat16, bfloat16>(t, 5);
          check_floating<double, double>(t, 6);
        }
      }
    }
  }
}

// Small whole numbers are exact in every order of summation, so a value of a wrong row, column or depth shows.
TEST(GemmTest, ProductsOfBf16AreExactWhereTheyCanBe) {
  std::mt19937 random(17);
  for (Order order : orders) {
    for (auto [m, n, k] :
         {Shape3{5, 1, 1}, {5, 5, 2}, {6, 13, 3}, {7, 26, 4}, {8, 49, 5}, {25, 31, 70}, {67, 61, 1031}}) {
      Stored<bfloat16> a(1, m, k, order), b(1, k, n, order);
      Stored<float> c(1, m, n, order);
      for (auto* v : {&a.data, &b.data})
        for (bfloat16& x : *v) x = bfloat16(float(int(random() % 17) - 8));
      b.at(0, k - 1, n - 1) = bfloat16(HUGE_VALF);
      gemm({bf16,
            m,
            n,
            k,
            {a.start(), a.row_stride, a.column_stride},
            {b.start(), b.row_stride, b.column_stride},
            c.start(),
            c.row_stride,
            c.column_stride,
            false,
            {},
            {},
            f32});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float sum = 0;
          for (int64_t p = 0; p < k; ++p) sum += float(a.at(0, i, p)) * float(b.at(0, p, j));
          const float got = c.at(0, i, j);
          ASSERT_TRUE(got == sum || (std::isnan(got) && std::isnan(sum)))
              << m << "x" << n << "x" << k << " at " << i << "," << j;
        }
      }
    }
  }
}

TEST(GemmTest, RepeatedRowsByStrideZero) {
  check_all_floating({9, 20, 11, Order::repeated_rows, Order::repeated_rows});
  check_all_floating({150, 140, 130, Order::repeated_rows, Order::repeated_rows});
}

TEST(GemmTest, EpiloguesInEveryPath) {
  for (auto [m, n, k] : {Shape3{1, 700, 300},
                         {700, 1, 300},
                         {3, 600, 100},
                         {24, 24, 24},
                         {96, 96, 40},
                         {200, 210, 90},
                         {40, 40, 2100},
                         {20, 30, 0},
                         {1, 5, 0}}) {
    for (Activation f : {Activation::none, Activation::relu, Activation::gelu}) {
      for (int flags = 0; flags < 4; ++flags) {
        Case t = {m, n, k};
        t.accumulate = flags & 1, t.bias = flags & 2, t.activation = f;
        check_floating<float, float>(t, 7);
        t.c = flags & 1 ? Order::columns : Order::both_strided;
        check_floating<float16, float16>(t, 8);
        check_floating<double, double>(t, 9);
      }
    }
  }
}

TEST(GemmTest, LongAndWideProducts) {
  Case t = {70, 90, 1500};
  check_all_floating(t);
  check_all_floating({300, 270, 40});
  check_all_floating({16, 16, 9000});
  check_all_floating({1, 3000, 200});
  check_all_floating({2, 3, 40000});
  t = {130, 1100, 600, Order::columns, Order::columns};
  check_floating<float, float>(t, 1);
}

// Gradients of weights: panels of both operands lie side by side.
TEST(GemmTest, SumsOverRows) {
  for (const auto& [m, n, k] : {Shape3{131, 110, 1100}, {96, 144, 1027}, {70, 67, 515}, {264, 33, 1040}}) {
    Case t = {m, n, k, Order::columns};
    check_all_floating(t);
    t.accumulate = true;
    check_floating<float, float>(t, 2);
  }
}

TEST(GemmTest, SeveralBlocksAndRounds) {
  Case t = {2100, 2090, 12};
  check_floating<float, float>(t, 1);
  check_floating<bfloat16, bfloat16>(t, 1);
  t = {260, 280, 9000};
  t.accumulate = t.bias = true;
  check_floating<float, float>(t, 2);
  check_floating<bfloat16, bfloat16>(t, 2);
  t = {290, 270, 9000, Order::columns, Order::columns, Order::both_strided};
  check_floating<double, double>(t, 3);
}

TEST(GemmTest, Batches) {
  for (int64_t batch : {0, 2, 5, 40}) {
    for (auto [m, n, k] : {Shape3{6, 7, 8}, {1, 30, 20}, {64, 64, 64}, {5, 6, 1200}, {3, 200, 100}, {130, 135, 130}}) {
      for (int flags = 0; flags < 8; ++flags) {
        if (batch == 40 && m * n * k > 300000 && flags > 3) continue;
        Case t = {m, n, k};
        t.batch = batch, t.broadcast_a = flags & 1, t.broadcast_b = flags & 2, t.bias = t.accumulate = flags & 4;
        t.b = flags & 1 ? Order::columns : Order::rows;
        check_floating<float, float>(t, 11);
        if (m < 64) check_floating<float16, float16>(t, 12);
      }
    }
  }
}

// A contiguous batch with one shared B (or A) is one taller (wider) product.
TEST(GemmTest, FoldedBatchAxes) {
  std::mt19937 random(5);
  std::vector<double> a(4 * 3 * 5 * 6), b(6 * 7), c(4 * 3 * 5 * 7, -1), b2(3 * 6 * 4), c2(5 * 12, -1);
  fill(a, random), fill(b, random), fill(b2, random);
  const BatchAxis axes[] = {{4, 90, 0, 105}, {3, 30, 0, 35}};
  gemm({f64, 5, 7, 6, {a.data(), 6, 1}, {b.data(), 7, 1}, c.data(), 7, 1, false, {}, axes});
  for (int i = 0; i < 60; ++i) {
    for (int j = 0; j < 7; ++j) {
      double sum = 0;
      for (int p = 0; p < 6; ++p) sum += a[size_t(i) * 6 + size_t(p)] * b[size_t(p) * 7 + size_t(j)];
      ASSERT_NEAR(c[size_t(i * 7 + j)], sum, 1e-12);
    }
  }
  const BatchAxis wide[] = {{3, 0, 4, 4}};
  std::vector<double> bias = {10, 20, 30, 40};
  gemm({f64, 5, 4, 6, {a.data(), 6, 1}, {b2.data(), 12, 1}, c2.data(), 12, 1, false, {bias.data()}, wide});
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 12; ++j) {
      double sum = bias[size_t(j % 4)];
      for (int p = 0; p < 6; ++p) sum += a[size_t(i) * 6 + size_t(p)] * b2[size_t(p) * 12 + size_t(j)];
      ASSERT_NEAR(c2[size_t(i * 12 + j)], sum, 1e-12);
    }
  }
}

template <class T> void check_integer(const Case& t) {
  std::mt19937 random(3);
  Stored<T> a(t.batch, t.m, t.k, t.a), b(t.batch, t.k, t.n, t.b), c(t.batch, t.m, t.n, t.c);
  std::vector<T> bias(size_t(2 * t.n));
  fill(a.data, random), fill(b.data, random), fill(c.data, random), fill(bias, random);
  Stored<T> before = c;
  const BatchAxis axis = {t.batch, t.broadcast_a ? 0 : a.batch_stride, b.batch_stride, c.batch_stride};
  Gemm g = {dtype_of<T>(),
            t.m,
            t.n,
            t.k,
            {a.start(), a.row_stride, a.column_stride},
            {b.start(), b.row_stride, b.column_stride},
            c.start(),
            c.row_stride,
            c.column_stride};
  g.accumulate = t.accumulate;
  g.epilogue.bias = t.bias ? bias.data() : nullptr;
  g.epilogue.bias_stride = 2;
  g.epilogue.activation = t.activation;
  if (t.batch != 1) g.batch = {&axis, 1};
  gemm(g);
  for (int64_t q = 0; q < t.batch; ++q) {
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        uint64_t sum = t.accumulate ? uint64_t(before.at(q, i, j)) : 0;
        for (int64_t p = 0; p < t.k; ++p) sum += uint64_t(a.at(t.broadcast_a ? 0 : q, i, p)) * uint64_t(b.at(q, p, j));
        if (t.bias) sum += uint64_t(bias[size_t(2 * j)]);
        T expected = T(sum);
        if (t.activation == Activation::relu && expected < T(0)) expected = 0;
        ASSERT_EQ(c.at(q, i, j), expected) << name(dtype_of<T>()) << " " << t.text();
      }
    }
  }
}

template <class... T> void check_integers(const Case& t) { (check_integer<T>(t), ...); }

TEST(GemmTest, IntegersWrapAround) {
  for (Order order : orders) {
    for (auto [m, n, k] : {Shape3{1, 1, 1}, {7, 5, 0}, {9, 150, 20}, {70, 40, 33}, {130, 300, 12}}) {
      for (int flags = 0; flags < 4; ++flags) {
        Case t = {m, n, k, order, order, order};
        t.accumulate = t.bias = flags & 1;
        t.activation = flags & 2 ? Activation::relu : Activation::none;
        check_integers<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t);
      }
    }
  }
  Case t = {20, 30, 10};
  t.batch = 3, t.broadcast_a = true;
  check_integers<int8_t, int64_t>(t);
}

TEST(GemmTest, BooleanIsAnyOfAnd) {
  std::mt19937 random(1);
  for (auto [m, n, k] : {Shape3{3, 4, 0}, {20, 170, 9}, {64, 64, 64}}) {
    std::vector<uint8_t> a(size_t(m * k)), b(size_t(k * n)), c(size_t(m * n));
    for (auto* v : {&a, &b, &c}) {
      for (uint8_t& x : *v) x = random() % 8 == 0;
    }
    for (bool accumulate : {false, true}) {
      std::vector<uint8_t> out = c;
      gemm({boolean, m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, out.data(), n, 1, accumulate});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          bool any = accumulate && c[size_t(i * n + j)];
          for (int64_t p = 0; p < k; ++p) any |= a[size_t(i * k + p)] && b[size_t(p * n + j)];
          ASSERT_EQ(out[size_t(i * n + j)], uint8_t(any));
        }
      }
    }
  }
}

TEST(GemmTest, EmptyResultTouchesNothing) {
  float guard = 5;
  gemm({f32, 0, 3, 2, {nullptr, 2, 1}, {nullptr, 3, 1}, &guard, 3, 1});
  gemm({f32, 3, 0, 2, {nullptr, 2, 1}, {nullptr, 0, 1}, &guard, 0, 1});
  const BatchAxis none = {0, 1, 1, 1};
  gemm({f32, 1, 1, 1, {nullptr, 2, 1}, {nullptr, 3, 1}, &guard, 3, 1, false, {}, {&none, 1}});
  EXPECT_EQ(guard, 5);
}

TEST(GemmTest, NanAndInfinityPropagate) {
  const float inf = INFINITY;
  for (int64_t n : {1, 3, 40}) {
    std::vector<float> a = {1, NAN, inf, 0}, b(size_t(2 * n), 0.0f), c(size_t(2 * n));
    gemm({f32, 2, n, 2, {a.data(), 2, 1}, {b.data(), n, 1}, c.data(), n, 1, false, {nullptr, 1, Activation::relu}});
    for (float x : c) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(GemmTest, RefusesWhatItCannotDo) {
  float x = 0;
  Gemm g = {f32, 1, 1, 1, {&x, 1, 1}, {&x, 1, 1}, &x, 1, 1};
  g.c_dtype = f64;
  EXPECT_THROW(gemm(g), Error);
  g.c_dtype = {};
  g.epilogue.activation = Activation::tanh;
  EXPECT_THROW(gemm(g), Error);
  g.epilogue = {};
  g.m = -1;
  EXPECT_THROW(gemm(g), Error);
  Gemm h = {i32, 1, 1, 1, {&x, 1, 1}, {&x, 1, 1}, &x, 1, 1};
  h.epilogue.activation = Activation::gelu;
  EXPECT_THROW(gemm(h), Error);
}

class GemmThreads : public ::testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = get_num_threads();
};

template <class T> std::vector<T> product(const Shape3& s, bool transposed_b, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> a(size_t(s.m * s.k)), b(size_t(s.k * s.n)), c(size_t(s.m * s.n));
  fill(a, random), fill(b, random);
  const Matrix second = transposed_b ? Matrix{b.data(), 1, s.k} : Matrix{b.data(), s.n, 1};
  gemm({dtype_of<T>(), s.m, s.n, s.k, {a.data(), s.k, 1}, second, c.data(), s.n, 1});
  return c;
}

template <class T> void check_bits(const Shape3& s) {
  for (bool transposed : {false, true}) {
    set_num_threads(1);
    const std::vector<T> one = product<T>(s, transposed, 1);
    for (int threads : {2, 3, 8}) {
      set_num_threads(threads);
      const std::vector<T> many = product<T>(s, transposed, 1);
      ASSERT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(T)), 0)
          << s.m << "x" << s.n << "x" << s.k << " with " << threads << " threads";
    }
  }
}

TEST_F(GemmThreads, SameBitsForAnyNumberOfThreads) {
  for (auto s : {Shape3{64, 64, 64},
                 {100, 90, 80},
                 {128, 128, 128},
                 {300, 200, 700},
                 {1, 3000, 500},
                 {1, 20, 20000},
                 {4, 700, 300},
                 {500, 3, 900},
                 {20, 24, 5000},
                 {64, 500, 300}}) {
    check_bits<float>(s);
    check_bits<double>(s);
    check_bits<bfloat16>(s);
  }
  check_bits<float16>({200, 200, 200});
}

TEST_F(GemmThreads, ConcurrentCallersGetTheirOwnResults) {
  set_num_threads(3);
  const Shape3 shapes[] = {{200, 150, 300}, {64, 64, 64}, {1, 2000, 400}, {20, 20, 6000}};
  std::vector<std::vector<float>> expected;
  for (const Shape3& s : shapes) expected.push_back(product<float>(s, false, 9));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> callers;
  for (size_t t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int round = 0; round < 8; ++round) {
        const size_t i = (t + size_t(round)) % 4;
        wrong[t] += product<float>(shapes[i], false, 9) != expected[i];
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(GemmThreads, InsideAParallelLoop) {
  set_num_threads(3);
  const std::vector<float> expected = product<float>({160, 170, 180}, true, 2);
  std::vector<int> wrong(6, 0);
  parallel(6, [&](int64_t i) { wrong[size_t(i)] = product<float>({160, 170, 180}, true, 2) != expected; });
  EXPECT_EQ(wrong, std::vector<int>(6, 0));
}

TEST(GemmPlan, PartsCoverEveryElementOnce) {
  const GemmTile tile = {8, 12, 4, 6, 4};
  for (auto s : {Shape3{1, 1, 1}, {64, 64, 64}, {127, 65, 33}, {2048, 2048, 2048}, {3136, 64, 576}, {33, 5000, 100}}) {
    for (int64_t parts : {1, 2, 3, 8, 64}) {
      const Grid grid = plan_grid(s, tile, parts);
      EXPECT_LE(grid.parts(), parts);
      int64_t covered = 0, most = 0;
      for (int64_t i = 0; i < grid.parts(); ++i) {
        const Rectangle r = grid.part(s, tile, i);
        const int64_t size = r.empty() ? 0 : r.rows.size * r.columns.size;
        covered += size, most = std::max(most, size);
      }
      EXPECT_EQ(covered, s.m * s.n);
      const bool even = parts != 2 || s.m == 1 || most * 2 <= s.m * s.n * 11 / 10;
      EXPECT_TRUE(even) << "two threads share the work";
    }
  }
}

}  // namespace
}  // namespace volta::cpu

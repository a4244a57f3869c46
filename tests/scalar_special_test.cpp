// Scalar mathematics: special values, hard arguments, integer edge cases.
#include "volta/scalar.h"

#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "scalar_error.h"

namespace volta::test {
namespace {

namespace sc = volta::scalar;

// A value that is the wanted one to the bit, any NaN for NaN.
template <class T> void expect_same(T got, T want, const char* what) {
  if (std::isnan(want)) EXPECT_TRUE(std::isnan(got)) << what << " gives " << got;
  else EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want)) << what << ": " << got << " for " << want;
}

template <class T> class ScalarReal : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ScalarReal, Reals);

TYPED_TEST(ScalarReal, near_trigonometry_agrees_with_the_full_range) {
  using T = TypeParam;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(-1, 1), exponent(-40, std::log2(double(sc::trig_limit<T>)));
  Worst<T> worst;
  for (int i = 0; i < 20000; ++i) {
    const T x = i == 0 ? sc::trig_limit<T> : T(unit(random) * std::exp2(exponent(random)));
    worst.note(ulps(sc::sin_near(x), std::sin((long double)(x))), x);
    worst.note(ulps(sc::cos_near(x), std::cos((long double)(x))), x);
    worst.note(ulps(sc::tan_near(x), std::tan((long double)(x))), x);
  }
  worst.report("near trig", 2);
  for (T x : {T(inf), T(-inf), T(nan)}) expect_same(sc::sin_near(x), T(nan), "sin_near");
  expect_same(sc::sin_near(T(-0.0)), T(-0.0), "sin_near");
}

// The doubles and floats hardest to reduce: nearest to multiples of pi/2.
TEST(ScalarSpecial, hard_arguments_of_trigonometry) {
  const double hard = 6381956970095103.0 * 0x1p797;
  EXPECT_LE(ulps(sc::cos(hard), -4.68716592425462761112e-19L), 2);
  EXPECT_LE(ulps(sc::sin(1e22), -0.8522008497671888017727L), 2);
  EXPECT_LE(ulps(sc::cos(1e22), 0.5232147853951389454975L), 2);
  EXPECT_LE(ulps(sc::sin(0x1.fffffep127f), std::sin(double(0x1.fffffep127f))), 2);
  for (float x : {16367173.0f * 0x1p72f, 0x1.921fb6p+0f, 0x1.6cbe4p+7f, 13176795.0f, 12203770.0f * 0x1p20f}) {
    EXPECT_LE(ulps(sc::cos(x), std::cos(double(x))), 2) << x;
    EXPECT_LE(ulps(sc::sin(x), std::sin(double(x))), 2) << x;
  }
}

TYPED_TEST(ScalarReal, exact_functions_agree_with_the_library) {
  using T = TypeParam;
  for (T x : landmarks<T>()) {
    expect_same(sc::floor(x), std::floor(x), "floor");
    expect_same(sc::ceil(x), std::ceil(x), "ceil");
    expect_same(sc::trunc(x), std::trunc(x), "trunc");
    expect_same(sc::round(x), std::nearbyint(x), "round");
    expect_same(sc::abs(x), std::fabs(x), "abs");
    expect_same(sc::neg(x), -x, "neg");
    expect_same(sc::sqrt(x), std::sqrt(x), "sqrt");
    expect_same(sc::square(x), x * x, "square");
    EXPECT_EQ(sc::isnan(x), std::isnan(x));
    EXPECT_EQ(sc::isinf(x), std::isinf(x));
    EXPECT_EQ(sc::isfinite(x), std::isfinite(x));
    EXPECT_EQ(sc::signbit(x), std::signbit(x));
    expect_same(sc::sign(x), std::isnan(x) || x == 0 ? x : x > 0 ? T(1) : T(-1), "sign");
    for (int n :
         {-5000, -2100, -1074, -1023, -277, -149, -127, -126, -103, -1, 0, 1, 100, 127, 254, 300, 1023, 2098, 5000})
      expect_same(sc::ldexp(x, n), std::ldexp(x, n), "ldexp");
    for (T y : landmarks<T>()) {
      expect_same(sc::copysign(x, y), std::copysign(x, y), "copysign");
      expect_same(sc::nextafter(x, y), std::nextafter(x, y), "nextafter");
      expect_same(sc::fmod(x, y), std::fmod(x, y), "fmod");
      const bool either = std::isnan(x) || std::isnan(y);
      expect_same(sc::max(x, y), either ? T(nan) : x > y ? x : y, "max");
      expect_same(sc::min(x, y), either ? T(nan) : x < y ? x : y, "min");
      EXPECT_TRUE(sc::fmax(x, y) == std::fmax(x, y) || (std::isnan(x) && std::isnan(y))) << x << ' ' << y;
      EXPECT_TRUE(sc::fmin(x, y) == std::fmin(x, y) || (std::isnan(x) && std::isnan(y))) << x << ' ' << y;
    }
  }
  for (T x : {T(0.5), T(1.5), T(2.5), T(-0.5), T(-1.5)}) expect_same(sc::round(x), std::nearbyint(x), "round");
}

TYPED_TEST(ScalarReal, remainders_follow_python) {
  using T = TypeParam;
  struct Row {
    double x, y, remainder, quotient;
  };
  const Row rows[] = {{7, 3, 1, 2},       {-7, 3, 2, -3},       {7, -3, -2, -3},    {-7, -3, -1, 2},
                      {6, 3, 0, 2},       {-6, 3, 0, -2},       {0, 3, 0, 0},       {-0.0, 3, 0, -0.0},
                      {1, inf, 1, 0},     {-1, inf, inf, -1},   {inf, 3, nan, nan}, {3, nan, nan, nan},
                      {5.5, 0, nan, inf}, {-5.5, 0, nan, -inf}, {0.0, 0, nan, nan}};
  for (const Row& r : rows) {
    expect_same(sc::remainder(T(r.x), T(r.y)), T(r.remainder), "remainder");
    expect_same(sc::floor_divide(T(r.x), T(r.y)), T(r.quotient), "floor_divide");
  }
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(-1, 1), exponent(-60, 60);
  for (int i = 0; i < 20000; ++i) {
    const T x = T(unit(random) * std::exp2(exponent(random))), y = T(unit(random) * std::exp2(exponent(random)));
    expect_same(sc::fmod(x, y), std::fmod(x, y), "fmod");
    const T rest = std::fmod(x, y);
    expect_same(sc::remainder(x, y), rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest, "remainder");
  }
}

TYPED_TEST(ScalarReal, powers_have_the_special_values_of_the_standard) {
  using T = TypeParam;
  const double marks[] = {0.0,  -0.0, 1,    -1,   2,     -2,  3,    -3,  0.5,
                          -0.5, 2.5,  -2.5, 1e30, -1e30, inf, -inf, nan, 9007199254740993.0};
  for (double x : marks)
    for (double y : marks) {
      const T want = T(std::pow(T(x), T(y)));
      EXPECT_LE(ulps(sc::pow(T(x), T(y)), (long double)(want)), 2) << x << " ^ " << y;
    }
}

TYPED_TEST(ScalarReal, exponentials_underflow_gradually) {
  using T = TypeParam;
  const T least = std::numeric_limits<T>::denorm_min();
  expect_same(sc::exp2(T(std::log2(least))), least, "exp2");
  EXPECT_GT(sc::exp(std::log(least) + T(0.5)), 0);
  expect_same(sc::exp(T(-800)), T(0), "exp");
  expect_same(sc::exp(T(800)), T(inf), "exp");
  if (sizeof(T) == 4) expect_same(sc::exp(T(-400)), T(0), "exp");
}

// A scalar-like type of another kind must find no function here.
struct Foreign {
  float value;
};
template <class X>
concept Captured = requires(X x) {
  sc::exp(x);
}
|| requires(X x) { sc::max(x, 0.f); }
|| requires(X x) { sc::select(true, x, x); }
|| requires(X x) { sc::pow(x, 2); };
static_assert(!Captured<Foreign> && Captured<float>);
static_assert(std::is_same_v<decltype(sc::max(1.0, 0.f)), double> &&
              std::is_same_v<decltype(sc::max(0.f, 1.0)), double>);
static_assert(std::is_same_v<decltype(sc::max(1.f, 0)), float> &&
              std::is_same_v<decltype(sc::max(int8_t(1), 0.f)), int8_t>);
static_assert(std::is_same_v<decltype(sc::select(true, 1.f, 2.0)), double> &&
              std::is_same_v<decltype(sc::pow(2.f, 3)), float>);
static_assert(sc::exp(0.0) == 1 && sc::pow(3, 4) == 81 && sc::max(2, 3.f) == 3);

template <class T> class ScalarInteger : public testing::Test {};
using Integers = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(ScalarInteger, Integers);

__extension__ using Wide = __int128;
__extension__ using WideBits = unsigned __int128;

template <class T> std::vector<T> integers() {
  using limits = std::numeric_limits<T>;
  std::vector<T> v;
  for (int i = -9; i <= 70; ++i) v.push_back(T(i));
  for (T edge : {limits::min(), T(limits::min() + 1), limits::max(), T(limits::max() - 1), T(limits::max() / 2 + 1)})
    v.push_back(edge);
  return v;
}

TYPED_TEST(ScalarInteger, arithmetic_is_total_and_wraps) {
  using T = TypeParam;
  constexpr int width = int(sizeof(T)) * 8;
  for (T a : integers<T>()) {
    const Wide x = a;
    EXPECT_EQ(sc::neg(a), T(-x));
    EXPECT_EQ(sc::abs(a), T(x < 0 ? -x : x));
    EXPECT_EQ(sc::sign(a), T((x > 0) - (x < 0)));
    EXPECT_EQ(sc::square(a), T(WideBits(x) * WideBits(x)));
    for (T b : integers<T>()) {
      const Wide y = b, whole = y == 0 ? 0 : x / y, rest = y == 0 ? 0 : x % y;
      const bool below = rest != 0 && (rest < 0) != (y < 0);
      EXPECT_EQ(sc::truncated_divide(a, b), T(whole));
      EXPECT_EQ(sc::fmod(a, b), T(rest));
      EXPECT_EQ(sc::floor_divide(a, b), T(whole - below)) << int64_t(a) << ' ' << int64_t(b);
      EXPECT_EQ(sc::remainder(a, b), T(below ? rest + y : rest)) << int64_t(a) << ' ' << int64_t(b);
      EXPECT_EQ(sc::min(a, b), std::min(a, b));
      EXPECT_EQ(sc::max(a, b), std::max(a, b));
      const bool inside = y >= 0 && y < width;
      EXPECT_EQ(sc::shift_left(a, b), T(inside ? Wide(uint64_t(a)) << int(y) : 0));
      EXPECT_EQ(sc::shift_right(a, b), T(inside ? x >> int(y) : x < 0 ? -1 : 0));
    }
  }
}

TYPED_TEST(ScalarInteger, powers_wrap_and_negative_exponents_truncate) {
  using T = TypeParam;
  for (T base : integers<T>()) {
    uint64_t product = 1;
    for (int n = 0; n < 64; ++n, product *= uint64_t(base))
      EXPECT_EQ(sc::pow(base, T(n)), T(product)) << int64_t(base) << '^' << n;
    if (!std::is_signed_v<T>) continue;
    for (int n : {-1, -2, -3, int(std::numeric_limits<int8_t>::min())}) {
      const T want = base == T(1) ? T(1) : base == T(-1) ? T(n % 2 ? -1 : 1) : T(0);
      EXPECT_EQ(sc::pow(base, T(n)), want) << int64_t(base) << '^' << n;
    }
  }
}

TEST(ScalarSpecial, booleans) {
  for (bool a : {false, true}) {
    EXPECT_EQ(sc::abs(a), a);
    EXPECT_EQ(sc::sign(a), a);
    for (bool b : {false, true}) {
      EXPECT_EQ(sc::min(a, b), a && b);
      EXPECT_EQ(sc::max(a, b), a || b);
      EXPECT_EQ(sc::pow(a, b), a || !b);
      EXPECT_EQ(sc::floor_divide(a, b), a && b);
      EXPECT_FALSE(sc::remainder(a, b));
    }
  }
}

}  // namespace
}  // namespace volta::test

// Scalar mathematics: measured error of every function against wider references, special values, integer edge cases.
#include "volta/scalar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace sc = volta::scalar;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The error of `got` in units of T's last place at max(|want|, scale). Infinite where a NaN, an infinity, or the sign
// of an exact zero disagrees.
template <class T, class Wide> double ulps(T got, Wide want, Wide scale = 0) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : inf;
  if (std::isnan(got)) return inf;
  if (std::isinf(want)) return got == T(want) ? 0 : inf;
  if (want == 0 && got == 0) return std::signbit(want) == std::signbit(got) ? 0 : inf;
  const Wide beyond = std::ldexp(Wide(1), limits::max_exponent);  // what infinity stands for
  const Wide value = std::isinf(got) ? std::copysign(beyond, Wide(got)) : Wide(got);
  const Wide target = std::clamp(want, -beyond, beyond);
  int exponent;
  std::frexp(std::max(std::fabs(target), scale), &exponent);
  const Wide unit =
      std::ldexp(Wide(1), std::clamp(exponent, limits::min_exponent, limits::max_exponent) - limits::digits);
  return double(std::fabs(value - target) / unit);
}

template <class T> struct Worst {
  double error = 0;
  T x = 0, y = 0;
  void note(double e, T a, T b = 0) {
    if (!(e <= error)) *this = {e, a, b};
  }
  void report(const char* name, double bound) const {
    std::printf("%-4s %-12s %.3f ulp at (%.9g, %.9g)\n", sizeof(T) == 4 ? "f32" : "f64", name, error, double(x),
                double(y));
    EXPECT_LE(error, bound) << name << " at " << x << ", " << y;
  }
};

// Values where functions change their ways: zeros, denormals, powers of two, limits, and their neighbours.
template <class T> std::vector<T> landmarks() {
  using limits = std::numeric_limits<T>;
  std::vector<T> base = {T(0),
                         limits::denorm_min(),
                         limits::min(),
                         limits::max(),
                         limits::infinity(),
                         limits::quiet_NaN(),
                         limits::epsilon(),
                         T(0.25),
                         T(0.5),
                         T(0.55),
                         T(0.625),
                         T(0.7),
                         T(0.70710678118654752),
                         T(1),
                         T(1.41421356237309505),
                         T(1.5),
                         T(1.4616321449683623),
                         T(2),
                         T(2.5),
                         T(3),
                         T(4),
                         T(5),
                         T(6),
                         T(6.25),
                         T(8),
                         T(9),
                         T(10),
                         T(16),
                         T(20),
                         T(28),
                         T(88.72283),
                         T(87.33654),
                         T(103.97208),
                         T(709.782712893384),
                         T(745.1332191019411),
                         T(89.41599),
                         T(710.4758600739439),
                         T(1e9),
                         T(1e22),
                         T(1.57079632679489662),
                         T(3.14159265358979324),
                         T(0.785398163397448),
                         T(0x1p20),
                         T(0x1p31)};
  std::vector<T> all;
  for (T v : base)
    for (T w : {std::nextafter(v, T(0)), v, std::nextafter(v, limits::infinity())})
      for (T s : {w, -w}) all.push_back(s);
  return all;
}

// Applies f to x in blocks, as a row kernel does.
template <class T, class F> std::vector<T> apply(F f, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
  return y;
}

// Every stride-th of all 2^32 floats, and the landmarks.
const std::vector<float>& all_floats(bool coarse) {
  static const auto make = [](uint64_t stride) {
    std::vector<float> x = landmarks<float>();
    for (uint64_t u = 0; u < uint64_t(1) << 32; u += stride) x.push_back(std::bit_cast<float>(uint32_t(u)));
    return x;
  };
  static const std::vector<float> fine = make(1009), few = make(8209);
  return coarse ? few : fine;
}

const std::vector<double>& many_doubles() {
  static const std::vector<double> x = [] {
    std::vector<double> v = landmarks<double>();
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> unit(-1, 1), exponent(-1074, 1024), near(-30, 12);
    for (int i = 0; i < 4000; ++i) v.push_back(unit(random) * std::exp2(exponent(random)));
    for (int i = 0; i < 6000; ++i) v.push_back(unit(random) * std::exp2(near(random)));
    for (int i = 0; i < 6000; ++i) v.push_back(unit(random) * 12);
    for (int i = 0; i < 3000; ++i) v.push_back(unit(random) * 1.5);
    for (int i = 0; i < 3000; ++i) v.push_back(1 + unit(random) * std::exp2(near(random) - 24));
    return v;
  }();
  return x;
}

struct Options {
  double bound = 2;
  bool coarse = false;
};

// f at both precisions, against `reference` called with double for float and long double for double.
template <class F, class R> void measure(const char* name, F f, R reference, Options options = {}) {
  const auto& x = all_floats(options.coarse);
  const auto y = apply(f, x);
  Worst<float> single;
  for (size_t i = 0; i < x.size(); ++i) single.note(ulps(y[i], reference(double(x[i]))), x[i]);
  single.report(name, options.bound);
  const auto& u = many_doubles();
  const auto v = apply(f, u);
  Worst<double> twice;
  for (size_t i = 0; i < u.size(); ++i) twice.note(ulps(v[i], reference((long double)(u[i]))), u[i]);
  twice.report(name, options.bound);
}

// As measure, with the error in units of the larger of the result and scale(x): the terms that cancel in it.
template <class F, class R, class S>
void measure_scaled(const char* name, F f, R reference, S scale, Options options = {}) {
  Worst<float> single;
  for (float x : all_floats(options.coarse)) {
    const double d = x;
    single.note(ulps(f(x), reference(d), scale(d)), x);
  }
  single.report(name, options.bound);
  Worst<double> twice;
  for (double x : many_doubles()) {
    const long double d = x;
    twice.note(ulps(f(x), reference(d), scale(d)), x);
  }
  twice.report(name, options.bound);
}

template <class T> std::vector<std::pair<T, T>> pairs() {
  std::vector<std::pair<T, T>> all;
  const auto marks = landmarks<T>();
  for (size_t i = 0; i < marks.size(); i += 2)
    for (size_t j = 0; j < marks.size(); ++j) all.emplace_back(marks[i], marks[j]);
  std::mt19937_64 random(11);
  const int least = std::numeric_limits<T>::min_exponent - 20, most = std::numeric_limits<T>::max_exponent;
  std::uniform_real_distribution<double> unit(-1, 1), whole(least, most), near(-20, 10);
  const int count = sizeof(T) == 4 ? 400000 : 20000;
  for (int i = 0; i < count; ++i) {
    auto& exponent = i % 2 ? whole : near;
    all.emplace_back(T(unit(random) * std::exp2(exponent(random))), T(unit(random) * std::exp2(exponent(random))));
  }
  // Bases whose power by the exponent spans the whole range, and whole exponents.
  for (int i = 0; i < count; ++i) {
    const T x = T(std::exp2(unit(random) * 8)),
            y = T(unit(random) * most / std::max(0.01, std::fabs(std::log2(double(x)))));
    all.emplace_back(x, y);
    if (i % 4 == 0) all.emplace_back(-x, std::round(y));
  }
  return all;
}

template <class T, class Wide, class F, class R, class S>
void measure_pairs(const char* name, F f, R reference, S scale, double bound) {
  static const auto all = pairs<T>();
  std::vector<T> got(all.size());
  for (size_t i = 0; i < all.size(); ++i) got[i] = f(all[i].first, all[i].second);
  Worst<T> worst;
  for (size_t i = 0; i < all.size(); ++i) {
    const Wide x = all[i].first, y = all[i].second;
    worst.note(ulps(got[i], Wide(reference(x, y)), Wide(scale(x, y))), all[i].first, all[i].second);
  }
  worst.report(name, bound);
}

template <class F, class R, class S> void measure_two(const char* name, F f, R reference, S scale, double bound = 2) {
  measure_pairs<float, double>(name, f, reference, scale, bound);
  measure_pairs<double, long double>(name, f, reference, scale, bound);
}

template <class F, class R> void measure_two(const char* name, F f, R reference, double bound = 2) {
  measure_two(
      name, f, reference, [](auto, auto) { return 0; }, bound);
}

// References the standard library lacks.

template <class W> W inverse_erf(W x) {
  if (std::fabs(x) > 1 || std::isnan(x)) return W(nan);
  if (std::fabs(x) == 1) return std::copysign(W(inf), x);
  if (x == 0) return x;
  const W a = std::fabs(x), slope = 2 / std::sqrt(std::acos(W(-1)));
  W y = sc::erfinv(double(a));
  if (std::isinf(y)) y = W(5.9);
  for (int i = 0; i < 3; ++i) {
    // Newton's step on log(erfc) far out, where 1 - a is exact and erf is flat; on erf near zero.
    const W density = slope * std::exp(-y * y), q = std::erfc(y);
    y -= a < W(0.5) ? (std::erf(y) - a) / density : -std::log(q / (1 - a)) * q / density;
  }
  return std::copysign(y, x);
}

// Bernoulli's series beyond 40, and the recurrence down from there.
template <class W> W psi(W x) {
  if (x == 0) return std::copysign(W(inf), -x);
  if (std::isnan(x) || x == -W(inf) || (x < 0 && x == std::floor(x))) return W(nan);
  if (std::isinf(x)) return x;
  const W pi = std::acos(W(-1));
  if (x < 0) {
    const W r = x - std::round(x);
    return psi(1 - x) - pi / std::tan(pi * r);
  }
  W sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  const W z = 1 / (x * x);
  const W tail =
      z * (W(1) / 12 -
           z * (W(1) / 120 -
                z * (W(1) / 252 -
                     z * (W(1) / 240 -
                          z * (W(1) / 132 -
                               z * (W(691) / 32760 - z * (W(1) / 12 - z * (W(3617) / 8160 - z * 43867 / 14364))))))));
  return sum + (std::log(x) - 1 / (2 * x) - tail);
}

template <class W> W psi1(W x) {
  if (std::isnan(x) || x == -W(inf)) return W(nan);
  if (x == 0 || (x < 0 && x == std::floor(x))) return W(inf);
  if (std::isinf(x)) return 0;
  const W pi = std::acos(W(-1));
  if (x < 0) {
    const W s = std::sin(pi * (x - std::round(x)));
    return pi * pi / (s * s) - psi1(1 - x);
  }
  W sum = 0;
  for (; x < 40; x += 1) sum += 1 / (x * x);
  const W z = 1 / (x * x);
  const W tail =
      z / x *
      (W(1) / 6 -
       z * (W(1) / 30 -
            z * (W(1) / 42 -
                 z * (W(1) / 30 - z * (W(5) / 66 - z * (W(691) / 2730 -
                                                        z * (W(7) / 6 - z * (W(3617) / 510 - z * 43867 / 798))))))));
  return sum + (1 / x + z / 2 + tail);
}

template <class W> W log_gamma(W x) { return x == -W(inf) ? W(inf) : std::lgamma(x); }

template <class W> W log_add(W a, W b, W base) {
  if (a == b) return a + std::log(W(2)) / base;
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b) * base)) / base;
}

TEST(ScalarAccuracy, exponentials) {
  measure(
      "exp", [](auto x) { return sc::exp(x); }, [](auto x) { return std::exp(x); });
  measure(
      "exp2", [](auto x) { return sc::exp2(x); }, [](auto x) { return std::exp2(x); });
  measure(
      "expm1", [](auto x) { return sc::expm1(x); }, [](auto x) { return std::expm1(x); });
}

TEST(ScalarAccuracy, logarithms) {
  measure(
      "log", [](auto x) { return sc::log(x); }, [](auto x) { return std::log(x); });
  measure(
      "log2", [](auto x) { return sc::log2(x); }, [](auto x) { return std::log2(x); });
  measure(
      "log10", [](auto x) { return sc::log10(x); }, [](auto x) { return std::log10(x); });
  measure(
      "log1p", [](auto x) { return sc::log1p(x); }, [](auto x) { return std::log1p(x); });
}

TEST(ScalarAccuracy, trigonometric) {
  measure(
      "sin", [](auto x) { return sc::sin(x); }, [](auto x) { return std::sin(x); });
  measure(
      "cos", [](auto x) { return sc::cos(x); }, [](auto x) { return std::cos(x); });
  measure(
      "tan", [](auto x) { return sc::tan(x); }, [](auto x) { return std::tan(x); });
  measure(
      "asin", [](auto x) { return sc::asin(x); }, [](auto x) { return std::asin(x); });
  measure(
      "acos", [](auto x) { return sc::acos(x); }, [](auto x) { return std::acos(x); });
  measure(
      "atan", [](auto x) { return sc::atan(x); }, [](auto x) { return std::atan(x); });
}

TEST(ScalarAccuracy, hyperbolic) {
  measure(
      "sinh", [](auto x) { return sc::sinh(x); }, [](auto x) { return std::sinh(x); });
  measure(
      "cosh", [](auto x) { return sc::cosh(x); }, [](auto x) { return std::cosh(x); });
  measure(
      "tanh", [](auto x) { return sc::tanh(x); }, [](auto x) { return std::tanh(x); });
  measure(
      "asinh", [](auto x) { return sc::asinh(x); }, [](auto x) { return std::asinh(x); });
  measure(
      "acosh", [](auto x) { return sc::acosh(x); }, [](auto x) { return std::acosh(x); });
  measure(
      "atanh", [](auto x) { return sc::atanh(x); }, [](auto x) { return std::atanh(x); });
}

TEST(ScalarAccuracy, error_function) {
  measure(
      "erf", [](auto x) { return sc::erf(x); }, [](auto x) { return std::erf(x); });
  measure(
      "erfc", [](auto x) { return sc::erfc(x); }, [](auto x) { return std::erfc(x); });
  measure(
      "erfinv", [](auto x) { return sc::erfinv(x); }, [](auto x) { return inverse_erf(x); }, {.coarse = true});
}

// Floats are held to an epsilon of 1, and to five digits of the result; doubles to two ulp and what the rounding of
// x / sqrt(2), whose square is an exponent, amounts to.
TEST(ScalarAccuracy, gelu) {
  double absolute = 0, relative = 0;
  for (float x = -14; x < 14; x += 0x1p-14f) {
    const double want = x * 0.5 * std::erfc(-double(x) / std::sqrt(2.0)), error = std::fabs(sc::gelu(x) - want);
    const float size = std::fabs(float(want));
    absolute = std::max(absolute, error - 0.5 * (std::nextafter(size, float(inf)) - size));
    if (size > 1e-37f) relative = std::max(relative, error / size);
  }
  EXPECT_LE(absolute, 1.2e-7);
  EXPECT_LE(relative, 3e-5);
  Worst<double> twice;
  for (double x = -37; x < 12; x += 0.0037) {
    const long double want = x * 0.5L * std::erfc(-(long double)x / std::sqrt(2.0L));
    twice.note(ulps(sc::gelu(x), want) / (2 + 2 * x * x), x);
  }
  twice.report("gelu", 1);
}

TEST(ScalarSpecial, gelu) {
  const auto check = []<class T>(T) {
    using limits = std::numeric_limits<T>;
    for (T x : {limits::infinity(), limits::max(), T(100), T(0)}) EXPECT_EQ(sc::gelu(x), x);
    for (T x : {limits::quiet_NaN(), -limits::quiet_NaN()}) EXPECT_TRUE(std::isnan(sc::gelu(x)));
    EXPECT_EQ(sc::gelu(-limits::max()), T(0));
  };
  check(float());
  check(double());
}

// The short formulas give the bits of the general ones.
TEST(ScalarNear, equals_the_general_formula) {
  for (float x : all_floats(false)) {
    const float size = std::fabs(x);
    ASSERT_TRUE(!(size <= sc::exp_limit<float>) || sc::exp_near(x) == sc::exp(x)) << x;
    ASSERT_TRUE(!(size <= sc::normal_limit) || sc::gelu_near(x) == sc::gelu(x)) << x;
    if (!(size <= sc::trig_limit<float>)) continue;
    ASSERT_EQ(sc::sin_near(x), sc::sin(x)) << x;
    ASSERT_EQ(sc::cos_near(x), sc::cos(x)) << x;
    ASSERT_EQ(sc::tan_near(x), sc::tan(x)) << x;
  }
  for (double x : many_doubles())
    ASSERT_TRUE(!(std::fabs(x) <= sc::exp_limit<double>) || sc::exp_near(x) == sc::exp(x)) << x;
}

// On the negative side these cross zero between the poles, by cancellation of the reflection's two terms.
TEST(ScalarAccuracy, gamma) {
  measure_scaled(
      "lgamma", [](auto x) { return sc::lgamma(x); }, [](auto x) { return log_gamma(x); },
      [](auto x) { return x < 0 && std::isfinite(x) ? std::max(std::fabs(log_gamma(-x)), decltype(x)(1)) : 0; },
      {.coarse = true});
  measure_scaled(
      "digamma", [](auto x) { return sc::digamma(x); }, [](auto x) { return psi(x); },
      [](auto x) {
        return x < 0 && std::isfinite(x) ? std::max(std::fabs(psi(1 - x)) + std::fabs(psi(x)), decltype(x)(1))
                                         : decltype(x)(0.25);
      },
      {.coarse = true});
  measure(
      "polygamma1", [](auto x) { return sc::polygamma1(x); }, [](auto x) { return psi1(x); }, {.coarse = true});
}

TEST(ScalarAccuracy, roots) {
  measure(
      "sqrt", [](auto x) { return sc::sqrt(x); }, [](auto x) { return std::sqrt(x); }, {.bound = 0.5});
  measure(
      "rsqrt", [](auto x) { return sc::rsqrt(x); }, [](auto x) { return 1 / std::sqrt(x); });
  measure(
      "reciprocal", [](auto x) { return sc::reciprocal(x); }, [](auto x) { return 1 / x; }, {.bound = 0.5001});
}

TEST(ScalarAccuracy, two_arguments) {
  measure_two(
      "pow", [](auto x, auto y) { return sc::pow(x, y); }, [](auto x, auto y) { return std::pow(x, y); });
  measure_two(
      "atan2", [](auto x, auto y) { return sc::atan2(x, y); }, [](auto x, auto y) { return std::atan2(x, y); });
  measure_two(
      "hypot", [](auto x, auto y) { return sc::hypot(x, y); }, [](auto x, auto y) { return std::hypot(x, y); });
  // The sum's two terms, the larger argument and a logarithm of at most log(2), may cancel.
  const auto larger = [](auto x, auto y) {
    return std::isfinite(x) && std::isfinite(y) ? std::max({std::fabs(x), std::fabs(y), decltype(x)(0.5)}) : 0;
  };
  measure_two(
      "logaddexp", [](auto x, auto y) { return sc::logaddexp(x, y); },
      [](auto x, auto y) { return log_add(x, y, decltype(x)(1)); }, larger);
  measure_two(
      "logaddexp2", [](auto x, auto y) { return sc::logaddexp2(x, y); },
      [](auto x, auto y) { return log_add(x, y, std::log(decltype(x)(2))); }, larger);
}

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

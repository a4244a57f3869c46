// Scalar mathematics: measured error of every function against wider references.
#include "volta/scalar.h"

#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "scalar_error.h"

namespace volta::test {
namespace {

namespace sc = volta::scalar;

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
    ASSERT_TRUE(!(size <= sc::tanh_limit<float>) || sc::tanh_near(x) == sc::tanh(x)) << x;
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

}  // namespace
}  // namespace volta::test

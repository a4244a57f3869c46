// The generator against its published vectors; distributions by bounds, moments and invariance under splitting.
#include "backend/cpu/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <volta/threads.h>

namespace volta {
namespace {

using random::philox;
using random::Words;

void expect_words(Words got, Words want) {
  EXPECT_EQ(got.x, want.x);
  EXPECT_EQ(got.y, want.y);
  EXPECT_EQ(got.z, want.z);
  EXPECT_EQ(got.w, want.w);
}

TEST(Philox, KnownAnswers) {
  expect_words(philox(Words{0, 0, 0, 0}, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t ones = 0xffffffff;
  expect_words(philox(Words{ones, ones, ones, ones}, ones, ones), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(philox(Words{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

RandomCall call_of(Distribution kind, DType dtype) {
  RandomCall call{kind, dtype};
  call.seed = 0x123456789abcdef;
  call.range = dtype == boolean ? 2 : 100;
  if (kind == Distribution::bernoulli) call.a = 0.3;
  if (kind == Distribution::exponential) call.a = 2;
  return call;
}

std::vector<std::byte> draw(RandomCall call, int64_t n, uint64_t offset = 0) {
  std::vector<std::byte> out(size_t(n * size_of(call.dtype)));
  call.n = n;
  call.offset = offset;
  call.out = out.data();
  cpu::fill_random(call);
  return out;
}

template <class T> std::vector<double> draw_as(RandomCall call, int64_t n) {
  const auto bytes = draw(call, n);
  std::vector<double> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); i++) {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) out[i] = double(float(x));
    else out[i] = double(x);
  }
  return out;
}

std::vector<double> doubles(const RandomCall& call, int64_t n) {
  return visit(call.dtype, [&](auto tag) { return draw_as<typename decltype(tag)::type>(call, n); });
}

bool supports(Distribution kind, DType dtype) {
  return is_floating(dtype) || kind == Distribution::randint || kind == Distribution::bernoulli;
}

template <class F> void for_each_call(F&& f) {
  for (int k = 0; k < 5; k++) {
    for (int t = 0; t < dtype_count; t++) {
      if (supports(Distribution(k), DType(t))) f(call_of(Distribution(k), DType(t)));
    }
  }
}

std::string label(const RandomCall& call) { return std::string(name(call.kind)) + " " + std::string(name(call.dtype)); }

TEST(Random, VectorLoopsDrawTheSharedFormula) {
  RandomCall call = call_of(Distribution::bernoulli, u8);
  for (const uint64_t offset : {uint64_t(0), uint64_t(0xfffffff0), ~uint64_t(0) - 5}) {  // across both carries
    const auto got = draw(call, 400, offset);
    random::with_formula(call, [&](const auto& formula) {
      for (uint64_t block = 0; block < 100; block++) {
        const auto want = random::draw_block(formula, call.seed, offset + block);
        for (size_t k = 0; k < 4; k++) ASSERT_EQ(int(got[4 * block + k]), int(want.element[k])) << block;
      }
    });
  }
  call = call_of(Distribution::randint, u64);
  for (const uint64_t range : {uint64_t(1) << 20, uint64_t(3) << 40, uint64_t(0)}) {
    call.range = range;
    const auto got = draw(call, 400, 77);
    random::with_formula(call, [&](const auto& formula) {
      for (uint64_t block = 0; block < 100; block++) {
        const auto want = random::draw_block(formula, call.seed, 77 + block);
        EXPECT_EQ(std::memcmp(got.data() + 32 * block, want.element, sizeof(want)), 0) << block;
      }
    });
  }
}

TEST(Random, PiecesEqualTheWhole) {
  for_each_call([](const RandomCall& call) {
    const int64_t n = 70001, size = size_of(call.dtype);
    const auto whole = draw(call, n, 5);
    for (const int64_t begin : {4, 32, 252, 256, 1020, 32768, 65532}) {
      for (const int64_t length : {1, 3, 4, 5, 255, 257, 4001}) {
        const auto piece = draw(call, length, 5 + uint64_t(begin / 4));
        ASSERT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + begin * size))
            << label(call) << " " << begin;
      }
    }
  });
}

TEST(Random, ThreadsDoNotChangeTheStream) {
  const int before = get_num_threads();
  for_each_call([](const RandomCall& call) {
    set_num_threads(1);
    const auto one = draw(call, 200003);
    set_num_threads(3);
    EXPECT_TRUE(one == draw(call, 200003)) << label(call);
  });
  set_num_threads(before);
}

TEST(Random, SeedsAndOffsetsGiveOtherStreams) {
  RandomCall call = call_of(Distribution::uniform, f32);
  const auto first = draw(call, 1000), later = draw(call, 1000, 1000);
  call.seed ^= uint64_t(1) << 40;
  EXPECT_FALSE(first == later);
  EXPECT_FALSE(first == draw(call, 1000));
}

TEST(Random, NothingIsWrittenBeyondTheEnd) {
  for_each_call([](RandomCall call) {
    const size_t size = size_t(size_of(call.dtype));
    for (const int64_t n : {0, 1, 2, 3, 4, 5, 63, 255, 256, 257}) {
      std::vector<std::byte> out(size_t(n) * size + 64, std::byte(0x5a));
      call.n = n;
      call.out = out.data();
      cpu::fill_random(call);
      for (size_t i = size_t(n) * size; i < out.size(); i++) ASSERT_EQ(out[i], std::byte(0x5a)) << label(call);
    }
  });
}

TEST(Random, CountersUsed) {
  EXPECT_EQ(counters_used(Distribution::normal, f32, 0), 0u);
  EXPECT_EQ(counters_used(Distribution::normal, f64, 1), 1u);
  EXPECT_EQ(counters_used(Distribution::randint, i64, 4), 1u);
  EXPECT_EQ(counters_used(Distribution::uniform, f16, 5), 2u);
}

struct Moments {
  double mean, variance, skew, kurtosis;
};

Moments moments(const std::vector<double>& x) {
  const double n = double(x.size());
  double mean = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) {
    const double d = v - mean;
    m2 += d * d / n;
    m3 += d * d * d / n;
    m4 += d * d * d * d / n;
  }
  return {mean, m2, m3 / std::pow(m2, 1.5), m4 / (m2 * m2)};
}

constexpr int64_t many = 1000000;
constexpr double five_sigma = 5 / 1000.0;  // five standard errors of the mean of `many` samples of unit variance

TEST(Random, UniformMomentsAndBounds) {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    const auto x = doubles(call_of(Distribution::uniform, dtype), many);
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 0.5, five_sigma * 0.2887) << name(dtype);
    EXPECT_NEAR(m.variance, 1.0 / 12, five_sigma * 0.0745) << name(dtype);
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0.0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1.0) << name(dtype);
  }
}

TEST(Random, UniformHas24BitsInFloatAnd53InDouble) {
  uint64_t seen_float = 0, seen_double = 0;
  for (const double x : doubles(call_of(Distribution::uniform, f32), 1000)) {
    ASSERT_EQ(std::ldexp(x, 24), std::floor(std::ldexp(x, 24)));
    seen_float |= uint64_t(std::ldexp(x, 24));
  }
  for (const double x : doubles(call_of(Distribution::uniform, f64), 1000)) {
    ASSERT_EQ(std::ldexp(x, 53), std::floor(std::ldexp(x, 53)));
    seen_double |= uint64_t(std::ldexp(x, 53));
  }
  EXPECT_EQ(seen_float, (uint64_t(1) << 24) - 1);
  EXPECT_EQ(seen_double, (uint64_t(1) << 53) - 1);
}

TEST(Random, UniformNeverYieldsTheUpperBoundNorLessThanTheLower) {
  const double bounds[][2] = {{1, 1.001}, {-1, 0}, {1000, 1001}, {0.1, 0.3}, {-3, 5}, {1, 1}, {-0.1, 0.1}, {0, 1e-7}};
  for (const DType dtype : {f16, bf16, f32, f64}) {
    for (const auto& [a, b] : bounds) {
      RandomCall call = call_of(Distribution::uniform, dtype);
      call.a = a;
      call.b = b;
      for (const double x : doubles(call, 50000)) {
        ASSERT_TRUE(x >= a && (x < b || a == b)) << name(dtype) << " [" << a << ", " << b << "): " << x;
      }
    }
  }
}

TEST(Random, NormalMoments) {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    RandomCall call = call_of(Distribution::normal, dtype);
    const auto x = doubles(call, many);
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 0, five_sigma) << name(dtype);
    EXPECT_NEAR(m.variance, 1, five_sigma * 1.5) << name(dtype);
    EXPECT_NEAR(m.skew, 0, five_sigma * 2.5) << name(dtype);
    EXPECT_NEAR(m.kurtosis, 3, five_sigma * 5) << name(dtype);
    double lagged = 0;  // neighbours come from one radius and angle, and are independent all the same
    for (size_t i = 0; i + 1 < x.size(); i += 2) lagged += x[i] * x[i + 1] / (double(many) / 2);
    EXPECT_NEAR(lagged, 0, five_sigma * 1.5);
    call.a = 10;
    call.b = 0.5;
    const Moments shifted = moments(doubles(call, many));
    EXPECT_NEAR(shifted.mean, 10, 0.003) << name(dtype);
  }
}

// The share of samples below z against the normal distribution function, tails included.
TEST(Random, NormalDistributionFunction) {
  for (const DType dtype : {f32, f64}) {
    auto x = doubles(call_of(Distribution::normal, dtype), many);
    std::sort(x.begin(), x.end());
    for (double z = -4.5; z <= 4.5; z += 0.25) {
      const double share = double(std::lower_bound(x.begin(), x.end(), z) - x.begin()) / double(many);
      const double want = 0.5 * std::erfc(-z / std::sqrt(2.0));
      EXPECT_NEAR(share, want, 5 * std::sqrt(want * (1 - want) / double(many)) + 1e-9) << name(dtype) << " " << z;
    }
  }
}

// Box-Muller redone with the standard library, from the same words.
TEST(Random, NormalMatchesTheFormulaInHigherPrecision) {
  const RandomCall f = call_of(Distribution::normal, f32), d = call_of(Distribution::normal, f64);
  const auto floats = doubles(f, 40000), reals = doubles(d, 40000);
  const long double turn = 6.283185307179586476925286766559L;
  for (uint64_t block = 0; block < 10000; block++) {
    const Words p = random::block_words(f.seed, block, 0), q = random::block_words(f.seed, block, 1);
    const long double radius = std::sqrt(-2 * std::log((p.x + 0.5L) * 0x1p-32L)), angle = turn * p.y * 0x1p-32L;
    ASSERT_NEAR(floats[4 * block], double(radius * std::cos(angle)), 1e-6);
    ASSERT_NEAR(floats[4 * block + 1], double(radius * std::sin(angle)), 1e-6);
    const long double u = std::ldexp(0.5L + (uint64_t(q.x) >> 5 << 26 | q.y >> 6), -53);
    const long double r = std::sqrt(-2 * std::log(u)), t = turn * (q.z * 0x1p-32L + q.w * 0x1p-64L);
    ASSERT_NEAR(reals[4 * block + 2], double(r * std::cos(t)), 4e-15);
    ASSERT_NEAR(reals[4 * block + 3], double(r * std::sin(t)), 4e-15);
  }
}

TEST(Random, ExponentialMomentsAndSign) {
  for (const DType dtype : {f16, bf16, f32, f64}) {
    const auto x = doubles(call_of(Distribution::exponential, dtype), many);
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 0.5, five_sigma * 0.5) << name(dtype);
    EXPECT_NEAR(m.variance, 0.25, five_sigma * 0.75) << name(dtype);
    EXPECT_GT(*std::min_element(x.begin(), x.end()), 0.0);
    EXPECT_TRUE(std::isfinite(*std::max_element(x.begin(), x.end())));
  }
}

TEST(Random, BernoulliShares) {
  for (int t = 0; t < dtype_count; t++) {
    for (const double p : {0.0, 0.25, 0.9, 1.0}) {
      RandomCall call = call_of(Distribution::bernoulli, DType(t));
      call.a = p;
      double sum = 0;
      for (const double x : doubles(call, 100000)) {
        ASSERT_TRUE(x == 0 || x == 1);
        sum += x;
      }
      if (p == 0 || p == 1) EXPECT_EQ(sum, p * 100000);
      else EXPECT_NEAR(sum / 100000, p, 5 * std::sqrt(p * (1 - p) / 100000));
    }
  }
}

TEST(Random, RandintCoversItsRangeEvenly) {
  for (int t = 0; t < dtype_count; t++) {
    RandomCall call = call_of(Distribution::randint, DType(t));
    const bool is_signed = traits(call.dtype).kind == Kind::signed_int || is_floating(call.dtype);
    call.low = is_signed ? -7 : call.dtype == boolean ? 0 : 3;
    call.range = call.dtype == boolean ? 2 : 19;
    std::map<double, int> counts;
    for (const double x : doubles(call, 190000)) counts[x]++;
    const double each = 190000.0 / double(call.range);
    ASSERT_EQ(counts.size(), call.range) << name(call.dtype);
    EXPECT_EQ(counts.begin()->first, double(call.low));
    EXPECT_EQ(counts.rbegin()->first, double(call.low) + double(call.range) - 1);
    for (const auto& [x, count] : counts) EXPECT_NEAR(count, each, 5 * std::sqrt(each)) << name(call.dtype) << " " << x;
  }
}

TEST(Random, RandintOfLargeRanges) {
  RandomCall call = call_of(Distribution::randint, i64);
  call.low = std::numeric_limits<int64_t>::min();
  call.range = 0;  // all 2^64
  auto x = doubles(call, many);
  EXPECT_NEAR(moments(x).mean / 0x1p63, 0, five_sigma * 0.578);
  EXPECT_NEAR(moments(x).variance / 0x1p126, 1.0 / 3, five_sigma * 0.3);
  call.low = 0;
  call.range = uint64_t(3) << 61;  // does not divide 2^64: a plain scaling of 64 bits would favour every third value
  x = doubles(call, many);
  EXPECT_NEAR(moments(x).mean / double(call.range), 0.5, five_sigma * 0.2887);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), double(call.range));
  const auto bytes = draw(call, 300000);
  int residues[3] = {};
  for (size_t i = 0; i < 300000; i++) {
    uint64_t v;
    std::memcpy(&v, bytes.data() + 8 * i, 8);
    residues[v % 3]++;
  }
  for (const int count : residues) EXPECT_NEAR(count, 100000, 5 * std::sqrt(100000 * 2 / 3.0));
}

void expect_refused(Error::Kind kind, RandomCall call, const std::string& text) {
  float untouched = 42;
  call.out = &untouched;
  call.n = 1;
  try {
    cpu::fill_random(call);
    FAIL() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_EQ(std::string(error.what()), text);
  }
  EXPECT_EQ(untouched, 42);
}

TEST(Random, Errors) {
  using enum Distribution;
  const auto argument = Error::Kind::argument;
  RandomCall call = call_of(uniform, i32);
  expect_refused(Error::Kind::dtype, call, "uniform: needs a floating dtype, got i32");
  call = call_of(uniform, f32);
  call.a = 2;
  expect_refused(argument, call, "uniform: the lower bound 2 is not below the upper bound 1");
  call = call_of(uniform, f16);
  call.b = 70000;
  expect_refused(argument, call, "uniform: bounds 0 and 70000 are beyond f16");
  call = call_of(normal, f32);
  call.b = -1;
  expect_refused(argument, call, "normal: the standard deviation -1 is negative");
  call = call_of(exponential, f32);
  call.a = 0;
  expect_refused(argument, call, "exponential: the rate 0 is not positive");
  call = call_of(bernoulli, f32);
  call.a = 1.5;
  expect_refused(argument, call, "bernoulli: the probability 1.5 is not between 0 and 1");
  call.a = std::nan("");
  expect_refused(argument, call, "bernoulli: the probability nan is not between 0 and 1");
  call = call_of(randint, u8);
  call.range = 257;
  expect_refused(argument, call, "randint: u8 does not hold every integer of the range");
  call.low = -1;
  call.range = 2;
  expect_refused(argument, call, "randint: u8 does not hold every integer of the range");
  call = call_of(randint, f32);
  call.range = (uint64_t(1) << 24) + 2;
  expect_refused(argument, call, "randint: f32 does not hold every integer of the range");
}

}  // namespace
}  // namespace volta

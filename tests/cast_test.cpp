// Conversions between dtypes against exact references: every half, rounding boundaries, saturation, wrapping, NaN, bool.
#include "backend/cpu/copy/move.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace volta {
namespace {

template <class To, class From> std::vector<To> cast(const std::vector<From>& in) {
  std::vector<To> out(in.size());
  cpu::cast_row(dtype_of<To>(), dtype_of<From>())(int64_t(in.size()), out.data(), in.data());
  return out;
}

// std::vector<bool> has no bytes to point at, so bool rows travel as bytes.
template <class From> std::vector<uint8_t> cast_to_bool(const std::vector<From>& in) {
  std::vector<uint8_t> out(in.size());
  cpu::cast_row(boolean, dtype_of<From>())(int64_t(in.size()), out.data(), in.data());
  return out;
}

template <class To, class From> To cast_one(From x) { return cast<To>(std::vector<From>{x})[0]; }

template <class Half> constexpr int mantissa_bits = std::is_same_v<Half, float16> ? 10 : 7;
template <class Half> constexpr int least_exponent = std::is_same_v<Half, float16> ? -14 : -126;
template <class Half> constexpr int greatest_exponent = std::is_same_v<Half, float16> ? 15 : 127;

// The value of a half from the definition of its fields.
template <class Half> double value_of(uint16_t bits) {
  constexpr int m = mantissa_bits<Half>;
  const int exponent = (bits & 0x7fff) >> m, fraction = bits & ((1 << m) - 1);
  const int top = (1 << (15 - m)) - 1;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, least_exponent<Half> - m);
  return sign * std::ldexp((1 << m) + fraction, exponent - 1 + least_exponent<Half> - m);
}

// Rounds to nearest, ties to even, in one step: scale so that the last kept bit is the unit, then let rint decide.
template <class Half> uint16_t round_reference(long double x) {
  constexpr int m = mantissa_bits<Half>;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const uint16_t infinity = uint16_t(((1 << (15 - m)) - 1) << m);
  x = std::fabs(x);
  if (std::isnan(x)) return uint16_t(sign | infinity | 1);
  if (std::isinf(x)) return uint16_t(sign | infinity);
  int exponent = x == 0 ? least_exponent<Half> : std::max(std::ilogb(x), least_exponent<Half>);
  long double units = std::rint(std::ldexp(x, m - exponent));
  if (units == std::ldexp(1.0L, m + 1)) {
    units /= 2;
    exponent++;
  }
  if (exponent > greatest_exponent<Half>) return uint16_t(sign | infinity);
  const auto whole = uint32_t(units);
  const bool normal = whole >= (1u << m);
  return uint16_t(sign | (normal ? uint32_t(exponent - least_exponent<Half> + 1) << m : 0u) |
                  (whole & ((1u << m) - 1)));
}

template <class Half> bool is_nan(uint16_t bits) { return std::isnan(value_of<Half>(bits)); }

template <class Half, class From> void expect_rounded_once(const std::vector<From>& in) {
  const std::vector<Half> out = cast<Half>(in);
  for (size_t i = 0; i < in.size(); i++) {
    const uint16_t want = round_reference<Half>(static_cast<long double>(in[i]));
    if (is_nan<Half>(want)) {
      ASSERT_TRUE(is_nan<Half>(out[i].bits)) << i;
    } else {
      ASSERT_EQ(out[i].bits, want) << "element " << i << ": " << static_cast<long double>(in[i]);
    }
  }
}

template <class Half> std::vector<Half> all_halves() {
  std::vector<Half> all(65536);
  for (size_t i = 0; i < all.size(); i++) all[i].bits = uint16_t(i);
  return all;
}

template <class Half> class HalfCast : public testing::Test {};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfCast, Halves);

TYPED_TEST(HalfCast, EveryHalfWidensExactlyAndComesBack) {
  const auto halves = all_halves<TypeParam>();
  const auto floats = cast<float>(halves);
  const auto doubles = cast<double>(halves);
  const auto back = cast<TypeParam>(floats), back_from_double = cast<TypeParam>(doubles);
  for (size_t i = 0; i < halves.size(); i++) {
    const double want = value_of<TypeParam>(uint16_t(i));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(floats[i]) && std::isnan(doubles[i])) << i;
      ASSERT_TRUE(is_nan<TypeParam>(back[i].bits) && is_nan<TypeParam>(back_from_double[i].bits)) << i;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(float(want))) << i;
    ASSERT_EQ(std::bit_cast<uint64_t>(doubles[i]), std::bit_cast<uint64_t>(want)) << i;
    ASSERT_EQ(back[i].bits, i);
    ASSERT_EQ(back_from_double[i].bits, i);
  }
}

TYPED_TEST(HalfCast, EveryHalfToTheOtherHalf) {
  using Other = std::conditional_t<std::is_same_v<TypeParam, float16>, bfloat16, float16>;
  const auto out = cast<Other>(all_halves<TypeParam>());
  for (size_t i = 0; i < out.size(); i++) {
    const uint16_t want = round_reference<Other>(value_of<TypeParam>(uint16_t(i)));
    if (is_nan<Other>(want)) ASSERT_TRUE(is_nan<Other>(out[i].bits)) << i;
    else ASSERT_EQ(out[i].bits, want) << i;
  }
}

// The definition of float to integer: toward zero, saturating, NaN to 0.
template <class To> To truncate_reference(double x) {
  if (std::isnan(x)) return 0;
  if (x >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
  if (x <= double(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return To(std::trunc(x));
}

template <class To, class From> void expect_truncated(const std::vector<From>& in, const std::vector<double>& exact) {
  const auto out = cast<To>(in);
  for (size_t i = 0; i < in.size(); i++) {
    ASSERT_EQ(out[i], truncate_reference<To>(exact[i]))
        << name(dtype_of<From>()) << " to " << name(dtype_of<To>()) << ": " << exact[i];
  }
}

template <class From> void expect_truncated_to_all(const std::vector<From>& in, const std::vector<double>& exact) {
  expect_truncated<int8_t>(in, exact);
  expect_truncated<int16_t>(in, exact);
  expect_truncated<int32_t>(in, exact);
  expect_truncated<int64_t>(in, exact);
  expect_truncated<uint8_t>(in, exact);
  expect_truncated<uint16_t>(in, exact);
  expect_truncated<uint32_t>(in, exact);
  expect_truncated<uint64_t>(in, exact);
  const auto truth = cast_to_bool(in);
  for (size_t i = 0; i < in.size(); i++) ASSERT_EQ(truth[i], exact[i] != 0) << exact[i];
}

TYPED_TEST(HalfCast, EveryHalfToEveryInteger) {
  const auto halves = all_halves<TypeParam>();
  std::vector<double> exact(halves.size());
  for (size_t i = 0; i < exact.size(); i++) exact[i] = value_of<TypeParam>(uint16_t(i));
  expect_truncated_to_all(halves, exact);
}

// Around every representable half and every tie between neighbours: the float itself and the floats next to it.
TYPED_TEST(HalfCast, FloatsRoundToNearestEven) {
  std::vector<float> in;
  for (uint32_t bits = 0; bits < 0x7fff; bits++) {
    const double a = value_of<TypeParam>(uint16_t(bits)), b = value_of<TypeParam>(uint16_t(bits + 1));
    if (!std::isfinite(a)) continue;
    const double tie = std::isfinite(b) ? (a + b) / 2 : a + (a - value_of<TypeParam>(uint16_t(bits - 1))) / 2;
    for (const float x : {float(a), float(tie)}) {
      for (const float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, INFINITY)}) in.insert(in.end(), {y, -y});
    }
  }
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) in.push_back(std::bit_cast<float>(uint32_t(bits)));
  expect_rounded_once<TypeParam>(in);
}

// A double just beside a tie of halves rounds to that tie as a float: a second rounding would then go the wrong way.
TYPED_TEST(HalfCast, DoublesRoundOnce) {
  std::vector<double> in;
  for (uint32_t bits = 0; bits < 0x7fff; bits++) {
    const double a = value_of<TypeParam>(uint16_t(bits)), b = value_of<TypeParam>(uint16_t(bits + 1));
    if (!std::isfinite(a)) continue;
    const double tie = std::isfinite(b) ? (a + b) / 2 : a + (a - value_of<TypeParam>(uint16_t(bits - 1))) / 2;
    for (const double x : {a, tie, tie * (1 + 1e-10), tie * (1 - 1e-10)}) {
      for (const double y : {x, std::nextafter(x, 0.0), std::nextafter(x, INFINITY)}) in.insert(in.end(), {y, -y});
    }
  }
  for (const double x :
       {0.0, -0.0, 1e-300, 5e-324, 1e300, 65519.999, 65520.0, 3.4e38, 3.5e38, double(INFINITY), std::nan("")}) {
    in.insert(in.end(), {x, -x});
  }
  std::mt19937_64 generator(7);
  for (int i = 0; i < 200000; i++) in.push_back(std::bit_cast<double>(generator()));
  for (int i = 0; i < 200000; i++) in.push_back(std::ldexp(double(generator() >> 11), int(generator() % 60) - 83));
  expect_rounded_once<TypeParam>(in);
}

template <class Half, class I> void expect_integers_round_once() {
  std::vector<I> in{0, 1, std::numeric_limits<I>::max(), std::numeric_limits<I>::min()};
  constexpr int bits = std::numeric_limits<I>::digits;
  std::mt19937_64 generator(11);
  for (int i = 0; i < 100000; i++) {
    const I x = I(generator() >> (generator() % 64));
    in.push_back(x);
    in.push_back(I(~x));
  }
  for (int top = 0; top < bits; top++) {  // ties, and one beside each
    for (int low = 0; low < top; low++) {
      for (const int64_t delta : {-1, 0, 1}) {
        const I x = I((uint64_t(1) << top) + (uint64_t(1) << low) + uint64_t(delta));
        in.push_back(x);
        in.push_back(I(0 - uint64_t(x)));
      }
    }
  }
  const std::vector<Half> out = cast<Half>(in);
  for (size_t i = 0; i < in.size(); i++) {
    ASSERT_EQ(out[i].bits, round_reference<Half>(static_cast<long double>(in[i])))
        << name(dtype_of<I>()) << " " << +in[i];
  }
}

TYPED_TEST(HalfCast, IntegersRoundOnce) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  expect_integers_round_once<TypeParam, int8_t>();
  expect_integers_round_once<TypeParam, int16_t>();
  expect_integers_round_once<TypeParam, int32_t>();
  expect_integers_round_once<TypeParam, int64_t>();
  expect_integers_round_once<TypeParam, uint8_t>();
  expect_integers_round_once<TypeParam, uint16_t>();
  expect_integers_round_once<TypeParam, uint32_t>();
  expect_integers_round_once<TypeParam, uint64_t>();
}

template <class F> std::vector<F> delicate_floats() {
  std::vector<F> in{F(0),
                    F(-0.0),
                    F(0.5),
                    F(0.999),
                    F(1),
                    F(1.5),
                    std::numeric_limits<F>::max(),
                    std::numeric_limits<F>::denorm_min(),
                    std::numeric_limits<F>::infinity(),
                    std::numeric_limits<F>::quiet_NaN()};
  for (int e = 6; e <= 65; e++) {
    const F power = std::ldexp(F(1), e);
    in.insert(in.end(), {power, std::nextafter(power, F(0)), std::nextafter(power, F(1e30)), power - F(1), power + F(1),
                         power - F(0.5)});
  }
  const size_t n = in.size();
  for (size_t i = 0; i < n; i++) in.push_back(-in[i]);
  std::mt19937_64 generator(3);
  for (int i = 0; i < 20000; i++) {
    in.push_back(F(std::ldexp(double(int64_t(generator())), int(generator() % 80) - 75)));
  }
  return in;
}

template <class F> void expect_floats_truncate() {
  const auto in = delicate_floats<F>();
  expect_truncated_to_all(in, std::vector<double>(in.begin(), in.end()));
}

TEST(Cast, FloatsToIntegersTruncateAndSaturate) {
  expect_floats_truncate<float>();
  expect_floats_truncate<double>();
}

TEST(Cast, SaturationByExample) {
  EXPECT_EQ((cast_one<int8_t, float>(200)), 127);
  EXPECT_EQ((cast_one<int8_t, float>(-200)), -128);
  EXPECT_EQ((cast_one<uint8_t, double>(-1)), 0);
  EXPECT_EQ((cast_one<int32_t, float>(3e9f)), 2147483647);
  EXPECT_EQ((cast_one<int64_t, double>(-1e300)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((cast_one<uint64_t, float>(INFINITY)), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ((cast_one<int32_t, double>(NAN)), 0);
  EXPECT_EQ((cast_one<int32_t, double>(2147483647.9)), 2147483647);
}

TEST(Cast, LargeIntegersAndDoublesKeepTheirBits) {
  EXPECT_EQ((cast_one<double, int64_t>((int64_t(1) << 53) - 1)), 9007199254740991.0);
  EXPECT_EQ((cast_one<int64_t, double>(9007199254740991.0)), (int64_t(1) << 53) - 1);
  EXPECT_EQ((cast_one<int64_t, int64_t>(std::numeric_limits<int64_t>::max() - 1)),
            std::numeric_limits<int64_t>::max() - 1);
  EXPECT_EQ((cast_one<uint64_t, int64_t>(std::numeric_limits<int64_t>::max())), uint64_t(1) << 63 ^ ~uint64_t(0));
  // 2^24 + 1 is a tie in float; the bit far below must break it upward.
  const int64_t beside_tie = (int64_t(1) << 54) + (int64_t(1) << 30) + 1;
  EXPECT_EQ((cast_one<float, int64_t>(beside_tie)), 0x1p54f + 0x1p31f);
  EXPECT_EQ((cast_one<float, uint64_t>(uint64_t(beside_tie))), 0x1p54f + 0x1p31f);
}

template <class To, class From> void expect_wraps() {
  std::vector<From> in{0, 1, 127, std::numeric_limits<From>::min(), std::numeric_limits<From>::max()};
  std::mt19937_64 generator(5);
  for (int i = 0; i < 500; i++) in.push_back(From(generator()));
  const auto out = cast<To>(in);
  for (size_t i = 0; i < in.size(); i++) {
    uint64_t want = uint64_t(int64_t(in[i])), got = uint64_t(int64_t(out[i]));
    const uint64_t mask = sizeof(To) == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * sizeof(To) % 64)) - 1;
    ASSERT_EQ(got & mask, want & mask);
  }
}

template <class From> void expect_wraps_to_all() {
  expect_wraps<int8_t, From>();
  expect_wraps<int16_t, From>();
  expect_wraps<int32_t, From>();
  expect_wraps<int64_t, From>();
  expect_wraps<uint8_t, From>();
  expect_wraps<uint16_t, From>();
  expect_wraps<uint32_t, From>();
  expect_wraps<uint64_t, From>();
}

TEST(Cast, IntegersWrap) {
  expect_wraps_to_all<int8_t>();
  expect_wraps_to_all<int16_t>();
  expect_wraps_to_all<int32_t>();
  expect_wraps_to_all<int64_t>();
  expect_wraps_to_all<uint8_t>();
  expect_wraps_to_all<uint16_t>();
  expect_wraps_to_all<uint32_t>();
  expect_wraps_to_all<uint64_t>();
  EXPECT_EQ((cast_one<int8_t, int32_t>(300)), 44);
  EXPECT_EQ((cast_one<uint8_t, int64_t>(-1)), 255);
}

template <class I> void expect_integers_to_floats() {
  std::vector<I> in{0, 1, std::numeric_limits<I>::min(), std::numeric_limits<I>::max()};
  std::mt19937_64 generator(9);
  for (int i = 0; i < 5000; i++) in.push_back(I(generator() >> (generator() % 64)));
  const auto floats = cast<float>(in);
  const auto doubles = cast<double>(in);
  for (size_t i = 0; i < in.size(); i++) {
    ASSERT_EQ(floats[i], float(static_cast<long double>(in[i]))) << +in[i];
    ASSERT_EQ(doubles[i], double(static_cast<long double>(in[i]))) << +in[i];
  }
}

TEST(Cast, IntegersToFloats) {
  expect_integers_to_floats<int8_t>();
  expect_integers_to_floats<int16_t>();
  expect_integers_to_floats<int32_t>();
  expect_integers_to_floats<int64_t>();
  expect_integers_to_floats<uint8_t>();
  expect_integers_to_floats<uint16_t>();
  expect_integers_to_floats<uint32_t>();
  expect_integers_to_floats<uint64_t>();
}

TEST(Cast, BoolReadsAnyByteAndWritesZeroOrOne) {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < 256; i++) bytes[i] = uint8_t(i);
  for (int t = 0; t < dtype_count; t++) {
    visit(DType(t), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<std::byte> out(256 * sizeof(T));
      cpu::cast_row(DType(t), boolean)(256, out.data(), bytes.data());
      for (size_t i = 0; i < 256; i++) {
        T one{}, got;
        if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) one = T(i != 0 ? 1.0f : 0.0f);
        else one = T(i != 0);
        std::memcpy(&got, out.data() + i * sizeof(T), sizeof(T));
        EXPECT_EQ(std::memcmp(&one, &got, sizeof(T)), 0) << name(DType(t)) << " " << i;
      }
    });
  }
}

TEST(Cast, ToBoolIsDifferenceFromZero) {
  EXPECT_EQ(cast_to_bool(std::vector<float>{0.0f, -0.0f, 1e-45f, NAN, INFINITY, -1}),
            (std::vector<uint8_t>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(cast_to_bool(std::vector<double>{0.0, -0.0, 5e-324, NAN}), (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(cast_to_bool(std::vector<int32_t>{0, 256, 65536, -1}), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(cast_to_bool(std::vector<uint64_t>{0, uint64_t(1) << 63}), (std::vector<uint8_t>{0, 1}));
}

// Vector bodies and their tails agree, and nothing is written past the end.
TEST(Cast, EveryLengthOfEveryPair) {
  std::mt19937_64 generator(13);
  std::vector<uint64_t> source(1200);
  for (auto& word : source) word = generator() & 0x3f3f3f3f3f3f3f3f;  // finite in every dtype
  for (int t = 0; t < dtype_count; t++) {
    for (int f = 0; f < dtype_count; f++) {
      const auto convert = cpu::cast_row(DType(t), DType(f));
      const int64_t size = size_of(DType(t)), from = size_of(DType(f));
      std::vector<std::byte> one_by_one(size_t(1100 * size));
      for (int64_t i = 0; i < 1100; i++) {
        convert(1, one_by_one.data() + i * size, reinterpret_cast<const std::byte*>(source.data()) + i * from);
      }
      for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 100, 511, 512, 513, 1025, 1100}) {
        std::vector<std::byte> out(size_t(n * size + 64), std::byte(0xa5));
        convert(n, out.data(), source.data());
        ASSERT_TRUE(std::equal(out.begin(), out.begin() + n * size, one_by_one.begin()))
            << name(DType(t)) << " from " << name(DType(f)) << ", " << n;
        for (int64_t i = n * size; i < n * size + 64; i++) ASSERT_EQ(out[size_t(i)], std::byte(0xa5));
      }
    }
  }
}

}  // namespace
}  // namespace volta

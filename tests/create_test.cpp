// Making tensors: values, dtypes, limits, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <volta/volta.h>

namespace volta {
namespace {

template <class F> std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
template <class F> void expect_says(F f, std::initializer_list<const char*> words) {
  const std::string text = message(f);
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << "'" << text << "' lacks '" << w << "'";
}

const DType numeric[] = {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64};

TEST(CreateData, ShapesAndDtypes) {
  EXPECT_EQ(tensor(3).shape(), Shape{});
  EXPECT_EQ(tensor(3).dtype(), i64);
  EXPECT_EQ(tensor(true).dtype(), boolean);
  EXPECT_EQ(tensor({1, 2}).dtype(), i64);
  EXPECT_EQ(tensor({true, false}).dtype(), boolean);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), f32);
  EXPECT_EQ(tensor({true, 2}).dtype(), i64);
  const Tensor x = tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}});
  EXPECT_EQ(x.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ((x.to_vector<int>()), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ((tensor({{}, {}}).shape()), (Shape{2, 0}));
  EXPECT_EQ((tensor<double>({0.1, 1}).to_vector<double>()), (std::vector<double>{0.1, 1}));
}

TEST(CreateData, EveryDtype) {
  for (const DType dt : numeric) {
    const Tensor x = tensor({{1, 2}, {3, 120}}, {.dtype = dt});
    EXPECT_EQ(x.dtype(), dt);
    EXPECT_EQ((x.to_vector<double>()), (std::vector<double>{1, 2, 3, 120}));
  }
  EXPECT_EQ((tensor({0, 2, 0.5}, {.dtype = boolean}).to_vector<bool>()), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(tensor({9007199254740993}).item<int64_t>(), 9007199254740993);
  EXPECT_EQ(tensor(std::numeric_limits<uint64_t>::max(), {.dtype = u64}).item<uint64_t>(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(tensor({-1.7, 1.7}, {.dtype = i32}).to_vector<int>(), (std::vector<int>{-1, 1}));
}

TEST(CreateData, Refusals) {
  expect_says([&] { return tensor({{1, 2}, {3}}); }, {"tensor", "ragged", "1", "[2, 2]"});
  expect_says([&] { return tensor({{1, 2}, 3}); }, {"tensor", "ragged", "number"});
  expect_says([&] { return tensor({1, {2, 3}}); }, {"tensor", "ragged", "list"});
  expect_says([&] { return tensor<uint8_t>({300}); }, {"300", "u8"});
  expect_says([&] { return tensor<uint8_t>({-1}); }, {"-1", "u8"});
  expect_says([&] { return tensor<int8_t>({128.0}); }, {"128", "i8"});
  expect_says([&] { return tensor<int>({std::nan("")}); }, {"nan", "i32"});
  expect_says([&] { return tensor(std::numeric_limits<uint64_t>::max()); }, {"i64"});
  expect_says([&] { return tensor({1, 2}, {.requires_grad = true}); }, {"grad", "i64"});
  expect_says([&] { return tensor({1.0}, {.device = "cuda:99"}); }, {"cuda:99"});
  expect_says([&] { return tensor(std::vector<float>{1, 2, 3}, {2, 2}); }, {"3", "[2, 2]"});
}

TEST(CreateData, FromArrays) {
  const std::vector<float> v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(tensor(v).dtype(), f32);
  EXPECT_EQ((tensor(v, {2, 3}).to_vector<float>()), v);
  EXPECT_EQ(tensor(std::span<const float>(v), {3, 2}).shape(), (Shape{3, 2}));
  EXPECT_EQ(tensor(v, {6}, {.dtype = f64}).dtype(), f64);
  EXPECT_EQ(tensor(std::vector<uint16_t>{65535}).item<int>(), 65535);
  EXPECT_TRUE(tensor(v, {6}, {.requires_grad = true}).requires_grad());
  EXPECT_EQ(tensor(std::vector<float>{}).shape(), Shape{0});
  const std::array<bool, 3> truths{true, false, true};
  EXPECT_TRUE(equal(tensor(truths), tensor({true, false, true})));
  EXPECT_TRUE(equal(tensor(std::span(truths), {3, 1}), tensor({{true}, {false}, {true}})));
}

TEST(CreateData, BlobsAreSharedAndReleased) {
  std::vector<float> memory{1, 2, 3, 4};
  int released = 0;
  {
    Tensor x = from_blob(memory.data(), {2, 2}, {}, [&] { ++released; });
    x[0][1].fill_(7);
    const Tensor row = x[1];
    x = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(row[0].item<float>(), 3);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(memory[1], 7);
  expect_says([&] { return from_blob(nullptr, {2}); }, {"from_blob", "null", "[2]"});
  expect_says([&] { return from_blob(memory.data(), {-2}); }, {"from_blob", "negative"});
  EXPECT_EQ(from_blob(nullptr, {0}).numel(), 0);
}

TEST(CreateFilled, EveryDtype) {
  for (const DType dt : numeric) {
    EXPECT_EQ((zeros({2, 2}, {.dtype = dt}).to_vector<double>()), std::vector<double>(4, 0));
    EXPECT_EQ((ones({3}, {.dtype = dt}).to_vector<double>()), std::vector<double>(3, 1));
    EXPECT_EQ((full({1, 2}, 7, {.dtype = dt}).to_vector<double>()), std::vector<double>(2, 7));
  }
  EXPECT_EQ((ones({2}, {.dtype = boolean}).to_vector<bool>()), (std::vector<bool>{true, true}));
  EXPECT_EQ(full({}, true).dtype(), boolean);
  EXPECT_EQ(full({}, 5).dtype(), i64);
  EXPECT_EQ(full({}, 0.1, {.dtype = f64}).item<double>(), 0.1);
  EXPECT_EQ(full({}, std::numeric_limits<int64_t>::min()).item<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(zeros({0, 3}).numel(), 0);
  EXPECT_EQ(zeros({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}).dim(), 12);
  EXPECT_TRUE(zeros({2}, {.requires_grad = true}).requires_grad());
}

TEST(CreateFilled, Refusals) {
  expect_says([&] { return zeros({2, -1}); }, {"zeros", "[2, -1]", "negative"});
  expect_says([&] { return ones({int64_t(1) << 40, int64_t(1) << 40}); }, {"ones", "too many"});
  expect_says([&] { return full({int64_t(1) << 62}, 1); }, {"full", "too many"});
  expect_says([&] { return full({2}, -1, {.dtype = u8}); }, {"full", "-1", "u8"});
  expect_says([&] { return full_like(ones({2}, {.dtype = i8}), 128); }, {"full_like", "128", "i8"});
  expect_says([&] { return empty({2}, {.device = "cuda:99"}); }, {"cuda:99"});
  expect_says([&] { return zeros({2}, {.dtype = i32, .requires_grad = true}); }, {"zeros", "i32", "grad"});
  expect_says([&] { return zeros_like(Tensor()); }, {"zeros_like", "undefined"});
  expect_says([&] { return set_default_dtype(i32); }, {"set_default_dtype", "i32"});
}

TEST(CreateFilled, NumbersThatDoNotFit) {
  for (const double value : {300., -1., double(NAN), double(INFINITY)}) {
    EXPECT_THROW((void)full({2}, value, {.dtype = u8}), Error) << value;
    EXPECT_THROW((void)full_like(zeros({2}, {.dtype = u8}), value), Error) << value;
  }
  EXPECT_THROW((void)full({2}, NAN, {.dtype = i64}), Error);
  EXPECT_THROW((void)full({2}, 0x1p63, {.dtype = i64}), Error);
  EXPECT_EQ(full({1}, 2.7, {.dtype = u8}).item<int>(), 2);
  EXPECT_TRUE(full({1}, NAN, {.dtype = boolean}).item<bool>());
}

TEST(CreateFilled, FactorsThatDoNotFit) {
  const Tensor x = ones({2, 2}, {.dtype = i64}), first = tensor({0}), row = ones({1, 2}, {.dtype = i64});
  EXPECT_THROW((void)pad(x, {1, 1}, {.value = 1e19}), Error);
  EXPECT_THROW((void)index_add(x, 0, first, row, 1e19), Error);
  EXPECT_THROW((void)addmm(x, x, x, 1, 1e19), Error);
  EXPECT_THROW((void)addcmul(x, x, x, 1e19), Error);
  EXPECT_EQ(pad(x.to(u64), {1, 0}, {.value = 0x1p63})[0][0].item<uint64_t>(), uint64_t(1) << 63);
}

TEST(CreateFilled, LikeKeepsDtypeAndOrder) {
  const Tensor x = zeros({3, 4}, {.dtype = f64}).t();
  EXPECT_EQ(ones_like(x).dtype(), f64);
  EXPECT_EQ(ones_like(x).shape(), (Shape{4, 3}));
  EXPECT_EQ(full_like(x, 2).strides(), x.strides());
  EXPECT_EQ(full_like(x, 2.5, {.dtype = i32}).to_vector<int>(), std::vector<int>(12, 2));
  EXPECT_EQ(empty_like(x.expand({2, 4, 3})).shape(), (Shape{2, 4, 3}));
  EXPECT_TRUE(empty_like(x.expand({2, 4, 3})).is_contiguous());
  EXPECT_FALSE(zeros_like(zeros({2}, {.requires_grad = true})).requires_grad());
}

TEST(CreateFilled, LikeStaysOnTheDeviceUnlessToldOtherwise) {
  if (!cuda::is_available()) GTEST_SKIP() << "needs a second device";
  const Tensor x = ones({2}, {.device = "cuda"});
  for (const Tensor& y : {empty_like(x, {.dtype = i32}), zeros_like(x, {.dtype = i32}), ones_like(x, {.dtype = i32}),
                          full_like(x, 3, {.dtype = i32}), rand_like(x, {.dtype = f64}), randn_like(x, {.dtype = f64})})
    EXPECT_EQ(y.device(), Device("cuda"));
  EXPECT_EQ(zeros_like(x, {.device = "cpu"}).device(), Device("cpu"));
  EXPECT_EQ(rand_like(x, {.device = "cpu"}).device(), Device("cpu"));
}

TEST(CreateDefault, DtypeGovernsDecimals) {
  set_default_dtype(f64);
  EXPECT_EQ(tensor({0.5}).dtype(), f64);
  EXPECT_EQ(zeros({1}).dtype(), f64);
  EXPECT_EQ(arange(0, 1, 0.5).dtype(), f64);
  EXPECT_EQ(rand({1}).dtype(), f64);
  set_default_dtype(f32);
  EXPECT_EQ(default_dtype(), f32);
}

TEST(CreateRange, Whole) {
  EXPECT_EQ(arange(5).to_vector<int>(), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(5).dtype(), i64);
  EXPECT_EQ(arange(0, 10, 3).to_vector<int>(), (std::vector<int>{0, 3, 6, 9}));
  EXPECT_EQ(arange(0, 9, 3).to_vector<int>(), (std::vector<int>{0, 3, 6}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int>(), (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_EQ(arange(0).numel(), 0);
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(arange(least, most, most).to_vector<int64_t>(), (std::vector<int64_t>{least, -1, most - 1}));
  EXPECT_EQ(arange(most, least, least).to_vector<int64_t>(), (std::vector<int64_t>{most, -1}));
  EXPECT_EQ((arange(most - 2, most).to_vector<int64_t>()), (std::vector<int64_t>{most - 2, most - 1}));
}

TEST(CreateRange, BeyondSignedIntegers) {
  const uint64_t high = uint64_t(1) << 63;
  const std::vector<uint64_t> expected{high, high + 4096, high + 8192};
  EXPECT_EQ(arange(high, high + 8193, 4096, {.dtype = u64}).to_vector<uint64_t>(), expected);
  EXPECT_EQ(arange(0x1p63, 0x1p63 + 12288, 4096., {.dtype = u64}).to_vector<uint64_t>(), expected);
  EXPECT_EQ(arange(1e19, 1e19 + 4096, 4096, {.dtype = u64}).to_vector<uint64_t>(),
            std::vector<uint64_t>{10000000000000000000u});
  EXPECT_EQ(arange(high + 1, high - 2, -1, {.dtype = u64}).to_vector<uint64_t>(),
            (std::vector<uint64_t>{high + 1, high, high - 1}));
  EXPECT_EQ(arange(5., -1., -2., {.dtype = u8}).to_vector<int>(), (std::vector<int>{5, 3, 1}));
}

TEST(CreateRange, EveryDtype) {
  for (const DType dt : numeric) {
    const Tensor x = arange(3, 100, 7, {.dtype = dt});
    ASSERT_EQ(x.dtype(), dt);
    std::vector<double> want;
    for (int i = 3; i < 100; i += 7) want.push_back(i);
    EXPECT_EQ(x.to_vector<double>(), want) << name(dt);
  }
}

TEST(CreateRange, Real) {
  EXPECT_EQ((arange(0, 1, 0.25, {.dtype = f64}).to_vector<double>()), (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(1.0, 0.0, -0.5).to_vector<double>(), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(arange(0, 1, 0.1).numel(), 10);
  EXPECT_EQ(arange(0.0, 2.5, 1.0, {.dtype = i64}).to_vector<int>(), (std::vector<int>{0, 1, 2}));
  const auto long_range = arange(0, 100000, 0.5, {.dtype = f32}).to_vector<float>();
  ASSERT_EQ(long_range.size(), 200000u);
  for (size_t i = 0; i < long_range.size(); i += 997) EXPECT_EQ(long_range[i], float(double(i) * 0.5));
}

TEST(CreateRange, Refusals) {
  expect_says([&] { return arange(0, 5, 0); }, {"arange", "step", "0"});
  expect_says([&] { return arange(0, 5, -1); }, {"arange", "-1", "5"});
  expect_says([&] { return arange(1.0, 0.0, 0.5); }, {"arange", "0.5"});
  expect_says([&] { return arange(0, INFINITY); }, {"arange", "finite"});
  expect_says([&] { return arange(std::nan(""), 1); }, {"arange", "finite"});
  expect_says([&] { return arange(0, 300, 1, {.dtype = u8}); }, {"arange", "299", "u8"});
  expect_says([&] { return arange(-1, 3, 1, {.dtype = u64}); }, {"arange", "-1", "u64"});
  expect_says([&] { return arange(5., -3., -1., {.dtype = u8}); }, {"arange", "-2", "u8"});
  expect_says([&] { return arange(0., 2e30, 1e30, {.dtype = u64}); }, {"arange", "u64"});
  expect_says([&] { return arange(uint64_t(1) << 63, (uint64_t(1) << 63) + 2); }, {"arange", "i64"});
  expect_says([&] { return arange(0, 1, 0.5, {.dtype = i32}); }, {"arange", "0.5", "i32"});
  expect_says([&] { return arange(0, 2, 1, {.dtype = boolean}); }, {"arange", "boolean"});
  expect_says([&] { return arange(0, 1, 1e-300); }, {"arange", "too many"});
  expect_says([&] { return arange(0, std::numeric_limits<int64_t>::max()); }, {"arange", "too many"});
  expect_says([&] { return arange(0, 3, 1, {.requires_grad = true}); }, {"arange", "grad"});
}

TEST(CreateSpaces, EndsAreExact) {
  for (const DType dt : {f16, bf16, f32, f64})
    for (const int64_t n : {2, 3, 7, 10, 1000}) {
      const auto x = linspace(-0.1, 0.3, n, {.dtype = dt}).to_vector<double>();
      EXPECT_EQ(x.front(), full({}, -0.1, {.dtype = dt}).item<double>());
      EXPECT_EQ(x.back(), full({}, 0.3, {.dtype = dt}).item<double>());
      for (size_t i = 1; i < x.size(); ++i) EXPECT_GE(x[i], x[i - 1]);
    }
  EXPECT_EQ(linspace(2, 5, 1).to_vector<float>(), std::vector<float>{2});
  EXPECT_EQ(linspace(2, 5, 0).numel(), 0);
  EXPECT_EQ(linspace(0, 10, 5, {.dtype = i64}).to_vector<int>(), (std::vector<int>{0, 2, 5, 7, 10}));
  EXPECT_EQ(linspace(5, 1, 5).to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1}));
  EXPECT_TRUE(std::isfinite(linspace(-1e308, 1e308, 3, {.dtype = f64})[1].item<double>()));
  expect_says([&] { return linspace(0, 1, -1); }, {"linspace", "-1"});
  expect_says([&] { return linspace(0, INFINITY, 3); }, {"linspace", "finite"});
}

// Each against its definition in 128 bits, cut off at the fraction.
TEST(CreateSpaces, IntegersAreExact) {
  __extension__ using Wide = __int128;
  const auto check = [](auto start, auto end, int64_t n, DType dtype) {
    const Tensor x = linspace(start, end, n, {.dtype = dtype});
    ASSERT_EQ(x.dtype(), dtype);
    for (int64_t i = 0; i < n; ++i) {
      const Wide gaps = n - 1, cut = n == 1 ? Wide(start) : (Wide(start) * (gaps - i) + Wide(end) * i) / gaps;
      ASSERT_TRUE(dtype == u64 ? Wide(x[i].item<uint64_t>()) == cut : Wide(x[i].item<int64_t>()) == cut)
          << "element " << i << " of " << n << " is " << x[i].item<double>() << ", not " << double(cut);
    }
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  constexpr uint64_t all = std::numeric_limits<uint64_t>::max();
  for (const int64_t n : {1, 2, 3, 4, 7, 99, 1000}) {
    check(int64_t(9007199254740993), int64_t(9007199254740993) + 10, n, i64);
    check(most, most - 12345, n, i64);
    check(least, most, n, i64);
    check(most, least, n, i64);
    check(least, int64_t(-1), n, i64);
    check(uint64_t(0), all, n, u64);
    check(all, uint64_t(3), n, u64);
    check(int64_t(0), int64_t(2), n, i64);  // in doubles, 49 times 1 / 49 is less than 1
    check(-7, 5, n, i8);
    check(5, -7, n, i32);
    check(3, 3, n, i16);
    check(255, 0, n, u8);
  }
  EXPECT_EQ(linspace(0x1p62, 0x1p62, 3, {.dtype = i64}).to_vector<int64_t>(),
            std::vector<int64_t>(3, int64_t(1) << 62));
  EXPECT_EQ(linspace(-2.5, 2.5, 3, {.dtype = i64}).to_vector<int>(), (std::vector<int>{-2, 0, 2}));
  EXPECT_EQ(linspace(0, 1e300, 1, {.dtype = i64}).to_vector<int>(), (std::vector<int>{0}));
  EXPECT_THROW((void)linspace(0, 0x1p63, 2, {.dtype = i64}), Error);
}

TEST(CreateSpaces, SpansBeyondTheLargestDouble) {
  constexpr double most = std::numeric_limits<double>::max();
  for (const int64_t n : {2, 3, 4, 5, 6, 11, 12, 1001}) {
    const auto x = linspace(-most, most, n, {.dtype = f64}).to_vector<double>();
    EXPECT_EQ(x.front(), -most);
    EXPECT_EQ(x.back(), most);
    for (size_t i = 1; i < x.size(); ++i) EXPECT_TRUE(std::isfinite(x[i]) && x[i] > x[i - 1]) << i << " of " << n;
    const auto down = linspace(most, -most, n, {.dtype = f64}).to_vector<double>();
    EXPECT_EQ(down.front(), most);
    EXPECT_EQ(down.back(), -most);
    for (size_t i = 1; i < x.size(); ++i) EXPECT_LT(down[i], down[i - 1]) << i << " of " << n;
  }
  EXPECT_EQ(linspace(-most, most, 2, {.dtype = f64, .requires_grad = true}).requires_grad(), true);
}

TEST(CreateSpaces, Logarithmic) {
  const auto x = logspace(0, 3, 4, 10, {.dtype = f64}).to_vector<double>();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(x[size_t(i)], std::pow(10, i), 1e-12 * std::pow(10, i));
  EXPECT_EQ(logspace(0, 8, 9, 2).to_vector<float>().back(), 256);
}

TEST(CreateSpaces, NumbersThatDoNotFit) {
  EXPECT_THROW((void)linspace(0, 300, 4, {.dtype = u8}), Error);
  EXPECT_THROW((void)linspace(-1, 3, 4, {.dtype = u8}), Error);
  EXPECT_THROW((void)logspace(0, 3, 4, 10, {.dtype = u8}), Error);
  EXPECT_THROW((void)logspace(0, 3, 4, -2, {.dtype = u8}), Error);
  EXPECT_EQ(linspace(0, 300, 1, {.dtype = u8}).to_vector<int>(), std::vector<int>{0});
  EXPECT_EQ(linspace(0, 255, 2, {.dtype = u8}).to_vector<int>(), (std::vector<int>{0, 255}));
  EXPECT_EQ(logspace(0, 2, 3, 10, {.dtype = u8}).to_vector<int>(), (std::vector<int>{1, 10, 100}));
}

TEST(CreateMatrices, TriangleIndices) {
  for (const int64_t row : {0, 1, 3, 6})
    for (const int64_t col : {0, 1, 2, 7})
      for (int64_t offset = -9; offset <= 9; ++offset) {
        const Tensor all = ones({row, col}, {.dtype = boolean});
        EXPECT_TRUE(equal(tril_indices(row, col, offset), nonzero(tril(all, offset)).t()))
            << row << " " << col << " " << offset;
        EXPECT_TRUE(equal(triu_indices(row, col, offset), nonzero(triu(all, offset)).t()))
            << row << " " << col << " " << offset;
      }
  EXPECT_EQ(tril_indices(3, 2, -1, {.dtype = u8}).to_vector<int>(), (std::vector<int>{1, 2, 2, 0, 0, 1}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(triu_indices(most, 2).to_vector<int>(), (std::vector<int>{0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(tril_indices(2, most, 0).to_vector<int>(), (std::vector<int>{0, 1, 1, 0, 0, 1}));
}

TEST(CreateMatrices, EyeAndTri) {
  EXPECT_EQ(eye(2, 3).to_vector<int>(), (std::vector<int>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(3, 1, {.dtype = i8}).to_vector<int>(), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(eye(0).numel(), 0);
  EXPECT_EQ(tri(3).to_vector<int>(), (std::vector<int>{1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(tri(2, 3, 1).to_vector<int>(), (std::vector<int>{1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(tri(2, 2, -1, {.dtype = boolean}).to_vector<int>(), (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(tri(2, 2, std::numeric_limits<int64_t>::max()).to_vector<int>(), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(tri(2, 2, std::numeric_limits<int64_t>::min()).to_vector<int>(), (std::vector<int>{0, 0, 0, 0}));
  expect_says([&] { return eye(-1); }, {"eye", "negative"});
  expect_says([&] { return tri(2, -1); }, {"tri", "negative"});
}

TEST(CreateMatrices, Meshgrid) {
  const auto ij = meshgrid({tensor({1, 2}), tensor({3, 4, 5})});
  EXPECT_EQ(ij[0].to_vector<int>(), (std::vector<int>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(ij[1].to_vector<int>(), (std::vector<int>{3, 4, 5, 3, 4, 5}));
  const auto xy = meshgrid({tensor({1, 2}), tensor({3, 4, 5})}, "xy");
  EXPECT_EQ(xy[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(xy[1].to_vector<int>(), (std::vector<int>{3, 3, 4, 4, 5, 5}));
  EXPECT_TRUE(meshgrid({}).empty());
  EXPECT_EQ(meshgrid({tensor(1), tensor({1, 2})})[0].shape(), (Shape{1, 2}));
  expect_says([&] { return meshgrid({tensor({1}), tensor({1.5})}); }, {"meshgrid", "i64", "f32"});
  expect_says([&] { return meshgrid({ones({2, 2})}); }, {"meshgrid", "[2, 2]"});
  expect_says([&] { return meshgrid({ones({2})}, "yx"); }, {"meshgrid", "yx", "ij"});
}

}  // namespace
}  // namespace volta

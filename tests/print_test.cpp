// Tensors as text, and the formatters.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include <volta/format.h>
#include <volta/volta.h>

namespace volta {
namespace {

struct WithOptions {
  explicit WithOptions(const PrintOptions& options) { set_print_options(options); }
  ~WithOptions() { set_print_options(before); }
  PrintOptions before = print_options();
};

TEST(PrintTensor, Numbers) {
  EXPECT_EQ(tensor({{1, 2, 3}, {4, 5, 6}}).str(), "[[1, 2, 3],\n [4, 5, 6]]  i64 [2, 3]");
  EXPECT_EQ(tensor({1, -20, 300}).str(), "[  1, -20, 300]  i64 [3]");
  EXPECT_EQ(tensor(7).str(), "7  i64 []");
  EXPECT_EQ(tensor(0.5).str(), "0.5  f32 []");
  EXPECT_EQ(tensor({1., 2.}).str(), "[1., 2.]  f32 [2]");
  EXPECT_EQ(tensor({0.5, 1.25}).str(), "[0.50, 1.25]  f32 [2]");
  EXPECT_EQ(tensor({1. / 3, -2. / 3}).str(), "[ 0.3333, -0.6667]  f32 [2]");
  EXPECT_EQ(tensor({true, false}).str(), "[ true, false]  bool [2]");
  EXPECT_EQ(full({1}, std::numeric_limits<uint64_t>::max(), {.dtype = u64}).str(), "[18446744073709551615]  u64 [1]");
  EXPECT_EQ(full({1}, std::numeric_limits<int64_t>::min()).str(), "[-9223372036854775808]  i64 [1]");
}

TEST(PrintTensor, ScientificAndSpecial) {
  EXPECT_EQ(tensor({1e-7, 1.}).str(), "[1e-07, 1e+00]  f32 [2]");
  EXPECT_EQ(tensor({1.5e10, 1.}).str(), "[1.5e+10, 1.0e+00]  f32 [2]");
  EXPECT_EQ(tensor({NAN, 1., INFINITY, -INFINITY}).str(), "[ nan,   1.,  inf, -inf]  f32 [4]");
  EXPECT_EQ(tensor({0., -0.5}, {.dtype = bf16}).str(), "[ 0.0, -0.5]  bf16 [2]");
  EXPECT_EQ(tensor({0., 0.}).str(), "[0., 0.]  f32 [2]");
}

TEST(PrintTensor, EmptyUndefinedAndFlags) {
  EXPECT_EQ(zeros({0}).str(), "[]  f32 [0]");
  EXPECT_EQ(zeros({0, 3}).str(), "[]  f32 [0, 3]");
  EXPECT_EQ(Tensor().str(), "undefined");
  EXPECT_EQ(ones({1}, {.requires_grad = true}).str(), "[1.]  f32 [1] requires_grad");
}

TEST(PrintTensor, ManyAxes) {
  EXPECT_EQ(arange(8).reshape({2, 2, 2}).str(), "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]  i64 [2, 2, 2]");
  EXPECT_EQ(arange(4).reshape({2, 2}).t().str(), "[[0, 2],\n [1, 3]]  i64 [2, 2]");
}

TEST(PrintTensor, LargeOnesAreSummarised) {
  EXPECT_EQ(arange(2000).str(), "[   0,    1,    2, ..., 1997, 1998, 1999]  i64 [2000]");
  EXPECT_EQ(arange(2000).reshape({1000, 2}).str(),
            "[[   0,    1],\n [   2,    3],\n [   4,    5],\n ...,\n [1994, 1995],\n [1996, 1997],\n [1998, 1999]]  "
            "i64 [1000, 2]");
  const WithOptions few({.threshold = 3, .edge_items = 1});
  EXPECT_EQ(arange(9).reshape({3, 3}).str(), "[[0, ..., 2],\n ...,\n [6, ..., 8]]  i64 [3, 3]");
}

TEST(PrintTensor, ExpandedAxesAreNotCopied) {
  const Tensor x = tensor({{1.f}, {2.f}}).repeat({5, 1}).expand({10, int64_t(1) << 40});
  const std::string s = x.str();
  EXPECT_EQ(s.substr(0, s.find('\n')), "[[1., 1., 1., ..., 1., 1., 1.],");
  EXPECT_NE(s.find("[10, 1099511627776]"), std::string::npos) << s;
  EXPECT_NE(ones({1}).expand({int64_t(1) << 20, int64_t(1) << 20, 4}).str().find("..."), std::string::npos);
}

TEST(PrintTensor, LongRowsWrap) {
  const WithOptions narrow({.line_width = 12});
  EXPECT_EQ(arange(6).str(), "[0, 1, 2,\n 3, 4, 5]  i64 [6]");
}

TEST(PrintTensor, Options) {
  const WithOptions precise({.precision = 8});
  EXPECT_EQ(tensor({1. / 3}, {.dtype = f64}).str(), "[0.33333333]  f64 [1]");
  EXPECT_THROW(set_print_options({.precision = -1}), Error);
  EXPECT_THROW(set_print_options({.edge_items = 0}), Error);
}

TEST(PrintStreams, SmallTypes) {
  std::ostringstream out;
  out << tensor({1, 2}) << ' ' << Shape{2, 3} << ' ' << bf16 << ' ' << Device("cuda:1") << ' ' << Error::Kind::shape;
  EXPECT_EQ(out.str(), "[1, 2]  i64 [2] [2, 3] bf16 cuda:1 shape");
}

#if __has_include(<fmt/format.h>)
TEST(PrintFormat, Fmt) {
  EXPECT_EQ(fmt::format("{} {} {} {}", tensor({1, 2}), Shape{2, 3}, f32, Device("cpu")),
            "[1, 2]  i64 [2] [2, 3] f32 cpu");
  EXPECT_EQ(fmt::format("{:>6}|{:<5}|{}", bf16, i8, Error::Kind::memory), "  bf16|i8   |memory");
  EXPECT_EQ(fmt::format("{}", tensor({1, 2})[1]), "2  i64 []");
}
#endif

}  // namespace
}  // namespace volta

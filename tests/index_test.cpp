// Gather, scatter, selection and masks against naive references, for every dtype and layout; their gradients and errors.
#include <cmath>

#include "dense.h"

namespace volta::test {
namespace {

Tensor f64_of(const Shape& shape, uint64_t seed = 7) {
  manual_seed(seed);
  return randn(shape, {.dtype = f64, .requires_grad = true});
}

Dense gather_reference(const Tensor& x, int axis, const Tensor& index) {
  const Dense in(x), at(index);
  Dense out(index.shape());
  each_index(index.shape(), [&](const Shape& i) {
    Shape from = i;
    from[axis] = int64_t(at.at(i));
    out.at(i) = in.at(from);
  });
  return out;
}

template <class F>
Dense scatter_reference(const Tensor& x, int axis, const Tensor& index, const Tensor& src, F combine) {
  Dense out(x);
  const Dense values(src), at(index);
  each_index(index.shape(), [&](const Shape& i) {
    Shape to = i;
    to[axis] = int64_t(at.at(i));
    out.at(to) = combine(out.at(to), values.at(i));
  });
  return out;
}

class IndexDTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, IndexDTypes, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST_P(IndexDTypes, GatherEveryAxisAndLayout) {
  const Tensor x = numbers({3, 4, 5}, GetParam());
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t n = x.size(axis);
    const Tensor index = numbers({3, 3, 4}, i64) % n;
    const Dense expected = gather_reference(x, axis, index);
    for (const Tensor& from : layouts(x))
      for (const Tensor& i : layouts(index)) expect_same(gather(from, axis, i), expected);
    EXPECT_EQ(gather(x, axis, index).dtype(), GetParam());
  }
}

TEST_P(IndexDTypes, ScatterEveryAxisAndLayout) {
  const Tensor x = numbers({3, 4, 5}, GetParam()), src = numbers({3, 4, 5}, GetParam()).flip({0, 1, 2});
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor index = numbers({3, 3, 4}, i64) % x.size(axis);  // with duplicates
    const Dense expected = scatter_reference(x, axis, index, src, [](double, double b) { return b; });
    for (const Tensor& to : layouts(x))
      for (const Tensor& from : layouts(src)) expect_same(scatter(to, axis, index, from), expected);
    expect_same(x, Dense(numbers({3, 4, 5}, GetParam())));
  }
}

TEST_P(IndexDTypes, ScatterReductions) {
  const DType dtype = GetParam();
  const Tensor x = numbers({4, 3}, i64) % 3 + 1, src = numbers({4, 3}, i64) % 4 + 1;
  const Tensor index = numbers({4, 3}, i64) % 4;
  const bool truth = dtype == boolean;
  const auto check = [&](const char* how, auto combine) {
    const Dense expected = scatter_reference(x.to(dtype), 0, index, src.to(dtype), combine);
    expect_same(scatter_reduce(x.to(dtype), 0, index, src.to(dtype), how), expected, how);
    for (const Tensor& to : layouts(x.to(dtype)))
      for (const Tensor& from : layouts(src.to(dtype)))
        expect_same(scatter_reduce(to, 0, index, from, how), expected, how);
  };
  check("sum", [=](double a, double b) { return truth ? double(a + b > 0) : a + b; });
  check("prod", [](double a, double b) { return a * b; });
  check("amax", [](double a, double b) { return std::max(a, b); });
  check("amin", [](double a, double b) { return std::min(a, b); });
  expect_same(scatter_add(x.to(dtype), 0, index, src.to(dtype)),
              scatter_reference(x.to(dtype), 0, index, src.to(dtype),
                                [=](double a, double b) { return truth ? double(a + b > 0) : a + b; }));
}

TEST_P(IndexDTypes, IndexSelectAndAdd) {
  const DType dtype = GetParam();
  const Tensor x = numbers({4, 3, 5}, dtype), index = tensor({2, 0, 1, 2});
  for (int axis = 0; axis < 3; ++axis) {
    Shape shape = x.shape();
    shape[axis] = 4;
    Shape spread{1, 1, 1};
    spread[axis] = 4;
    const Tensor wide = index.reshape(spread).expand(shape);
    for (const Tensor& from : layouts(x)) expect_same(index_select(from, axis, index), gather_reference(x, axis, wide));
    if (dtype == boolean) continue;
    const Tensor src = numbers(shape, dtype) % 5;
    const Tensor base = x % 20;
    const Dense expected = scatter_reference(base, axis, wide, src, [](double a, double b) { return a + 2 * b; });
    for (const Tensor& from : layouts(src)) expect_same(index_add(base, axis, index, from, 2), expected);
  }
}

TEST_P(IndexDTypes, MaskedAndNonzero) {
  const Tensor x = numbers({3, 4}, GetParam());
  const Tensor mask = numbers({3, 4}, i64) % 2 == 0;
  for (const Tensor& from : layouts(x))
    for (const Tensor& m : layouts(mask)) {
      std::vector<double> chosen;
      const Dense values(x), truths(mask);
      each_index(x.shape(), [&](const Shape& i) {
        if (truths.at(i) != 0) chosen.push_back(values.at(i));
      });
      EXPECT_EQ(masked_select(from, m).to(f64).to_vector<double>(), chosen);
      Dense filled(x);
      each_index(x.shape(), [&](const Shape& i) { filled.at(i) = truths.at(i) != 0 ? 1 : filled.at(i); });
      expect_same(masked_fill(from, m, 1), filled);
      EXPECT_EQ(masked_fill(from, m, 1).dtype(), GetParam());
    }
  const Tensor where_not_zero = nonzero(x);
  int64_t row = 0;
  const Dense values(x);
  each_index(x.shape(), [&](const Shape& i) {
    if (values.at(i) == 0) return;
    EXPECT_EQ((where_not_zero[{row, 0}].item<int64_t>()), i[0]);
    EXPECT_EQ((where_not_zero[{row++, 1}].item<int64_t>()), i[1]);
  });
  EXPECT_EQ(where_not_zero.shape(), (Shape{row, 2}));
}

TEST_P(IndexDTypes, MaskedFillInPlace) {
  const DType dtype = GetParam();
  const Tensor values = tensor({1, 0, 3, 1, 2, 0}).to(dtype).reshape({2, 3}), mask = tensor({true, false, true});
  for (const Tensor& source : {values, values.t().contiguous().t(), values.flip({1}).contiguous().flip({1})}) {
    Tensor x = source.clone();
    const uint32_t version = x.version();
    x.masked_fill_(mask, 1);
    EXPECT_TRUE(equal(x, masked_fill(values, mask, 1)));
    EXPECT_GT(x.version(), version);
  }
  Tensor truth = values > 1;
  EXPECT_FALSE(truth.masked_fill_(truth, false).any().item<bool>());
  Tensor x = values.clone();
  EXPECT_THROW(x.masked_fill_(ones({4, 2, 3}, {.dtype = boolean}), 1), Error);
  EXPECT_THROW(x.masked_fill_(ones({3}), 1), Error);
  if (!is_floating(dtype)) {
    EXPECT_THROW(x.masked_fill_(mask, 0.5), Error);
  }
  EXPECT_TRUE(equal(x, values));
}

TEST(AutogradIndex, MaskedFillInPlaceStopsTheGradient) {
  const Tensor x = ones({3}).requires_grad_(), mask = tensor({true, false, true});
  Tensor y = x * 2;
  y.masked_fill_(mask, 5);
  y.sum().backward();
  EXPECT_EQ(x.grad()->to_vector<float>(), (std::vector<float>{0, 2, 0}));
}

TEST(IndexTypes, EveryIntegerDTypeIsAnIndex) {
  const Tensor x = numbers({5, 3});
  for (const DType dtype : index_dtypes) {
    const Tensor i = tensor({4, 0, 2}).to(dtype);
    expect_same(index_select(x, 0, i), Dense(index_select(x, 0, tensor({4, 0, 2}))));
    expect_same(take(x, i), Dense(tensor<double>({28, 0, 14})));
    expect_same(x[i], Dense(index_select(x, 0, i)));
  }
  for (const DType dtype : {f32, f16, boolean})
    expect_error(Error::Kind::dtype, "gather", {"integers"}, [&] {
      return gather(x, 0, zeros({1, 3}, {.dtype = dtype}));
    });
  const Tensor huge = full({1}, UINT64_MAX, {.dtype = u64});
  expect_error(Error::Kind::index, "take", {"out of range"}, [&] { return take(x, huge); });
}

TEST(IndexTypes, LargeRanksZeroSizesAndZeroAxes) {
  const Tensor big = numbers({1, 2, 1, 3, 1, 2, 1, 2, 1, 2, 1, 2});
  const Tensor index = numbers(big.shape(), i64) % 3;
  expect_same(gather(big, 3, index), gather_reference(big, 3, index));
  expect_same(index_select(big, 3, tensor({1})), Dense(big.narrow(3, 1, 1)));
  EXPECT_EQ(gather(zeros({3, 0}), 0, zeros({2, 0}, {.dtype = i64})).shape(), (Shape{2, 0}));
  EXPECT_EQ(gather(zeros({3, 2}), 0, zeros({0, 2}, {.dtype = i64})).shape(), (Shape{0, 2}));
  EXPECT_EQ(index_select(zeros({3, 2}), 1, zeros({0}, {.dtype = i64})).shape(), (Shape{3, 0}));
  EXPECT_EQ(index_select(zeros({0, 2}), 1, tensor({1, 1, 0})).shape(), (Shape{0, 3}));
  EXPECT_EQ(masked_select(zeros({0, 2}), zeros({0, 2}, {.dtype = boolean})).shape(), (Shape{0}));
  EXPECT_EQ(nonzero(zeros({0, 3})).shape(), (Shape{0, 2}));
  EXPECT_EQ(nonzero(tensor(3.0)).shape(), (Shape{1, 0}));
  EXPECT_EQ(nonzero(tensor(0.0)).shape(), (Shape{0, 0}));
  EXPECT_TRUE(gather(ones({3}).requires_grad_(), 0, zeros({0}, {.dtype = i64})).requires_grad());
  EXPECT_EQ(gather(tensor(5.0), 0, tensor(0)).item<double>(), 5);
  EXPECT_EQ(gather(tensor(5.0), 0, tensor(0)).dim(), 0);
  EXPECT_EQ(scatter(tensor(5.0), 0, tensor(0), 2).item<double>(), 2);
  EXPECT_EQ(scatter_add(tensor(5.0), -1, tensor(0), tensor(2.0)).item<double>(), 7);
  EXPECT_EQ(embedding(tensor({{1, 2}}), zeros({4, 0})).shape(), (Shape{1, 2, 0}));
  EXPECT_EQ(embedding(zeros({2, 0}, {.dtype = i64}), zeros({4, 3})).shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(embedding(tensor(2), zeros({4, 3})).shape(), (Shape{3}));
}

TEST(IndexTypes, ExpandedInputs) {
  const Tensor row = numbers({5}).expand({4, 5}), index = tensor({{3}, {1}}).expand({2, 5});
  expect_same(gather(row, 0, index), gather_reference(row, 0, index));
  expect_same(scatter_add(row, 0, index, row.narrow(0, 0, 2)),
              scatter_reference(row, 0, index, row.narrow(0, 0, 2), [](double a, double b) { return a + b; }));
  expect_same(take_along_dim(numbers({3, 1, 4}), tensor({{{1}}, {{3}}}).reshape({1, 2, 1}), 2),
              Dense(tensor<double>({{{7}, {21}}, {{35}, {49}}, {{63}, {77}}})));
  expect_same(take_along_dim(numbers({2, 3}), tensor({{5, 0}})), Dense(tensor<double>({35, 0})));
}

TEST(IndexMore, OneHotAndEmbedding) {
  EXPECT_TRUE(equal(one_hot(tensor({1, 0, 2})), eye(3, {}, {.dtype = i64}).index_select(0, tensor({1, 0, 2}))));
  EXPECT_EQ(one_hot(tensor({{1, 3}}), 5).shape(), (Shape{1, 2, 5}));
  EXPECT_EQ(one_hot(zeros({0}, {.dtype = i64}), 3).shape(), (Shape{0, 3}));
  expect_error(Error::Kind::index, "one_hot", {"-1"}, [] { return one_hot(tensor({-1, 2})); });
  expect_error(Error::Kind::index, "one_hot", {"3"}, [] { return one_hot(tensor({3, 2}), 3); });
  expect_error(Error::Kind::argument, "one_hot", {"num_classes"}, [] { return one_hot(zeros({0}, {.dtype = i64})); });
  const Tensor w = numbers({6, 4});
  expect_same(embedding(tensor({{5, 0}, {1, 1}}), w),
              Dense(w.index_select(0, tensor({5, 0, 1, 1})).reshape({2, 2, 4})));
}

TEST(IndexMore, MeanAndWithoutSelf) {
  const Tensor x = tensor<double>({10, 20, 30, 40}), index = tensor({0, 0, 2, 0}), src = tensor<double>({1, 2, 3, 6});
  const auto reduced = [&](const char* how, bool self) { return scatter_reduce(x, 0, index, src, how, self); };
  EXPECT_TRUE(equal(reduced("mean", true), tensor<double>({4.75, 20, 16.5, 40})));
  EXPECT_TRUE(equal(reduced("mean", false), tensor<double>({3, 20, 3, 40})));
  EXPECT_TRUE(equal(reduced("sum", false), tensor<double>({9, 20, 3, 40})));
  EXPECT_TRUE(equal(reduced("prod", false), tensor<double>({12, 20, 3, 40})));
  EXPECT_TRUE(equal(reduced("amax", false), tensor<double>({6, 20, 3, 40})));
  EXPECT_TRUE(equal(reduced("amin", false), tensor<double>({1, 20, 3, 40})));
  EXPECT_TRUE(equal(scatter_reduce(x.to(i32), 0, index, src.to(i32), "mean"), tensor({4, 20, 16, 40}).to(i32)));
  const Tensor with_nan = scatter_reduce(x, 0, index, tensor<double>({1, NAN, 3, 6}), "amax");
  EXPECT_TRUE(std::isnan(with_nan[0].item<double>()));
}

TEST(IndexMore, HalvesAddUpInSinglePrecision) {
  const Tensor index = zeros({5000}, {.dtype = i64});
  for (const DType dtype : {f16, bf16}) {
    EXPECT_EQ(scatter_add(zeros({1}, {.dtype = dtype}), 0, index, ones({5000}, {.dtype = dtype})).item<float>(),
              full({1}, 5000, {.dtype = dtype}).item<float>());
    Tensor w = zeros({2, 3}, {.dtype = dtype, .requires_grad = true});
    embedding(index, w).sum().backward();
    EXPECT_EQ((w.grad().value()[{0, 0}].item<float>()), full({1}, 5000, {.dtype = dtype}).item<float>());
  }
}

TEST(ThreadsIndex, ResultsDoNotDependOnTheNumberOfThreads) {
  manual_seed(3);
  const Tensor src = randn({70000}), index = randint(0, 50, {70000}), rows = randn({3000, 64}),
               at = randint(0, 40, {3000});
  const Tensor many = randn({300, 500}), places = randint(0, 300, {300, 500});
  const auto all = [&] {
    return std::vector{scatter_add(zeros({50}), 0, index, src),
                       scatter(zeros({50}), 0, index, src),
                       index_add(zeros({40, 64}), 0, at, rows),
                       scatter_add(zeros({300, 500}), 0, places, many),
                       scatter(zeros({300, 500}), 0, places, many),
                       scatter_reduce(zeros({50}), 0, index, src, "amax"),
                       gather(many, 0, places),
                       index_select(rows, 0, at),
                       index_add(zeros({64, 40}), 1, at, rows.transpose(0, 1))};
  };
  const int before = get_num_threads();
  set_num_threads(1);
  const auto alone = all();
  for (const int n : {2, 3, 5}) {
    set_num_threads(n);
    const auto together = all();
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(equal(alone[i], together[i])) << i << " with " << n;
  }
  set_num_threads(before);
  expect_same(alone[1], scatter_reference(zeros({50}), 0, index, src, [](double, double b) { return b; }));
  expect_same(alone[4], scatter_reference(zeros({300, 500}), 0, places, many, [](double, double b) { return b; }));
  expect_same(alone[6], gather_reference(many, 0, places));
}

TEST(ErrorsIndex, OutOfRangeNamesTheIndexTheAxisAndItsSize) {
  const Tensor x = ones({2, 3}), bad = tensor({{0, 3, 1}}), low = tensor({{0, -4, 1}});
  for (const Tensor& i : {bad, low}) {
    const char* word = i[{0, 1}].item<int>() == 3 ? "index 3" : "index -4";
    const auto expect = [&](const char* op, auto f) {
      expect_error(Error::Kind::index, op, {word, "axis 1", "size 3"}, f);
    };
    expect("gather", [&] { return gather(x, 1, i); });
    expect("scatter", [&] { return scatter(x, 1, i, 0); });
    expect("scatter_add", [&] { return scatter_add(x, 1, i, ones({1, 3})); });
    expect("scatter_reduce", [&] { return scatter_reduce(x, 1, i, ones({1, 3}), "amax"); });
    expect("index_select", [&] { return index_select(x, 1, i[0]); });
    expect("index_add", [&] { return index_add(x, 1, i[0], ones({2, 3})); });
    expect("index", [&] { return x[{slice(), i[0]}]; });
  }
  expect_error(Error::Kind::index, "embedding", {"index 7", "size 2"}, [&] { return embedding(tensor({0, 7}), x); });
  expect_error(Error::Kind::index, "take", {"index 6", "size 6"}, [&] { return take(x, tensor({0, 6})); });
  expect_error(Error::Kind::index, "gather", {"size 0"}, [&] {
    return gather(zeros({0, 3}), 0, zeros({1, 3}, {.dtype = i64}));
  });
  EXPECT_TRUE(equal(x, ones({2, 3})));
}

TEST(ErrorsIndex, ShapesAndDTypes) {
  const Tensor x = ones({2, 3}), i = zeros({2, 3}, {.dtype = i64});
  expect_error(Error::Kind::shape, "gather", {"[2, 3]", "[4, 1]"}, [&] {
    return gather(x, 1, zeros({4, 1}, {.dtype = i64}));
  });
  expect_error(Error::Kind::shape, "gather", {"[2, 3]", "[2]"},
               [&] { return gather(x, 1, zeros({2}, {.dtype = i64})); });
  expect_error(Error::Kind::shape, "scatter_add", {"[2, 3]", "[1, 3]"}, [&] {
    return scatter_add(x, 1, i, ones({1, 3}));
  });
  expect_error(Error::Kind::dtype, "scatter_add", {"f32", "f64"}, [&] {
    return scatter_add(x, 1, i, ones({2, 3}, {.dtype = f64}));
  });
  expect_error(Error::Kind::dtype, "scatter", {"0.5", "i64"}, [&] { return scatter(i, 1, i, 0.5); });
  expect_error(Error::Kind::dtype, "masked_fill", {"0.5", "i64"}, [&] { return masked_fill(i, i == 0, 0.5); });
  expect_error(Error::Kind::dtype, "masked_fill", {"boolean"}, [&] { return masked_fill(x, x, 0); });
  expect_error(Error::Kind::shape, "masked_fill", {"0-d"}, [&] { return masked_fill(x, x == 1, ones({3})); });
  expect_error(Error::Kind::argument, "scatter_reduce", {"amax", "median"},
               [&] { return scatter_reduce(x, 1, i, x, "median"); });
  expect_error(Error::Kind::shape, "index_select", {"one axis"}, [&] { return index_select(x, 1, i); });
  expect_error(Error::Kind::shape, "index_add", {"[2, 2]"}, [&] { return index_add(x, 1, tensor({0}), ones({2, 2})); });
  expect_error(Error::Kind::shape, "embedding", {"[3]"}, [&] { return embedding(i, ones({3})); });
  expect_error(Error::Kind::index, "gather", {"axis 2"}, [&] { return gather(x, 2, i); });
}

template <class F, class... X> void expect_gradients(const F& f, const X&... x) {
  EXPECT_TRUE(gradcheck(f, x...));
  EXPECT_TRUE(gradgradcheck(f, x...));
}

TEST(IndexValues, ANumberIsAnIndexOfAVector) {
  const Tensor x = tensor({1., 2., 3.}).requires_grad_(), two = tensor(2), ten = full({}, 10., {.dtype = f64});
  EXPECT_TRUE(equal(scatter_add(x.to(f64), 0, two, ten), tensor<double>({1, 2, 13})));
  EXPECT_TRUE(equal(scatter(x, 0, two, 5), tensor({1., 2., 5.})));
  EXPECT_TRUE(equal(scatter_reduce(x.to(f64), 0, two, ten, "prod"), tensor<double>({1, 2, 30})));
  EXPECT_TRUE(equal(grad({scatter(x, 0, two, 5).sum()}, {x})[0], tensor({1., 1., 0.})));
  Tensor y = x.detach().clone();
  y.scatter_(0, two, 5);
  EXPECT_TRUE(equal(y, tensor({1., 2., 5.})));
}

// An index of no elements changes nothing, whatever its number of axes.
TEST(IndexValues, EmptyIndexOfAnotherRank) {
  const Tensor x = randn({4, 5}).requires_grad_(), none = zeros({0}, {.dtype = i64}), nothing = zeros({0});
  EXPECT_TRUE(equal(scatter_add(x, 1, none, nothing), x));
  EXPECT_TRUE(equal(scatter(x, 0, none, nothing), x));
  EXPECT_TRUE(equal(scatter_reduce(x, 0, none, nothing, "amax"), x));
  Tensor y = x.detach().clone();
  y.scatter_add_(1, none, nothing);
  EXPECT_TRUE(equal(y, x));
  EXPECT_TRUE(equal(grad({scatter_add(x, 1, none, nothing).sum()}, {x})[0], ones({4, 5})));
}

TEST(GradcheckIndex, GatherAndScatter) {
  const Tensor x = f64_of({3, 4}), src = f64_of({3, 4}, 8);
  const Tensor index = tensor({{0, 2, 1, 2}, {2, 2, 1, 0}});
  expect_gradients([=](const Tensor& a) { return gather(a, 0, index); }, x);
  expect_gradients([=](const Tensor& a) { return take(a, index); }, x);
  expect_gradients([=](const Tensor& a) { return take_along_dim(a, index.narrow(0, 0, 1), 1); }, x);
  expect_gradients([=](const Tensor& a) { return index_select(a, 1, tensor({3, 3, 0})); }, x);
  expect_gradients([=](const Tensor& a) { return embedding(index, a); }, x);
  expect_gradients([=](const Tensor& a, const Tensor& b) { return scatter(a, 0, index, b); }, x, src);
  expect_gradients([=](const Tensor& a) { return scatter(a, 0, index, 3.0); }, x);
  expect_gradients([=](const Tensor& a, const Tensor& b) { return scatter_add(a, 0, index, b); }, x, src);
  expect_gradients(
      [=](const Tensor& a, const Tensor& b) {
        return index_add(a, 0, tensor({1, 1, 2}), b, 0.5);
      },
      x, src);
  for (const char* how : {"sum", "mean", "prod", "amax", "amin"})
    for (const bool self : {true, false})
      expect_gradients([=](const Tensor& a, const Tensor& b) { return scatter_reduce(a, 0, index, b, how, self); }, x,
                       src);
}

TEST(GradcheckIndex, ProductsWithZeros) {
  Tensor src = tensor<double>({0, 2, 0, 0, 3, 4}).requires_grad_();
  Tensor x = tensor<double>({0, 5, 2, 3}).requires_grad_();
  const Tensor index = tensor({0, 0, 1, 1, 2, 0});
  expect_gradients([=](const Tensor& a, const Tensor& b) { return scatter_reduce(a, 0, index, b, "prod"); }, x, src);
  expect_gradients([=](const Tensor& a, const Tensor& b) { return scatter_reduce(a, 0, index, b, "prod", false); }, x,
                   src);
}

TEST(GradcheckIndex, TiesShare) {
  Tensor x = tensor<double>({3, 1}).requires_grad_(), src = tensor<double>({3, 3, 0, 2}).requires_grad_();
  const auto g = grad(scatter_reduce(x, 0, tensor({0, 0, 1, 1}), src, "amax").sum(), std::vector{x, src});
  EXPECT_TRUE(allclose(g[0], tensor<double>({1.0 / 3, 0})));
  EXPECT_TRUE(allclose(g[1], tensor<double>({1.0 / 3, 1.0 / 3, 0, 1})));
}

TEST(GradcheckIndex, Masks) {
  const Tensor x = f64_of({3, 4}), mask = numbers({3, 4}, i64) % 2 == 0;
  expect_gradients([=](const Tensor& a) { return masked_select(a, mask); }, x);
  expect_gradients([=](const Tensor& a) { return masked_select(a, mask.select(0, 0)); }, x);
  expect_gradients([=](const Tensor& a, const Tensor& v) { return masked_fill(a, mask, v); }, x, f64_of({}));
}

TEST(AutogradIndex, ChangedIndexIsNoticed) {
  Tensor index = tensor({0, 1});
  Tensor x = f64_of({3});
  const Tensor y = gather(x, 0, index).sum();
  index += 1;
  expect_error(Error::Kind::autograd, "gather", {}, [&] { y.backward(); });
}

}  // namespace
}  // namespace volta::test

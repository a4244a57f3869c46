// In-place writes by index, random fillings and samples, and the corners that the generated suites do not reach.
#include <gtest/gtest.h>

#include <cmath>

#include <volta/volta.h>

#include "dense.h"

namespace volta::test {
namespace {

using Doubles = std::vector<double>;

Tensor f64_range(const Shape& shape) { return arange(shape.numel()).to(f64).reshape(shape); }

TEST(InplaceIndex, EqualsTheCopyingForm) {
  const Tensor i = tensor({2, 0}), wide = tensor({{2, 0, 1}, {0, 0, 3}}), mask = tensor({true, false, true});
  for (const DType dtype : {f16, bf16, f32, f64, i8, i32, i64, u8, u64}) {
    const Tensor x = f64_range({4, 3}).to(dtype), v = (f64_range({2, 3}) + 1).to(dtype);
    const auto check = [&](auto in_place, const Tensor& made) {
      for (const Tensor& layout : {x.clone(), x.t().clone().t(), stack({x, x}, 2).select(2, 0)}) {
        Tensor y = layout;
        const uint32_t before = y.version();
        in_place(y);
        EXPECT_GT(y.version(), before);
        EXPECT_EQ(y.dtype(), dtype);
        EXPECT_TRUE(equal(y, made)) << y.str() << made.str();
      }
    };
    check([&](Tensor& y) { y.scatter_(0, wide, v); }, x.scatter(0, wide, v));
    check([&](Tensor& y) { y.scatter_(0, wide, 1); }, x.scatter(0, wide, 1));
    check([&](Tensor& y) { y.scatter_add_(0, wide, v); }, x.scatter_add(0, wide, v));
    for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
      check([&](Tensor& y) { y.scatter_reduce_(0, wide, v, how, false); }, x.scatter_reduce(0, wide, v, how, false));
    check([&](Tensor& y) { y.index_add_(0, i, v, 2); }, x.index_add(0, i, v, 2));
    check([&](Tensor& y) { y.index_copy_(0, i, v); }, x.index_copy(0, i, v));
    check([&](Tensor& y) { y.index_fill_(1, i, 3); }, x.index_fill(1, i, 3));
    check([&](Tensor& y) { y.masked_scatter_(mask, cat({v, v})); }, x.masked_scatter(mask, cat({v, v})));
    check([&](Tensor& y) { y.index_put_({i}, v, true); }, x.index_put({i}, v, true));
    check([&](Tensor& y) { y.index_put_({i, tensor({1, -1})}, 5); }, x.index_put({i, tensor({1, -1})}, 5));
  }
}

// As if the operand had been copied first, whatever part of the memory it shares.
TEST(InplaceOverlap, ReadsWhatWasThereBefore) {
  for (const int64_t n : {7, 1000, 100000}) {
    const Tensor x = f64_range({n});
    const auto check = [&](auto part, auto other) {
      Tensor y = x.clone();
      part(y).add_(other(y));
      EXPECT_TRUE(equal(part(y), part(x) + other(x))) << n;
    };
    const auto all = [](const Tensor& t) { return t; };
    const auto back = [](const Tensor& t) { return t.flip(0); };
    const auto front = [&](const Tensor& t) { return t.narrow(0, 0, n - 1); };
    const auto rest = [&](const Tensor& t) { return t.narrow(0, 1, n - 1); };
    const auto turned = [&](const Tensor& t) { return t.as_strided({n - 1}, {-1}, n - 2); };
    check(front, rest);
    check(rest, front);
    check(all, back);
    check(rest, turned);
    check(turned, rest);
  }
}

TEST(InplaceIndex, KnownValues) {
  Tensor x = zeros({3}, {f64});
  EXPECT_EQ(x.index_put_({tensor({0, 0, -1})}, tensor<double>({1, 2, 4}), true).to_vector<double>(),
            (Doubles{3, 0, 4}));
  EXPECT_EQ(x.scatter_add_(0, tensor({1, 1}), tensor<double>({5, 6})).to_vector<double>(), (Doubles{3, 11, 4}));
  EXPECT_EQ(x.masked_scatter_(x > 3, tensor<double>({7, 8, 9})).to_vector<double>(), (Doubles{3, 7, 8}));
  EXPECT_EQ(x.index_fill_(0, tensor({-3}), 1).to_vector<double>(), (Doubles{1, 7, 8}));
  Tensor grid = zeros({2, 3});
  grid.index_put_({Tensor(), tensor({0, 2})}, 1.0);
  EXPECT_EQ(grid.to_vector<double>(), (Doubles{1, 0, 1, 1, 0, 1}));
  Tensor own = f64_range({4});
  own.index_copy_(0, tensor({3, 2, 1, 0}), own);  // reads what it writes
  EXPECT_EQ(own.to_vector<double>(), (Doubles{3, 2, 1, 0}));
}

TEST(InplaceIndex, KeepsTheRulesOfAutograd) {
  Tensor leaf = ones({3}, {.requires_grad = true});
  EXPECT_THROW(leaf.scatter_(0, tensor({0}), 1.0), Error);
  EXPECT_THROW(leaf.index_put_({tensor({0})}, 1.0), Error);
  EXPECT_THROW(leaf.exponential_(), Error);
  Tensor stretched = ones({1}).expand({3});
  EXPECT_THROW(stretched.index_add_(0, tensor({0}), ones({1})), Error);
  const Tensor w = tensor<double>({2, 3, 5}, {.requires_grad = true});
  Tensor y = w * 1;
  const Tensor saved = y * y;
  y.index_fill_(0, tensor({1}), 0.0);
  EXPECT_THROW(saved.sum().backward(), Error);
  Tensor base = w * 1;
  base.narrow(0, 1, 2).scatter_add_(0, tensor({0, 0}), w.narrow(0, 0, 2));  // through a view
  EXPECT_EQ(grad((base * tensor<double>({1, 10, 100})).sum(), w).to_vector<double>(), (Doubles{11, 20, 100}));
}

TEST(RandomFill, MomentsAndRepeatability) {
  const int64_t n = 200000;
  const auto mean_of = [&](auto fill, DType dtype = f64) {
    Generator g(11), again(11);
    Tensor x = empty({n}, {dtype}), y = empty({n}, {dtype});
    fill(x, &g), fill(y, &again);
    EXPECT_TRUE(equal(x, y));
    return x.to(f64).mean().item<double>();
  };
  EXPECT_NEAR(mean_of([](Tensor& x, Generator* g) { x.exponential_(4, g); }), 0.25, 0.005);
  EXPECT_NEAR(mean_of([](Tensor& x, Generator* g) { x.bernoulli_(0.3, g); }, i32), 0.3, 0.01);
  EXPECT_NEAR(mean_of([](Tensor& x, Generator* g) { x.bernoulli_(full({1}, 0.8), g); }), 0.8, 0.01);
  EXPECT_NEAR(mean_of([](Tensor& x, Generator* g) { x.geometric_(0.25, g); }, i64), 4, 0.05);
  EXPECT_NEAR(mean_of([](Tensor& x, Generator* g) { x.log_normal_(0, 0.5, g); }), std::exp(0.125), 0.01);
  Generator g(3);
  Tensor c = empty({n}, {f64});
  EXPECT_NEAR(c.cauchy_(2, 3, &g).median().item<double>(), 2, 0.05);
  EXPECT_NEAR((abs(c - 2) < 3).to(f64).mean().item<double>(), 0.5, 0.01);
  Tensor e = empty({n});
  EXPECT_TRUE((e.exponential_() > 0).all().item<bool>());
  for (double p : {0.0, -1.0, 1.5}) EXPECT_THROW(e.geometric_(p), Error);
  EXPECT_THROW(e.exponential_(0), Error);
  EXPECT_THROW(empty({2}, {i64}).exponential_(), Error);
  EXPECT_THROW(e.bernoulli_(1.5), Error);
}

TEST(RandomSample, PoissonGammaBetaDirichlet) {
  Generator g(5);
  const int64_t n = 100000;
  for (double rate : {0.0, 0.5, 4.0, 9.9, 10.0, 30.0, 1000.0}) {
    const Tensor x = poisson(full({n}, rate, {f64}), &g);
    const double slack = 5 * std::sqrt(rate / n) + 1e-12;
    EXPECT_NEAR(x.mean().item<double>(), rate, slack);
    EXPECT_NEAR(x.var().item<double>(), rate, rate * 0.05);
    EXPECT_TRUE(equal(x, x.round()));
  }
  for (double a : {0.2, 0.9, 1.0, 3.5, 100.0}) {
    const Tensor x = sample_gamma(full({n}, a, {f64}), 2.0, &g);
    EXPECT_NEAR(x.mean().item<double>(), a / 2, 5 * std::sqrt(a / 4 / n));
    EXPECT_NEAR(x.var().item<double>(), a / 4, a / 4 * 0.15);
    EXPECT_TRUE((x >= 0).all().item<bool>());
  }
  const Tensor b = sample_beta(full({n}, 2.0, {f64}), full({}, 3.0, {f64}), &g);
  EXPECT_NEAR(b.mean().item<double>(), 0.4, 0.005);
  EXPECT_NEAR(b.var().item<double>(), 0.04, 0.002);
  for (const double small : {1e-3, 1e-6, 1e-310}) {  // most of such gammas are too small for any float
    const Tensor a = full({n}, small, {f64}), shares = sample_beta(a, a, &g);
    EXPECT_TRUE(logical_and(shares >= 0, shares <= 1).all().item<bool>());
    EXPECT_NEAR(shares.mean().item<double>(), 0.5, 0.05);
    const Tensor rows = sample_dirichlet(a.reshape({n / 4, 4}), &g);
    EXPECT_TRUE(allclose(rows.sum(-1), ones({n / 4}, {f64})));
  }
  const Tensor d = sample_dirichlet(tensor<double>({1, 2, 5}).expand({n, 3}), &g);
  EXPECT_TRUE(allclose(d.sum(1), ones({n}, {f64})));
  EXPECT_TRUE(allclose(d.mean(0), tensor<double>({0.125, 0.25, 0.625}), {.atol = 0.01}));
  EXPECT_EQ(poisson(zeros({0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(poisson(ones({2}, {bf16})).dtype(), bf16);
  EXPECT_THROW(poisson(full({1}, -1.0)), Error);
  EXPECT_THROW(poisson(ones({1}, {.requires_grad = true})), Error);
  EXPECT_THROW(sample_gamma(zeros({1})), Error);
}

TEST(RandomSample, GumbelSoftmax) {
  manual_seed(7);
  const Tensor logits = log(tensor<double>({0.2, 0.3, 0.5})).expand({50000, 3});
  const Tensor hard = gumbel_softmax(logits, 1, true);
  EXPECT_TRUE(allclose(hard.mean(0), tensor<double>({0.2, 0.3, 0.5}), {.atol = 0.01}));
  EXPECT_TRUE(allclose(hard.amax(1), ones({50000}, {f64})));
  Tensor x = zeros({2, 3}, {.dtype = f64, .requires_grad = true});
  manual_seed(1);
  const Tensor a = grad((gumbel_softmax(x, 0.5) * f64_range({2, 3})).sum(), x);
  manual_seed(1);
  EXPECT_TRUE(allclose(a, grad((gumbel_softmax(x, 0.5, true) * f64_range({2, 3})).sum(), x)));
  EXPECT_NE(a.abs().sum().item<double>(), 0);
  EXPECT_THROW(gumbel_softmax(x, 0), Error);
}

TEST(CreateTriangles, Indices) {
  EXPECT_TRUE(equal(tril_indices(3, 3), tensor({{0, 1, 1, 2, 2, 2}, {0, 0, 1, 0, 1, 2}})));
  EXPECT_TRUE(equal(triu_indices(2, 3, 1), tensor({{0, 0, 1}, {1, 2, 2}})));
  EXPECT_TRUE(equal(tril_indices(2, 3, -1, {.dtype = i32}), tensor({{1}, {0}}).to(i32)));
  EXPECT_EQ(triu_indices(0, 4).shape(), (Shape{2, 0}));
  EXPECT_THROW(tril_indices(-1, 2), Error);
}

TEST(ReduceCorners, MedianOfNothingAndLogsumexpOfIntegers) {
  Tensor none = zeros({0, 3}, {.dtype = f64, .requires_grad = true});
  EXPECT_TRUE(std::isnan(median(none).item<double>()));
  EXPECT_EQ(grad(median(none), none).shape(), (Shape{0, 3}));
  EXPECT_TRUE(std::isnan(nanmedian(zeros({0})).item<float>()));
  EXPECT_THROW(median(zeros({0}, {i64})), Error);  // there is no integer to say so
  EXPECT_THROW(median(zeros({0, 3}), 0), Error);
  const Tensor y = logsumexp(tensor({{0, 1}, {2, 3}}), 1);
  EXPECT_EQ(y.dtype(), default_dtype());
  EXPECT_NEAR(y[0].item<double>(), std::log(1 + std::exp(1)), 1e-6);
  EXPECT_EQ(logsumexp(tensor({true, true}), 0).dtype(), default_dtype());
}

TEST(ShapeCorners, Rot90IsACopyWhateverTheShape) {
  for (const Shape& shape : {Shape{3, 1}, Shape{1, 3}, Shape{1, 1}, Shape{2, 3}})
    for (int k = 0; k < 4; ++k) {
      const Tensor x = ones(shape);
      EXPECT_FALSE(rot90(x, k).shares_storage(x)) << shape.str() << k;
    }
}

TEST(ReduceCorners, MedianOfNoRowsKeepsTheGraph) {
  Tensor x = ones({2, 0}, {.requires_grad = true});
  EXPECT_EQ(grad(median(x, 0).values.sum(), x).shape(), (Shape{2, 0}));
  EXPECT_EQ(grad(nanmedian(x, 0).values.sum(), x).shape(), (Shape{2, 0}));
}

TEST(ResampleCorners, EmptyResults) {
  Tensor x = ones({1, 2, 4}, {.requires_grad = true});
  const Tensor y = interpolate(x, {.size = 0, .mode = "area"});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 0}));
  EXPECT_TRUE(equal(grad(y.sum(), x), zeros({1, 2, 4})));
  EXPECT_THROW(interpolate(x, {.size = 0, .mode = "nearest"}), Error);  // as in PyTorch
  EXPECT_EQ(conv_transpose2d(ones({0, 2, 2, 2}), ones({2, 3, 2, 2})).shape(), (Shape{0, 3, 3, 3}));
  EXPECT_THROW(conv_transpose1d(ones({1, 2, 2}), ones({2, 3, 1}), {}, {.padding = 1}), Error);  // as in PyTorch
}

TEST(ReduceCorners, CorrelationOfOneVariable) {
  EXPECT_EQ(corrcoef(tensor<double>({1, 2, 4})).item<double>(), 1);
  EXPECT_EQ(corrcoef(tensor<double>({1, 2, 4})).dim(), 0);
  EXPECT_TRUE(isnan(corrcoef(ones({3}))).item<bool>());
}

TEST(ShapeCorners, ProductOfOneAndCopiesInTheirOrder) {
  const Tensor v = f64_range({3});
  EXPECT_TRUE(equal(cartesian_prod({v}), v));
  EXPECT_EQ(clone(f64_range({2, 3, 4}).permute({2, 0, 1})).strides(), (Shape{1, 12, 4}));
  EXPECT_EQ(clone(f64_range({2, 3}).expand({4, 2, 3})).strides(), (Shape{6, 3, 1}));
  EXPECT_EQ(f64_range({2, 3, 4}).permute({2, 0, 1}).to(f32).strides(), (Shape{1, 12, 4}));
}

TEST(ShapeCorners, BracesAreLists) {
  const Tensor x = f64_range({4});
  EXPECT_EQ(x.split({4}).size(), 1u);
  EXPECT_THROW((void)x.split({2}), Error);
  EXPECT_THROW((void)split(x, {2}), Error);
  EXPECT_EQ(x.split(2).size(), 2u);
  EXPECT_EQ(x.tensor_split({1}).size(), 2u);
  EXPECT_EQ(tensor_split(x, {1})[1].numel(), 3);
  EXPECT_EQ(x.tensor_split({1, 3})[1].numel(), 2);
  EXPECT_EQ(x.tensor_split(std::vector<int>{1, 3}).size(), 3u);
  EXPECT_EQ(x.tensor_split(1).size(), 1u);
}

TEST(ShapeCorners, ShufflesOfBatches) {
  const Tensor x = f64_range({2, 3, 8, 4, 6});
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) EXPECT_TRUE(equal(f(x)[i][j], f(x[i][j])));
  };
  each([](const Tensor& t) { return pixel_shuffle(t, 2); });
  each([](const Tensor& t) { return pixel_unshuffle(t, 2); });
}

TEST(SortCorners, IsinWithNumbers) {
  const Tensor x = tensor({1, 2, 3});
  EXPECT_EQ(isin(x, 2).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(isin(3, x).item<bool>());
  EXPECT_FALSE(isin(4, x).item<bool>());
  EXPECT_EQ(attempt([] { return isin(1, 2); }).error().kind(), Error::Kind::argument);
}

TEST(RandomFill, DroppedChannelsAreWhole) {
  manual_seed(1);
  const Tensor y = feature_alpha_dropout(zeros({8, 16, 5}), 0.5);
  EXPECT_TRUE(equal(y.amin(-1), y.amax(-1)));
  EXPECT_EQ(unique(y).values.numel(), 2);
  EXPECT_FALSE(equal(alpha_dropout(zeros({8, 16, 5}), 0.5).amin(-1), alpha_dropout(zeros({8, 16, 5}), 0.5).amax(-1)));
}

TEST(GradCorners, SoftplusAtItsThreshold) {
  const Tensor x = tensor<double>({1}).requires_grad_();
  EXPECT_NEAR(grad(softplus(x, 1, 1).sum(), x).item<double>(), 1 / (1 + std::exp(-1)), 1e-15);
}

TEST(ErrorsFurther, NameTheOpAndSayWhat) {
  const Tensor x = ones({2, 3});
  EXPECT_THROW(quantile(x, 1.5), Error);
  EXPECT_THROW(quantile(x, 0.5, 0, false, {.interpolation = "cubic"}), Error);
  EXPECT_THROW(quantile(zeros({0}), 0.5), Error);
  EXPECT_THROW(quantile(x.to(i64), 0.5), Error);
  EXPECT_THROW(vstack({}), Error);
  EXPECT_THROW(rot90(x, 1, {0, 0}), Error);
  EXPECT_THROW(combinations(x), Error);
  EXPECT_THROW(combinations(arange(100), 50), Error);
  EXPECT_THROW(cdist(x, ones({2, 4})), Error);
  EXPECT_THROW(cdist(x, x, -1), Error);
  EXPECT_THROW(baddbmm(x, x, x), Error);
  EXPECT_THROW(x.masked_scatter(x == 1, ones({2})), Error);
  EXPECT_THROW(x.index_copy(0, tensor({-1}), ones({1, 3})), Error);
  EXPECT_THROW(tensor_split(x, 0), Error);
  EXPECT_THROW(tensor_split(x, int64_t(1) << 40), Error);
  EXPECT_THROW(diag_embed(x, INT64_MAX), Error);
  EXPECT_THROW(unique(zeros({3, 0}), {.dim = 0}), Error);
  EXPECT_THROW(cov(ones({2, 2, 2})), Error);
}

TEST(Names, CovarianceWithWeightsAndAnyCorrection) {
  // torch.cov([1, 2, 4, 8], correction=3, aweights=[1, 2, 3, 1])
  const Tensor x = tensor({1.0, 2.0, 4.0, 8.0}, {.dtype = f64}), w = tensor({1.0, 2.0, 3.0, 1.0}, {.dtype = f64});
  const double total = 7, mean = (1 + 4 + 12 + 8) / total, divisor = total - (1 + 4 + 9 + 1) / total * 3;
  const double sum = (w * (x - mean).square()).sum().item<double>();
  EXPECT_NEAR(cov(x, {.correction = 3, .aweights = w}).item<double>(), sum / divisor, 1e-12);
}

TEST(Names, PiecesOfRowsColumnsAndDepth) {
  const Tensor x = f64_range({4, 6, 2});
  EXPECT_EQ(hsplit(x, 3)[1].shape(), (Shape{4, 2, 2}));
  EXPECT_EQ(x.hsplit({1, 3}).size(), 3u);
  EXPECT_TRUE(equal(vsplit(x, 2)[1], x.narrow(0, 2, 2)));
  EXPECT_TRUE(equal(dsplit(x, {1})[1], x.narrow(2, 1, 1)));
  EXPECT_TRUE(equal(hsplit(f64_range({6}), 2)[1], f64_range({6}).narrow(0, 3, 3)));
  EXPECT_TRUE(hsplit(x, 2)[0].shares_storage(x));
  expect_error(Error::Kind::argument, "hsplit", {"[4, 6, 2]", "4 equal"}, [&] { return hsplit(x, 4); });
  expect_error(Error::Kind::argument, "vsplit", {"0 equal"}, [&] { return vsplit(x, 0); });
  EXPECT_TRUE(broadcast_tensors({}).empty());
  EXPECT_EQ(broadcast_tensors({ones({3, 1}), ones({4}), ones({})})[2].shape(), (Shape{3, 4}));
}

TEST(Names, PartsPutIntoCopies) {
  Tensor x = f64_range({3, 4});
  const Tensor y = x.select_scatter(ones({4}, {.dtype = f64}) * 9, 0, -1);
  EXPECT_EQ(y[2].sum().item<double>(), 36);
  EXPECT_EQ(x[2][3].item<double>(), 11) << "the tensor itself stays";
  EXPECT_FALSE(y.shares_storage(x));
  // The source need not be of the dtype, nor the tensor dense.
  EXPECT_EQ(ones({1}, {.dtype = i32}).expand({3}).slice_scatter(tensor({2.9}), 0, 1, 2).to_vector<int>(),
            (std::vector<int>{1, 2, 1}));
  EXPECT_TRUE(equal(zeros({3, 3}).diagonal_scatter(ones({3})), eye(3)));
  x.requires_grad_();
  const Tensor row = ones({4}, {.dtype = f64}).requires_grad_();
  const Tensor z = x.select_scatter(row, 0, 1).square().sum();
  const auto g = grad({z}, {x, row});
  EXPECT_EQ(g[0][1].abs().sum().item<double>(), 0) << "what was replaced has no part in the result";
  EXPECT_TRUE(equal(g[0][2], x[2].detach() * 2));
  EXPECT_TRUE(equal(g[1], row.detach() * 2));
  expect_error(Error::Kind::shape, "slice_scatter", {"[3]", "[2, 4]"},
               [&] { return x.slice_scatter(ones({3}), 0, 1); });
  expect_error(Error::Kind::shape, "diagonal_scatter", {}, [&] { return x.diagonal_scatter(ones({1})); });
}

TEST(Names, TheMostFrequentValue) {
  const auto [v, i] = mode(tensor({{3, 1, 3, 1, 2}, {5, 4, 4, 5, 5}}), 1);
  EXPECT_EQ(v.to_vector<int64_t>(), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(i.to_vector<int64_t>(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(mode(tensor({true, false, true})).values.item<bool>(), true);
  EXPECT_EQ(mode(tensor({NAN, 2.0, NAN, NAN, 2.0})).values.item<double>(), 2) << "no NaN equals another";
  EXPECT_EQ(mode(tensor({0.0, -0.0, 1.0})).values.item<double>(), 0) << "zeros of both signs are one value";
  EXPECT_EQ(mode(tensor(7)).indices.item<int64_t>(), 0);
  EXPECT_EQ(mode(zeros({0, 3}), 1, true).values.shape(), (Shape{0, 1}));
  const Tensor x = tensor({1.0, 2.0, 2.0}).requires_grad_();
  EXPECT_EQ(grad(mode(x).values, x).to_vector<double>(), (std::vector<double>{0, 0, 1}));
}

TEST(Names, PlacesOfFlattenedTensors) {
  const Tensor x = f64_range({2, 3, 4});
  const auto places = unravel_index(argmax(x), x.shape());
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].item<int64_t>(), 1);
  EXPECT_EQ(places[2].item<int64_t>(), 3);
  EXPECT_EQ(unravel_index(tensor({5, 0}, {.dtype = u8}), {2, 3})[1].to_vector<int64_t>(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(unravel_index(zeros({0}, {.dtype = i64}), {0, 3})[0].numel(), 0);
  expect_error(Error::Kind::index, "unravel_index", {"-1"}, [] { return unravel_index(tensor({-1}), {2, 3}); });
  expect_error(Error::Kind::dtype, "unravel_index", {}, [] { return unravel_index(tensor({1.0}), {2, 3}); });
}

TEST(Names, SlicesHeldToANorm) {
  const Tensor x = tensor({{3.0, 4.0}, {0.3, 0.4}, {0.0, 0.0}});
  const Tensor y = renorm(x, 2, 0, 1);
  EXPECT_NEAR(y[0].norm().item<double>(), 1, 1e-6);
  EXPECT_TRUE(equal(y[1], x[1]) && equal(y[2], x[2])) << "shorter ones stay as they are";
  EXPECT_TRUE(
      gradcheck([](const Tensor& t) { return renorm(t, 2, 1, 0.5); }, (f64_range({3, 2}) + 0.1).requires_grad_()));
  expect_error(Error::Kind::argument, "renorm", {"p", "0"}, [&] { return renorm(x, 0, 0, 1); });
  expect_error(Error::Kind::argument, "renorm", {"maxnorm"}, [&] { return renorm(x, 2, 0, -1); });
  expect_error(Error::Kind::argument, "renorm", {"maxnorm"}, [&] { return renorm(x, 2, 0, NAN); });
  expect_error(Error::Kind::dtype, "renorm", {}, [&] { return renorm(x.to(i64), 2, 0, 1); });
}

TEST(Names, CountsInEqualBins) {
  const Tensor x = tensor({0.0, 0.5, 1.0, 1.5, 2.0, 9.0});
  EXPECT_EQ(histc(x, 2, 0, 2).to_vector<double>(), (std::vector<double>{2, 3}));
  EXPECT_EQ(histc(x, 3).to_vector<double>(), (std::vector<double>{5, 0, 1}));
  EXPECT_EQ(histc(full({4}, 3.0), 4).to_vector<double>(), (std::vector<double>{0, 0, 4, 0}));
  EXPECT_EQ(histc(zeros({0}), 3).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  expect_error(Error::Kind::argument, "histc", {"finite"}, [] { return histc(tensor({1.0, INFINITY})); });
  expect_error(Error::Kind::argument, "histc", {}, [&] { return histc(x, 3, 2, 1); });
  expect_error(Error::Kind::dtype, "histc", {}, [&] { return histc(x.to(i64)); });
}

TEST(Names, PowersInDoublesAndInfinities) {
  EXPECT_EQ(float_power(tensor({2, 3}), 0.5).dtype(), f64);
  EXPECT_EQ(float_power(2, tensor({3, -1})).to_vector<double>(), (std::vector<double>{8, 0.5}));
  expect_error(Error::Kind::argument, "float_power", {"tensor"}, [] { return float_power(2, 3); });
  const Tensor x = tensor({INFINITY, -INFINITY, NAN, 1.0});
  EXPECT_EQ(isposinf(x).to_vector<bool>(), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(isneginf(x.to(f16)).to_vector<bool>(), (std::vector<bool>{false, true, false, false}));
  EXPECT_FALSE(isposinf(tensor({1, 2})).any().item<bool>());
  EXPECT_TRUE(is_nonzero(tensor({{NAN}})));
  EXPECT_FALSE(zeros({}).is_nonzero());
  EXPECT_THROW((void)is_nonzero(ones({2})), Error);
  EXPECT_EQ(inner(tensor(3), tensor({1, 2})).to_vector<int64_t>(), (std::vector<int64_t>{3, 6}));
  EXPECT_THROW((void)inner(tensor(true), tensor(true)), Error);
}

TEST(Names, IndexReduceInPlace) {
  Tensor x = f64_range({3, 2});
  const Tensor i = tensor({0, 0}), v = tensor({{5.0, 1.0}, {7.0, -3.0}}, {.dtype = f64});
  EXPECT_EQ(x.index_reduce(0, i, v, "mean", false)[0].to_vector<double>(), (std::vector<double>{6, -1}));
  EXPECT_EQ(x.index_reduce(0, i, v, "amax")[0].to_vector<double>(), (std::vector<double>{7, 1}));
  x.index_reduce_(0, i, v, "prod");
  EXPECT_EQ(x[0].to_vector<double>(), (std::vector<double>{0, -3}));
  const Tensor none = zeros({0}, {.dtype = i64});
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
    EXPECT_TRUE(equal(x.index_reduce(0, none, v.narrow(0, 0, 0), how, false), x)) << how;
  EXPECT_EQ(zeros({0, 2}).index_reduce(0, none, zeros({0, 2}), "mean").shape(), (Shape{0, 2}));
  Tensor one = tensor(2.0);
  one.index_reduce_(0, tensor(0), tensor(5.0), "sum");
  EXPECT_EQ(one.item<double>(), 7);
  expect_error(Error::Kind::index, "index_reduce_", {"3"}, [&] {
    x.index_reduce_(0, tensor({3}), ones({1, 2}, {.dtype = f64}), "sum");
  });
  expect_error(Error::Kind::argument, "index_reduce", {"median", "prod"},
               [&] { return x.index_reduce(0, i, v, "median"); });
  expect_error(Error::Kind::dtype, "index_reduce", {}, [&] { return x.index_reduce(0, i, v.to(f32), "sum"); });
  expect_error(Error::Kind::shape, "index_reduce", {}, [&] { return x.index_reduce(0, i, v.narrow(0, 0, 1), "sum"); });
}

}  // namespace
}  // namespace volta::test

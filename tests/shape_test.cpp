// Joining, repeating, rolling, padding and triangles against naive references; comparisons of whole tensors.
#include <cmath>

#include "dense.h"

#include "why.h"

namespace volta::test {
namespace {

Tensor f64_of(const Shape& shape, uint64_t seed = 7) {
  manual_seed(seed);
  return randn(shape, {.dtype = f64, .requires_grad = true});
}

template <class F, class... X> void expect_gradients(const F& f, const X&... x) {
  EXPECT_TRUE(gradcheck(f, x...));
  EXPECT_TRUE(gradgradcheck(f, x...));
}

// The result whose element i is x at from(i), or `otherwise` where from gives a negative place.
template <class F> Dense rearranged(const Tensor& x, const Shape& shape, F from, double otherwise = 0) {
  const Dense in(x);
  Dense out(shape, otherwise);
  each_index(shape, [&](const Shape& i) {
    const Shape place = from(i);
    bool inside = true;
    for (int k = 0; k < place.size(); ++k) inside = inside && place[k] >= 0 && place[k] < x.size(k);
    if (inside) out.at(i) = in.at(place);
  });
  return out;
}

class ShapeDTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, ShapeDTypes, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST_P(ShapeDTypes, CatAndStack) {
  const Tensor a = numbers({2, 3}, GetParam()), b = numbers({2, 2}, GetParam()).flip({0});
  const Dense first(a), second(b);
  Dense joined({2, 5});
  each_index(joined.shape, [&](const Shape& i) {
    joined.at(i) = i[1] < 3 ? first.at(i) : second.at({i[0], i[1] - 3});
  });
  for (const Tensor& x : layouts(a))
    for (const Tensor& y : layouts(b)) expect_same(cat({x, y}, 1), joined);
  EXPECT_EQ(cat({a, b}, -1).dtype(), GetParam());
  for (int axis = -3; axis < 3; ++axis) {
    const Tensor s = stack({a, a.flip({0})}, axis);
    expect_same(s.select(axis, 0), first);
    expect_same(s.select(axis, 1), Dense(a.flip({0})));
  }
}

TEST_P(ShapeDTypes, RepeatRollPad) {
  const Tensor base = numbers({2, 3}, GetParam());
  for (const Tensor& x : layouts(base)) {
    const auto modulo = [](int64_t i, int64_t n) { return ((i % n) + n) % n; };
    expect_same(tile(x, {2, 3}), rearranged(base, {4, 9}, [](const Shape& i) { return Shape{i[0] % 2, i[1] % 3}; }));
    expect_same(tile(x, {2}), rearranged(base, {2, 6}, [](const Shape& i) { return Shape{i[0], i[1] % 3}; }));
    expect_same(repeat(x, {2, 1, 2}), rearranged(base, {2, 2, 6}, [](const Shape& i) {
                  return Shape{i[1], i[2] % 3};
                }));
    expect_same(repeat_interleave(x, 2, 1), rearranged(base, {2, 6}, [](const Shape& i) {
                  return Shape{i[0], i[1] / 2};
                }));
    expect_same(repeat_interleave(x, 3, 0), rearranged(base, {6, 3}, [](const Shape& i) {
                  return Shape{i[0] / 3, i[1]};
                }));
    expect_same(repeat_interleave(x, 2), rearranged(base, {12}, [](const Shape& i) {
                  return Shape{i[0] / 6, i[0] / 2 % 3};
                }));
    expect_same(roll(x, 1, 1), rearranged(base, {2, 3}, [&](const Shape& i) {
                  return Shape{i[0], modulo(i[1] - 1, 3)};
                }));
    expect_same(roll(x, {-4, 5}, {1, 0}), rearranged(base, {2, 3}, [&](const Shape& i) {
                  return Shape{modulo(i[0] - 5, 2), modulo(i[1] + 4, 3)};
                }));
    expect_same(roll(x, 2), rearranged(base, {2, 3}, [&](const Shape& i) {
                  const int64_t at = modulo(i[0] * 3 + i[1] - 2, 6);
                  return Shape{at / 3, at % 3};
                }));
    expect_same(pad(x, {1, 2, 0, 1}, {.value = 1}), rearranged(
                                                        base, {3, 6},
                                                        [](const Shape& i) {
                                                          return Shape{i[0], i[1] - 1};
                                                        },
                                                        1));
    expect_same(pad(x, {-1, 2, 1, -1}), rearranged(base, {2, 4}, [](const Shape& i) {
                  return Shape{i[0] == 0 ? -1 : i[0] - 1, i[1] + 1};
                }));
    expect_same(pad(x, {2, 1}, {.mode = "reflect"}), rearranged(base, {2, 6}, [](const Shape& i) {
                  return Shape{i[0], std::abs(2 - std::abs(2 - std::abs(i[1] - 2)))};
                }));
    expect_same(pad(x, {2, 3, 1, 1}, {.mode = "replicate"}), rearranged(base, {4, 8}, [](const Shape& i) {
                  return Shape{std::clamp<int64_t>(i[0] - 1, 0, 1), std::clamp<int64_t>(i[1] - 2, 0, 2)};
                }));
    expect_same(pad(x, {3, 2, 1, 0}, {.mode = "circular"}), rearranged(base, {3, 8}, [&](const Shape& i) {
                  return Shape{modulo(i[0] - 1, 2), modulo(i[1] - 3, 3)};
                }));
  }
}

TEST_P(ShapeDTypes, TrianglesAndDiagonals) {
  const Tensor base = numbers({2, 3, 4}, GetParam());
  for (const Tensor& x : layouts(base))
    for (const int64_t k : {-9, -2, -1, 0, 1, 3, 9}) {
      expect_same(tril(x, k), rearranged(base, base.shape(), [=](const Shape& i) {
                    return i[2] - i[1] <= k ? i : Shape{-1, 0, 0};
                  }));
      expect_same(triu(x, k), rearranged(base, base.shape(), [=](const Shape& i) {
                    return i[2] - i[1] >= k ? i : Shape{-1, 0, 0};
                  }));
      EXPECT_EQ(tril(x, k).dtype(), GetParam());
    }
  const Tensor v = numbers({3}, GetParam());
  for (const int64_t k : {-2, 0, 1}) {
    const int64_t n = 3 + std::abs(k);
    expect_same(diag(v, k), rearranged(v, {n, n}, [=](const Shape& i) {
                  return Shape{i[1] - i[0] == k ? std::min(i[0], i[1]) : -1};
                }));
    expect_same(diag(diag(v, k), k), Dense(v));
  }
}

TEST(ShapeMore, RepeatsOfEachElement) {
  const Tensor x = numbers({3, 2});
  expect_same(repeat_interleave(x, tensor({2, 0, 1}), 0), Dense(x.index_select(0, tensor({0, 0, 2}))));
  expect_same(repeat_interleave(x, tensor({2}).to(i32), 1), Dense(repeat_interleave(x, 2, 1)));
  expect_same(repeat_interleave(x, tensor({1, 0, 0, 0, 0, 3})), Dense(tensor<double>({0, 35, 35, 35})));
  EXPECT_EQ(repeat_interleave(zeros({0, 2}), zeros({0}, {.dtype = i64}), 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(repeat_interleave(x, tensor({0, 0, 0}), 0).shape(), (Shape{0, 2}));
}

TEST(ShapeMore, EmptyScalarAndLargeRanks) {
  EXPECT_EQ(cat({zeros({0, 2}), ones({1, 2})}).shape(), (Shape{1, 2}));
  EXPECT_EQ(stack({tensor(1.0), tensor(2.0)}).shape(), (Shape{2}));
  EXPECT_EQ(tile(tensor(2.0), {3}).shape(), (Shape{3}));
  EXPECT_EQ(tile(ones({2}), {0}).shape(), (Shape{0}));
  EXPECT_EQ(roll(zeros({0, 3}), 1, 0).shape(), (Shape{0, 3}));
  EXPECT_EQ(roll(tensor(1.0), 5).item<double>(), 1);
  EXPECT_EQ(pad(zeros({0}), {1, 1}, {.value = 3}).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(pad(ones({2, 3}), {}).shape(), (Shape{2, 3}));
  EXPECT_EQ(repeat_interleave(tensor(4.0), 3).shape(), (Shape{3}));
  const Tensor big = numbers({1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  EXPECT_TRUE(
      equal(tile(big, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}), cat({cat({big, big}, 0), cat({big, big}, 0)}, 11)));
  EXPECT_TRUE(equal(repeat_interleave(big, 2, 11).slice(11, 0, {}, 2), big));
  const Tensor x = ones({2});
  for (const Tensor& y : {tile(x, {1}), repeat(x, {1}), roll(x, 0, 0), pad(x, {0, 0}),
                          pad(x, {0, 0}, {.mode = "reflect"}), repeat_interleave(x, 1, 0), repeat_interleave(x, 1)})
    EXPECT_FALSE(y.shares_storage(x));
}

TEST(ShapeMore, CatPromotes) {
  const Tensor y = cat({tensor({1, 2}), tensor({0.5})});
  EXPECT_EQ(y.dtype(), f32);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 0.5}));
  Tensor a = ones({2}, {.dtype = f32, .requires_grad = true}), b = ones({1}, {.dtype = f64, .requires_grad = true});
  const auto g = grad(cat({a, b}).sum(), std::vector{a, b});
  EXPECT_EQ(g[0].dtype(), f32);
  EXPECT_EQ(g[1].dtype(), f64);
}

TEST(ShapeMore, CatLeavesOutEmptyVectors) {
  const Tensor none = zeros({0}, {.dtype = f64, .requires_grad = true}), x = ones({2, 3}, {.requires_grad = true});
  for (const int64_t axis : {0, 1, -1}) {
    const Tensor y = cat({none, x, none}, axis);
    EXPECT_EQ(y.shape(), (Shape{2, 3}));
    EXPECT_EQ(y.dtype(), f64);
    const auto g = grad(y.sum(), std::vector{none, x});
    EXPECT_EQ(g[0].shape(), Shape{0});
    EXPECT_TRUE(equal(g[1], ones({2, 3})));
  }
  EXPECT_EQ(cat({zeros({0}), zeros({0})}).shape(), Shape{0});
  EXPECT_EQ(cat({zeros({0}), ones({2})}).shape(), Shape{2});
  EXPECT_THROW((void)cat({zeros({0, 2}), x}, 0), Error);
}

TEST(ShapeMore, AsTheListOfDifferencesSays) {
  EXPECT_EQ(pow(tensor({2, 1, -1, -1}), tensor({-1, -1, -1, -2})).to_vector<int>(), (std::vector<int>{0, 1, -1, 1}));
  EXPECT_EQ(pow(tensor({2, 1, -1}), -1).to_vector<int>(), (std::vector<int>{0, 1, -1}));
  const Tensor x = tensor({{0, 1}, {2, 3}});
  EXPECT_TRUE(any(x, std::vector<int64_t>{}).item<bool>());
  EXPECT_FALSE(all(x, std::vector<int64_t>{}).item<bool>());
  EXPECT_EQ(sum(x, std::vector<int64_t>{}).item<int>(), 6);
}

TEST(ShapeMore, IndexSelectOfAScalar) {
  EXPECT_EQ(index_select(tensor(3.f), 0, tensor({0})).shape(), Shape{});
  EXPECT_THROW((void)index_select(tensor(3.f), 0, tensor({0, 0})), Error);
}

TEST(ErrorsShape, Arguments) {
  const Tensor x = ones({2, 3});
  expect_error(Error::Kind::argument, "cat", {"at least one"}, [] { return cat({}); });
  expect_error(Error::Kind::shape, "cat", {"[2, 3]", "[3, 2]"}, [&] { return cat({x, ones({3, 2})}); });
  expect_error(Error::Kind::shape, "cat", {"[2, 3]", "[2]"}, [&] { return cat({x, ones({2})}); });
  expect_error(Error::Kind::shape, "cat", {"0-d"}, [&] { return cat({tensor(1.0)}); });
  expect_error(Error::Kind::shape, "stack", {"[2, 3]", "[2, 4]"}, [&] { return stack({x, ones({2, 4})}); });
  expect_error(Error::Kind::argument, "roll", {"[1]", "[0, 1]"}, [&] { return roll(x, 1, {0, 1}); });
  expect_error(Error::Kind::index, "roll", {"2"}, [&] { return roll(x, 1, 2); });
  expect_error(Error::Kind::argument, "repeat", {"[2]", "[2, 3]"}, [&] { return repeat(x, {2}); });
  expect_error(Error::Kind::argument, "tile", {"negative"}, [&] { return tile(x, {-1, 1}); });
  expect_error(Error::Kind::argument, "repeat_interleave", {"negative"}, [&] {
    return repeat_interleave(x, tensor({1, -1}), 0);
  });
  expect_error(Error::Kind::shape, "repeat_interleave", {"[3]", "2"}, [&] {
    return repeat_interleave(x, tensor({1, 1, 1}), 0);
  });
  expect_error(Error::Kind::argument, "pad", {"3 numbers"}, [&] { return pad(x, {1, 1, 1}); });
  expect_error(Error::Kind::argument, "pad", {"axis 1", "-2"}, [&] { return pad(x, {-2, -2}); });
  expect_error(Error::Kind::argument, "pad", {"reflect", "3"}, [&] { return pad(x, {3, 0}, {.mode = "reflect"}); });
  expect_error(Error::Kind::argument, "pad", {"circular", "4"}, [&] { return pad(x, {0, 4}, {.mode = "circular"}); });
  expect_error(Error::Kind::argument, "pad", {"replicate", "mirror"}, [&] {
    return pad(x, {1, 1}, {.mode = "mirror"});
  });
  expect_error(Error::Kind::dtype, "pad", {"0.5"}, [&] { return pad(x.to(i32), {1, 1}, {.value = 0.5}); });
  expect_error(Error::Kind::shape, "tril", {"[3]"}, [&] { return tril(ones({3})); });
  expect_error(Error::Kind::shape, "diag", {"[1, 1, 1]"}, [&] { return diag(ones({1, 1, 1})); });
}

TEST(GradcheckShape, Everything) {
  const Tensor x = f64_of({2, 3}), y = f64_of({2, 3}, 8);
  expect_gradients([](const Tensor& a, const Tensor& b) { return cat({a, b, a}, 1); }, x, y);
  expect_gradients([](const Tensor& a, const Tensor& b) { return stack({a, b}, -1); }, x, y);
  expect_gradients([](const Tensor& a) { return roll(a, {1, -1}, {0, 1}); }, x);
  expect_gradients([](const Tensor& a) { return tile(a, {2, 2, 2}); }, x);
  expect_gradients([](const Tensor& a) { return repeat_interleave(a, 2, 0); }, x);
  expect_gradients([](const Tensor& a) { return repeat_interleave(a, tensor({2, 0, 1}), 1); }, x);
  expect_gradients([](const Tensor& a) { return pad(a, {1, -1, 0, 2}, {.value = 3}); }, x);
  for (const char* mode : {"reflect", "replicate", "circular"})
    expect_gradients([=](const Tensor& a) { return pad(a, {2, 1, 1, 1}, {.mode = mode}); }, x);
  expect_gradients([](const Tensor& a) { return tril(a, -1) + triu(a, 1); }, x);
  expect_gradients([](const Tensor& a) { return diag(a, 1); }, x);
  expect_gradients([](const Tensor& a) { return diag(a, -1); }, f64_of({3}));
  expect_gradients([](const Tensor& a, const Tensor& b, const Tensor& c) { return addcmul(a, b, c, 0.5); }, x, y,
                   f64_of({3}, 9));
  expect_gradients([](const Tensor& a, const Tensor& b, const Tensor& c) { return addcdiv(a, b, c, 0.5); }, x, y,
                   f64_of({3}, 9));
  expect_gradients([](const Tensor& a) { return nan_to_num(a / 2); }, x);
}

TEST(ShapeCompare, Equal) {
  EXPECT_TRUE(equal(tensor({1, 2}), tensor({1., 2.})));
  EXPECT_FALSE(equal(tensor({1, 2}), tensor({{1, 2}})));
  EXPECT_FALSE(equal(tensor({NAN}), tensor({NAN})));
  EXPECT_TRUE(equal(tensor({0.0}), tensor({-0.0})));
  EXPECT_TRUE(equal(zeros({0}), zeros({0})));
  EXPECT_FALSE(equal(tensor({9007199254740993}), tensor({9007199254740992})));
  EXPECT_FALSE(equal(tensor({16777217}), tensor({16777216}).to(u64)));
  EXPECT_TRUE(equal(tensor({16777217}), tensor({16777217}).to(u64)));
  EXPECT_FALSE(equal(full({1}, UINT64_MAX, {.dtype = u64}), tensor({-1})));
  const Tensor x = numbers({3, 4});
  for (const Tensor& a : layouts(x))
    for (const Tensor& b : layouts(x)) EXPECT_TRUE(equal(a, b));
  expect_error(Error::Kind::argument, "equal", {"undefined"}, [&] { return equal(x, Tensor()); });
}

TEST(ShapeCompare, Close) {
  const double inf = INFINITY;
  EXPECT_EQ(isclose(tensor({1., inf, inf, NAN, 1.}), tensor({1 + 1e-6, inf, -inf, NAN, inf})).to_vector<bool>(),
            (std::vector<bool>{true, true, false, false, false}));
  EXPECT_TRUE(isclose(tensor({NAN}), tensor({NAN}), {.equal_nan = true}).item<bool>());
  EXPECT_FALSE(allclose(tensor({1.}), tensor({1.1})));
  EXPECT_TRUE(allclose(tensor({1.}), tensor({1.1}), {.rtol = 0.2}));
  EXPECT_TRUE(allclose(tensor({100}).to(u8), tensor({101}).to(u8), {.rtol = 0, .atol = 1}));
  EXPECT_TRUE(allclose(tensor({9007199254740993}), tensor({9007199254740993}), {.rtol = 0, .atol = 0}));
  EXPECT_TRUE(allclose(ones({2}, {.dtype = boolean}), ones({2}, {.dtype = boolean})));
  expect_error(Error::Kind::shape, "allclose", {"[1]", "[2]"}, [] { return allclose(ones({1}), ones({2})); });
  EXPECT_EQ(isclose(ones({2, 1}), ones({3})).shape(), (Shape{2, 3}));
}

TEST(ShapeCompare, CloseIntegersAreComparedExactly) {
  const int64_t large = int64_t(1) << 60, most = std::numeric_limits<int64_t>::max();
  const Tensor x = tensor({large, large, most, -most - 1}), y = tensor({large + 1, large, -most - 1, -most});
  EXPECT_EQ(isclose(x, y, {.rtol = 0, .atol = 0}).to_vector<bool>(), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(isclose(x, y, {.rtol = 0, .atol = 1}).to_vector<bool>(), (std::vector<bool>{true, true, false, true}));
  EXPECT_FALSE(allclose(x, y, {.rtol = 0, .atol = 0}));
  const Tensor u = tensor({uint64_t(1) << 63, uint64_t(5)}, {.dtype = u64});
  EXPECT_EQ(isclose(u, u + 1, {.rtol = 0, .atol = 0.5}).to_vector<bool>(), (std::vector<bool>{false, false}));
  EXPECT_EQ(isclose(u, tensor({most, int64_t(-1)}), {.rtol = 0, .atol = 1}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_TRUE(isclose(tensor({true}), tensor({1})).item<bool>());
}

TEST(ShapeCompare, Composed) {
  EXPECT_EQ(addcmul(tensor({1, 2}), tensor({3}), tensor({4, 5}), 2).to_vector<int64_t>(),
            (std::vector<int64_t>{25, 32}));
  expect_error(Error::Kind::dtype, "addcmul", {"0.5"},
               [] { return addcmul(tensor({1}), tensor({3}), tensor({4}), 0.5); });
  EXPECT_EQ(addcdiv(tensor({1.}), tensor({3.}), tensor({4.}), 2).item<float>(), 2.5f);
  for (const DType dtype : {f16, bf16, f32, f64}) {
    const Tensor y = nan_to_num(tensor({1., NAN, INFINITY, -INFINITY}).to(dtype), 7);
    EXPECT_TRUE(isfinite(y).all().item<bool>());
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y[1].item<double>(), 7);
    EXPECT_EQ(y[2].item<double>(), -y[3].item<double>());
    EXPECT_TRUE(isinf(y[2] * 1.01).item<bool>());
  }
  EXPECT_EQ(nan_to_num(tensor({INFINITY, -INFINITY}), 0, 5, -6).to_vector<float>(), (std::vector<float>{5, -6}));
  EXPECT_EQ(nan_to_num(tensor({3})).item<int>(), 3);
}

TEST(ShapeMore, FlipOfNoAxis) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_TRUE(equal(x.flip(std::vector<int64_t>{}), x));
  EXPECT_TRUE(equal(x.flip({0, 1}), tensor({{5, 4, 3}, {2, 1, 0}})));
}

TEST(ShapePad, WhatIsLeftAfterCuttingGoesRound) {
  const auto round = [](int64_t before, int64_t after) {
    return pad(arange(7), {before, after}, {.mode = "circular"}).to_vector<int64_t>();
  };
  EXPECT_EQ(round(-1, 2), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 1, 2}));
  EXPECT_EQ(round(2, -1), (std::vector<int64_t>{4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(round(-5, 2), (std::vector<int64_t>{5, 6, 5, 6}));
  EXPECT_EQ(round(-2, -1), (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_FALSE(attempt([&] { return round(-5, 3); }));
  EXPECT_EQ(pad(arange(7), {-5, 3}, {.mode = "reflect"}).to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 5, 4, 3}));
}

TEST(Shape, FillTakesATensorOfOneElement) {
  Tensor x = zeros({2, 3});
  x.fill_(tensor(3.0));
  EXPECT_TRUE(equal(x, full({2, 3}, 3.0)));
  x.fill_(tensor({{4}}));
  EXPECT_TRUE(equal(x, full({2, 3}, 4.0)));
  EXPECT_TRUE(says([&] { x.fill_(tensor({1.0, 2.0})); }, "fill_"));
  EXPECT_TRUE(says([&] { x.fill_(zeros({0})); }, "fill_"));
  EXPECT_TRUE(equal(x, full({2, 3}, 4.0)));
  const Tensor value = tensor(2.0).requires_grad_();
  Tensor y = ones({5});
  y.fill_(value);
  EXPECT_EQ(grad(y.sum(), value).item<double>(), 5);
}

TEST(Shape, BlocksAreMatrices) {
  EXPECT_TRUE(says([] { (void)block_diag({ones({2, 2}), ones({2, 2, 2})}); }, "block_diag: needs matrices"));
  EXPECT_TRUE(says([] { (void)block_diag({}); }, "block_diag: needs at least one"));
  EXPECT_EQ(block_diag({tensor(1.0), ones({3}), ones({2, 2})}).shape(), Shape({4, 6}));
  EXPECT_TRUE(says([] { (void)glu(tensor(1.0), 0); }, "glu"));
}

// Positions beyond 2^24 are reckoned in f64 whatever the dtype.
TEST(Shape, QuantilesOfManyElements) {
  const int64_t n = (int64_t(1) << 24) + 3;
  const Tensor x = zeros({n});
  x.slice(0, 12582914, {}).fill_(1);
  EXPECT_EQ(quantile(x, 0.75).item<double>(), 0.5);  // the place 12582913.5, which f32 does not have
}

}  // namespace
}  // namespace volta::test

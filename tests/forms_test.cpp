// Other ways to call an op, as programs written for PyTorch have them; expected values are PyTorch's.
#include <gtest/gtest.h>

#include <volta/volta.h>

namespace volta::test {
namespace {

using Doubles = std::vector<double>;

Doubles values(const Tensor& x) { return x.to(f64).contiguous().to_vector<double>(); }

TEST(FormsCreate, RangesWithOptions) {
  EXPECT_EQ(arange(3, {.dtype = f16}).dtype(), f16);
  EXPECT_EQ(values(arange(1, 4, {.dtype = f64})), (Doubles{1, 2, 3}));
  EXPECT_EQ(arange(1, 4, {.dtype = f64}).dtype(), f64);
  EXPECT_TRUE(arange(2.0, {.requires_grad = true}).requires_grad());
  EXPECT_EQ(arange(4).dtype(), i64);
}

TEST(FormsCreate, IntegersBelowABound) {
  Generator one(3), two(3);
  const Tensor x = randint(10, {50}, {.generator = &one});
  EXPECT_TRUE(equal(x, randint(0, 10, {50}, {.generator = &two})));
  EXPECT_EQ(x.dtype(), i64);
  const Tensor like = randint_like(zeros({2, 30}), 5), from = randint_like(like, 3, 5, {.dtype = i32});
  EXPECT_EQ(like.dtype(), f32);
  EXPECT_EQ(like.shape(), (Shape{2, 30}));
  EXPECT_TRUE((like >= 0).logical_and(like < 5).logical_and(like == like.floor()).all().item<bool>());
  EXPECT_EQ(from.dtype(), i32);
  EXPECT_EQ(from.amin().item<int>(), 3);
  EXPECT_EQ(from.amax().item<int>(), 4);
  const auto none = attempt([] { return randint_like(zeros({2}), 3, 3); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().op(), "randint_like");
}

TEST(FormsCreate, SamplesAsMethods) {
  Generator one(3), two(3);
  const Tensor p = tensor({0.0, 1.0, 0.5});
  EXPECT_TRUE(equal(p.bernoulli(&one), bernoulli(p, &two)));
  EXPECT_TRUE(equal(p.multinomial(2, true, &one), multinomial(p, 2, true, &two)));
  EXPECT_EQ(p.multinomial(2).numel(), 2);
}

TEST(FormsPointwise, MaxAndMinOfTwo) {
  const Tensor x = tensor({1.0, 5.0, 3.0}).requires_grad_(), y = tensor({{2.0}, {4.0}});
  EXPECT_EQ(values(max(x, y)), (Doubles{2, 5, 3, 4, 5, 4}));
  EXPECT_EQ(values(x.min(y)), (Doubles{1, 2, 2, 1, 4, 3}));
  EXPECT_EQ(values(grad(max(x, y).sum(), x)), (Doubles{0, 2, 1}));
  const auto wrong = attempt([&] { return max(x, zeros({2})); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().op(), "max");
}

TEST(FormsPointwise, AddAndSubScaled) {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_(), y = tensor({10.0, 20.0}).requires_grad_();
  EXPECT_EQ(values(add(x, y, 0.5)), (Doubles{6, 12}));
  EXPECT_EQ(values(x.sub(y, 2)), (Doubles{-19, -38}));
  EXPECT_EQ(values(x.add(3, 2)), (Doubles{7, 8}));
  EXPECT_EQ(values(grad(sub(x, y, 0.5).sum(), y)), (Doubles{-0.5, -0.5}));
  Tensor z = tensor({1.0, 2.0}) * x;
  EXPECT_EQ(values(z.add_(y, -0.125).sub_(y, 0.125)), (Doubles{-1.5, -1}));
  EXPECT_EQ(values(grad(z.sum(), x)), (Doubles{1, 2}));
  EXPECT_NEAR(grad((tensor({1.0, 2.0}) * x).add_(y, 0.25).sum(), y)[0].item<double>(), 0.25, 1e-6);

  const Tensor i = tensor<int32_t>({5, 7}), u = tensor<uint8_t>({5, 7}), b = tensor({true, false});
  EXPECT_EQ(values(i.sub(i, 3)), (Doubles{-10, -14}));
  EXPECT_EQ(i.sub(4, 3).dtype(), i32);
  EXPECT_EQ(values(i.sub(4, 3)), (Doubles{-7, -5}));
  EXPECT_EQ(values(u.sub(tensor<uint8_t>({1, 2}), 2)), (Doubles{3, 3}));
  EXPECT_EQ(values(tensor<int32_t>({5, 7}).sub_(4, 3)), (Doubles{-7, -5}));
  EXPECT_EQ(values(i.add(tensor({0.5f, 1.5f}), 2)), (Doubles{6, 10}));
  EXPECT_EQ(b.add(b, true).dtype(), boolean);
  for (const auto& call :
       {+[](const Tensor& n) { return n.add(n, 0.5); }, +[](const Tensor& n) { return n.sub(n, 0.5); }}) {
    const auto half = attempt([&] { return call(i); });
    ASSERT_FALSE(half);
    EXPECT_EQ(half.error().kind(), Error::Kind::dtype);
  }
  const auto wider = attempt([] { return tensor<int32_t>({1}).add_(tensor({0.5}), 2); });
  ASSERT_FALSE(wider);
  EXPECT_EQ(wider.error().op(), "add_");
}

TEST(FormsPointwise, ClampByOneBound) {
  const Tensor x = tensor({-2.0, 0.5, 3.0}).requires_grad_(), low = tensor({0.0, 1.0, 0.0});
  EXPECT_EQ(values(x.clamp(0)), (Doubles{0, 0.5, 3}));
  EXPECT_EQ(values(x.clamp({.min = low})), (Doubles{0, 1, 3}));
  EXPECT_EQ(values(clamp(x, {.max = 1})), (Doubles{-2, 0.5, 1}));
  EXPECT_EQ(values(clip(x, {.min = 0, .max = 1})), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(values(x.clip(1)), (Doubles{1, 1, 3}));
  EXPECT_EQ(values(grad(clamp(x, {.max = 1}).sum(), x)), (Doubles{1, 1, 0}));
  Tensor y = tensor({-2.0, 0.5, 3.0});
  EXPECT_EQ(values(y.clamp_({.max = 1})), (Doubles{-2, 0.5, 1}));
  EXPECT_EQ(values(y.clip_(-1)), (Doubles{-1, 0.5, 1}));
  const auto none = attempt([&] { return x.clamp(Bounds{}); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), Error::Kind::argument);
}

TEST(FormsPointwise, ProductsAndQuotientsInPlace) {
  const Tensor a = tensor({1.0, 2.0, 3.0}), b = tensor({2.0, 4.0, 8.0});
  Tensor x = tensor({1.0, 1.0, 1.0});
  EXPECT_EQ(values(x.addcmul_(a, b, 0.5)), (Doubles{2, 5, 13}));
  EXPECT_EQ(values(x.addcdiv_(a, b, -2)), (Doubles{1, 4, 12.25}));
  const Tensor w = tensor({1.0, 1.0, 1.0}).requires_grad_();
  EXPECT_EQ(values(grad((w * 1).addcmul_(w, b).sum(), w)), (Doubles{3, 5, 9}));
  const auto grown = attempt([&] { return tensor({1.0}).addcmul_(a, b); });
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().op(), "addcmul_");
  EXPECT_FALSE(attempt([&] { return tensor<int32_t>({1, 1, 1}).addcdiv_(a, b); }));
}

TEST(FormsIndex, WhereOfACondition) {
  const auto places = where(tensor({{1.0, 0.0}, {2.0, 3.0}}));
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(values(places[0]), (Doubles{0, 1, 1}));
  EXPECT_EQ(values(places[1]), (Doubles{0, 0, 1}));
  ASSERT_EQ(where(tensor(true)).size(), 1u);
  EXPECT_EQ(values(where(tensor(true))[0]), (Doubles{0}));
  EXPECT_EQ(where(zeros({0, 3}))[1].shape(), (Shape{0}));
}

TEST(FormsMove, DeviceAndDtype) {
  const Tensor x = tensor({1.5, 2.5}).requires_grad_();
  EXPECT_EQ(x.to("cpu", f16).dtype(), f16);
  EXPECT_TRUE(x.cpu().shares_storage(x));
  EXPECT_EQ(values(grad(x.to("cpu", f64).sum(), x)), (Doubles{1, 1}));
  EXPECT_TRUE(x.is_floating_point());
  EXPECT_FALSE(arange(3).is_floating_point());
  if (cuda::is_available()) {
    EXPECT_TRUE(x.cuda().device().is_cuda());
  } else {
    EXPECT_FALSE(attempt([&] { return x.cuda(); }));
  }
}

TEST(FormsReduce, Distance) {
  EXPECT_NEAR(dist(tensor({1.0, 2.0}), tensor({4.0, 6.0})).item<double>(), 5, 1e-6);
  EXPECT_NEAR(tensor({1.0, 2.0}).dist(tensor(0.0), 1).item<double>(), 3, 1e-6);
  const auto wrong = attempt([] { return dist(zeros({2}), zeros({3})); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().op(), "dist");
}

TEST(FormsShape, TrianglesInPlace) {
  for (const DType dtype : {f32, i32, boolean}) {
    const Tensor x = ones({3, 4}).to(dtype);
    for (const int64_t k : {-1, 0, 2}) {
      EXPECT_TRUE(equal(x.clone().tril_(k), tril(x, k)));
      EXPECT_TRUE(equal(x.clone().triu_(k), triu(x, k)));
    }
  }
  const Tensor w = ones({2, 2}).requires_grad_();
  EXPECT_EQ(values(grad((w * 3).tril_().sum(), w)), (Doubles{3, 0, 3, 3}));
  EXPECT_FALSE(attempt([] { return zeros({3}).tril_(); }));
}

TEST(FormsShape, FillDiagonal) {
  EXPECT_EQ(values(zeros({3, 2}).fill_diagonal_(5)), (Doubles{5, 0, 0, 5, 0, 0}));
  EXPECT_EQ(values(zeros({5, 2}).fill_diagonal_(5, true)), (Doubles{5, 0, 0, 5, 0, 0, 5, 0, 0, 5}));
  EXPECT_EQ(values(zeros({2, 3}).fill_diagonal_(5, true)), (Doubles{5, 0, 0, 0, 5, 0}));
  EXPECT_EQ(values(zeros({2, 2, 2}).fill_diagonal_(1)), (Doubles{1, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(zeros({4, 0}).fill_diagonal_(1, true).numel(), 0);
  const Tensor w = ones({2, 2}).requires_grad_();
  EXPECT_EQ(values(grad((w * 3).fill_diagonal_(0).sum(), w)), (Doubles{0, 3, 3, 0}));
  for (const Shape& shape : {Shape{3}, Shape{2, 2, 3}})
    EXPECT_FALSE(attempt([&] { return zeros(shape).fill_diagonal_(1); }));
  EXPECT_FALSE(attempt([] { return zeros({2, 2}, {.dtype = i32}).fill_diagonal_(0.5); }));
}

TEST(FormsAutograd, DetachInPlace) {
  const Tensor w = ones({2}).requires_grad_();
  Tensor y = w * 2;
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  EXPECT_EQ(values(grad((y * w).sum(), w)), (Doubles{2, 2}));
  Tensor leaf = ones({2}).requires_grad_();
  EXPECT_FALSE(leaf.detach_().requires_grad());
  Tensor view = (w * 2)[0];
  const auto refused = attempt([&] { return view.detach_(); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Error::Kind::autograd);
}

TEST(FormsIteration, RowsAreViews) {
  Tensor x = zeros({3, 2});
  int64_t n = 0;
  for (Tensor row : x) row += double(n++);
  EXPECT_EQ(values(x), (Doubles{0, 0, 1, 1, 2, 2}));
  const std::vector<Tensor> rows(x.begin(), x.end());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(values(rows[2]), (Doubles{2, 2}));
  for (const Tensor& element : x * 2 + 1) n += element.dim();
  EXPECT_EQ(n, 6);
  for (const Tensor& row : zeros({0, 2})) ADD_FAILURE() << row;
  EXPECT_FALSE(attempt([] {
    for (const Tensor& row : tensor(1.0)) (void)row;
  }));
  const Tensor w = ones({3, 2}).requires_grad_();
  Tensor sum = zeros({2});
  for (const Tensor& row : w) sum = sum * 2 + row;
  EXPECT_EQ(values(grad(sum.sum(), w)), (Doubles{4, 4, 2, 2, 1, 1}));
}

TEST(FormsLayers, PoolingByStride) {
  const Tensor x = arange(36, {.dtype = f32}).reshape({1, 1, 6, 6});
  EXPECT_TRUE(equal(nn::MaxPool2d(3, 2, 1)(x), max_pool2d(x, 3, {.stride = 2, .padding = 1})));
  EXPECT_TRUE(equal(nn::AvgPool2d(3, 1)(x), avg_pool2d(x, 3, {.stride = 1})));
  EXPECT_TRUE(equal(nn::LPPool2d(2, 3, 1)(x), lp_pool2d(x, 2, 3, {.stride = 1})));
  EXPECT_TRUE(equal(nn::MaxPool2d(2, {.padding = 1})(x), max_pool2d(x, 2, {.padding = 1})));
  const auto [y, i] = nn::MaxPool2d(2, 2).with_indices(x);
  EXPECT_EQ(nn::MaxUnpool2d(2, 2)(y, i).shape(), x.shape());
}

TEST(FormsLayers, InPlaceIsAccepted) {
  const Tensor x = tensor({-1.0, 2.0});
  EXPECT_EQ(values(nn::ReLU(true)(x)), (Doubles{0, 2}));
  EXPECT_EQ(values(nn::LeakyReLU(0.5, true)(x)), (Doubles{-0.5, 2}));
  EXPECT_EQ(values(nn::Hardtanh(-0.5, 1, true)(x)), (Doubles{-0.5, 1}));
  EXPECT_EQ(nn::Dropout(0.25, true).p, 0.25);
  EXPECT_EQ(values(x), (Doubles{-1, 2}));
}

TEST(FormsLayers, SequentialPushBack) {
  nn::Sequential net;
  net.push_back(nn::Linear(2, 3));
  net.push_back("act", nn::ReLU());
  EXPECT_EQ(net.names(), (std::vector<std::string>{"0", "act"}));
  EXPECT_EQ(net(zeros({1, 2})).shape(), (Shape{1, 3}));
}

}  // namespace
}  // namespace volta::test

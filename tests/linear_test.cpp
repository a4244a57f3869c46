// Matrix products against a naive f64 reference: all ranks, layouts and dtypes, gradients, errors.
#include <gtest/gtest.h>

#include <cmath>

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

Tensor sample(const Shape& shape, DType dtype = f64) {
  if (is_floating(dtype)) return randn(shape, {.dtype = f64}).to(dtype);
  return randint(0, 5, shape).to(dtype);
}

// Sums of products in f64, vectors as one row or one column, batches by broadcasting elementwise.
Tensor naive(const Tensor& x, const Tensor& y) {
  const Tensor a = x.dim() == 1 ? x.unsqueeze(0) : x, b = y.dim() == 1 ? y.unsqueeze(1) : y;
  Tensor c = (a.to(f64).unsqueeze(-1) * b.to(f64).unsqueeze(-3)).sum(-2);
  if (y.dim() == 1) c = c.squeeze(-1);
  if (x.dim() == 1) c = c.squeeze(y.dim() == 1 ? -1 : -2);
  return c;
}

struct Ranks {
  Shape a, b;
};

const std::vector<Ranks>& ranks() {
  static const std::vector<Ranks> list = {{{3}, {3}},
                                          {{3}, {3, 4}},
                                          {{2, 3}, {3}},
                                          {{2, 3}, {3, 4}},
                                          {{5, 2, 3}, {3}},
                                          {{3}, {5, 3, 4}},
                                          {{5, 2, 3}, {3, 4}},
                                          {{2, 3}, {5, 3, 4}},
                                          {{5, 2, 3}, {5, 3, 4}},
                                          {{5, 1, 2, 3}, {4, 3, 6}},
                                          {{1, 2, 3}, {5, 3, 4}},
                                          {{5, 2, 3}, {1, 3, 4}},
                                          {{2, 1, 3, 2, 3}, {4, 1, 3, 5}},
                                          {{1}, {1}},
                                          {{1, 1}, {1, 1}},
                                          {{2, 0}, {0, 3}},
                                          {{0}, {0}},
                                          {{0, 3}, {3, 2}},
                                          {{2, 3}, {3, 0}},
                                          {{0, 2, 3}, {3, 4}},
                                          {{4, 2, 0}, {0, 3}},
                                          {{0, 2, 3}, {1, 3, 4}}};
  return list;
}

// The same values in awkward memory: transposed, reversed, with gaps.
std::vector<Tensor> layouts(const Tensor& x) {
  std::vector<Tensor> list{x};
  if (x.dim() >= 2) list.push_back(x.mT().contiguous().mT());
  list.push_back(stack({x, x}, -1).select(-1, 1));
  list.push_back(x.flip({-1}).contiguous()[{ellipsis, slice({}, {}, -1)}]);
  return list;
}

TEST(LinearMatmul, AllRanks) {
  manual_seed(1);
  for (const auto& [sa, sb] : ranks()) {
    const Tensor a = sample(sa), b = sample(sb), c = matmul(a, b), want = naive(a, b);
    EXPECT_EQ(c.shape(), want.shape()) << sa << sb;
    EXPECT_TRUE(allclose(c, want, {.rtol = 1e-12, .atol = 1e-12})) << sa << " x " << sb;
  }
}

TEST(LinearMatmul, AllLayouts) {
  manual_seed(2);
  for (const auto& [sa, sb] : ranks()) {
    const Tensor a = sample(sa, f32), b = sample(sb, f32), want = naive(a, b).to(f32);
    for (const Tensor& x : layouts(a))
      for (const Tensor& y : layouts(b))
        EXPECT_TRUE(allclose(matmul(x, y), want, {.rtol = 1e-5, .atol = 1e-5})) << sa << " x " << sb;
  }
}

TEST(LinearMatmul, ExpandedBatchesAreNotCopied) {
  const Tensor a = sample({2, 3}), b = sample({3, 4});
  const Tensor many = matmul(a.expand({6, 2, 3}), b.expand({6, 3, 4}));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(allclose(many[i], naive(a, b)));
  memory::reset_peak();
  const int64_t before = memory::stats().in_use;
  const Tensor big = matmul(sample({1, 4, 8}, f32).expand({1000, 4, 8}), sample({1, 8, 1}, f32).expand({1000, 8, 1}));
  EXPECT_LT(memory::stats().peak - before, 40000);
}

TEST(LinearMatmul, EveryDtype) {
  for (const DType dt : {f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64}) {
    const Tensor a = sample({3, 7}, dt), b = sample({2, 7, 5}, dt), c = matmul(a, b);
    EXPECT_EQ(c.dtype(), dt);
    const double tolerance = dt == bf16 ? 8e-3 : dt == f16 ? 1e-3 : 1e-6;
    EXPECT_TRUE(allclose(c.to(f64), naive(a, b), {.rtol = tolerance, .atol = tolerance})) << name(dt);
  }
  EXPECT_EQ(matmul(ones({2, 2}, {.dtype = i32}), ones({2, 2})).dtype(), f32);
  EXPECT_EQ(matmul(ones({2, 2}, {.dtype = i32}), ones({2, 2}, {.dtype = u8})).dtype(), i32);
  EXPECT_EQ(matmul(ones({2}), ones({2}, {.dtype = f64})).dtype(), f64);
  EXPECT_EQ(matmul(ones({2, 2}, {.dtype = boolean}), ones({2, 2})).sum().item<float>(), 8);
  const int64_t large = 3037000500;
  EXPECT_EQ(dot(tensor({large, 1}), tensor({large - 1, 7})).item<int64_t>(), large * (large - 1) + 7);
}

TEST(LinearMatmul, NoInnerSizeGivesZeros) {
  const Tensor c = matmul(ones({2, 0}), ones({0, 3}));
  EXPECT_TRUE(equal(c, zeros({2, 3})));
  EXPECT_EQ(dot(ones({0}), ones({0})).item<float>(), 0);
  EXPECT_TRUE(equal(linear(ones({2, 0}), ones({3, 0}), tensor({1., 2., 3.})), tensor({{1., 2., 3.}, {1., 2., 3.}})));
}

TEST(LinearMatmul, Refusals) {
  const Tensor a = ones({2, 3});
  EXPECT_EQ(message([&] { return matmul(a, ones({4, 5})); }), "matmul: [2, 3] x [4, 5]: inner sizes 3 and 4 differ");
  EXPECT_EQ(message([&] { return matmul(ones({2}), ones({3})); }), "matmul: [2] x [3]: inner sizes 2 and 3 differ");
  EXPECT_EQ(message([&] {
              return matmul(ones({5, 2, 3}), ones({4, 3, 2}));
            }),
            "matmul: [5, 2, 3] x [4, 3, 2]: batch sizes [5] and [4] do not broadcast");
  EXPECT_NE(message([&] { return matmul(tensor(1.0), a); }).find("at least one axis"), std::string::npos);
  EXPECT_NE(message([&] { return matmul(a > 0, a.t() > 0); }).find("boolean"), std::string::npos);
  EXPECT_NE(message([&] { return matmul(a, Tensor()); }).find("undefined"), std::string::npos);
  EXPECT_EQ(message([&] { return mm(a, ones({3})); }), "mm: [2, 3] x [3]: needs tensors of 2 and 2 axes");
  EXPECT_EQ(message([&] { return mm(a, a); }), "mm: [2, 3] x [2, 3]: inner sizes 3 and 2 differ");
  EXPECT_EQ(message([&] {
              return bmm(ones({2, 3, 4}), ones({1, 4, 5}));
            }),
            "bmm: [2, 3, 4] x [1, 4, 5]: batch sizes 2 and 1 differ");
  EXPECT_EQ(message([&] { return mv(a, ones({2})); }), "mv: [2, 3] x [2]: inner sizes 3 and 2 differ");
  EXPECT_EQ(message([&] { return dot(ones({2}), ones({3})); }), "dot: [2] x [3]: inner sizes 2 and 3 differ");
  EXPECT_EQ(message([&] { return outer(a, ones({3})); }), "outer: [2, 3] x [3]: needs two vectors");
}

TEST(LinearMatmul, GradientsOfBothOrders) {
  manual_seed(3);
  for (const auto& [sa, sb] : ranks()) {
    const Tensor a = sample(sa).requires_grad_(), b = sample(sb).requires_grad_();
    const auto f = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
    EXPECT_TRUE(gradcheck(f, a, b)) << sa << " x " << sb;
    const auto list = [](const std::vector<Tensor>& x) { return std::vector{matmul(x[0], x[1])}; };
    EXPECT_TRUE(gradgradcheck_all(list, {a, b}, {.fast = true})) << sa << " x " << sb;
  }
}

TEST(LinearMatmul, GradientOfOneSide) {
  const Tensor a = sample({4, 2, 3}).requires_grad_(), b = sample({3, 5});
  EXPECT_TRUE(gradcheck([&](const Tensor& x) { return matmul(x, b); }, a));
  EXPECT_TRUE(gradcheck([&](const Tensor& x) { return matmul(b.mT(), x.mT()); }, a));
  const Tensor half = sample({2, 3}, bf16).requires_grad_();
  EXPECT_EQ(grad(matmul(half, ones({3, 2})).sum(), half).dtype(), bf16);
}

TEST(LinearAddmm, AgainstItsFormula) {
  manual_seed(4);
  const Tensor a = sample({3, 4}), b = sample({4, 2});
  for (const Shape& s : {Shape{3, 2}, Shape{2}, Shape{3, 1}, Shape{}, Shape{1, 2}})
    for (const double beta : {1.0, 0.0, -0.5})
      for (const double alpha : {1.0, 2.5}) {
        const Tensor x = sample(s);
        EXPECT_TRUE(allclose(addmm(x, a, b, beta, alpha), beta * x + alpha * naive(a, b)));
      }
  EXPECT_TRUE(allclose(addmm(full({2}, NAN, {.dtype = f64}), a, b, 0), naive(a, b)));
  EXPECT_EQ(addmm(ones({2}, {.dtype = i64}), ones({3, 4}, {.dtype = i64}), ones({4, 2}, {.dtype = i64}), 2, 3)
                .to_vector<int>(),
            std::vector<int>(6, 14));
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) { return addmm(x, y, z, 0.5, 2); };
  EXPECT_TRUE(gradcheck(f, sample({2}).requires_grad_(), a.clone().requires_grad_(), b.clone().requires_grad_()));
  const auto fused = [](const Tensor& x, const Tensor& y, const Tensor& z) { return addmm(x, y, z); };
  EXPECT_TRUE(gradcheck(fused, sample({2}).requires_grad_(), a.clone().requires_grad_(), b.clone().requires_grad_()));
  EXPECT_NE(message([&] { return addmm(ones({4}), a, b); }).find("addmm"), std::string::npos);
  EXPECT_NE(message([&] { return addmm(ones({5, 3, 2}), a, b); }).find("[3, 2]"), std::string::npos);
  EXPECT_NE(message([&] {
              return addmm(ones({2}, {.dtype = i64}), ones({1, 1}, {.dtype = i64}), ones({1, 2}, {.dtype = i64}), 0.5);
            }).find("whole"),
            std::string::npos);
}

const char* const activations[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"};

Tensor applied(const std::string& activation, const Tensor& x) {
  if (activation == "relu") return relu(x);
  if (activation == "gelu") return gelu(x);
  if (activation == "gelu_tanh") return gelu_tanh(x);
  if (activation == "silu") return silu(x);
  if (activation == "tanh") return tanh(x);
  if (activation == "sigmoid") return sigmoid(x);
  return x;
}

TEST(LinearFused, EqualsUnfused) {
  manual_seed(5);
  for (const DType dt : {f32, f64, f16, bf16})
    for (const std::string activation : activations)
      for (const Shape& s : {Shape{4}, Shape{3, 4}, Shape{2, 5, 4}, Shape{0, 4}}) {
        const Tensor x = sample(s, dt), w = sample({6, 4}, dt), b = sample({6}, dt);
        const double tolerance = dt == f64 ? 1e-12 : dt == f32 ? 1e-5 : dt == f16 ? 4e-3 : 3e-2;
        const Tensor want = applied(activation, naive(x, w.t()) + b.to(f64));
        const LinearOptions options{.activation = activation};
        EXPECT_TRUE(allclose(linear(x, w, b, options).to(f64), want, {.rtol = tolerance, .atol = tolerance}))
            << activation << name(dt);
        EXPECT_TRUE(allclose(linear(x, w, {}, options).to(f64), applied(activation, naive(x, w.t())),
                             {.rtol = tolerance, .atol = tolerance}));
        const Tensor recorded = linear(x.clone().requires_grad_(), w, b, options);
        EXPECT_TRUE(allclose(recorded.detach().to(f64), want, {.rtol = tolerance, .atol = tolerance}));
      }
}

// A half is rounded where a derivative would want it, recorded or not.
TEST(LinearFused, RecordingChangesNoBit) {
  manual_seed(8);
  for (const DType dt : {f32, f64, f16, bf16})
    for (const std::string activation : activations)
      for (const Shape& s : {Shape{2, 2}, Shape{60, 64}}) {
        const Tensor x = randn({s[0], 128}).to(dt), w = (randn({s[1], 128}) * 0.1).to(dt), b = randn({s[1]}).to(dt);
        const LinearOptions options{.activation = activation};
        EXPECT_TRUE(equal(linear(x, w, b, options), linear(x.clone().requires_grad_(), w, b, options).detach()))
            << activation << " " << name(dt);
      }
}

TEST(LinearFused, StridedBiasAndWeight) {
  const Tensor x = sample({3, 4}, f32), w = sample({4, 6}, f32).t(), b = sample({6, 2}, f32).select(1, 1);
  EXPECT_TRUE(allclose(linear(x, w, b), (naive(x, w.t()) + b.to(f64)).to(f32), {.rtol = 1e-5, .atol = 1e-5}));
  EXPECT_TRUE(
      allclose(linear(x, w, tensor(2.f).expand({6})), (naive(x, w.t()) + 2).to(f32), {.rtol = 1e-5, .atol = 1e-5}));
}

TEST(LinearFused, IntegersAndVectors) {
  const Tensor x = tensor({{1, -2}, {3, 4}}), w = tensor({{1, 1}, {-1, 2}, {0, 5}}), b = tensor({1, 2, 3});
  EXPECT_EQ(linear(x, w, b).to_vector<int>(), (std::vector<int>{0, -3, -7, 8, 7, 23}));
  EXPECT_EQ(linear(x, w, b, {.activation = "relu"}).to_vector<int>(), (std::vector<int>{0, 0, 0, 8, 7, 23}));
  EXPECT_EQ(linear(x, w, b, {.activation = "sigmoid"}).dtype(), f32);
  EXPECT_EQ(linear(x, tensor({1, 1}), tensor(10)).to_vector<int>(), (std::vector<int>{9, 17}));
}

TEST(LinearFused, GradientsOfBothOrders) {
  manual_seed(6);
  for (const std::string activation : activations)
    for (const Shape& s : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}}) {
      const Tensor x = sample(s).requires_grad_(), w = sample({5, 4}).requires_grad_(),
                   b = sample({5}).requires_grad_();
      const auto f = [&](const Tensor& input, const Tensor& weight, const Tensor& bias) {
        return linear(input, weight, bias, {.activation = activation});
      };
      EXPECT_TRUE(gradcheck(f, x, w, b)) << activation << s;
      EXPECT_TRUE(gradgradcheck(f, x, w, b)) << activation << s;
    }
}

TEST(LinearFused, Refusals) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(message([&] {
              return linear(x, ones({4, 5}));
            }),
            "linear: [2, 3] with weight [4, 5]: inner sizes 3 and 5 differ");
  EXPECT_NE(message([&] {
              return linear(x, ones({4, 3}), ones({3}));
            }).find("bias has shape [3], not [4]"),
            std::string::npos);
  EXPECT_NE(message([&] {
              return linear(x, ones({4, 3}), {}, {.activation = "swish"});
            }).find("none, relu, gelu"),
            std::string::npos);
  EXPECT_NE(message([&] { return linear(x, ones({1, 4, 3})); }).find("[out, in]"), std::string::npos);
}

TEST(LinearOther, Tensordot) {
  const Tensor a = sample({3, 4, 5}), b = sample({4, 3, 2});
  const Tensor want = matmul(a.permute({2, 0, 1}).reshape({5, 12}), b.permute({1, 0, 2}).reshape({12, 2}));
  EXPECT_TRUE(allclose(tensordot(a, b, {1, 0}, {0, 1}), want));
  EXPECT_TRUE(allclose(tensordot(a, b, {-2, 0}, {0, -2}), want));
  EXPECT_EQ(tensordot(a, b, 0).shape(), (Shape{3, 4, 5, 4, 3, 2}));
  EXPECT_TRUE(allclose(tensordot(a[0], a[0].t(), 1), naive(a[0], a[0].t())));
  EXPECT_TRUE(allclose(tensordot(a, b, 0).sum(), a.sum() * b.sum()));
  EXPECT_TRUE(allclose(tensordot(a, a, 3), (a * a).sum()));
  const auto f = [](const Tensor& x, const Tensor& y) { return tensordot(x, y, {1, 0}, {0, 1}); };
  EXPECT_TRUE(gradcheck(f, a.clone().requires_grad_(), b.clone().requires_grad_()));
  EXPECT_NE(message([&] { return tensordot(a, b, {0}, {0}); }).find("sizes 3 and 4"), std::string::npos);
  EXPECT_NE(message([&] { return tensordot(a, b, {0, 0}, {0, 1}); }).find("twice"), std::string::npos);
  EXPECT_NE(message([&] { return tensordot(a, b, {0}, {0, 1}); }).find("paired"), std::string::npos);
  EXPECT_NE(message([&] { return tensordot(a, b, 4); }).find("4 axes"), std::string::npos);
  EXPECT_NE(message([&] { return tensordot(a, b, {3}, {0}); }).find("out of range"), std::string::npos);
}

// So many pairs that their differences are made for some rows at a time.
TEST(LinearOther, CdistInPartsOfRows) {
  const Tensor x = sample({3001, 2}).requires_grad_(), y = sample({1500, 2});
  const Tensor d = cdist(x, y);
  EXPECT_EQ(d.shape(), (Shape{3001, 1500}));
  for (const int64_t from : {0, 1390, 2790, 2991})
    EXPECT_TRUE(equal(d.detach().narrow(0, from, 10), cdist(x.detach().narrow(0, from, 10), y)));
  const Tensor g = grad(d.sum(), x), some = x.detach().narrow(0, 1395, 6).requires_grad_();
  EXPECT_TRUE(allclose(g.narrow(0, 1395, 6), grad(cdist(some, y).sum(), some)));
}

TEST(LinearOther, OuterKronTraceCross) {
  EXPECT_TRUE(equal(outer(tensor({1, 2}), tensor({3, 4, 5})), tensor({{3, 4, 5}, {6, 8, 10}})));
  EXPECT_TRUE(equal(kron(tensor({{1, 2}, {3, 4}}), tensor({{0, 1}})), tensor({{0, 1, 0, 2}, {0, 3, 0, 4}})));
  EXPECT_TRUE(equal(kron(tensor({1, 2}), tensor({{1, 1}, {0, 3}})), tensor({{1, 1, 2, 2}, {0, 3, 0, 6}})));
  const Tensor six = arange(4).reshape({1, 1, 1, 1, 2, 2});  // as many axes as there may be
  EXPECT_TRUE(equal(kron(six, tensor({1, 10})).flatten(), tensor({0, 0, 1, 10, 2, 20, 3, 30})));
  EXPECT_EQ(trace(tensor({{1, 2, 3}, {4, 5, 6}})).item<int>(), 6);
  EXPECT_EQ(trace(zeros({0, 3})).item<float>(), 0);
  EXPECT_TRUE(equal(cross(tensor({1., 0., 0.}), tensor({0., 1., 0.})), tensor({0., 0., 1.})));
  const Tensor a = sample({3, 4}).requires_grad_(), b = sample({3, 1}).requires_grad_();
  EXPECT_EQ(cross(a, b, 0).shape(), (Shape{3, 4}));
  EXPECT_TRUE(gradcheck([](const Tensor& x, const Tensor& y) { return cross(x, y, 0); }, a, b));
  EXPECT_TRUE(gradcheck([](const Tensor& x, const Tensor& y) { return kron(x, y); }, a, b));
  EXPECT_TRUE(gradcheck([](const Tensor& x) { return trace(x); }, a));
  EXPECT_NE(message([&] { return cross(a, b); }).find("size 3"), std::string::npos);
  EXPECT_NE(message([&] { return cross(ones({3}), b); }).find("cross"), std::string::npos);
  EXPECT_NE(message([&] { return trace(ones({3})); }).find("[3]"), std::string::npos);
}

TEST(LinearEinsum, KnownForms) {
  manual_seed(7);
  const Tensor a = sample({3, 4}), b = sample({4, 5}), s = sample({4, 4}), v = sample({4}), t = sample({2, 3, 4}),
               u = sample({2, 4, 5});
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.shape() == y.shape() && allclose(x, y, {.rtol = 1e-12, .atol = 1e-12});
  };
  EXPECT_TRUE(same(einsum("ij,jk->ik", a, b), naive(a, b)));
  EXPECT_TRUE(same(einsum("ij,jk", a, b), naive(a, b)));
  EXPECT_TRUE(same(einsum(" i j , j k -> k i ", a, b), naive(a, b).t()));
  EXPECT_TRUE(same(einsum("bij,bjk->bik", t, u), naive(t, u)));
  EXPECT_TRUE(same(einsum("bij,bjk->ik", t, u), naive(t, u).sum(0)));
  EXPECT_TRUE(same(einsum("...ij,...jk->...ik", t, b), naive(t, b)));
  EXPECT_TRUE(same(einsum("...j,j->...", t, v), naive(t, v)));
  EXPECT_TRUE(same(einsum("...j,jk", t, b), naive(t, b)));
  EXPECT_TRUE(same(einsum("i...->...", t), t.sum(0)));
  EXPECT_TRUE(same(einsum("ii->i", s), s.diagonal()));
  EXPECT_TRUE(same(einsum("ii", s), trace(s)));
  EXPECT_TRUE(same(einsum("bii->b", sample({2, 3, 3}) * 0 + 1), full({2}, 3.0, {.dtype = f64})));
  const Tensor twins = sample({3, 3, 4}), apart = sample({3, 4, 3});
  EXPECT_TRUE(same(einsum("iij->ij", twins), twins.diagonal(0, 0, 1).t()));
  EXPECT_TRUE(same(einsum("iij,j->i", twins, v), twins.diagonal(0, 0, 1).t().matmul(v)));
  EXPECT_TRUE(same(einsum("iji->ji", apart), apart.diagonal(0, 0, 2)));
  EXPECT_TRUE(same(einsum("iiik->k", sample({2, 2, 2, 4}) * 0 + 1), full({4}, 2.0, {.dtype = f64})));
  EXPECT_TRUE(same(einsum("ij->ji", a), a.t()));
  EXPECT_TRUE(same(einsum("ba", a), a.t()));
  EXPECT_TRUE(same(einsum("ij->", a), a.sum()));
  EXPECT_TRUE(same(einsum("i,i->i", v, v), v * v));
  EXPECT_TRUE(same(einsum("i,j->ij", v, sample({0})), zeros({4, 0}, {.dtype = f64})));
  EXPECT_TRUE(same(einsum("ij,ij->i", a, a), (a * a).sum(1)));
  EXPECT_TRUE(same(einsum("ij,k->k", a, v), a.sum() * v));
  EXPECT_TRUE(same(einsum("ij,jk,k->i", a, b, sample({5}) * 0 + 1), naive(a, b).sum(1)));
  EXPECT_TRUE(same(einsum("i,j,k->kji", v, a.select(0, 0), b.select(1, 0)),
                   einsum("i,j,k->ijk", v, a.select(0, 0), b.select(1, 0)).permute({2, 1, 0})));
  EXPECT_TRUE(same(einsum("ij,jk->ik", a, sample({1, 5}) * 0 + 1), a.sum(1, true).expand({3, 5})));
  EXPECT_TRUE(same(einsum("bhqd,bhkd->bhqk", t.unsqueeze(1), t.unsqueeze(1)), naive(t, t.mT()).unsqueeze(1)));
  EXPECT_EQ(einsum("ij->i", ones({2, 3}, {.dtype = i32})).dtype(), i32);
  EXPECT_EQ(einsum(",", tensor(2.), tensor(3.)).item<float>(), 6);
}

TEST(LinearEinsum, TheOrderOfContractionsDoesNotMatter) {
  const Tensor a = sample({3, 4}), b = sample({4, 5}), c = sample({5, 1}), v = sample({3}), w = sample({4});
  const auto near = [](const Tensor& x, const Tensor& y) { return allclose(x, y, {.rtol = 1e-12, .atol = 1e-12}); };
  EXPECT_TRUE(near(einsum("ij,jk,kl->il", a, b, c), naive(a, naive(b, c))));
  EXPECT_TRUE(near(einsum("i,j,ij->", v, w, a), naive(naive(v, a), w)));
  EXPECT_TRUE(near(einsum("kl,ij,jk->li", c, a, b), naive(naive(a, b), c).t()));
  EXPECT_TRUE(near(einsum("ij,ij,i,j->j", a, a, v, w), naive(v, a * a) * w));
  // From left to right the first product would have 2^40 elements.
  const Tensor long_a = ones({1 << 20}), long_b = ones({1 << 20});
  EXPECT_EQ(einsum("i,j,i,j->", long_a, long_b, long_a, long_b).item<double>(), double(1ull << 40));
}

TEST(LinearEinsum, Gradients) {
  const Tensor a = sample({2, 3, 3}).requires_grad_(), b = sample({3, 2}).requires_grad_(),
               c = sample({2}).requires_grad_();
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) { return einsum("bii,ij,b->bj", x, y, z); };
  EXPECT_TRUE(gradcheck(f, a, b, c));
  EXPECT_TRUE(gradgradcheck(f, a, b, c));
}

TEST(LinearEinsum, Refusals) {
  const Tensor a = ones({2, 3}), b = ones({4, 5});
  const auto says = [&](const std::string& equation, const std::vector<Tensor>& x, const char* words) {
    const std::string text = message([&] { return einsum(equation, x); });
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_NE(text.find("einsum: '" + equation + "'"), std::string::npos) << text;
  };
  says("ij,jk->ik", {a, b}, "'j' stands for sizes 3 and 4");
  says("j,j,j->j", {ones({3}), ones({1}), ones({4})}, "'j' stands for sizes 3 and 4");
  says("ij->ij", {a, b}, "describes 1 operands, got 2");
  says("ijk", {a}, "3 labels for a tensor of shape [2, 3]");
  says("ij->ik", {a}, "'k' is in no operand");
  says("ij->ii", {a}, "twice");
  says("ii->i", {a}, "sizes 2 and 3");
  says("i1->i", {a}, "unexpected character '1'");
  says("...i...->i", {a}, "two ellipses");
  says("i->j->i", {ones({2})}, "unexpected character '-'");
  says("ij->i", {a > 0}, "boolean");
}

}  // namespace
}  // namespace volta

// Cases that decide what a line of code must be: accumulation with a graph, line searches, trust ratios, einsum's axes,
// empty classes, positions of masks, subgradients at kinks.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include <limits>

#include <volta/volta.h>

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;

std::optional<Error::Kind> kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return std::nullopt;
}

TEST(AutogradEmptyValues, PuttingNothingSeversNothing) {
  const Tensor w = ones({3}).requires_grad_(), none = zeros({0}, {.dtype = i64});
  const Tensor never = zeros({3}, {.dtype = boolean});
  for (const bool accumulate : {false, true})
    for (const Tensor& where : {none, never})
      for (const Tensor& value : {w.sum(), w.narrow(0, 0, 0)}) {
        const Tensor y = index_put(zeros({3}), {where}, value, accumulate);
        EXPECT_TRUE(equal(grad(y.sum(), w, {.retain_graph = true}), zeros({3})));
        Tensor x = zeros({3});
        x.index_put_({where}, value, accumulate);
        EXPECT_TRUE(equal(grad(x.sum(), w, {.retain_graph = true}), zeros({3})));
      }
}

TEST(ValuesFused, AddcmulOfIntegersByAFraction) {
  const Tensor x = tensor({1.0, 2.0}), two = tensor({2, 3});
  EXPECT_TRUE(allclose(addcmul(x, two, two, 0.5), tensor({3.0, 6.5})));
  const Tensor small = tensor({2, 1}, {.dtype = u8});
  EXPECT_TRUE(allclose(addcmul(small, small, tensor({1.5, 2.0}), 0.7), tensor({4.1, 2.4})));
  EXPECT_EQ(kind_of([&] { addcmul(two, two, two, 0.5); }), Error::Kind::dtype);
}

TEST(AutogradViews, StridedOnesMadeUnderNoGradRefuseChanges) {
  const Tensor leaf = ones({4}).requires_grad_(), a = leaf * 2;
  Tensor v;
  {
    const NoGrad off;
    v = a.as_strided({2}, {2});
  }
  EXPECT_EQ(kind_of([&] { v.mul_(a.narrow(0, 0, 2)); }), Error::Kind::autograd);
}

TEST(AutogradAccumulation, SecondBackwardWithAGraphAdds) {
  const Tensor x = tensor<double>({1.0, 2.0}).requires_grad_();
  (x * x * x).sum().backward({.create_graph = true});
  (x * x).sum().backward({.create_graph = true});
  const Tensor g = *x.grad();  // 3 x^2 + 2 x
  EXPECT_TRUE(equal(g.detach(), tensor<double>({5.0, 16.0})));
  EXPECT_TRUE(equal(grad(g.sum(), x), tensor<double>({8.0, 14.0})));  // 6 x + 2
  x.zero_grad();                                                      // a gradient with a graph holds x, and x holds it
}

struct Search {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  std::vector<double> start;
  double lr;
  std::vector<std::pair<int, std::vector<double>>> after;  // each step: evaluations so far, and where it is
};

// Steps of one iteration each, as PyTorch takes them.
TEST(OptimLBFGS, LineSearchesTakeTheKnownSteps) {
  const auto wave = [](const Tensor& x) { return (x + 3 * sin(4 * x) + 0.3 * x * x).sum(); };
  const std::vector<Search> searches = {
      {"rosenbrock",
       [](const Tensor& x) { return square(1 - x[0]) + 100 * square(x[1] - x[0] * x[0]); },
       {-1.2, 1.0},
       1,
       {{3, {-1.0245319303460325, 1.0716196202669255}},
        {5, {-1.0284565745562346, 1.068187455748677}},
        {7, {-1.0288795348319695, 1.0655029516848564}},
        {9, {-1.0276177663827242, 1.0584120782656612}},
        {11, {-1.0203084803940978, 1.0352769866467468}},
        {13, {-0.9970310351680055, 0.9755913846740083}}}},
      {"wave", wave, {2.0}, 1, {{5, {1.1409699006335619}}, {8, {1.142813575652311}}, {10, {1.1428616252772958}}}},
      {"wave, long steps",
       wave,
       {1.2},
       5,
       {{5, {-1.9496430279212307}}, {10, {-1.9593743494922329}}, {13, {-1.9598307249989497}}}},
      {"quartic",
       [](const Tensor& x) { return pow(x, 4).sum() + x[0] * x[1]; },
       {3.0, -2.0},
       0.01,
       {{4, {2.7620886925925925, -1.9349110574074073}},
        {8, {2.503767024064284, -1.810872613606309}},
        {12, {2.275322098945066, -1.6726335390150608}},
        {16, {2.07040904593446, -1.5368161708551966}}}},
      {"exponential",
       [](const Tensor& x) { return (exp(x) - 20 * x).sum(); },
       {0.0},
       0.01,
       {{6, {2.92279781639267}}, {9, {2.9461686688521427}}, {12, {2.9513095192863044}}}},
      {"corners",
       [](const Tensor& x) { return (sqrt(1e-6 + square(x)) + 0.1 * x + 0.5 * sqrt(1e-6 + square(x - 1))).sum(); },
       {3.0},
       2,
       {{2, {1.0}}, {6, {0.20601369221565416}}, {13, {0.0026720701878234997}}, {18, {0.0004291507738397171}}}},
      {"steep",
       [](const Tensor& x) { return log(1 + 1e4 * square(x)).sum(); },
       {0.3},
       1,
       {{7, {0.00013640672058335866}}, {12, {1.0357607606328319e-08}}}},
      {"rising between two falls",
       [](const Tensor& x) { return (2.0 * sin(2.4 * x) + 1.5 * sin(7.1 * x) + 0.05 * square(x)).sum(); },
       {0.2},
       1,
       {{5, {-5.536507338048308}}, {10, {-5.566809913495359}}}},
      {"two waves",
       [](const Tensor& x) { return (sin(10 * x) + sin(3.3 * x) + 0.05 * square(x)).sum(); },
       {0.9},
       3,
       {{4, {1.2341009632610112}}, {7, {1.1609532579636836}}, {10, {1.129497183922056}}, {13, {1.1264358266689607}}}},
  };
  for (const Search& s : searches) {
    const Tensor x = tensor(s.start).requires_grad_();
    optim::LBFGS opt({x}, {.lr = s.lr, .max_iter = 1, .max_eval = 1000, .strong_wolfe = true});
    int evaluations = 0;
    for (const auto& [count, place] : s.after) {
      opt.step([&] {
        ++evaluations;
        opt.zero_grad();
        const Tensor loss = s.f(x);
        loss.backward();
        return loss;
      });
      EXPECT_EQ(evaluations, count) << s.name;
      const Tensor want = tensor(place);
      EXPECT_TRUE(allclose(x.detach(), want, {.rtol = 1e-7, .atol = 1e-13})) << s.name << ' ' << x.detach().str();
    }
  }
}

// A step so long that the gradient overflows: what follows are NaNs, in as many iterations as there may be.
TEST(OptimLBFGS, EndsWhereTheSlopeIsNotANumber) {
  Tensor w = full({3}, 1e200, {.dtype = f64}).requires_grad_();
  optim::LBFGS opt({w}, {.lr = 2.58, .max_iter = std::numeric_limits<int>::max()});
  int calls = 0;
  opt.step([&] {
    opt.zero_grad();
    const Tensor loss = w.pow(4).sum();
    loss.backward();
    ++calls;
    return loss;
  });
  EXPECT_LT(calls, 100);
}

TEST(OptimLBFGS, MaxEvalHoldsInsideTheLineSearch) {
  for (int most = 1; most <= 9; ++most) {
    const Tensor x = tensor<double>({1.2}).requires_grad_();
    optim::LBFGS opt({x}, {.lr = 5, .max_iter = 20, .max_eval = most, .strong_wolfe = true});
    int evaluations = 0;
    double first = 0;
    const auto loss_at = [&] { return (x + 3 * sin(4 * x) + 0.3 * x * x).sum(); };
    opt.step([&] {
      opt.zero_grad();
      const Tensor loss = loss_at();
      if (++evaluations == 1) first = loss.item<double>();
      loss.backward();
      return loss;
    });
    EXPECT_LE(evaluations, std::max(most, 2));  // one try in any case
    EXPECT_LE(loss_at().item<double>(), first);
  }
}

TEST(OptimLBFGS, FewIterationsAndEvaluationsStillMove) {
  const std::vector<double> plain{2.9221052631578948, -1.9778947368421054, 2.8039253162410103, -1.9171933141815938};
  const std::vector<double> searched{2.5711894736842105, -1.8783105263157895, 2.039595786016752, -1.5634714926063265};
  for (const int iterations : {1, 2})
    for (const int most : {0, 1, 2})
      for (const bool wolfe : {false, true}) {
        const Tensor w = tensor<double>({3.0, -2.0}).requires_grad_();
        optim::LBFGS opt({w}, {.lr = 0.1, .max_iter = iterations, .max_eval = most, .strong_wolfe = wolfe});
        std::vector<double> seen;
        int evaluations = 0;
        for (int i = 0; i < 2; ++i) {
          opt.step([&] {
            ++evaluations;
            opt.zero_grad();
            const Tensor loss = pow(w, 4).sum() * 0.1 + w[0] * w[1] + square(w).sum();
            loss.backward();
            return loss;
          });
          for (const double x : w.detach().to_vector<double>()) seen.push_back(x);
        }
        const std::string what = std::to_string(iterations) + ' ' + std::to_string(most) + (wolfe ? " wolfe" : "");
        if (!wolfe || most == 0) {
          EXPECT_TRUE(allclose(tensor(seen), tensor(wolfe ? searched : plain), {.rtol = 1e-9})) << what;
          EXPECT_EQ(evaluations, wolfe ? 6 : 2 * iterations) << what;
        } else {  // a bound of one's own ends the search after its first try
          EXPECT_EQ(evaluations, 4) << what;
          EXPECT_LT(seen[2], seen[0]) << what;
          EXPECT_LT(seen[0], 3) << what;
        }
      }
}

TEST(OptimLAMB, TheTrustRatioOfZeros) {
  // A parameter of zeros has no size to compare with: the step is lr times the direction.
  const Tensor x = zeros({2}, {.dtype = f64}).requires_grad_();
  optim::LAMB opt({x}, {.lr = 0.1, .eps = 0, .weight_decay = 0});
  x.set_grad(tensor<double>({2.0, -3.0}));
  opt.step();
  EXPECT_TRUE(allclose(x.detach(), tensor<double>({-0.1, 0.1}), {.rtol = 1e-12}));
  // Nor has a direction of zeros a length: nothing moves.
  const Tensor still = tensor<double>({1.0, 2.0}).requires_grad_();
  optim::LAMB at_rest({still}, {.lr = 0.1, .weight_decay = 0});
  still.set_grad(zeros({2}, {.dtype = f64}));
  at_rest.step();
  EXPECT_TRUE(equal(still.detach(), tensor<double>({1.0, 2.0})));
  // Otherwise the step has lr times the parameter's size.
  const Tensor y = tensor<double>({3.0, 4.0}).requires_grad_();
  optim::LAMB both({y}, {.lr = 0.1, .eps = 0, .weight_decay = 0});
  y.set_grad(tensor<double>({2.0, -3.0}));
  both.step();
  EXPECT_NEAR(norm(y.detach() - tensor<double>({3.0, 4.0})).item<double>(), 0.5, 1e-12);
}

// Sums over every label by loops.
Tensor einsum_by_hand(const std::string& a, const std::string& b, const std::string& out, const Tensor& x,
                      const Tensor& y) {
  std::string all = a;
  for (char l : b + out)
    if (all.find(l) == std::string::npos) all += l;
  std::map<char, int64_t> size;
  for (size_t i = 0; i < a.size(); ++i) size[a[i]] = std::max(size[a[i]], x.size(int64_t(i)));
  for (size_t i = 0; i < b.size(); ++i) size[b[i]] = std::max(size[b[i]], y.size(int64_t(i)));
  Shape shape;
  for (char l : out) shape.push_back(size[l]);
  Tensor result = zeros(shape, {.dtype = f64});
  int64_t total = 1;
  for (char l : all) total *= size[l];
  for (int64_t flat = 0; flat < total; ++flat) {
    std::map<char, int64_t> at;
    int64_t rest = flat;
    for (char l : all) at[l] = rest % size[l], rest /= size[l];
    const auto place = [&](const Tensor& t, const std::string& labels) {
      Tensor part = t;
      for (char l : labels) part = part.select(0, part.size(0) == 1 ? 0 : at[l]);
      return part;
    };
    place(result, out).add_(place(x, a) * place(y, b));
  }
  return result;
}

// Axes that are free, shared, kept or summed, of size 1 in one operand or both.
TEST(ValuesEinsum, FreeSharedAndSingleAxes) {
  manual_seed(1);
  const std::vector<std::array<std::string, 3>> equations = {
      {"ij", "jk", "ik"}, {"ij", "jk", ""},     {"ij", "kl", "il"}, {"ij", "kl", ""},    {"ij", "ij", "ij"},
      {"ij", "ij", "i"},  {"ij", "ji", "j"},    {"ij", "k", "kij"}, {"ij", "j", "j"},    {"ijk", "jl", "il"},
      {"ijk", "kj", "i"}, {"ijk", "ikl", "lj"}, {"ij", "ik", "jk"}, {"ij", "ik", "ijk"}, {"i", "j", "ji"}};
  for (const auto& [a, b, out] : equations)
    for (int single = 0; single < 16; ++single) {
      std::map<char, int64_t> size{{'i', 2}, {'j', 3}, {'k', 4}, {'l', 5}};
      for (int bit = 0; bit < 4; ++bit)
        if (single >> bit & 1) size["ijkl"[bit]] = 1;
      const auto drawn = [&](const std::string& labels) {
        Shape shape;
        for (char l : labels) shape.push_back(size[l]);
        return randn(shape, {.dtype = f64});
      };
      std::string equation = a;
      equation.append(",").append(b).append("->").append(out);
      const Tensor x = drawn(a), y = drawn(b), got = einsum(equation, {x, y});
      const Tensor want = einsum_by_hand(a, b, out, x, y);
      ASSERT_EQ(got.shape(), want.shape()) << a << ',' << b << "->" << out << ' ' << single;
      EXPECT_TRUE(allclose(got, want)) << a << ',' << b << "->" << out << ' ' << single;
    }
}

TEST(ValuesOneHot, EmptyInputsAndTheirClasses) {
  const Tensor none = empty({0}, {.dtype = i64});
  EXPECT_EQ(kind_of([&] { one_hot(none); }), Error::Kind::argument);
  EXPECT_EQ(one_hot(none, 0).shape(), Shape({0, 0}));
  EXPECT_EQ(one_hot(none, 5).shape(), Shape({0, 5}));
  EXPECT_EQ(one_hot(tensor<int64_t>({0, 2})).shape(), Shape({2, 3}));
  EXPECT_EQ(kind_of([&] { one_hot(none, -2); }), Error::Kind::argument);
  EXPECT_EQ(kind_of([&] { one_hot(tensor<int64_t>({3}), 3); }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { one_hot(tensor<int64_t>({0}), 0); }), Error::Kind::index);
  EXPECT_EQ(kind_of([&] { one_hot(tensor<int64_t>({-1}), 3); }), Error::Kind::index);
}

TEST(ValuesMasks, PositionsAtTheEndsOfBlocks) {
  for (const int64_t n : {1, 255, 256, 257, 1023, 1024, 1025, 4096, 65536, 65537, 262144}) {
    Tensor mask = zeros({n}, {.dtype = boolean});
    mask[0] = true, mask[n - 1] = true, mask[n / 2] = true;
    std::vector<int64_t> want{0};
    if (n / 2 > 0 && n / 2 < n - 1) want.push_back(n / 2);
    if (n > 1) want.push_back(n - 1);
    EXPECT_TRUE(equal(nonzero(mask).flatten(), tensor(want))) << n;
    EXPECT_EQ(masked_select(arange(n), ones({n}, {.dtype = boolean})).numel(), n);
  }
}

TEST(LossKinks, SubgradientsArePyTorchs) {
  const auto gradient = [](const Tensor& x, const auto& f) { return grad(f(x), x); };
  const Tensor pair = tensor<double>({1.0, 1.0, 0.0}).requires_grad_(), signs = tensor<double>({-1.0, 1.0, -1.0});
  const HingeEmbeddingOptions hinge{.reduction = Reduce::sum};
  EXPECT_TRUE(equal(gradient(pair, [&](auto& x) { return hinge_embedding_loss(x, signs, hinge); }),
                    tensor<double>({-1.0, 1.0, -1.0})));
  const Tensor same = tensor<double>({1.0, 1.0}).requires_grad_(), other = same.detach().clone();
  EXPECT_TRUE(equal(gradient(same,
                             [&](auto& x) {
                               return margin_ranking_loss(x, other, tensor<double>({1.0, -1.0}));
                             }),
                    tensor<double>({-0.5, 0.5})));
  const Tensor scores = tensor<double>({{1.0, 0.0, -1.0}}).requires_grad_(), label = tensor<int64_t>({0});
  for (const int p : {1, 2})
    EXPECT_TRUE(equal(gradient(scores, [&](auto& x) { return multi_margin_loss(x, label, {.p = p}); }),
                      zeros({1, 3}, {.dtype = f64})));
  const Tensor a = tensor<double>({{1.0, 0.0}}).requires_grad_(), b = tensor<double>({{0.0, 1.0}});
  const Tensor turned = gradient(a, [&](auto& x) { return cosine_embedding_loss(x, b, tensor<double>({-1.0})); });
  EXPECT_TRUE(allclose(turned, tensor<double>({{0.0, 1.0}}), {.rtol = 1e-11}));
  const Tensor anchor = zeros({1, 2}, {.dtype = f64}).requires_grad_(), near = tensor<double>({{1.0, 0.0}});
  EXPECT_TRUE(equal(gradient(anchor, [&](auto& x) { return triplet_margin_loss(x, near, near * -2, {.eps = 0}); }),
                    tensor<double>({{-2.0, 0.0}})));
}

TEST(LossKinks, OfEqualRowsInABagTheFirstTakesTheGradient) {
  const Tensor w = tensor<double>({{1.0, 2.0}, {1.0, 2.0}, {0.0, 5.0}}).requires_grad_();
  const Tensor y = embedding_bag(tensor<int64_t>({0, 1, 2, 1, 0}), w, tensor<int64_t>({0, 3, 5}), {.mode = "max"});
  EXPECT_TRUE(equal(y.detach(), tensor<double>({{1.0, 5.0}, {1.0, 2.0}, {0.0, 0.0}})));
  EXPECT_TRUE(equal(grad(y.sum(), w), tensor<double>({{1.0, 0.0}, {1.0, 1.0}, {0.0, 1.0}})));
}

TEST(ValuesEmbedding, PaddingBeyondTheDtypeOfTheIds) {
  const Tensor w = randn({300, 2}).requires_grad_(), ids = tensor<uint8_t>({uint8_t(3), uint8_t(255)});
  for (const int64_t padding : {int64_t(299), int64_t(-1)}) {
    EXPECT_TRUE(equal(embedding(ids, w, {.padding_idx = padding}), embedding(ids, w)));
    const Tensor bag = embedding_bag(ids.reshape({1, 2}), w, {}, {.mode = "sum", .padding_idx = padding});
    EXPECT_TRUE(allclose(bag.detach(), (w[3] + w[255]).detach().reshape({1, 2})));
  }
  const Tensor g = grad(embedding(ids, w, {.padding_idx = 255}).sum(), w);
  EXPECT_EQ(g[255].sum().item<double>(), 0);
  EXPECT_EQ(g[3].sum().item<double>(), 2);
}

TEST(LossKinks, InfiniteDifferences) {
  const Tensor x = tensor<double>({INFINITY, -INFINITY, 0.5, 3.0}).requires_grad_(), y = zeros({4}, {.dtype = f64});
  const Tensor want = tensor<double>({1.0, -1.0, 0.5, 1.0});
  EXPECT_TRUE(equal(grad(huber_loss(x, y, {.reduction = "sum"}), x), want));
  EXPECT_TRUE(equal(grad(smooth_l1_loss(x, y, {.reduction = "sum"}), x), want));
  const Tensor slope = tensor<double>({0.25}).requires_grad_(), in = tensor<double>({INFINITY, -1.0}).requires_grad_();
  const std::vector<Tensor> found = grad(prelu(in, slope).sum(), {in, slope});
  EXPECT_TRUE(equal(found[0], tensor<double>({1.0, 0.25})));
  EXPECT_EQ(found[1].item<double>(), -1);
  const Tensor scores = tensor<double>({{INFINITY, 1.0, 2.0}}).requires_grad_();
  for (const int p : {1, 2}) {
    const Tensor loss = multi_margin_loss(scores, tensor<int64_t>({0}), {.p = p});
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_TRUE(equal(grad(loss, scores), zeros({1, 3}, {.dtype = f64}))) << p;
  }
}

TEST(ValuesLoss, AreTheSameWithAndWithoutGradients) {
  const Tensor table = tensor<double>({{INFINITY, 1.0}, {2.0, -INFINITY}}), ids = tensor<int64_t>({0, 1, 1});
  const auto look = [&](const Tensor& w) { return embedding(ids, w, {.scale_grad_by_freq = true}); };
  const Tensor w = table.clone().requires_grad_();
  EXPECT_TRUE(equal(look(w).detach(), look(table)));
  EXPECT_TRUE(equal(grad(look(w).sum(), w), ones({2, 2}, {.dtype = f64})));
  const Tensor var = tensor<double>({INFINITY, 1.0, 1e-9}), zero = zeros({3}, {.dtype = f64}), one = zero + 1;
  const Tensor v = var.clone().requires_grad_();
  const auto loss = [&](const Tensor& s) { return gaussian_nll_loss(zero, one, s, {.reduction = "none"}); };
  EXPECT_TRUE(equal(loss(v).detach(), loss(var)));
  EXPECT_TRUE(std::isinf(loss(v)[0].item<double>()));
  EXPECT_NEAR(loss(zero)[0].item<double>(), (std::log(1e-6) + 1e6) / 2, 1e-6);  // a variance of 0 is eps
  // The gradient passes the clamp at eps = 1e-6: (1 - 1 / 1e-6) / 2e-6.
  EXPECT_TRUE(allclose(grad(loss(v).sum(), v), tensor<double>({0.0, 0.0, (1 - 1e6) / 2e-6}), {.rtol = 1e-12}));
}

TEST(ValuesEmbedding, BagsEndAtTheLastOffset) {
  const Tensor w = arange(10.).to(f64).reshape({5, 2}), ids = tensor<int64_t>({0, 1, 2, 3});
  const auto bags = [&](const Tensor& offsets, const char* mode, const Tensor& factors = {}) {
    return embedding_bag(ids, w, offsets, {.mode = mode, .include_last_offset = true}, factors);
  };
  const Tensor offsets = tensor<int64_t>({0, 2, 3}), none = tensor<int64_t>({0});
  EXPECT_TRUE(equal(bags(offsets, "sum"), tensor<double>({{2, 4}, {4, 5}})));
  EXPECT_TRUE(equal(bags(offsets, "mean"), tensor<double>({{1, 2}, {4, 5}})));
  EXPECT_TRUE(equal(bags(offsets, "max"), tensor<double>({{2, 3}, {4, 5}})));
  EXPECT_TRUE(equal(bags(offsets, "sum", tensor<double>({1, 2, 3, 4})), tensor<double>({{4, 7}, {12, 15}})));
  for (const char* mode : {"sum", "mean", "max"}) EXPECT_EQ(bags(none, mode).shape(), Shape({0, 2})) << mode;
}

}  // namespace
}  // namespace volta::test

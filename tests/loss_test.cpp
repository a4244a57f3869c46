// Losses against PyTorch, their derivatives against differences, their extremes and their errors.
#include <gtest/gtest.h>

#include "oracle/training.h"
#include "samples.h"

namespace volta::test {
namespace {

using oracle::Args;
using oracle::Case;
using Tensors = std::vector<Tensor>;

Reduce reduce_of(const Args& a) {
  const std::string& word = a.text("reduction");
  return word == "none" ? Reduce::none : word == "sum" ? Reduce::sum : Reduce::mean;
}

Tensor at(const Tensors& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }

using Call = std::function<Tensor(const Tensors&, const Args&)>;

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> table = {
      {"mse_loss", [](auto& x, auto& a) { return mse_loss(x[0], x[1], {reduce_of(a)}); }},
      {"l1_loss", [](auto& x, auto& a) { return l1_loss(x[0], x[1], {reduce_of(a)}); }},
      {"smooth_l1_loss",
       [](auto& x, auto& a) {
         return smooth_l1_loss(x[0], x[1], {reduce_of(a), a.number("beta", 1)});
       }},
      {"huber_loss",
       [](auto& x, auto& a) {
         return huber_loss(x[0], x[1], {reduce_of(a), a.number("delta", 1)});
       }},
      {"binary_cross_entropy",
       [](auto& x, auto& a) {
         return binary_cross_entropy(x[0], x[1], {at(x, 2), reduce_of(a)});
       }},
      {"binary_cross_entropy_with_logits",
       [](auto& x, auto& a) {
         return binary_cross_entropy_with_logits(x[0], x[1], {at(x, 2), reduce_of(a), at(x, 3)});
       }},
      {"sigmoid_focal_loss",
       [](auto& x, auto& a) {
         return sigmoid_focal_loss(x[0], x[1], {a.number("alpha", 0), a.number("gamma", 0), reduce_of(a)});
       }},
      {"kl_div",
       [](auto& x, auto& a) {
         const bool batch = a.text("reduction") == "batchmean";
         return kl_div(x[0], x[1], {.reduction = reduce_of(a), .batchmean = batch, .log_target = a.flag("log_target")});
       }},
      {"gaussian_kl", [](auto& x, auto& a) { return gaussian_kl(x[0], x[1], {reduce_of(a)}); }},
      {"gaussian_nll_loss",
       [](auto& x, auto& a) {
         return gaussian_nll_loss(x[0], x[1], x[2], {.full = a.flag("full"), .reduction = reduce_of(a)});
       }},
      {"poisson_nll_loss",
       [](auto& x, auto& a) {
         const bool log_input = a.whole("log_input", 1) != 0;
         return poisson_nll_loss(x[0], x[1],
                                 {.log_input = log_input, .full = a.flag("full"), .reduction = reduce_of(a)});
       }},
      {"hinge_embedding_loss",
       [](auto& x, auto& a) {
         return hinge_embedding_loss(x[0], x[1], {a.number("margin", 1), reduce_of(a)});
       }},
      {"margin_ranking_loss",
       [](auto& x, auto& a) {
         return margin_ranking_loss(x[0], x[1], x[2], {a.number("margin", 0), reduce_of(a)});
       }},
      {"cosine_embedding_loss",
       [](auto& x, auto& a) {
         return cosine_embedding_loss(x[0], x[1], x[2], {a.number("margin", 0), reduce_of(a)});
       }},
      {"soft_margin_loss", [](auto& x, auto& a) { return soft_margin_loss(x[0], x[1], {reduce_of(a)}); }},
      {"triplet_margin_loss",
       [](auto& x, auto& a) {
         return triplet_margin_loss(x[0], x[1], x[2],
                                    {.margin = a.number("margin", 1),
                                     .p = a.number("p", 2),
                                     .swap = a.flag("swap"),
                                     .reduction = reduce_of(a)});
       }},
      {"cross_entropy",
       [](auto& x, auto& a) {
         return cross_entropy(x[0], x[1],
                              {at(x, 2), reduce_of(a), a.whole("ignore_index", -100), a.number("label_smoothing", 0)});
       }},
      {"nll_loss",
       [](auto& x, auto& a) {
         return nll_loss(x[0], x[1], {at(x, 2), reduce_of(a), a.whole("ignore_index", -100)});
       }},
      {"multi_margin_loss",
       [](auto& x, auto& a) {
         return multi_margin_loss(x[0], x[1], {int(a.whole("p", 1)), a.number("margin", 1), at(x, 2), reduce_of(a)});
       }},
      {"ctc_loss",
       [](auto& x, auto& a) {
         return ctc_loss(log_softmax(x[0], 2), x[1], a.list("input_lengths"), a.list("target_lengths"),
                         {a.whole("blank", 0), reduce_of(a), a.flag("zero_infinity")});
       }},
  };
  return table;
}

// Within 16 epsilons of the largest element; gradients, which subtract more, within 32.
std::string difference(const Case& c, const Call& call, bool transposed, Device device) {
  Tensors x, leaves, answers;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const auto& input = std::get<oracle::Input>(c.operands[i]);
    Tensor t = oracle::operand(c, i).to(device);
    if (transposed && t.dim() > 1) t = t.transpose(0, -1).contiguous().transpose(0, -1);
    if (input.grad != oracle::nothing) {
      leaves.push_back(t.requires_grad_());
      const int64_t best = input.grad_exact != oracle::nothing ? input.grad_exact : input.grad;
      answers.push_back(oracle::stored({input.data.dtype, input.data.shape, best}));
    }
    x.push_back(t);
  }
  const oracle::Output& out = c.outputs[0];
  const Tensor y = call(x, c.args);
  const int64_t best = out.exact != oracle::nothing ? out.exact : out.data.at;
  const std::string wrong = oracle::difference(y, oracle::stored({out.data.dtype, out.data.shape, best}), 16);
  if (!wrong.empty()) return wrong;
  const Tensor cotangent = oracle::stored({out.data.dtype, out.data.shape, out.cotangent}).to(device);
  const Tensors found = grad(Tensors{y}, leaves, {.grad_outputs = {cotangent}, .create_graph = transposed});
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string g = oracle::difference(found[i], answers[i], 32);
    if (!g.empty()) return "gradient " + std::to_string(i) + ": " + g;
  }
  return "";
}

class LossOracle : public testing::TestWithParam<std::string> {};

TEST_P(LossOracle, EqualsPyTorch) {
  for (const Case& c : oracle::training().cases.at(GetParam()))
    for (const Device& device : devices())
      for (bool transposed : {false, true})  // the fused and the general way
        EXPECT_EQ(difference(c, calls().at(GetParam()), transposed, device), "")
            << c.dtype << " " << c.label << " " << device.str();
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, call] : calls()) all.push_back(name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, LossOracle, testing::ValuesIn(names()), [](const auto& one) { return one.param; });

// First and second derivatives of every loss by its floating operands, in f64.
TEST_P(LossOracle, DerivativesMatchDifferences) {
  const bool bent = GetParam() == "ctc_loss";  // its recursion clamps at -1e30: second differences are too coarse
  int checked = 0;
  for (const Case& c : oracle::training().cases.at(GetParam())) {
    if (c.dtype != "f64" || c.args.text("reduction") != "mean" || checked == 6) continue;
    Tensors fixed, moving;
    std::vector<bool> moves;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const bool moved = std::get<oracle::Input>(c.operands[i]).grad != oracle::nothing;
      moves.push_back(moved);
      Tensor x = oracle::operand(c, i);
      if (moved && max(abs(x)).item<double>() > 100) moves.clear();
      (moved ? moving : fixed).push_back(moved ? x.requires_grad_() : x);
      if (moves.empty()) break;
    }
    if (moves.empty()) continue;  // at the extremes differences say nothing
    ++checked;
    const TensorFunction f = [&](const Tensors& in) {
      Tensors x;
      size_t a = 0, b = 0;
      for (bool moved : moves) x.push_back(moved ? in[a++] : fixed[b++]);
      return Tensors{calls().at(GetParam())(x, c.args)};
    };
    const GradcheckOptions options{.fast = moving[0].numel() > 60};
    EXPECT_TRUE(gradcheck_all(f, moving, options)) << c.label;
    if (bent) continue;
    EXPECT_TRUE(gradgradcheck_all(f, moving, options)) << c.label;
  }
  EXPECT_GT(checked, 0);
}

TEST(LossCrossEntropy, LabelsOfEveryIntegerType) {
  const Tensor x = randn({5, 4});
  const Tensor want = cross_entropy(x, tensor({3, 0, 2, 1, 1}));
  for (DType t : {i8, i16, i32, u8, u16, u32, u64})
    EXPECT_TRUE(equal(cross_entropy(x, tensor({3, 0, 2, 1, 1}).to(t)), want)) << name(t);
}

TEST(LossCrossEntropy, ProbabilitiesHaveNoLabelToIgnore) {
  const Tensor x = randn({2, 3}), target = softmax(randn({2, 3}), 1);
  EXPECT_EQ(cross_entropy(x, target, {.ignore_index = -7}).numel(), 1);
  const auto refused = attempt([&] { return cross_entropy(x, target, {.ignore_index = 1}); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), Error::Kind::argument);
}

TEST(LossCrossEntropy, ManyRowsAndClasses) {
  for (const auto& [rows, classes] : {std::pair{1000, 10}, {3, 5000}, {70, 130}, {1, 1}, {9, 17}}) {
    Tensor x = (randn({rows, classes}) * 4).requires_grad_();
    const Tensor t = randint(0, classes, {rows});
    const Tensor fused = cross_entropy(x, t);
    Tensor y = x.detach().to(f64).requires_grad_();
    const Tensor plain = -mean(gather(log_softmax(y, 1), 1, t.unsqueeze(1)));
    EXPECT_TRUE(allclose(fused.to(f64), plain, {.rtol = 1e-6})) << classes;
    EXPECT_TRUE(allclose(grad(fused, x).to(f64), grad(plain, y), {.rtol = 1e-5, .atol = 1e-9})) << classes;
  }
}

TEST(LossCrossEntropy, HalvesAndEmptyBatches) {
  for (DType t : {f16, bf16}) {
    Tensor x = randn({6, 5}).to(t).requires_grad_();
    const Tensor loss = cross_entropy(x, tensor({0, 1, 2, 3, 4, 0}));
    EXPECT_EQ(loss.dtype(), t);
    EXPECT_NEAR(loss.item<float>(), cross_entropy(x.detach().to(f32), tensor({0, 1, 2, 3, 4, 0})).item<float>(), 0.03);
    EXPECT_TRUE(isfinite(grad(loss, x)).all().item<bool>());
  }
  EXPECT_EQ(cross_entropy(zeros({0, 3}), zeros({0}, {.dtype = i64}), {.reduction = Reduce::sum}).item<float>(), 0);
  EXPECT_TRUE(std::isnan(cross_entropy(zeros({0, 3}), zeros({0}, {.dtype = i64})).item<float>()));
  EXPECT_TRUE(std::isnan(cross_entropy(zeros({2, 3}), tensor({-100, -100})).item<float>()));
}

TEST(LossExtremes, StayFinite) {
  for (DType t : {f32, f64}) {
    Tensor x = tensor({{1e30, -1e30, 0.0}, {-1e4, 1e4, 1e4}}).to(t).requires_grad_();
    const Tensor loss = cross_entropy(x, tensor({0, 2}));
    EXPECT_NEAR(loss.item<double>(), std::log(2) / 2, 1e-6);
    EXPECT_TRUE(isfinite(grad(loss, x)).all().item<bool>());

    Tensor z = tensor({1e30, -1e30, 200.0, -200.0}).to(t).requires_grad_();
    const Tensor answers = tensor({1, 0, 1, 0});
    for (const Tensor& l :
         {binary_cross_entropy_with_logits(z, answers), sigmoid_focal_loss(z, answers, {.reduction = Reduce::mean})}) {
      EXPECT_LT(l.item<double>(), 1e-80);
      EXPECT_TRUE(isfinite(grad(l, z)).all().item<bool>());
    }
    Tensor p = tensor({0.0, 1.0}).to(t).requires_grad_();
    const Tensor wrong = binary_cross_entropy(p, tensor({1.0, 0.0}));
    EXPECT_EQ(wrong.item<double>(), 100);  // the logarithm is held at -100
    EXPECT_TRUE(isfinite(grad(wrong, p)).all().item<bool>());
    Tensor m = tensor({-1e4, 1e4}).to(t).requires_grad_();
    EXPECT_TRUE(isfinite(grad(soft_margin_loss(m, tensor({1, 1})), m)).all().item<bool>());
    EXPECT_EQ(kl_div(tensor({-1.0, -2.0}), tensor({0.0, 0.0}), {.reduction = Reduce::sum}).item<double>(), 0);
  }
  // An ignored row may hold anything.
  const Tensor x = tensor({{0.f, 0.f}, {-INFINITY, 0.f}});
  EXPECT_NEAR(cross_entropy(x, tensor({0, -100})).item<float>(), std::log(2.f), 1e-6);
}

TEST(LossExtremes, CTCTargetsThatDoNotFit) {
  Tensor x = zeros({2, 1, 3}).requires_grad_();
  const auto loss = [&](bool zero) {
    return ctc_loss(log_softmax(x, 2), tensor({{1, 1}}), {2}, {2}, {.zero_infinity = zero});
  };
  EXPECT_TRUE(std::isinf(loss(false).item<float>()));
  EXPECT_EQ(loss(true).item<float>(), 0);
  EXPECT_EQ(max(abs(grad(loss(true), x))).item<float>(), 0);
}

TEST(LossExtremes, CTCOfOneSequence) {
  const Tensor x = log_softmax(sin(arange(20.).to(f64)).reshape({5, 4}), 1), labels = tensor({1, 2});
  for (const Reduce how : {Reduce::none, Reduce::sum, Reduce::mean}) {
    const Tensor loss = ctc_loss(x, labels, {5}, {2}, {.reduction = how});
    EXPECT_EQ(loss.shape(), Shape());
    EXPECT_NEAR(loss.item<double>(), how == Reduce::mean ? 1.9695491791 : 3.9390983582, 1e-6);
  }
}

TEST(LossExtremes, CosinesOfLargeHalves) {
  const Tensor a = full({1, 4}, 300, {.dtype = f16}), loss = cosine_embedding_loss(a, a * 0.5, tensor<float>({1}));
  EXPECT_EQ(loss.dtype(), f16);
  EXPECT_NEAR(loss.item<double>(), 0, 1e-3);
}

std::string error_of(const std::function<Tensor()>& f) {
  const auto r = attempt(f);
  return r ? "" : r.error().what();
}

TEST(ErrorsLoss, OptionsDoNotGrowTheLosses) {
  const Tensor x = full({1, 3}, 0.5), four = ones({4, 3}), deep = ones({1, 1, 3});
  for (const Tensor& large : {four, deep}) {
    EXPECT_NE(error_of([&] { return binary_cross_entropy(x, x, {.weight = large}); }), "");
    EXPECT_NE(error_of([&] { return binary_cross_entropy_with_logits(x, x, {.weight = large}); }), "");
    EXPECT_NE(error_of([&] { return binary_cross_entropy_with_logits(x, x, {.pos_weight = large}); }), "");
    EXPECT_NE(error_of([&] { return gaussian_nll_loss(x, x, large); }), "");
  }
  EXPECT_EQ(error_of([&] {
              return gaussian_nll_loss(x, x, ones({4, 3}));
            }),
            "gaussian_nll_loss: var [4, 3] does not fit the input [1, 3]");
  EXPECT_NE(error_of([&] { return gaussian_nll_loss(four, four, ones({1, 3})); }), "");
  EXPECT_EQ(error_of([&] { return gaussian_nll_loss(x, x, ones({1})); }), "");
  EXPECT_EQ(error_of([&] { return gaussian_nll_loss(x, x, ones({1, 1})); }), "");
  EXPECT_EQ(error_of([&] { return binary_cross_entropy(x, x, {.weight = ones({3})}); }), "");
  EXPECT_EQ(error_of([&] { return binary_cross_entropy_with_logits(x, x, {.pos_weight = ones({3})}); }), "");
}

TEST(ErrorsLoss, SayWhatIsWrong) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_of([&] {
              return cross_entropy(x, tensor({0, 3}));
            }),
            "cross_entropy: label 3 (number 1) is not one of the 3 classes");
  EXPECT_EQ(error_of([&] {
              return nll_loss(x, tensor({-1, 0}));
            }),
            "nll_loss: label -1 (number 0) is not one of the 3 classes");
  EXPECT_EQ(error_of([&] {
              return multi_margin_loss(x, tensor({0, -1}));
            }),
            "multi_margin_loss: label -1 (number 1) is not one of the 3 classes");
  EXPECT_EQ(error_of([&] {
              return cross_entropy(x, tensor({0, 1, 2}));
            }),
            "cross_entropy: scores [2, 3] need labels [2], not [3]");
  EXPECT_EQ(
      error_of([&] {
        return cross_entropy(x, tensor({0.f, 1.f}));
      }),
      "cross_entropy: a target of f32 holds probabilities in the shape of the scores, [2, 3], not [2]; labels are "
      "integers: target.to(i64)");
  EXPECT_EQ(error_of([&] {
              return cross_entropy(x, tensor({0, 1}), {.weight = ones({2})});
            }),
            "cross_entropy: weight [2] does not fit 3 classes");
  EXPECT_EQ(error_of([&] {
              return mse_loss(x, zeros({2, 1}));
            }),
            "mse_loss: input [2, 3] and target [2, 1] differ in shape");
  EXPECT_EQ(error_of([&] {
              return ctc_loss(zeros({4, 1, 3}), tensor({{5}}), {4}, {1});
            }),
            "ctc_loss: label 5 is not one of the 3 classes");
  for (const std::function<Tensor()>& f : std::initializer_list<std::function<Tensor()>>{
           [&] {
             return cross_entropy(x, tensor({true, false}));
           },
           [&] {
             return cross_entropy(zeros({2, 0}), tensor({-100, -100}));
           },
           [&] {
             return cross_entropy(zeros({2, 3}, {.dtype = i64}), tensor({0, 1}));
           },
           [&] {
             return cross_entropy(x, tensor({0, 1}), {.label_smoothing = 1.5});
           },
           [&] {
             return cross_entropy(x, zeros({3, 3}));
           },
           [&] { return cross_entropy(Tensor(), tensor({0})); },
           [&] { return binary_cross_entropy(tensor({1.5}), tensor({1.0})); },
           [&] { return binary_cross_entropy_with_logits(tensor({1}), tensor({1})); },
           [&] { return smooth_l1_loss(x, x, {.beta = -1}); },
           [&] { return huber_loss(x, x, {.delta = 0}); },
           [&] { return gaussian_nll_loss(x, x, x - 1); },
           [&] {
             return cosine_embedding_loss(x, x, zeros({3, 2}));
           },
           [&] {
             return multi_margin_loss(x, tensor({0, 1}), {.p = 3});
           },
           [&] {
             return ctc_loss(zeros({4, 1, 3}), tensor({{1}}), {5}, {1});
           },
           [&] {
             return ctc_loss(zeros({4, 1, 3}), tensor({{1}}), {4}, {1, 1});
           },
           [&] {
             return ctc_loss(zeros({4, 1, 3}), tensor({1, 2}), {4}, {1});
           },
           [&] {
             return ctc_loss(zeros({4, 1, 3}), tensor({{1}}), {4}, {1}, {.blank = 3});
           },
       })
    EXPECT_THROW(f(), Error);
}

TEST(ErrorsLoss, NonFiniteOnRequest) {
  const Tensor good = tensor({1.f, 2.f}), bad = tensor({1.f, NAN, INFINITY});
  EXPECT_TRUE(equal(check_finite(good), good));
  const Tensor& kept = check_finite(good * 2);  // of a temporary: a handle of its own
  EXPECT_TRUE(equal(kept, good * 2));
  EXPECT_EQ(error_of([&] { return check_finite(bad); }), "check_finite: 2 of 3 losses are NaN or infinite");
  EXPECT_EQ(error_of([&] { return check_finite(bad.sum()); }), "check_finite: the loss is nan");
}

TEST(LossLayers, HoldTheirOptions) {
  const Tensor x = randn({4, 3}), t = tensor({0, 1, 2, 0});
  const nn::CrossEntropyLoss criterion{{.label_smoothing = 0.1}};
  EXPECT_TRUE(equal(criterion(x, t), cross_entropy(x, t, {.label_smoothing = 0.1})));
  const nn::MSELoss sum{{.reduction = Reduce::sum}};
  EXPECT_TRUE(equal(sum(x, x * 2), square(x).sum()));
  EXPECT_EQ(nn::TripletMarginLoss{}(x, x, x).item<float>(), 1);
  EXPECT_TRUE(equal(nn::CTCLoss{}(log_softmax(randn({4, 1, 3}) * 0, 2), tensor({{1}}), {4}, {1}),
                    ctc_loss(log_softmax(zeros({4, 1, 3}), 2), tensor({{1}}), {4}, {1})));
}

TEST(LossCrossEntropy, LabelsThatChangeBeforeTheBackwardPassAreAnError) {
  const Tensor x = randn({3, 4}).requires_grad_();
  Tensor labels = tensor<int64_t>({0, 1, 2});
  const Tensor loss = cross_entropy(x, labels);
  labels.fill_(1 << 20);
  const auto r = attempt([&] { return grad(loss, x); });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind(), Error::Kind::autograd);
}

}  // namespace
}  // namespace volta::test

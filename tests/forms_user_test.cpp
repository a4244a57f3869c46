// Programs written for PyTorch from memory: the short forms that its users reach for first.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include <volta/volta.h>

namespace volta::test {
namespace {

using Doubles = std::vector<double>;

Doubles values(const Tensor& x) { return x.to(f64).to_vector<double>(); }
template <class T> std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

TEST(FormsGrad, OneCotangentNeedsNoList) {
  const Tensor x = tensor<double>({1, 2, 3}).requires_grad_(), y = x * x, v = tensor<double>({1, 10, 100});
  const auto by = [&](const Cotangents& given) {
    return values(grad(y, x, {.grad_outputs = given, .retain_graph = true}));
  };
  EXPECT_EQ(by(v), (Doubles{2, 40, 600}));
  EXPECT_EQ(by({v}), (Doubles{2, 40, 600}));
  EXPECT_EQ(by(std::vector{v}), (Doubles{2, 40, 600}));
  EXPECT_EQ(values(grad(y, x, {.grad_outputs = ones_like(y), .retain_graph = true})), (Doubles{2, 4, 6}));
  EXPECT_EQ(values(grad(y, x, {.grad_outputs = v * 2, .retain_graph = true})), (Doubles{4, 80, 1200}));
  const Tensor rows = stack({v, v * 2});
  EXPECT_EQ(values(grad(y, x, {.grad_outputs = rows[1], .retain_graph = true})), (Doubles{4, 80, 1200}));
  EXPECT_EQ(values(grad({y, x * 3}, {x}, {.grad_outputs = {v, v}})[0]), (Doubles{5, 70, 900}));
  const auto wrong = attempt([&] { return grad({x * 2, x * 3}, {x}, {.grad_outputs = v}); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), Error::Kind::argument);
}

// The gradient penalty of a Wasserstein GAN, in the words of its paper's code.
TEST(FormsGrad, GradientPenalty) {
  const Tensor w = tensor<double>({0.5, -2}).requires_grad_(), x = tensor<double>({{1, 2}, {3, 4}}).requires_grad_();
  const Tensor score = (x * w).sum(1).square();
  const Tensor slope = grad(score, x, {.grad_outputs = ones_like(score), .create_graph = true});
  ((slope.norm(2, 1) - 1).square()).mean().backward();
  const auto penalty = [](const Tensor& v) {
    const Tensor at = tensor<double>({{1, 2}, {3, 4}});
    return ((2 * (at * v).sum(1) * v.norm()).abs() - 1).square().mean();
  };
  const Tensor copy = w.detach().clone().requires_grad_();
  EXPECT_TRUE(allclose(*w.grad(), grad(penalty(copy), copy), {.rtol = 1e-12}));
}

TEST(FormsGrad, HooksThatOnlyLook) {
  const Tensor x = tensor<double>({1, 2}).requires_grad_(), y = x * 3;
  std::vector<Tensor> seen;
  y.register_hook([&](const Tensor& g) { seen.push_back(g); });
  int calls = 0;
  x.register_hook([&calls](const auto&) mutable { ++calls; });
  const int other = x.register_hook([](const Tensor&) { ADD_FAILURE() << "it was removed"; });
  x.remove_hook(other);
  y.sum().backward();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(values(seen[0]), (Doubles{1, 1}));
  EXPECT_EQ(values(*x.grad()), (Doubles{3, 3}));
  EXPECT_EQ(calls, 1);
  const auto none = attempt([&] { return x.register_hook(std::function<void(const Tensor&)>()); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().op(), "register_hook");
}

TEST(FormsGrad, HessianVectorProduct) {
  const auto f = [](const Tensor& t) { return (t.exp() * t.sum()).sum(); };
  const Tensor x = tensor<double>({0.5, -1, 2}), v = tensor<double>({1, -2, 0.25});
  const auto [value, product] = hvp(f, x, v);
  EXPECT_TRUE(equal(value, f(x)));
  EXPECT_TRUE(allclose(product, matmul(hessian(f, x), v), {.rtol = 1e-12}));
  EXPECT_FALSE(product.requires_grad() || value.requires_grad());
  EXPECT_EQ(values(hvp([](const Tensor& t) { return t.sum(); }, x, v).product), (Doubles{0, 0, 0}));
  EXPECT_EQ(values(hvp([](const Tensor&) { return zeros({}); }, x, v).product), (Doubles{0, 0, 0}));
  for (const auto& bad : {attempt([&] { return hvp([](const Tensor& t) { return t * 2; }, x, v).product; }),
                          attempt([&] { return hvp(f, x, ones({2}, {.dtype = f64})).product; }),
                          attempt([&] { return hvp(nullptr, x, v).product; })}) {
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().op(), "hvp");
  }
}

// Meta-learning: what is checked takes steps of its own, which need a graph.
TEST(FormsGrad, ChecksOfFunctionsThatDifferentiate) {
  const Tensor a = tensor<double>({0.3, -0.7, 0.2}), w = tensor<double>({0.5, -1, 0.25}).requires_grad_();
  const auto adapted = [&](const Tensor& start, double rate) {
    Tensor x = start * 1;
    for (int i = 0; i < 2; ++i) x = x - rate * grad((x * a).sum().tanh() + x.pow(4).sum(), x, {.create_graph = true});
    return x.square().sum();
  };
  const auto f = [&](const Tensor& x) { return adapted(x, 0.05); };
  EXPECT_TRUE(gradcheck(f, w));
  EXPECT_TRUE(gradgradcheck(f, w));
  const auto wrong = [&](const Tensor& x) { return adapted(x, 0.05) + (x * x.detach()).sum(); };
  EXPECT_FALSE(gradcheck(wrong, w));
  const auto bad =
      attempt([&] { return gradcheck([&](const Tensor& x) { return matmul(x, ones({2}, {.dtype = f64})); }, w); });
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind(), Error::Kind::shape);
}

TEST(FormsPrint, NumbersAndAbsentGradients) {
  EXPECT_EQ(printed(tensor(2.5).item()), "2.5");
  EXPECT_EQ(printed(tensor({true}).item()), "1");
  EXPECT_EQ(printed(tensor({-3}).item()), "-3");
  EXPECT_EQ(printed(full({}, 18446744073709551615U, {.dtype = u64}).item()), "18446744073709551615");
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  EXPECT_EQ(printed(x.grad()), "undefined");
  EXPECT_FALSE(x.grad().defined());
  (x * 3).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_EQ(printed(x.grad()), printed(*x.grad()));
}

struct Net {
  nn::Linear a{2, 3}, b{3, 1};
  Tensor operator()(const Tensor& x) const { return b(a(x)); }
};

TEST(FormsState, MadeOfMapsAndLists) {
  Net net;
  const Tensor x = ones({1, 2}), y = net(x).detach();
  std::map<std::string, Tensor> fast;
  for (const auto& [name, p] : named_parameters(net)) fast[name] = p * 2;
  const Tensor hidden = linear(x, fast["a.weight"], fast["a.bias"]);
  const Tensor expected = linear(hidden, fast["b.weight"], fast["b.bias"]);
  EXPECT_TRUE(equal(functional_call(net, fast, x), expected));
  EXPECT_TRUE(equal(functional_call(net, named_parameters(net), x), y));
  Net other;
  load_state_dict(other, named_parameters(net));
  EXPECT_TRUE(equal(other(x), y));

  const StateDict state = fast;
  EXPECT_EQ(state.count("a.weight") + state.count("c"), 1U);
  ASSERT_NE(state.find("b.bias"), state.end());
  EXPECT_EQ(state.find("b.bias")->first, "b.bias");
  EXPECT_EQ(state.find("c"), state.end());
  const std::vector<std::pair<std::string, Tensor>> twice = {{"a", x}, {"a", x}};
  EXPECT_FALSE(attempt([&] { return StateDict(twice).size(); }));
}

TEST(FormsLayers, HooksThatOnlyLook) {
  Net net;
  Tensor seen, given;
  net.a.register_forward_hook([&](const auto&, const auto&, const Tensor& y) { seen = y.detach(); });
  net.b.register_forward_pre_hook([&](auto&, const Tensor& x) { given = x.detach(); });
  const int off = net.a.register_forward_hook(
      [](const nn::Layer&, const Tensor&, const Tensor&) { ADD_FAILURE() << "it was removed"; });
  net.a.remove_hook(off);
  const Tensor y = net(ones({1, 2}));
  EXPECT_TRUE(equal(seen, linear(ones({1, 2}), net.a.weight, net.a.bias)));
  EXPECT_TRUE(equal(given, seen) && equal(y, linear(seen, net.b.weight, net.b.bias)));
  net.b.register_forward_hook([](auto&, auto&, const Tensor& out) { return out * 2; });
  EXPECT_TRUE(equal(net(ones({1, 2})), y * 2));
  const auto none = attempt([&] {
    return net.a.register_forward_hook(std::function<void(const nn::Layer&, const Tensor&, const Tensor&)>());
  });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().op(), "register_forward_hook");
}

TEST(FormsLayers, SequentialWithNames) {
  nn::Sequential net{{"fc", nn::Linear(2, 3)}, {"act", nn::ReLU()}, {"out", nn::Linear(3, 1)}};
  EXPECT_EQ(net.names(), (std::vector<std::string>{"fc", "act", "out"}));
  EXPECT_EQ(named_parameters(net)[0].first, "fc.weight");
  EXPECT_EQ(net(ones({4, 2})).shape(), (Shape{4, 1}));
  EXPECT_EQ((nn::Sequential{nn::Linear(2, 3), nn::ReLU()}).names(), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(nn::Sequential{}.size(), 0U);
  EXPECT_FALSE(attempt([] { return nn::Sequential{{"a", nn::ReLU()}, {"a", nn::ReLU()}}.size(); }));
}

TEST(FormsLayers, DistancesAndUpsampling) {
  const Tensor a = tensor<double>({{3, 4}, {1, 0}}), b = tensor<double>({{4, 3}, {0, 2}});
  EXPECT_TRUE(equal(nn::CosineSimilarity()(a, b), cosine_similarity(a, b)));
  EXPECT_TRUE(equal(nn::CosineSimilarity(0, 1e-3)(a, b), cosine_similarity(a, b, 0, 1e-3)));
  EXPECT_TRUE(equal(nn::PairwiseDistance()(a, b), pairwise_distance(a, b)));
  EXPECT_TRUE(equal(nn::PairwiseDistance(1, 0, true)(a, b), pairwise_distance(a, b, 1, 0, true)));
  const Tensor x = arange(4, {.dtype = f64}).reshape({1, 1, 2, 2});
  EXPECT_TRUE(equal(nn::UpsamplingNearest2d({.scale_factor = 2})(x), interpolate(x, {.scale_factor = 2})));
  EXPECT_TRUE(equal(nn::UpsamplingBilinear2d({.size = {3, 4}})(x),
                    interpolate(x, {.size = {3, 4}, .mode = "bilinear", .align_corners = true})));
  struct Siamese {
    nn::Linear fc{2, 2};
    nn::CosineSimilarity near{1};
    nn::UpsamplingNearest2d up{{.scale_factor = 2}};
  } net;
  EXPECT_EQ(parameters(net).size(), 2U);
}

// F.max_pool2d(x, 3, 2, 1), F.conv2d(x, w, b, 2, 1): and a list in braces is a stride, never stride and padding.
TEST(FormsWindows, StrideAndPaddingByPosition) {
  manual_seed(4);
  const Tensor x = randn({2, 4, 7, 6}), w = randn({6, 2, 3, 3}), b = randn({6});
  EXPECT_TRUE(equal(max_pool2d(x, 3, 2, 1, 2), max_pool2d(x, 3, {.stride = 2, .padding = 1, .dilation = 2})));
  EXPECT_TRUE(equal(max_pool2d(x, 2, {2, 1}), max_pool2d(x, 2, {.stride = {2, 1}})));
  EXPECT_TRUE(equal(max_pool2d(x, {2, 2}, {2, 1}, {1, 0}), max_pool2d(x, 2, {.stride = {2, 1}, .padding = {1, 0}})));
  EXPECT_TRUE(equal(max_pool2d_with_indices(x, 2, 1).indices, max_pool2d_with_indices(x, 2, {.stride = 1}).indices));
  EXPECT_TRUE(equal(avg_pool2d(x, 3, 2, 1), avg_pool2d(x, 3, {.stride = 2, .padding = 1})));
  EXPECT_TRUE(equal(lp_pool2d(x, 2, 3, {2, 1}), lp_pool2d(x, 2, 3, {.stride = {2, 1}})));
  EXPECT_TRUE(equal(max_pool2d(x, 2, {}), max_pool2d(x, 2)));
  EXPECT_TRUE(equal(conv2d(x, w, b, 2, 1, 1, 2), conv2d(x, w, b, {.stride = 2, .padding = 1, .groups = 2})));
  EXPECT_TRUE(
      equal(conv2d(x, w, {}, {2, 1}, 0, 2, 2), conv2d(x, w, {}, {.stride = {2, 1}, .dilation = 2, .groups = 2})));
  EXPECT_TRUE(equal(conv2d(x, w, b, 1, "same", 1, 2), conv2d(x, w, b, {.padding = "same", .groups = 2})));
  const Tensor up = randn({4, 3, 2, 2});
  EXPECT_TRUE(equal(conv_transpose2d(x, up, {}, 3, 1, 2),
                    conv_transpose2d(x, up, {}, {.stride = 3, .padding = 1, .output_padding = 2})));
  const Tensor line = randn({1, 4, 5}), kernel = randn({4, 3, 2});
  EXPECT_TRUE(equal(conv_transpose1d(line, kernel, {}, {2}), conv_transpose1d(line, kernel, {}, {.stride = 2})));
}

TEST(FormsWindows, ColumnsAndUnpoolingByPosition) {
  const Tensor x = arange(36).to(f32).reshape({1, 1, 6, 6});
  const Tensor columns = im2col(x, 2, {.dilation = {2, 1}, .padding = 1, .stride = 2});
  EXPECT_TRUE(equal(im2col(x, 2, {2, 1}, 1, 2), columns));
  EXPECT_TRUE(equal(nn::Unfold(2, {2, 1}, 1, 2)(x), columns));
  EXPECT_TRUE(equal(im2col(x, 3, 1, 0, 3), im2col(x, 3, {.stride = 3})));
  EXPECT_TRUE(equal(nn::Unfold(3, 1, 0, 3)(x), im2col(x, 3, {.stride = 3})));
  const Tensor back = col2im(columns, 6, 2, {.dilation = {2, 1}, .padding = 1, .stride = 2});
  EXPECT_TRUE(equal(col2im(columns, 6, 2, {2, 1}, 1, 2), back));
  EXPECT_TRUE(equal(nn::Fold(6, 2, {2, 1}, 1, 2)(columns), back));
  const auto [y, places] = max_pool2d_with_indices(x, {2, 1}, {2, 1});
  EXPECT_TRUE(equal(max_unpool2d(y, places, {2, 1}, {2, 1}), max_unpool2d(y, places, {2, 1}, {.stride = {2, 1}})));
  EXPECT_TRUE(equal(nn::MaxUnpool2d({2, 1}, {2, 1})(y, places), max_unpool2d(y, places, {2, 1})));
}

TEST(FormsWindows, LayersByPosition) {
  const auto with = [](auto layer, const Tensor& x) {
    NoGrad off;
    for (auto& p : parameters(layer)) p.fill_(0.5);
    return layer(x);
  };
  const Tensor x = arange(4 * 7 * 6).to(f32).reshape({1, 4, 7, 6});
  EXPECT_TRUE(equal(with(nn::Conv2d(4, 3, 3, 2, 1), x), with(nn::Conv2d(4, 3, 3, {.stride = 2, .padding = 1}), x)));
  EXPECT_TRUE(equal(with(nn::Conv2d(4, 3, {3, 2}, {2, 1}, {1, 0}, {.bias = false}), x),
                    with(nn::Conv2d(4, 3, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .bias = false}), x)));
  EXPECT_TRUE(equal(with(nn::Conv2d(4, 3, 3, 1, "same"), x), with(nn::Conv2d(4, 3, 3, {.padding = "same"}), x)));
  EXPECT_TRUE(equal(with(nn::ConvTranspose2d(4, 3, 4, 2, 1, {.bias = false}), x),
                    with(nn::ConvTranspose2d(4, 3, 4, {.stride = 2, .padding = 1, .bias = false}), x)));
  EXPECT_TRUE(
      equal(with(nn::ConvTranspose2d(4, 3, 2, {2, 1}), x), with(nn::ConvTranspose2d(4, 3, 2, {.stride = {2, 1}}), x)));
  EXPECT_TRUE(equal(nn::MaxPool2d(2, {2, 1})(x), max_pool2d(x, 2, {.stride = {2, 1}})));
  EXPECT_TRUE(equal(nn::AvgPool2d(3, {2, 1}, 1)(x), avg_pool2d(x, 3, {.stride = {2, 1}, .padding = 1})));
  EXPECT_TRUE(equal(nn::LPPool2d(2, 2, {2, 1})(x), lp_pool2d(x, 2, 2, {.stride = {2, 1}})));
  EXPECT_EQ(nn::Conv2d(4, 3, 3, {}).options.stride.given(), Shape{1});
  EXPECT_FALSE(attempt([] { return nn::Conv2d(4, 3, 3, 2, 1, {.stride = 3}); }));
  EXPECT_FALSE(attempt([] { return nn::Conv2d(4, 3, 3, 2, 1, {.padding = "same"}); }));
  EXPECT_FALSE(attempt([] { return nn::ConvTranspose1d(4, 3, 3, 2, 1, {.padding = 1}); }));

  EXPECT_FALSE(nn::Linear(3, 2, false).bias.defined());
  EXPECT_TRUE(nn::Linear(3, 2, true).bias.defined() && nn::Linear(3, 2, {}).bias.defined());
  EXPECT_EQ(parameters(nn::LSTM(3, 4, 2, {.bidirectional = true})).size(), 16U);
  EXPECT_EQ(parameters(nn::GRU(3, 4, 3)).size(), 12U);
  EXPECT_EQ(nn::RNN(3, 4, 2, {.nonlinearity = "relu"}).options.num_layers, 2);
  EXPECT_FALSE(attempt([] { return nn::GRU(3, 4, 3, {.num_layers = 2}); }));
}

TEST(FormsLengths, AsTensors) {
  manual_seed(2);
  const Tensor x = randn({2, 5, 3}), lengths = tensor({3, 5});
  EXPECT_TRUE(equal(pack_padded_sequence(x, lengths, true).data, pack_padded_sequence(x, {3, 5}, true).data));
  EXPECT_EQ(unpad_sequence(x, lengths.to(u8), true)[0].shape(), (Shape{3, 3}));
  const Tensor logits = log_softmax(randn({5, 2, 4}), 2), labels = tensor({{1, 2}, {3, 0}});
  const Tensor steps = tensor({5, 4}), of_labels = tensor({2, 1});
  const Tensor expected = ctc_loss(logits, labels, {5, 4}, {2, 1}, {.reduction = "sum"});
  EXPECT_TRUE(equal(ctc_loss(logits, labels, steps, of_labels, {.reduction = "sum"}), expected));
  EXPECT_TRUE(equal(nn::CTCLoss{{.reduction = "sum"}}(logits, labels, steps, of_labels), expected));
  const auto kind_of = [&](const Tensor& wrong) {
    const auto r = attempt([&] { return pack_padded_sequence(x, wrong, true).data; });
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error().op(), "pack_padded_sequence");
    return r.error().kind();
  };
  EXPECT_EQ(kind_of(tensor({3.0, 5.0})), Error::Kind::dtype);
  EXPECT_EQ(kind_of(tensor({{3, 5}})), Error::Kind::shape);
  EXPECT_EQ(kind_of(tensor({3, 6})), Error::Kind::argument);
  EXPECT_EQ(kind_of(Tensor()), Error::Kind::argument);
}

}  // namespace
}  // namespace volta::test

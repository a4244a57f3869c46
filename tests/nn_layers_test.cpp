// The layers: values against formulas, gradients against differences, defaults, state keys, bad input.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <cmath>

namespace volta {
namespace {

using Names = std::vector<std::string>;
constexpr auto wide = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };

bool close(const Tensor& a, const Tensor& b, double tolerance = 1e-5) {
  return a.shape() == b.shape() &&
         allclose(a.detach().to(f64), b.detach().to(f64), {.rtol = tolerance, .atol = tolerance});
}

// Puts given tensors in the places of a model's parameters, in order.
struct Replace final : nn::Visitor {
  explicit Replace(std::span<const Tensor> tensors) : list(tensors) {}
  void parameter(const nn::Path&, nn::Parameter& x) override { static_cast<Tensor&>(x) = list[next++]; }
  std::span<const Tensor> list;
  size_t next = 0;
};

// Gradients by the input and by every parameter, in f64.
template <class L> void check_gradients(L layer, const Tensor& x, bool second = true) {
  to(layer, f64);
  std::vector<Tensor> inputs{x.detach()};
  for (const Tensor& p : parameters(layer)) inputs.push_back(wide(p.shape()));
  for (Tensor& t : inputs) t.requires_grad_();
  const TensorFunction f = [&](const std::vector<Tensor>& in) {
    std::optional<L> copy(layer);
    Replace replace(std::span<const Tensor>(in).subspan(1));
    nn::ModelView(*copy).walk(replace);
    return std::vector<Tensor>{(*copy)(in[0])};
  };
  EXPECT_TRUE(gradcheck_all(f, inputs, {.raise = true}));
  EXPECT_TRUE(!second || gradgradcheck_all(f, inputs, {.raise = true}));
}

std::string text_of(const std::function<void()>& f) {
  const auto r = attempt(f);
  return r ? "no error" : r.error().what();
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(NnLayers, Linear) {
  manual_seed(1);
  nn::Linear fc(64, 32);
  EXPECT_EQ(fc.weight.shape(), (Shape{32, 64}));
  const double bound = 1 / std::sqrt(64.0);
  EXPECT_LE(fc.weight.abs().max().item<double>(), bound);
  EXPECT_GT(fc.weight.abs().max().item<double>(), 0.95 * bound);
  EXPECT_LE(fc.bias.abs().max().item<double>(), bound);
  const Tensor x = randn({5, 64});
  EXPECT_TRUE(close(fc(x), matmul(x, fc.weight.t()) + fc.bias));
  EXPECT_EQ(state_dict(nn::Linear(2, 3, {.bias = false})).names(), (Names{"weight"}));
  EXPECT_EQ(fc.flops(x, fc(x)), 2.0 * 5 * 64 * 32);
  check_gradients(nn::Linear(3, 2), wide({4, 3}));
  for (const int bad : {0, -1}) EXPECT_FALSE(attempt([&] { nn::Linear(3, bad); }));
  EXPECT_TRUE(has(text_of([&] { fc(randn({2, 3})); }), "[2, 3]"));
}

TEST(NnLayers, Bilinear) {
  nn::Bilinear mix(3, 4, 2);
  EXPECT_EQ(state_dict(mix).names(), (Names{"weight", "bias"}));
  const Tensor a = randn({5, 3}), b = randn({5, 4});
  EXPECT_TRUE(close(mix(a, b), einsum("ni,oij,nj->no", {a, mix.weight, b}) + mix.bias));
  EXPECT_EQ(mix(randn({2, 5, 3}), randn({2, 5, 4})).shape(), (Shape{2, 5, 2}));
  EXPECT_FALSE(attempt([&] { mix(a, a); }));
  EXPECT_FALSE(attempt([&] { mix(a, randn({1, 4})); }));
  EXPECT_TRUE(gradcheck([](const Tensor& p, const Tensor& q, const Tensor& w) { return bilinear(p, q, w); },
                        wide({2, 3}).requires_grad_(), wide({2, 4}).requires_grad_(),
                        wide({2, 3, 4}).requires_grad_()));
}

struct Case {
  const char* name;
  nn::AnyModule layer;
  std::function<double(double)> f;
};
// Each activation at points that avoid its corners.
TEST(NnLayers, ActivationsEqualTheirFormulas) {
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const double l = 1.0507009873554805, a = 1.6732632423543772;
  const std::vector<Case> cases{
      {"ReLU", nn::ReLU(), [](double x) { return std::max(x, 0.0); }},
      {"ReLU6", nn::ReLU6(), [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
      {"LeakyReLU", nn::LeakyReLU(0.2), [](double x) { return x > 0 ? x : 0.2 * x; }},
      {"ELU", nn::ELU(1.5), [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }},
      {"SELU", nn::SELU(), [=](double x) { return l * (x > 0 ? x : a * std::expm1(x)); }},
      {"CELU", nn::CELU(2), [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }},
      {"GELU", nn::GELU(), [=](double x) { return x * normal(x); }},
      {"GELU tanh", nn::GELU("tanh"),
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"Sigmoid", nn::Sigmoid(), sigmoid_of},
      {"SiLU", nn::SiLU(), [=](double x) { return x * sigmoid_of(x); }},
      {"Mish", nn::Mish(), [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"Tanh", nn::Tanh(), [](double x) { return std::tanh(x); }},
      {"Softplus", nn::Softplus(2, 5), [](double x) { return 2 * x > 5 ? x : std::log1p(std::exp(2 * x)) / 2; }},
      {"Softsign", nn::Softsign(), [](double x) { return x / (1 + std::abs(x)); }},
      {"Hardtanh", nn::Hardtanh(-2, 1), [](double x) { return std::min(std::max(x, -2.0), 1.0); }},
      {"Hardsigmoid", nn::Hardsigmoid(), [](double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }},
      {"Hardswish", nn::Hardswish(), [](double x) { return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }},
      {"LogSigmoid", nn::LogSigmoid(), [=](double x) { return std::log(sigmoid_of(x)); }},
      {"Threshold", nn::Threshold(0.5, 7), [](double x) { return x > 0.5 ? x : 7.0; }},
      {"Tanhshrink", nn::Tanhshrink(), [](double x) { return x - std::tanh(x); }},
      {"Softshrink", nn::Softshrink(0.7), [](double x) { return x > 0.7    ? x - 0.7
                                                                : x < -0.7 ? x + 0.7
                                                                           : 0; }},
      {"Hardshrink", nn::Hardshrink(0.7), [](double x) { return std::abs(x) > 0.7 ? x : 0; }},
      {"Identity", nn::Identity(), [](double x) { return x; }},
      {"RReLU in eval", nn::RReLU(0.1, 0.3), [](double x) { return x > 0 ? x : 0.2 * x; }},
      {"PReLU", nn::PReLU(), [](double x) { return x > 0 ? x : 0.25 * x; }}};
  const Tensor x = tensor<double>({-7.3, -3.1, -1.9, -0.6, -0.2, 0.3, 0.6, 1.4, 2.2, 6.6}).reshape({2, 5});
  for (Case c : cases) {
    eval(c.layer);
    to(c.layer, f64);
    std::vector<double> expected;
    for (const double v : x.to_vector<double>()) expected.push_back(c.f(v));
    EXPECT_TRUE(close(c.layer(x), tensor(expected, {2, 5}), 1e-12)) << c.name;
    Tensor leaf = x.detach();
    leaf.requires_grad_();
    EXPECT_TRUE(gradcheck([&](const Tensor& in) { return c.layer(in); }, leaf)) << c.name;
  }
  EXPECT_FALSE(attempt([] { nn::GELU("fast"); }));
  EXPECT_FALSE(attempt([] { nn::RReLU(2, 1); }));
}

TEST(NnLayers, ActivationsAlongAnAxis) {
  const Tensor x = randn({2, 4, 3, 5});
  EXPECT_TRUE(equal(nn::Softmax(1)(x), softmax(x, 1)));
  EXPECT_TRUE(equal(nn::LogSoftmax(-1)(x), log_softmax(x, -1)));
  EXPECT_TRUE(equal(nn::Softmin(0)(x), softmax(-x, 0)));
  EXPECT_TRUE(equal(nn::Softmax2d()(x), softmax(x, 1)));
  EXPECT_TRUE(equal(nn::Softmax2d()(x[0]), softmax(x[0], 0)));
  EXPECT_TRUE(close(nn::GLU(1)(x), x.narrow(1, 0, 2) * sigmoid(x.narrow(1, 2, 2))));
  EXPECT_FALSE(attempt([&] { nn::GLU(2)(x); }));
  EXPECT_FALSE(attempt([&] { nn::Softmax2d()(randn({2, 2})); }));
  nn::PReLU slopes(4);
  nn::init::normal_(slopes.weight);
  EXPECT_TRUE(close(slopes(x), where(x > 0, x, x * slopes.weight.reshape({4, 1, 1}))));
  EXPECT_FALSE(attempt([&] { nn::PReLU(3)(x); }));
  check_gradients(nn::PReLU(3), wide({2, 3, 2}));
  const nn::RReLU random;
  const Tensor y = random(full({1000}, -1.0));
  EXPECT_GE(y.min().item<double>(), -1.0 / 3 - 1e-6);
  EXPECT_LE(y.max().item<double>(), -1.0 / 8 + 1e-6);
  EXPECT_GT(y.std().item<double>(), 0.04);
}

TEST(NnLayers, Rearranging) {
  const Tensor x = arange(0, 2 * 8 * 2 * 3).reshape({2, 8, 2, 3});
  EXPECT_EQ(nn::Flatten()(x).shape(), (Shape{2, 48}));
  EXPECT_EQ(nn::Flatten(0, 1)(x).shape(), (Shape{16, 2, 3}));
  EXPECT_TRUE(equal(nn::Unflatten(1, {2, -1})(x), x.reshape({2, 2, 4, 2, 3})));
  const Tensor big = nn::PixelShuffle(2)(x);
  EXPECT_EQ(big.shape(), (Shape{2, 2, 4, 6}));
  for (int c = 0; c < 2; ++c)
    for (int h = 0; h < 4; ++h)
      for (int w = 0; w < 6; ++w)
        EXPECT_EQ((big[{1, c, h, w}].item<int>()), (x[{1, c * 4 + h % 2 * 2 + w % 2, h / 2, w / 2}].item<int>()));
  EXPECT_TRUE(equal(nn::PixelUnshuffle(2)(big), x));
  EXPECT_EQ(pixel_shuffle(zeros({0, 4, 2, 2}), 2).shape(), (Shape{0, 1, 4, 4}));
  EXPECT_FALSE(attempt([&] { nn::PixelShuffle(3)(x); }));
  EXPECT_FALSE(attempt([&] { nn::PixelUnshuffle(2)(x.narrow(3, 0, 3)); }));
  EXPECT_FALSE(attempt([&] { nn::PixelShuffle(0)(x); }));
}

TEST(NnLayers, Padding) {
  const Tensor x = arange(0, 24).reshape({1, 2, 3, 4}).to(f32);
  EXPECT_TRUE(equal(nn::ZeroPad2d(1)(x), pad(x, {1, 1, 1, 1})));
  EXPECT_TRUE(equal(nn::ConstantPad2d({1, 0, 2, 0}, 7)(x), pad(x, {1, 0, 2, 0}, {.value = 7})));
  EXPECT_TRUE(equal(nn::ReflectionPad2d(2)(x), pad(x, {2, 2, 2, 2}, {.mode = "reflect"})));
  EXPECT_TRUE(equal(nn::ReplicationPad2d({1, 2, 3, 4})(x), pad(x, {1, 2, 3, 4}, {.mode = "replicate"})));
  EXPECT_TRUE(equal(nn::CircularPad2d(1)(x), pad(x, {1, 1, 1, 1}, {.mode = "circular"})));
  EXPECT_EQ(nn::ZeroPad1d(2)(x[0]).shape(), (Shape{2, 3, 8}));
  EXPECT_EQ(nn::ConstantPad3d(1, 0.0)(x.unsqueeze(0)).shape(), (Shape{1, 1, 4, 5, 6}));
  EXPECT_TRUE(has(text_of([] { nn::ZeroPad2d({1, 2}); }), "ZeroPad2d"));
  EXPECT_FALSE(attempt([&] { nn::ReflectionPad2d(3)(x); }));
}

// Mean 0 and variance 1 per group of equal `owner`.
TEST(NnNorm, LayerNorm) {
  nn::LayerNorm ln({3, 4});
  EXPECT_EQ(state_dict(ln).names(), (Names{"weight", "bias"}));
  nn::init::normal_(ln.weight), nn::init::normal_(ln.bias);
  const Tensor x = randn({5, 3, 4}) * 3 + 1;
  const Tensor mean = x.mean({1, 2}, true), var = volta::var(x, {1, 2}, {.correction = 0, .keepdim = true});
  EXPECT_TRUE(close(ln(x), (x - mean) / sqrt(var + 1e-5) * ln.weight + ln.bias));
  EXPECT_EQ(parameters(nn::LayerNorm(4, {.bias = false})).size(), 1u);
  EXPECT_TRUE(parameters(nn::LayerNorm(4, {.elementwise_affine = false})).empty());
  EXPECT_TRUE(has(text_of([&] { ln(randn({5, 4, 3})); }), "[3, 4]"));
  EXPECT_FALSE(attempt([&] { ln(randn({4})); }));
  EXPECT_FALSE(attempt([&] { layer_norm(arange(0, 4), {4}); }));
  check_gradients(nn::LayerNorm(4), wide({2, 4}));
  to(ln, bf16);
  EXPECT_EQ(ln(x.to(bf16)).dtype(), bf16);
  EXPECT_TRUE(
      close(layer_norm(full({2, 4096}, 1000).to(f16), {4096}), zeros({2, 4096}), 1e-3));  // halves do not overflow
}

TEST(NnNorm, RMSNorm) {
  nn::RMSNorm norm(6, {.eps = 1e-6});
  nn::init::normal_(norm.weight);
  const Tensor x = randn({3, 6});
  EXPECT_TRUE(close(norm(x), x / sqrt(x.square().mean(-1, true) + 1e-6) * norm.weight));
  EXPECT_TRUE(isfinite(nn::RMSNorm(4)(zeros({1, 4}))).all().item<bool>());
  EXPECT_FALSE(attempt([&] { norm(randn({3, 5})); }));
  check_gradients(nn::RMSNorm(4), wide({2, 4}));
}

TEST(NnNorm, GroupNorm) {
  nn::GroupNorm norm(2, 6);
  nn::init::normal_(norm.weight), nn::init::normal_(norm.bias);
  const Tensor x = randn({3, 6, 4, 2}), grouped = x.reshape({3, 2, 24});
  const Tensor centered = grouped - grouped.mean(2, true);
  const Tensor expected =
      (centered / sqrt(centered.square().mean(2, true) + 1e-5)).reshape({3, 6, 4, 2}) * norm.weight.reshape({6, 1, 1}) +
      norm.bias.reshape({6, 1, 1});
  EXPECT_TRUE(close(norm(x), expected));
  EXPECT_FALSE(attempt([] { nn::GroupNorm(4, 6); }));
  EXPECT_FALSE(attempt([] { nn::GroupNorm(0, 6); }));
  EXPECT_FALSE(attempt([&] { norm(randn({3, 4, 2})); }));
  EXPECT_FALSE(attempt([&] { group_norm(randn({4}), 2); }));
  check_gradients(nn::GroupNorm(2, 4), wide({2, 4, 3}), false);
}

TEST(NnNorm, BatchNorm) {
  nn::BatchNorm2d norm(3);
  EXPECT_EQ(state_dict(norm).names(), (Names{"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}));
  nn::init::normal_(norm.weight), nn::init::normal_(norm.bias);
  const Tensor x = randn({4, 3, 5, 2}) * 2 + 3;
  const Tensor mean = x.mean({0, 2, 3}), var = volta::var(x, {0, 2, 3}, {.correction = 0}),
               free = volta::var(x, {0, 2, 3});
  const auto shaped = [](const Tensor& v) { return v.reshape({3, 1, 1}); };
  const auto with = [&](const Tensor& m, const Tensor& v) {
    return (x - shaped(m)) / sqrt(shaped(v) + 1e-5) * shaped(norm.weight) + shaped(norm.bias);
  };
  EXPECT_TRUE(close(norm(x), with(mean, var)));
  EXPECT_TRUE(close(norm.running_mean, mean * 0.1));
  EXPECT_TRUE(close(norm.running_var, free * 0.1 + 0.9));
  EXPECT_EQ(norm.num_batches_tracked.item<int>(), 1);
  eval(norm);
  EXPECT_TRUE(close(norm(x), with(norm.running_mean, norm.running_var)));
  EXPECT_EQ(norm.num_batches_tracked.item<int>(), 1);
  check_gradients(nn::BatchNorm1d(2), wide({3, 2}));
  check_gradients(nn::BatchNorm3d(2), wide({2, 2, 1, 2, 1}), false);
  nn::BatchNorm1d fixed(2);
  eval(fixed);
  check_gradients(fixed, wide({3, 2, 2}));
}

// As in files of before PyTorch 0.4.1, which torchvision still publishes.
TEST(NnNorm, CountsOfBatchesMayBeAbsent) {
  nn::Sequential net(nn::Linear(3, 2), nn::BatchNorm1d(2)), target(nn::Linear(3, 2), nn::BatchNorm1d(2));
  (void)net(randn({5, 3})), (void)target(randn({5, 3})), (void)target(randn({5, 3}));
  StateDict state;
  for (const auto& [name, x] : state_dict(net))
    if (!name.ends_with("num_batches_tracked")) state.add(name, x);
  ASSERT_EQ(state.size(), 6u);
  EXPECT_TRUE(load_state_dict(target, state).complete());
  const StateDict loaded = state_dict(target);
  EXPECT_TRUE(equal(loaded.at("1.running_mean"), state.at("1.running_mean")));
  EXPECT_EQ(loaded.at("1.num_batches_tracked").item<int64_t>(), 2);  // stays as it was
  nn::BatchNorm1d norm(2);
  load_state_dict(norm, StateMap().select("1.*").strip_prefix("1.").apply(state));
  state.erase("1.running_mean");
  EXPECT_TRUE(has(text_of([&] { load_state_dict(target, state); }), "missing: 1.running_mean"));
  struct Other {
    nn::Linear my_num_batches_tracked{2, 2};
  } other;
  EXPECT_TRUE(has(text_of([&] { load_state_dict(other, StateDict{}); }), "missing: my_num_batches_tracked.weight"));
}

TEST(NnNorm, BatchNormOptions) {
  nn::BatchNorm1d average(2, {.momentum = std::nullopt});
  const Tensor a = randn({8, 2}), b = randn({8, 2}) + 4;
  average(a), average(b);
  EXPECT_TRUE(close(average.running_mean, (a.mean(0) + b.mean(0)) / 2));
  nn::BatchNorm1d own(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(state_dict(own).empty());
  eval(own);
  EXPECT_TRUE(close(own(b).mean(0), zeros({2})));
  nn::BatchNorm1d norm(2);
  EXPECT_TRUE(has(text_of([&] { norm(randn({1, 2})); }), "[1, 2]"));
  EXPECT_TRUE(equal(norm.running_mean, zeros({2})));  // untouched by the failed call
  EXPECT_EQ(norm(randn({1, 2, 5})).shape(), (Shape{1, 2, 5}));
  EXPECT_TRUE(has(text_of([&] { norm(randn({4, 3})); }), "channels"));
  EXPECT_FALSE(attempt([&] { norm(randn({4, 2, 3, 3})); }));
  EXPECT_FALSE(attempt([&] { nn::BatchNorm2d(2)(randn({4, 2})); }));
  EXPECT_FALSE(attempt([] { nn::BatchNorm2d(0); }));
  EXPECT_FALSE(attempt([&] { batch_norm(a, {}, {}); }));
  eval(norm);
  EXPECT_EQ(norm(randn({1, 2})).shape(), (Shape{1, 2}));
}

TEST(NnNorm, InstanceNorm) {
  nn::InstanceNorm2d norm(3, {.affine = true, .track_running_stats = true});
  nn::init::normal_(norm.weight), nn::init::normal_(norm.bias);
  const Tensor x = randn({4, 3, 5, 2}) + 1;
  const Tensor mean = x.mean({2, 3}, true), var = volta::var(x, {2, 3}, {.correction = 0, .keepdim = true});
  const Tensor expected = (x - mean) / sqrt(var + 1e-5) * norm.weight.reshape({3, 1, 1}) + norm.bias.reshape({3, 1, 1});
  EXPECT_TRUE(close(norm(x), expected));
  EXPECT_TRUE(close(norm.running_mean, x.mean({0, 2, 3}) * 0.1));
  EXPECT_TRUE(close(norm(x[0]), expected[0]));
  EXPECT_TRUE(state_dict(nn::InstanceNorm1d(3)).empty());
  EXPECT_FALSE(attempt([&] { norm(randn({4, 2, 5, 2})); }));
  EXPECT_FALSE(attempt([&] { norm(randn({4, 3})); }));
  EXPECT_FALSE(attempt([&] { nn::InstanceNorm1d(3)(randn({4, 3, 1})); }));
  eval(norm);
  EXPECT_FALSE(close(norm(x), expected));
  check_gradients(nn::InstanceNorm1d(2, {.affine = true}), wide({2, 2, 3}), false);
}

TEST(NnNorm, LocalResponseNormAndSimilarity) {
  const Tensor x = randn({2, 5, 3}, {.dtype = f64});
  const Tensor y = nn::LocalResponseNorm(4, 0.3, 0.5, 2)(x);
  for (int64_t c = 0; c < 5; ++c) {
    Tensor sum = zeros({2, 3}, {.dtype = f64});
    for (int64_t n = std::max<int64_t>(c - 2, 0); n <= std::min<int64_t>(c + 1, 4); ++n)
      sum = sum + x.select(1, n).square();
    EXPECT_TRUE(close(y.select(1, c), x.select(1, c) / pow(sum * (0.3 / 4) + 2, 0.5), 1e-12));
  }
  EXPECT_FALSE(attempt([] { nn::LocalResponseNorm(0)(randn({1, 2, 3})); }));
  const Tensor a = randn({3, 4}), b = randn({3, 4});
  EXPECT_TRUE(close(cosine_similarity(a, b), (a * b).sum(1) / (norm(a, 2, 1) * norm(b, 2, 1))));
  EXPECT_TRUE(close(norm(normalize(a, 3, 0), 3, 0), ones({4})));
  EXPECT_TRUE(equal(normalize(zeros({2, 2})), zeros({2, 2})));
  EXPECT_TRUE(close(pairwise_distance(a, b), norm(a - b + 1e-6, 2, -1)));
}

TEST(NnDropout, DropsAndScales) {
  manual_seed(3);
  const Tensor x = ones({200, 50});
  const nn::Dropout drop(0.3);
  const Tensor y = drop(x);
  EXPECT_NEAR((y == 0).to(f32).mean().item<double>(), 0.3, 0.02);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.7, 1e-6);
  nn::Dropout off(0.3);
  eval(off);
  EXPECT_TRUE(equal(off(x), x));
  EXPECT_TRUE(equal(nn::Dropout(0)(x), x));
  EXPECT_TRUE(equal(nn::Dropout(1)(x), zeros({200, 50})));
  for (const double p : {-0.1, 1.1, std::nan("")}) EXPECT_FALSE(attempt([&] { nn::Dropout{p}; }));
  EXPECT_FALSE(attempt([&] { drop(arange(0, 4)); }));
  manual_seed(7);
  const Tensor first = drop(x);
  manual_seed(7);
  EXPECT_TRUE(equal(drop(x), first));
  Tensor leaf = ones({100}, {.requires_grad = true});
  const Tensor out = drop(leaf);
  out.sum().backward();
  EXPECT_TRUE(equal(*leaf.grad(), out.detach()));
}

TEST(NnDropout, WholeChannels) {
  const Tensor y = nn::Dropout2d(0.5)(ones({40, 20, 3, 3}));
  EXPECT_TRUE(equal(y, y.narrow(2, 0, 1).narrow(3, 0, 1).expand({40, 20, 3, 3})));
  EXPECT_NEAR((y == 0).to(f32).mean().item<double>(), 0.5, 0.06);
  EXPECT_EQ(nn::Dropout1d()(ones({4, 5})).shape(), (Shape{4, 5}));
  EXPECT_EQ(nn::Dropout3d()(ones({2, 4, 2, 2, 2})).shape(), (Shape{2, 4, 2, 2, 2}));
  EXPECT_FALSE(attempt([] { nn::Dropout2d()(ones({4, 5})); }));
  // [n, c, l], as PyTorch reads three axes: a draw for each sample and channel.
  const Tensor z = nn::Dropout2d(0.5)(ones({40, 20, 3}));
  EXPECT_TRUE(equal(z, z.narrow(2, 0, 1).expand({40, 20, 3})));
  EXPECT_NEAR((z == 0).to(f32).mean().item<double>(), 0.5, 0.06);
  EXPECT_FALSE(equal(z, z.narrow(1, 0, 1).expand({40, 20, 3})));
}

TEST(NnDropout, AlphaKeepsMeanAndVariance) {
  manual_seed(5);
  const Tensor x = randn({400, 500});
  for (const Tensor& y : {nn::AlphaDropout(0.2)(x), nn::FeatureAlphaDropout(0.2)(x)}) {
    EXPECT_NEAR(y.mean().item<double>(), 0, 0.02);
    EXPECT_NEAR(y.std().item<double>(), 1, 0.02);
  }
}

TEST(NnEmbedding, RowsPaddingAndNorm) {
  nn::Embedding table(6, 3, {.padding_idx = -1});
  EXPECT_TRUE(equal(table.weight.detach()[5], zeros({3})));
  const Tensor ids = tensor({{1, 5}, {5, 1}});
  const Tensor y = table(ids);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_TRUE(equal(y[{1, 1}], table.weight[1]));
  y.sum().backward();
  const Tensor g = *table.weight.grad();
  EXPECT_TRUE(equal(g[1], full({3}, 2.0)));
  EXPECT_TRUE(equal(g[5], zeros({3})));
  nn::Embedding often(6, 3, {.scale_grad_by_freq = true});
  EXPECT_TRUE(equal(often(ids), embedding(ids, often.weight)));
  often(ids).sum().backward();
  EXPECT_TRUE(close((*often.weight.grad())[1], ones({3})));
  nn::Embedding shortened(4, 3, {.max_norm = 0.5});
  nn::init::constant_(shortened.weight, 2);
  EXPECT_TRUE(close(norm(shortened(tensor({1, 1, 2})), 2, 1), full({3}, 0.5)));
  EXPECT_TRUE(close(shortened.weight.detach()[0], full({3}, 2.0)));
  EXPECT_TRUE(close(norm(shortened.weight.detach()[2]), tensor(0.5)));
  EXPECT_FALSE(attempt([&] { table(tensor({6})); }));
  EXPECT_FALSE(attempt([&] { table(tensor({0.5})); }));
  EXPECT_FALSE(attempt([] { nn::Embedding(4, 2, {.padding_idx = 4}); }));
  EXPECT_FALSE(attempt([] { nn::Embedding(0, 2); }));
  const auto fixed = nn::Embedding::from_pretrained(ones({3, 2}));
  EXPECT_FALSE(fixed.weight.requires_grad());
  EXPECT_TRUE(equal(fixed(tensor({2})), ones({1, 2})));
}

TEST(NnEmbedding, Bags) {
  const Tensor ids = tensor({1, 2, 4, 5, 4, 3}), offsets = tensor({0, 2, 2, 5});
  nn::EmbeddingBag sum(6, 3, {.mode = "sum"}), mean(6, 3), max(6, 3, {.mode = "max"});
  const auto rows = [&](const nn::EmbeddingBag& bag, const std::vector<int64_t>& list) {
    return bag.weight.detach().index_select(0, tensor(list));
  };
  const Tensor s = sum(ids, offsets), m = mean(ids, offsets), x = max(ids, offsets);
  EXPECT_TRUE(close(s[0], rows(sum, {1, 2}).sum(0)));
  EXPECT_TRUE(close(s[1], zeros({3})));
  EXPECT_TRUE(close(m[2], rows(mean, {4, 5, 4}).mean(0)));
  EXPECT_TRUE(close(m[1], zeros({3})));
  EXPECT_TRUE(close(x[2], rows(max, {4, 5, 4}).amax(0)));
  EXPECT_TRUE(close(x[1], zeros({3})));
  EXPECT_TRUE(close(mean(ids.reshape({2, 3}))[1], rows(mean, {5, 4, 3}).mean(0)));
  const Tensor factors = randn({6});
  EXPECT_TRUE(close(sum(ids, offsets, factors)[0], (rows(sum, {1, 2}) * factors.narrow(0, 0, 2).unsqueeze(1)).sum(0)));
  nn::EmbeddingBag padded(6, 3, {.padding_idx = 4, .include_last_offset = true});
  const Tensor p = padded(ids, tensor({0, 2, 6}));
  EXPECT_EQ(p.shape(), (Shape{2, 3}));
  EXPECT_TRUE(close(p[1], rows(padded, {5, 3}).mean(0)));
  for (const char* mode : {"sum", "mean", "max"})
    EXPECT_TRUE(gradcheck([&](const Tensor& w) { return embedding_bag(ids, w, offsets, {.mode = mode}); },
                          wide({6, 2}).requires_grad_()))
        << mode;
  EXPECT_FALSE(attempt([&] { sum(ids); }));
  EXPECT_FALSE(attempt([&] { sum(ids, tensor({1, 2})); }));
  EXPECT_FALSE(attempt([&] { sum(ids, tensor({0, 7})); }));
  EXPECT_FALSE(attempt([&] { mean(ids, offsets, factors); }));
  EXPECT_FALSE(attempt([&] { embedding_bag(ids, sum.weight, offsets, {.mode = "min"}); }));
}

TEST(NnReparametrize, WeightNorm) {
  nn::Linear plain(4, 3);
  nn::init::normal_(plain.weight);
  auto layer = nn::weight_norm(plain);
  EXPECT_EQ(state_dict(layer).names(), (Names{"weight_g", "weight_v", "bias"}));
  EXPECT_EQ(layer.weight_g.shape(), (Shape{3, 1}));
  const Tensor x = randn({2, 4});
  EXPECT_TRUE(close(layer(x), plain(x)));
  {
    const NoGrad off;
    layer.weight_v.mul_(7);  // its length does not matter
  }
  EXPECT_TRUE(close(layer(x), plain(x)));
  EXPECT_EQ(nn::weight_norm(plain, 1).weight_g.shape(), (Shape{1, 4}));
  check_gradients(nn::weight_norm(nn::Linear(3, 2)), wide({2, 3}));
  // As in PyTorch, -1 is the norm of the whole; other axes count from the end, and must be there.
  auto whole = nn::weight_norm(plain, -1);
  EXPECT_EQ(whole.weight_g.shape(), Shape());
  EXPECT_TRUE(close(whole(x), plain(x)));
  EXPECT_EQ(nn::weight_norm(plain, -2).weight_g.shape(), (Shape{3, 1}));
  EXPECT_FALSE(attempt([&] { nn::weight_norm(plain, 7); }));
  EXPECT_FALSE(attempt([&] { nn::weight_norm(plain, -9); }));
  freeze(plain);
  const auto frozen = nn::weight_norm(plain);
  EXPECT_FALSE(frozen.weight_g.requires_grad() || frozen.weight_v.requires_grad());
  EXPECT_FALSE(frozen(x).requires_grad());
}

TEST(NnReparametrize, WeightNormOfHalves) {
  for (const double value : {1e-4, 300.}) {
    nn::Linear plain(3, 2, {.bias = false});
    plain.weight = full({2, 3}, value, {.dtype = f16});
    const auto layer = nn::weight_norm(plain);
    const Tensor stored = plain.weight.detach().to(f64);
    EXPECT_TRUE(allclose(layer.weight_g.detach().to(f64), norm(stored, 2, 1, true), {.rtol = 1e-3}));
    EXPECT_TRUE(allclose(layer.weight().detach().to(f64), stored, {.rtol = 2e-3}));
  }
}

TEST(NnReparametrize, SpectralNorm) {
  manual_seed(2);
  nn::Linear plain(4, 3);
  nn::init::normal_(plain.weight);
  auto layer = nn::spectral_norm(plain);
  EXPECT_EQ(state_dict(layer).names(), (Names{"weight_orig", "weight_u", "weight_v", "bias"}));
  for (int i = 0; i < 50; ++i) layer(randn({1, 4}));
  // The largest singular value of the weight is now 1: power iteration by hand.
  const Tensor w = layer.weight().detach();
  Tensor v = ones({4});
  for (int i = 0; i < 500; ++i) v = normalize(w.t().mv(w.mv(v)), 2, 0);
  EXPECT_NEAR(norm(w.mv(v)).item<double>(), 1, 1e-4);
  eval(layer);
  const Tensor u = layer.weight_u.detach().clone();
  layer(randn({1, 4}));
  EXPECT_TRUE(equal(layer.weight_u, u));
  train(layer);
  layer(randn({2, 4})).sum().backward();
  layer(randn({2, 4})).sum().backward();
  EXPECT_TRUE(layer.weight_orig.grad());
  eval(layer);
  check_gradients(layer, wide({2, 4}));
}

TEST(NnLayers, PaddingIsNoWork) {
  const Tensor x = zeros({1, 2, 4}), y = zeros({1, 2, 4, 4}), z = zeros({1, 2, 4, 4, 4});
  const auto work = [](const auto& layer, const Tensor& in) { return layer.flops(in, layer(in)); };
  EXPECT_EQ(
      work(nn::ConstantPad1d(1, 2.0), x) + work(nn::ConstantPad2d(1, 2.0), y) + work(nn::ConstantPad3d(1, 2.0), z), 0);
  EXPECT_EQ(work(nn::ZeroPad1d(1), x), 0);
  EXPECT_EQ(work(nn::ZeroPad2d(1), y) + work(nn::ZeroPad3d(1), z), 0);
  EXPECT_EQ(work(nn::ReflectionPad1d(1), x) + work(nn::ReflectionPad2d(1), y) + work(nn::ReflectionPad3d(1), z), 0);
  EXPECT_EQ(work(nn::ReplicationPad1d(1), x) + work(nn::ReplicationPad2d(1), y) + work(nn::ReplicationPad3d(1), z), 0);
  EXPECT_EQ(work(nn::CircularPad1d(1), x) + work(nn::CircularPad2d(1), y) + work(nn::CircularPad3d(1), z), 0);
}

}  // namespace
}  // namespace volta

// optimize: programs that answer as the models do, and what they refuse.
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include <models/bert.h>
#include <models/gpt.h>
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/resnet.h>
#include <volta/volta.h>

#include "why.h"

namespace volta::test {
namespace {

// The largest difference, relative to the largest element.
double error_of(const Tensor& y, const Tensor& expected) {
  EXPECT_EQ(y.shape(), expected.shape());
  EXPECT_EQ(y.dtype(), expected.dtype());
  if (y.shape() != expected.shape() || y.numel() == 0) return 0;
  EXPECT_TRUE(isfinite(expected.to(f64)).all().item<bool>());
  const double most = expected.to(f64).abs().max().item<double>();
  return (y.to(f64) - expected.to(f64)).abs().max().item<double>() / std::max(most, 1e-30);
}

// Statistics that no fresh batch norm has.
template <class Model> Model settled(Model model) {
  for (auto& [name, x] : state_dict(model)) {
    Tensor t = x;
    if (name.ends_with("running_mean")) t.copy_(randn(t.shape(), {.dtype = t.dtype()}) * 0.3);
    if (name.ends_with("running_var")) t.copy_(rand(t.shape(), {.dtype = t.dtype()}) + 0.5);
    if (name.find("bn") != std::string::npos && name.ends_with(".weight"))
      t.detach().copy_(rand(t.shape(), {.dtype = t.dtype()}) + 0.5);
    if (name.find("bn") != std::string::npos && name.ends_with(".bias"))
      t.detach().copy_(randn(t.shape(), {.dtype = t.dtype()}) * 0.2);
  }
  eval(model);
  return model;
}

// Answers of one program to several inputs, against the model's; `make` gives an input.
template <class Model, class Make> void expect_same(const Model& model, Make make, double tolerance = 2e-6) {
  const InferenceMode on;
  const auto fast = optimize(model);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = make();
    EXPECT_LE(error_of(fast(x), model(x)), tolerance) << "call " << i;
  }
}
auto normal(const Shape& shape, DType dtype = f32) {
  return [=] { return randn(shape, {.dtype = dtype}); };
}

Error::Kind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return Error::Kind::internal;
}

class Optimize : public testing::Test {
 protected:
  void SetUp() override { manual_seed(11); }
};

TEST_F(Optimize, ImagesAreAnsweredAsByTheModel) {
  expect_same(models::mlp({.widths = {20, 30, 5}}), normal({3, 20}));
  expect_same(models::mlp({.widths = {20, 30, 5}, .activation = nn::GELU()}), normal({20}));
  expect_same(models::LeNet5{}, normal({2, 1, 28, 28}));
  expect_same(settled(models::resnet18({.classes = 10})), normal({1, 3, 64, 64}), 2e-5);
  expect_same(settled(models::resnet18({.classes = 10})), normal({4, 3, 40, 36}), 2e-5);
  expect_same(settled(models::resnet50({.classes = 10})), normal({2, 3, 64, 64}), 2e-5);
}

TEST_F(Optimize, TextIsAnsweredAsByTheModel) {
  const auto tokens = [](int64_t below, const Shape& shape) { return [=] { return randint(0, below, shape); }; };
  auto gpt = models::gpt({.vocab = 50, .context = 16, .width = 32, .heads = 4, .layers = 2});
  eval(gpt);
  expect_same(gpt, tokens(50, {2, 16}));
  nn::LSTM lstm(6, 8, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  expect_same([&](const Tensor& x) { return lstm(x).output; }, normal({3, 7, 6}));
  nn::GRU gru(6, 8);
  expect_same([&](const Tensor& x) { return gru(x).output; }, normal({7, 3, 6}));
  nn::TransformerEncoderLayer layer(16, 4, {.dim_feedforward = 32, .batch_first = true});
  eval(layer);
  expect_same([&](const Tensor& x) { return layer(x); }, normal({2, 5, 16}));
}

TEST_F(Optimize, ConvolutionsTakeWhatFollowsThem) {
  for (const DType dtype : {f32, f64})
    for (const Shape& shape : {Shape{1, 8, 9, 11}, Shape{3, 8, 5, 5}, Shape{2, 8, 32, 32}})
      for (const bool bias : {false, true}) {
        struct Net {
          nn::Conv2d conv;
          nn::BatchNorm2d bn1{16}, bn2{16};
          nn::Conv2d again{16, 16, 3, {.padding = 1}}, grouped{16, 16, 3, {.padding = 1, .groups = 4}};
          Tensor operator()(const Tensor& x) const {
            const Tensor h = relu(bn1(conv(x)));
            const Tensor a = silu(bn2(again(h)) + h), b = h + grouped(a);
            return gelu(b) + tanh(conv(x)) + sigmoid(again(h));
          }
        };
        Net net = settled(Net{nn::Conv2d(8, 16, 3, {.padding = 1, .bias = bias})});
        to(net, dtype);
        expect_same(net, normal(shape, dtype), dtype == f64 ? 1e-13 : 5e-6);
      }
}

// Weights are kept as the kernels read them: by blocks of rows for few pixels, transformed for Winograd.
TEST_F(Optimize, WeightsOfConvolutionsAreKept) {
  struct Case {
    Shape x, w;
    ConvOptions options;
  };
  const Case cases[] = {{{1, 64, 7, 7}, {96, 64, 3, 3}, {.padding = 1}},
                        {{1, 70, 7, 7}, {37, 70, 3, 3}, {.padding = 1}},
                        {{1, 33, 9, 11}, {5, 33, 3, 3}, {.stride = 2, .padding = 1}},
                        {{1, 130, 14, 14}, {64, 130, 1, 1}, {}},
                        {{1, 130, 14, 14}, {64, 130, 1, 1}, {.stride = 2}},
                        {{3, 40, 16, 16}, {80, 40, 1, 1}, {}},
                        {{3, 96, 4, 4}, {64, 96, 3, 3}, {.padding = 1}},
                        {{8, 128, 4, 4}, {100, 128, 3, 3}, {.padding = 1}},
                        {{9, 128, 7, 7}, {64, 128, 3, 3}, {.padding = 1}},
                        {{2, 48, 13, 17}, {66, 24, 3, 3}, {.padding = 2, .dilation = 2, .groups = 2}},
                        {{1, 16, 1, 1}, {32, 16, 1, 1}, {}},
                        {{1, 16, 3, 300}, {32, 16, 2, 5}, {}},
                        {{1, 40, 256}, {70, 40, 5}, {.padding = 2}},
                        {{1, 40, 257}, {70, 40, 1}, {}},
                        {{1, 20, 5, 6, 7}, {40, 20, 3, 3, 3}, {.padding = 1}},
                        {{1, 8, 40, 36}, {40, 8, 3, 3}, {.padding = 1}},
                        {{2, 160, 12, 12}, {200, 160, 3, 3}, {.padding = 1}},
                        {{1, 260, 9, 9}, {260, 260, 3, 3}, {.padding = 1}}};
  const auto conv = [](const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& o) {
    return x.dim() == 3 ? conv1d(x, w, b, o) : x.dim() == 4 ? conv2d(x, w, b, o) : conv3d(x, w, b, o);
  };
  const int threads = get_num_threads();
  struct Way {
    ConvAlgorithm algorithm;
    DType dtype;
  };
  const Way ways[] = {{ConvAlgorithm::automatic, f32},     {ConvAlgorithm::automatic, bf16},
                      {ConvAlgorithm::implicit_gemm, f32}, {ConvAlgorithm::implicit_gemm, f64},
                      {ConvAlgorithm::winograd, f32},      {ConvAlgorithm::im2col, f32}};
  for (const Case& c : cases) {
    for (const auto& [algorithm, dtype] : ways) {
      ConvOptions options = c.options;
      options.algorithm = algorithm;
      const auto normal = [type = dtype](const Shape& shape) { return randn(shape, {.dtype = type}); };
      const Tensor x = normal(c.x), w = normal(c.w), b = normal({c.w[0]}), turned = x.transpose(1, -1).contiguous();
      const auto fast = optimize([=](const Tensor& t) { return conv(t, w, b, options).relu(); });
      const auto strided = optimize([=](const Tensor& t) { return conv(t.transpose(1, -1), w, {}, options) + 0.5; });
      options.algorithm = ConvAlgorithm::direct;
      const Tensor y = conv(x, w, {}, options), expected = conv(x, w, b, options).relu();
      const double tolerance = dtype == bf16 ? 1e-2 : dtype == f32 ? 2e-5 : 1e-13;
      std::ostringstream what;
      what << c.x << " " << c.w << " " << name(algorithm) << " " << dtype;
      EXPECT_LE(error_of(strided(turned), y + 0.5), tolerance) << what.str();
      const Tensor answer = fast(x);
      EXPECT_LE(error_of(answer, expected), tolerance) << what.str();
      for (const int n : {1, 5}) {
        set_num_threads(n);
        EXPECT_TRUE(equal(fast(x), answer)) << what.str() << " " << n;
      }
      set_num_threads(threads);
    }
  }
}

TEST_F(Optimize, ConvolutionsOfOtherKindsStay) {
  nn::Conv1d one(4, 6, 3);
  nn::Conv3d three(2, 4, 3, {.stride = 2, .padding = 1});
  nn::ConvTranspose2d back(4, 3, 3, {.stride = 2});
  nn::BatchNorm1d bn1 = settled(nn::BatchNorm1d(6));
  nn::BatchNorm3d bn3 = settled(nn::BatchNorm3d(4));
  nn::BatchNorm2d bn2 = settled(nn::BatchNorm2d(3));
  expect_same([&](const Tensor& x) { return relu(bn1(one(x))); }, normal({2, 4, 20}));
  expect_same([&](const Tensor& x) { return relu(bn3(three(x))); }, normal({2, 2, 7, 8, 9}));
  expect_same([&](const Tensor& x) { return relu(bn2(back(x))); }, normal({2, 4, 5, 6}));
  nn::Conv2d half(3, 8, 3);
  to(half, bf16);
  expect_same([&](const Tensor& x) { return relu(half(x)) + 1; }, normal({2, 3, 9, 9}, bf16), 0);
  const Tensor w = randn({5, 6}), b = randn({6});
  expect_same([&](const Tensor& x) { return relu(matmul(x, w) + b); }, normal({4, 5}));
  expect_same([&](const Tensor& x) { return matmul(x, w) + x.sum(); }, normal({4, 5}));
}

// Sums whose other part comes later, is the product itself, or is wanted once more.
TEST_F(Optimize, SumsAreTakenOnlyWhereTheyMayBe) {
  nn::Conv2d a(4, 4, 3, {.padding = 1}), b(4, 4, 3, {.padding = 1});
  const auto x = normal({2, 4, 12, 12});
  expect_same([&](const Tensor& t) { return relu(a(t) + b(t)); }, x);
  expect_same(
      [&](const Tensor& t) {
        const Tensor y = a(t);
        return y + y;
      },
      x);
  expect_same(
      [&](const Tensor& t) {
        const Tensor y = a(t);
        return relu(y) + y;
      },
      x);
  expect_same(
      [&](const Tensor& t) {
        const Tensor y = a(t);
        return relu(y + t) * y;
      },
      x);
  expect_same(
      [&](const Tensor& t) {
        Tensor y = a(t);
        const Tensor z = y * 2;
        y.add_(t);
        return y.relu_() + z;
      },
      x);
  expect_same(
      [&](const Tensor& t) {
        Tensor y = a(t);
        y.add_(b(y));
        return y;
      },
      x);
  expect_same(
      [&](const Tensor& t) {
        Tensor y = a(t);
        y.slice(1, 0, 2).relu_();
        return y;
      },
      x);
  expect_same([&](const Tensor& t) { return relu(a(t).slice(1, 1, 3)); }, x);
  expect_same([&](const Tensor& t) { return a(t) + t.sum({2, 3}, true); }, x);
  expect_same([&](const Tensor& t) { return a(t).transpose(2, 3) + t; }, x);
}

// What a product is joined with may lie in any way.
TEST_F(Optimize, JoinedOperandsOfEveryLayout) {
  const Tensor weights = randn({6, 10});
  const std::vector<Tensor> biases = {randn({5}),
                                      randn({1}).expand({5}),
                                      randn({10}).slice(0, 0, 10, 2),
                                      randn({10}).slice(0, 9, 4, -1),
                                      randn({5}, {.dtype = f64}),
                                      randn({1, 5}),
                                      randn({5, 3}).select(1, 1),
                                      randn({})};
  for (const Tensor& w :
       {weights.slice(1, 0, 5), weights.slice(1, 0, 10, 2), randn({5, 6}).t(), randn({6, 1}).expand({6, 5})})
    for (const Tensor& bias : biases)
      for (const Shape& shape : {Shape{4, 6}, Shape{0, 6}, Shape{2, 3, 6}})
        expect_same([&](const Tensor& t) { return relu(t.matmul(w) + bias); }, normal(shape));

  const Tensor images = randn({2, 8, 6, 6});
  const std::vector<Tensor> sums = {images.slice(1, 0, 4),
                                    images.slice(1, 0, 8, 2),
                                    randn({2, 4, 6, 6}).transpose(2, 3),
                                    randn({4, 1, 1}).expand({2, 4, 6, 6}),
                                    images.slice(1, 7, 3, -1),
                                    randn({2, 4, 6, 6}, {.dtype = f64}),
                                    randn({6}),
                                    randn({})};
  for (const Tensor& w :
       {randn({4, 3, 3, 3}), randn({3, 4, 3, 3}).transpose(0, 1), randn({4, 1, 3, 3}).expand({4, 3, 3, 3})})
    for (const Tensor& other : sums) {
      const auto model = [&](const Tensor& t) { return relu(conv2d(t, w, {}, {.padding = 1}) + other); };
      expect_same(model, normal({2, 3, 6, 6}));
    }
  const Tensor w = randn({4, 3, 3, 3}), rows = randn({4, 4});
  for (const Tensor& part : {rows.select(1, 2), randn({1}).expand({4}), rows.reshape({16}).slice(0, 15, 3, -3)}) {
    const auto model = [&](const Tensor& t) {
      return batch_norm(conv2d(t, w, {}, {.padding = 1}), part, part.square() + 0.5, part, part);
    };
    expect_same(model, normal({2, 3, 6, 6}), 1e-5);
    expect_same(model, normal({0, 3, 6, 6}));
  }
}

TEST_F(Optimize, MemoryHoldsWhatItHeldBeforeTheInputsCame) {
  const auto x = normal({4});
  expect_same(
      [](const Tensor& t) {
        Tensor y = zeros({3, 4});
        y[1] = t;
        return y;
      },
      x);
  expect_same(
      [](const Tensor& t) {
        Tensor y = tensor({1.f, 2, 3, 4, 5, 6});
        y.slice(0, 1, 5).add_(t);
        return y * 2;
      },
      x);
  expect_same(
      [](const Tensor& t) {
        Tensor y = zeros({8});
        y.data<float>()[7] = 3;
        y.slice(0, 0, 4).copy_(t);
        return y;
      },
      x);
  const Tensor chosen = tensor({1.f, 0, 1, 1});
  expect_same([&](const Tensor& t) { return (chosen > 0).nonzero().squeeze(1).add_(t.argmax(0)); }, x);
  expect_same([](const Tensor& t) { return cat({ones({2}), t, t * 2, arange(3).to(f32)}, 0); }, x);
  expect_same([](const Tensor& t) { return where(t > 0, t, full({4}, 5.f)).cumsum(0) / linspace(1, 2, 4); }, x);
  expect_same(
      [](const Tensor& t) {
        Tensor y = t.clone();
        y.index_put_({tensor({0, 2})}, tensor({7.f, 8}));
        return y;
      },
      x);
  expect_same([](const Tensor& t) { return t.sort().values + t.topk(4).values + t.flip({0}); }, x);
  expect_same([](const Tensor& t) { return t.to(f64).softmax(0).log() + t.mean(); }, x, 1e-13);
}

TEST_F(Optimize, ResultsOfEveryForm) {
  const InferenceMode on;
  const Tensor weight = randn({3});
  const Tensor x = randn({2, 3}), other = randn({2, 3});
  const auto same = optimize([](const Tensor& t) { return t; });
  EXPECT_TRUE(same(x).shares_storage(x));
  const auto view = optimize([](const Tensor& t) { return t.slice(1, 1, 3).t(); });
  EXPECT_TRUE(equal(view(other.slice(0, 0, 2)), other.slice(1, 1, 3).t()));
  const auto constant = optimize([&](const Tensor&) { return weight; });
  constant(x).zero_();
  EXPECT_TRUE(equal(constant(other), weight));
  const auto pair = optimize([](const Tensor& t) { return std::pair(t + 1, std::array{t * 2, t.sum()}); });
  const auto [first, rest] = pair(other);
  EXPECT_TRUE(equal(first, other + 1));
  EXPECT_TRUE(equal(rest[0], other * 2));
  EXPECT_TRUE(equal(rest[1], other.sum()));
  const auto many = optimize([](const Tensor& t) { return t.unbind(0); });
  const std::vector<Tensor> rows = many(other);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(equal(rows[1], other[1]));
  const auto parts = optimize([](const Tensor& t) { return (t * 3).unbind(0); });  // of one memory
  const std::vector<Tensor> thirds = parts(other);
  EXPECT_TRUE(equal(thirds[0], other[0] * 3));
  EXPECT_TRUE(equal(thirds[1], other[1] * 3));
  const auto twice = optimize([](const Tensor& t) {
    const Tensor y = t + 1;
    return std::tuple(y, y.t());
  });
  EXPECT_TRUE(equal(std::get<1>(twice(other)), (other + 1).t()));
  const auto mixed =
      optimize([](const Tensor& t) { return std::tuple(t.sum(), t.unbind(0), std::pair(t + 1, t * 2)); });
  const auto [sum, list, last] = mixed(other);
  EXPECT_TRUE(equal(sum, other.sum()));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(equal(list[1], other[1]));
  EXPECT_TRUE(equal(last.second, other * 2));
}

TEST_F(Optimize, ResultsOfLayers) {
  const InferenceMode on;
  const Tensor x = randn({5, 2, 8});
  const nn::LSTM lstm(8, 6);
  const LSTMOutput expected = lstm(x);
  const auto fast = optimize(lstm);
  for (int i = 0; i < 2; ++i) {
    const LSTMOutput y = fast(x);
    EXPECT_TRUE(allclose(y.output, expected.output));
    EXPECT_TRUE(allclose(y.h_n, expected.h_n));
    EXPECT_TRUE(allclose(y.c_n, expected.c_n));
  }
  const nn::MultiheadAttention attention(8, 2);
  const auto quick = optimize(attention);
  for (int i = 0; i < 2; ++i) {
    const nn::MultiheadOutput y = quick(x, x, x);
    EXPECT_FALSE(y.weights.defined());
    EXPECT_TRUE(allclose(y.output, attention(x, x, x).output, {.atol = 1e-6}));
  }
  struct Two {
    std::array<Tensor, 2> both;
    Tensor none;
  };
  const Two two = optimize([](const Tensor& t) { return Two{{t + 1, t - 1}, {}}; })(x);
  EXPECT_TRUE(equal(two.both[1], x - 1));
  EXPECT_FALSE(two.none.defined());
}

TEST_F(Optimize, AResultIsNotOverwrittenByTheNext) {
  const InferenceMode on;
  const auto fast = optimize(models::mlp({.widths = {4, 8, 2}}));
  const Tensor a = randn({1, 4}), y = fast(a), kept = y.clone();
  for (int i = 0; i < 5; ++i) fast(randn({1, 4}));
  EXPECT_TRUE(equal(y, kept));
  EXPECT_TRUE(equal(fast(a), kept));
}

TEST_F(Optimize, InputsOfEveryLayoutAndSize) {
  const InferenceMode on;
  nn::Linear layer(3, 2);
  const auto fast = optimize(layer);
  const Tensor wide = randn({4, 6});
  for (const Tensor& x : {wide.slice(1, 3, 6), wide.slice(1, 0, 6, 2), randn({3, 4}).t(), randn({1, 3}).expand({4, 3}),
                          randn({4, 3}).flip({1}), randn({0, 3}), randn({3}), randn({2, 5, 3})})
    EXPECT_LE(error_of(fast(x), layer(x)), 1e-6) << x.shape().str();
  const auto scalar = optimize([](const Tensor& t) { return t * 2 + 1; });
  EXPECT_EQ(scalar(tensor(3.0)).item<double>(), 7);
  EXPECT_EQ(scalar(tensor(4.0)).item<double>(), 9);
  EXPECT_EQ(scalar(tensor(4)).dtype(), i64);
  for (int64_t n = 0; n < 100; ++n) EXPECT_EQ(scalar(arange(n)).size(0), n);  // more kinds than are kept
}

TEST_F(Optimize, SeveralInputs) {
  const InferenceMode on;
  const auto fast = optimize([](const Tensor& a, const Tensor& b) { return a * 2 + b; });
  const Tensor x = randn({3}), y = randn({3});
  EXPECT_TRUE(equal(fast(x, x), x * 3));  // of one memory
  EXPECT_TRUE(equal(fast(x, y), x * 2 + y));
  const Tensor both = randn({6});
  EXPECT_TRUE(equal(fast(both.slice(0, 0, 3), both.slice(0, 2, 5)), both.slice(0, 0, 3) * 2 + both.slice(0, 2, 5)));
  EXPECT_EQ(fast(x, randn({2, 3})).shape(), (Shape{2, 3}));
}

TEST_F(Optimize, WeightsThatChangeAreSeen) {
  const InferenceMode on;
  models::LeNet5 net;
  const auto fast = optimize(net);
  const Tensor x = randn({2, 1, 28, 28});
  fast(x);
  for (Tensor& p : parameters(net)) p.mul_(1.5);
  EXPECT_LE(error_of(fast(x), net(x)), 2e-6);
  models::LeNet5 other;
  load_state_dict(net, state_dict(other));
  EXPECT_LE(error_of(fast(x), other(x)), 2e-6);
  nn::Linear layer(3, 2);
  const auto quick = optimize(layer);
  const Tensor row = randn({3});
  quick(row);
  layer.weight = ones({2, 3});
  EXPECT_LE(error_of(quick(row), layer(row)), 1e-6);
  layer = nn::Linear(3, 2);
  EXPECT_LE(error_of(quick(row), layer(row)), 1e-6);
}

TEST_F(Optimize, ATemporaryIsTakenOver) {
  const InferenceMode on;
  nn::Linear layer(3, 2);
  const Tensor w = layer.weight, b = layer.bias, x = randn({4, 3});
  auto fast = optimize(std::move(layer));
  EXPECT_LE(error_of(fast(x), linear(x, w, b)), 1e-6);
  auto moved = std::move(fast);
  EXPECT_LE(error_of(moved(x), linear(x, w, b)), 1e-6);
  EXPECT_THROW(fast(x), Error);  // NOLINT(bugprone-use-after-move)
}

TEST_F(Optimize, IndicesAreChecked) {
  const InferenceMode on;
  nn::Embedding table(5, 3);
  const auto fast = optimize(table);
  const Tensor good = tensor({0, 4, 2});
  EXPECT_TRUE(equal(fast(good), table(good)));
  for (const int64_t bad : {int64_t(5), int64_t(-6), INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(kind_of([&] { fast(tensor({int64_t(0), bad, int64_t(1)})); }), Error::Kind::index) << bad;
    EXPECT_EQ(kind_of([&] { optimize(table)(tensor({int64_t(0), bad, int64_t(1)})); }), Error::Kind::index) << bad;
  }
  EXPECT_TRUE(equal(fast(good), table(good)));
  const Tensor rows = randn({4, 3});
  const auto chosen = optimize([&](const Tensor& i) { return Tensor(rows[i]); });
  EXPECT_TRUE(equal(chosen(tensor({-1, 0})), Tensor(rows[tensor({-1, 0})])));
  EXPECT_TRUE(equal(chosen(tensor({3, -4})), Tensor(rows[tensor({3, -4})])));
  EXPECT_EQ(kind_of([&] { chosen(tensor({4, 0})); }), Error::Kind::index);
  const auto spread = optimize([](const Tensor& i) { return zeros({4}).scatter(0, i, ones({2})); });
  EXPECT_TRUE(equal(spread(tensor({1, 3})), tensor({0.f, 1, 0, 1})));
  EXPECT_TRUE(equal(spread(tensor({0, 2})), tensor({1.f, 0, 1, 0})));
  EXPECT_EQ(kind_of([&] { spread(tensor({0, 9})); }), Error::Kind::index);
}

TEST_F(Optimize, WhatAProgramCannotKnowIsAnError) {
  const InferenceMode on;
  const Tensor x = randn({2, 4});
  const auto refused = [&](auto f, const char* text) { return says([&] { optimize(f)(x); }, text); };
  EXPECT_TRUE(refused([](const Tensor& t) { return t * t.max().item<float>(); }, "item()"));
  EXPECT_TRUE(refused([](const Tensor& t) { return t.data<float>()[0] > 0 ? t : -t; }, "elements"));
  EXPECT_TRUE(refused([](const Tensor& t) { return (t + 1).to_vector<float>()[0] > 0 ? t : -t; }, "elements"));
  EXPECT_TRUE(refused([](const Tensor& t) { return t.masked_select(t > 0); }, "elements"));
  EXPECT_TRUE(refused([](const Tensor& t) { return t.nonzero(); }, "elements"));
  EXPECT_TRUE(refused([](const Tensor& t) { return t + randn({4}); }, "random"));
  EXPECT_TRUE(refused([](const Tensor& t) { return dropout(t, 0.5); }, "random"));
  EXPECT_TRUE(refused(
      [](const Tensor& t) {
        Tensor u = t;
        return u.add_(1);
      },
      "writes into its input"));
  Tensor state = zeros({2, 4});
  EXPECT_TRUE(refused([&](const Tensor& t) { return state.add_(t); }, "keeps"));
  EXPECT_TRUE(refused([&](const Tensor& t) { return state.add_(1) + t; }, "keeps"));
  EXPECT_EQ(state.abs().sum().item<float>(), 0);
  Tensor held;
  EXPECT_TRUE(refused([&](const Tensor& t) { return held = t + 1; }, "keeps"));
  EXPECT_TRUE(refused(
      [&](const Tensor& t) {
        held = t.relu();
        return t + 1;
      },
      "keeps"));
  EXPECT_FALSE(optimize([](const Tensor&) { return Tensor(); })(x).defined());
  nn::BatchNorm1d bn(4);
  EXPECT_TRUE(refused([&](const Tensor& t) { return bn(t); }, "eval"));
  EXPECT_EQ(bn.running_mean.abs().sum().item<float>(), 0);
  EXPECT_EQ(kind_of([&] { optimize(bn)(Tensor()); }), Error::Kind::argument);
  // Afterwards all is as before.
  EXPECT_TRUE(equal(x + x, x * 2));
  EXPECT_GT(x.max().item<float>(), x.min().item<float>());
}

TEST_F(Optimize, ElementsOfWeightsMayBeAskedFor) {
  const InferenceMode on;
  const Tensor limit = tensor(0.25f);
  expect_same([&](const Tensor& t) { return t.clamp({.max = limit.item<float>()}); }, normal({9}));
}

TEST_F(Optimize, InputsThatRequireGradientsAreRefused) {
  nn::Linear layer(3, 2);
  const auto fast = optimize(layer);
  Tensor x = randn({3}, {.requires_grad = true});
  EXPECT_TRUE(says([&] { fast(x); }, "gradient"));
  EXPECT_FALSE(fast(x.detach()).requires_grad());
  const NoGrad off;
  EXPECT_FALSE(fast(x).requires_grad());
}

TEST_F(Optimize, ThreadsShareAProgram) {
  models::LeNet5 net;
  eval(net);
  const auto fast = optimize(net);
  const Tensor inputs = randn({8, 1, 1, 28, 28});
  std::vector<Tensor> expected, found(8);
  for (int i = 0; i < 8; ++i) expected.push_back(fast(inputs[i]).clone());
  const auto fresh = optimize(net);  // recorded by whoever comes first
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const InferenceMode on;
      for (int k = 0; k < 20; ++k) found[size_t(i)] = fresh(inputs[i]);
    });
  for (int k = 0; k < 50; ++k) EXPECT_EQ((ones({3}) * k).sum().item<float>(), 3.f * float(k));  // passes by
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(equal(found[size_t(i)], expected[size_t(i)]));
}

TEST_F(Optimize, TheSameBitsForEveryNumberOfThreads) {
  const InferenceMode on;
  const auto net = settled(models::resnet18({.classes = 10}));
  const Tensor x = randn({2, 3, 48, 48});
  const int before = get_num_threads();
  set_num_threads(1);
  const auto fast = optimize(net);
  const Tensor expected = fast(x);
  for (const int n : {2, 3, 16}) {
    set_num_threads(n);
    EXPECT_TRUE(equal(fast(x), expected)) << n;
    EXPECT_TRUE(equal(optimize(net)(x), expected)) << n;
  }
  set_num_threads(before);
}

TEST_F(Optimize, WorkingMemoryIsShared) {
  const InferenceMode on;
  const auto fast = optimize([](Tensor t) {
    for (int i = 0; i < 20; ++i) t = t.sin();
    return t.sum();
  });
  fast(ones({1 << 16}));
  EXPECT_GE(fast.working_bytes(), 2 << 18);
  EXPECT_LE(fast.working_bytes(), 3 << 18);  // two of 20
}

TEST_F(Optimize, OneWithinAnother) {
  const InferenceMode on;
  nn::Linear a(4, 4), b(4, 4);
  const auto inner = optimize(a);
  expect_same([&](const Tensor& x) { return relu(b(inner(x))); }, normal({2, 4}));
}

TEST_F(Optimize, UnderAutocast) {
  const InferenceMode on;
  const auto net = models::mlp({.widths = {16, 32, 4}});
  const auto fast = optimize(net);
  const Tensor x = randn({2, 16});
  EXPECT_EQ(fast(x).dtype(), f32);
  {
    const Autocast half(bf16);
    EXPECT_LE(error_of(fast(x), net(x)), 0.02);
  }
  EXPECT_LE(error_of(fast(x), net(x)), 2e-6);
}

}  // namespace
}  // namespace volta::test

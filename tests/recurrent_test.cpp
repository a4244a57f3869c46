// Recurrent layers: the fused loop against cells, gradients of both orders, lengths, dtypes, threads, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include <volta/volta.h>

#include "samples.h"

namespace volta::test {
namespace {

using Tensors = std::vector<Tensor>;

double distance(const Tensor& a, const Tensor& b) {
  return a.numel() ? max(abs(a.detach().to(f64) - b.detach().to(f64))).item<double>() : 0;
}

struct Kind {
  const char* name;
  std::function<std::unique_ptr<nn::Recurrent>(int64_t, int64_t, nn::RecurrentOptions)> make;
};
template <class L> Kind kind_of(const char* name, const char* nonlinearity = "tanh") {
  return {name, [=](int64_t input, int64_t hidden, nn::RecurrentOptions o) {
            o.nonlinearity = nonlinearity;
            return std::make_unique<L>(input, hidden, o);
          }};
}
std::ostream& operator<<(std::ostream& out, const Kind& k) { return out << k.name; }

// One layer, one step of ordinary ops.
nn::LSTMState step(const std::string& kind, const nn::Recurrent::Weights& w, const Tensor& x, const Tensor& h,
                   const Tensor& c) {
  const Tensor a = linear(x, w.ih, w.bias_ih), b = linear(h, w.hh, w.bias_hh);
  if (kind == "tanh") return {tanh(a + b), c};
  if (kind == "relu") return {relu(a + b), c};
  if (kind == "gru") {
    const auto p = a.chunk(3, -1), q = b.chunk(3, -1);
    const Tensor r = sigmoid(p[0] + q[0]), z = sigmoid(p[1] + q[1]), n = tanh(p[2] + r * q[2]);
    return {(1 - z) * n + z * h, c};
  }
  const auto p = (a + b).chunk(4, -1);
  const Tensor next = sigmoid(p[1]) * c + sigmoid(p[0]) * tanh(p[2]);
  return {sigmoid(p[3]) * tanh(next), next};
}

class RecurrentKinds : public testing::TestWithParam<Kind> {
 protected:
  bool lstm() const { return std::string(GetParam().name) == "lstm"; }
};

TEST_P(RecurrentKinds, GiveWhatTheirStepsGive) {
  manual_seed(4);
  for (const Device& device : devices()) {
    for (const auto& [dtype, near] : {std::pair{f64, 1e-13}, {f32, 2e-6}, {f16, 4e-3}, {bf16, 3e-2}}) {
      for (const auto& [batch, size] : {std::pair<int64_t, int64_t>{1, 13}, {7, 13}, {19, 13}, {19, 70}}) {
        const auto layer = GetParam().make(5, size, {.bias = batch != 7});
        to(*layer, dtype);
        to(*layer, device);
        const Tensor x = randn({6, batch, 5}, {f64, device}).to(dtype);
        const auto y = layer->run(x);
        nn::Recurrent::Weights w = layer->weights[0];
        for (nn::Parameter* p : {&w.ih, &w.hh, &w.bias_ih, &w.bias_hh})
          if (p->defined()) p->set_data(p->detach().to(f64));
        nn::LSTMState s{zeros({batch, size}, {f64, device}), zeros({batch, size}, {f64, device})};
        for (int64_t t = 0; t < 6; ++t) {
          s = step(GetParam().name, w, x[t].to(f64), s.h, s.c);
          EXPECT_LT(distance(y.output[t], s.h), near);
        }
        EXPECT_EQ(y.output.dtype(), dtype);
        EXPECT_TRUE(equal(y.h_n[0].detach(), y.output[5].detach()));
        EXPECT_TRUE(!lstm() || distance(y.c_n[0], s.c) < near);
      }
    }
  }
}

// From three times the inputs on, the loop multiplies them as well.
TEST_P(RecurrentKinds, PassNumericalChecksOfBothOrders) {
  manual_seed(6);
  for (const int64_t size : {2, 3}) {
    const auto layer = GetParam().make(1, size, {.bidirectional = true});
    to(*layer, f64);
    const auto draw = [](const Shape& s) { return randn(s, {.dtype = f64, .requires_grad = true}); };
    const Tensors in{draw({2, 2, 1}), draw({2, 2, size}), draw({2, 2, size})};
    const std::vector<int64_t> lengths[] = {{}, {2, 1}};
    for (const auto& ends : lengths) {
      const auto f = [&](const Tensors& x) {
        const auto y = layer->run(x[0], {x[1], lstm() ? x[2] : Tensor(), ends});
        return lstm() ? Tensors{y.output, y.h_n, y.c_n} : Tensors{y.output, y.h_n};
      };
      const Tensors given = lstm() ? in : Tensors{in[0], in[1]};
      EXPECT_TRUE(gradcheck_all(f, given));
      EXPECT_TRUE(gradgradcheck_all(f, given));
    }
  }
}

TEST_P(RecurrentKinds, WeightGradientsAreThoseOfOrdinaryOps) {
  manual_seed(7);
  for (const int64_t size : {9, 12}) {
    const auto layer = GetParam().make(4, size, {.num_layers = 2, .bidirectional = true});
    const Tensor x = randn({11, 10, 4});
    const auto y = layer->run(x, {.lengths = {11, 3, 7, 4, 1, 11, 5, 6, 2, 9}});
    const Tensor loss = y.output.square().sum() + y.h_n.sum();
    const Tensors all = parameters(*layer);
    const Tensors found = grad(loss, all, {.retain_graph = true}), want = grad(loss, all, {.create_graph = true});
    for (size_t i = 0; i < all.size(); ++i) EXPECT_LT(distance(found[i], want[i]), 1e-4) << i;
  }
}

TEST_P(RecurrentKinds, GradientsOfManyRowsAreThoseOfOrdinaryOps) {
  manual_seed(10);
  const auto layer = GetParam().make(4, 70, {});
  const Tensor x = randn({4, 21, 4}, {.requires_grad = true});
  const Tensor loss = layer->run(x).output.square().mean();
  Tensors all = parameters(*layer);
  all.push_back(x);
  const Tensors found = grad(loss, all, {.retain_graph = true}), want = grad(loss, all, {.create_graph = true});
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_LT(distance(found[i], want[i]), 1e-5 * max(abs(want[i].detach())).item<double>()) << i;
}

// The loop reads and writes either order: same bits, and no copy of the output.
TEST_P(RecurrentKinds, BatchFirstIsAnOrderInMemory) {
  for (const int64_t inputs : {5, 20}) {
    manual_seed(12);
    const auto first = GetParam().make(inputs, 33, {.num_layers = 2, .batch_first = true});
    manual_seed(12);
    const auto second = GetParam().make(inputs, 33, {.num_layers = 2});
    const Tensor x = randn({19, 7, inputs}, {.requires_grad = true});
    const Tensor y = first->run(x).output, z = second->run(x.transpose(0, 1)).output;
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_TRUE(equal(y.detach(), z.transpose(0, 1).detach()));
    Tensors of_first = parameters(*first), of_second = parameters(*second);
    of_first.push_back(x), of_second.push_back(x);
    const Tensors a = grad(y.square().sum(), of_first), b = grad(z.square().sum(), of_second);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_LT(distance(a[i], b[i]), 1e-4) << i;
  }
}

TEST_P(RecurrentKinds, FrozenWeightsTakeNothingFromTheOthers) {
  manual_seed(13);
  const auto layer = GetParam().make(6, 21, {});
  const Tensor x = randn({5, 9, 6}), y = layer->run(x).output.square().sum();
  nn::Recurrent::Weights& w = layer->weights[0];
  const Tensors want = grad(y, {w.ih, w.hh});
  for (const bool first : {false, true}) {
    w.ih.requires_grad_(first), w.hh.requires_grad_(!first);
    const Tensor again = layer->run(x).output.square().sum();
    const Tensor found = grad(again, first ? w.ih : w.hh);
    EXPECT_TRUE(equal(found, want[first ? 0 : 1])) << distance(found, want[first ? 0 : 1]);
  }
}

TEST_P(RecurrentKinds, PaddingDoesNotCount) {
  manual_seed(8);
  const auto layer = GetParam().make(4, 6, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  const std::vector<int64_t> lengths{3, 5, 1};
  const Tensor x = randn({3, 5, 4});
  const auto y = layer->run(x, {.lengths = lengths});
  const auto z = layer->run(pack_padded_sequence(x, lengths, true));
  const PaddedSequence padded = pad_packed_sequence(z.output, true);
  EXPECT_EQ(padded.lengths, lengths);
  EXPECT_TRUE(equal(padded.data.detach(), y.output.detach()));
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t n = lengths[size_t(i)];
    const auto alone = layer->run(x[i].narrow(0, 0, n));
    EXPECT_LT(distance(y.output[i].narrow(0, 0, n), alone.output), 1e-6);
    EXPECT_TRUE(equal(y.output[i].narrow(0, n, 5 - n).detach(), zeros({5 - n, 12})));
    EXPECT_LT(distance(y.h_n.select(1, i), alone.h_n), 1e-6);
  }
}

TEST_P(RecurrentKinds, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = get_num_threads();
  for (const int64_t size : {33, 65}) {
    const auto layer = GetParam().make(8, size, {.num_layers = 2});
    const Tensor x = randn({5, 37, 8}, {.requires_grad = true});
    const auto run = [&](int threads) {
      set_num_threads(threads);
      const auto y = layer->run(x);
      Tensors wanted = parameters(*layer);
      wanted.push_back(x);
      Tensors all = grad(y.output.square().sum(), wanted);
      all.push_back(y.output.detach());
      return all;
    };
    const Tensors one = run(1), two = run(2), four = run(4);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(equal(one[i], two[i]) && equal(one[i], four[i])) << i;
  }
  set_num_threads(before);
}

// Where rows are few, threads share the units of the state: more rows than a strip, a ragged last vector, with and without the inputs
// in the same product, backwards in time, and rows that end early.
TEST_P(RecurrentKinds, BitsDoNotDependOnWhoHasWhichUnits) {
  const int before = get_num_threads();
  struct Size {
    int64_t batch, size, inputs;
    DType dtype;
  };
  for (const Size& n : {Size{5, 523, 9, f32}, {11, 203, 41, f32}, {3, 300, 8, f64}}) {
    manual_seed(8);
    const auto layer = GetParam().make(n.inputs, n.size, {.bidirectional = true});
    to(*layer, n.dtype);
    const Tensor x = randn({5, n.batch, n.inputs}, {n.dtype}).requires_grad_();
    const Tensor h = randn({2, n.batch, n.size}, {n.dtype}).requires_grad_();
    std::vector<int64_t> lengths(size_t(n.batch), 5);
    for (size_t i = 1; i < lengths.size(); ++i) lengths[i] = 5 - int64_t(i) % 4;
    const auto run = [&](int threads) {
      set_num_threads(threads);
      Tensors wanted = parameters(*layer);
      wanted.push_back(x), wanted.push_back(h);
      const auto y = layer->run(x, {.h_0 = h});
      const auto ends = layer->run(x, {.lengths = lengths});
      const Tensor loss = y.output.square().sum() + y.h_n.sum() + ends.output.square().sum();
      Tensors all = grad(loss, wanted);
      all.push_back(y.output.detach());
      all.push_back(ends.output.detach());
      return all;
    };
    const Tensors one = run(1);
    for (const int threads : {2, 3, 8, 40}) {
      const Tensors many = run(threads);
      for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(equal(one[i], many[i])) << i << " with " << threads;
    }
  }
  set_num_threads(before);
}

TEST_P(RecurrentKinds, ServeManyThreads) {
  const auto layer = GetParam().make(8, 16, {});
  const nn::Recurrent& model = *layer;
  const Tensor x = randn({12, 9, 8}), want = model.run(x).output.detach();
  std::vector<int> good(4);
  std::vector<std::thread> pool;
  for (size_t i = 0; i < good.size(); ++i)
    pool.emplace_back([&, i] {
      const NoGrad off;
      good[i] = 1;
      for (int n = 0; n < 10; ++n) good[i] = good[i] && equal(model.run(x).output, want);
    });
  for (std::thread& t : pool) t.join();
  for (const int g : good) EXPECT_TRUE(g);
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentKinds,
                         testing::Values(kind_of<nn::RNN>("tanh"), kind_of<nn::RNN>("relu", "relu"),
                                         kind_of<nn::GRU>("gru"), kind_of<nn::LSTM>("lstm")),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(RecurrentGates, SaturateAndPassNaN) {
  nn::LSTM layer(1, 40);
  for (const Tensor& p : parameters(layer)) nn::init::constant_(p, 1);
  const Tensor y =
      layer(tensor({1e4f, -1e4f, INFINITY, -INFINITY}).reshape({1, 4, 1}).expand({2, -1, -1})).output.detach();
  EXPECT_FALSE(isnan(y).any().item<bool>());
  EXPECT_NEAR((y[{0, 0, 0}].item<float>()), std::tanh(1.f), 1e-6);
  EXPECT_EQ((y[{0, 1, 39}].item<float>()), 0);
  EXPECT_TRUE(isnan(layer(full({2, 1, 1}, NAN)).output).all().item<bool>());
}

TEST(RecurrentGates, AreAccurateNearZero) {
  nn::RNN layer(1, 1, {.bias = false});
  nn::init::constant_(layer.weights[0].ih, 1);
  for (const float x : {1e-20f, 1e-6f, 1e-3f, 0.01f, 0.3f, 1.f, 5.f, 12.f})
    EXPECT_NEAR(layer(full({2, 1, 1}, -x)).output[0].item<float>() / -std::tanh(double(x)), 1, 4e-7) << x;
}

TEST(RecurrentState, GoesOnStepByStep) {
  nn::LSTM layer(3, 7, {.num_layers = 2});
  const Tensor x = randn({5, 2, 3});
  const auto want = layer(x);
  nn::LSTMInput state;
  for (int64_t t = 0; t < 5; ++t) {
    const auto y = layer(x.narrow(0, t, 1), state);
    EXPECT_LT(distance(y.output[0], want.output[t]), 1e-6);
    state.h_0 = y.h_n, state.c_0 = y.c_n;
  }
  EXPECT_LT(distance(state.c_0, want.c_n), 1e-6);
}

TEST(RecurrentState, HasPyTorchsNames) {
  std::vector<std::string> names;
  for (const auto& [name, p] : named_parameters(nn::LSTM(2, 3, {.bidirectional = true, .proj_size = 1})))
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0",
                                             "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                             "bias_hh_l0_reverse", "weight_hr_l0_reverse"}));
  const nn::GRU layer(4, 25);
  EXPECT_LE(max(abs(layer.weights[0].ih)).item<double>(), 0.2);
  EXPECT_GT(max(abs(layer.weights[0].ih)).item<double>(), 0.18);
}

TEST(RecurrentDropout, WorksBetweenLayersInTraining) {
  nn::GRU layer(4, 64, {.num_layers = 2, .dropout = 0.5});
  const Tensor x = randn({3, 8, 4});
  EXPECT_FALSE(equal(layer(x).output.detach(), layer(x).output.detach()));
  eval(layer);
  EXPECT_TRUE(equal(layer(x).output.detach(), layer(x).output.detach()));
}

TEST(RecurrentShapes, BatchMayBeEmpty) {
  nn::LSTM layer(3, 4);
  const auto y = layer(randn({5, 0, 3}));
  EXPECT_EQ(y.output.shape(), (Shape{5, 0, 4}));
  EXPECT_EQ(y.c_n.shape(), (Shape{1, 0, 4}));
  y.output.sum().backward();
  EXPECT_TRUE(equal(*layer.weights[0].hh.grad(), zeros({16, 4})));
}

TEST(RecurrentErrors, NameTheShapes) {
  const auto fails = [](Error::Kind kind, const std::string& part, auto f) {
    const auto result = attempt([&] { return Tensor(f()); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), kind) << result.error().what();
    EXPECT_NE(std::string(result.error().what()).find(part), std::string::npos) << result.error().what();
  };
  using enum Error::Kind;
  const nn::LSTM layer(3, 4);
  const Tensor x = randn({5, 2, 3});
  const auto call = [&](const Tensor& in, const nn::LSTMInput& given = {}) {
    return [&layer, in, given] { return layer(in, given).output; };
  };
  fails(shape, "[5, 2, 4] is not [time, batch, 3]", call(randn({5, 2, 4})));
  fails(shape, "has no steps", call(randn({0, 2, 3})));
  fails(dtype, "the input is f64", call(x.to(f64)));
  fails(shape, "h_0 has shape [1, 3, 4], not [1, 2, 4]", call(x, {.h_0 = zeros({1, 3, 4})}));
  fails(argument, "1 lengths for a batch of 2", call(x, {.lengths = {5}}));
  fails(argument, "length 6", call(x, {.lengths = {5, 6}}));
  fails(argument, "proj_size", [] { return nn::GRU(3, 4, {.proj_size = 2}).weights[0].ih; });
  fails(argument, "nonlinearity 'gelu'", [] { return nn::RNN(3, 4, {.nonlinearity = "gelu"}).weights[0].ih; });
  fails(argument, "length 0", [] { return pack_padded_sequence(randn({4, 2, 1}), {4, 0}).data; });
  fails(shape, "h has shape", [] { return nn::GRUCell(3, 4)(randn({2, 3}), zeros({3, 4})); });
}

TEST(RecurrentErrors, StatesChangedBeforeBackwardAreNoticed) {
  const nn::GRU layer(3, 4);
  auto y = layer(randn({5, 2, 3}));
  const Tensor loss = y.output.sum();
  {
    const NoGrad off;
    y.output.zero_();
  }
  EXPECT_THROW(loss.backward(), Error);
}

}  // namespace
}  // namespace volta::test

// Assigning to parameters and layers keeps the handles of optimizers; tied weights are one.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <thread>

#include "core/impl.h"

namespace volta {
namespace {

struct Net {
  nn::Linear first{3, 4}, last{4, 2};
  Tensor operator()(const Tensor& x) const { return last(tanh(first(x))); }
};

struct Tied {
  nn::Embedding table{7, 4};
  nn::Linear hidden{4, 4}, head{4, 7, {.bias = false}};
  Tensor operator()(const Tensor& ids) const { return head(tanh(hidden(table(ids)))); }
};

// One step of training through the optimizer changes every parameter of the model.
template <class M> void expect_trains(const M& model, optim::Optimizer& opt, const Tensor& x) {
  std::vector<Tensor> before;
  for (const Tensor& p : parameters(model)) before.push_back(p.detach().clone());
  opt.zero_grad();
  model(x).square().sum().backward();
  opt.step();
  const std::vector<Tensor> after = parameters(model);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_FALSE(equal(after[i], before[i])) << i;
}

TEST(NnAssign, TensorsIntoParameters) {
  manual_seed(1);
  nn::Linear fc(3, 2);
  optim::SGD opt(parameters(fc), {.lr = 0.1, .momentum = 0.9});
  const Tensor x = randn({5, 3}), handle = fc.weight;
  expect_trains(fc, opt, x);
  const Tensor values = ones({2, 3});
  fc.weight = values;
  EXPECT_TRUE(equal(handle, values));
  EXPECT_FALSE(fc.weight.shares_storage(values));
  EXPECT_FALSE(values.requires_grad());
  EXPECT_TRUE(fc.weight.requires_grad() && fc.weight.is_leaf());
  expect_trains(fc, opt, x);
  EXPECT_TRUE(equal(values, ones({2, 3})));
  fc.weight = full({2, 3}, 0.5);
  EXPECT_EQ(handle.impl_pointer(), fc.weight.impl_pointer());
  expect_trains(fc, opt, x);
  fc.weight = fc.weight * 2;  // a result: its values
  EXPECT_TRUE(fc.weight.is_leaf());
  expect_trains(fc, opt, x);
  fc.weight = nn::Parameter(ones({2, 3}));
  expect_trains(fc, opt, x);
  fc.weight = ones({1, 1}).expand({2, 3});
  EXPECT_TRUE(fc.weight.is_contiguous());
  expect_trains(fc, opt, x);
  freeze(fc);
  fc.weight = zeros({2, 3});
  EXPECT_FALSE(fc.weight.requires_grad());
}

TEST(NnAssign, AnotherShapeOrDtype) {
  for (const bool adam : {false, true}) {
    nn::Linear fc(3, 2);
    const std::unique_ptr<optim::Optimizer> opt =
        adam ? std::unique_ptr<optim::Optimizer>(new optim::AdamW(parameters(fc), {.lr = 0.1}))
             : std::unique_ptr<optim::Optimizer>(new optim::SGD(parameters(fc), {.lr = 0.1, .momentum = 0.9}));
    expect_trains(fc, *opt, randn({5, 3}));
    fc.weight = randn({2, 7});
    EXPECT_FALSE(fc.weight.grad());
    expect_trains(fc, *opt, randn({5, 7}));
    fc = nn::Linear(100, 90);
    expect_trains(fc, *opt, randn({5, 100}));
    to(fc, f64);
    expect_trains(fc, *opt, randn({5, 100}, {.dtype = f64}));
  }
}

// The steps taken before, and products over them, are of the parameter that was.
TEST(NnAssign, StateOfAnotherShapeStartsAnew) {
  const auto trained = [](auto make) {
    nn::Linear fc(3, 2, {.bias = false}), fresh(1, 2, {.bias = false});
    const auto old = make(parameters(fc)), young = make(parameters(fresh));
    const auto step = [](const nn::Linear& layer, optim::Optimizer& opt) {
      opt.zero_grad();
      layer(ones({1, layer.weight.size(1)})).square().sum().backward();
      opt.step();
    };
    for (int i = 0; i < 5; ++i) step(fc, *old);
    fc.weight = full({2, 1}, 0.5), fresh.weight = full({2, 1}, 0.5);
    for (int i = 0; i < 3; ++i) step(fc, *old), step(fresh, *young);
    return equal(fc.weight, fresh.weight);
  };
  using All = std::vector<Tensor>;
  EXPECT_TRUE(trained([](const All& p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.1}); }));
  EXPECT_TRUE(trained([](const All& p) { return std::make_unique<optim::NAdam>(p); }));
  EXPECT_TRUE(trained([](const All& p) { return std::make_unique<optim::RAdam>(p); }));
  EXPECT_TRUE(trained([](const All& p) { return std::make_unique<optim::Adafactor>(p); }));
  EXPECT_TRUE(trained([](const All& p) {
    return std::make_unique<optim::SGD>(p, optim::SGDOptions{.momentum = 0.9, .dampening = 0.5});
  }));
  EXPECT_TRUE(trained([](const All& p) { return std::make_unique<optim::ASGD>(p, optim::ASGDOptions{.t0 = 1}); }));
}

TEST(NnAssign, StateFollowsTheDtype) {
  nn::Linear fc(3, 2, {.bias = false});
  optim::Adafactor factored(parameters(fc));
  optim::LBFGS quasi(parameters(fc), {.lr = 0.01, .max_iter = 2});
  optim::EMA ema(parameters(fc), 0.5);
  const auto steps = [&](DType dtype) {
    const Tensor x = ones({1, 3}, {.dtype = dtype});
    const auto loss = [&] {
      quasi.zero_grad();
      const Tensor y = fc(x).square().sum();
      y.backward();
      return y;
    };
    quasi.step(loss);
    loss();
    factored.step();
    ema.update();
  };
  steps(f32), to(fc, f64), steps(f64);
  EXPECT_EQ(factored.state_dict().state.at(0).at("row_var").dtype(), f64);
  EXPECT_EQ(quasi.state_dict().state.at(0).at("old_dirs").dtype(), f64);
  EXPECT_EQ(ema.averages()[0].dtype(), f64);
  fc.weight = ones({2, 5}, {.dtype = f64});  // another number of elements: the history of the old is of no use
  quasi.step([&] {
    quasi.zero_grad();
    const Tensor y = fc(ones({1, 5}, {.dtype = f64})).square().sum();
    y.backward();
    return y;
  });
  EXPECT_EQ(quasi.state_dict().state.at(0).at("d").numel(), 10);
  ema.update(), to(fc, f16), ema.update();
  EXPECT_EQ(ema.averages()[0].dtype(), f64);
}

TEST(NnAssign, CopiedAveragesGoOnAlone) {
  const Tensor w = ones({2}).requires_grad_();
  optim::EMA one({w}, 0.5);
  one.update();
  optim::EMA two = one, three({w}, 0.5);
  three = one;
  w.detach().fill_(3);
  one.update();
  EXPECT_EQ(one.averages()[0][0].item<double>(), 2);
  EXPECT_EQ(two.averages()[0][0].item<double>(), 1);
  two.update();
  EXPECT_EQ(two.averages()[0][0].item<double>(), 2);
  EXPECT_EQ(three.averages()[0][0].item<double>(), 1);
}

TEST(NnAssign, AveragesOfAnotherShapeStartAnew) {
  nn::Linear fc(3, 2);
  optim::EMA ema(parameters(fc), 0.5);
  ema.update(), ema.update();
  fc.weight = ones({2, 1});
  ema.update();
  nn::Linear mean(1, 2);
  ema.copy_to(parameters(mean));
  EXPECT_TRUE(equal(mean.weight, ones({2, 1})));
}

TEST(NnAssign, LayersAndModelsByCopyAndMove) {
  manual_seed(2);
  Net net;
  optim::Adam opt(parameters(net), {.lr = 0.1});
  const Tensor x = randn({5, 3}), handle = net.first.weight;
  nn::Linear other(3, 4);
  net.first = other;
  EXPECT_TRUE(equal(handle, other.weight));
  expect_trains(net, opt, x);
  EXPECT_FALSE(equal(handle, other.weight));
  net.first = nn::Linear(3, 4);
  expect_trains(net, opt, x);
  const Tensor moved = other.weight.detach().clone();
  net.first = std::move(other);
  EXPECT_TRUE(equal(handle, moved));
  expect_trains(net, opt, x);
  net = Net();
  expect_trains(net, opt, x);
  const Net fresh;
  net = fresh;
  expect_trains(net, opt, x);
  EXPECT_EQ(handle.impl_pointer(), net.first.weight.impl_pointer());
}

// A handle that another holds keeps its values when what it stood for moves on.
TEST(NnAssign, MovedFromHandlesKeepTheirValues) {
  nn::Parameter a = ones({2}), b = zeros({2});
  const Tensor a_handle = a, b_handle = b;
  a = std::move(b);
  EXPECT_TRUE(equal(a_handle, zeros({2})));
  EXPECT_FALSE(a.shares_storage(b_handle));
  {
    const NoGrad off;
    a.fill_(5);
  }
  EXPECT_TRUE(equal(b_handle, zeros({2})));
  nn::Parameter c = ones({2}), d = zeros({2});
  const Tensor c_handle = c;
  std::swap(c, d);  // handles go with their values
  EXPECT_EQ(d.impl_pointer(), c_handle.impl_pointer());
  EXPECT_TRUE(equal(c, zeros({2})));
  nn::Parameter& same = c;
  c = std::move(same);
  EXPECT_TRUE(equal(c, zeros({2})));
  c = nn::Parameter();
  EXPECT_FALSE(c.defined());
}

TEST(NnAssign, VectorsGrowAndShrink) {
  std::vector<nn::Linear> list;
  for (int i = 0; i < 4; ++i) list.emplace_back(2, 2);
  std::vector<Tensor> handles = parameters(list);
  for (int i = 0; i < 40; ++i) list.emplace_back(2, 2);  // moves what is there
  EXPECT_EQ(parameters(list)[0].impl_pointer(), handles[0].impl_pointer());
  const Tensor second = list[1].weight.detach().clone();
  list.erase(list.begin());  // values move down one place, handles stay
  EXPECT_EQ(parameters(list)[0].impl_pointer(), handles[0].impl_pointer());
  EXPECT_TRUE(equal(list[0].weight, second));
}

TEST(NnAssign, Buffers) {
  nn::BatchNorm1d norm(3);
  const Tensor handle = norm.running_mean;
  norm.running_mean = full({3}, 2.0);
  EXPECT_TRUE(equal(handle, full({3}, 2.0)));
  norm = nn::BatchNorm1d(3);
  EXPECT_TRUE(equal(handle, zeros({3})));
  nn::Buffer scratch(ones({2}), false);
  scratch = zeros({2});
  EXPECT_FALSE(scratch.persistent);
  nn::Parameter p = ones({2});
  p = scratch;  // values alone
  EXPECT_FALSE(scratch.requires_grad());
  EXPECT_FALSE(p.shares_storage(scratch));
}

TEST(NnAssign, ContainersComposedAtRunTime) {
  manual_seed(3);
  nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  optim::SGD opt(parameters(net), {.lr = 0.1});
  const Tensor x = randn({5, 3});
  net = nn::Sequential(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  expect_trains(net, opt, x);
  const nn::Sequential other(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  net = other;
  expect_trains(net, opt, x);
  net[0] = nn::Linear(3, 4);
  expect_trains(net, opt, x);
  nn::AnyModule any = nn::Linear(3, 4);
  const Tensor handle = any.get<nn::Linear>().weight;
  any = nn::Linear(3, 4);
  EXPECT_EQ(handle.impl_pointer(), any.get<nn::Linear>().weight.impl_pointer());
}

// A vector that is assigned takes the other's memory: its layers are others. The optimizer says so.
TEST(NnAssign, FactoredMomentsOfAnotherShapeStartAnew) {
  nn::Linear layer(4, 3);
  optim::Adafactor opt(parameters(layer));
  const auto step = [&](int64_t n) {
    layer(ones({2, n})).square().sum().backward();
    opt.step();
    opt.zero_grad();
  };
  step(4);
  layer.weight = randn({3, 6});
  EXPECT_NO_THROW(step(6));
}

// What is wrong is found before anything moves.
TEST(NnAssign, AStepIsWholeOrNone) {
  nn::Linear kept(2, 2);
  std::vector<nn::Linear> gone(1, nn::Linear(2, 2));
  std::vector<Tensor> all = parameters(kept);
  for (const Tensor& p : parameters(gone)) all.push_back(p);
  optim::SGD opt(all, {.lr = 0.1});
  all.clear(), gone.clear();
  kept(ones({1, 2})).sum().backward();
  const Tensor before = kept.weight.detach().clone();
  EXPECT_FALSE(attempt([&] { opt.step(); }));
  EXPECT_TRUE(equal(kept.weight, before));
}

TEST(NnAssign, AnOptimizerWithoutItsModelSaysSo) {
  std::vector<nn::Linear> list;
  list.emplace_back(2, 2);
  optim::SGD opt(parameters(list), {.lr = 0.1});
  const auto fresh = [] {
    std::vector<nn::Linear> other;
    other.emplace_back(2, 2);
    return other;
  };
  list = fresh();
  list[0](ones({1, 2})).sum().backward();
  const auto r = attempt([&] { opt.step(); });
  ASSERT_FALSE(r);
  EXPECT_NE(std::string(r.error().what()).find("belongs to no model"), std::string::npos);
  // Also when the last gradient of what was replaced is still there.
  optim::SGD again(parameters(list), {.lr = 0.1});
  again.step();
  list = fresh();
  zero_grad(list);
  list[0](ones({1, 2})).sum().backward();
  EXPECT_FALSE(attempt([&] { again.step(); }));
  optim::LBFGS gone(parameters(fresh()), {.lr = 0.1});
  EXPECT_FALSE(attempt([&] { gone.step([&] { return list[0](ones({1, 2})).sum(); }); }));
}

TEST(ThreadsTie, CopiesOfManyThreadsKeepTheirTies) {
  Tied net;
  nn::tie(net.head.weight, net.table.weight);
  std::vector<int> kept(4, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        const Tied copy = net;
        kept[i] += copy.head.weight.impl_pointer() == copy.table.weight.impl_pointer();
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(kept, (std::vector<int>(4, 50)));
}

TEST(NnTie, OneWeightInTwoPlaces) {
  manual_seed(4);
  Tied net;
  nn::tie(net.head.weight, net.table.weight);
  EXPECT_EQ(parameters(net).size(), 3u);
  EXPECT_EQ(num_parameters(net), 28 + 20);
  EXPECT_TRUE(state_dict(net).contains("head.weight") && state_dict(net).contains("table.weight"));
  const Tensor ids = tensor({1, 2, 6});
  optim::SGD opt(parameters(net), {.lr = 0.1});
  expect_trains(net, opt, ids);
  EXPECT_EQ(net.head.weight.impl_pointer(), net.table.weight.impl_pointer());
  // The gradient is the sum of both uses.
  opt.zero_grad();
  net(ids).sum().backward();
  const Tensor table = net.table.weight.detach().clone().requires_grad_();
  const Tensor head = net.table.weight.detach().clone().requires_grad_();
  linear(tanh(net.hidden(table[ids])), head).sum().backward();
  EXPECT_TRUE(allclose(*net.table.weight.grad(), *table.grad() + *head.grad(), {.atol = 1e-6}));
  to(net, f64);
  EXPECT_EQ(net.head.weight.impl_pointer(), net.table.weight.impl_pointer());
  EXPECT_EQ(net.head.weight.dtype(), f64);
  net.head.weight = zeros({7, 4}, {.dtype = f64});
  EXPECT_TRUE(equal(net.table.weight, zeros({7, 4}, {.dtype = f64})));
  Tied late;
  optim::SGD early(parameters(late), {.lr = 0.1});
  nn::tie(late.head.weight, late.table.weight);  // too late: the optimizer has a head that nobody uses
  late(ids).sum().backward();
  EXPECT_FALSE(attempt([&] { early.step(); }));
  const auto wrong = attempt([&] { nn::tie(net.hidden.weight, net.table.weight); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), Error::Kind::shape);
}

TEST(NnTie, CopiesKeepTheTieAndLetGoOfTheOriginal) {
  Tied net;
  nn::tie(net.head.weight, net.table.weight);
  for (int i = 0; i < 3; ++i) {
    Tied copy = net;
    EXPECT_EQ(copy.head.weight.impl_pointer(), copy.table.weight.impl_pointer());
    EXPECT_NE(copy.head.weight.impl_pointer(), net.head.weight.impl_pointer());
    Tied again = copy;
    EXPECT_EQ(again.head.weight.impl_pointer(), again.table.weight.impl_pointer());
    EXPECT_EQ(parameters(again).size(), 3u);
    Tied moved = std::move(again);
    EXPECT_EQ(parameters(moved).size(), 3u);
    EXPECT_EQ(parameters(Tied(moved)).size(), 3u);
  }
  const std::vector<Tied> list(3, net);
  EXPECT_EQ(parameters(list).size(), 9u);
  const nn::Parameter a = net.head.weight, b = net.table.weight;  // two values of their own
  EXPECT_NE(a.impl_pointer(), b.impl_pointer());
  Tied assigned;
  assigned = net;
  EXPECT_TRUE(equal(assigned.head.weight, assigned.table.weight));
  const Tensor y = functional_call(net, {{"table.weight", zeros({7, 4})}}, tensor({1}));
  EXPECT_TRUE(equal(y, zeros({1, 7})));  // both places
  EXPECT_FALSE(attempt([&] {
    return functional_call(net, {{"table.weight", zeros({7, 4})}, {"head.weight", ones({7, 4})}}, tensor({1}));
  }));
}

// Copies of single members leave nothing behind that a later copy could join.
TEST(NnTie, CopiesOfMembersAloneStandAlone) {
  Tied net;
  nn::tie(net.head.weight, net.table.weight);
  alignas(Tied) std::byte memory[sizeof(Tied)];
  auto* other = reinterpret_cast<Tied*>(memory);
  const auto copy_head = [&] { return new (&other->head) nn::Linear(net.head); };
  const auto copy_table = [&] { return new (&other->table) nn::Embedding(net.table); };
  auto* head = copy_head();
  const int64_t held = memory::stats().in_use;
  head->~Linear();
  EXPECT_LT(memory::stats().in_use, held);  // the copy's memory goes with it
  auto* table = copy_table();
  EXPECT_TRUE(equal(table->weight, net.table.weight));
  table->~Embedding();
  head = copy_head();
  {
    const NoGrad off;
    Tensor(net.head.weight).add_(1);
  }
  table = copy_table();
  EXPECT_TRUE(equal(table->weight, net.table.weight));  // not as it was when the head was copied
  EXPECT_NE(table->weight.impl_pointer(), head->weight.impl_pointer());
  head->~Linear(), table->~Embedding();
  {
    Tied emptied = net;
    emptied.head.weight = Tensor();
    const Tied twin = emptied;  // nothing is copied from nothing
    EXPECT_FALSE(twin.head.weight.defined());
    EXPECT_TRUE(equal(twin.table.weight, net.table.weight));
  }
  nn::Parameter third = ones({7, 4});
  nn::tie(net.table.weight, third);  // leaves the first tie
  EXPECT_NE(net.head.weight.impl_pointer(), net.table.weight.impl_pointer());
  const Tied apart = net;
  EXPECT_NE(apart.head.weight.impl_pointer(), apart.table.weight.impl_pointer());
}

// Members are assigned one by one: two values for one weight cannot both be kept.
TEST(NnTie, AssigningAModelThatIsNotTied) {
  manual_seed(6);
  Tied net, other;
  nn::tie(net.head.weight, net.table.weight);
  const auto refused = attempt([&] { net = other; });
  ASSERT_FALSE(refused);
  EXPECT_NE(std::string(refused.error().what()).find("tied"), std::string::npos);
  EXPECT_FALSE(attempt([&] { net = Tied(other); }));
  nn::tie(other.head.weight, other.table.weight);
  net = other;
  EXPECT_TRUE(equal(net.head.weight, other.head.weight) && equal(net.table.weight, other.table.weight));
  EXPECT_EQ(net.head.weight.impl_pointer(), net.table.weight.impl_pointer());
  Tied same;
  same.head.weight = same.table.weight = other.table.weight;
  net = same;  // equal values, though not tied
  net = std::move(same);
  net = other;
  // One after another from different places is a change like any other.
  net.head.weight = zeros({7, 4});
  net.table.weight = ones({7, 4});
  EXPECT_TRUE(equal(net.head.weight, ones({7, 4})));
}

TEST(NnTie, AStateWithTwoValuesForOneWeight) {
  Tied net, other;
  nn::tie(net.head.weight, net.table.weight);
  const Tensor before = net.head.weight.detach().clone();
  StateDict state = state_dict(other);
  const auto refused = attempt([&] { load_state_dict(net, state); });
  ASSERT_FALSE(refused);
  const std::string text = refused.error().what();
  EXPECT_NE(text.find("table.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("head.weight"), std::string::npos) << text;
  EXPECT_TRUE(equal(net.head.weight, before));
  load_state_dict(net, state, {.strict = false});
  EXPECT_TRUE(equal(net.head.weight, other.head.weight));  // the last one
  nn::tie(other.head.weight, other.table.weight);
  load_state_dict(net, state_dict(other));
  EXPECT_TRUE(equal(net.head.weight, other.head.weight));
}

// The same memory is not the same values: a matrix and its transpose.
TEST(NnTie, AStateWithOneMemoryReadTwoWays) {
  struct Square {
    nn::Linear a{3, 3, {.bias = false}}, b{3, 3, {.bias = false}};
  } net;
  nn::tie(net.b.weight, net.a.weight);
  const Tensor w = randn({3, 3}), symmetric = w + w.t(), before = net.a.weight.detach().clone();
  EXPECT_FALSE(attempt([&] { load_state_dict(net, {{"a.weight", w}, {"b.weight", w.t()}}); }));
  EXPECT_TRUE(equal(net.a.weight, before));
  load_state_dict(net, {{"a.weight", symmetric}, {"b.weight", symmetric.t()}});
  EXPECT_TRUE(equal(net.b.weight, symmetric));
}

TEST(NnAssign, AStateOfTheModelItselfUnderOtherNames) {
  Net net;
  struct Pair {
    nn::Linear a{2, 2}, b{2, 2};
  } pair;
  const Tensor a = pair.a.weight.detach().clone(), b = pair.b.weight.detach().clone();
  StateDict state;
  for (const auto& [name, x] : state_dict(pair)) state[(name[0] == 'a' ? "b" : "a") + name.substr(1)] = x;
  load_state_dict(pair, state);
  EXPECT_TRUE(equal(pair.a.weight, b) && equal(pair.b.weight, a));
}

// Values that nobody else holds are taken over where they lie; those of others are copied.
TEST(NnAssign, TakesOverWhatNobodyElseHolds) {
  nn::Linear layer(3, 4);
  Tensor fresh = randn({4, 3});
  const void* const place = fresh.raw_data();
  layer.weight = std::move(fresh);
  EXPECT_EQ(layer.weight.raw_data(), place);
  const Tensor kept = randn({4, 3});
  layer.weight = kept;
  EXPECT_NE(layer.weight.raw_data(), kept.raw_data());
  layer.weight = kept.detach();  // another handle of the same memory
  EXPECT_NE(layer.weight.raw_data(), kept.raw_data());
  EXPECT_TRUE(equal(layer.weight, kept));
}

}  // namespace
}  // namespace volta

// Models as plain structs: reflection, the functions over models, copies, containers, hooks, errors.
#include <gtest/gtest.h>
#include <volta/volta.h>
#include <set>
#include <sstream>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <thread>

namespace volta {
namespace {

struct Block {
  int width;
  nn::Linear up{width, 2 * width}, down{2 * width, width, {.bias = false}};
  nn::BatchNorm1d norm{width};
  Tensor operator()(const Tensor& x) const { return norm(x + down(relu(up(x)))); }
};

struct Config {
  int width = 4;
  std::string name = "net";
  std::array<double, 3> numbers{};
};

struct Net {
  Config config;
  nn::Linear stem{3, config.width};
  std::vector<Block> blocks = nn::repeat<Block>(2, config.width);
  nn::Dropout drop{0.5};
  nn::Linear head{config.width, 2};
  Tensor operator()(Tensor x) const {
    x = stem(x);
    for (const Block& b : blocks) x = b(x);
    return head(drop(x));
  }
};

std::vector<std::string> names_of(const std::vector<std::pair<std::string, Tensor>>& list) {
  std::vector<std::string> names;
  for (const auto& [name, x] : list) names.push_back(name);
  return names;
}
using Names = std::vector<std::string>;

std::string text_of(const std::function<void()>& f) {
  const auto r = attempt(f);
  return r ? "no error" : r.error().what();
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// state["new"] = state.at("old") reads the old entry after the new one was added.
TEST(NnDict, AddingDoesNotMoveWhatIsThere) {
  Dict<std::string> d{{"a", std::string(40, 'x')}};
  const std::string* const first = &d.at("a");
  for (int i = 0; i < 100; ++i) d["n" + std::to_string(i)] = d.at("a");
  EXPECT_EQ(&d.at("a"), first);
  EXPECT_EQ(d.at("n99"), std::string(40, 'x'));
}

TEST(NnReflect, CountsAndNamesFields) {
  struct Empty {};
  struct NoDefaults {
    nn::Linear first, second;
    int number;
    std::optional<nn::Linear> maybe;
    std::function<void()> call;
  };
  EXPECT_EQ(nn::reflect::count_fields<Empty>(), 0u);
  EXPECT_EQ(nn::reflect::count_fields<NoDefaults>(), 5u);
  EXPECT_EQ((nn::reflect::field_name<NoDefaults, 1>()), "second");
  EXPECT_EQ((nn::reflect::field_name<NoDefaults, 4>()), "call");
  EXPECT_EQ((nn::reflect::field_name<Net, 2>()), "blocks");
  EXPECT_EQ(nn::reflect::type_name<Net>(), "Net");
  EXPECT_EQ(nn::reflect::type_name<std::vector<Net>>().substr(0, 6), "vector");
}

TEST(NnReflect, ThirtyTwoFields) {
  struct Many {
    nn::Parameter a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F;
  };
  Many many;
  many.a = ones({1}), many.n = ones({2}), many.F = ones({3});
  EXPECT_EQ(names_of(named_parameters(many)), (Names{"a", "n", "F"}));
}

// A class that hides its members.
class Private {
 public:
  explicit Private(int n) : inner_(n, n) {}
  Tensor operator()(const Tensor& x) const { return inner_(x); }
  void fields(nn::Fields& f) { f("inner", inner_), f("list", list_); }

 private:
  nn::Linear inner_;
  std::vector<nn::Parameter> list_{ones({2}), ones({3})};
};

struct Everything {
  std::array<nn::Linear, 2> array{nn::Linear(1, 1, {.bias = false}), nn::Linear(1, 1, {.bias = false})};
  std::optional<nn::Linear> some = nn::Linear(1, 1, {.bias = false}), none;
  std::variant<int, Block, nn::Parameter> choice = nn::Parameter(ones({2}));
  std::map<std::string, nn::Parameter> map;
  std::map<int, nn::Parameter> numbers;
  std::unique_ptr<nn::Linear> unique = std::make_unique<nn::Linear>(1, 1, nn::BiasOptions{false});
  std::shared_ptr<nn::Linear> shared, again;
  std::unique_ptr<nn::Layer> base = std::make_unique<nn::Linear>(1, 1, nn::BiasOptions{false});
  std::tuple<int, nn::Parameter> tuple{1, ones({1})};
  std::deque<nn::Parameter> deque;
  std::vector<std::vector<nn::Parameter>> nested;
  nn::Dict<nn::Parameter> dict;
  Private hidden{1};
  nn::Parameter undefined;
  Tensor plain = ones({5});
  std::string text = "not a module";
  std::vector<int> counts{1, 2};
};

TEST(NnReflect, EveryKindOfMember) {
  Everything e;
  e.map.emplace("b", ones({1})), e.map.emplace("a", ones({1}));
  e.numbers.emplace(7, ones({1}));
  e.shared = e.again = std::make_shared<nn::Linear>(1, 1, nn::BiasOptions{false});
  e.deque.emplace_back(ones({1}));
  e.nested.resize(2);
  e.nested[1].emplace_back(ones({1}));
  e.dict.add("z", ones({1})), e.dict.add("y", ones({1}));
  const Names expected{"array.0.weight",
                       "array.1.weight",
                       "some.weight",
                       "choice",
                       "map.a",
                       "map.b",
                       "numbers.7",
                       "unique.weight",
                       "shared.weight",
                       "base.weight",
                       "tuple.1",
                       "deque.0",
                       "nested.1.0",
                       "dict.z",
                       "dict.y",
                       "hidden.inner.weight",
                       "hidden.inner.bias",
                       "hidden.list.0",
                       "hidden.list.1"};
  EXPECT_EQ(names_of(named_parameters(e)), expected);
  EXPECT_TRUE(state_dict(e).contains("again.weight"));  // both names of a shared tensor are saved
  e.choice = Block{2};
  EXPECT_TRUE(state_dict(e).contains("choice.norm.running_mean"));
  std::vector<Net> list(2);
  EXPECT_EQ(named_parameters(list)[0].first, "0.stem.weight");
}

TEST(NnModel, NamesAndCounts) {
  Net net;
  const Names expected{
      "stem.weight",          "stem.bias",          "blocks.0.up.weight", "blocks.0.up.bias", "blocks.0.down.weight",
      "blocks.0.norm.weight", "blocks.0.norm.bias", "blocks.1.up.weight", "blocks.1.up.bias", "blocks.1.down.weight",
      "blocks.1.norm.weight", "blocks.1.norm.bias", "head.weight",        "head.bias"};
  EXPECT_EQ(names_of(named_parameters(net)), expected);
  EXPECT_EQ(parameters(net).size(), expected.size());
  EXPECT_EQ(num_parameters(net), 16 + 2 * (40 + 32 + 8) + 10);
  freeze(net.stem);
  EXPECT_EQ(num_parameters(net, true), num_parameters(net) - 16);
  unfreeze(net.stem);
  EXPECT_TRUE(net.stem.weight.requires_grad());
  EXPECT_EQ(names_of(named_buffers(net))[0], "blocks.0.norm.running_mean");
  EXPECT_EQ(buffers(net).size(), 6u);
  EXPECT_EQ(state_dict(net).size(), 20u);
  EXPECT_EQ(names_of(named_parameters(net.head)), (Names{"weight", "bias"}));
}

TEST(NnModel, AForwardPassChangesBuffersThroughAHandle) {
  struct Usage {
    nn::Buffer mean = zeros({2}), calls = zeros({}, {.dtype = i64});
    Tensor operator()(const Tensor& x) const {
      const NoGrad off;
      Tensor seen = mean, count = calls;  // handles to the same values
      seen.mul_(0.5).add_(x.mean(0), 0.5);
      count += 1;
      return x - mean;
    }
  };
  const Usage usage;
  usage(ones({3, 2}));
  EXPECT_TRUE(equal(usage(ones({3, 2})), full({3, 2}, 0.25)));
  EXPECT_TRUE(equal(state_dict(usage).at("mean"), full({2}, 0.75)));
  EXPECT_EQ(usage.calls.item<int>(), 2);
  const Usage copy = usage;
  copy(ones({3, 2}));
  EXPECT_EQ(usage.calls.item<int>(), 2);
}

TEST(NnModel, StateIsSharedAndNotPersistentBuffersAreLeftOut) {
  struct Model {
    nn::Parameter w = ones({2});
    nn::Buffer kept = ones({2}), scratch = nn::Buffer(ones({2}), false);
  };
  Model m;
  StateDict state = state_dict(m);
  EXPECT_EQ(state.names(), (Names{"w", "kept"}));
  EXPECT_TRUE(state.at("w").shares_storage(m.w));
  EXPECT_FALSE(state.at("w").requires_grad());
  EXPECT_EQ(buffers(m).size(), 2u);
}

TEST(NnModel, LoadStrictListsEverythingAndChangesNothing) {
  Net net;
  nn::Sequential other(nn::Linear(3, 4), nn::Linear(4, 4));
  StateDict state = state_dict(net);
  state.erase("head.bias");
  state.erase("stem.bias");
  state["extra.one"] = ones({1}), state["extra.two"] = ones({1});
  state["head.weight"] = ones({4, 2}), state["blocks.0.up.bias"] = ones({1});
  Net target;
  const Tensor before = target.stem.weight.clone();
  const std::string why = text_of([&] { load_state_dict(target, state); });
  for (const char* part :
       {"head.bias", "stem.bias", "extra.one", "extra.two", "head.weight", "blocks.0.up.bias", "[4, 2]", "[2, 4]"})
    EXPECT_TRUE(has(why, part)) << part << " not in " << why;
  EXPECT_TRUE(equal(before, target.stem.weight));
  const LoadResult result = load_state_dict(target, state, {.strict = false});
  EXPECT_EQ(result.missing, (Names{"stem.bias", "head.bias"}));
  EXPECT_EQ(result.unexpected, (Names{"extra.one", "extra.two"}));
  ASSERT_EQ(result.mismatched.size(), 2u);
  EXPECT_EQ(result.mismatched[1].name, "head.weight");
  EXPECT_EQ(result.mismatched[1].model, (Shape{2, 4}));
  EXPECT_EQ(result.mismatched[1].state, (Shape{4, 2}));
  EXPECT_TRUE(equal(target.stem.weight, net.stem.weight));
  EXPECT_TRUE(load_state_dict(target, state_dict(net)).complete());
}

TEST(NnModel, HandlesSurviveLoadingAndConversion) {
  Net net, source;
  const std::vector<Tensor> handles = parameters(net);
  load_state_dict(net, state_dict(source));
  EXPECT_TRUE(equal(handles[0], source.stem.weight));
  to(source, f64);
  load_state_dict(net, state_dict(source));  // converts
  EXPECT_EQ(handles[0].dtype(), f32);
  net(randn({5, 3})).sum().backward();
  const Tensor gradient = handles[0].grad()->clone();
  to(net, f64);
  EXPECT_EQ(handles[0].dtype(), f64);
  EXPECT_EQ(handles[0].impl_pointer(), net.stem.weight.impl_pointer());
  EXPECT_TRUE(allclose(*handles[0].grad(), gradient.to(f64)));
  EXPECT_EQ(net.blocks[0].norm.num_batches_tracked.dtype(), i64);
  EXPECT_EQ(net.blocks[0].norm.running_mean.dtype(), f64);
  zero_grad(net);
  EXPECT_FALSE(handles[0].grad());
  net(randn({5, 3}, {.dtype = f64})).sum().backward();
  EXPECT_EQ(handles[0].grad()->dtype(), f64);
  to(net, "cpu");
  EXPECT_TRUE(has(text_of([&] { to(net, i32); }), "floating"));
}

TEST(NnModel, GraphsFromBeforeAConversionAreRefused) {
  nn::Linear fc(3, 2);
  Tensor x = randn({4, 3}, {.requires_grad = true});
  const Tensor y = fc(x).sum();
  to(fc, f64);
  EXPECT_FALSE(attempt([&] { y.backward(); }));
}

TEST(NnModel, CopiesAreValues) {
  Net net;
  freeze(net.head);
  eval(net);
  Net twin = net;
  EXPECT_TRUE(equal(twin.stem.weight, net.stem.weight));
  EXPECT_FALSE(twin.stem.weight.shares_storage(net.stem.weight));
  EXPECT_TRUE(twin.stem.weight.requires_grad() && twin.stem.weight.is_leaf());
  EXPECT_FALSE(twin.head.weight.requires_grad());
  EXPECT_FALSE(twin.drop.training);
  const TensorImpl* handle = net.stem.weight.impl_pointer();
  Net moved = std::move(net);
  EXPECT_EQ(moved.stem.weight.impl_pointer(), handle);
  // Assigning keeps the handles, so an optimizer goes on working.
  const Tensor kept = twin.stem.weight;
  {
    const NoGrad off;
    moved.stem.weight.fill_(3);
  }
  twin = moved;
  EXPECT_EQ(kept.impl_pointer(), twin.stem.weight.impl_pointer());
  EXPECT_TRUE(kept.eq(3).all().item<bool>());
  EXPECT_FALSE(twin.stem.weight.shares_storage(moved.stem.weight));
  const Tensor alias = twin.stem.weight;  // a plain Tensor is a handle
  EXPECT_TRUE(alias.shares_storage(twin.stem.weight));
}

TEST(NnModel, MovingIsCheap) {
  static_assert(std::is_nothrow_move_constructible_v<nn::Linear> && std::is_nothrow_move_constructible_v<nn::ReLU>);
  static_assert(std::is_nothrow_move_constructible_v<nn::BatchNorm2d> &&
                std::is_nothrow_move_constructible_v<nn::Dropout>);
  static_assert(std::is_nothrow_move_constructible_v<nn::AnyModule> && std::is_nothrow_move_constructible_v<Block>);
  std::vector<Block> list{{2}};
  const TensorImpl* handle = list[0].up.weight.impl_pointer();
  list.reserve(list.capacity() + 1);
  EXPECT_EQ(list[0].up.weight.impl_pointer(), handle);
}

TEST(NnModel, ParameterOfAResultIsALeaf) {
  const Tensor w = randn({2}, {.requires_grad = true});
  const nn::Parameter p(w * 2);
  EXPECT_TRUE(p.is_leaf() && p.requires_grad());
  EXPECT_FALSE(nn::Buffer(w).requires_grad());
  EXPECT_FALSE(nn::Parameter(ones({2}), false).requires_grad());
  EXPECT_FALSE(attempt([] { nn::Parameter(ones({2}, {.dtype = i64})); }));
  nn::Parameter same = ones({2});
  nn::Parameter& again = same;
  same = again;
  EXPECT_TRUE(same.defined());
  nn::Parameter none;
  same = none;
  EXPECT_FALSE(same.defined());
}

TEST(NnModel, TrainAndEval) {
  Net net;
  const Tensor x = randn({8, 3});
  eval(net);
  EXPECT_FALSE(net.blocks[1].norm.training);
  EXPECT_TRUE(equal(net(x), net(x)));
  train(net);
  EXPECT_FALSE(equal(net(x), net(x)));
}

TEST(NnModel, ApplyByTypeAndAll) {
  Net net;
  apply<nn::Linear>(net, [](nn::Linear& l) { nn::init::constant_(l.weight, 0.5); });
  EXPECT_TRUE(net.blocks[1].down.weight.eq(0.5).all().item<bool>());
  int blocks = 0;
  Names order;
  apply<Block>(net, [&](Block& b) { blocks += b.width; });
  apply(net, [&](const nn::Module& m) { order.push_back(m.path.str() + ":" + std::string(m.type_name)); });
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(order.front(), "config:Config");
  EXPECT_EQ(order.back(), ":Net");
  EXPECT_EQ(order[2], "blocks.0.up:Linear");
}

TEST(NnErrors, NameThePathOfTheLayer) {
  Net net;
  EXPECT_TRUE(has(text_of([&] { net(randn({2, 5})); }), "(in Linear)"));
  parameters(net);
  const auto r = attempt([&] { return net(randn({2, 5})); });
  EXPECT_TRUE(has(r.error().what(), "(in stem, Linear)")) << r.error().what();
  EXPECT_EQ(r.error().op(), "linear");
  EXPECT_EQ(r.error().kind(), Error::Kind::shape);
  EXPECT_TRUE(has(text_of([&] { net.blocks[1].norm(randn({2, 5})); }), "blocks.1.norm"));
  EXPECT_TRUE(has(text_of([&] { Net(net).blocks[0].up(randn({2, 5})); }), "blocks.0.up"));
  parameters(net.blocks);  // looked at alone, a part keeps its place in the whole
  EXPECT_EQ(net.blocks[0].up.path(), "blocks.0.up");
}

TEST(NnErrors, OnlyTheInnermostLayerIsNamed) {
  struct Model {
    nn::Sequential outer{nn::Identity(), nn::Sequential(nn::Linear(2, 2), nn::Linear(3, 3))};
  };
  Model m;
  parameters(m);
  const std::string why = text_of([&] { m.outer(randn({1, 2})); });
  EXPECT_TRUE(has(why, "(in outer.1.1, Linear)")) << why;
  EXPECT_EQ(why.find("(in "), why.rfind("(in ")) << why;
}

TEST(NnHooks, SeeTheFirstTensorOfAResult) {
  nn::LSTM lstm(2, 3);
  nn::GRU gru(2, 3);
  nn::LSTMCell cell(2, 3);
  nn::MultiheadAttention attention(2, 1);
  nn::MaxPool1d pool(2);
  const Tensor x = randn({4, 1, 2});
  std::vector<std::string> seen;
  {
    const nn::Watch watch([&](const nn::Layer& layer, const Tensor&, const Tensor& y) {
      seen.push_back(layer.type() + y.shape().str());
    });
    lstm(x), gru(x), cell(x[0]), attention(x, x, x), pool.with_indices(x.reshape({1, 2, 4}));
    lstm(pack_padded_sequence(x, {4}));
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"LSTM[4, 1, 3]", "GRU[4, 1, 3]", "LSTMCell[1, 3]", "Linear[1, 4, 2]",
                                            "MultiheadAttention[4, 1, 2]", "MaxPool1d[1, 2, 2]", "LSTM[4, 1, 3]"}));
  const auto plain = lstm(x);
  lstm.register_forward_hook([](auto&, auto&, const Tensor& y) { return std::optional(y * 2); });
  const auto [y, h, c] = lstm(x);
  EXPECT_TRUE(equal(y, plain.output * 2));
  EXPECT_TRUE(equal(h, plain.h_n));
  cell.register_forward_hook([](auto&, auto&, const Tensor& out) { return std::optional(out * 0); });
  EXPECT_EQ(cell(x[0]).h.abs().sum().item<double>(), 0);
  const std::string table = summary(lstm, [&] { lstm(x); });
  EXPECT_TRUE(has(table, "[4, 1, 3]")) << table;
  EXPECT_TRUE(has(table, "480")) << table;  // 2 * 4 steps * (12 * 2 + 12 * 3)
}

TEST(NnHooks, SeeAndReplace) {
  nn::Linear fc(2, 2);
  const Tensor x = randn({3, 2});
  const Tensor plain = fc(x);
  int calls = 0;
  const int doubled = fc.register_forward_hook([&](const nn::Layer& l, const Tensor&, const Tensor& y) {
    ++calls;
    EXPECT_STREQ(l.type(), "Linear");
    return std::optional(y * 2);
  });
  const int watching = fc.register_forward_hook([&](const nn::Layer&, const Tensor&, const Tensor& y) {
    EXPECT_TRUE(equal(y, plain * 2));
    return std::nullopt;
  });
  EXPECT_TRUE(equal(fc(x), plain * 2));
  const nn::Linear copy = fc;
  EXPECT_TRUE(equal(copy(x), plain * 2));  // a copy has the hooks, too
  fc.remove_hook(doubled), fc.remove_hook(watching);
  EXPECT_TRUE(equal(fc(x), plain));
  EXPECT_TRUE(equal(copy(x), plain * 2));
  EXPECT_EQ(calls, 3);
  fc.register_forward_pre_hook([](const nn::Layer&, const Tensor& in) { return std::optional(in * 0); });
  EXPECT_TRUE(equal(fc(x), fc.bias.expand({3, 2})));
}

TEST(NnSummary, Table) {
  struct Model {
    nn::Embedding table{10, 4};
    nn::Linear fc{4, 3};
    nn::Parameter scale = ones({1});
    nn::Dropout drop;
    Tensor operator()(const Tensor& ids) const { return drop(fc(fc(table(ids)).matmul(ones({3, 4})))) * scale; }
  };
  Model m;
  const std::string text = summary(m, {2, 5}, i64);
  for (const char* part : {"table", "Embedding", "[2, 5, 4]", "40", "fc", "[2, 5, 3]", "15", "240", "(again)", "drop",
                           "(model)", "parameters  56 (56 trainable), 224 B", "FLOPs       510"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  std::istringstream lines(text);
  std::vector<size_t> widths;  // of the table, from its head to its second rule
  for (std::string line; std::getline(lines, line) && widths.size() < 9;) widths.push_back(line.size());
  EXPECT_EQ(std::set<size_t>(widths.begin(), widths.begin() + 7).size(), 1u) << text;
  EXPECT_TRUE(m.drop.training);  // as it was
  EXPECT_TRUE(has(text_of([&] { summary(m, {2, 5}); }), "table"));
  EXPECT_TRUE(m.drop.training);
  struct Two {
    nn::Bilinear mix{2, 3, 4};
    Tensor operator()(const Tensor& a, const Tensor& b) const { return mix(a, b); }
  };
  Two two;
  EXPECT_TRUE(has(summary(two, [&] { two(ones({1, 2}), ones({1, 3})); }), "[1, 4]"));
  EXPECT_TRUE(has(text_of([&] { summary(two, {1, 2}); }), "more than one"));
}

TEST(NnSummary, WorkOfLayers) {
  const Tensor x = zeros({2, 5, 8}), steps = zeros({5, 2, 4}), y;
  const double projections = 3 * 8 * 8, keys = 2 * 5 * 8;  // for one query
  EXPECT_EQ(nn::MultiheadAttention(8, 2, {.batch_first = true}).flops(x, y), 2 * 10 * (projections + keys));
  EXPECT_EQ(nn::LSTM(4, 3).flops(steps, y), 2 * 10 * (12 * 4 + 12 * 3));
  EXPECT_EQ(nn::PixelShuffle(2).flops(x, x), 0);
  EXPECT_EQ(nn::PixelUnshuffle(2).flops(x, x), 0);
}

TEST(NnSequential, BuilderNamesLookUp) {
  auto seq =
      nn::Sequential::builder().add("fc1", nn::Linear(4, 8)).add(nn::ReLU()).add("fc2", nn::Linear(8, 2)).build();
  EXPECT_EQ(seq.names(), (Names{"fc1", "1", "fc2"}));
  EXPECT_EQ(names_of(named_parameters(seq)), (Names{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(seq(randn({3, 4})).shape(), (Shape{3, 2}));
  EXPECT_EQ(seq["fc1"].get<nn::Linear>().weight.shape(), (Shape{8, 4}));
  EXPECT_EQ(seq.get<nn::Linear>(-1).weight.impl_pointer(), seq["fc2"].get<nn::Linear>().weight.impl_pointer());
  EXPECT_EQ(seq[1].get_if<nn::Linear>(), nullptr);
  EXPECT_TRUE(has(text_of([&] { seq[1].get<nn::Linear>(); }), "holds a ReLU, not a Linear"));
  EXPECT_TRUE(has(text_of([&] { seq["fc3"]; }), "fc1, 1, fc2"));
  EXPECT_FALSE(attempt([&] { seq[3]; }));
  EXPECT_FALSE(attempt([&] { seq[-4]; }));
  EXPECT_TRUE(has(text_of([] { nn::Sequential::builder().add("a", nn::ReLU()).add("a", nn::ReLU()); }), "'a'"));
  EXPECT_TRUE(has(text_of([] { nn::Sequential::builder().add("1", nn::ReLU()).add(nn::ReLU()); }), "'1'"));
  EXPECT_FALSE(attempt([] { nn::Sequential::builder().add("a.b", nn::ReLU()); }));
  EXPECT_FALSE(attempt([] { nn::Sequential::builder().add("", nn::ReLU()); }));
}

TEST(NnSequential, ListCopyAndState) {
  nn::Sequential seq(nn::Linear(4, 8), nn::Tanh(), nn::Sequential(nn::Linear(8, 3)), Net());
  const nn::Sequential copy = seq;
  const Tensor x = randn({3, 4});
  eval(seq);
  EXPECT_EQ(named_parameters(copy)[2].first, "2.0.weight");
  nn::Sequential other = copy;
  eval(other);
  EXPECT_TRUE(equal(other(x), seq(x)));
  nn::init::zeros_(other.get<nn::Linear>(0).weight);
  EXPECT_FALSE(equal(other(x), seq(x)));
  load_state_dict(other, state_dict(seq));
  EXPECT_TRUE(equal(other(x), seq(x)));
  EXPECT_TRUE(equal(nn::Sequential()(x), x));
  nn::Sequential from_list(std::vector<nn::AnyModule>{nn::Linear(4, 2), nn::ReLU()});
  EXPECT_EQ(from_list.size(), 2u);
}

TEST(NnSequential, AnyModule) {
  nn::AnyModule any;
  EXPECT_TRUE(any.empty());
  EXPECT_FALSE(attempt([&] { any(ones({1})); }));
  any = Block{4};
  EXPECT_EQ(any(randn({3, 4})).shape(), (Shape{3, 4}));
  nn::AnyModule twin = any;
  EXPECT_FALSE(twin.get<Block>().up.weight.shares_storage(any.get<Block>().up.weight));
  any = [](const Tensor& x) { return x * 2; };
  EXPECT_TRUE(parameters(any).empty());
  any = static_cast<Tensor (*)(const Tensor&)>(relu);
  EXPECT_TRUE(equal(any(tensor({-1.0, 1.0})), tensor({0.0, 1.0})));
  struct MoveOnly {
    std::unique_ptr<nn::Linear> fc = std::make_unique<nn::Linear>(2, 2);
    Tensor operator()(const Tensor& x) const { return (*fc)(x); }
  };
  any = MoveOnly{};
  EXPECT_EQ(parameters(any).size(), 2u);
  EXPECT_TRUE(has(text_of([&] { static_cast<void>(nn::AnyModule(any)); }), "MoveOnly"));
  nn::Dict<> parts{{"act", nn::ReLU()}, {"fc", nn::Linear(2, 2)}};
  EXPECT_EQ(names_of(named_parameters(parts)), (Names{"fc.weight", "fc.bias"}));
  EXPECT_FALSE(attempt([&] { parts.add("fc", nn::ReLU()); }));
}

TEST(NnSequential, RepeatMakesWeightsOfTheirOwn) {
  const auto list = nn::repeat<Block>(3, 4);
  EXPECT_EQ(list.size(), 3u);
  EXPECT_FALSE(list[0].up.weight.shares_storage(list[1].up.weight));
  EXPECT_FALSE(equal(list[0].up.weight, list[1].up.weight));
  EXPECT_TRUE(nn::repeat<Block>(0, 4).empty());
  EXPECT_FALSE(attempt([] { return nn::repeat<Block>(-1, 4); }));
}

TEST(NnModel, StateDictKeepsOrderAndNamesWhatIsMissing) {
  StateDict d{{"b", ones({1})}, {"a", ones({2})}};
  d["c"] = ones({3});
  EXPECT_EQ(d.names(), (Names{"b", "a", "c"}));
  d.erase("b");
  EXPECT_EQ(d.at("c").numel(), 3);
  EXPECT_TRUE(has(text_of([&] { d.at("b"); }), "a, c"));
  EXPECT_FALSE(attempt([&] { d.erase("b"); }));
  EXPECT_FALSE(attempt([] { StateDict twice{{"a", ones({1})}, {"a", ones({1})}}; }));
}

TEST(ThreadsNn, OneConstModelServesMany) {
  Net net;
  eval(net);
  const Net& shared = net;
  const Tensor x = randn({4, 3});
  const Tensor expected = shared(x);
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        const NoGrad off;
        right[i] += equal(shared(x), expected) && named_parameters(shared).size() == 14;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, (std::vector<int>(4, 20)));
}

// One backward and one step: no parameter is left behind.
TEST(NnModel, EveryParameterLearns) {
  Net net;
  const std::vector<Tensor> list = parameters(net);
  std::vector<Tensor> before;
  for (const Tensor& p : list) before.push_back(p.detach().clone());
  (net(randn({16, 3})) - randn({16, 2})).square().mean().backward();
  const NoGrad off;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSERT_TRUE(list[i].grad()) << named_parameters(net)[i].first;
    EXPECT_TRUE(isfinite(*list[i].grad()).all().item<bool>());
    Tensor(list[i]).sub_(*list[i].grad() * 0.1);
    EXPECT_FALSE(equal(list[i], before[i])) << named_parameters(net)[i].first;
  }
}

}  // namespace
}  // namespace volta

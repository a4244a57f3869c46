// Every way of writing a model: no parameter is left out.
#include <gtest/gtest.h>
#include <volta/volta.h>

#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <unordered_map>

#include "core/impl.h"

namespace volta {
namespace {

using Names = std::vector<std::string>;
template <class M> Names names_of(const M& model) {
  Names names;
  for (const auto& [name, x] : named_parameters(model)) names.push_back(name);
  return names;
}
nn::Linear dot(int64_t n = 1) { return {n, 1, {.bias = false}}; }

TEST(NnFields, ArraysOfLayers) {
  struct Net {
    int before = 1;
    nn::Linear first[2]{dot(), dot()};
    double numbers[3]{};
    nn::Linear grid[2][2]{{dot(), dot()}, {dot(), dot()}};
    nn::Linear one[1]{dot()};
    nn::Linear* pointers[2]{};
    nn::Linear last = dot();
  };
  EXPECT_EQ(names_of(Net()), (Names{"first.0.weight", "first.1.weight", "grid.0.0.weight", "grid.0.1.weight",
                                    "grid.1.0.weight", "grid.1.1.weight", "one.0.weight", "last.weight"}));
  struct NoDefaults {
    nn::Linear a;
    nn::Linear list[2];
    nn::Linear b;
  };
  EXPECT_EQ(names_of(NoDefaults{dot(), {dot(), dot()}, dot()}),
            (Names{"a.weight", "list.0.weight", "list.1.weight", "b.weight"}));
  struct OnlyArray {
    nn::Parameter list[3]{ones({1}), ones({1}), ones({1})};
  };
  EXPECT_EQ(names_of(OnlyArray()), (Names{"list.0", "list.1", "list.2"}));
}

// A constructor, private members, `forward` that is not const: one line names what there is.
class Hidden {
 public:
  explicit Hidden(int64_t n) : inner_(n, n), list_{dot(n), dot(n)} {}
  Tensor forward(const Tensor& x) { return inner_(x); }
  void fields(nn::Fields& f) { f("inner", inner_), f("list", list_); }

 private:
  nn::Linear inner_;
  nn::Linear list_[2];
};

TEST(NnFields, PrivateMembersAndConstructors) {
  struct Net {
    Hidden hidden{2};
    std::vector<Hidden> more{Hidden(1)};
  };
  EXPECT_EQ(names_of(Net()),
            (Names{"hidden.inner.weight", "hidden.inner.bias", "hidden.list.0.weight", "hidden.list.1.weight",
                   "more.0.inner.weight", "more.0.inner.bias", "more.0.list.0.weight", "more.0.list.1.weight"}));
}

struct LoRA : nn::Linear {
  LoRA() : nn::Linear(4, 3) {}
  nn::Parameter a = zeros({2, 4}), b = zeros({3, 2});
  void fields(nn::Fields& f) override { nn::Linear::fields(f), f("a", a), f("b", b); }
};
struct Renamed : nn::Linear {
  using nn::Linear::Linear;
};

TEST(NnFields, DerivedLayers) {
  struct Net {
    LoRA fc;
    Renamed plain{1, 1};
    nn::LSTM lstm{1, 1};
    nn::BatchNorm2d norm{2};
    std::unique_ptr<nn::Layer> held = std::make_unique<LoRA>();
  };
  const Names names = names_of(Net());
  EXPECT_EQ(Names(names.begin(), names.begin() + 6),
            (Names{"fc.weight", "fc.bias", "fc.a", "fc.b", "plain.weight", "plain.bias"}));
  EXPECT_EQ(names.size(), 4u + 2 + 4 + 2 + 4);
  struct Base {
    nn::Linear a = dot();
  };
  struct Derived : Base {
    nn::Linear b = dot();
    void fields(nn::Fields& f) { f("a", a), f("b", b); }
  };
  EXPECT_EQ(names_of(Derived()), (Names{"a.weight", "b.weight"}));
}

struct Tree {
  nn::Linear value = dot();
  Tree* parent = nullptr;
  std::vector<std::shared_ptr<Tree>> children;
  std::weak_ptr<Tree> neighbour;
};

TEST(NnFields, PointersAreFollowedAndMayBeNull) {
  nn::Linear outside = dot();
  struct Net {
    nn::Linear* raw = nullptr;
    const nn::Linear* null = nullptr;
    std::shared_ptr<nn::Linear> shared, none;
    std::reference_wrapper<nn::Linear> reference;
    Tensor (*function)(const Tensor&) = relu;
    const char* text = "text";
    nn::Parameter* parameter = nullptr;
  };
  nn::Parameter p = ones({1});
  const Net net{.raw = &outside,
                .null = nullptr,
                .shared = std::make_shared<nn::Linear>(dot()),
                .none = nullptr,
                .reference = outside,
                .parameter = &p};
  EXPECT_EQ(names_of(net), (Names{"raw.weight", "shared.weight", "parameter"}));
  EXPECT_TRUE(state_dict(net).contains("reference.weight"));
}

// Elements that cannot be copied, before other members: clang must not be led to copy them while members are counted.
TEST(NnFields, ContainersOfPointers) {
  struct Net {
    std::vector<std::unique_ptr<nn::Linear>> list;
    std::vector<std::vector<std::unique_ptr<nn::Linear>>> nested;
    std::list<std::unique_ptr<nn::Linear>> pairs[2];
    std::map<std::string, std::unique_ptr<nn::Linear>> map;
    std::optional<std::vector<std::unique_ptr<nn::Linear>>> maybe;
    nn::Linear array[2]{dot(), dot()};
    double numbers[3]{};
    nn::Linear last = dot();
  };
  const auto one = [] { return std::make_unique<nn::Linear>(dot()); };
  Net net;
  net.list.push_back(one());
  net.nested.emplace_back().push_back(one());
  net.pairs[1].push_back(one());
  net.map["k"] = one();
  net.maybe.emplace().push_back(one());
  EXPECT_EQ(names_of(net), (Names{"list.0.weight", "nested.0.0.weight", "pairs.1.0.weight", "map.k.weight",
                                  "maybe.0.weight", "array.0.weight", "array.1.weight", "last.weight"}));
}

// Classes with virtual functions that are no layers, held by pointers to their base.
class Activation {
 public:
  virtual ~Activation() = default;
  virtual void fields(nn::Fields& f) { f("scale", scale); }
  nn::Parameter scale = ones({1});
};
class Swish : public Activation {
 public:
  void fields(nn::Fields& f) override { Activation::fields(f), f("beta", beta); }
  nn::Parameter beta = ones({1});
};
struct Tagged {
  virtual ~Tagged() = default;
  int tag = 7;
};
class Noisy : public Tagged, public Activation, public nn::Layer {  // neither base at its beginning
 public:
  Noisy() : Layer("Noisy") {}
  void fields(nn::Fields& f) override { Activation::fields(f), f("level", level); }
  nn::Parameter level = ones({1});
};
struct Activations {
  std::vector<std::unique_ptr<Activation>> list;
  Activation* back = nullptr;
};
Activations activations() {
  Activations net;
  net.list.push_back(std::make_unique<Swish>());
  net.list.push_back(std::make_unique<Activation>());
  net.list.push_back(std::make_unique<Noisy>());
  net.back = net.list[0].get();
  return net;
}

TEST(NnFields, DerivedClassesBehindPointersToTheirBase) {
  Activations net = activations();
  EXPECT_EQ(names_of(net), (Names{"list.0.scale", "list.0.beta", "list.1.scale", "list.2.scale", "list.2.level"}));
  std::vector<void*> swish, activation, noisy, tagged, layers;
  apply<Swish>(net, [&](Swish& s) { swish.push_back(&s); });
  apply<Activation>(net, [&](Activation& a) { activation.push_back(&a); });
  apply<Noisy>(net, [&](Noisy& n) { noisy.push_back(&n); });
  apply<Tagged>(net, [&](Tagged& t) { tagged.push_back(t.tag == 7 ? &t : nullptr); });
  apply<nn::Layer>(net, [&](nn::Layer& l) { layers.push_back(&l); });
  using Found = std::vector<void*>;
  Activation *const first = net.list[0].get(), *const second = net.list[1].get(), *const third = net.list[2].get();
  EXPECT_EQ(swish, (Found{first, first}));  // in the list, and by `back`
  EXPECT_EQ(activation, (Found{first, second, third, first}));
  EXPECT_EQ(noisy, (Found{dynamic_cast<Noisy*>(third)}));
  EXPECT_EQ(tagged, (Found{dynamic_cast<Tagged*>(third)}));
  EXPECT_EQ(layers, (Found{dynamic_cast<nn::Layer*>(third)}));
  const auto parts = children(net);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].as<Swish>(), first);
  EXPECT_EQ(parts[0].as<Activation>(), first);
  EXPECT_EQ(*parts[0].type, typeid(Swish));
  EXPECT_EQ(parts[1].as<Swish>(), nullptr);
  EXPECT_EQ(parts[2].as<Activation>(), third);
  EXPECT_EQ(parts[2].as<Noisy>(), dynamic_cast<Noisy*>(third));
  eval(net);
  EXPECT_FALSE(dynamic_cast<Noisy&>(*third).training);
}

// A derived object met first whole and then as its base, in a circle.
struct Ring : Tagged {
  virtual void fields(nn::Fields& f) { f("fc", fc), f("next", next); }
  nn::Linear fc = dot();
  Tagged* none = nullptr;
  Ring* next = nullptr;
};
struct LongRing : Activation, Ring {
  void fields(nn::Fields& f) override { Ring::fields(f); }
};
TEST(NnFields, CirclesThroughBases) {
  LongRing ring;
  Ring inner;
  ring.next = &inner, inner.next = &ring;
  EXPECT_EQ(names_of(ring), (Names{"fc.weight", "next.fc.weight"}));
  EXPECT_EQ(modules(ring).size(), 4u);
}

class Plain {
 public:
  virtual ~Plain() = default;
  void fields(nn::Fields& f) { f("a", a); }
  nn::Linear a = dot();
};
class Longer : public Plain {
 public:
  void fields(nn::Fields& f) { Plain::fields(f), f("own", own); }
  nn::Linear own = dot();
};

TEST(NnFields, FieldsOfABaseThatAreNotVirtual) {
  struct Net {
    std::unique_ptr<Plain> part = std::make_unique<Plain>();
  };
  Net net;
  EXPECT_EQ(names_of(net), (Names{"part.a.weight"}));
  EXPECT_EQ(names_of(Longer()), (Names{"a.weight", "own.weight"}));
  net.part = std::make_unique<Longer>();
  const auto r = attempt([&] { return parameters(net); });
  ASSERT_FALSE(r);
  const std::string text = r.error().what();
  for (const char* word : {"part is a ", "Longer held as a Plain", "virtual void fields(nn::Fields& f)"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  const Longer longer;
  const Plain& base = longer;
  EXPECT_FALSE(attempt([&] { return state_dict(base); }));
}

TEST(NnFields, PointersBackDoNotLoop) {
  Tree root;
  root.children = {std::make_shared<Tree>(), std::make_shared<Tree>()};
  for (const auto& child : root.children) child->parent = &root;
  root.children[0]->neighbour = root.children[1], root.children[1]->neighbour = root.children[0];
  EXPECT_EQ(parameters(root).size(), 3u);
  root.children[1]->children = {root.children[0]};  // twice in the tree
  EXPECT_EQ(parameters(root).size(), 3u);
}

enum class Head { left, right };

TEST(NnFields, NestedContainers) {
  struct Net {
    std::vector<std::vector<nn::Linear>> nested{{dot(), dot()}, {}, {dot()}};
    std::map<std::string, std::vector<nn::Linear>> map{{"k", {dot()}}};
    std::unordered_map<int, nn::Linear> numbers{{3, dot()}};
    std::map<Head, nn::Linear> heads{{Head::right, dot()}};
    std::optional<std::pair<int, nn::Linear>> pair{std::pair(1, dot())};
    std::variant<std::monostate, std::array<nn::Linear, 1>> choice{std::array{dot()}};
    std::tuple<std::unique_ptr<nn::Linear>, std::string> tuple{std::make_unique<nn::Linear>(dot()), ""};
    std::vector<nn::Linear*> pointers;
    std::vector<std::unique_ptr<nn::Layer>> layers;
  };
  Net net;
  net.pointers = {&net.nested[0][0], nullptr};
  net.layers.push_back(std::make_unique<nn::Linear>(dot()));
  EXPECT_EQ(names_of(net),
            (Names{"nested.0.0.weight", "nested.0.1.weight", "nested.2.0.weight", "map.k.0.weight", "numbers.3.weight",
                   "heads.1.weight", "pair.1.weight", "choice.0.weight", "tuple.0.weight", "layers.0.weight"}));
}

class Tokenizer {
 public:
  explicit Tokenizer(int n) : n_(n) {}
  int size() const { return n_; }

 private:
  int n_;
};

}  // namespace
template <> inline constexpr bool nn::stateless<Tokenizer> = true;
namespace {

// What has no parameters does not stand in the way.
TEST(NnFields, PlainMembers) {
  struct Numbers {
    std::string text = "text";
    std::complex<float> c;
    std::chrono::milliseconds time{};
    std::filesystem::path path;
    std::mt19937 engine;
    std::vector<bool> bits;
    std::vector<std::string> words;
    std::map<std::string, int> counts;
    Shape shape;
    DType dtype = f32;
    Device device = "cpu";
    Tensor plain = ones({2});
    std::vector<Tensor> tensors;
    std::optional<Tensor> maybe;
    Generator* generator = nullptr;
    nn::ConvLayerOptions conv;
    nn::TransformerOptions transformer;
    MaxPoolOptions pool;
    nn::CrossEntropyLoss loss;
    nn::KeyValueCache cache;
    Tokenizer tokenizer{3};
    nn::ReLU act;
    nn::Linear fc = dot();
  };
  EXPECT_EQ(names_of(Numbers()), (Names{"fc.weight"}));
  struct Locked {
    std::mutex mutex;
    std::atomic<int> calls{0};
    nn::Linear fc = dot();
    void fields(nn::Fields& f) { f("mutex", mutex), f("calls", calls), f("fc", fc); }
  };
  Locked locked;
  EXPECT_EQ(names_of(locked), (Names{"fc.weight"}));
}

TEST(NnFields, LossesAndOptimizersAsMembers) {
  struct Net {
    nn::Linear fc = dot();
    nn::TripletMarginWithDistanceLoss loss;
    nn::MSELoss error;
    optim::Adam adam{{fc.weight}};
    optim::StepLR schedule{adam, {.step_size = 1}};
    std::unique_ptr<optim::Optimizer> later;
    optim::ReduceLROnPlateau plateau{adam};
    optim::EMA average{{fc.weight}, 0.9};
    GradScaler scaler;
    metrics::Accuracy accuracy;
    nn::Linear last = dot();
  };
  Net net;
  EXPECT_EQ(names_of(net), (Names{"fc.weight", "last.weight"}));
  EXPECT_TRUE(parameters(nn::CrossEntropyLoss()).empty());
  EXPECT_EQ(children(net)[2].as<nn::MSELoss>(), &net.error);
}

struct ByForward {
  nn::Linear fc{4, 2};
  Tensor forward(const Tensor& x) const { return fc(x); }
};

TEST(NnFields, ForwardIsACallToo) {
  nn::Sequential net(nn::Linear(3, 4), ByForward());
  EXPECT_EQ(net(ones({1, 3})).shape(), (Shape{1, 2}));
  EXPECT_EQ(parameters(net).size(), 4u);
  ByForward one;
  EXPECT_NE(summary(one, {1, 4}).find("fc"), std::string::npos);
}

TEST(NnFields, SequentialTakesCapturingLambdas) {
  const double factor = 3;
  const Tensor shift = ones({2});
  nn::Sequential net(nn::Linear(4, 2), [factor, shift](const Tensor& x) { return x * factor + shift; });
  EXPECT_EQ(parameters(net).size(), 2u);
  const Tensor x = randn({1, 4});
  EXPECT_TRUE(allclose(net(x), net.get<nn::Linear>(0)(x) * 3 + 1));
  const nn::Sequential copy = net;
  EXPECT_TRUE(equal(copy(x), net(x)));
  nn::Linear held(4, 4);
  net.add([&held](const Tensor& y) { return y + held.bias.sum() * 0; });
  const std::function<Tensor(const Tensor&)> function = relu;
  net.add(function);
  EXPECT_EQ(net.size(), 4u);
}

TEST(NnFields, ALambdaThatOwnsALayerIsRefused) {
  const auto owner = [fc = nn::Linear(2, 2)](const Tensor& x) { return fc(x); };
  for (const auto& r : {attempt([&] { static_cast<void>(nn::Sequential(nn::ReLU(), owner)); }),
                        attempt([&] { static_cast<void>(nn::Lambda("Mine", owner)); })}) {
    ASSERT_FALSE(r);
    EXPECT_NE(std::string(r.error().what()).find("captures a layer"), std::string::npos);
  }
  EXPECT_FALSE(attempt([] { static_cast<void>(nn::Lambda("Empty", nn::Lambda::Function())); }));
}

// Ranges that own what they show, views of the standard library, and sums and products of types.
struct Owning {
  std::vector<nn::Linear> list;
  auto begin() { return list.begin(); }
  auto end() { return list.end(); }
};
TEST(NnFields, RangesAndViewsShowAllTheirLayers) {
  nn::Linear outside = dot();
  std::vector<nn::Linear> viewed;
  viewed.push_back(dot()), viewed.push_back(dot());
  struct Net {
    Owning owning;
    std::span<nn::Linear> view;
    std::variant<std::monostate, nn::Linear, std::vector<nn::Linear>> choice;
    std::tuple<nn::Linear, int, std::optional<std::optional<nn::Linear>>> parts{dot(), 1, {}};
    std::array<std::array<nn::Linear*, 2>, 2> grid{};
    std::list<std::reference_wrapper<nn::Linear>> references;
    std::multimap<std::string, nn::Linear> twice;
  } net;
  net.owning.list.push_back(dot()), net.owning.list.push_back(dot());
  net.view = viewed;
  net.choice = std::vector<nn::Linear>();
  std::get<2>(net.choice).push_back(dot());
  std::get<2>(net.parts).emplace(dot());
  net.references.emplace_back(outside);
  EXPECT_EQ(names_of(net), (Names{"owning.list.0.weight", "owning.list.1.weight", "view.0.weight", "view.1.weight",
                                  "choice.0.weight", "parts.0.weight", "parts.2.weight", "references.0.weight"}));
  net.twice.emplace("key", dot()), net.twice.emplace("key", dot());
  EXPECT_FALSE(attempt([&] { return state_dict(net).size(); }));
}

struct Small {
  nn::Linear stem{3, 4};
  std::vector<ByForward> blocks{2};
  Tensor operator()(const Tensor& x) const { return blocks[0].forward(stem(x)); }
};

TEST(NnModel, ModulesAndChildren) {
  Small net;
  Names names, types, inner;
  for (const auto& [name, part] : named_modules(net)) names.push_back(name), types.push_back(part.type_name);
  EXPECT_EQ(names, (Names{"", "stem", "blocks.0", "blocks.0.fc", "blocks.1", "blocks.1.fc"}));
  EXPECT_EQ(types, (Names{"Small", "Linear", "ByForward", "Linear", "ByForward", "Linear"}));
  for (const auto& [name, part] : named_children(net)) inner.push_back(name);
  EXPECT_EQ(inner, (Names{"stem", "blocks.0", "blocks.1"}));
  EXPECT_EQ(modules(net).size(), 6u);
  ASSERT_EQ(children(net).size(), 3u);
  EXPECT_EQ(children(net)[0].as<nn::Linear>(), &net.stem);
  EXPECT_EQ(children(net)[1].as<nn::Linear>(), nullptr);
  EXPECT_EQ(children(net)[1].as<ByForward>(), &net.blocks[0]);
}

// What a Sequential holds is listed once, as what it is.
TEST(NnModel, ModulesOfASequential) {
  struct Free {
    Tensor operator()(const Tensor& x) const { return x + 1; }
  };
  nn::Sequential net{nn::Linear(3, 4), nn::ReLU(), nn::Sequential{nn::Linear(4, 2)},
                     nn::AnyModule([](const Tensor& x) { return x * 2; })};
  Names names, types, inner, applied;
  for (const auto& [name, part] : named_modules(net)) names.push_back(name), types.push_back(part.type_name);
  EXPECT_EQ(names, (Names{"", "0", "1", "2", "2.0", "3"}));
  EXPECT_EQ(types, (Names{"Sequential", "Linear", "ReLU", "Sequential", "Linear", "AnyModule"}));
  for (const auto& [name, part] : named_children(net)) inner.push_back(name);
  EXPECT_EQ(inner, (Names{"0", "1", "2", "3"}));
  ASSERT_EQ(children(net).size(), 4u);
  ASSERT_NE(children(net)[0].as<nn::Linear>(), nullptr);
  EXPECT_TRUE(equal(children(net)[0].as<nn::Linear>()->weight, parameters(net)[0]));
  apply(net, [&](const nn::Module& m) { applied.push_back(m.path.str() + " " + std::string(m.type_name)); });
  EXPECT_EQ(applied, (Names{"0 Linear", "1 ReLU", "2.0 Linear", "2 Sequential", "3 AnyModule", " Sequential"}));
  const std::function<void(const nn::Module&)> count = [&](const nn::Module&) { applied.clear(); };
  apply(net, count);
  EXPECT_TRUE(applied.empty());
  eval(net);
  EXPECT_FALSE(net[0].training || net[0].get<nn::Linear>().training || net[3].training);
  nn::AnyModule held = nn::Linear(2, 2), none;
  EXPECT_EQ(named_modules(held).size(), 1u);
  EXPECT_EQ(named_modules(held)[0].second.type_name, "Linear");
  EXPECT_EQ(named_modules(none).at(0).second.type_name, "AnyModule");
}

TEST(NnModel, ParametersToVectorAndBack) {
  Small net, other;
  const Tensor v = nn::parameters_to_vector(parameters(net));
  EXPECT_EQ(v.shape(), (Shape{num_parameters(net)}));
  const std::vector<Tensor> handles = parameters(other);
  nn::vector_to_parameters(v, handles);
  for (size_t i = 0; i < handles.size(); ++i) EXPECT_TRUE(equal(handles[i], parameters(net)[i]));
  EXPECT_TRUE(handles[0].requires_grad() && handles[0].is_leaf());
  EXPECT_TRUE(equal(grad(v.square().sum(), net.stem.bias), 2 * net.stem.bias));
  EXPECT_FALSE(attempt([&] { nn::vector_to_parameters(v[{slice(1)}], handles); }));
  EXPECT_FALSE(attempt([] { return nn::parameters_to_vector({}); }));
}

TEST(NnModel, FunctionalCall) {
  Small net;
  const Tensor x = randn({5, 3}), before = net(x);
  const Tensor w = randn({4, 3}, {.requires_grad = true});
  const Tensor y = functional_call(net, {{"stem.weight", w * 2}}, x);
  EXPECT_TRUE(equal(net(x), before));
  EXPECT_TRUE(allclose(y, net.blocks[0].fc(linear(x, w * 2, net.stem.bias))));
  EXPECT_TRUE(gradcheck(
      [&](const Tensor& v) {
        Small wide = net;
        to(wide, f64);
        return functional_call(wide, {{"stem.weight", v}}, x.to(f64));
      },
      w.detach().to(f64).requires_grad_()));
  const Tensor g = grad(y.sum(), w, {.retain_graph = true});
  EXPECT_GT(g.abs().sum().item<float>(), 0);
  y.sum().backward();
  EXPECT_FALSE(net.stem.weight.grad());
  EXPECT_TRUE(net.stem.bias.grad());
  const auto wrong = attempt([&] { return functional_call(net, {{"stem.wait", w}, {"stem.weight", w}}, x); });
  ASSERT_FALSE(wrong);
  EXPECT_NE(std::string(wrong.error().what()).find("stem.wait"), std::string::npos);
  EXPECT_FALSE(attempt([&] { return functional_call(net, {{"stem.weight", ones({9, 9})}}, x); }));
  EXPECT_TRUE(equal(net(x), before));  // also after an error
}

struct Twice {
  nn::Linear a = dot(), b = dot();
  void fields(nn::Fields& f) { f("a", a), f("a", b); }
};
TEST(NnModel, TwoOfOneName) {
  const auto r = attempt([] { return state_dict(Twice()); });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().op(), "state_dict");
  EXPECT_NE(std::string(r.error().what()).find("the model Twice has two tensors called 'a.weight'"), std::string::npos);
}

TEST(NnModel, LoadSaysWhoseShapeIsWhose) {
  nn::Linear fc(3, 2);
  const auto r = attempt([&] { load_state_dict(fc, {{"weight", ones({4, 3})}, {"bias", ones({2})}}); });
  ASSERT_FALSE(r);
  EXPECT_NE(std::string(r.error().what()).find("weight (the model's [2, 3], the state's [4, 3])"), std::string::npos);
}

TEST(NnReparametrize, AnyLayerAndParameter) {
  manual_seed(4);
  const Tensor x = randn({6, 2, 3});
  const nn::LSTM plain(3, 4);
  auto normed = nn::weight_norm(plain, "weight_hh_l0");
  EXPECT_EQ(names_of(normed)[0], "weight_hh_l0_g");
  EXPECT_EQ(parameters(normed).size(), 5u);
  EXPECT_TRUE(allclose(normed(x).output, plain(x).output, {.atol = 1e-6}));
  normed(x).output.sum().backward();
  for (const Tensor& p : parameters(normed)) EXPECT_TRUE(p.grad());
  const nn::LSTM back = nn::remove_weight_norm(normed);
  EXPECT_EQ(names_of(back), names_of(plain));
  EXPECT_TRUE(allclose(back(x).output, plain(x).output, {.atol = 1e-6}));

  const nn::Embedding table(5, 3);
  const Tensor ids = tensor({1, 4, 1});
  EXPECT_TRUE(allclose(nn::weight_norm(table)(ids), table(ids), {.atol = 1e-6}));
  nn::ConvTranspose2d up(2, 3, 2);
  auto spectral = nn::spectral_norm(up);
  EXPECT_EQ(spectral.weight_u.shape(), (Shape{3}));  // the outputs are axis 1 there
  eval(spectral);
  const Tensor image = randn({1, 2, 4, 4}), y = spectral(image);
  EXPECT_TRUE(allclose(nn::remove_spectral_norm(spectral)(image), y, {.atol = 1e-6}));
  const auto wrong = attempt([&] { return nn::weight_norm(nn::Linear(2, 2), "wait"); });
  ASSERT_FALSE(wrong);
  EXPECT_NE(std::string(wrong.error().what()).find("weight, bias"), std::string::npos);
}

}  // namespace
}  // namespace volta

// StateMap: each rule, their order, plans, and the ready maps onto the shipped models.
#include <models/bert.h>
#include <models/gpt.h>
#include <models/resnet.h>

#include "io/glob.h"
#include "io_common.h"

namespace volta {
namespace {

const std::string data = VOLTA_TEST_DATA "/io/";
using Names = std::vector<std::string>;

StateDict named(const Names& names, const Shape& shape = {2, 3}) {
  StateDict state;
  for (size_t i = 0; i < names.size(); ++i) state.add(names[i], full(shape, double(i)));
  return state;
}

TEST(IoStateMap, Patterns) {
  EXPECT_EQ(io::match("a.*.b.*", "a.12.b.c.d"), (Names{"12", "c.d"}));
  EXPECT_EQ(io::match("*", ""), (Names{""}));
  EXPECT_EQ(io::match("**", "ab")->size(), 2u);
  EXPECT_EQ(io::match("*.weight", "x.weight.weight"), (Names{"x.weight"}));
  EXPECT_EQ(io::match("h.?.w", "h.3.w"), Names{});
  EXPECT_FALSE(io::match("h.?.w", "h.33.w"));
  EXPECT_EQ(io::match("h.?.*", "h.ß.é"), (Names{"é"}));  // a character may have several bytes
  EXPECT_EQ(io::match("?", "日"), Names{});
  EXPECT_EQ(io::match("*?", "日本"), (Names{"日"}));
  EXPECT_FALSE(io::match("??", "日"));
  EXPECT_FALSE(io::match("", "a"));
  EXPECT_TRUE(io::match("", ""));
  EXPECT_FALSE(io::match("a*b", "ac"));
  EXPECT_FALSE(io::match(std::string(50, '*') + "b", std::string(3000, 'a')));  // and soon
}

TEST(IoStateMap, Names) {
  const StateDict s = named({"model.a.weight", "model.b.weight", "other"});
  EXPECT_EQ(StateMap().strip_prefix("model.").apply(s).names(), (Names{"a.weight", "b.weight", "other"}));
  EXPECT_EQ(StateMap().add_prefix("x.").apply(s).names()[2], "x.other");
  EXPECT_EQ(StateMap().rename("other", "mine").apply(s).names()[2], "mine");
  EXPECT_EQ(StateMap().rename_prefix("model.", "net.").apply(s).names()[0], "net.a.weight");
  EXPECT_EQ(StateMap().rename_pattern("model.*.w*", "*.W*").apply(s).names()[1], "b.Weight");
  EXPECT_EQ(StateMap().select("*.weight").apply(s).size(), 2u);
  EXPECT_EQ(StateMap().exclude("*.weight").apply(s).names(), (Names{"other"}));
  EXPECT_EQ(StateMap().strip_prefix("model.").rename("a.weight", "c").apply(s).names()[0], "c");
  EXPECT_EQ(StateMap().strip_prefix("model.").then(StateMap().add_prefix("y.")).apply(s).names()[0], "y.a.weight");
  expect_in("'model.a.weight' and 'model.b.weight' would both be called 'z'",
            error_of([&] { return StateMap().rename("model.a.weight", "z").rename("model.b.weight", "z").apply(s); }));
  EXPECT_FALSE(attempt([&] { return StateMap().rename("other", "model.a.weight").plan(s); }));
  for (const StateMap& map : {StateMap().strip_prefix("other"), StateMap().rename("other", ""),
                              StateMap().rename_pattern("o*r", "*").strip_prefix("the")}) {
    expect_in("'other' would have no name left", error_of([&] { return map.apply(s); }));
    expect_in("'other' would have no name left", error_of([&] { return map.plan(s).lines; }));
  }
  EXPECT_EQ(StateMap().apply(named({""})).names(), (Names{""}));  // one that had none keeps it
  EXPECT_EQ(StateMap().rename("other", "t").rename("model.a.weight", "other").apply(s).size(), 3u);
  expect_in("'*' has 1 stars, 'a' has 0", error_of([] { return StateMap().rename_pattern("*", "a"); }));
}

TEST(IoStateMap, Values) {
  const Tensor qkv = randn({6, 4});
  const StateDict s{{"h.0.qkv.weight", qkv}, {"h.0.ids", arange(0, 3)}};
  const StateDict cut = StateMap().split("h.*.qkv.*", 0, {"h.*.q.*", "h.*.k.*", "h.*.v.*"}).apply(s);
  EXPECT_EQ(cut.names(), (Names{"h.0.q.weight", "h.0.k.weight", "h.0.v.weight", "h.0.ids"}));
  EXPECT_TRUE(equal(cut.at("h.0.k.weight"), qkv.slice(0, 2, 4)));
  const StateDict back = StateMap().merge({"*.q.weight", "*.k.weight", "*.v.weight"}, 0, "*.qkv.weight").apply(cut);
  EXPECT_EQ(back.names(), (Names{"h.0.qkv.weight", "h.0.ids"}));
  EXPECT_TRUE(same(back.at("h.0.qkv.weight"), qkv));
  EXPECT_TRUE(same(StateMap().transpose("h.0.qkv.weight").apply(s).at("h.0.qkv.weight"), qkv.t().contiguous()));
  const StateDict half = StateMap().cast(bf16).apply(s);
  EXPECT_EQ(half.at("h.0.qkv.weight").dtype(), bf16);
  EXPECT_EQ(half.at("h.0.ids").dtype(), i64);
  const StateDict twice = StateMap()
                              .custom([](const StateDict& state) {
                                StateDict out;
                                for (const auto& [name, x] : state) out.add(name, x.dim() == 2 ? x * 2 : x);
                                return out;
                              })
                              .apply(s);
  EXPECT_TRUE(equal(twice.at("h.0.qkv.weight"), qkv * 2));
  expect_in("does not divide into 4", error_of([&] {
              return StateMap().split("h.*.qkv.weight", 0, {"*a", "*b", "*c", "*d"}).apply(s);
            }));
  expect_in("is missing", error_of([&] {
              return StateMap().merge({"*.q.weight", "*.x.weight"}, 0, "*.y").apply(cut);
            }));
  const StateDict three{{"fc1.weight", ones({1, 2})}, {"fc2.weight", ones({1, 2})}, {"k.weight", ones({1, 2})}};
  expect_in("'fc1.weight' and 'fc2.weight' are both the part 'fc?.weight' of 'all.weight'", error_of([&] {
              return StateMap().merge({"fc?.weight", "k.weight"}, 0, "all.weight").apply(three);
            }));
  expect_in("not a matrix", error_of([&] { return StateMap().transpose("h.0.ids").apply(s); }));
  expect_in("floating", error_of([] { return StateMap().cast(i64); }));
  EXPECT_FALSE(attempt([] { return StateMap().custom({}); }));
  EXPECT_FALSE(attempt([&] { return StateMap().split("h.*.ids", 3, {"*"}).apply(s); }));
  EXPECT_FALSE(attempt([] { return StateMap().apply({{"x", Tensor()}}); }));
}

TEST(IoStateMap, Plans) {
  const StateDict s = named({"a.weight", "b.weight", "c.bias"});
  const StatePlan plan =
      StateMap().rename("a.weight", "x").transpose("x").exclude("c.*").rename("absent", "y").cast(f64, "x").plan(s);
  ASSERT_EQ(plan.lines.size(), 3u);
  EXPECT_EQ(plan.lines[0].what, "rename, transpose, cast");
  EXPECT_EQ(plan.lines[0].shape, (Shape{3, 2}));
  EXPECT_EQ(plan.lines[0].dtype, f64);
  EXPECT_EQ(plan.lines[1].what, "kept");
  EXPECT_EQ(plan.lines[2].to, "");
  EXPECT_EQ(plan.unmatched_rules, (Names{"rename(\"absent\", \"y\")"}));
  EXPECT_EQ(plan.unmatched_keys, (Names{"b.weight"}));
  const std::string text = plan.str();
  for (const char* part : {"a.weight -> x [3, 2] f64", "c.bias   -> (left out)  (excluded)",
                           "rule without effect: rename(", "no rule for: b.weight"})
    expect_in(part, text);
}

struct Named {
  nn::Linear fc1{4, 8};
  nn::BatchNorm1d norm{8};
  nn::Linear fc2{8, 2};
};

TEST(IoStateMap, ByOrder) {
  const nn::Sequential plain(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 2));
  Named named_net;
  nn::Sequential again(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 2));
  const StateDict state = state_dict(plain);
  load_state_dict(named_net, StateMap().by_order(named_net).apply(state));
  EXPECT_TRUE(same(named_net.fc2.weight.detach(), state.at("3.weight")));
  load_state_dict(again, StateMap().by_order(again).apply(state_dict(named_net)));
  EXPECT_TRUE(same(state_dict(again).at("0.bias"), state.at("0.bias")));
  // From a file, whose order is another.
  const Scratch dir;
  StateDict deep;
  nn::Sequential layers, same_layers;
  for (int i = 0; i < 12; ++i) layers.add(nn::Linear(3, 3)), same_layers.add(nn::Linear(3, 3));
  save(layers, dir / "x");
  load_state_dict(same_layers, StateMap().by_order(same_layers).apply(read_safetensors(dir / "x")));
  EXPECT_TRUE(same(state_dict(same_layers).at("11.weight"), state_dict(layers).at("11.weight")));
  expect_in("layers with tensors", error_of([&] { return StateMap().by_order(nn::Linear(1, 1)).apply(state); }));
  expect_in("'0.weight' of shape [8, 4] does not fit layer 'fc1.'", error_of([&] {
              return StateMap().by_order(Named{.fc1 = {5, 8}}).apply(state);
            }));
}

TEST(IoStateMap, ResNet) {
  const auto net = models::resnet18({.classes = 10});
  auto other = models::resnet18({.classes = 10});
  StateDict theirs;
  for (const auto& [name, x] : state_dict(net))
    if (!name.ends_with(".num_batches_tracked")) theirs.add("module." + name, x);  // torchvision's files have none
  load_state_dict(other, maps::resnet().apply(theirs));
  EXPECT_TRUE(same(other.fc.weight.detach(), net.fc.weight.detach()));
}

TEST(IoStateMap, Gpt2) {
  const models::GPTConfig config{.vocab = 11, .context = 8, .width = 6, .heads = 2, .layers = 2, .dropout = 0};
  models::GPT net{config}, other{config};
  StateDict theirs;
  for (const auto& [name, x] : state_dict(net)) {
    const bool turned = x.dim() == 2 && name.starts_with("h.");
    theirs.add("transformer." + name, turned ? x.t().contiguous() : x);
  }
  theirs.add("transformer.h.0.attn.bias", ones({1, 1, 8, 8}));
  theirs.add("transformer.h.1.attn.masked_bias", ones({}));
  theirs.add("lm_head.weight", net.wte.weight.detach());
  load_state_dict(other, maps::gpt2().apply(theirs));
  const Tensor ids = randint(0, 11, {2, 5});
  EXPECT_TRUE(equal(net(ids), other(ids)));
}

TEST(IoStateMap, Bert) {
  const models::BertConfig config{.vocab = 11, .width = 6, .layers = 1, .heads = 2, .intermediate = 8, .context = 8};
  models::Bert net{config}, other{config};
  StateDict theirs;
  for (const auto& [name, x] : state_dict(net)) {
    std::string old = name;
    if (const size_t at = old.find("LayerNorm.weight"); at != std::string::npos) old.replace(at, 16, "LayerNorm.gamma");
    if (const size_t at = old.find("LayerNorm.bias"); at != std::string::npos) old.replace(at, 14, "LayerNorm.beta");
    theirs.add("bert." + old, x);
  }
  theirs.add("cls.predictions.bias", ones({11}));
  theirs.add("bert.embeddings.position_ids", arange(0, 8).unsqueeze(0));
  load_state_dict(other, maps::bert().apply(theirs));
  EXPECT_TRUE(same(other.pooler->dense.weight.detach(), net.pooler->dense.weight.detach()));
}

TEST(IoStateMap, BertWithoutAPooler) {
  const models::BertConfig config{
      .vocab = 11, .width = 6, .layers = 1, .heads = 2, .intermediate = 8, .context = 8, .pooler = false};
  models::Bert net{config}, other{config};
  StateDict theirs;
  for (const auto& [name, x] : state_dict(net)) theirs.add("bert." + name, x);
  theirs.add("qa_outputs.weight", ones({2, 6}));
  load_state_dict(other, maps::bert().apply(theirs));
  eval(net), eval(other);
  const auto [hidden, pooled] = other(arange(0, 5).unsqueeze(0));
  EXPECT_TRUE(equal(hidden, net(arange(0, 5).unsqueeze(0)).hidden));
  EXPECT_FALSE(pooled.defined());
}

// Models that the Hub's own library made, and what they gave.
TEST(IoStateMap, OutputsOfTheHubsModels) {
  const NoGrad off;
  const CloseOptions close{.rtol = 0, .atol = 2e-6};
  const StateDict g = read_state(data + "gpt2.safetensors");
  models::GPT gpt{{.vocab = 17, .context = 12, .width = 8, .heads = 2, .layers = 2}};
  eval(gpt);
  load_state_dict(gpt, maps::gpt2().exclude("test.*").apply(g));
  EXPECT_TRUE(allclose(gpt(g.at("test.ids")), g.at("test.logits"), close));
  const StateDict b = read_state(data + "bert.safetensors");
  models::Bert bert{{.vocab = 19, .width = 8, .layers = 2, .heads = 2, .intermediate = 16, .context = 12}};
  eval(bert);
  load_state_dict(bert, maps::bert().exclude("test.*").apply(b));
  const auto [hidden, pooled] = bert(b.at("test.ids"), b.at("test.mask"), b.at("test.types"));
  EXPECT_TRUE(allclose(hidden, b.at("test.hidden"), close));
  EXPECT_TRUE(allclose(pooled, b.at("test.pooled"), close));
}

}  // namespace
}  // namespace volta

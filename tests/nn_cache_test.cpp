// Decoding with cached keys and values gives what decoding without them gives.
#include <gtest/gtest.h>
#include <models/gpt.h>
#include <volta/volta.h>

#include "taken.h"

namespace volta {
namespace {

TEST(NnCache, EncoderLayerStepByStep) {
  manual_seed(1);
  const NoGrad off;
  for (const bool norm_first : {false, true}) {
    nn::TransformerEncoderLayer layer(
        8, 2, {.dim_feedforward = 16, .activation = "gelu", .batch_first = true, .norm_first = norm_first});
    eval(layer);
    const Tensor x = randn({2, 7, 8}), whole = layer(x, {.is_causal = true});
    nn::KeyValueCache cache;
    std::vector<Tensor> parts;
    for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 3}, {3, 5}, {5, 6}, {6, 7}})
      parts.push_back(layer(x[{slice(), slice(begin, end)}], {.is_causal = true, .cache = &cache}));
    EXPECT_EQ(cache.size(), 7);
    EXPECT_TRUE(allclose(cat(parts, 1), whole, {.atol = 1e-5}));
  }
}

TEST(NnCache, EncoderOfSeveralLayers) {
  manual_seed(2);
  const NoGrad off;
  nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16}), 3);
  eval(encoder);
  const Tensor x = randn({5, 2, 8}), whole = encoder(x, {.is_causal = true});  // [time, batch, width]
  std::vector<nn::KeyValueCache> caches;
  for (int i = 0; i < 5; ++i) {
    const Tensor y = encoder(x[{slice(i, i + 1)}], {.is_causal = true, .caches = &caches});
    EXPECT_TRUE(allclose(y, whole[{slice(i, i + 1)}], {.atol = 1e-5}));
  }
  EXPECT_EQ(caches.size(), 3u);
  nn::KeyValueCache one;
  EXPECT_FALSE(attempt([&] { return encoder(x, {.cache = &one}); }));
  EXPECT_FALSE(attempt([&] { return encoder.layers[0](x, {.caches = &caches}); }));
  std::vector<nn::KeyValueCache> two(2);
  EXPECT_FALSE(attempt([&] { return encoder(x, {.caches = &two}); }));
  const EnableGrad on;
  std::vector<nn::KeyValueCache> fresh;
  EXPECT_FALSE(attempt([&] { return encoder(x, {.caches = &fresh}); }));  // gradients would be lost
}

models::GPT small_gpt() {
  manual_seed(3);
  models::GPT net = models::gpt({.vocab = 11, .context = 12, .width = 16, .heads = 2, .layers = 2});
  apply<nn::Linear>(net, [](nn::Linear& l) { nn::init::normal_(l.weight, 0, 0.3); });  // far from uniform
  eval(net);
  return net;
}

TEST(NnCache, GptLogits) {
  const models::GPT net = small_gpt();
  const NoGrad off;
  const Tensor ids = randint(0, 11, {3, 10}), whole = net(ids);
  std::vector<nn::KeyValueCache> caches;
  std::vector<Tensor> parts;
  for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 4}, {4, 7}, {7, 8}, {8, 10}})
    parts.push_back(net(ids[{slice(), slice(begin, end)}], &caches));
  EXPECT_TRUE(allclose(cat(parts, 1), whole, {.rtol = 1e-4, .atol = 1e-4}));
}

// Also where the text grows beyond the context, which is 12.
TEST(NnCache, GenerateIsTheSame) {
  const models::GPT net = small_gpt();
  const Tensor prompt = randint(0, 11, {2, 3});
  for (const int64_t tokens : {1, 9, 20}) {
    const Tensor with = models::generate(net, prompt, {.tokens = tokens, .temperature = 0});
    EXPECT_EQ(with.shape(), (Shape{2, 3 + tokens}));
    EXPECT_TRUE(equal(with, models::generate(net, prompt, {.tokens = tokens, .temperature = 0, .use_cache = false})));
  }
  manual_seed(9);
  const Tensor with = models::generate(net, prompt, {.tokens = 9, .temperature = 0.8, .top_k = 4});
  manual_seed(9);
  EXPECT_TRUE(
      equal(with, models::generate(net, prompt, {.tokens = 9, .temperature = 0.8, .top_k = 4, .use_cache = false})));
}

TEST(NnCache, CopiesGoOnAlone) {
  const NoGrad off;
  const auto step = [](double value) { return full({1, 1, 1, 2}, value); };
  nn::KeyValueCache trunk;
  for (int i = 0; i < 3; ++i) trunk.append(step(i), step(i));  // with room for a fourth
  nn::KeyValueCache left = trunk, right;
  right = trunk;
  const Tensor first = left.append(step(7), step(8)).first, second = right.append(step(9), step(9)).first;
  const Tensor third = trunk.append(step(5), step(5)).first;
  EXPECT_TRUE(equal(first.select(-1, 0).flatten(), tensor<float>({0, 1, 2, 7})));
  EXPECT_TRUE(equal(second.select(-1, 0).flatten(), tensor<float>({0, 1, 2, 9})));
  EXPECT_TRUE(equal(third.select(-1, 0).flatten(), tensor<float>({0, 1, 2, 5})));
  left.truncate(1);
  EXPECT_TRUE(equal(left.append(step(4), step(4)).first.select(-1, 0).flatten(), tensor<float>({0, 4})));
}

TEST(NnCache, AMovedFromOneIsEmpty) {
  nn::KeyValueCache c;
  c.append(ones({1, 2, 2, 4}), ones({1, 2, 2, 4}));
  nn::KeyValueCache d = volta::test::taken(c);
  EXPECT_EQ(d.size(), 2);
  EXPECT_EQ(c.size(), 0);
  EXPECT_EQ(c.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).first.size(2), 1);
  c = volta::test::taken(d);
  EXPECT_EQ(c.size(), 2);
  EXPECT_EQ(d.size(), 0);
}

TEST(NnCache, ACallThatFailsLeavesItAsItWas) {
  manual_seed(4);
  const NoGrad off;
  nn::MultiheadAttention attention(8, 2, {.batch_first = true});
  eval(attention);
  const Tensor x = randn({1, 4, 8});
  nn::KeyValueCache cache;
  const Tensor bad = zeros({3, 3}, {.dtype = boolean});
  const auto part = [&](int begin, int end, const Tensor& mask = {}) {
    const Tensor in = x[{slice(), slice(begin, end)}];
    return attention(in, in, in, {.attn_mask = mask, .is_causal = true, .cache = &cache}).output;
  };
  EXPECT_FALSE(attempt([&] { return part(0, 2, bad); }));
  EXPECT_EQ(cache.size(), 0);
  part(0, 2);
  EXPECT_FALSE(attempt([&] { return part(2, 4, bad); }));
  EXPECT_EQ(cache.size(), 2);
  const Tensor whole = attention(x, x, x, {.is_causal = true}).output;
  EXPECT_TRUE(allclose(part(2, 4), whole[{slice(), slice(2, 4)}], {.atol = 1e-5}));

  nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .batch_first = true}), 2);
  encoder.layers[1].linear1.register_forward_hook(
      [](auto&, auto&, const Tensor&) -> std::optional<Tensor> { throw Error(Error::Kind::argument, "hook", "no"); });
  std::vector<nn::KeyValueCache> caches;
  EXPECT_FALSE(attempt([&] { return encoder(x, {.caches = &caches}); }));
  for (const nn::KeyValueCache& c : caches) EXPECT_EQ(c.size(), 0);
}

}  // namespace
}  // namespace volta

// Every reference model: its names, its shapes, and a few steps of training that reach every parameter, on every device
// without a transfer.
#include <models/bert.h>
#include <models/char_lstm.h>
#include <models/dcgan.h>
#include <models/gpt.h>
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/mobilenet.h>
#include <models/resnet.h>
#include <models/unet.h>
#include <models/vae.h>
#include <models/vgg.h>
#include <models/vit.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "samples.h"

namespace volta {
namespace {

// What a step needs of the host has come up when it first ran.
void expect_no_transfers(const std::function<void()>& step) {
  const cuda::MemoryStats before = cuda::memory_stats();
  for (int i = 0; i < 2; ++i) step();
  EXPECT_EQ(cuda::memory_stats().transfers, before.transfers);
  EXPECT_EQ(cuda::memory_stats().reads, before.reads);
}

// Three steps of Adam: the loss is finite, every parameter gets a finite gradient, not all of it 0, and moves.
void train_a_little(const ModelRef& model, const std::function<Tensor()>& loss_of) {
  train(model);
  std::vector<Tensor> before;
  for (const Tensor& p : parameters(model)) before.push_back(p.detach().clone());
  optim::Adam adam(parameters(model), {.lr = 1e-3});
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    const Tensor loss = loss_of();
    ASSERT_TRUE(std::isfinite(loss.item<double>()));
    loss.backward();
    for (const auto& [name, p] : named_parameters(model)) {
      ASSERT_TRUE(p.grad()) << name;
      EXPECT_TRUE(isfinite(*p.grad()).all().item<bool>()) << name;
      EXPECT_GT(p.grad()->abs().max().item<double>(), 0) << name;
    }
    adam.step();
  }
  const auto now = named_parameters(model);
  for (size_t i = 0; i < now.size(); ++i) EXPECT_FALSE(equal(now[i].second, before[i])) << now[i].first;
  if (!now[0].second.device().is_cpu())
    expect_no_transfers([&] {
      adam.zero_grad();
      loss_of().backward();
      adam.step();
    });
}

template <class Model> void train_classifier(Model model, const Tensor& input, int64_t classes) {
  const Tensor labels = arange(0, input.size(0)) % classes;
  train_a_little(model, [&] {
    const Tensor logits = model(input);
    EXPECT_EQ(logits.shape(), Shape({input.size(0), classes}));
    return cross_entropy(logits, labels);
  });
}

class Models : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override { manual_seed(7); }

 private:
  DefaultDevice on_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(On, Models, testing::ValuesIn(test::devices()),
                         [](const auto& i) { return std::string(i.param.is_cpu() ? "cpu" : "cuda"); });

TEST_P(Models, MLP) {
  train_classifier(models::mlp({.widths = {12, 16, 8, 3}, .dropout = 0.1}), randn({8, 12}), 3);
  EXPECT_THROW(models::mlp({.widths = {3}}), Error);
}

TEST_P(Models, LeNet5) {
  train_classifier(models::LeNet5{}, randn({4, 1, 28, 28}), 10);
  EXPECT_EQ(num_parameters(models::LeNet5{}), 61706);
}

TEST_P(Models, VGG) {
  models::VGG small{{.widths = {4, 0, 8, 8, 0}, .batch_norm = false, .classes = 5, .hidden = 32}};
  train_classifier(small, randn({4, 3, 32, 32}), 5);
  const models::VGGConfig config = models::vgg16();
  EXPECT_EQ(config.widths.size(), 18u);
  EXPECT_EQ(named_parameters(small)[0].first, "features.0.weight");
  EXPECT_TRUE(state_dict(small).contains("classifier.6.bias"));
}

TEST_P(Models, ResNet18) {
  const auto net = models::resnet18({.classes = 10});
  const auto names = state_dict(net);
  EXPECT_TRUE(names.contains("layer2.0.downsample.0.weight"));
  EXPECT_TRUE(names.contains("layer4.1.bn2.running_var"));
  EXPECT_FALSE(names.contains("layer1.0.downsample.0.weight"));
  EXPECT_EQ(num_parameters(net), 11181642);
  train_classifier(net, randn({2, 3, 32, 32}), 10);
}

TEST_P(Models, DeeperResNets) {
  EXPECT_EQ(num_parameters(models::resnet34()), 21797672);
  const auto net = models::resnet50();
  EXPECT_EQ(num_parameters(net), 25557032);
  EXPECT_TRUE(state_dict(net).contains("layer3.5.conv3.weight"));
}

TEST_P(Models, Bottlenecks) {
  train_classifier(models::ResNet<models::Bottleneck>{{.blocks = {1, 1, 1, 1}, .classes = 4}}, randn({2, 3, 32, 32}),
                   4);
}

TEST_P(Models, MobileNetV2) {
  EXPECT_EQ(num_parameters(models::MobileNetV2{}), 3504872);
  models::MobileNetV2 net{{.classes = 4, .width = 0.25, .dropout = 0}};
  EXPECT_TRUE(state_dict(net).contains("features.2.conv.1.0.weight"));
  train_classifier(net, randn({4, 3, 32, 32}), 4);
}

TEST_P(Models, UNet) {
  models::UNet net{{.channels = 1, .classes = 3, .width = 4, .depth = 2}};
  const Tensor x = randn({2, 1, 16, 24}), target = randint(0, 3, {2, 16, 24});
  train_a_little(net, [&] {
    const Tensor logits = net(x);
    EXPECT_EQ(logits.shape(), Shape({2, 3, 16, 24}));
    return cross_entropy(logits, target);
  });
}

TEST_P(Models, CharLSTM) {
  models::CharLSTM net{{.vocab = 11, .embedding = 6, .hidden = 8, .layers = 2}};
  EXPECT_TRUE(state_dict(net).contains("lstm.weight_hh_l1"));
  const Tensor ids = randint(0, 11, {3, 7});
  train_a_little(net, [&] { return cross_entropy(net(ids).flatten(0, 1), ids.flatten()); });
  // In two calls with a state between them as in one.
  const NoGrad off;
  nn::LSTMInput state;
  const Tensor parts = cat({net(ids.slice(1, 0, 3), &state), net(ids.slice(1, 3, {}), &state)}, 1);
  EXPECT_TRUE(allclose(parts, net(ids), {.rtol = 1e-5, .atol = 1e-6}));
}

TEST_P(Models, GPT) {
  models::GPT net = models::gpt({.vocab = 17, .context = 8, .width = 16, .heads = 2, .layers = 2, .dropout = 0});
  EXPECT_TRUE(state_dict(net).contains("h.1.attn.c_attn.weight"));
  const Tensor ids = randint(0, 17, {3, 8});
  train_a_little(net, [&] { return cross_entropy(net(ids).flatten(0, 1), ids.flatten()); });
  eval(net);
  const Tensor longer = models::generate(net, ids, {.tokens = 5, .temperature = 0});
  EXPECT_EQ(longer.shape(), Shape({3, 13}));
  EXPECT_TRUE(equal(longer.slice(1, 0, 8), ids));
  EXPECT_TRUE(equal(longer, models::generate(net, ids, {.tokens = 5, .top_k = 1})));
  EXPECT_EQ(models::generate(net, ids, {.tokens = 2, .top_k = 100}).shape(), Shape({3, 10}));  // more than there are
  {  // no token beyond the context, with or without caches
    const NoGrad off;
    std::vector<nn::KeyValueCache> caches;
    const int64_t context = net.config.context;
    net(zeros({1, context - 1}, {.dtype = i64}), &caches);
    EXPECT_FALSE(attempt([&] { return net(zeros({1, 2}, {.dtype = i64}), &caches); }));
    EXPECT_EQ(net(zeros({1, 1}, {.dtype = i64}), &caches).size(1), 1);
    EXPECT_FALSE(attempt([&] { return net(zeros({1, 1}, {.dtype = i64}), &caches); }));
    EXPECT_FALSE(attempt([&] { return net(zeros({1, context + 1}, {.dtype = i64})); }));
  }
}

TEST_P(Models, HeadsDivideTheWidth) {
  const auto gpt =
      attempt([] { return models::gpt({.vocab = 5, .context = 4, .width = 10, .heads = 3, .layers = 1}); });
  const auto bert =
      attempt([] { return models::Bert{{.vocab = 5, .width = 10, .layers = 1, .heads = 3, .context = 4}}; });
  for (const Error& error : {gpt.error(), bert.error()})
    EXPECT_NE(std::string(error.what()).find("a width of 10 cannot be divided among 3 heads"), std::string::npos);
}

TEST_P(Models, Bert) {
  models::Bert net{
      {.vocab = 19, .width = 16, .layers = 2, .heads = 2, .intermediate = 32, .context = 12, .dropout = 0}};
  EXPECT_TRUE(state_dict(net).contains("encoder.layer.1.attention.self.query.weight"));
  EXPECT_TRUE(state_dict(net).contains("embeddings.LayerNorm.bias"));
  const Tensor ids = randint(1, 19, {3, 10}), types = randint(0, 2, {3, 10});
  Tensor attended = ones({3, 10}, {.dtype = i64});
  attended[{0, slice(6, 10)}] = 0;
  train_a_little(net, [&] {
    const auto [hidden, pooled] = net(ids, attended, types);
    EXPECT_EQ(hidden.shape(), Shape({3, 10, 16}));
    return (hidden.select(1, 3) * hidden.select(1, 4)).sum() + pooled.square().sum();
  });
  eval(net);
  Tensor other = ids.clone();
  other[{0, slice(6, 10)}] = 1;  // what is not attended to changes nothing elsewhere
  const auto seen = [&](const Tensor& x) { return net(x, attended, types).hidden[{0, slice(0, 6)}]; };
  EXPECT_TRUE(allclose(seen(ids), seen(other), {.atol = 1e-6}));
}

TEST_P(Models, ViT) {
  models::ViT net{{.image = 16, .patch = 4, .classes = 5, .width = 12, .layers = 2, .heads = 3, .hidden = 24}};
  EXPECT_TRUE(state_dict(net).contains("encoder.layers.encoder_layer_1.self_attention.in_proj_weight"));
  EXPECT_TRUE(state_dict(net).contains("heads.head.weight"));
  train_classifier(net, randn({4, 3, 16, 16}), 5);
}

TEST_P(Models, VAE) {
  models::VAE net{{.input = 20, .hidden = 16, .latent = 3}};
  const Tensor x = uniform({6, 20}, 0, 1);
  train_a_little(net, [&] { return models::vae_loss(net(x), x); });
}

TEST_P(Models, DCGAN) {
  const models::DCGANConfig config = {.latent = 10, .width = 4};
  auto generator = models::dcgan<models::Generator>(config);
  auto discriminator = models::dcgan<models::Discriminator>(config);
  const Tensor noise = randn({4, 10, 1, 1}), real = randn({4, 3, 64, 64});
  EXPECT_EQ(generator(noise).shape(), Shape({4, 3, 64, 64}));
  const auto judged = [&](const Tensor& images, double truth) {
    const Tensor logits = discriminator(images);
    return binary_cross_entropy_with_logits(logits, full_like(logits, truth));
  };
  train_a_little(discriminator, [&] { return judged(real, 1) + judged(generator(noise).detach(), 0); });
  train_a_little(generator, [&] { return judged(generator(noise), 1); });
}

TEST_P(Models, DCGANWithALatentAsWideAsALayer) {
  const models::Generator generator{{.latent = 16, .channels = 1, .width = 2}};
  EXPECT_EQ(generator(randn({2, 16, 1, 1})).shape(), Shape({2, 1, 64, 64}));
}

}  // namespace
}  // namespace volta

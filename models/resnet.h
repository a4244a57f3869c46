// ResNet of He et al. 2015, with torchvision's names: conv1.weight, layer1.0.bn2.running_mean, layer2.0.downsample.0.weight, fc.bias.
#pragma once
#include <volta/volta.h>

#include <array>
#include <optional>
#include <vector>

namespace volta::models {

struct ResNetConfig {
  std::array<int, 4> blocks = {2, 2, 2, 2};
  int64_t channels = 3, classes = 1000;
};

inline nn::Conv2d plain_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

// What brings the input of a block to the shape of its output, where they differ.
inline std::optional<nn::Sequential> projection(int64_t in, int64_t out, int64_t stride) {
  if (in == out && stride == 1) return {};
  return nn::Sequential(plain_conv(in, out, 1, stride), nn::BatchNorm2d(out));
}

struct BasicBlock {
  static constexpr int64_t expansion = 1;
  int64_t in, width, stride;
  nn::Conv2d conv1 = plain_conv(in, width, 3, stride);
  nn::BatchNorm2d bn1{width};
  nn::Conv2d conv2 = plain_conv(width, width, 3);
  nn::BatchNorm2d bn2{width};
  std::optional<nn::Sequential> downsample = projection(in, width, stride);

  Tensor operator()(const Tensor& x) const {
    const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (downsample ? (*downsample)(x) : x));
  }
};

struct Bottleneck {
  static constexpr int64_t expansion = 4;
  int64_t in, width, stride;
  nn::Conv2d conv1 = plain_conv(in, width, 1);
  nn::BatchNorm2d bn1{width};
  nn::Conv2d conv2 = plain_conv(width, width, 3, stride);
  nn::BatchNorm2d bn2{width};
  nn::Conv2d conv3 = plain_conv(width, width* expansion, 1);
  nn::BatchNorm2d bn3{width * expansion};
  std::optional<nn::Sequential> downsample = projection(in, width* expansion, stride);

  Tensor operator()(const Tensor& x) const {
    Tensor y = relu(bn1(conv1(x)));
    y = bn3(conv3(relu(bn2(conv2(y)))));
    return relu(y + (downsample ? (*downsample)(x) : x));
  }
};

template <class Block> std::vector<Block> resnet_stage(int64_t in, int64_t width, int blocks, int64_t stride) {
  std::vector<Block> stage;
  for (int i = 0; i < blocks; ++i)
    stage.push_back(Block{i == 0 ? in : width * Block::expansion, width, i == 0 ? stride : 1});
  return stage;
}

template <class Block> struct ResNet {
  ResNetConfig config;
  nn::Conv2d conv1 = {config.channels, 64, 7, {.stride = 2, .padding = 3, .bias = false}};
  nn::BatchNorm2d bn1{64};
  nn::MaxPool2d maxpool{3, {.stride = 2, .padding = 1}};
  std::vector<Block> layer1 = resnet_stage<Block>(64, 64, config.blocks[0], 1);
  std::vector<Block> layer2 = resnet_stage<Block>(64 * Block::expansion, 128, config.blocks[1], 2);
  std::vector<Block> layer3 = resnet_stage<Block>(128 * Block::expansion, 256, config.blocks[2], 2);
  std::vector<Block> layer4 = resnet_stage<Block>(256 * Block::expansion, 512, config.blocks[3], 2);
  nn::Linear fc{512 * Block::expansion, config.classes};

  Tensor operator()(Tensor x) const {
    x = maxpool(relu(bn1(conv1(x))));
    for (const auto* stage : {&layer1, &layer2, &layer3, &layer4})
      for (const Block& block : *stage) x = block(x);
    return fc(x.mean({2, 3}));
  }
};

template <class Block> ResNet<Block> resnet(ResNetConfig config, const std::array<int, 4>& blocks) {
  config.blocks = blocks;
  ResNet<Block> net{config};
  apply<nn::Conv2d>(net, [](nn::Conv2d& conv) {
    nn::init::kaiming_normal_(conv.weight, {.mode = "fan_out", .nonlinearity = "relu"});
  });
  return net;
}

// auto net = models::resnet18({.classes = 10}); net(images) for [n, 3, h, w].
inline ResNet<BasicBlock> resnet18(const ResNetConfig& c = {}) { return resnet<BasicBlock>(c, {2, 2, 2, 2}); }
inline ResNet<BasicBlock> resnet34(const ResNetConfig& c = {}) { return resnet<BasicBlock>(c, {3, 4, 6, 3}); }
inline ResNet<Bottleneck> resnet50(const ResNetConfig& c = {}) { return resnet<Bottleneck>(c, {3, 4, 6, 3}); }

}  // namespace volta::models

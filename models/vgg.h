// VGG of Simonyan and Zisserman 2014, with torchvision's names: features.0.weight … classifier.6.bias.
#pragma once
#include <volta/volta.h>

#include <vector>

namespace volta::models {

struct VGGConfig {
  std::vector<int64_t> widths;  // of the convolutions; 0 stands for pooling
  bool batch_norm = false;
  int64_t channels = 3, classes = 1000, hidden = 4096;
  double dropout = 0.5;
};

inline nn::Sequential vgg_features(const VGGConfig& config) {
  nn::Sequential features;
  int64_t in = config.channels;
  for (const int64_t width : config.widths) {
    if (width == 0) {
      features.add(nn::MaxPool2d(2));
      continue;
    }
    features.add(nn::Conv2d(in, width, 3, {.padding = 1}));
    if (config.batch_norm) features.add(nn::BatchNorm2d(width));
    features.add(nn::ReLU());
    in = width;
  }
  return features;
}

// models::VGG net{models::vgg16({.classes = 10})}; net(images) for [n, 3, 224, 224] or any size of at least 32.
struct VGG {
  VGGConfig config;
  nn::Sequential features = vgg_features(config);
  nn::AdaptiveAvgPool2d avgpool{7};
  nn::Sequential classifier{nn::Linear(config.widths.at(config.widths.size() - 2) * 49, config.hidden),
                            nn::ReLU(),
                            nn::Dropout(config.dropout),
                            nn::Linear(config.hidden, config.hidden),
                            nn::ReLU(),
                            nn::Dropout(config.dropout),
                            nn::Linear(config.hidden, config.classes)};

  Tensor operator()(const Tensor& x) const { return classifier(avgpool(features(x)).flatten(1)); }
};

// The configurations A, B, D and E of the paper, as `repeats` convolutions in each of five stages.
inline VGGConfig vgg_config(const std::vector<int>& repeats, VGGConfig config) {
  const int64_t widths[] = {64, 128, 256, 512, 512};
  for (size_t stage = 0; stage < repeats.size(); ++stage) {
    config.widths.insert(config.widths.end(), size_t(repeats[stage]), widths[stage]);
    config.widths.push_back(0);
  }
  return config;
}
inline VGGConfig vgg11(const VGGConfig& config = {}) { return vgg_config({1, 1, 2, 2, 2}, config); }
inline VGGConfig vgg13(const VGGConfig& config = {}) { return vgg_config({2, 2, 2, 2, 2}, config); }
inline VGGConfig vgg16(const VGGConfig& config = {}) { return vgg_config({2, 2, 3, 3, 3}, config); }
inline VGGConfig vgg19(const VGGConfig& config = {}) { return vgg_config({2, 2, 4, 4, 4}, config); }

}  // namespace volta::models

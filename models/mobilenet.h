// MobileNetV2 of Sandler et al. 2018, with torchvision's names: features.0.0.weight, features.1.conv.0.0.weight, classifier.1.bias.
#pragma once
#include <volta/volta.h>

#include <algorithm>

namespace volta::models {

struct MobileNetConfig {
  int64_t channels = 3, classes = 1000;
  double width = 1, dropout = 0.2;
};

inline nn::Sequential conv_norm_relu6(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  return nn::Sequential(
      nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .groups = groups, .bias = false}),
      nn::BatchNorm2d(out), nn::ReLU6());
}

inline nn::Sequential inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expand) {
  const int64_t hidden = in * expand;
  nn::Sequential conv;
  if (expand > 1) conv.add(conv_norm_relu6(in, hidden, 1));
  conv.add(conv_norm_relu6(hidden, hidden, 3, stride, hidden));
  conv.add(nn::Conv2d(hidden, out, 1, {.bias = false}));
  conv.add(nn::BatchNorm2d(out));
  return conv;
}

// Widens, filters each channel by itself, narrows; the input is added where the shapes agree.
struct InvertedResidual {
  int64_t in, out, stride, expand;
  nn::Sequential conv = inverted_residual(in, out, stride, expand);
  Tensor operator()(const Tensor& x) const { return stride == 1 && in == out ? x + conv(x) : conv(x); }
};

// To a multiple of 8, never more than a tenth below.
inline int64_t rounded_width(double width) {
  const int64_t rounded = std::max<int64_t>(8, int64_t(width + 4) / 8 * 8);
  return double(rounded) < 0.9 * width ? rounded + 8 : rounded;
}

inline nn::Sequential mobilenet_features(const MobileNetConfig& config) {
  struct Stage {
    int64_t expand, width, blocks, stride;
  };
  const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t in = rounded_width(32 * config.width);
  nn::Sequential features;
  features.add(conv_norm_relu6(config.channels, in, 3, 2));
  for (const Stage& stage : stages) {
    const int64_t out = rounded_width(double(stage.width) * config.width);
    for (int64_t i = 0; i < stage.blocks; ++i, in = out)
      features.add(InvertedResidual{in, out, i == 0 ? stage.stride : 1, stage.expand});
  }
  features.add(conv_norm_relu6(in, rounded_width(1280 * std::max(1.0, config.width)), 1));
  return features;
}

// models::MobileNetV2 net{{.classes = 10}}; net(images) for [n, 3, h, w].
struct MobileNetV2 {
  MobileNetConfig config;
  nn::Sequential features = mobilenet_features(config);
  nn::Sequential classifier{nn::Dropout(config.dropout),
                            nn::Linear(rounded_width(1280 * std::max(1.0, config.width)), config.classes)};
  Tensor operator()(const Tensor& x) const { return classifier(features(x).mean({2, 3})); }
};

}  // namespace volta::models

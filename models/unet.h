// U-Net of Ronneberger et al. 2015: an encoder whose every level is joined to the decoder's level of the same size.
#pragma once
#include <volta/volta.h>

#include <vector>

namespace volta::models {

struct UNetConfig {
  int64_t channels = 3, classes = 2, width = 64, depth = 4;
};

struct DoubleConv {
  int64_t in, out;
  nn::Conv2d conv1{in, out, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm1{out};
  nn::Conv2d conv2{out, out, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm2{out};
  Tensor operator()(const Tensor& x) const { return relu(norm2(conv2(relu(norm1(conv1(x)))))); }
};

struct UpBlock {
  int64_t in, out;
  nn::ConvTranspose2d up{in, out, 2, {.stride = 2}};
  DoubleConv conv{2 * out, out};
  Tensor operator()(const Tensor& x, const Tensor& skip) const { return conv(cat({skip, up(x)}, 1)); }
};

inline std::vector<DoubleConv> unet_encoder(const UNetConfig& c) {
  std::vector<DoubleConv> levels;
  for (int64_t i = 0; i <= c.depth; ++i)
    levels.push_back(DoubleConv{i == 0 ? c.channels : c.width << (i - 1), c.width << i});
  return levels;
}

inline std::vector<UpBlock> unet_decoder(const UNetConfig& c) {
  std::vector<UpBlock> levels;
  for (int64_t i = c.depth; i > 0; --i) levels.push_back(UpBlock{c.width << i, c.width << (i - 1)});
  return levels;
}

// models::UNet net{{.channels = 1, .classes = 2}}; logits [n, classes, h, w] of [n, 1, h, w], h and w multiples of 2^depth.
struct UNet {
  UNetConfig config;
  std::vector<DoubleConv> down = unet_encoder(config);
  nn::MaxPool2d pool{2};
  std::vector<UpBlock> up = unet_decoder(config);
  nn::Conv2d head{config.width, config.classes, 1};

  Tensor operator()(const Tensor& input) const {
    std::vector<Tensor> skips = {down.front()(input)};
    for (size_t i = 1; i < down.size(); ++i) skips.push_back(down[i](pool(skips.back())));
    Tensor x = skips.back();
    for (size_t i = 0; i < up.size(); ++i) x = up[i](x, skips[skips.size() - 2 - i]);
    return head(x);
  }
};

}  // namespace volta::models

// DCGAN of Radford et al. 2015: a generator of 64x64 images and the discriminator it is trained against. Names as in
// PyTorch's tutorial: main.0.weight.
#pragma once
#include <volta/volta.h>

namespace volta::models {

struct DCGANConfig {
  int64_t latent = 100, channels = 3, width = 64;
};

// models::Generator g; g(randn({n, 100, 1, 1})) gives [n, 3, 64, 64] in (-1, 1).
struct Generator {
  DCGANConfig config;
  nn::Sequential main = layers(config);
  static nn::Sequential layers(const DCGANConfig& c) {
    nn::Sequential net;
    int64_t in = c.latent;
    for (int64_t width = 8 * c.width; width >= c.width; in = width, width /= 2) {
      const int64_t stride = net.empty() ? 1 : 2, padding = stride - 1;
      net.add(nn::ConvTranspose2d(in, width, 4, {.stride = stride, .padding = padding, .bias = false}));
      net.add(nn::BatchNorm2d(width));
      net.add(nn::ReLU());
    }
    net.add(nn::ConvTranspose2d(in, c.channels, 4, {.stride = 2, .padding = 1, .bias = false}));
    net.add(nn::Tanh());
    return net;
  }
  Tensor operator()(const Tensor& noise) const { return main(noise); }
};

// models::Discriminator d; d(images) gives one logit [n] each, above 0 for real.
struct Discriminator {
  DCGANConfig config;
  nn::Sequential main = layers(config);
  static nn::Sequential layers(const DCGANConfig& c) {
    nn::Sequential net(nn::Conv2d(c.channels, c.width, 4, {.stride = 2, .padding = 1, .bias = false}),
                       nn::LeakyReLU(0.2));
    for (int64_t width = c.width; width < 8 * c.width; width *= 2) {
      net.add(nn::Conv2d(width, 2 * width, 4, {.stride = 2, .padding = 1, .bias = false}));
      net.add(nn::BatchNorm2d(2 * width));
      net.add(nn::LeakyReLU(0.2));
    }
    net.add(nn::Conv2d(8 * c.width, 1, 4, {.bias = false}));
    return net;
  }
  Tensor operator()(const Tensor& images) const { return main(images).flatten(); }
};

// As the paper starts: convolutions normal with deviation 0.02, batch norms around 1.
template <class Net> Net dcgan(const DCGANConfig& config = {}) {
  Net net{config};
  apply<nn::Conv2d>(net, [](nn::Conv2d& c) { nn::init::normal_(c.weight, 0, 0.02); });
  apply<nn::ConvTranspose2d>(net, [](nn::ConvTranspose2d& c) { nn::init::normal_(c.weight, 0, 0.02); });
  apply<nn::BatchNorm2d>(net, [](nn::BatchNorm2d& b) { nn::init::normal_(b.weight, 1, 0.02); });
  return net;
}

}  // namespace volta::models

// Shows a variational autoencoder that learns to draw digits, and draws some; run `vae [FOLDER] [--short]`.
#include <models/vae.h>

#include <algorithm>
#include <cstdio>
#include <string>

using namespace volta;

namespace {

// Images [n, 14 * 14] of numbers from 0 to 1, side by side.
void draw(const Tensor& images) {
  const std::string shades = " .:-=+*#%@";
  for (int64_t y = 0; y < 14; ++y) {
    for (int64_t i = 0; i < images.size(0); ++i) {
      for (const float ink : images[i].view({14, 14})[y].to_vector<float>()) {
        const char c = shades[std::min<size_t>(size_t(ink * 10), 9)];
        std::printf("%c%c", c, c);  // a letter is about twice as high as wide
      }
      std::printf("  ");
    }
    std::printf("\n");
  }
}

Tensor pixels(const data::LabelledImages& set) { return set.tensors()[0].flatten(1); }

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int epochs = 40;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 4;
    else folder = arguments[i];

  manual_seed(1);
  const Tensor test = pixels(data::digits(folder, {.train = false}));
  data::DataLoader loader(data::TensorDataset(pixels(data::digits(folder))),
                          {.batch_size = 100, .shuffle = true, .seed = 1});
  models::VAE net{{.input = 196, .hidden = 200, .latent = 10}};
  optim::Adam optimizer(parameters(net), {.lr = 2e-3});

  const auto test_loss = [&] {
    const NoGrad off;
    return vae_loss(net(test), test).item<double>();
  };
  const double first = test_loss();
  std::printf("before training  loss %.2f nats an image\n", first);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (auto [images] : loader) {
      optimizer.zero_grad();
      vae_loss(net(images), images).backward();
      optimizer.step();
    }
    if (epoch % (epochs / 4) == 0) std::printf("epoch %2d  loss %.2f\n", epoch, test_loss());
  }

  const NoGrad off;
  const Tensor some = test.slice(0, 0, {}, 250);
  std::printf("\nfour test images\n");
  draw(some);
  std::printf("\nthe same, from %lld numbers each\n", static_cast<long long>(net.config.latent));
  draw(sigmoid(net(some).reconstruction));
  std::printf("\nof random numbers\n");
  draw(sigmoid(net.decode(randn({4, net.config.latent}))));

  const double last = test_loss();
  std::printf("loss %.2f fell to %.2f\n", first, last);
  return last < 0.6 * first ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "vae: %s\n", e.what()), 1;
}

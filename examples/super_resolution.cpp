// Shows super-resolution: a network with PixelShuffle makes digits of 14 x 14 from 7 x 7; run
// `super_resolution [FOLDER] [--short]`.
#include <volta/volta.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

using namespace volta;

namespace {

// Shi et al. 2016: all work is done at the low resolution; the last layer gives the four pixels for each as channels.
struct Upscaler {
  nn::Conv2d first{1, 32, 3, {.padding = 1}}, second{32, 32, 3, {.padding = 1}}, last{32, 4, 3, {.padding = 1}};
  nn::PixelShuffle shuffle{2};
  Tensor operator()(const Tensor& x) const {
    // What interpolation gets wrong is all that is left to learn.
    return interpolated(x) + shuffle(last(relu(second(relu(first(x))))));
  }
  static Tensor interpolated(const Tensor& x) { return interpolate(x, {.scale_factor = 2, .mode = "bicubic"}); }
};

Tensor reduced(const Tensor& images) { return avg_pool2d(images, 2); }

// Peak signal to noise, in decibels.
double psnr(const Tensor& made, const Tensor& real) { return -10 * std::log10(mse_loss(made, real).item<double>()); }

void draw(const Tensor& image) {
  const std::string shades = " .:-=+*#%@";
  for (int64_t y = 0; y < image.size(0); ++y) {
    for (const float ink : image[y].to_vector<float>()) {
      const char c = shades[size_t(std::clamp(ink * 10, 0.0f, 9.0f))];
      std::printf("%c%c", c, c);
    }
    std::printf("|\n");
  }
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int64_t epochs = 15;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 3;
    else folder = arguments[i];

  manual_seed(1);
  const Tensor images = data::digits(folder).tensors()[0];
  const Tensor test = data::digits(folder, {.train = false}).tensors()[0];
  data::DataLoader loader(data::TensorDataset(reduced(images), images), {.batch_size = 50, .shuffle = true, .seed = 1});
  Upscaler net;
  optim::Adam optimizer(parameters(net), {.lr = 2e-3});
  optim::CosineAnnealingLR rate(optimizer, {.t_max = epochs});
  fit(net, loader, optimizer,
      {.epochs = epochs,
       .loss = [](const Tensor& made, const Tensor& real) { return mse_loss(made, real); },
       .callbacks = {callbacks::progress()},
       .scheduler = rate});

  const NoGrad off;
  const Tensor small = reduced(test), large = net(small);
  std::printf("from this\n");
  draw(small[{0, 0}]);
  std::printf("the network makes this\n");
  draw(large[{0, 0}]);
  const double bicubic = psnr(Upscaler::interpolated(small), test), ours = psnr(large, test);
  std::printf("test images: bicubic %.2f dB, network %.2f dB\n", bicubic, ours);
  return ours > bicubic + 2 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "super_resolution: %s\n", e.what()), 1;
}

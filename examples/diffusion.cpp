// Shows a denoising diffusion model that learns to draw digits out of noise; run `diffusion [FOLDER] [--short]`.
#include <volta/volta.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace volta;

namespace {

constexpr int64_t levels = 100;  // of noise

// Ho et al. 2020: at each level a little more of the image is noise. Tensors are by level.
struct Noise {
  Tensor beta = linspace(1e-3, 0.12, levels);
  Tensor kept = cumprod(1 - beta, 0);  // how much of the image's variance is left

  Tensor added(const Tensor& images, const Tensor& noise, const Tensor& level) const {
    const Tensor share = kept[level].unsqueeze(1);
    return sqrt(share) * images + sqrt(1 - share) * noise;
  }
};

// Says which part of x is noise.
struct Denoiser {
  int64_t width = 384;
  nn::Embedding level_embedding{levels, width};
  nn::Linear in{196, width}, out{width, 196};
  std::vector<nn::Linear> hidden = nn::repeat<nn::Linear>(3, width, width);
  nn::LayerNorm norm{width};
  Tensor operator()(const Tensor& x, const Tensor& level) const {
    Tensor y = in(x);
    const Tensor at = level_embedding(level);
    for (const nn::Linear& layer : hidden) y = y + silu(layer(norm(y + at)));
    return out(y);
  }
};

// From noise alone, level by level: the network's idea of the image is mixed in, and a little new noise added.
Tensor sampled(const Denoiser& net, const Noise& noise, int64_t images) {
  const NoGrad off;
  Tensor x = randn({images, 196});
  for (int64_t t = levels - 1; t >= 0; --t) {
    const double beta = noise.beta[t].item<double>(), kept = noise.kept[t].item<double>();
    const double kept_below = t > 0 ? noise.kept[t - 1].item<double>() : 1;
    const Tensor guess = net(x, full({images}, t, {.dtype = i64}));
    const Tensor image = clamp((x - std::sqrt(1 - kept) * guess) / std::sqrt(kept), -1, 1);
    x = (std::sqrt(kept_below) * beta * image + std::sqrt(1 - beta) * (1 - kept_below) * x) / (1 - kept);
    if (t > 0) x = x + std::sqrt(beta * (1 - kept_below) / (1 - kept)) * randn_like(x);
  }
  return x;
}

// Images of numbers from -1 to 1, side by side.
void draw(const Tensor& images) {
  const std::string shades = " .:-=+*#%@";
  for (int64_t y = 0; y < 14; ++y) {
    for (int64_t i = 0; i < images.size(0); ++i)
      for (const float ink : images[i].view({14, 14})[y].to_vector<float>()) {
        const char c = shades[size_t(std::clamp(ink * 5 + 5, 0.0f, 9.0f))];
        std::printf("%c%c", c, c);
      }
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int epochs = 150;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 5;
    else folder = arguments[i];

  manual_seed(1);
  const Tensor pixels = data::digits(folder).tensors()[0].flatten(1) * 2 - 1;
  const data::TensorDataset set(pixels);
  data::DataLoader loader(set, {.batch_size = 100, .shuffle = true, .seed = 1});
  const Noise noise;
  Denoiser net;
  optim::AdamW optimizer(parameters(net), {.lr = 1e-3});
  optim::CosineAnnealingLR rate(optimizer, {.t_max = epochs});
  optim::EMA average(parameters(net), 0.99);

  double loss = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    Tensor total = zeros({});
    for (auto [images] : loader) {
      const Tensor level = randint(0, levels, {images.size(0)}), wanted = randn_like(images);
      optimizer.zero_grad();
      const Tensor error = mse_loss(net(noise.added(images, wanted, level), level), wanted);
      error.backward();
      optimizer.step();
      average.update();
      total += error.detach();
    }
    rate.step();
    loss = total.item<double>() / double(loader.size());
    if (epoch % (epochs / 5) == 0) std::printf("epoch %3d  loss %.4f\n", epoch, loss);
  }

  const auto averaged = average.swap();  // averages of the weights draw better than the last ones
  draw(sampled(net, noise, 4));
  std::printf("loss %.4f; always answering 0 has 1\n", loss);
  return loss < 0.5 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "diffusion: %s\n", e.what()), 1;
}

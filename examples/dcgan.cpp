// Shows two networks that train each other: a DCGAN learns to draw digits; run `dcgan [FOLDER] [--short]`. Two
// optimizers, gradients that end at detach, and how to tell whether pictures are any good.
#include <models/dcgan.h>
#include <models/lenet.h>

#include <algorithm>
#include <cstdio>
#include <string>

using namespace volta;

namespace {

// The networks' size and range: 64 x 64, from -1 for paper to 1 for ink.
Tensor enlarged(const Tensor& images) { return interpolate(images, {.size = {64, 64}, .mode = "bilinear"}) * 2 - 1; }

// The other way, at the size that a classifier of digits takes.
Tensor reduced(const Tensor& images) {
  return interpolate((images + 1) / 2, {.size = {28, 28}, .mode = "bilinear", .antialias = true});
}

void draw(const Tensor& images) {
  const std::string shades = " .:-=+*#%@";
  const Tensor small = (avg_pool2d(images, 4) + 1) / 2;
  for (int64_t y = 0; y < small.size(2); ++y) {
    for (int64_t i = 0; i < small.size(0); ++i)
      for (const float ink : small[{i, 0, y}].to_vector<float>()) {
        const char c = shades[size_t(std::clamp(ink * 10, 0.0f, 9.0f))];
        std::printf("%c%c", c, c);
      }
    std::printf("\n");
  }
}

struct Judgement {
  double certainty;  // the mean probability of the likeliest digit
  int64_t kinds;     // digits that are at least 2% of the pictures
};

Judgement judged(const models::LeNet5& classifier, const Tensor& images) {
  const Tensor p = softmax(classifier(reduced(images)), -1);
  const Tensor shares = bincount(p.argmax(1), {}, 10).to(f32) / double(images.size(0));
  return {p.amax(1).mean().item<double>(), (shares > 0.02).sum().item<int64_t>()};
}

// The loss of a discriminator that should give an answer. It sees pictures through noise, or it would soon know the fakes by
// their grain and be of no more use to the generator.
Tensor answers(const models::Discriminator& discriminator, const Tensor& images, double right) {
  const Tensor logits = discriminator(images + 0.7 * randn_like(images));
  return binary_cross_entropy_with_logits(logits, full_like(logits, right));
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  bool brief = false;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") brief = true;
    else folder = arguments[i];

  manual_seed(1);
  const data::LabelledImages digits = data::digits(folder);
  const auto& [images, labels] = digits.tensors();
  const Tensor pictures = enlarged(brief ? images.slice(0, 0, 640) : images);

  // Somebody who knows digits, to judge by.
  models::LeNet5 classifier;
  optim::AdamW classifier_optimizer(parameters(classifier), {.lr = 2e-3});
  data::DataLoader labelled(data::TensorDataset(reduced(pictures), labels.slice(0, 0, pictures.size(0))),
                            {.batch_size = 50, .shuffle = true, .seed = 1});
  fit(classifier, labelled, classifier_optimizer, {.epochs = brief ? 1 : 4});
  eval(classifier);

  const models::DCGANConfig config{.latent = 32, .channels = 1, .width = brief ? 4 : 8};
  auto generator = models::dcgan<models::Generator>(config);
  auto discriminator = models::dcgan<models::Discriminator>(config);
  // Telling is easier than drawing: whoever tells learns more slowly.
  optim::Adam generator_optimizer(parameters(generator), {.lr = 2e-3, .betas = {0.5, 0.999}});
  optim::Adam discriminator_optimizer(parameters(discriminator), {.lr = 2e-4, .betas = {0.5, 0.999}});
  const auto noise = [&](int64_t n) { return randn({n, config.latent, 1, 1}); };
  const Tensor fixed = noise(200);
  const auto drawn = [&] {
    const NoGrad off;
    eval(generator);
    Tensor made = generator(fixed);
    train(generator);
    return made;
  };
  // How far the average picture is from the average digit.
  const auto distance = [&] { return mse_loss(drawn().mean(0), pictures.mean(0)).item<double>(); };

  const double before = distance();
  const int epochs = brief ? 3 : 12;
  data::DataLoader loader(data::TensorDataset{pictures},
                          {.batch_size = 40, .shuffle = true, .drop_last = true, .seed = 1});
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double deceived = 0, caught = 0;
    for (auto [real] : loader) {
      const Tensor fake = generator(noise(real.size(0)));

      // The discriminator learns to tell them apart. A target below 1 keeps it from being too sure.
      discriminator_optimizer.zero_grad();
      const Tensor tells = answers(discriminator, real, 0.9) + answers(discriminator, fake.detach(), 0);
      tells.backward();
      discriminator_optimizer.step();

      // The generator learns to be taken for real; the gradient reaches it through the discriminator.
      generator_optimizer.zero_grad();
      const Tensor deceives = answers(discriminator, fake, 1);
      deceives.backward();
      generator_optimizer.step();
      caught += tells.item<double>() / double(loader.size());
      deceived += deceives.item<double>() / double(loader.size());
    }
    if (brief || epoch % 3 == 0) {
      const Judgement j = judged(classifier, drawn());
      std::printf("epoch %2d  loss of the discriminator %.3f, of the generator %.3f; certainty %.2f, %lld digits\n",
                  epoch, caught, deceived, j.certainty, static_cast<long long>(j.kinds));
    }
  }

  const double after = distance();
  const Tensor made = drawn();
  draw(made.slice(0, 0, 4));
  const NoGrad off;
  const Judgement ours = judged(classifier, made), real = judged(classifier, pictures.slice(0, 0, 200)),
                  none = judged(classifier, rand({200, 1, 64, 64}) * 2 - 1);
  std::printf("a classifier is %.2f certain what the pictures are, of real digits %.2f, of noise %.2f; %lld kinds\n",
              ours.certainty, real.certainty, none.certainty, static_cast<long long>(ours.kinds));
  std::printf("distance of the average picture %.4f fell to %.4f\n", before, after);
  return after < (brief ? 0.8 : 0.5) * before && (brief || (ours.certainty > 0.7 && ours.kinds >= 7)) ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "dcgan: %s\n", e.what()), 1;
}

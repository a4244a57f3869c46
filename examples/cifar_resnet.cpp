// Shows image classification as it is done on CIFAR-10: a residual network, augmented images, one cycle of the learning
// rate; run `cifar_resnet [FOLDER] [--short]`. FOLDER holds CIFAR-10's binary version; without it ten kinds of coloured
// shapes are drawn, of the same size.
#include <models/resnet.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace volta;

namespace {

using Blocks = std::vector<models::BasicBlock>;

Blocks stage(int64_t in, int64_t width, int blocks, int64_t stride) {
  return models::resnet_stage<models::BasicBlock>(in, width, blocks, stride);
}

// He et al. 2015, section 4.2: for 32 x 32 pixels, three stages of n blocks, of 6n + 2 layers in all.
struct CifarResNet {
  int n = 3;
  nn::Conv2d conv1 = models::plain_conv(3, 16, 3);
  nn::BatchNorm2d bn1{16};
  Blocks layer1 = stage(16, 16, n, 1), layer2 = stage(16, 32, n, 2), layer3 = stage(32, 64, n, 2);
  nn::Linear fc{64, 10};

  Tensor operator()(const Tensor& images) const {
    Tensor x = relu(bn1(conv1(images)));
    for (const Blocks* blocks : {&layer1, &layer2, &layer3})
      for (const models::BasicBlock& block : *blocks) x = block(x);
    return fc(x.mean({2, 3}));
  }
};

// Where a shape has ink; u and v are the distances from its middle, to the right and down, in units of its size. All
// are the same in a mirror.
Tensor inside(int64_t kind, const Tensor& u, const Tensor& v) {
  const Tensor a = abs(u), b = abs(v), far = maximum(a, b), near = minimum(a, b), round = u * u + v * v, box = far < 1;
  switch (kind) {
    case 0: return round < 1;
    case 1: return box;
    case 2: return a + b < 1.2;
    case 3: return (round < 1) & (round > 0.4);
    case 4: return box & (far > 0.6);
    case 5: return box & (near < 0.3);
    case 6: return box & (abs(a - b) < 0.3);
    case 7: return box & (sin(9 * v) > 0);
    case 8: return box & (cos(9 * u) > 0);
    default: return box & (cos(6 * u) * sin(6 * v) > 0);
  }
}

// u8 [10 * each, 3, 32, 32], as CIFAR is: shapes of any colours, sizes and places, on paper of another colour, with noise.
data::LabelledImages shapes(int64_t each) {
  const Tensor line = arange(32).to(f32) - 15.5;
  std::vector<Tensor> images;
  for (int64_t kind = 0; kind < 10; ++kind) {
    const auto some = [&](double low, double high) { return uniform({each, 1, 1}, low, high); };
    const Tensor size = some(5, 11), u = (line - some(-4, 4)) / size, v = (line.unsqueeze(1) - some(-4, 4)) / size;
    const Tensor paper = rand({each, 3, 1, 1}), ink = remainder(paper + uniform({each, 3, 1, 1}, 0.25, 0.75), 1);
    const Tensor drawn = where(inside(kind, u, v).unsqueeze(1), ink, paper) + 0.15 * randn({each, 3, 32, 32});
    images.push_back((clamp(drawn, 0, 1) * 255).to(u8));
  }
  return data::TensorDataset(cat(images), arange(10).repeat_interleave(each));
}

struct Channels {
  std::vector<double> mean, deviation;
};
Channels measured(const data::LabelledImages& set) {
  const Tensor some = set.tensors()[0].slice(0, 0, {}, 10).to(f32) / 255;
  return {some.mean({0, 2, 3}).to_vector<double>(), some.transpose(0, 1).flatten(1).std(1).to_vector<double>()};
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder;
  bool brief = false;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") brief = true;
    else folder = arguments[i];

  manual_seed(1);
  const data::LabelledImages training =
      folder.empty() ? shapes(brief ? 100 : 400) : data::cifar10(folder, {.dtype = u8});
  const data::LabelledImages held_out =
      folder.empty() ? shapes(brief ? 30 : 100) : data::cifar10(folder, {.train = false, .dtype = u8});
  const int64_t epochs = brief ? 4 : folder.empty() ? 8 : 30;

  // Every epoch sees the images moved and mirrored anew; when it is tested, the network sees them as they are.
  const Channels c = measured(training);
  const auto prepared = data::compose(data::convert_image_dtype(), data::normalize(c.mean, c.deviation));
  const auto augmented = data::compose(data::random_crop(32, {.padding = 4}), data::random_horizontal_flip(), prepared);
  data::DataLoader loader(data::map(training, data::on_first(augmented)),
                          {.batch_size = brief ? 32 : 64, .shuffle = true, .num_workers = 1, .seed = 1});
  data::DataLoader test(data::map(held_out, data::on_first(prepared)), {.batch_size = 250});

  CifarResNet net{.n = folder.empty() ? 1 : 3};
  apply<nn::Conv2d>(net, [](nn::Conv2d& conv) {
    nn::init::kaiming_normal_(conv.weight, {.mode = "fan_out", .nonlinearity = "relu"});
  });
  optim::SGD optimizer(parameters(net), {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  optim::OneCycleLR rate(optimizer, {.max_lr = 0.1, .epochs = epochs, .steps_per_epoch = loader.size()});
  std::printf("%lld images, %lld parameters\n", static_cast<long long>(training.size()),
              static_cast<long long>(num_parameters(net)));

  const History history = fit(net, loader, optimizer,
                              {.epochs = epochs,
                               .validation = test,
                               .metrics = {metrics::Accuracy()},
                               .callbacks = {callbacks::progress()},
                               .scheduler = rate,
                               .schedule_every = "step"});
  const double accuracy = history.values("val_accuracy").back();
  std::printf("test accuracy %.2f%%; by chance 10%%\n", 100 * accuracy);
  return accuracy > (brief ? 0.2 : 0.85) ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "cifar_resnet: %s\n", e.what()), 1;
}

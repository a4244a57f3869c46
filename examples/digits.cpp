// Trains LeNet-5 on handwritten digits, with a loop of one's own; `volta train lenet --data digits` does the same.
//
//   digits [FOLDER] [--device cuda] [--epochs N] [--save FILE] [--short]
#include <models/lenet.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace volta;

namespace {

// Pixels around zero, at the size that the network takes.
data::Transform prepared() { return data::compose(data::resize({28, 28}), data::normalize({0.13}, {0.27})); }

void run(const std::string& folder, const Device& device, int64_t epochs, const std::string& file) {
  manual_seed(1);
  const auto moved = data::compose(prepared(), data::random_crop(28, {.padding = 2, .padding_mode = "replicate"}));
  data::DataLoader training(data::map(data::digits(folder), data::on_first(moved)),
                            {.batch_size = 64, .shuffle = true, .num_workers = 1, .seed = 1, .device = device});
  data::DataLoader test(data::map(data::digits(folder, {.train = false}), data::on_first(prepared())),
                        {.batch_size = 250, .device = device});
  models::LeNet5 network;
  to(network, device);
  optim::AdamW optimizer(parameters(network), {.weight_decay = 0.05});
  optim::OneCycleLR rate(optimizer, {.max_lr = 4e-3, .total_steps = epochs * training.size() + 1});

  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    Tensor total = zeros({}, {.device = device});
    for (auto [images, labels] : training) {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(network(images), labels);
      loss.backward();
      optimizer.step();
      rate.step();
      total += loss.detach();
    }
    const double accuracy = evaluate(network, test, {.metrics = {metrics::Accuracy()}}).at("accuracy");
    std::printf("epoch %2lld/%lld  loss %.4f  test accuracy %.2f%%\n", static_cast<long long>(epoch),
                static_cast<long long>(epochs), total.item<double>() / double(training.size()), 100 * accuracy);
    std::fflush(stdout);
  }
  save(network, file);
  std::printf("saved to %s\n", file.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = "data/digits", device = "cpu", file = "digits.safetensors";
  int64_t epochs = 20;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const bool more = i + 1 < count;
    if (word == "--device" && more) device = arguments[++i];
    else if (word == "--epochs" && more) epochs = std::atoll(arguments[++i]);
    else if (word == "--short") epochs = 1;
    else if (word == "--save" && more) file = arguments[++i];
    else if (word[0] != '-') folder = word;
    else return std::fprintf(stderr, "usage: digits [FOLDER] [--device cuda] [--epochs N] [--save FILE]\n"), 2;
  }
  if (epochs < 1) return std::fprintf(stderr, "digits: --epochs takes a number from 1 on\n"), 2;
  try {
    run(folder, Device(device), epochs, file);
  } catch (const Error& e) {
    return std::fprintf(stderr, "digits: %s\n", e.what()), 1;
  }
}

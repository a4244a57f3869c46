// Shows fit: training with validation, metrics, a schedule and callbacks in one call; run `fit_mlp [FOLDER] [--short]`.
#include <models/mlp.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using namespace volta;

namespace {

// The images as rows of pixels around zero.
data::LabelledImages flattened(const data::LabelledImages& set) {
  const auto& [images, labels] = set.tensors();
  return data::TensorDataset((images.flatten(1) - 0.13) / 0.27, labels);
}

Tensor smoothed(const Tensor& scores, const Tensor& labels) {
  return cross_entropy(scores, labels, {.label_smoothing = 0.05});
}

// A callback of one's own: remembers the step at which the largest gradient occurred.
struct LargestGradient : Callback {
  double norm = 0;
  int64_t step = 0;
  void step_end(FitState& state) override {
    double squares = 0;
    for (const Tensor& p : parameters(state.model)) squares += p.grad()->square().sum().item<double>();
    if (squares > norm * norm) norm = std::sqrt(squares), step = state.step;
  }
};

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int64_t epochs = 15;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 3;
    else folder = arguments[i];

  manual_seed(1);
  data::DataLoader training(flattened(data::digits(folder)), {.batch_size = 64, .shuffle = true, .seed = 1});
  data::DataLoader test(flattened(data::digits(folder, {.train = false})), {.batch_size = 250});
  nn::Sequential net = models::mlp({.widths = {196, 128, 64, 10}, .dropout = 0.1});
  optim::AdamW optimizer(parameters(net), {.lr = 2e-3, .weight_decay = 0.02});
  optim::CosineAnnealingLR rate(optimizer, {.t_max = epochs});

  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("volta_fit_mlp_" + std::to_string(::getpid()));
  std::filesystem::create_directories(run);
  const auto largest = std::make_shared<LargestGradient>();
  const History history =
      fit(net, training, optimizer,
          {.epochs = epochs,
           .loss = smoothed,
           .validation = test,
           .metrics = {metrics::Accuracy(), metrics::F1()},
           .callbacks = {callbacks::progress(), largest, callbacks::csv((run / "run.csv").string()),
                         callbacks::early_stopping({.monitor = "val_accuracy", .patience = 5, .mode = "max"})},
           .scheduler = rate});

  const data::Table table = data::read_csv((run / "run.csv").string());
  std::filesystem::remove_all(run);
  std::printf("the csv has %lld rows; the largest gradient, %.2f, was that of step %lld\n",
              static_cast<long long>(table.size()), largest->norm, static_cast<long long>(largest->step));

  metrics::ConfusionMatrix confusion(10);
  eval(net);
  const NoGrad off;
  for (auto [images, labels] : test) confusion.update(net(images), labels);
  std::cout << "digits in rows, answers in columns:\n" << confusion.compute() << "\n";

  const std::vector<double> accuracies = history.values("val_accuracy");
  const double best = *std::max_element(accuracies.begin(), accuracies.end());
  std::printf("best accuracy %.2f%%\n", 100 * best);
  return best > 0.85 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "fit_mlp: %s\n", e.what()), 1;
}

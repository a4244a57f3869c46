// Shows fine-tuning: a network trained on the digits 0 to 4 learns 5 to 9 with a new last layer alone; run
// `fine_tune [FOLDER] [--short]`.
#include <volta/volta.h>

#include <cstdio>
#include <string>

using namespace volta;

namespace {

// What it says of an image serves digits that it never saw: strokes, ends and corners.
struct Backbone {
  nn::Conv2d first{1, 16, 3, {.padding = 1}}, second{16, 32, 3, {.padding = 1}};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = max_pool2d(relu(first(x)), 2);
    return max_pool2d(relu(second(y)), 2).flatten(1);
  }
};

constexpr int64_t features = 32 * 3 * 3;

struct Classifier {
  Backbone backbone;
  nn::Linear head{features, 5};
  Tensor operator()(const Tensor& x) const { return head(backbone(x)); }
};

// The images of five digits from `first` on, with classes from 0 to 4.
data::LabelledImages five_digits(const data::LabelledImages& set, int64_t first) {
  const auto& [images, labels] = set.tensors();
  const Tensor wanted = (labels >= first) & (labels < first + 5);
  return data::TensorDataset(images[wanted], labels[wanted] - first);
}

double accuracy(Classifier& net, const data::LabelledImages& set) {
  data::DataLoader loader(set, {.batch_size = 250});
  return evaluate(net, loader, {.metrics = {metrics::Accuracy()}}).at("accuracy");
}

void train_on(const data::LabelledImages& set, Classifier& net, optim::Optimizer& optimizer, int64_t epochs) {
  data::DataLoader loader(set, {.batch_size = 50, .shuffle = true, .seed = 1});
  fit(net, loader, optimizer,
      {.epochs = epochs, .metrics = {metrics::Accuracy()}, .callbacks = {callbacks::progress()}});
}

}  // namespace

int main(int count, char** arguments) try {
  std::string folder = "data/digits";
  int64_t epochs = 10;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--short") epochs = 4;
    else folder = arguments[i];

  manual_seed(1);
  const data::LabelledImages training = data::digits(folder), test = data::digits(folder, {.train = false});
  const data::LabelledImages low = five_digits(training, 0), high = five_digits(training, 5);
  const data::LabelledImages low_test = five_digits(test, 0), high_test = five_digits(test, 5);
  Classifier net;

  std::printf("digits 0 to 4, all %lld parameters\n", static_cast<long long>(num_parameters(net)));
  optim::AdamW all(parameters(net), {.lr = 2e-3});
  train_on(low, net, all, epochs);
  const double before = accuracy(net, low_test);

  // Frozen parameters take no gradient: the backward pass ends at the head.
  freeze(net.backbone);
  net.head = nn::Linear(features, 5);
  const Tensor kept = net.backbone.first.weight.clone();
  const double untrained = accuracy(net, high_test);

  std::printf("digits 5 to 9, %lld parameters\n", static_cast<long long>(num_parameters(net, true)));
  optim::AdamW head_alone(parameters(net.head), {.lr = 1e-2});
  train_on(high, net, head_alone, epochs);
  const double after = accuracy(net, high_test);

  const bool untouched = equal(kept, net.backbone.first.weight);
  std::printf("test accuracy: 0 to 4 %.1f%%; 5 to 9 %.1f%% with a fresh head, %.1f%% once it is trained\n",
              100 * before, 100 * untrained, 100 * after);
  std::printf("the backbone is %s\n", untouched ? "as it was" : "changed");
  return untouched && before > 0.9 && after > 0.85 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "fine_tune: %s\n", e.what()), 1;
}

// Whole training steps and inference in Volta; steps_torch.cpp holds the same under the same names.
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/resnet.h>

#include "steps.h"

namespace {

using bench::Case;
using namespace volta;

const auto classes = [](const Tensor& y, const Tensor& target) { return cross_entropy(y, target); };
const auto squares = [](const Tensor& y, const Tensor& target) { return mse_loss(y, target); };

template <class Optimizer, class Model, class Options>
bench::Call training(Model made, const Options& options, const Tensor& input, const Tensor& target, auto loss) {
  const auto model = std::make_shared<Model>(std::move(made));
  const auto optimizer = std::make_shared<Optimizer>(parameters(*model), options);
  return [=] {
    optimizer->zero_grad();
    loss((*model)(input), target).backward();
    optimizer->step();
  };
}

template <class Model> bench::Call inference(Model model, const Tensor& input) {
  eval(model);
  return [model = std::make_shared<Model>(std::move(model)), input] {
    const InferenceMode on;
    (*model)(input);
  };
}

}  // namespace

void bench::add_steps(std::vector<Case>& cases) {
  const auto labels = [](int64_t n) { return randint(0, 10, {n}); };
  const auto small = [] { return models::mlp({.widths = {784, 128, 10}}); };
  cases.push_back({"step/mlp_784_128_10_b64_sgd", [=] {
                     const optim::SGDOptions options = {.lr = 0.1, .momentum = 0.9};
                     return training<optim::SGD>(small(), options, randn({64, 784}), labels(64), classes);
                   }});
  cases.push_back({"step/mlp_784_512_256_10_b128_adam", [=] {
                     return training<optim::Adam>(models::mlp({.widths = {784, 512, 256, 10}}), optim::AdamOptions{},
                                                  randn({128, 784}), labels(128), classes);
                   }});
  cases.push_back({"step/xor_2_8_1_b4_sgd", [] {
                     return training<optim::SGD>(models::mlp({.widths = {2, 8, 1}, .activation = nn::Tanh()}),
                                                 optim::SGDOptions{.lr = 0.1}, randn({4, 2}), randn({4, 1}), squares);
                   }});
  cases.push_back({"step/lenet_b64_adam", [=] {
                     return training<optim::Adam>(models::LeNet5{}, optim::AdamOptions{}, randn({64, 1, 28, 28}),
                                                  labels(64), classes);
                   }});
  cases.push_back({"step/resnet18_b8_h112_sgd", [=] {
                     const optim::SGDOptions options = {.lr = 0.1, .momentum = 0.9};
                     return training<optim::SGD>(models::resnet18({.classes = 10}), options, randn({8, 3, 112, 112}),
                                                 labels(8), classes);
                   }});
  cases.push_back({"infer/mlp_b1", [=] { return inference(small(), randn({1, 784})); }});
  cases.push_back({"infer/lenet_b1", [] { return inference(models::LeNet5{}, randn({1, 1, 28, 28})); }});
  cases.push_back({"infer/resnet18_b1_h224", [] {
                     return inference(models::resnet18({.classes = 10}), randn({1, 3, 224, 224}));
                   }});
}

// Whole training steps and inference in LibTorch; steps_volta.cpp holds the same under the same names.
#include <torch/torch.h>

#include "steps.h"

namespace {

using bench::Case;
using torch::randn;
using torch::Tensor;
namespace nn = torch::nn;

Tensor labels(std::int64_t n) { return torch::randint(0, 10, {n}, torch::kInt64); }

nn::Sequential mlp(const std::vector<std::int64_t>& widths, bool tanh = false) {
  nn::Sequential net;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0 && tanh) net->push_back(nn::Tanh());
    if (i > 0 && !tanh) net->push_back(nn::ReLU());
    net->push_back(nn::Linear(widths[i], widths[i + 1]));
  }
  return net;
}

nn::Sequential lenet() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(nn::Conv2dOptions(6, 16, 5)), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
}

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BasicImpl : nn::Module {
  BasicImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : main(register_module("a", nn::Sequential(conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(),
                                                 conv(out, out, 3, 1), nn::BatchNorm2d(out)))) {
    if (stride != 1 || in != out)
      side = register_module("d", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) { return torch::relu(main->forward(x) + (side ? side->forward(x) : x)); }
  nn::Sequential main, side{nullptr};
};
TORCH_MODULE(Basic);

nn::Sequential resnet18() {
  nn::Sequential net(conv(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    net->push_back(Basic(in, out, out == 64 ? 1 : 2));
    net->push_back(Basic(out, out, 1));
    in = out;
  }
  net->push_back(nn::AdaptiveAvgPool2d(1));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(512, 10));
  return net;
}

template <class Optimizer> bench::Call training(nn::Sequential model, std::shared_ptr<Optimizer> optimizer,
                                                Tensor input, Tensor target,
                                                Tensor (*loss)(const Tensor&, const Tensor&)) {
  return [=]() mutable {
    optimizer->zero_grad();
    loss(model->forward(input), target).backward();
    optimizer->step();
  };
}

Tensor classes(const Tensor& y, const Tensor& target) { return nn::functional::cross_entropy(y, target); }
Tensor squares(const Tensor& y, const Tensor& target) { return torch::mse_loss(y, target); }

bench::Call inference(nn::Sequential model, Tensor input) {
  model->eval();
  return [=]() mutable {
    const c10::InferenceMode on;
    model->forward(input);
  };
}

auto sgd(const nn::Sequential& net, double momentum) {
  return std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(momentum));
}
auto adam(const nn::Sequential& net) { return std::make_shared<torch::optim::Adam>(net->parameters()); }

}  // namespace

void bench::add_steps(std::vector<Case>& cases) {
  cases.push_back({"step/mlp_784_128_10_b64_sgd", [] {
                     const auto net = mlp({784, 128, 10});
                     return training(net, sgd(net, 0.9), randn({64, 784}), labels(64), classes);
                   }});
  cases.push_back({"step/mlp_784_512_256_10_b128_adam", [] {
                     const auto net = mlp({784, 512, 256, 10});
                     return training(net, adam(net), randn({128, 784}), labels(128), classes);
                   }});
  cases.push_back({"step/xor_2_8_1_b4_sgd", [] {
                     const auto net = mlp({2, 8, 1}, true);
                     return training(net, sgd(net, 0), randn({4, 2}), randn({4, 1}), squares);
                   }});
  cases.push_back({"step/lenet_b64_adam", [] {
                     const auto net = lenet();
                     return training(net, adam(net), randn({64, 1, 28, 28}), labels(64), classes);
                   }});
  cases.push_back({"step/resnet18_b8_h112_sgd", [] {
                     const auto net = resnet18();
                     return training(net, sgd(net, 0.9), randn({8, 3, 112, 112}), labels(8), classes);
                   }});
  cases.push_back({"infer/mlp_b1", [] { return inference(mlp({784, 128, 10}), randn({1, 784})); }});
  cases.push_back({"infer/lenet_b1", [] { return inference(lenet(), randn({1, 1, 28, 28})); }});
  cases.push_back({"infer/resnet18_b1_h224", [] { return inference(resnet18(), randn({1, 3, 224, 224})); }});
}

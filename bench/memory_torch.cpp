// Work whose peak resident memory bench/memory compares, in LibTorch; memory_volta.cpp does the same.
#include <torch/torch.h>

#include <functional>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "resident.h"

namespace {

using torch::Tensor;

void nothing() { Tensor two = torch::ones({1}) + 1; }

void chain() {
  Tensor x = torch::randn({1 << 20}, torch::requires_grad()), y = x;
  for (int i = 0; i < 500; ++i) y = y * 1.001 + 0.5;
  y.sum().backward();
}

// Every step's result is needed again by its backward rule.
void tanh_chain() {
  Tensor x = torch::randn({1 << 20}, torch::requires_grad()), y = x;
  for (int i = 0; i < 100; ++i) y = torch::tanh(y);
  y.sum().backward();
}

void mlp() {
  const std::int64_t batch = 128;
  const std::vector<std::int64_t> widths = {784, 512, 256, 10};
  std::vector<Tensor> parameters;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    parameters.push_back((torch::randn({widths[i], widths[i + 1]}) * 0.05).requires_grad_());
    parameters.push_back(torch::zeros({widths[i + 1]}).requires_grad_());
  }
  const Tensor input = torch::randn({batch, 784});
  const Tensor target = torch::softmax(10.0 * torch::randn({batch, 10}), -1);
  for (int step = 0; step < 20; ++step) {
    Tensor h = torch::relu(torch::matmul(input, parameters[0]) + parameters[1]);
    h = torch::relu(torch::matmul(h, parameters[2]) + parameters[3]);
    const Tensor logits = torch::matmul(h, parameters[4]) + parameters[5];
    const Tensor loss = -(target * torch::log_softmax(logits, -1)).sum() / static_cast<double>(batch);
    const std::vector<Tensor> gradients = torch::autograd::grad({loss}, parameters);
    torch::NoGradGuard off;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= 0.1 * gradients[i];
  }
}

void conv() {
  torch::nn::Conv2d layer(torch::nn::Conv2dOptions(64, 64, 3).padding(1));
  layer(torch::randn({32, 64, 128, 128}, torch::requires_grad())).sum().backward();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> work = {
      {"nothing", nothing}, {"chain", chain}, {"tanh_chain", tanh_chain}, {"mlp", mlp}, {"conv", conv}};
  const auto found = work.find(argc > 1 ? argv[1] : "");
  if (found == work.end()) {
    std::cerr << "usage: memory_torch nothing|chain|tanh_chain|mlp|conv\n";
    return 2;
  }
  found->second();
  std::cout << "peak_resident_kib " << bench::peak_resident_kib() << "\n";
}

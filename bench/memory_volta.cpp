// Work whose peak resident memory bench/memory compares, in Volta; memory_torch.cpp does the same.
#include <volta/volta.h>

#include <functional>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "resident.h"

namespace {

using namespace volta;

void nothing() { Tensor two = ones({1}) + 1; }

void chain() {
  Tensor x = randn({1 << 20}, {.requires_grad = true}), y = x;
  for (int i = 0; i < 500; ++i) y = y * 1.001 + 0.5;
  y.sum().backward();
}

// Every step's result is needed again by its backward rule.
void tanh_chain() {
  Tensor x = randn({1 << 20}, {.requires_grad = true}), y = x;
  for (int i = 0; i < 100; ++i) y = tanh(y);
  y.sum().backward();
}

void mlp() {
  const std::int64_t batch = 128;
  const std::vector<std::int64_t> widths = {784, 512, 256, 10};
  std::vector<Tensor> parameters;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    parameters.push_back((randn({widths[i], widths[i + 1]}) * 0.05).requires_grad_());
    parameters.push_back(zeros({widths[i + 1]}).requires_grad_());
  }
  const Tensor input = randn({batch, 784});
  const Tensor target = softmax(10.0 * randn({batch, 10}), -1);
  for (int step = 0; step < 20; ++step) {
    Tensor h = relu(matmul(input, parameters[0]) + parameters[1]);
    h = relu(matmul(h, parameters[2]) + parameters[3]);
    const Tensor logits = matmul(h, parameters[4]) + parameters[5];
    const Tensor loss = -(target * log_softmax(logits, -1)).sum() / static_cast<double>(batch);
    const std::vector<Tensor> gradients = grad(loss, parameters);
    NoGrad off;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= 0.1 * gradients[i];
  }
}

// Forward and backward of the convolution whose patches, unrolled, would fill 1.2 GB.
void conv() {
  const nn::Conv2d layer(64, 64, 3, {.padding = 1});
  layer(randn({32, 64, 128, 128}, {.requires_grad = true})).sum().backward();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> work = {
      {"nothing", nothing}, {"chain", chain}, {"tanh_chain", tanh_chain}, {"mlp", mlp}, {"conv", conv}};
  const auto found = work.find(argc > 1 ? argv[1] : "");
  if (found == work.end()) {
    std::cerr << "usage: memory_volta nothing|chain|tanh_chain|mlp|conv\n";
    return 2;
  }
  found->second();
  std::cout << "peak_resident_kib " << bench::peak_resident_kib() << "\n";
}

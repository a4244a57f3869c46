// Fits a line with LibTorch; bench/figures times its compilation.
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::Tensor x = torch::randn({64, 3}),
                y = torch::matmul(x, torch::tensor({{1.0, 0.0}, {-2.0, 1.0}, {0.5, 3.0}})) + 3.0;
  torch::Tensor w = torch::zeros({3, 2}, torch::requires_grad()), b = torch::zeros({2}, torch::requires_grad());
  for (int step = 0; step < 200; ++step) {
    torch::Tensor error = torch::matmul(x, w) + b - y;
    std::vector<torch::Tensor> g = torch::autograd::grad({(error * error).mean()}, {w, b});
    torch::NoGradGuard off;
    w -= 0.1 * g[0];
    b -= 0.1 * g[1];
  }
  std::cout << w << b << "\n";
}

// Fits a line with Volta; bench/figures times its compilation.
#include <volta/volta.h>

#include <iostream>

using namespace volta;

int main() {
  Tensor x = randn({64, 3}), y = matmul(x, tensor({{1.0, 0.0}, {-2.0, 1.0}, {0.5, 3.0}})) + 3.0;
  Tensor w = zeros({3, 2}, {.requires_grad = true}), b = zeros({2}, {.requires_grad = true});
  for (int step = 0; step < 200; ++step) {
    Tensor error = matmul(x, w) + b - y;
    std::vector<Tensor> g = grad((error * error).mean(), {w, b});
    NoGrad off;
    w -= 0.1 * g[0];
    b -= 0.1 * g[1];
  }
  std::cout << w << b << "\n";
}

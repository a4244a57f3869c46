// Shows polynomial regression by a quasi-Newton optimizer, which takes a closure; run `regression [--short]`.
#include <volta/volta.h>

#include <cmath>
#include <cstdio>
#include <string_view>

using namespace volta;

namespace {

// The mean squared error of a polynomial with these coefficients.
Tensor error(const Tensor& powers, const Tensor& coefficients, const Tensor& y) {
  return mse_loss(powers.matmul(coefficients), y);
}

}  // namespace

int main(int count, char** arguments) {
  int64_t samples = 2000;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") samples = 500;

  manual_seed(1);
  const double noise = 0.1;
  const Tensor truth = tensor<double>({1.0, -2.0, 0.0, 0.5});  // 1 - 2 x + x^3 / 2
  const Tensor x = uniform({samples}, -2, 2, {.dtype = f64});
  const Tensor powers = vander(x, truth.size(0), true);  // columns 1, x, x^2, x^3
  const Tensor y = powers.matmul(truth) + noise * randn({samples}, {.dtype = f64});

  const Tensor coefficients = zeros({truth.size(0)}, {.dtype = f64, .requires_grad = true});
  optim::LBFGS optimizer({coefficients}, {.strong_wolfe = true});
  // LBFGS looks at the loss at several places in each step, so it is given the way to compute it.
  const auto closure = [&] {
    optimizer.zero_grad();
    const Tensor loss = error(powers, coefficients, y);
    loss.backward();
    return loss;
  };
  for (int step = 1; step <= 3; ++step)
    std::printf("step %d  error before it %.6f\n", step, optimizer.step(closure).item<double>());

  const NoGrad off;
  std::printf("\n         true     found\n");
  for (int64_t i = 0; i < truth.size(0); ++i)
    std::printf("x^%lld   %7.4f   %7.4f\n", static_cast<long long>(i), truth[i].item<double>(),
                coefficients[i].item<double>());

  // Noise of this size leaves an error of its square, and coefficients that are off by about noise / sqrt(samples).
  const double left = error(powers, coefficients, y).item<double>();
  const double off_by = (coefficients - truth).abs().max().item<double>();
  std::printf("error left %.5f, of the noise %.5f; largest deviation %.4f\n", left, noise * noise, off_by);
  return left < 1.2 * noise * noise && off_by < 5 * noise / std::sqrt(double(samples)) ? 0 : 1;
}

// Shows the smallest network that learns something: exclusive or, from four examples; run `xor [--short]`.
#include <volta/volta.h>

#include <cstdio>
#include <string_view>

using namespace volta;

namespace {

// One hidden layer: no straight line separates the two answers.
struct Net {
  nn::Linear hidden{2, 8}, out{8, 1};
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
};

}  // namespace

int main(int count, char** arguments) {
  int steps = 1000;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 300;

  manual_seed(1);
  const Tensor x = tensor({{0.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}, {1.0, 1.0}});
  const Tensor y = tensor({{0.0}, {1.0}, {1.0}, {0.0}});
  Net net;
  optim::Adam optimizer(parameters(net), {.lr = 0.05});

  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = binary_cross_entropy_with_logits(net(x), y);
    loss.backward();
    optimizer.step();
    if (step % (steps / 5) == 0) std::printf("step %4d  loss %.5f\n", step, loss.item<double>());
  }

  const NoGrad off;
  const Tensor p = sigmoid(net(x));
  for (int i = 0; i < 4; ++i)
    std::printf("%.0f xor %.0f = %.3f\n", x[{i, 0}].item<double>(), x[{i, 1}].item<double>(), p[{i, 0}].item<double>());
  const bool learned = equal(p.round(), y);
  std::printf("%s\n", learned ? "learned" : "not learned");
  return learned ? 0 : 1;
}

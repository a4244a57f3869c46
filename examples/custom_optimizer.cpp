// Shows an optimizer of one's own next to SGD and Adam in Rosenbrock's valley; run `custom_optimizer [--short]`.
#include <volta/volta.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

using namespace volta;

// AdaBelief of Zhuang et al. 2020: Adam that divides by how far gradients stray from their mean, not by their size.
class AdaBelief : public optim::Optimizer {
 public:
  AdaBelief(optim::Params params, double lr, optim::Betas betas = {0.9, 0.999}, double eps = 1e-12)
      : Optimizer("AdaBelief", std::move(params), {.lr = lr, .eps = eps, .betas = betas}, {"step", "mean", "spread"}) {}

 private:
  // The formula is that of one element. It runs in one pass over memory; on a GPU, tensors stand for the numbers.
  void update(const Tensor& p, const Tensor& g, optim::State& state, const optim::ParamGroup& group) override {
    const auto [beta1, beta2] = group.betas;
    ++state.step;
    const double rate = group.lr / (1 - std::pow(beta1, double(state.step)));
    const double correction = 1 / (1 - std::pow(beta2, double(state.step)));
    const Tensor mean_slot = state.at(0, p), spread_slot = state.at(1, p);  // zeros at first
    optim::fused_update(
        p, g, std::array{rate, beta1, beta2, group.eps, correction},
        [](auto c, auto& x, auto grad, auto& mean, auto& spread) {
          using std::sqrt, volta::sqrt;
          const auto [lr, b1, b2, eps, scale] = c;
          mean = b1 * mean + (1 - b1) * grad;
          spread = b2 * spread + (1 - b2) * (grad - mean) * (grad - mean) + eps;
          x = x - lr * mean / (sqrt(scale * spread) + eps);
        },
        mean_slot, spread_slot);
  }
};

namespace {

// A narrow curved valley with its lowest point at (1, 1).
Tensor rosenbrock(const Tensor& at) { return (1 - at[0]).square() + 100 * (at[1] - at[0].square()).square(); }

// How low it gets from the usual start.
double descend(optim::Optimizer& optimizer, const Tensor& at, int steps) {
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    rosenbrock(at).backward();
    optimizer.step();
  }
  const double value = rosenbrock(at).item<double>();
  std::printf("%-10s at (%7.4f, %7.4f)  value %.3g\n", optimizer.name().c_str(), at[0].item<double>(),
              at[1].item<double>(), value);
  return value;
}

Tensor start() { return tensor({-1.2, 1.0}, {.dtype = f64, .requires_grad = true}); }

}  // namespace

int main(int count, char** arguments) {
  int steps = 10000;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 2000;

  const Tensor a = start(), b = start(), c = start();
  optim::SGD sgd({a}, {.lr = 1e-3});
  optim::Adam adam({b}, {.lr = 1e-2});
  AdaBelief belief({c}, 1e-2);
  const double beginning = rosenbrock(c).item<double>();
  std::printf("%d steps from value %.3g\n", steps, beginning);
  descend(sgd, a, steps);
  descend(adam, b, steps);
  const double value = descend(belief, c, steps);

  // Its state is saved and restored like that of the built-in ones: two more steps here and there are the same.
  const Tensor twin = c.detach().clone().requires_grad_();
  AdaBelief again({twin}, 1e-2);
  again.load_state_dict(belief.state_dict());
  descend(belief, c, 2);
  descend(again, twin, 2);
  return value < beginning / 100 && equal(c, twin) ? 0 : 1;
}

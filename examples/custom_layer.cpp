// Shows a layer of one's own, with names, hooks and a summary line like any other; run `custom_layer [--short]`.
#include <volta/volta.h>

#include <iostream>
#include <optional>
#include <string_view>

using namespace volta;

// Maxout of Goodfellow et al. 2013: the largest of several linear functions. Activations are learned with it.
class Maxout : public nn::Layer {
 public:
  Maxout(int64_t in, int64_t out, int64_t pieces)
      : Layer("Maxout"), weight(empty({pieces * out, in})), bias(zeros({pieces * out})), pieces_(pieces) {
    nn::init::kaiming_uniform_(weight);
  }

  // call() runs the hooks, and puts the layer's place in the model into errors.
  Tensor operator()(const Tensor& x) const {
    return call(x, [&](const Tensor& in) { return linear(in, weight, bias).unflatten(-1, {pieces_, -1}).amax(-2); });
  }
  void fields(nn::Fields& f) override {
    f("weight", weight);
    f("bias", bias);
  }
  double flops(const Tensor& x, const Tensor& y) const override {
    return double(pieces_ * y.numel()) * double(2 * x.size(-1) + 1);
  }

  nn::Parameter weight, bias;

 private:
  int64_t pieces_;
};

// It stands in a model as the library's own layers do.
struct Net {
  Maxout first{1, 8, 4}, second{8, 8, 4};
  nn::Linear out{8, 1};
  Tensor operator()(const Tensor& x) const { return out(second(first(x))); }
};

int main(int count, char** arguments) {
  int steps = 2000;
  for (int i = 1; i < count; ++i)
    if (std::string_view(arguments[i]) == "--short") steps = 400;

  manual_seed(1);
  Net net;
  std::cout << summary(net, {1, 1}) << "\n";
  for (const auto& [name, p] : named_parameters(net)) std::cout << name << " " << p.shape() << "\n";

  // A hook sees what passes, without a change to the layer.
  int calls = 0;
  const int hook = net.second.register_forward_hook([&](const nn::Layer&, const Tensor&, const Tensor&) {
    ++calls;
    return std::optional<Tensor>();
  });

  // A function with kinks, which pieces of lines can follow.
  const Tensor x = linspace(-3, 3, 200).unsqueeze(1), y = abs(x) - relu(x - 1) + sin(x);
  optim::Adam optimizer(parameters(net), {.lr = 5e-3});
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  net.second.remove_hook(hook);
  std::cout << "loss " << first << " fell to " << last << " in " << calls << " calls\n";

  const auto wrong = attempt([&] { return net(zeros({2, 5})); });
  if (!wrong) std::cout << "an error names the layer: " << wrong.error().what() << "\n";

  // Its gradients come from the ops it uses; differences, in f64, say the same.
  Maxout layer(3, 2, 4);
  to(layer, f64);
  const bool exact = gradcheck(layer, randn({5, 3}, {.dtype = f64, .requires_grad = true}));
  std::cout << "gradients agree with differences: " << (exact ? "yes" : "no") << "\n";
  return exact && calls == steps && last < first / 50 ? 0 : 1;
}

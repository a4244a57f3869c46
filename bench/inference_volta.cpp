// Inference with optimize() and without, for bench/inference: inference_volta serve, or inference_volta --export FOLDER, which
// writes each model's weights, an input and both answers.
#include <models/lenet.h>
#include <models/mlp.h>
#include <models/resnet.h>

#include "cases.h"

namespace {

using bench::Case;
using namespace volta;

// Statistics and scales that no fresh batch norm has.
template <class Model> Model settled(Model model) {
  for (auto& [name, x] : state_dict(model)) {
    Tensor t = x.detach();
    if (name.ends_with("running_var")) t.copy_(rand(t.shape()) + 0.5);
    if (name.ends_with("running_mean")) t.copy_(randn(t.shape()) * 0.1);
  }
  eval(model);
  return model;
}

template <class F> void for_each_case(F f) {
  manual_seed(3);
  f("mlp_b1", settled(models::mlp({.widths = {784, 128, 10}})), Shape{1, 784});
  f("lenet_b1", settled(models::LeNet5{}), Shape{1, 1, 28, 28});
  f("resnet18_b1_h224", settled(models::resnet18({.classes = 10})), Shape{1, 3, 224, 224});
  f("resnet18_b8_h224", settled(models::resnet18({.classes = 10})), Shape{8, 3, 224, 224});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for_each_case([&](const std::string& name, auto made, const Shape& shape) {
    const auto model = std::make_shared<decltype(made)>(std::move(made));
    cases.push_back({"plain/" + name, [=]() -> bench::Call {
                       return [=, x = randn(shape)] {
                         const InferenceMode on;
                         (*model)(x);
                       };
                     }});
    cases.push_back({"optimized/" + name, [=]() -> bench::Call {
                       const auto fast = std::make_shared<decltype(optimize(*model))>(optimize(*model));
                       return [=, x = randn(shape)] { (*fast)(x); };
                     }});
  });
  return cases;
}

void write_models(const std::string& folder) {
  for_each_case([&](const std::string& name, const auto& model, const Shape& shape) {
    const InferenceMode on;
    StateDict state = state_dict(model);
    const Tensor x = randn(shape);
    state.add("input", x), state.add("answer", model(x)), state.add("optimized", optimize(model)(x));
    write_safetensors(folder + "/" + name + ".safetensors", state);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--export") {
    write_models(argv[2]);
    return 0;
  }
  return bench::run(
      argc, argv, "Volta", [](int n) { set_num_threads(n); }, all_cases);
}

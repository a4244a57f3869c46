// One or more ways to call every op of the library, as data: the generated suites run over all of them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <volta/volta.h>

namespace volta::test {

// Floating inputs drawn uniformly from [low, high]; f must be smooth there for the gradient checks.
struct Input {
  Shape shape;
  double low = -2, high = 2;
};

struct Sample {
  std::string op;     // the name under which it is declared
  std::string label;  // unique
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> f;
  std::vector<Input> inputs;
  bool differentiable = true;
  bool half = true;  // meaningful in f16 and bf16 with wide tolerances
};

const std::vector<Sample>& samples();

std::vector<Tensor> draw(const Sample& sample, DType dtype, Device device = {}, bool requires_grad = false);
std::vector<Device> devices();      // the CPU, and the first GPU where there is one
std::vector<Device> all_devices();  // and one of the tests' own, which has nothing but the required loops

}  // namespace volta::test

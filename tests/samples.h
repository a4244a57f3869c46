// One or more ways to call every op of the library, as data: the generated suites run over all of them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <volta/volta.h>

#include "ops/functions.h"

namespace volta::test {

// What an op is given. Values are drawn uniformly from [low, high], in the dtype asked for; f must be smooth there for the
// gradient checks. Integers are 0 to `below` - 1 as i64, truths boolean: neither depends on the dtype.
enum class Draw { values, integers, truths };
struct Input {
  Shape shape;
  double low = -2, high = 2;
  Draw draw = Draw::values;
  bool optional = false;  // the op does without it
};
inline Input integers(const Shape& shape, int64_t below) { return {shape, 0, double(below), Draw::integers}; }
inline Input truths(const Shape& shape, bool optional = false) { return {shape, 0, 1, Draw::truths, optional}; }
inline Input optional(const Shape& shape) { return {shape, -2, 2, Draw::values, true}; }

using Tensors = std::vector<Tensor>;

struct Sample {
  std::string op;     // the name under which it is declared
  std::string label;  // unique
  std::function<Tensors(const Tensors&)> f;
  std::vector<Input> inputs;
  bool half = true;  // meaningful in f16 and bf16 with wide tolerances

  // What the list of ops says of it, unless the sample takes less; nothing of subscripts, which are no function.
  Takes takes = Takes::by_group;
  bool differentiable = true;
};

// One tensor, or several.
template <class F> Sample one(std::string op, std::string label, std::vector<Input> inputs, F f) {
  return {std::move(op), std::move(label), [f](const Tensors& x) { return Tensors{f(x)}; }, std::move(inputs)};
}
// Next to x: on its device, floats in its dtype.
inline Tensor beside(const Tensor& x, const Tensor& t) {
  if (!x.defined()) return t;
  return t.to(x.device()).to(is_floating(t.dtype()) && is_floating(x.dtype()) ? x.dtype() : t.dtype());
}

// Views, copies, what joins and splits.
void add_views(std::vector<Sample>& list);
void add_shapes(std::vector<Sample>& list);
// Convolution, pooling, norms, attention, resampling, embeddings, recurrence, sequences.
void add_layers(std::vector<Sample>& list);
void add_losses(std::vector<Sample>& list);

const std::vector<Sample>& samples();

Tensors draw(const Sample& sample, DType dtype, Device device = {}, bool requires_grad = false);
std::vector<Device> devices();      // the CPU, and the first GPU where there is one
std::vector<Device> all_devices();  // and those that were registered: the tests' own has nothing but the required loops

}  // namespace volta::test

// Functions over any model: parameters, states, modes, devices, summaries.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <volta/nn/dict.h>
#include <volta/nn/reflect.h>

namespace volta {

using nn::ModelRef;
using nn::ModelView;

// Names and tensors in the order of declaration: state_dict(net).at("fc1.weight").
using StateDict = Dict<Tensor>;

// The learned tensors, each once, as handles: optim::SGD opt(parameters(net), {.lr = 0.1}).
[[nodiscard]] std::vector<Tensor> parameters(const ModelView& model);
// With their paths: for (auto& [name, p] : named_parameters(net)) …
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_parameters(const ModelView& model);
[[nodiscard]] std::vector<Tensor> buffers(
    const ModelView& model);  // running means and other state that is not learned: buffers(net)
[[nodiscard]] std::vector<std::pair<std::string, Tensor>> named_buffers(
    const ModelView& model);  // named_buffers(net)[0].first
[[nodiscard]] int64_t num_parameters(const ModelView& model,
                                     bool trainable_only = false);  // elements: num_parameters(net)

// Parameters and persistent buffers, detached, sharing the model's memory: StateDict s = state_dict(net).
[[nodiscard]] StateDict state_dict(const ModelView& model);

struct LoadOptions {
  bool strict = true;
};
struct LoadResult {
  struct Mismatch {
    std::string name;
    Shape model, state;
  };
  std::vector<std::string> missing, unexpected;  // names only the model has; names only the state has
  std::vector<Mismatch> mismatched;              // names whose shapes differ
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};
// Copies values into the model, converting dtype and device: load_state_dict(net, state). Strict: any difference is an
// Error that lists them all, and nothing is changed. Lenient: what fits is loaded, the differences are returned.
LoadResult load_state_dict(const ModelRef& model, const StateDict& state, const LoadOptions& options = {});

void train(const ModelRef& model, bool on = true);     // dropout drops, batch norm learns: train(net)
void eval(const ModelRef& model);                      // the opposite: eval(net)
void zero_grad(const ModelView& model);                // forgets the gradients: zero_grad(net)
void freeze(const ModelRef& model);                    // no parameter requires grad: freeze(net.backbone)
void unfreeze(const ModelRef& model);                  // all do again: unfreeze(net.backbone)
void to(const ModelRef& model, DType dtype);           // floating parameters and buffers: to(net, bf16)
void to(const ModelRef& model, const Device& device);  // all of them; handles stay valid: to(net, Device("cuda"))
inline void to(const ModelRef& model, const char* device) { to(model, Device(device)); }  // to(net, "cuda")

namespace nn {

// A part of a model: a struct or layer inside it, by its address.
struct Part {
  void* object;
  const std::type_info* type;
  std::string type_name;
  Layer* layer;  // null for a plain struct
  Object seen;   // the base as which it is held, if it is held by a pointer to one; else the object itself
  // part.as<nn::Linear>(): null if it is of another type
  template <class T> T* as() const { return reflect::part_as<T>(layer, {object, type}, seen); }
};

}  // namespace nn

// The model itself, called "", and every struct and layer inside, outer ones first, each once:
// for (auto& [name, part] : named_modules(net)) …
[[nodiscard]] std::vector<std::pair<std::string, nn::Part>> named_modules(const ModelRef& model);
[[nodiscard]] std::vector<nn::Part> modules(const ModelRef& model);
// Those directly inside: "stem", "blocks.0".
[[nodiscard]] std::vector<std::pair<std::string, nn::Part>> named_children(const ModelRef& model);
[[nodiscard]] std::vector<nn::Part> children(const ModelRef& model);

namespace nn {

// All of them in a row, differentiably, and back: nn::vector_to_parameters(v, parameters(net)) copies values.
[[nodiscard]] Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

// While it lives, the tensors named stand in the model for its own.
class Substitute {
 public:
  [[nodiscard]] Substitute(const ModelRef& model, const StateDict& values);
  ~Substitute();
  Substitute(const Substitute&) = delete;
  Substitute& operator=(const Substitute&) = delete;

 private:
  std::vector<std::pair<Owned*, Tensor>> own_;
};

}  // namespace nn

// The model's result with other tensors in place of some of its own, by which it can be differentiated:
// Tensor y = functional_call(net, {{"fc.weight", w}}, x); grad(y.sum(), w). Tied weights go together. Other threads do
// not use the model meanwhile.
template <class M, class... A>
requires(!std::is_const_v<M>)
    [[nodiscard]] auto functional_call(M& model, const StateDict& values, const A&... arguments) {
  const nn::Substitute on(model, values);
  if constexpr (std::is_invocable_v<M&, const A&...>) return model(arguments...);
  else return model.forward(arguments...);
}

// Calls f with every struct and layer, inner ones first: apply(net, [](const nn::Module& m) { … }).
void apply(const ModelRef& model, const std::function<void(const nn::Module&)>& f);
// Nearer than std::apply, which a std::function would bring in.
template <nn::Model M, class F>
requires std::is_invocable_v<F&, const nn::Module&>
void apply(M& model, F&& f) {
  volta::apply(ModelRef(model), std::function<void(const nn::Module&)>(std::forward<F>(f)));
}
// Those of one type: apply<nn::Linear>(net, [](nn::Linear& l) { nn::init::zeros_(l.bias); }).
template <class T, class F> void apply(const ModelRef& model, F&& f) {
  apply(model, [&](const nn::Module& m) {
    if (T* part = m.as<T>()) f(*part);
  });
}

// A table of the layers as they run: std::cout << summary(net, {1, 3, 224, 224}). The model runs once, in eval mode.
std::string summary(const ModelRef& model, const Shape& input, DType dtype = f32);
std::string summary(const ModelRef& model, const Tensor& input);                   // summary(gpt, tokens)
std::string summary(const ModelRef& model, const std::function<void()>& forward);  // any call: [&] { net(a, b); }

}  // namespace volta

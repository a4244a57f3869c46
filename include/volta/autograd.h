// Differentiation: grad, modes, custom rules, checkpointing, numerical checks.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <volta/tensor.h>

namespace volta {

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};
  std::optional<bool> retain_graph = {};  // default: create_graph
  bool create_graph = false;
  bool allow_unused = false;  // an input the result does not depend on gives an undefined tensor instead of an error
};

// Gradients of y by x, returned; nothing is accumulated. grad(loss, w), grad(loss, {w, b}). A list in braces gives a list,
// even a list of one.
[[nodiscard]] Tensor grad(const Tensor& y, const Tensor& x, const GradOptions& options = {});
[[nodiscard]] std::vector<Tensor> grad(const Tensor& y, const std::vector<Tensor>& xs, const GradOptions& options = {});
[[nodiscard]] std::vector<Tensor> grad(const std::vector<Tensor>& ys, const std::vector<Tensor>& xs,
                                       const GradOptions& options = {});
[[nodiscard]] inline std::vector<Tensor> grad(const Tensor& y, std::initializer_list<Tensor> xs,
                                              const GradOptions& options = {}) {
  return grad(y, std::vector<Tensor>(xs), options);
}
[[nodiscard]] inline std::vector<Tensor> grad(std::initializer_list<Tensor> ys, std::initializer_list<Tensor> xs,
                                              const GradOptions& options = {}) {
  return grad(std::vector<Tensor>(ys), std::vector<Tensor>(xs), options);
}

// Modes of this thread, while the guard lives: { NoGrad off; y = model(x); }
class [[nodiscard]] GradGuard {
 public:
  [[nodiscard]] explicit GradGuard(bool record, bool inference = false);
  ~GradGuard();
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool before_, inference_before_;
};
struct [[nodiscard]] NoGrad : GradGuard {
  [[nodiscard]] NoGrad() : GradGuard(false) {}
};
struct [[nodiscard]] EnableGrad : GradGuard {
  [[nodiscard]] EnableGrad() : GradGuard(true) {}
};
struct [[nodiscard]] InferenceMode : GradGuard {
  [[nodiscard]] InferenceMode() : GradGuard(false, true) {}
};
bool is_grad_enabled();
bool is_inference_mode();

// While it lives, a backward rule that makes a NaN throws, naming the op.
class [[nodiscard]] DetectAnomaly {
 public:
  [[nodiscard]] DetectAnomaly();
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  bool before_;
};

// A result with a rule of your own: with_backward("clip", y, {x}, [](const Tensor& g) { return std::vector{g}; }).
Tensor with_backward(const std::string& name, const Tensor& value, const std::vector<Tensor>& inputs,
                     std::function<std::vector<Tensor>(const Tensor&)> rule);

// Computes f(inputs) without keeping its intermediates; they are computed again in the backward pass.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs);
template <class F, class... X>
requires std::is_invocable_r_v<Tensor, const F&, const Tensor&, const X&...> Tensor checkpoint(const F& f,
                                                                                               const Tensor& x,
                                                                                               const X&... more);

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
  bool fast = false;   // along one random direction instead of every element: for large inputs
  bool raise = false;  // throw, saying where, instead of returning false
};
bool gradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
bool gradgradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs,
                       const GradcheckOptions& options = {});

// Derivative matrices of f at x: jacobian has shape [out..., in...], hessian (of a scalar f) [in..., in...].
Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, bool create_graph = false);
Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
struct ValueProduct {
  Tensor value, product;
};
ValueProduct vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v);
ValueProduct jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v);

std::string graph_text(const Tensor& y);  // one line per node
std::string graph_dot(const Tensor& y);   // for Graphviz

namespace detail {
inline std::vector<Tensor> as_list(Tensor y) { return {std::move(y)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> ys) { return ys; }
inline std::vector<Tensor> as_list(ValuesIndices r) { return {std::move(r.values)}; }
template <class F, class... X> TensorFunction as_function(const F& f, const X&...) {
  return [f](const std::vector<Tensor>& in) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return as_list(f(in[I]...)); }
    (std::index_sequence_for<X...>());
  };
}
}  // namespace detail

// Numerical against analytic gradients, in f64: gradcheck([](const Tensor& x) { return x.exp(); }, x).
template <class F, class... X>
requires std::is_invocable_v<const F&, const Tensor&, const X&...>
bool gradcheck(const F& f, const Tensor& x, const X&... more) {
  return gradcheck_all(detail::as_function(f, x, more...), {x, more...});
}
template <class F, class... X>
requires std::is_invocable_v<const F&, const Tensor&, const X&...>
bool gradgradcheck(const F& f, const Tensor& x, const X&... more) {
  return gradgradcheck_all(detail::as_function(f, x, more...), {x, more...});
}
template <class F, class... X>
requires std::is_invocable_r_v<Tensor, const F&, const Tensor&, const X&...> Tensor checkpoint(const F& f,
                                                                                               const Tensor& x,
                                                                                               const X&... more) {
  return checkpoint([f](const std::vector<Tensor>& in) { return detail::as_function(f, Tensor(), X()...)(in)[0]; },
                    std::vector<Tensor>{x, more...});
}

}  // namespace volta

// Differentiation: grad, custom rules, checkpointing, numerical checks.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/given.h>
#include <volta/grad_mode.h>
#include <volta/tensor.h>

namespace volta {

// One gradient of a result, or one for each of several: .grad_outputs = v, .grad_outputs = {v, w}.
struct Cotangents : std::vector<Tensor> {
  using std::vector<Tensor>::vector;
  Cotangents(std::vector<Tensor> list) : std::vector<Tensor>(std::move(list)) {}
  template <class T>
  requires std::is_convertible_v<const T&, Tensor> Cotangents(const T& one) : std::vector<Tensor>{Tensor(one)} {}
};

struct GradOptions {
  Cotangents grad_outputs = {};
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

// A result with a rule of your own: with_backward("clip", y, {x}, [](const Tensor& g) { return std::vector{g}; }).
// The rule gives one gradient for each input, or an undefined tensor. The inputs name everything that gets a gradient:
// a value whose graph reaches something else that requires grad is an error; detach() what is meant as a constant.
// What the rule captures is kept until the graph is released; the inputs' values are not guarded against changes.
[[nodiscard]] Tensor with_backward(const std::string& name, const Tensor& value, const std::vector<Tensor>& inputs,
                                   std::function<std::vector<Tensor>(const Tensor&)> rule);
// Several results: the rule is given the gradient of each, zeros where none arrived.
[[nodiscard]] std::vector<Tensor> with_backward(const std::string& name, const std::vector<Tensor>& values,
                                                const std::vector<Tensor>& inputs,
                                                std::function<std::vector<Tensor>(const std::vector<Tensor>&)> rule);

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
  bool fast = false;   // along one random direction instead of every element: for large inputs
  bool raise = false;  // throw, saying where, instead of returning false
};
[[nodiscard]] bool gradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options = {});
[[nodiscard]] bool gradgradcheck_all(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                     const GradcheckOptions& options = {});

// Derivative matrices of f at x: jacobian has shape [out..., in...], hessian (of a scalar f) [in..., in...].
[[nodiscard]] Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                              bool create_graph = false);
[[nodiscard]] Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
struct ValueProduct {
  Tensor value, product;
};
[[nodiscard]] ValueProduct vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v);
[[nodiscard]] ValueProduct jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v);
// The Hessian of a scalar f times v, without the Hessian.
[[nodiscard]] ValueProduct hvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& v);

[[nodiscard]] std::string graph_text(const Tensor& y);  // one line per node
[[nodiscard]] std::string graph_dot(const Tensor& y);   // for Graphviz

namespace detail {
inline std::vector<Tensor> as_list(Tensor y) { return {std::move(y)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> ys) { return ys; }
inline std::vector<Tensor> as_list(ValuesIndices r) { return {std::move(r.values)}; }
template <class F, class... X> TensorFunction as_function(const F& f, const char* op, const X&...) {
  return [f = given(f, op)](const std::vector<Tensor>& in) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return as_list(f(in[I]...)); }
    (std::index_sequence_for<X...>());
  };
}
}  // namespace detail

// Numerical against analytic gradients, in f64: gradcheck([](const Tensor& x) { return x.exp(); }, x).
template <class F, class... X>
requires std::is_invocable_v<const F&, const Tensor&, const X&...>
[[nodiscard]] bool gradcheck(const F& f, const Tensor& x, const X&... more) {
  return gradcheck_all(detail::as_function(f, "gradcheck", x, more...), {x, more...});
}
template <class F, class... X>
requires std::is_invocable_v<const F&, const Tensor&, const X&...>
[[nodiscard]] bool gradgradcheck(const F& f, const Tensor& x, const X&... more) {
  return gradgradcheck_all(detail::as_function(f, "gradgradcheck", x, more...), {x, more...});
}

namespace detail {
// While it lives, a copy of a Parameter or a Buffer made by this thread is a handle to the same values.
class Sharing {
 public:
  Sharing();
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;
  static bool on();

 private:
  bool before_;
};

// f for later: moved, or copied with its layers' weights shared. What cannot be copied is kept by reference.
template <class F> auto keep(F&& f) {
  using Kept = std::decay_t<F>;
  const Sharing share;
  if constexpr (std::is_constructible_v<Kept, F>) return std::make_shared<Kept>(std::forward<F>(f));
  else {
    static_assert(std::is_lvalue_reference_v<F>,
                  "a function that can be neither copied nor moved must outlive the backward pass: give it a name");
    return &f;
  }
}

struct AnyMember {
  template <class T> operator T() const;
};
// Calls see(tensor) for each tensor of a result: a Tensor, a list, a tuple, or a struct of up to four of these.
template <class R, class See> void each_tensor(R& r, const See& see) {
  if constexpr (std::is_base_of_v<Tensor, R>) see(static_cast<Tensor&>(r));
  else if constexpr (std::is_arithmetic_v<R>) return;
  else if constexpr (requires { std::tuple_size<R>::value; })
    std::apply([&](auto&... member) { (each_tensor(member, see), ...); }, r);
  else if constexpr (requires { r.begin(); })
    for (auto& member : r) each_tensor(member, see);
  else {
    using A = AnyMember;
    constexpr bool larger = requires { R{A(), A(), A(), A(), A()}; };
    static_assert(std::is_aggregate_v<R> && !larger,
                  "checkpoint: the function must return tensors: one, a list, a tuple, or a struct of up to four");
    if constexpr (requires { R{A(), A(), A(), A()}; }) {
      auto& [a, b, c, d] = r;
      each_tensor(a, see), each_tensor(b, see), each_tensor(c, see), each_tensor(d, see);
    } else if constexpr (requires { R{A(), A(), A()}; }) {
      auto& [a, b, c] = r;
      each_tensor(a, see), each_tensor(b, see), each_tensor(c, see);
    } else if constexpr (requires { R{A(), A()}; }) {
      auto& [a, b] = r;
      each_tensor(a, see), each_tensor(b, see);
    } else {
      auto& [a] = r;
      each_tensor(a, see);
    }
  }
}
template <class R> std::vector<Tensor> tensors_of(R r) {
  std::vector<Tensor> all;
  each_tensor(r, [&](const Tensor& t) { all.push_back(t); });
  return all;
}

// Runs f now, and `again` in the backward pass.
std::vector<Tensor> checkpoint_all(const TensorFunction& f, TensorFunction again, const std::vector<Tensor>& inputs);

using ListArgument = const std::vector<Tensor>&;
template <class F>
concept TakesList = std::is_invocable_v<F&, ListArgument>;

// call(f, inputs) says how f takes its inputs.
template <class F, class Call> auto checkpoint_with(F&& f, const std::vector<Tensor>& inputs, const Call& call) {
  using Result = std::decay_t<decltype(call(f, inputs))>;
  static_cast<void>(given(f, "checkpoint"));
  std::optional<Result> result;
  if (!is_grad_enabled()) return Result(call(f, inputs));
  const auto finish = [&](const TensorFunction& first, TensorFunction again) {
    size_t next = 0;
    const std::vector<Tensor> recorded = checkpoint_all(first, std::move(again), inputs);
    each_tensor(*result, [&](Tensor& t) { t = recorded[next++]; });
    return std::move(*result);
  };
  const auto run = [&](auto& g, const std::vector<Tensor>& in) {
    result.emplace(call(g, in));
    std::vector<Tensor> all;
    each_tensor(*result, [&](Tensor& t) { all.push_back(std::move(t)); });
    return all;
  };
  auto kept = keep(std::forward<F>(f));
  const auto again = [kept, call](const std::vector<Tensor>& in) { return tensors_of(call(*kept, in)); };
  // An lvalue runs itself, so that what it changes in itself is seen; its copy runs in the backward pass.
  if constexpr (std::is_lvalue_reference_v<F>)
    return finish([&](const std::vector<Tensor>& in) { return run(f, in); }, again);
  else return finish([&](const std::vector<Tensor>& in) { return run(*kept, in); }, again);
}
}  // namespace detail

// f(x, ...) without keeping its intermediates: the backward pass runs f again, with the same random numbers. f may
// return several tensors (a list, a tuple, a struct). Gradients reach x and whatever else f uses that requires grad.
//   y = checkpoint(block, x);                                            // the node shares the block's weights
//   y = checkpoint([&](const Tensor& t) { return tanh(layer(t)); }, x);  // `layer` must live until the backward pass
// f must do the same again: what it reads may not be changed (an Error says so) or replaced (not detected), and inputs
// not be changed in place. Running statistics of batch norm move once. Inside f nothing can be differentiated.
template <class F, class... X>
requires std::is_invocable_v<F&, const Tensor&, const X&...>
[[nodiscard]] auto checkpoint(F&& f, const Tensor& x, const X&... more) {
  return detail::checkpoint_with(std::forward<F>(f), {x, more...}, [](auto& g, const std::vector<Tensor>& in) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return g(in[I]...); }
    (std::index_sequence_for<Tensor, X...>());
  });
}
// The same for a function that takes a list.
template <detail::TakesList F> [[nodiscard]] auto checkpoint(F&& f, const std::vector<Tensor>& inputs) {
  return detail::checkpoint_with(std::forward<F>(f), inputs,
                                 [](auto& g, const std::vector<Tensor>& in) { return g(in); });
}

}  // namespace volta

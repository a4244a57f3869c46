// optimize: a model that only answers, with all done beforehand that does not depend on the question.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/aggregate_fields.h>
#include <volta/tensor.h>

namespace volta {
namespace detail {

using ModelFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// The programs of a model, one for each kind of inputs.
class Programs {
 public:
  Programs();
  ~Programs();
  Programs(Programs&&) noexcept;
  Programs& operator=(Programs&&) noexcept;
  std::vector<Tensor> run(std::span<const Tensor> inputs, const ModelFunction& model) const;
  int64_t working_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Results as a list of tensors and back: a tensor, a vector of them, or a pair, tuple, array or struct of such.
template <class T> auto parts_of(T& x) {
  if constexpr (requires { std::tuple_size<T>::value; })
    return std::apply([](auto&... part) { return std::tie(part...); }, x);
  else return reflect::tie_fields<reflect::count_fields<T>()>(x);
}
template <class T> constexpr bool has_parts() {
  if constexpr (requires { std::tuple_size<T>::value; }) return true;
  else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>)
    return reflect::count_fields<T>() <= reflect::most_fields;
  else return false;
}
// How many tensors, or vectors of them, are parts of T.
template <class Leaf, class T> constexpr size_t count_leaves() {
  if constexpr (std::is_same_v<T, Leaf>) return 1;
  else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::vector<Tensor>>) return 0;
  else {
    static_assert(
        has_parts<T>(),
        "optimize: the model's result is neither a Tensor, nor a std::vector<Tensor>, nor a pair, tuple, array or "
        "plain struct of them; optimize a lambda that returns one of these");
    return []<class... Part>(std::type_identity<std::tuple<Part&...>>) {
      return (size_t(0) + ... + count_leaves<Leaf, Part>());
    }(std::type_identity<decltype(parts_of(std::declval<T&>()))>());
  }
}
template <class T> void list(T& x, std::vector<Tensor>& to) {
  if constexpr (std::is_same_v<T, Tensor>) to.push_back(x);
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>) to.insert(to.end(), x.begin(), x.end());
  else std::apply([&](auto&... part) { (list(part, to), ...); }, parts_of(x));
}
template <class T> void unlist(T& x, std::span<const Tensor>& from, size_t in_vector) {
  if constexpr (std::is_same_v<T, Tensor>) {
    x = from.front();
    from = from.subspan(1);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    x.assign(from.begin(), from.begin() + std::ptrdiff_t(in_vector));
    from = from.subspan(in_vector);
  } else {
    std::apply([&](auto&... part) { (unlist(part, from, in_vector), ...); }, parts_of(x));
  }
}

}  // namespace detail

template <class Model> class [[nodiscard]] Optimized {
 public:
  using Held = std::remove_reference_t<Model>;
  explicit Optimized(Model&& model) : model_(std::forward<Model>(model)) {}

  // With the tensors that the model takes. Several threads may call it at once.
  template <std::convertible_to<Tensor>... T> auto operator()(const T&... inputs) const {
    using Result =
        std::remove_cvref_t<std::invoke_result_t<const Held&, std::conditional_t<true, const Tensor&, T>...>>;
    constexpr size_t alone = detail::count_leaves<Tensor, Result>();
    static_assert(detail::count_leaves<std::vector<Tensor>, Result>() <= 1,
                  "optimize: the model's result has several vectors of tensors");
    const Tensor all[] = {inputs...};
    const std::vector<Tensor> results = programs_.run(all, [this](std::span<const Tensor> given) {
      std::vector<Tensor> list;
      [&]<size_t... I>(std::index_sequence<I...>) {
        Result result = std::as_const(model_)(given[I]...);
        detail::list(result, list);
      }
      (std::index_sequence_for<T...>());
      return list;
    });
    Result result;
    std::span<const Tensor> rest = results;
    detail::unlist(result, rest, results.size() - alone);
    return result;
  }

  // Working memory that each thread which calls it at one time holds, of all kinds of inputs so far.
  int64_t working_bytes() const { return programs_.working_bytes(); }

 private:
  Model model_;
  detail::Programs programs_;
};

// eval(net);
// auto fast = optimize(net);
// Tensor y = fast(x);
//
// For inference on the CPU. The first call with inputs of some shapes and dtypes runs the model and writes down the work that
// it asks for; the next ones do that work, without the model's own code. What depends on weights alone is done once: batch
// norm is folded into the convolution before it; activations and sums are done while a product's results are in the caches;
// all working memory is laid out beforehand. Results differ from the model's by rounding.
//
// The model stays where it is and must live as long (a temporary is moved in). After its weights changed in place, by
// load_state or an optimizer's step, the next call writes the work down anew; a plain flag of the model, its mode among them,
// stays what it was when its work was written down. A model that draws random numbers, keeps what
// depends on its input, or looks at elements in order to decide is an Error that says so. No gradients are recorded.
template <class Model> Optimized<Model> optimize(Model&& model) { return Optimized<Model>(std::forward<Model>(model)); }

}  // namespace volta

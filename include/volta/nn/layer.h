// Layer: what the library's own layers share: a type, a place in the model, a mode, and hooks around the call.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <volta/aggregate_fields.h>
#include <volta/given.h>
#include <volta/nn/parameter.h>

namespace volta {
class PerAxis;
class ConvPadding;
class GradScaler;
}  // namespace volta

namespace volta::nn {

namespace reflect {
using namespace volta::reflect;

// The first tensor that a result holds: a tensor, a pair, tuple, list or struct of them; null where there is none.
template <class T> Tensor* first_tensor(T& x) {
  [[maybe_unused]] const auto first_of = [](auto&... parts) {
    Tensor* found = nullptr;
    static_cast<void>(((found = first_tensor(parts)) || ...));
    return found;
  };
  if constexpr (std::is_same_v<T, Tensor>) {
    return x.defined() ? &x : nullptr;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::apply(first_of, x);
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    return x.empty() ? nullptr : first_tensor(x.front());
  } else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T>) {
    constexpr size_t count = count_fields<T>();
    if constexpr (count <= most_fields) return std::apply(first_of, tie_fields<count>(x));
    else return nullptr;
  } else {
    return nullptr;
  }
}
}  // namespace reflect

class Fields;
class KeyValueCache;
class Layer;
struct Sides;

// Declares that a class holds no parameters, so that it may stand in a model though its members cannot be seen:
// template <> inline constexpr bool volta::nn::stateless<Tokenizer> = true;
template <class T> inline constexpr bool stateless = false;
template <> inline constexpr bool stateless<Int> = true;
template <> inline constexpr bool stateless<Ints> = true;
template <> inline constexpr bool stateless<Shape> = true;
template <> inline constexpr bool stateless<Axes> = true;
template <> inline constexpr bool stateless<Device> = true;
template <> inline constexpr bool stateless<Scalar> = true;
template <> inline constexpr bool stateless<Operand> = true;
template <> inline constexpr bool stateless<Generator> = true;
template <> inline constexpr bool stateless<PerAxis> = true;
template <> inline constexpr bool stateless<ConvPadding> = true;
template <> inline constexpr bool stateless<Sides> = true;
template <> inline constexpr bool stateless<GradScaler> = true;
template <> inline constexpr bool stateless<KeyValueCache> = true;

// Where a member lies in a model: its name and the path of what holds it.
struct Path {
  const Path* parent = nullptr;
  std::string_view name = {};  // empty: the same place as the parent
  std::string str() const;     // "blocks.0.conv"
  int depth() const;
};

[[noreturn]] void refuse_captures(const char* who);
// Throws if f, whose captures nobody can see, captures a layer or Parameter by value: then copying it copies parameters.
template <class F> void check_captures(const F& f, const char* who) {
  const uint64_t before = Owned::copies();
  const F twin(f);
  static_cast<void>(twin);
  if (Owned::copies() != before) refuse_captures(who);
}

// Hooks see the layer, its input and its output; one that returns a tensor replaces the output (the input, before). Of a
// result of several parts, as an LSTM's, that is the first tensor.
using ForwardHook = std::function<std::optional<Tensor>(const Layer&, const Tensor& input, const Tensor& output)>;
using ForwardPreHook = std::function<std::optional<Tensor>(const Layer&, const Tensor& input)>;

// Sees every layer this thread runs while it lives: nn::Watch watch([&](auto& layer, auto& x, auto& y) { … }).
class [[nodiscard]] Watch {
 public:
  using See = std::function<void(const Layer&, const Tensor& input, const Tensor& output)>;
  [[nodiscard]] explicit Watch(See see);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  friend class Layer;
  See see_;
  Watch* before_;
};

// A model needs no base class. One that wants hooks, `training`, or its path in errors derives from Layer, names its
// members in fields() and wraps its work in call():
//   struct Noise : nn::Layer {
//     Noise() : Layer("Noise") {}
//     void fields(nn::Fields&) override {}
//     Tensor operator()(const Tensor& x) const {
//       return call(x, [&](const Tensor& in) { return training ? in + randn_like(in) : in; });
//     }
//   };
class Layer {
 public:
  explicit Layer(const char* type) : type_(type) {}
  Layer(const Layer&) = default;
  Layer(Layer&&) noexcept = default;
  Layer& operator=(const Layer&) = default;
  Layer& operator=(Layer&&) noexcept = default;
  virtual ~Layer() = default;

  bool training = true;
  const char* type() const { return type_; }
  std::string path() const;  // in the outermost model any function of model.h has seen; empty before

  // layer.register_forward_hook([](auto&, auto&, const Tensor& y) { return y * 2; }); gives a number for remove_hook.
  int register_forward_hook(ForwardHook hook);
  int register_forward_pre_hook(ForwardPreHook hook);
  // Those that only look: fc.register_forward_hook([](auto&, auto&, const Tensor& y) { std::cout << y; }).
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Layer&, const Tensor&, const Tensor&>>
  int register_forward_hook(F hook) {
    return register_forward_hook([hook = volta::detail::given(hook, "register_forward_hook")](
                                     const Layer& layer, const Tensor& in, const Tensor& out) mutable {
      hook(layer, in, out);
      return std::optional<Tensor>();
    });
  }
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, const Layer&, const Tensor&>>
  int register_forward_pre_hook(F hook) {
    return register_forward_pre_hook(
        [hook = volta::detail::given(hook, "register_forward_pre_hook")](const Layer& layer, const Tensor& in) mutable {
          hook(layer, in);
          return std::optional<Tensor>();
        });
  }
  void remove_hook(int hook);

  virtual void fields(Fields& f) = 0;                                     // f("weight", weight); f("bias", bias);
  virtual double flops(const Tensor& input, const Tensor& output) const;  // of one call; one per output by default

  void set_path(const Path& path) const;  // the deepest wins: a part looked at alone keeps its place in the whole

 protected:
  // Runs forward(input) with the hooks around it; an Error gets the layer's path.
  template <class F> auto call(const Tensor& x, F&& forward) const -> std::invoke_result_t<F&, const Tensor&> {
    try {
      if (!watched()) return forward(x);
      const Tensor input = before(x);
      auto output = forward(input);
      if constexpr (std::is_same_v<decltype(output), Tensor>) {
        return after(input, std::move(output));
      } else {
        if (Tensor* const seen = reflect::first_tensor(output)) *seen = after(input, *seen);
        return output;
      }
    } catch (const Error& e) {
      fail(e);
    }
  }

 private:
  struct Hooks;
  struct Place;
  // Set while a const model is walked, possibly by several threads.
  struct PlaceSlot {
    PlaceSlot() = default;
    PlaceSlot(const PlaceSlot& other) noexcept : place(other.place.load(std::memory_order_relaxed)) {}
    PlaceSlot& operator=(const PlaceSlot& other) noexcept {
      place.store(other.place.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return *this;
    }
    std::atomic<const Place*> place{nullptr};
  };
  bool watched() const noexcept;
  Tensor before(const Tensor& x) const;
  Tensor after(const Tensor& x, Tensor y) const;
  [[noreturn]] void fail(const Error& e) const;
  Hooks& own_hooks();

  const char* type_;
  mutable PlaceSlot place_;
  std::shared_ptr<Hooks> hooks_;  // shared by copies until one of them changes
};

}  // namespace volta::nn

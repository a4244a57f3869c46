// Containers: AnyModule holds any model, Sequential runs several in turn, List, Dict and repeat hold many.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <volta/given.h>
#include <volta/nn/dict.h>
#include <volta/nn/reflect.h>

namespace volta::nn {

class AnyModule;

// What maps a tensor to a tensor, by a const call operator or `forward`: a model, a function or a lambda. What a lambda
// captures is no part of the model; capturing a layer by value is an Error.
template <class T>
concept Callable = !std::is_same_v<T, AnyModule> &&
                   (reflect::Runs<T> || reflect::RunsForward<T>)&&(
                       Model<T> || std::is_pointer_v<T> || (reflect::Closure<T> && std::is_copy_constructible_v<T>));

// Any model from tensor to tensor, chosen at run time and copied with its weights: nn::AnyModule m = nn::Linear(4, 2).
class AnyModule : public Layer {
 public:
  AnyModule() : Layer("AnyModule") {}  // holds nothing; calling it is an Error
  template <Callable M> AnyModule(M module)
      : Layer("AnyModule"), held_(std::make_unique<HeldModel<M>>(std::move(module))) {
    [[maybe_unused]] const M& m = detail::given(static_cast<HeldModel<M>&>(*held_).module, "AnyModule");
    if constexpr (reflect::Closure<M>) check_captures(m, "AnyModule");
  }
  AnyModule(const AnyModule& other) : Layer(other), held_(other.held_ ? other.held_->copy() : nullptr) {}
  AnyModule(AnyModule&&) noexcept = default;
  AnyModule& operator=(AnyModule other);  // into a model of the same type if it holds one: handles stay valid
  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor&) const override { return 0; }
  bool empty() const { return !held_; }

  // m.get<nn::Linear>().weight; get_if gives null where get throws.
  template <class M> M* get_if() {
    return held_ && held_->type() == typeid(M) ? static_cast<M*>(held_->object()) : nullptr;
  }
  template <class M> const M* get_if() const { return const_cast<AnyModule*>(this)->get_if<M>(); }
  template <class M> M& get() {
    if (M* m = get_if<M>()) return *m;
    wrong_type(reflect::type_name<M>());
  }
  template <class M> const M& get() const { return const_cast<AnyModule*>(this)->get<M>(); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> copy() const = 0;
    virtual bool assign(Held& other) = 0;  // from one of the same type
    virtual Tensor run(const Tensor& x) const = 0;
    virtual void fields(Fields& f) = 0;
    virtual const std::type_info& type() const = 0;
    virtual std::string_view type_name() const = 0;
    virtual void* object() = 0;
  };
  template <class M> struct HeldModel final : Held {
    explicit HeldModel(M m) : module(std::move(m)) {}
    std::unique_ptr<Held> copy() const override {
      if constexpr (std::is_copy_constructible_v<M>) return std::make_unique<HeldModel>(module);
      else cannot_copy(reflect::type_name<M>());
    }
    bool assign(Held& other) override {
      if constexpr (std::is_move_assignable_v<M>) module = std::move(static_cast<HeldModel&>(other).module);
      return std::is_move_assignable_v<M>;
    }
    Tensor run(const Tensor& x) const override { return reflect::run(detail::given(module, "AnyModule"), x); }
    void fields(Fields& f) override {
      if constexpr (!reflect::Closure<M>) f("", module);
    }
    const std::type_info& type() const override { return typeid(M); }
    std::string_view type_name() const override { return reflect::type_name<M>(); }
    void* object() override { return &module; }
    M module;
  };
  [[noreturn]] static void cannot_copy(std::string_view type);
  [[noreturn]] void wrong_type(std::string_view wanted) const;

  std::unique_ptr<Held> held_;
};

// What a Sequential says of a model that it cannot run.
template <class M> constexpr void must_map_a_tensor() {
  static_assert(
      std::is_convertible_v<M, AnyModule>,
      "a model in a Sequential needs a const call operator from Tensor to Tensor, `Tensor operator()(const "
      "Tensor& x) const`, or such a `forward`; one that gives more, as nn::LSTM does, goes into a struct that "
      "picks the tensor, and a lambda must be copyable");
}

// Runs models one after another: nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2)); or with names:
// nn::Sequential{{"fc1", nn::Linear(4, 8)}, {"act", nn::ReLU()}}, or without copying them
// nn::Sequential::builder().add("fc1", nn::Linear(4, 8)).add(nn::ReLU()).build(). Unnamed ones are called by position.
class Sequential : public Layer {
 public:
  class Builder;
  static Builder builder();

  template <class... M>
  requires(sizeof...(M) != 1 || (!std::is_same_v<M, Sequential> && ...)) &&
      (std::is_convertible_v<M, AnyModule> && ...) explicit Sequential(M... modules) : Layer("Sequential") {
    (add(std::move(modules)), ...);
  }
  template <class... M>
  requires(sizeof...(M) != 1 || (!std::is_same_v<M, Sequential> && ...)) &&
      (!(std::is_convertible_v<M, AnyModule> && ...)) explicit Sequential(M...) : Layer("Sequential") {
    (must_map_a_tensor<M>(), ...);
  }
  Sequential(std::initializer_list<std::pair<std::string, AnyModule>> named) : Layer("Sequential") {
    for (const auto& [name, m] : named) add(name, m);
  }
  explicit Sequential(std::vector<AnyModule> modules) : Layer("Sequential") {
    for (AnyModule& m : modules) add(std::move(m));
  }
  Sequential(const Sequential&) = default;
  Sequential(Sequential&& other) noexcept
      : Layer(std::move(other)),
        modules_(std::move(other.modules_)),
        given_away_(std::exchange(other.given_away_, true)) {}
  Sequential& operator=(Sequential other);  // one by one if the names are the same: handles stay valid

  void add(AnyModule module);                           // seq.add(nn::ReLU())
  void add(const std::string& name, AnyModule module);  // seq.add("fc3", nn::Linear(2, 2)); a name taken is an Error
  template <class M>
  requires(!std::is_convertible_v<M, AnyModule>) void add(const M&) { must_map_a_tensor<M>(); }
  template <class M>
  requires(!std::is_convertible_v<M, AnyModule>) void add(const std::string&, const M&) { must_map_a_tensor<M>(); }
  void push_back(AnyModule module) { add(std::move(module)); }
  void push_back(const std::string& name, AnyModule module) { add(name, std::move(module)); }
  size_t size() const { return modules_.size(); }
  bool empty() const { return modules_.empty(); }
  std::vector<std::string> names() const { return modules_.names(); }
  AnyModule& operator[](int64_t index);  // seq[0], seq[-1]
  const AnyModule& operator[](int64_t index) const { return const_cast<Sequential&>(*this)[index]; }
  AnyModule& operator[](std::string_view name) { return modules_.at(name); }  // seq["fc1"]
  const AnyModule& operator[](std::string_view name) const { return modules_.at(name); }
  template <class M, class Key> M& get(const Key& key) { return (*this)[key].template get<M>(); }

  Tensor operator()(const Tensor& x) const;
  void fields(Fields& f) override;
  double flops(const Tensor&, const Tensor&) const override { return 0; }

 private:
  volta::Dict<AnyModule> modules_;
  bool given_away_ = false;  // moved from, so that being empty does not mean the identity
};

class Sequential::Builder {
 public:
  Builder& add(AnyModule module);
  Builder& add(const std::string& name, AnyModule module);
  template <class M>
  requires(!std::is_convertible_v<M, AnyModule>) Builder& add(const M&) { return must_map_a_tensor<M>(), *this; }
  template <class M>
  requires(!std::is_convertible_v<M, AnyModule>) Builder& add(const std::string&, const M&) {
    return must_map_a_tensor<M>(), *this;
  }
  Sequential build() { return std::move(made_); }

 private:
  Sequential made_;
};
inline Sequential::Builder Sequential::builder() { return {}; }

// Many of a kind, named by position or by name; of different kinds without the type.
template <class T = AnyModule> using List = std::vector<T>;  // nn::List<nn::Linear> heads
template <class T = AnyModule> using Dict = volta::Dict<T>;  // nn::Dict<> parts; parts.add("act", nn::ReLU())

// n models made of the same arguments, each with weights of its own: nn::repeat<Block>(6, config).
template <class T, class... A> std::vector<T> repeat(Int n, const A&... arguments) {
  if (n < 0 || n > 65536) throw Error(Error::Kind::argument, "repeat", "cannot make " + std::to_string(n) + " modules");
  std::vector<T> list;
  list.reserve(size_t(n));
  for (int64_t i = 0; i < n; ++i) list.push_back(T{arguments...});
  return list;
}

}  // namespace volta::nn

// Reflection: the members of a plain struct with their names, and the walk over everything a model holds.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

#include <volta/nn/layer.h>
#include <volta/nn/tie.h>

namespace volta::nn {

class Visitor;

// Names the members of a class that is not an aggregate: void fields(nn::Fields& f) { f("weight", weight); }
class Fields {
 public:
  Fields(const Path& path, Visitor& visitor) : path_(path), visitor_(visitor) {}
  template <class T> void operator()(std::string_view name, T& member);

 private:
  const Path& path_;
  Visitor& visitor_;
};

// A struct or layer met on the walk.
struct Module {
  const Path& path;
  void* object;
  const std::type_info& type;
  std::string_view type_name;
  Layer* layer;  // null for a plain struct
};

class Visitor {
 public:
  virtual void parameter(const Path&, Parameter&) {}
  virtual void buffer(const Path&, Buffer&) {}
  virtual void enter(const Module&) {}
  virtual void leave(const Module&) {}

 protected:
  ~Visitor() = default;
};

namespace reflect {

// Room for a T that is never made; the addresses of its members carry their names.
template <class T> union Specimen {
  constexpr Specimen() : none() {}
  ~Specimen() {}
  char none;
  T value;
};
template <class T> inline Specimen<T> specimen;
template <class P> struct Address { P pointer; };

constexpr bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
// "… = Address<…>{(& specimen<Net>.Specimen<Net>::value.Net::stem)}; …]" (g++), "[A = {&specimen.value.stem}]" (clang)
constexpr std::string_view last_word(std::string_view s) {
  s = s.substr(0, s.rfind('}'));
  while (!s.empty() && !in_word(s.back())) s.remove_suffix(1);
  size_t begin = s.size();
  while (begin > 0 && in_word(s[begin - 1])) --begin;
  return s.substr(begin);
}
template <Address A> constexpr std::string_view address_name() { return last_word(__PRETTY_FUNCTION__); }

template <class T, size_t I> constexpr std::string_view field_name() {
  constexpr auto p = &std::get<I>(tie_fields(specimen<T>.value));
  return address_name<Address<std::remove_const_t<decltype(p)>>{p}>();
}

// "Block" of "… [with T = {anonymous}::Block; …]" or "… [T = (anonymous namespace)::Block]".
constexpr std::string_view short_type(std::string_view s) {
  s.remove_prefix(s.find("T = ") + 4);
  s = s.substr(0, s.find_first_of(";]"));
  const size_t arguments = s.find('<'), scope = s.substr(0, arguments).rfind("::");
  return scope == std::string_view::npos ? s : s.substr(scope + 2);
}
template <class T> constexpr std::string_view type_name() { return short_type(__PRETTY_FUNCTION__); }

// clang-format off
template <class T> concept Mapping = requires(T& x) { typename T::mapped_type; x.begin(); };
template <class T> concept Named = requires(T& x) { x.begin()->first; x.names(); };
template <class T> concept Holder = requires(T& x) { bool(x); *x; } &&
                                    (requires(T& x) { x.has_value(); } || requires(T& x) { x.get(); });
template <class T> concept Range = requires(T& x) { typename T::value_type; x.begin(); x.end(); x.size(); } &&
                                   std::is_class_v<typename T::value_type> && !std::is_same_v<typename T::value_type, T>;
template <class T> concept Tuple = requires { std::tuple_size<T>::value; };
template <class T> concept HasFields = requires(T& x, Fields& f) { x.fields(f); };
template <class T> concept Tensorial = std::is_base_of_v<Tensor, T>;
// clang-format on
template <class T> inline constexpr bool is_variant = false;
template <class... T> inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T> inline constexpr bool is_function = false;
template <class R, class... A> inline constexpr bool is_function<std::function<R(A...)>> = true;

// A class that computes on tensors but whose members nobody can see would lose its parameters without a word.
template <class T>
concept Opaque =
    std::is_class_v<T> && !std::is_empty_v<T> && !is_function<T> && std::is_invocable_v<const T&, const Tensor&>;

template <class T> void walk(T& x, const Path& path, Visitor& visitor);

template <class T> void walk_members(T& x, const Path& path, Visitor& visitor) {
  Layer* layer = nullptr;
  if constexpr (std::is_base_of_v<Layer, T>) {
    layer = &x;
    layer->set_path(path);
  }
  const Module module{path, &x, typeid(T), layer ? std::string_view(layer->type()) : type_name<T>(), layer};
  visitor.enter(module);
  Fields fields(path, visitor);
  if constexpr (HasFields<T>) {
    x.fields(fields);
  } else {
    auto members = tie_fields(x);
    [&]<size_t... I>(std::index_sequence<I...>) { (fields(field_name<T, I>(), std::get<I>(members)), ...); }
    (std::make_index_sequence<std::tuple_size_v<decltype(members)>>());
  }
  visitor.leave(module);
}

template <class T> void walk(T& x, const Path& path, Visitor& visitor) {
  const auto item = [&](auto& y, std::string_view name) { walk(y, Path{&path, name}, visitor); };
  if constexpr (std::is_const_v<T>) {
    walk(const_cast<std::remove_const_t<T>&>(x), path, visitor);
  } else if constexpr (std::is_base_of_v<Parameter, T>) {
    if (x.defined()) visitor.parameter(path, x);
  } else if constexpr (std::is_base_of_v<Buffer, T>) {
    if (x.defined()) visitor.buffer(path, x);
  } else if constexpr (Tensorial<T> || !std::is_class_v<T>) {
  } else if constexpr (HasFields<T>) {
    walk_members(x, path, visitor);
  } else if constexpr (is_variant<T>) {
    if (!x.valueless_by_exception()) std::visit([&](auto& y) { walk(y, path, visitor); }, x);
  } else if constexpr (Holder<T>) {
    if (x) walk(*x, path, visitor);
  } else if constexpr (Named<T> || Mapping<T>) {
    for (auto& [key, y] : x) {
      if constexpr (std::is_convertible_v<decltype(key), std::string_view>) item(y, key);
      else if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(key)>>) item(y, std::to_string(key));
    }
  } else if constexpr (Range<T>) {
    size_t i = 0;
    for (auto& y : x) item(y, std::to_string(i++));
  } else if constexpr (Tuple<T>) {
    [&]<size_t... I>(std::index_sequence<I...>) { (item(std::get<I>(x), std::to_string(I)), ...); }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (std::is_aggregate_v<T>) {
    walk_members(x, path, visitor);
  } else {
    static_assert(!Opaque<T>, "a module that is not an aggregate names its members in fields(nn::Fields&)");
  }
}

}  // namespace reflect

template <class T> void Fields::operator()(std::string_view name, T& member) {
  reflect::walk(member, Path{&path_, name}, visitor_);
}

// What the functions of model.h accept: a struct of layers, a layer, a container of either, or a class with fields().
template <class T>
concept Model = std::is_class_v<T> && !reflect::Tensorial<T> &&
                (reflect::HasFields<T> || reflect::is_variant<T> || reflect::Holder<T> || reflect::Named<T> ||
                 reflect::Mapping<T> || reflect::Range<T> || reflect::Tuple<T> || std::is_aggregate_v<T>);

// Any model, borrowed for a call: how the functions of model.h are written once, not once per model.
class ModelView {
 public:
  template <Model M> ModelView(const M& model)
      : object_(const_cast<M*>(&model)),
        walk_([](void* m, const Path& path, Visitor& v) { reflect::walk(*static_cast<M*>(m), path, v); }) {
    if constexpr (std::is_invocable_r_v<Tensor, const M&, const Tensor&>)
      forward_ = [](const void* m, const Tensor& x) -> Tensor { return (*static_cast<const M*>(m))(x); };
  }
  void walk(Visitor& visitor) const { walk_(object_, Path{}, visitor); }
  bool callable() const { return forward_; }
  Tensor operator()(const Tensor& x) const { return forward_(object_, x); }

 private:
  void* object_;
  void (*walk_)(void*, const Path&, Visitor&);
  Tensor (*forward_)(const void*, const Tensor&) = nullptr;
};

// The same of a model that may be changed.
class ModelRef : public ModelView {
 public:
  template <Model M>
  requires(!std::is_const_v<M>) ModelRef(M& model) : ModelView(model) {}
};

}  // namespace volta::nn

// Reflection: the members of a plain struct with their names, and the walk over everything a model holds.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

#include <volta/nn/layer.h>
#include <volta/nn/names.h>

namespace volta {
template <class T> class Dict;
}
namespace volta::optim {
class Optimizer;
class Scheduler;
}  // namespace volta::optim

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

// An object and its type.
struct Object {
  void* address;
  const std::type_info* type;
  bool operator==(const Object& other) const { return address == other.address && *type == *other.type; }
};

namespace reflect {
// Null if it is of another type; behind a pointer to a base there is `whole`, of a derived class, and `seen`, the base.
template <class T> T* part_as(Layer* layer, const Object& whole, const Object& seen) {
  if constexpr (std::is_polymorphic_v<T>)
    if (T* part = dynamic_cast<T*>(layer)) return part;
  for (const Object& one : {whole, seen})
    if (*one.type == typeid(T)) return static_cast<T*>(one.address);
  return nullptr;
}
}  // namespace reflect

// A struct or layer met on the walk.
struct Module {
  Module(const Path& at, const Object& whole, const Object& as_seen, std::string_view name, Layer* as_layer)
      : path(at), object(whole.address), type(*whole.type), type_name(name), layer(as_layer), seen(as_seen) {}
  // `struct Net : nn::Module`, as one writes for PyTorch.
  template <class Base = Layer> Module() : Module({}, {}, {}, {}, nullptr) {
    static_assert(sizeof(std::type_identity<Base>) == 0,
                  "a model is a plain struct, no base class is needed: write `struct Net { nn::Linear fc{2, 3}; … };` "
                  "(nn::Module is what apply() tells of a part)");
  }
  const Path& path;
  void* object;
  const std::type_info& type;
  std::string_view type_name;
  Layer* layer;  // null for a plain struct
  Object seen;   // the base as which it is held, if it is held by a pointer to one; else the object itself
  // m.as<nn::Linear>(): null if it is of another type
  template <class T> T* as() const { return reflect::part_as<T>(layer, {object, &type}, seen); }
};

class Visitor {
 public:
  virtual void parameter(const Path&, Parameter&) {}
  virtual void buffer(const Path&, Buffer&) {}
  virtual void enter(const Module&) {}
  virtual void leave(const Module&) {}

  // The object being walked and those around it: pointers back to them are not followed for ever.
  struct Open {
    Object object;
    const Open* around;
  };
  const Open* open = nullptr;
  bool shows_undefined = false;  // also see parameters and buffers that hold nothing

 protected:
  ~Visitor() = default;
};

namespace reflect {

// clang-format off
template <class T> concept Complete = requires { sizeof(T); };
template <class T> concept Tensorial = std::is_base_of_v<Tensor, T>;
template <class T> concept HasFields = requires(T& x, Fields& f) { x.fields(f); };
template <class T> concept Runs = std::is_invocable_r_v<Tensor, const T&, const Tensor&>;
template <class T> concept RunsForward = requires(const T& m, const Tensor& x) { { m.forward(x) } -> std::convertible_to<Tensor>; };
// Containers of the standard library and Dict. A class of one's own that looks like one may hold more than its range.
template <class T> concept Mapping = in_std<T> && requires(T& x) { typename T::mapped_type; x.begin(); };
template <class T> concept Holder = in_std<T> && requires(T& x) { bool(x); *x; } &&
                                    (requires(T& x) { x.has_value(); } || requires(T& x) { x.get(); });
template <class T> concept Reference = in_std<T> && requires(T& x) { typename T::type; x.get(); };
template <class T> concept Watcher = in_std<T> && requires(T& x) { x.lock(); x.expired(); };
template <class T> concept Range = in_std<T> && requires(T& x) { typename T::value_type; x.begin(); x.end(); x.size(); };
template <class T> concept Tuple = in_std<T> && requires { std::tuple_size<T>::value; } && !requires(T& x) { x.begin(); };
template <class T> concept LikeRange = requires(T& x) { x.begin(); x.end(); } || requires(T& x) { begin(x); end(x); } || requires(T& x, size_t i) { x[i]; };
// clang-format on
template <class T> inline constexpr bool is_variant = false;
template <class... T> inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T> inline constexpr bool is_function = false;
template <class R, class... A> inline constexpr bool is_function<std::function<R(A...)>> = true;
template <class T> inline constexpr bool is_dict = false;
template <class T> inline constexpr bool is_dict<volta::Dict<T>> = true;

// Optimizers and what goes with them know the parameters of a model and have none of their own; nor have metrics.
template <class T> constexpr bool trains() {
  return std::is_base_of_v<optim::Optimizer, T> || std::is_base_of_v<optim::Scheduler, T> ||
         full_name<T>().starts_with("volta::optim::") || full_name<T>().starts_with("volta::metrics::");
}

// A function whose captures nobody can see.
template <class T>
concept Closure = std::is_class_v<T> && !std::is_empty_v<T> && (is_lambda<T> || is_function<T>);

// Types without parameters: numbers, text, plain tensors, what is declared so, and the standard library's classes of
// such, but for those that may hold anything.
template <class T> constexpr bool nothing_inside();
template <class T> struct OfPlain : std::bool_constant<!is_template<T> && full_name<T>() != "std::any"> {};
template <template <class...> class C, class... A> struct OfPlain<C<A...>>
    : std::bool_constant<(nothing_inside<A>() && ...)> {};
template <template <class, auto, auto...> class C, class A, auto N, auto... M> struct OfPlain<C<A, N, M...>>
    : std::bool_constant<nothing_inside<A>()> {};
template <template <auto, auto...> class C, auto N, auto... M> struct OfPlain<C<N, M...>> : std::true_type {};

template <class T> constexpr bool nothing_inside() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_array_v<U>) {
    return nothing_inside<std::remove_all_extents_t<U>>();
  } else if constexpr (std::is_pointer_v<U>) {
    using P = std::remove_pointer_t<U>;
    if constexpr (std::is_function_v<P>) return true;
    else return nothing_inside<P>();
  } else if constexpr (std::is_void_v<U> || std::is_function_v<U> || std::is_union_v<U>) {
    return false;
  } else if constexpr (!std::is_class_v<U>) {
    return !std::is_reference_v<U>;
  } else if constexpr (stateless<U>) {
    return true;
  } else if constexpr (!Complete<U>) {
    return false;
  } else if constexpr (Tensorial<U>) {
    return !std::is_base_of_v<Owned, U>;
  } else if constexpr (!HasFields<U> && trains<U>()) {
    return true;
  } else if constexpr (in_std<U>) {
    return std::is_empty_v<U> || OfPlain<U>::value;
  } else {
    return std::is_empty_v<U> || (in_volta<U> && std::is_convertible_v<const char*, U>);
  }
}

// By the C++ ABI that g++ and clang share, a bit of the pointer says so.
template <class F> bool is_virtual(F member) {
  std::ptrdiff_t words[2];
  static_assert(sizeof(F) == sizeof(words));
  std::memcpy(words, &member, sizeof(words));
#if defined(__aarch64__) || defined(__arm__)
  return words[1] & 1;
#else
  return words[0] & 1;
#endif
}

// The class that declares the fields() T has.
template <class C> struct FieldsOf {
  using Owner = C;
  bool is_virtual;
};
template <class C> FieldsOf<C> fields_of(void (C::*f)(Fields&)) { return {is_virtual(f)}; }
template <class C> FieldsOf<C> fields_of(void (C::*f)(Fields&) const) { return {is_virtual(f)}; }
template <class C> FieldsOf<C> fields_of(void (C::*f)(Fields&) noexcept) { return {is_virtual(f)}; }
template <class C> FieldsOf<C> fields_of(void (C::*f)(Fields&) const noexcept) { return {is_virtual(f)}; }

// Whether T::fields() can know all members: it is T's own, or T adds none to the class it has it from. Padding at that
// class's end is too small to hold a parameter.
template <class T> constexpr bool fields_are_its_own() {
  if constexpr (requires { fields_of(&T::fields); }) {
    using Owner = typename decltype(fields_of(&T::fields))::Owner;
    return std::is_same_v<T, Owner> || (sizeof(T) == sizeof(Owner) && alignof(Owner) <= alignof(Parameter));
  } else {
    return false;
  }
}

template <class T> void walk(T& x, const Path& path, Visitor& visitor);

// Says what to write where the members of T cannot be seen.
template <class T> constexpr void must_name_its_members() {
  constexpr bool always = sizeof(std::type_identity<T>) == 0;
  if constexpr (is_function<T>)
    static_assert(always,
                  "a std::function may hold a layer whose parameters nobody can see: use nn::AnyModule, which finds "
                  "them, or nn::Lambda for a function without parameters");
  else if constexpr (is_lambda<T>)
    static_assert(
        always,
        "a lambda may capture a layer whose parameters nobody can see: use nn::AnyModule with a struct, which "
        "finds them, or nn::Lambda for a function without parameters");
  else if constexpr (in_std<T>)
    static_assert(always,
                  "Volta cannot look into this class of the standard library, which may hold a layer: use a vector, "
                  "map, optional, variant, tuple, smart pointer or nn::AnyModule");
  else
    static_assert(always,
                  "Volta cannot see the members of this class, since it is not an aggregate (it has a constructor, "
                  "private members or virtual functions): add to it `void fields(nn::Fields& f) { f(\"name\", member); "
                  "}` that names its layers and parameters; if it has none, write "
                  "`template <> inline constexpr bool volta::nn::stateless<Class> = true;`");
}

// The number of members, where they can be told.
template <class T> constexpr size_t visible_fields() {
  constexpr size_t n = count_fields<T>();
  static_assert(n != has_base,
                "Volta cannot see the members of a struct with a base class: add to it `void fields(nn::Fields& f) { "
                "f(\"name\", member); }` that names its members and those of its base");
  static_assert(n != too_many,
                "Volta sees structs of up to 32 members and 64 elements of arrays: add to this one `void "
                "fields(nn::Fields& f) { f(\"name\", member); }`, or use std::array");
  static_assert(n != uncounted,
                "Volta cannot see the members of this struct (one is a reference, or not to be moved): add to it `void "
                "fields(nn::Fields& f) { f(\"name\", member); }`");
  return n <= most_fields ? n : 0;
}

// Whether among the members of T, or of structs in it, there is a pointer that may lead to layers.
template <class T> constexpr bool points_to_layers() {
  if constexpr (std::is_pointer_v<T>) {
    return !nothing_inside<T>();
  } else if constexpr (std::is_array_v<T>) {
    return points_to_layers<std::remove_all_extents_t<T>>();
  } else if constexpr (std::is_aggregate_v<T> && !in_std<T> && !HasFields<T> && !nothing_inside<T>()) {
    return []<class... M>(std::type_identity<std::tuple<M&...>>) {
      return (points_to_layers<M>() || ...);
    }(std::type_identity<decltype(tie_fields<visible_fields<T>()>(std::declval<T&>()))>());
  } else {
    return false;
  }
}

// Room for a T that is never made; the addresses of its members carry their names.
template <class T> union Specimen {
  constexpr Specimen() : none() {}
  ~Specimen() {}
  char none;
  T value;
};
template <class T> inline Specimen<T> specimen;

template <class T, size_t I> constexpr std::string_view field_name() {
  constexpr auto p = &std::get<I>(tie_fields<visible_fields<T>()>(specimen<T>.value));
  return address_name<Address<std::remove_const_t<decltype(p)>>{p}>();
}

// The whole of which x may be a base.
template <class T> Object whole_of(T& x) {
  if constexpr (std::is_polymorphic_v<T>) return {dynamic_cast<void*>(&x), &typeid(x)};
  else return {&x, &typeid(T)};
}
template <class T> Layer* layer_of(T& x) {
  if constexpr (std::is_base_of_v<Layer, T>) return &x;
  else if constexpr (std::is_polymorphic_v<T> && !std::is_final_v<T>) return dynamic_cast<Layer*>(&x);
  else return nullptr;
}
[[noreturn]] void refuse_base(const Path& path, const std::type_info& whole, std::string_view base);

template <class T> void walk_members(T& x, const Path& path, Visitor& visitor) {
  Layer* const layer = layer_of(x);
  if (layer) layer->set_path(path);
  const Object whole = whole_of(x), seen{&x, &typeid(T)};
  const Visitor::Open here{whole, visitor.open};
  visitor.open = &here;
  const Module module(path, whole, seen, layer ? std::string_view(layer->type()) : type_name<T>(), layer);
  visitor.enter(module);
  Fields fields(path, visitor);
  if constexpr (HasFields<T>) {
    static_assert(fields_are_its_own<T>(),
                  "this class has its fields() from a base, which does not know the members added: write `void "
                  "fields(nn::Fields& f) override { Base::fields(f); f(\"name\", member); }` (fields takes an "
                  "nn::Fields& and is not a template)");
    if constexpr (std::is_polymorphic_v<T> && !std::is_base_of_v<Layer, T>)
      if (*whole.type != typeid(T) && !fields_of(&T::fields).is_virtual) refuse_base(path, *whole.type, type_name<T>());
    x.fields(fields);
  } else {
    static_assert(!LikeRange<T> || !points_to_layers<T>(),
                  "this struct looks like a range (it has begin() and end(), or a subscript) and holds a pointer, "
                  "behind which Volta sees one layer, while there may be more: hold them in a std::vector or a "
                  "std::span, or add to the struct `void fields(nn::Fields& f) { f(\"name\", member); }`");
    constexpr size_t n = visible_fields<T>();
    auto members = tie_fields<n>(x);
    [&]<size_t... I>(std::index_sequence<I...>) { (fields(field_name<T, I>(), std::get<I>(members)), ...); }
    (std::make_index_sequence<n>());
  }
  visitor.leave(module);
  visitor.open = here.around;
}

template <class T> void walk_pointer(T* x, const Path& path, Visitor& visitor) {
  if constexpr (!Complete<T>) {
    must_name_its_members<T>();
  } else {
    if (!x) return;
    const Object whole = whole_of(const_cast<std::remove_const_t<T>&>(*x));
    for (const Visitor::Open* o = visitor.open; o; o = o->around)
      if (o->object == whole) return;
    walk(*x, path, visitor);
  }
}

template <class K> auto key_name(const K& key) {
  if constexpr (std::is_convertible_v<const K&, std::string_view>) return std::string_view(key);
  else if constexpr (std::is_enum_v<K>) return std::to_string(std::underlying_type_t<K>(key));
  else if constexpr (std::is_integral_v<K>) return std::to_string(key);
  else {
    static_assert(sizeof(K) == 0, "the keys of a map of layers are strings, integers or enumerators: they are names");
    return std::string_view();
  }
}

template <class T> void walk(T& x, const Path& path, Visitor& visitor) {
  const auto item = [&](auto& y, std::string_view name) { walk(y, Path{&path, name}, visitor); };
  if constexpr (std::is_const_v<T>) {
    walk(const_cast<std::remove_const_t<T>&>(x), path, visitor);
  } else if constexpr (std::is_base_of_v<Parameter, T>) {
    if (x.defined() || visitor.shows_undefined) visitor.parameter(path, x);
  } else if constexpr (std::is_base_of_v<Buffer, T>) {
    if (x.defined() || visitor.shows_undefined) visitor.buffer(path, x);
  } else if constexpr (nothing_inside<T>()) {
  } else if constexpr (std::is_array_v<T>) {
    for (size_t i = 0; i < std::extent_v<T>; ++i) item(x[i], std::to_string(i));
  } else if constexpr (std::is_pointer_v<T>) {
    walk_pointer(x, path, visitor);
  } else if constexpr (HasFields<T>) {
    walk_members(x, path, visitor);
  } else if constexpr (is_variant<T>) {
    if (!x.valueless_by_exception()) std::visit([&](auto& y) { walk(y, path, visitor); }, x);
  } else if constexpr (Holder<T>) {
    if (x) walk_pointer(std::addressof(*x), path, visitor);
  } else if constexpr (Reference<T>) {
    walk_pointer(std::addressof(x.get()), path, visitor);
  } else if constexpr (Watcher<T>) {
    if (const auto held = x.lock()) walk_pointer(held.get(), path, visitor);
  } else if constexpr (is_dict<T> || Mapping<T>) {
    for (auto& [key, y] : x) item(y, key_name(key));
  } else if constexpr (Range<T>) {
    size_t i = 0;
    for (auto& y : x) item(y, std::to_string(i++));
  } else if constexpr (Tuple<T>) {
    [&]<size_t... I>(std::index_sequence<I...>) { (item(std::get<I>(x), std::to_string(I)), ...); }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (std::is_aggregate_v<T> && std::is_class_v<T> && !in_std<T>) {
    walk_members(x, path, visitor);
  } else {
    must_name_its_members<T>();
  }
}

template <class M> Tensor run(const M& model, const Tensor& x) {
  if constexpr (Runs<M>) return model(x);
  else return model.forward(x);
}

}  // namespace reflect

template <class T> void Fields::operator()(std::string_view name, T& member) {
  reflect::walk(member, Path{&path_, name}, visitor_);
}

// What the functions of model.h accept: a struct of layers, a layer, a container of either, or a class with fields().
// Other classes are accepted too, for a message that says what to write.
template <class T>
concept Model = std::is_class_v<T> && !reflect::Tensorial<T> && !reflect::Closure<T> &&
                (reflect::HasFields<T> || !reflect::nothing_inside<T>() || std::is_empty_v<T>);

// Any model, borrowed for a call: how the functions of model.h are written once, not once per model.
class ModelView {
 public:
  template <Model M>
  requires(!std::is_base_of_v<ModelView, M>) ModelView(const M& model)
      : object_(const_cast<M*>(&model)),
        walk_([](void* m, const Path& path, Visitor& v) { reflect::walk(*static_cast<M*>(m), path, v); }) {
    if constexpr (reflect::Runs<M> || reflect::RunsForward<M>)
      forward_ = [](const void* m, const Tensor& x) -> Tensor { return reflect::run(*static_cast<const M*>(m), x); };
  }
  void walk(Visitor& visitor) const { walk_(object_, Path{}, visitor); }
  bool callable() const { return forward_; }
  Tensor operator()(const Tensor& x) const {
    if (!forward_)
      throw Error(Error::Kind::argument, "forward",
                  "the model has no call operator or forward that takes a tensor and gives one");
    return forward_(object_, x);
  }

 private:
  void* object_;
  void (*walk_)(void*, const Path&, Visitor&);
  Tensor (*forward_)(const void*, const Tensor&) = nullptr;
};

// The same of a model that may be changed.
class ModelRef : public ModelView {
 public:
  template <Model M>
  requires(!std::is_const_v<M> && !std::is_base_of_v<ModelView, M>) ModelRef(M& model) : ModelView(model) {}
};

}  // namespace volta::nn

// What a pointwise op may say of itself, and the defaults for what it leaves out. Knows nothing of tensors.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include <volta/dtype.h>

namespace volta {

// Which dtypes an op computes in. Integers given to a `floating` op become the default float.
enum class Domain : uint8_t { floating, numeric, any, integral };  // numeric: no bool; integral: integers and bool

struct Floating {
  static constexpr auto domain = Domain::floating;
};
struct Numeric {
  static constexpr auto domain = Domain::numeric;
};
struct AnyType {
  static constexpr auto domain = Domain::any;
};
struct Integral {
  static constexpr auto domain = Domain::integral;
};

namespace scalar {
class TensorExpr;  // lift.h
}

template <class T> using Truth = decltype(std::declval<T>() < std::declval<T>());  // bool for numbers

namespace detail {

template <size_t N> struct Text {
  char characters[N];
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, characters); }
};

// What an op is or where it is defined, its name and documentation, and its operands with their defaults if not x, or
// a, b, ….
template <class Base, Text Name, Text Doc, Text Args = ""> struct Op : Base {
  static constexpr const char *name = Name.characters, *doc = Doc.characters, *args = Args.characters;
};

template <class Op, class T> constexpr int arity_of() {
  if constexpr (requires(T x) { Op::template f<T>(x); }) return 1;
  else if constexpr (requires(T x) { Op::template f<T>(x, x); }) return 2;
  else if constexpr (requires(T x) { Op::template f<T>(x, x, x); }) return 3;
  else return 0;
}
template <class Op> inline constexpr int arity = arity_of<Op, float>();

template <class Op> constexpr Domain domain_of() {
  if constexpr (requires { Op::domain; }) return Op::domain;
  else return Domain::floating;
}
// The first operands that are conditions, read as bool whatever their dtype.
template <class Op> constexpr int masks_of() {
  if constexpr (requires { Op::masks; }) return Op::masks;
  else return 0;
}
template <class Op> constexpr bool differentiable() {
  if constexpr (requires { Op::differentiable; }) return Op::differentiable;
  else return true;
}

constexpr bool computes_in(Domain domain, DType dt) {
  switch (domain) {
    case Domain::floating: return dt == f32 || dt == f64;
    case Domain::numeric: return dt != boolean && !is_half(dt);
    case Domain::any: return !is_half(dt);
    case Domain::integral: return !is_floating(dt);
  }
  return false;
}

struct Rows;  // kernel.h

// A pointwise op as data: what the framework needs to check, run and differentiate it.
struct ElementwiseOp {
  static constexpr int max_arity = 3;
  const char* name;
  int arity;
  Domain domain;
  bool truth;  // the result is boolean
  int masks;   // leading operands that are conditions
  bool differentiable;
  int index;                                                // in ElementwiseOps; -1 for a user's op
  const Rows* (*rows)(int kernel);                          // of a user's op; null: the built-in tables of the device
  scalar::TensorExpr (*lift)(const scalar::TensorExpr* x);  // likewise
  scalar::TensorExpr (*derivative_expr[max_arity])(const scalar::TensorExpr* x);  // (g, operands…, output)
  uint32_t (*uses[max_arity])();  // what the derivative by an operand depends on
};

// Bits of ElementwiseOp::uses: 1 is g, 2 << i operand i, 2 << arity the output. `passes_through`: the derivative is g itself.
inline constexpr uint32_t uses_g = 1, passes_through = uint32_t(1) << 31;

template <class... Ops> struct List { static constexpr int size = sizeof...(Ops); };
template <class... Lists> struct ConcatOf;
template <class... A> struct ConcatOf<List<A...>> { using type = List<A...>; };
template <class... A, class... B, class... Rest> struct ConcatOf<List<A...>, List<B...>, Rest...> {
  using type = typename ConcatOf<List<A..., B...>, Rest...>::type;
};
template <class... Lists> using Concat = typename ConcatOf<Lists...>::type;

// Calls f.template operator()<Op>(index) for every op of the list.
template <class... Ops, class F> constexpr void for_each(List<Ops...>, F&& f) {
  int i = 0;
  (f.template operator()<Ops>(i++), ...);
}
// f(TypeTag<Op>) for the op of the list that has this index.
template <class Result, class... Ops, class F> Result at_index(List<Ops...>, int index, F f) {
  using Call = Result (*)(F&);
  static constexpr Call calls[] = {[](F& g) -> Result { return g(TypeTag<Ops>{}); }...};
  return calls[index](f);
}
template <class Op, class... Ops> constexpr int index_of(List<Ops...>) {
  int i = 0, found = -1;
  ((std::same_as<Op, Ops> ? void(found = i) : void(), ++i), ...);
  return found;
}

}  // namespace detail
}  // namespace volta

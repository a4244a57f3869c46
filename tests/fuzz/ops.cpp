// Every op of the generated list, its arguments drawn by their types and names.
#include <sstream>
#include <stdexcept>

#include "source.h"

namespace volta::fuzz {
namespace {

using Names = std::vector<std::string>;

Names split(const char* text) {
  Names list;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ' ');) list.push_back(word);
  return list;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The kinds of arguments; another is one more `if`, and what has none is given its default.
template <class T> T drawn(Source& s, const std::string& name) {
  if constexpr (std::is_same_v<T, Tensor>) {
    const bool index = has(name, "ind") || name == "repeats" || name == "boundaries";
    if (name == "mask" || name == "condition") return s.tensor(s.shape(), boolean);
    return index && s.chance(85) ? s.indices(s.shape(), 5) : s.tensor();
  } else if constexpr (std::is_same_v<T, Operand>) {
    if (s.chance(20)) return Operand(s.number());
    return s.chance(10) ? Operand(s.size()) : Operand(s.keep(s.tensor()));
  } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, int>) {
    return T(has(name, "dim") || has(name, "axis") ? s.axis() : s.size());
  } else if constexpr (std::is_same_v<T, double>) {
    return s.number();
  } else if constexpr (std::is_same_v<T, bool>) {
    return s.chance(50);
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return s.chance(50) ? Scalar(s.number()) : Scalar(s.size());
  } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
    return s.chance(30) ? T() : T(drawn<int64_t>(s, name));
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return s.chance(30) ? T() : T(s.number());
  } else if constexpr (std::is_same_v<T, std::optional<std::pair<double, double>>>) {
    return s.chance(30) ? T() : T({s.number(), s.number()});
  } else if constexpr (std::is_same_v<T, Axes>) {
    return s.chance(40) ? Axes(s.axis()) : Axes(s.list());
  } else if constexpr (std::is_same_v<T, Shape>) {
    return s.chance(50) ? s.shape() : s.sizes();
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return s.list();
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    return s.tensors();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return s.one_of(Names{"ij,jk->ik", "i,i->", "ii", "...i,...j->...ij", "bij,bjk", "ij->ji", "a...->...", "", "->",
                          "i->ii", "ij,kl->", "i,j,k->kji", ",", "i!", "ijkl,lkji"});
  } else if constexpr (std::is_same_v<T, DType>) {
    return DType(s.within(0, 12));
  } else if constexpr (std::is_same_v<T, Int>) {
    return s.chance(80) ? s.few() : s.size();
  } else if constexpr (std::is_same_v<T, PerAxis>) {
    return s.per_axis(int(s.within(1, 3)));
  } else if constexpr (std::is_same_v<T, PackedSequence>) {
    return {s.tensor(), s.list(), s.list()};
  } else if constexpr (requires { T{}.reduction; }) {
    T options;
    options.reduction = s.choice<Reduce>();
    return options;
  } else if constexpr (std::is_same_v<T, Choice<ScatterReduce>>) {
    return s.choice<ScatterReduce>();
  } else if constexpr (std::is_same_v<T, VarOptions>) {
    return VarOptions{.correction = s.number(), .keepdim = s.chance(50)};
  } else if constexpr (std::is_same_v<T, PadOptions>) {
    return PadOptions{.mode = s.choice<PadMode>(), .value = s.number()};
  } else if constexpr (std::is_same_v<T, LinearOptions>) {
    return LinearOptions{s.choice<LinearActivation>()};
  } else if constexpr (std::is_same_v<T, GELUOptions>) {
    return GELUOptions{s.choice<GeluApproximation>()};
  } else if constexpr (std::is_same_v<T, RecurrenceOptions>) {
    return RecurrenceOptions{.has_biases = s.chance(50),
                             .num_layers = s.chance(60) ? Int(1) : drawn<Int>(s, name),
                             .dropout = s.chance(60) ? 0 : s.number(),
                             .train = s.chance(50),
                             .bidirectional = s.chance(30),
                             .batch_first = s.chance(30),
                             .lengths = s.chance(70) ? std::vector<int64_t>() : s.list()};
  } else if constexpr (std::is_same_v<T, UniqueOptions>) {
    return UniqueOptions{.return_inverse = s.chance(50), .return_counts = s.chance(50)};
  } else if constexpr (std::is_same_v<T, SearchOptions>) {
    return SearchOptions{.right = s.chance(50)};
  } else {
    return T{};
  }
}

template <class R> std::vector<Tensor> results(R&& r) {
  using T = std::decay_t<R>;
  if constexpr (std::is_same_v<T, Tensor>) return {r};
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>) return r;
  else if constexpr (std::is_same_v<T, ValuesIndices>) return {r.values, r.indices};
  else if constexpr (requires { r.data; }) return {r.data};
  else if constexpr (requires { r.h_n; }) return {r.output, r.h_n};
  else if constexpr (std::is_same_v<T, LSTMState>) return {r.h, r.c};
  else return {};
}

// The arguments from number `from` on, in order: the compiler may evaluate those of a call in any.
template <size_t from, class... A> std::tuple<std::decay_t<A>...> drawn_all(Source& s, const Names& names) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<std::decay_t<A>...>{drawn<std::decay_t<A>>(s, names[from + I])...};
  }
  (std::index_sequence_for<A...>());
}

// What f gives. An Error names the op that was called; but memory may end in one that it is made of.
template <class F> std::vector<Tensor> named(const char* op, F f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.op() == op || e.op() + "_" == op || e.kind() == Error::Kind::memory) throw;
    throw std::runtime_error("an Error of " + e.op());
  }
}

template <class R, class... A> void add(std::vector<Call>& calls, const char* op, const char* words, R (*f)(A...)) {
  calls.push_back({op, [op, f, names = split(words)](Source& s) {
                     const auto arguments = drawn_all<0, A...>(s, names);
                     return named(op, [&] { return results(std::apply(f, arguments)); });
                   }});
}
template <class... A>
void add_in_place(std::vector<Call>& calls, const char* op, const char* words, Tensor (*f)(Tensor&, A...)) {
  calls.push_back({op, [op, f, names = split(words)](Source& s) {
                     Tensor x = s.tensor();
                     if (x.defined() && s.chance(80)) x = x.clone();
                     auto arguments = drawn_all<1, A...>(s, names);
                     return named(op, [&] {
                       return std::vector<Tensor>{std::apply([&](auto&... a) { return f(x, a...); }, arguments)};
                     });
                   }});
}

}  // namespace

void add_ops(std::vector<Call>& calls) {
#include <op_calls.inc>
}

}  // namespace volta::fuzz

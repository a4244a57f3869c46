// tie_fields: references to the members of an aggregate, whose number is found by trying braces.
#pragma once
#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace volta::reflect {

// Converts to whatever a field of T is initialised with.
template <class T> struct Anything {
  template <class U>
  requires(!std::is_same_v<U, T> && !std::is_base_of_v<U, T>) operator U() const { throw 0; }
};
template <class T> struct AnyBase {
  template <class U>
  requires(!std::is_same_v<U, T> && std::is_base_of_v<U, T>) operator U() const { throw 0; }
};

template <class T, size_t> using AnythingAt = Anything<T>;

inline constexpr size_t most_fields = 32, most_initialisers = 64;
inline constexpr size_t uncounted = size_t(-1), has_base = size_t(-2), too_many = size_t(-3);

// T{any, any, …}: elements of an array member count one by one, since its braces may be left out.
template <class T, size_t... I> constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{AnythingAt<T, I>{}...}; };
}
template <class T, size_t... I> constexpr bool takes_base(std::index_sequence<I...>) {
  return requires { T{AnyBase<T>{}, AnythingAt<T, I>{}...}; };
}
// T{any, …, {}, any, …}
template <class T, size_t... A, size_t... C>
constexpr bool takes_empty(std::index_sequence<A...>, std::index_sequence<C...>) {
  return requires { T{AnythingAt<T, A>{}..., {}, AnythingAt<T, C>{}...}; };
}
// T{any, …, {any, any, …}, any, …}
template <class T, size_t... A, size_t... B, size_t... C>
constexpr bool takes_nested(std::index_sequence<A...>, std::index_sequence<B...>, std::index_sequence<C...>) {
  return requires { T{AnythingAt<T, A>{}..., {AnythingAt<T, B>{}...}, AnythingAt<T, C>{}...}; };
}

// The largest number of initialisers T takes. Fewer may be too few: a later member, or the rest of an array, has no
// default.
template <class T, size_t N> constexpr size_t count_initialisers() {
  if constexpr (takes<T>(std::make_index_sequence<N>())) return N;
  else if constexpr (N == 0) return uncounted;
  else return count_initialisers<T, N - 1>();
}

// The number of elements of the member at flat position At, if it is an array: in braces of its own it takes the place
// of that many. What only has a constructor of so many arguments takes the place of one.
template <class T, size_t All, size_t At, size_t Size = All - At> constexpr size_t array_size() {
  if constexpr (Size < 2) {
    return 1;
  } else if constexpr (takes_empty<T>(std::make_index_sequence<At>(), std::make_index_sequence<All - At - 1>())) {
    return 1;  // an array in empty braces would take more. Fuller ones do not compile for a vector of unique_ptrs.
  } else {
    using Before = std::make_index_sequence<At>;
    using Inside = std::make_index_sequence<Size>;
    if constexpr (takes_nested<T>(Before(), Inside(), std::make_index_sequence<All - At - Size>())) {
      if constexpr (!takes_nested<T>(Before(), Inside(), std::make_index_sequence<All - At - 1>())) return Size;
      else return array_size<T, All, At, Size - 1>();
    } else {
      return array_size<T, All, At, Size - 1>();
    }
  }
}
template <class T, size_t All, size_t At = 0> constexpr size_t count_members() {
  if constexpr (At == All) return 0;
  else return 1 + count_members<T, All, At + array_size<T, All, At>()>();
}

template <class T, size_t N = 0> constexpr bool derived() {
  if constexpr (takes_base<T>(std::make_index_sequence<N>())) return true;
  else if constexpr (N < std::min(most_fields, sizeof(T))) return derived<T, N + 1>();
  else return false;
}

// The number of members of T, or why it cannot be told.
template <class T> constexpr size_t count_fields() {
  if constexpr (std::is_empty_v<T>) {
    return 0;
  } else {
    constexpr size_t limit = 8 * sizeof(T) < most_initialisers ? 8 * sizeof(T) : most_initialisers;
    constexpr size_t all = count_initialisers<T, limit>();
    if constexpr (derived<T>()) return has_base;
    else if constexpr (all == uncounted || all == 0) return uncounted;
    else if constexpr (all == most_initialisers) return too_many;
    else if constexpr (count_members<T, all>() > most_fields) return too_many;
    else return count_members<T, all>();
  }
}

// References to the members of x, which has N of them.
template <size_t N, class T> constexpr auto tie_fields(T& x) {
  constexpr size_t n = N;
  // clang-format off
  if constexpr (n == 0) return std::tie();
  else if constexpr (n == 1) { auto& [a] = x; return std::tie(a); }
  else if constexpr (n == 2) { auto& [a, b] = x; return std::tie(a, b); }
  else if constexpr (n == 3) { auto& [a, b, c] = x; return std::tie(a, b, c); }
  else if constexpr (n == 4) { auto& [a, b, c, d] = x; return std::tie(a, b, c, d); }
  else if constexpr (n == 5) { auto& [a, b, c, d, e] = x; return std::tie(a, b, c, d, e); }
  else if constexpr (n == 6) { auto& [a, b, c, d, e, f] = x; return std::tie(a, b, c, d, e, f); }
  else if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = x; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = x; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = x; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = x; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (n == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o); }
  else if constexpr (n == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p); }
  else if constexpr (n == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q); }
  else if constexpr (n == 17) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r); }
  else if constexpr (n == 18) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s); }
  else if constexpr (n == 19) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t); }
  else if constexpr (n == 20) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u); }
  else if constexpr (n == 21) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v); }
  else if constexpr (n == 22) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w); }
  else if constexpr (n == 23) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y); }
  else if constexpr (n == 24) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z); }
  else if constexpr (n == 25) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A); }
  else if constexpr (n == 26) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B); }
  else if constexpr (n == 27) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C); }
  else if constexpr (n == 28) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D); }
  else if constexpr (n == 29) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E); }
  else if constexpr (n == 30) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F); }
  else if constexpr (n == 31) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F, G] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F, G); }
  else if constexpr (n == 32) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F, G, H] = x; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, v, w, y, z, A, B, C, D, E, F, G, H); }  // clang-format on
}

}  // namespace volta::reflect

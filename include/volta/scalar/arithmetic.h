// Sums, differences and products that wrap for integers, so that formulas are defined for every value.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <volta/dtype.h>

namespace volta::scalar {

namespace detail {
// Wide enough not to be promoted to a signed type.
template <class T> using Modular = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
}  // namespace detail

template <class T>
requires std::integral<T> || std::floating_point<T>
[[gnu::always_inline]] VOLTA_HD constexpr T plus(T a, std::type_identity_t<T> b) {
  if constexpr (std::floating_point<T>) return a + b;
  else if constexpr (std::same_as<T, bool>) return a | b;
  else return T(detail::Modular<T>(a) + detail::Modular<T>(b));
}
template <class T>
requires std::integral<T> || std::floating_point<T>
[[gnu::always_inline]] VOLTA_HD constexpr T minus(T a, std::type_identity_t<T> b) {
  if constexpr (std::floating_point<T>) return a - b;
  else if constexpr (std::same_as<T, bool>) return a != b;
  else return T(detail::Modular<T>(a) - detail::Modular<T>(b));
}
template <class T>
requires std::integral<T> || std::floating_point<T>
[[gnu::always_inline]] VOLTA_HD constexpr T multiply(T a, std::type_identity_t<T> b) {
  if constexpr (std::floating_point<T>) return a * b;
  else if constexpr (std::same_as<T, bool>) return a & b;
  else return T(detail::Modular<T>(a) * detail::Modular<T>(b));
}
template <std::integral T> [[gnu::always_inline]] VOLTA_HD constexpr T bit_not(T x) {
  if constexpr (std::same_as<T, bool>) return !x;
  else return T(~x);
}

}  // namespace volta::scalar

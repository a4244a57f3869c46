// given: a function of the caller's, or an Error where there is none in it.
#pragma once
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <volta/error.h>

namespace volta::detail {

// A std::function, a pointer: what may hold no function, from the start or since it was moved from.
template <class F>
concept MayBeEmpty = requires(const F& f) {
  bool(f);
}
&&std::constructible_from<F, std::nullptr_t>;

template <class F> F& given(F& f, const char* op) {
  if constexpr (MayBeEmpty<std::remove_cv_t<F>>)
    if (!f) throw Error(Error::Kind::argument, op, "the function is empty, or was moved from");
  return f;
}

}  // namespace volta::detail

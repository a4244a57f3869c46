// The one exception: what went wrong, in which operation, and why; and `attempt`, which turns it into a value.
#pragma once
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace volta {

class Error : public std::exception {
 public:
  enum class Kind { shape, dtype, index, device, argument, memory, io, autograd, internal };

  Error(Kind kind, std::string_view op, std::string_view message)
      : state_(std::make_shared<State>(kind, std::string(op), std::string(op) + ": " + std::string(message))) {}
  // One that was moved from still says what it said.
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;
  ~Error() override = default;

  Kind kind() const noexcept { return state_->kind; }
  const std::string& op() const noexcept { return state_->op; }
  const char* what() const noexcept override { return state_->text.c_str(); }

 private:
  struct State {
    State(Kind k, std::string o, std::string t) : kind(k), op(std::move(o)), text(std::move(t)) {}
    Kind kind;
    std::string op, text;
  };
  std::shared_ptr<const State> state_;  // copying an exception must not throw
};

// A value or an Error: `if (auto r = attempt([&] { return matmul(a, b); })) use(*r); else log(r.error().what());`
template <class T> class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() & {
    if (!*this) throw std::get<1>(state_);
    return std::get<0>(state_);
  }
  const T& value() const& { return const_cast<Result*>(this)->value(); }
  T value() && { return std::move(value()); }
  const Error& error() const {
    if (*this) throw Error(Error::Kind::argument, "Result", "error() of a result that holds a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Nothing {};

// Runs f and returns its value, or the Error it threw; the standard library's exceptions for memory and lengths that
// cannot be had come as an Error of kind memory. Exceptions of other types pass through.
template <class F> auto attempt(F&& f) {
  using Value = std::decay_t<std::invoke_result_t<F>>;
  using R = std::conditional_t<std::is_void_v<Value>, Nothing, Value>;
  try {
    if constexpr (std::is_void_v<Value>) {
      std::forward<F>(f)();
      return Result<R>(Nothing{});
    } else {
      return Result<R>(std::forward<F>(f)());
    }
  } catch (const Error& e) {
    return Result<R>(e);
  } catch (const std::bad_alloc&) {
    return Result<R>(Error(Error::Kind::memory, "attempt", "out of memory"));
  } catch (const std::length_error&) {
    return Result<R>(Error(Error::Kind::memory, "attempt", "a list longer than memory can hold"));
  }
}

}  // namespace volta

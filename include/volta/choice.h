// Choice: an option that is one of a few, given as a value of its enum or by PyTorch's name for it; Numbers: one or several.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <volta/error.h>

namespace volta {

namespace detail {
// "reduction 'avg' is not one of none, mean, sum"
[[noreturn]] void unknown_choice(const char* op, const char* field, std::string_view given,
                                 const std::string_view* known, size_t count);
}  // namespace detail

// .reduction = Reduce::sum and .reduction = "sum" are the same. Beside its enum, whose values count from 0, stands
// choice_names(E), the names in their order. A name that is none of them is kept until the op that is given the
// choice reads it, so that the Error tells the op and the field.
template <class E> class Choice {
 public:
  constexpr Choice(E value) noexcept : value_(value) {
    if (size_t(value) >= names.size()) keep_unknown("a number that stands for none");
  }
  constexpr Choice(std::string_view name) {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) {
        value_ = E(i);
        return;
      }
    keep_unknown(name);
  }
  constexpr Choice(const char* name) : Choice(std::string_view(name)) {}
  Choice(const std::string& name) : Choice(std::string_view(name)) {}
  Choice(std::nullptr_t) = delete;

  // The value; throws where the name given is none of the names.
  E of(const char* op, const char* field) const {
    if (unknown_[0]) [[unlikely]]
      detail::unknown_choice(op, field, unknown_ + 1, names.data(), names.size());
    return value_;
  }
  operator E() const { return of("Choice", "value"); }
  std::string_view name() const { return unknown_[0] ? std::string_view(unknown_ + 1) : names[size_t(value_)]; }

  friend bool operator==(const Choice& a, const Choice& b) { return a.name() == b.name(); }
  friend bool operator==(const Choice& a, E b) { return !a.unknown_[0] && a.value_ == b; }
  friend bool operator==(const Choice& a, const char* b) { return a.name() == b; }
  friend bool operator==(const Choice& a, const std::string& b) { return a.name() == b; }
  friend bool operator==(const Choice& a, std::string_view b) { return a.name() == b; }

 private:
  static constexpr auto names = choice_names(E{});
  constexpr void keep_unknown(std::string_view name) {
    value_ = E{};
    unknown_[0] = ' ';  // so that an empty name is unknown too
    std::copy_n(name.data(), std::min(name.size(), sizeof unknown_ - 2), unknown_ + 1);
  }
  E value_{};
  char unknown_[31] = {};  // the beginning of a name that is none of the names, for the Error
};

// One number for all, or one for each: .scale_factor = 2.0, .scale_factor = {2, 1.5}.
class Numbers {
 public:
  Numbers() = default;
  template <class T>
  requires std::is_arithmetic_v<T> Numbers(T all) : list_{double(all)} {}
  Numbers(std::initializer_list<double> each) : list_(each) {}
  Numbers(std::vector<double> each) : list_(std::move(each)) {}
  bool empty() const noexcept { return list_.empty(); }
  size_t size() const noexcept { return list_.size(); }
  double operator[](size_t i) const { return list_[list_.size() == 1 ? 0 : i]; }
  const std::vector<double>& list() const noexcept { return list_; }

 private:
  std::vector<double> list_;
};

}  // namespace volta

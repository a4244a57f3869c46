// Dict: names and values in the order they were added.
#pragma once
#include <concepts>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <volta/error.h>

namespace volta {

namespace detail {
[[noreturn]] void no_such_entry(std::string_view name, const std::vector<std::string>& names);
[[noreturn]] void no_such_position(size_t index, size_t size);
}  // namespace detail

// nn::Dict<nn::Linear> heads; heads.add("mask", nn::Linear(8, 2)); heads.at("mask")(x)
template <class T> class Dict {
 public:
  using value_type = std::pair<std::string, T>;
  Dict() = default;
  Dict(std::initializer_list<value_type> entries) {
    for (const value_type& e : entries) add(e.first, e.second);
  }

  // Copies another list of names and values: StateDict(named_parameters(net)), or a std::map.
  template <class List>
  requires(!std::is_base_of_v<Dict, List>) && requires(const List& list) {
    { list.begin()->first } -> std::convertible_to<std::string>;
    { list.begin()->second } -> std::convertible_to<T>;
  }
  Dict(const List& list) {
    for (const auto& [name, value] : list) add(name, value);
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  bool contains(std::string_view name) const { return places_.find(name) != places_.end(); }
  size_t count(std::string_view name) const { return contains(name) ? 1 : 0; }
  auto find(std::string_view name) const { return contains(name) ? begin() + std::ptrdiff_t(place(name)) : end(); }
  T& at(std::string_view name) & { return entries_[place(name)].second; }
  const T& at(std::string_view name) const& { return entries_[place(name)].second; }
  T at(std::string_view name) && { return std::move(entries_[place(name)].second); }
  // By position, in the order of adding; one that is not there is an Error.
  const std::string& name(size_t index) const& { return entries_[checked(index)].first; }
  std::string name(size_t index) && { return std::move(entries_[checked(index)].first); }
  T& item(size_t index) { return entries_[checked(index)].second; }
  T& operator[](const std::string& name) { return contains(name) ? at(name) : add(name, T()); }
  T& add(const std::string& name, T value) {  // a name that is taken is an Error
    if (!places_.emplace(name, entries_.size()).second)
      throw Error(Error::Kind::argument, "Dict", "there is already an entry '" + name + "'");
    return entries_.emplace_back(name, std::move(value)).second;
  }
  void erase(std::string_view name) {
    entries_.erase(entries_.begin() + std::ptrdiff_t(place(name)));
    places_.clear();
    for (const value_type& e : entries_) places_.emplace(e.first, places_.size());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const value_type& e : entries_) list.push_back(e.first);
    return list;
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  size_t checked(size_t index) const {
    if (index >= entries_.size()) detail::no_such_position(index, entries_.size());
    return index;
  }
  size_t place(std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) detail::no_such_entry(name, names());
    return found->second;
  }
  std::deque<value_type> entries_;  // state["b"] = state.at("a"): adding must not move what is there
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace volta

// The names of types and members as the compiler writes them.
#pragma once
#include <string_view>
#include <type_traits>

namespace volta::nn::reflect {

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

template <class T> constexpr std::string_view written() { return __PRETTY_FUNCTION__; }

// "volta::nn::Linear", "{anonymous}::Block" (g++) or "(anonymous namespace)::Block" (clang): what stands around it is
// the same for every type.
template <class T> constexpr std::string_view full_name() {
  constexpr std::string_view probe = written<int>(), s = written<T>();
  constexpr size_t begin = probe.find("T = int") + 4, after = probe.size() - begin - 3;
  return s.substr(begin, s.size() - begin - after);
}

// "Block" of "app::Block", "vector<app::Block>" of "std::vector<app::Block>".
template <class T> constexpr std::string_view type_name() {
  constexpr std::string_view s = full_name<T>();
  constexpr size_t arguments = s.find('<'), scope = s.substr(0, arguments).rfind("::");
  return scope == std::string_view::npos ? s : s.substr(scope + 2);
}

template <class T> inline constexpr bool in_std = full_name<T>().starts_with("std::");
template <class T> inline constexpr bool in_volta = full_name<T>().starts_with("volta::");
template <class T> inline constexpr bool is_template = full_name<T>().find('<') != std::string_view::npos;
// "main()::<lambda(int)>" (g++), "(lambda at main.cpp:7:3)" (clang); a template of one ends otherwise.
template <class T> inline constexpr bool is_lambda = (full_name<T>().find("<lambda(") != std::string_view::npos &&
                                                      full_name<T>().ends_with(")>")) ||
                                                     (full_name<T>().find("(lambda at ") != std::string_view::npos &&
                                                      full_name<T>().ends_with(')'));

}  // namespace volta::nn::reflect

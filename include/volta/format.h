// Tensors, shapes, dtypes and devices for fmt::format and, where the standard library has it, std::format.
#pragma once
#include <string>
#include <string_view>
#include <version>

#include <volta/print.h>
#include <volta/tensor.h>

#if __has_include(<fmt/format.h>)
#include <fmt/format.h>
#endif
#ifdef __cpp_lib_format
#include <format>
#endif

namespace volta::detail {

inline std::string format_text(const Tensor& x) { return x.str(); }
inline std::string format_text(const Shape& x) { return x.str(); }
inline std::string format_text(const Device& x) { return x.str(); }
inline std::string_view format_text(DType x) { return name(x); }
inline std::string_view format_text(Error::Kind x) { return name(x); }

// Takes the width, fill and alignment of strings.
template <class T, class Base> struct TextFormatter : Base {
  template <class Context> auto format(const T& x, Context& context) const {
    return Base::format(std::string_view(format_text(x)), context);
  }
};

}  // namespace volta::detail

#if __has_include(<fmt/format.h>)
template <> struct fmt::formatter<volta::Tensor>
    : volta::detail::TextFormatter<volta::Tensor, fmt::formatter<std::string_view>> {};
template <> struct fmt::formatter<volta::Indexed>
    : volta::detail::TextFormatter<volta::Indexed, fmt::formatter<std::string_view>> {};
template <> struct fmt::formatter<volta::Shape>
    : volta::detail::TextFormatter<volta::Shape, fmt::formatter<std::string_view>> {};
template <> struct fmt::formatter<volta::DType>
    : volta::detail::TextFormatter<volta::DType, fmt::formatter<std::string_view>> {};
template <> struct fmt::formatter<volta::Device>
    : volta::detail::TextFormatter<volta::Device, fmt::formatter<std::string_view>> {};
template <> struct fmt::formatter<volta::Error::Kind>
    : volta::detail::TextFormatter<volta::Error::Kind, fmt::formatter<std::string_view>> {};
#endif

#ifdef __cpp_lib_format
template <> struct std::formatter<volta::Tensor>
    : volta::detail::TextFormatter<volta::Tensor, std::formatter<std::string_view>> {};
template <> struct std::formatter<volta::Indexed>
    : volta::detail::TextFormatter<volta::Indexed, std::formatter<std::string_view>> {};
template <> struct std::formatter<volta::Shape>
    : volta::detail::TextFormatter<volta::Shape, std::formatter<std::string_view>> {};
template <> struct std::formatter<volta::DType>
    : volta::detail::TextFormatter<volta::DType, std::formatter<std::string_view>> {};
template <> struct std::formatter<volta::Device>
    : volta::detail::TextFormatter<volta::Device, std::formatter<std::string_view>> {};
template <> struct std::formatter<volta::Error::Kind>
    : volta::detail::TextFormatter<volta::Error::Kind, std::formatter<std::string_view>> {};
#endif

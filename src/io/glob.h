// Patterns of names: * stands for any text, ? for one character.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volta::io {

// What each * of the pattern stands for, the shortest texts first; nothing where the name does not match.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view name);
size_t count_stars(std::string_view pattern);
// The pattern with its stars replaced by these texts, of which there are as many.
std::string filled(std::string_view pattern, const std::vector<std::string>& texts);

}  // namespace volta::io

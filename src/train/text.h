// Numbers and texts as files hold them: JSON, CSV and tables.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace volta {

std::string number_text(double x);                                          // the shortest that reads back the same
std::string short_text(double x);                                           // for people: 0.1234, 1.2e-05
std::string valid_utf8(std::string_view text);                              // bytes that are none become U+FFFD
std::string json_string(std::string_view text);                             // quoted and escaped
std::string json_number(double x);                                          // null for NaN and infinities
std::string csv_field(std::string_view text);                               // quoted where it must be
std::string table_text(const std::vector<std::vector<std::string>>& rows);  // columns right-aligned but for the first
std::string seconds_text(double seconds);                                   // 12.3s, 4:05, 1:02:03
std::string bytes_text(double bytes);                                       // 1.5 MiB

}  // namespace volta

// What requests hold, read with care, and what is wrong with them.
#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include <volta/volta.h>

namespace volta::app {

// An HTTP status and a sentence; for a field of the body its name, and where OpenAI has one a code.
struct Refused : std::runtime_error {
  Refused(int s, const std::string& why, std::string field = "", std::string kind = "")
      : std::runtime_error(why), status(s), param(std::move(field)), code(std::move(kind)) {}
  int status;
  std::string param, code;
};

std::string dumped(const nlohmann::json& body);         // bytes that are not UTF-8 are replaced
nlohmann::json error_body(const Refused& why);          // in OpenAI's form
nlohmann::json parsed_object(const std::string& body);  // throws Refused, as do the following
Tensor inputs_of_json(const std::string& body);         // its "inputs": nested lists of finite numbers

// Fields of an object: the value, or `otherwise` where it is absent or null.
int64_t whole_field(const nlohmann::json& j, const char* name, int64_t otherwise, int64_t least, int64_t most);
double number_field(const nlohmann::json& j, const char* name, double otherwise, double least, double most);
bool flag_field(const nlohmann::json& j, const char* name, bool otherwise);

}  // namespace volta::app

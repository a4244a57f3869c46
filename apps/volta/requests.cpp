#include "requests.h"

namespace volta::app {
namespace {

using nlohmann::json;

const json* found(const json& j, const char* name) {
  const auto at = j.find(name);
  return at == j.end() || at->is_null() ? nullptr : &*at;
}

template <class T> std::string range_text(const char* name, T least, T most) {
  return std::string(name) + " must be between " + json(least).dump() + " and " + json(most).dump();
}

}  // namespace

std::string dumped(const json& body) { return body.dump(-1, ' ', false, json::error_handler_t::replace); }

json error_body(const Refused& why) {
  const auto text = [](const std::string& s) { return s.empty() ? json() : json(s); };
  return {{"error",
           {{"message", why.what()},
            {"type", why.status < 500 ? "invalid_request_error" : "server_error"},
            {"param", text(why.param)},
            {"code", text(why.code)}}}};
}

json parsed_object(const std::string& body) {
  // Depth is bounded: the parser recurses for nested arrays.
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > 32) throw Refused(400, "the JSON is nested too deeply");
    return true;
  };
  if (body.find('\0') != std::string::npos) throw Refused(400, "the body is not JSON: it holds a NUL byte");
  try {
    json j = json::parse(body, shallow);
    if (!j.is_object()) throw Refused(400, "the body must be a JSON object");
    return j;
  } catch (const json::exception& e) {
    throw Refused(400, std::string("the body is not JSON: ") + e.what());
  }
}

double number_field(const json& j, const char* name, double otherwise, double least, double most) {
  const json* const value = found(j, name);
  if (!value) return otherwise;
  if (!value->is_number()) throw Refused(400, std::string(name) + " must be a number", name);
  const double number = value->get<double>();
  if (!(number >= least && number <= most)) throw Refused(400, range_text(name, least, most), name);
  return number;
}

int64_t whole_field(const json& j, const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const json* const value = found(j, name);
  if (!value) return otherwise;
  if (!value->is_number_integer()) throw Refused(400, std::string(name) + " must be a whole number", name);
  const bool large = value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX);
  const int64_t number = large ? INT64_MAX : value->get<int64_t>();
  if (large || number < least || number > most) throw Refused(400, range_text(name, least, most), name);
  return number;
}

bool flag_field(const json& j, const char* name, bool otherwise) {
  const json* const value = found(j, name);
  if (!value) return otherwise;
  if (!value->is_boolean()) throw Refused(400, std::string(name) + " must be true or false", name);
  return value->get<bool>();
}

}  // namespace volta::app

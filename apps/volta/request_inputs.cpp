// The inputs of a request: read event by event straight into numbers, since a tree of the JSON takes 25 times its size.
#include <cmath>
#include <optional>
#include <vector>

#include "requests.h"

namespace volta::app {
namespace {

using nlohmann::json;

constexpr size_t most_axes = 6, most_depth = 33;

// Nothing is kept of the object's other fields. Where two fields have one name, the last counts.
class InputsReader final : public json::json_sax_t {
 public:
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t x) override { return number(double(x)); }
  bool number_unsigned(number_unsigned_t x) override { return number(double(x)); }
  bool number_float(number_float_t x, const string_t&) override { return number(x); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }

  bool start_object(size_t) override {
    if (depth_ > 0) other();
    return open();
  }
  bool key(string_t& name) override {
    if (depth_ != 1 || name != "inputs") return true;
    found_ = reading_ = true;
    has_numbers_ = false;
    shape_.clear();
    values_.clear();
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) throw not_an_object();
    if (reading_) {
      part();
      if (counts_.size() == most_axes) throw Refused(400, "the inputs have too many axes", "inputs");
      if (counts_.size() == shape_.size()) {
        if (has_numbers_) throw ragged();
        shape_.emplace_back();
      }
      counts_.push_back(0);
    }
    return open();
  }
  bool end_array() override {
    --depth_;
    if (!reading_) return true;
    const int64_t size = counts_.back();
    counts_.pop_back();
    std::optional<int64_t>& known = shape_[counts_.size()];
    if (known.value_or(size) != size) throw ragged();
    known = size;
    reading_ = !counts_.empty();
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception& e) override {
    throw Refused(400, std::string("the body is not JSON: ") + e.what());
  }

  Tensor result() const {
    if (!found_) throw Refused(400, "the body lacks 'inputs'", "inputs");
    Shape shape;
    for (const auto& size : shape_) shape.push_back(*size);
    return tensor(std::span<const float>(values_), shape);
  }

 private:
  static Refused ragged() { return {400, "the inputs are ragged", "inputs"}; }
  static Refused not_an_object() { return {400, "the body must be a JSON object"}; }
  bool open() {
    if (++depth_ > most_depth) throw Refused(400, "the JSON is nested too deeply");
    return true;
  }
  void part() {
    if (!counts_.empty()) ++counts_.back();
  }
  bool number(double x) {
    if (depth_ == 0) throw not_an_object();
    if (!reading_) return true;
    if (counts_.size() != shape_.size()) throw ragged();
    const auto value = float(x);
    if (!std::isfinite(value)) throw Refused(400, "the inputs must be numbers that a 32-bit float can hold", "inputs");
    part();
    values_.push_back(value);
    has_numbers_ = true;
    reading_ = !counts_.empty();
    return true;
  }
  bool other() const {
    if (depth_ == 0) throw not_an_object();
    if (reading_) throw Refused(400, "the inputs must be arrays of numbers", "inputs");
    return true;
  }

  size_t depth_ = 0;                           // of open objects and arrays
  bool found_ = false, reading_ = false;       // the field; whether its value is being read
  bool has_numbers_ = false;                   // from then on no list may be deeper
  std::vector<int64_t> counts_;                // of the parts of each open list
  std::vector<std::optional<int64_t>> shape_;  // what the first list of each depth has
  std::vector<float> values_;
};

}  // namespace

Tensor inputs_of_json(const std::string& body) {
  if (body.find('\0') != std::string::npos) throw Refused(400, "the body is not JSON: it holds a NUL byte");
  InputsReader reader;
  json::sax_parse(body, &reader);
  return reader.result();
}

}  // namespace volta::app

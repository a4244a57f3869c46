// TorchValue: its kinds and what they give.
#include <volta/io/torch_file.h>

#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "core/check.h"

namespace volta {
namespace {

using Kind = TorchValue::Kind;
const char* const op = "TorchValue";

void require_kind(Kind is, Kind wanted) {
  require(is == wanted, ErrorKind::argument, op, "the value is a ", name(is), ", not a ", name(wanted));
}

// Equal for keys that Python takes for one, 1 and True among them; empty for those that are not compared here.
std::string key_text(const TorchValue& key) {
  if (key.is(Kind::string)) return "'" + key.as_string();
  if (key.is(Kind::none)) return "None";
  if (!key.is(Kind::integer) && !key.is(Kind::truth) && !key.is(Kind::real)) return "";
  const double number = key.as_number();
  if (key.is(Kind::real) && (number != std::trunc(number) || std::abs(number) >= 0x1p63))
    return "bits " + std::to_string(std::bit_cast<uint64_t>(number));
  return std::to_string(key.is(Kind::integer) ? key.as_integer() : int64_t(number));
}

}  // namespace

std::string_view name(TorchValue::Kind kind) {
  static constexpr std::array<std::string_view, 9> names = {"None",   "bool", "int",   "float", "str",
                                                            "Tensor", "list", "tuple", "dict"};
  return names[size_t(kind)];
}

void TorchValue::throw_large(uint64_t value) {
  throw_error(ErrorKind::argument, op, std::to_string(value), " is more than an integer of 64 bits holds");
}

TorchValue::TorchValue(const StateDict& state) : kind_(Kind::dict) {
  for (const auto& [key, x] : state) entries_.emplace_back(key, x);
}
TorchValue TorchValue::list(std::vector<TorchValue> items) {
  TorchValue value;
  value.kind_ = Kind::list;
  value.items_ = std::move(items);
  return value;
}
TorchValue TorchValue::tuple(std::vector<TorchValue> items) {
  TorchValue value = list(std::move(items));
  value.kind_ = Kind::tuple;
  return value;
}
TorchValue TorchValue::dict(std::vector<Entry> entries) {
  TorchValue value;
  value.kind_ = Kind::dict;
  std::unordered_map<std::string, size_t> places;
  for (Entry& entry : entries) {
    const auto [place, fresh] = places.emplace(key_text(entry.first), value.entries_.size());
    if (fresh || place->first.empty()) value.entries_.push_back(std::move(entry));
    else value.entries_[place->second].second = std::move(entry.second);
  }
  return value;
}

bool TorchValue::as_boolean() const {
  require_kind(kind_, Kind::truth);
  return integer_ != 0;
}
int64_t TorchValue::as_integer() const {
  require_kind(kind_, Kind::integer);
  return integer_;
}
double TorchValue::as_number() const {
  if (kind_ == Kind::integer || kind_ == Kind::truth) return double(integer_);
  require_kind(kind_, Kind::real);
  return real_;
}
const std::string& TorchValue::as_string() const& {
  require_kind(kind_, Kind::string);
  return text_;
}
const Tensor& TorchValue::as_tensor() const& {
  require_kind(kind_, Kind::tensor);
  return tensor_;
}
const std::vector<TorchValue>& TorchValue::items() const& {
  if (kind_ != Kind::tuple) require_kind(kind_, Kind::list);
  return items_;
}
const std::vector<TorchValue::Entry>& TorchValue::entries() const& {
  require_kind(kind_, Kind::dict);
  return entries_;
}

const TorchValue* TorchValue::find(const TorchValue& key) const {
  require_kind(kind_, Kind::dict);
  require(key.is(Kind::string) || key.is(Kind::integer), ErrorKind::argument, op, "a key is a str or an int, not a ",
          name(key.kind_));
  for (const auto& [k, value] : entries_)
    if (k.kind_ == key.kind_ && k.text_ == key.text_ && k.integer_ == key.integer_) return &value;
  return nullptr;
}
bool TorchValue::contains(const TorchValue& key) const { return find(key) != nullptr; }
const TorchValue& TorchValue::at(const TorchValue& key) const& {
  const TorchValue* const found = find(key);
  require(found != nullptr, ErrorKind::argument, op, "the dictionary has no key '",
          key.is(Kind::string) ? key.text_ : std::to_string(key.integer_), "'");
  return *found;
}

StateDict TorchValue::state_dict() const {
  StateDict state;
  std::string others;
  for (const auto& [key, value] : entries()) {
    const std::string text = key.is(Kind::string)    ? key.text_
                             : key.is(Kind::integer) ? std::to_string(key.integer_)
                                                     : "?";
    if (key.is(Kind::string) && value.is(Kind::tensor)) state.add(text, value.tensor_);
    else others += (others.empty() ? "" : ", ") + text + " (" + std::string(name(value.kind_)) + ")";
  }
  require(others.empty(), ErrorKind::argument, op, "not a plain state dict; besides tensors by name it holds ", others,
          ". Take the part you want: read_torch_value(path).at(\"model\").state_dict()");
  return state;
}

}  // namespace volta

// PyTorch's files: what torch.save writes (.pt, .pth, .bin), read without executing anything, and written so that
// torch.load(path, weights_only=True) reads it.
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <volta/nn/model.h>

namespace volta {

// A Python value as torch.save keeps it: None, a number, a text, a tensor, or a container of such.
class TorchValue {
 public:
  enum class Kind : uint8_t { none, truth, integer, real, string, tensor, list, tuple, dict };
  using Entry = std::pair<TorchValue, TorchValue>;

  TorchValue() = default;
  TorchValue(bool value) : kind_(Kind::truth), integer_(value) {}
  template <std::integral T> TorchValue(T value) : kind_(Kind::integer), integer_(int64_t(value)) {
    if (value > 0 && uint64_t(value) > uint64_t(INT64_MAX)) throw_large(uint64_t(value));
  }
  TorchValue(double value) : kind_(Kind::real), real_(value) {}
  TorchValue(const char* value) : kind_(Kind::string), text_(value) {}
  TorchValue(std::string value) : kind_(Kind::string), text_(std::move(value)) {}
  TorchValue(Tensor value) : kind_(Kind::tensor), tensor_(std::move(value)) {}
  TorchValue(const StateDict& state);  // a dictionary
  static TorchValue list(std::vector<TorchValue> items);
  static TorchValue tuple(std::vector<TorchValue> items);
  static TorchValue dict(std::vector<Entry> entries = {});  // TorchValue::dict({{"epoch", 3}, {"model", state}})

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  // Values of one kind; of another they are an Error that names both.
  bool as_boolean() const;
  int64_t as_integer() const;
  double as_number() const;  // of integers too
  const std::string& as_string() const&;
  const Tensor& as_tensor() const&;
  const std::vector<TorchValue>& items() const&;  // of a list or tuple
  const std::vector<Entry>& entries() const&;     // of a dictionary, in its order
  std::string as_string() && { return static_cast<const TorchValue&>(*this).as_string(); }
  Tensor as_tensor() && { return static_cast<const TorchValue&>(*this).as_tensor(); }
  std::vector<TorchValue> items() && { return static_cast<const TorchValue&>(*this).items(); }
  std::vector<Entry> entries() && { return static_cast<const TorchValue&>(*this).entries(); }
  bool contains(const TorchValue& key) const;          // of a dictionary: value.contains("epoch")
  const TorchValue& at(const TorchValue& key) const&;  // value.at("param_groups")
  TorchValue at(const TorchValue& key) && { return static_cast<const TorchValue&>(*this).at(key); }
  StateDict state_dict() const;  // of a dictionary of tensors by name; anything else in it is an Error that lists it

 private:
  [[noreturn]] static void throw_large(uint64_t value);
  const TorchValue* find(const TorchValue& key) const;
  Kind kind_ = Kind::none;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  Tensor tensor_;
  std::vector<TorchValue> items_;
  std::vector<Entry> entries_;
};
std::string_view name(TorchValue::Kind kind);  // as Python calls it

// The weights of a file: StateDict s = read_torch("model.pt"). Tensors live in the mapped file as those of
// read_safetensors do, and those that share memory in the file share it here.
[[nodiscard]] StateDict read_torch(const std::string& path);
// Everything in it, as checkpoints of training loops are: read_torch_value("run.pt").at("epoch").as_integer().
[[nodiscard]] TorchValue read_torch_value(const std::string& path);

void write_torch(const std::string& path, const StateDict& state);   // write_torch("model.pt", state_dict(net))
void write_torch(const std::string& path, const TorchValue& value);  // write_torch("run.pt", TorchValue::dict({…}))

}  // namespace volta

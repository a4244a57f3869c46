// Parameter and Buffer: tensors that belong to a model. Copying one copies its values, so that a model is a value. A plain
// Tensor member is no part of a model's state: it is not saved, moved or trained.
#pragma once
#include <memory>
#include <type_traits>

#include <volta/tensor.h>

namespace volta::nn {

// A Tensor that owns its values: a copy has memory of its own; assigning, by copy or move, keeps the handle and changes
// what it holds, so that an optimizer's handles stay valid. Tensor t = p is a handle to the same values.
class Owned : public Tensor {
 public:
  Owned() = default;
  Owned(const Owned& other);
  Owned(Owned&& other) noexcept : Tensor(static_cast<Tensor&&>(other)) {
    if (other.tie_) take_place_of(other);
  }
  Owned& operator=(const Owned& other);
  Owned& operator=(Owned&& other);
  ~Owned() {
    if (tie_) untie();
  }

  // Takes over the values, dtype and device of `value`, which may differ; every handle to this tensor sees them.
  void set_data(const Tensor& value);

  // For the framework itself.
  static uint64_t copies() noexcept;  // made by this thread so far
  struct Tie;

 protected:
  explicit Owned(Tensor value) : Tensor(std::move(value)) {}
  void assign(Tensor value);  // the values alone

 private:
  friend class Parameter;
  Tensor copy() const;
  void join(std::shared_ptr<Tie> tie);
  void take_place_of(Owned& other) noexcept;
  void check_tied(const Owned& other, const Tensor& value) const;  // throws if a tied member was just assigned others
  void note_tied(const Owned& other) const;
  void untie() noexcept;
  std::shared_ptr<Tie> tie_;  // shared by parameters that are one
};

template <class T, class Own>
concept OtherTensor =
    std::is_base_of_v<Tensor, std::remove_cvref_t<T>> && !std::is_base_of_v<Own, std::remove_cvref_t<T>>;

// A tensor that is learned: struct Scale { nn::Parameter factor = ones({3}); }. It requires grad until frozen.
class Parameter : public Owned {
 public:
  Parameter() = default;
  Parameter(Tensor value, bool requires_grad = true);
  // layer.weight = zeros({2, 4}): the same parameter with other values, frozen if it was.
  template <OtherTensor<Parameter> T> Parameter& operator=(T&& value) {
    if (defined()) assign(std::forward<T>(value));
    else *this = Parameter(std::forward<T>(value));
    return *this;
  }
  void tie_to(Parameter& source);
};

// Makes two weights one: nn::tie(head.weight, embedding.weight), which then hold the second's values. One tensor, counted
// once among the parameters and saved under both names. Do it before making the optimizer. Copying a struct keeps ties
// between its members; those into vectors or Sequentials are tied again.
inline void tie(Parameter& weight, Parameter& source) { weight.tie_to(source); }

// A tensor that is state but not learned: nn::Buffer mean = zeros({3}). One that is not persistent is not saved.
class Buffer : public Owned {
 public:
  Buffer() = default;
  Buffer(Tensor value, bool is_persistent = true);
  // norm.running_mean = zeros({8}): the same buffer with other values, saved if it was.
  template <OtherTensor<Buffer> T> Buffer& operator=(T&& value) {
    if (defined()) assign(std::forward<T>(value));
    else *this = Buffer(std::forward<T>(value), persistent);
    return *this;
  }
  bool persistent = true;
};

// While it lives, copies that this thread makes of parameters and buffers are handles to the same values.
class SharedCopies {
 public:
  [[nodiscard]] SharedCopies() noexcept;
  ~SharedCopies();
  SharedCopies(const SharedCopies&) = delete;
  SharedCopies& operator=(const SharedCopies&) = delete;

 private:
  bool before_;
};

}  // namespace volta::nn

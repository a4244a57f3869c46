// Parameter and Buffer: tensors that belong to a model. Copying one copies its values, so that a model is a value. A plain
// Tensor member is no part of a model's state: it is not saved, moved or trained.
#pragma once
#include <volta/tensor.h>

namespace volta::nn {

// A Tensor that owns its values: a copy has memory of its own, assigning keeps the handle and changes what it holds, so
// that an optimizer's handles stay valid. Tensor t = p is a handle to the same values.
class Owned : public Tensor {
 public:
  Owned() = default;
  Owned(const Owned& other) : Tensor(other.copy()) {}
  Owned(Owned&& other) noexcept = default;
  Owned& operator=(const Owned& other);
  Owned& operator=(Owned&& other) noexcept = default;
  ~Owned() = default;

  // Takes over the values, dtype and device of `value`, which may differ; every handle to this tensor sees them.
  void set_data(const Tensor& value);

 protected:
  explicit Owned(Tensor value) : Tensor(std::move(value)) {}

 private:
  Tensor copy() const;
};

// A tensor that is learned: struct Scale { nn::Parameter factor = ones({3}); }. It requires grad until frozen.
class Parameter : public Owned {
 public:
  Parameter() = default;
  Parameter(Tensor value, bool requires_grad = true);
};

// A tensor that is state but not learned: nn::Buffer mean = zeros({3}). One that is not persistent is not saved.
class Buffer : public Owned {
 public:
  Buffer() = default;
  Buffer(Tensor value, bool is_persistent = true);
  bool persistent = true;
};

}  // namespace volta::nn

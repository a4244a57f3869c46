// CastScope: the inputs of an op in the dtype that Autocast wants for it.
#pragma once
#include <concepts>
#include <deque>
#include <span>
#include <vector>

#include <volta/tensor.h>

#include "graph/record.h"
#include "ops/autocast_table.h"

namespace volta {

inline bool autocasting() noexcept { return modes.autocast.on; }

// Made of all arguments of an op, it casts those that are tensors. While it lives Autocast is off, so that what the op is
// made of runs as given. Where Autocast is off already it does nothing.
class CastScope {
 public:
  template <class... Arguments> explicit CastScope(Cast how, const Arguments&... arguments) : on_(autocasting()) {
    if (!on_) return;
    (look_at(arguments), ...);
    begin(how);
  }
  ~CastScope() { modes.autocast.on = on_; }
  CastScope(const CastScope&) = delete;
  CastScope& operator=(const CastScope&) = delete;

  Tensor operator()(const Tensor& x) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& list) const;
  Operand operator()(const Operand& x) const {
    return x.tensor ? Operand(operands_.emplace_back((*this)(*x.tensor))) : x;
  }
  // Options with the tensors that are in some of them; all else as it is.
  template <class T>
  requires(!std::derived_from<T, Tensor>) decltype(auto) operator()(const T& other) const {
    if constexpr (requires { other.attn_mask; }) return with(other, &T::attn_mask);
    else if constexpr (requires { other.pos_weight; }) return with(with(other, &T::weight), &T::pos_weight);
    else if constexpr (requires { other.weight; }) return with(other, &T::weight);
    else return static_cast<const T&>(other);
  }

 private:
  template <class T> T with(T options, Tensor T::*field) const {
    options.*field = (*this)(options.*field);
    return options;
  }
  void look_at(const Tensor& x);
  void look_at(const Operand& x) {
    if (x.tensor) look_at(*x.tensor);
  }
  void look_at(std::span<const Operand> list) {
    for (const Operand& x : list) look_at(x);
  }
  void look_at(const std::vector<Tensor>& list) {
    for (const Tensor& x : list) look_at(x);
  }
  template <class T>
  requires(!std::derived_from<T, Tensor>) void look_at(const T&) {}
  void begin(Cast how);

  bool on_, casts_ = false;
  DType to_ = f32;
  bool any_f32_ = false, any_f64_ = false;
  mutable std::deque<Tensor> operands_;  // what the operands given out refer to
};

}  // namespace volta

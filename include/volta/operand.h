// Scalar: a C++ number, weakly typed in promotion. Operand: what an op accepts, a tensor or a number.
#pragma once
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>

#include <volta/dtype.h>

namespace volta {

class Tensor;

class Scalar {
 public:
  constexpr Scalar() : kind_(Kind::signed_int), i_(0) {}
  template <std::integral T> constexpr Scalar(T v)
      : kind_(std::same_as<T, bool>     ? Kind::boolean
              : std::signed_integral<T> ? Kind::signed_int
                                        : Kind::unsigned_int),
        i_(int64_t(v)) {}
  template <std::floating_point T> constexpr Scalar(T v) : kind_(Kind::floating), d_(double(v)) {}
  constexpr explicit Scalar(float16 v) : Scalar(float(v)) {}
  constexpr explicit Scalar(bfloat16 v) : Scalar(float(v)) {}

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_floating() const { return kind_ == Kind::floating; }
  template <class T> constexpr T as() const {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) return T(as<float>());
    else if constexpr (std::is_same_v<T, bool>) return is_floating() ? d_ != 0 : i_ != 0;
    else if (!is_floating()) return kind_ == Kind::unsigned_int ? T(uint64_t(i_)) : T(i_);
    else if constexpr (std::is_floating_point_v<T>) return T(d_);
    else return saturate<T>(d_);
  }

  // Whether T, if one of integers, holds the number, less its fraction.
  template <class T> constexpr bool fits() const {
    if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) return true;
    else if (is_floating()) {
      constexpr double high = double(uint64_t(1) << (8 * sizeof(T) - 1)) * (std::is_signed_v<T> ? 1.0 : 2.0);
      constexpr double low = std::is_signed_v<T> ? -high : 0.0;
      return d_ < high && (d_ >= low || d_ > low - 1);  // the first where low - 1 is low again
    } else {
      const bool wraps = (kind_ == Kind::unsigned_int) != std::is_unsigned_v<T> && i_ < 0;
      return !wraps && int64_t(T(i_)) == i_;
    }
  }

  friend std::ostream& operator<<(std::ostream& out, const Scalar& x);  // as the stream prints numbers

 private:
  template <class T> static constexpr T saturate(double d) {
    constexpr double low = std::is_signed_v<T> ? -double(uint64_t(1) << (8 * sizeof(T) - 1)) : 0.0;
    constexpr double high = double(uint64_t(1) << (8 * sizeof(T) - 1)) * (std::is_signed_v<T> ? 1.0 : 2.0);
    if (!(d == d)) return T(0);
    if (d < low) return std::is_signed_v<T> ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
    if (d >= high) return std::is_signed_v<T> ? T(~(uint64_t(1) << (8 * sizeof(T) - 1))) : T(~uint64_t(0));
    return T(d);
  }
  Kind kind_;
  union {
    int64_t i_;
    double d_;
  };
};

// Borrows the tensor for the length of the call: x + y, x + 1 and 1 - x are one function.
struct Operand {
  Operand(const Tensor& t) : tensor(&t) {}
  Operand(Tensor&& t) : tensor(&t), temporary(true) {}
  template <class T>
  requires std::integral<T> || std::floating_point<T> Operand(T v) : scalar(v) {}
  Operand(Scalar v) : scalar(v) {}

  const Tensor* tensor = nullptr;
  Scalar scalar;
  bool temporary = false;  // nobody else will see the tensor again: its memory may be reused for the result
};

// Bounds of clamp. They refer to their tensors for the length of the call, as operands do: x.clamp({.min = 0}).
struct Bounds {
  std::optional<Operand> min = {}, max = {};
};

}  // namespace volta

// TensorExpr: the kind of number on which an op's formula becomes an expression of tensors.
#pragma once
#include <concepts>
#include <initializer_list>
#include <memory>

#include <volta/dual.h>
#include <volta/op_traits.h>
#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>
#include <volta/tensor.h>

namespace volta {
namespace scalar {

// A formula evaluated on expressions becomes ordinary ops on tensors: differentiable again, on any device. A TensorExpr may also be
// a constant, or a probe that only remembers which arguments a result depends on. Ops run when their result is asked
// for: of a formula's values on dual numbers, those that no derivative needs are never computed.
class TensorExpr {
 public:
  template <class T>
  requires std::integral<T> || std::floating_point<T> TensorExpr(T constant) : scalar_(constant) {}
  TensorExpr(Tensor t) : tensor_(std::move(t)) {}
  static TensorExpr probe(uint32_t mask) {
    TensorExpr t(0);
    t.mask_ = mask;
    t.probing_ = t.untouched_ = true;
    return t;
  }
  bool constant() const { return !tensor_.defined() && !later_ && !probing_; }
  bool probing() const { return probing_; }
  bool untouched() const { return untouched_; }
  uint32_t mask() const { return mask_; }
  const Tensor& tensor() const;
  double value() const { return scalar_.as<double>(); }
  Operand operand() const { return constant() ? Operand(scalar_) : Operand(tensor()); }

  // if, ?:, && and || on values would choose one branch for a whole tensor.
  template <std::same_as<bool> Truth> explicit operator Truth() const {
    static_assert(sizeof(Truth) == 0,
                  "a formula cannot branch on its values: write select(condition, a, b) for if and ?:, & and | for && "
                  "and ||");
    return false;
  }

  // The result of an op: a probe if any argument is one, a constant if all are, else what the tensor op will give.
  using OnTensors = Tensor (*)(const Operand* x);
  using OnNumbers = Scalar (*)(const double* x);
  static TensorExpr combine(OnTensors on_tensors, OnNumbers on_numbers, std::initializer_list<TensorExpr> x);

 private:
  struct Call;

  Tensor tensor_;
  std::shared_ptr<Call> later_;
  Scalar scalar_;
  uint32_t mask_ = 0;
  bool probing_ = false, untouched_ = false;
};

// Each operator and function once more, on expressions: the tensor op of the same name, folded when constant.
TensorExpr operator+(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator-(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator*(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator/(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator<(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator<=(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator>(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator>=(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator==(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator!=(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator&(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator|(const TensorExpr& a, const TensorExpr& b);
TensorExpr operator-(const TensorExpr& x);
TensorExpr neg(const TensorExpr& x);
TensorExpr abs(const TensorExpr& x);
TensorExpr sign(const TensorExpr& x);
TensorExpr sqrt(const TensorExpr& x);
TensorExpr rsqrt(const TensorExpr& x);
TensorExpr reciprocal(const TensorExpr& x);
TensorExpr square(const TensorExpr& x);
TensorExpr exp(const TensorExpr& x);
TensorExpr exp2(const TensorExpr& x);
TensorExpr expm1(const TensorExpr& x);
TensorExpr log(const TensorExpr& x);
TensorExpr log2(const TensorExpr& x);
TensorExpr log10(const TensorExpr& x);
TensorExpr log1p(const TensorExpr& x);
TensorExpr sin(const TensorExpr& x);
TensorExpr cos(const TensorExpr& x);
TensorExpr tan(const TensorExpr& x);
TensorExpr asin(const TensorExpr& x);
TensorExpr acos(const TensorExpr& x);
TensorExpr atan(const TensorExpr& x);
TensorExpr sinh(const TensorExpr& x);
TensorExpr cosh(const TensorExpr& x);
TensorExpr tanh(const TensorExpr& x);
TensorExpr asinh(const TensorExpr& x);
TensorExpr acosh(const TensorExpr& x);
TensorExpr atanh(const TensorExpr& x);
TensorExpr erf(const TensorExpr& x);
TensorExpr erfc(const TensorExpr& x);
TensorExpr erfinv(const TensorExpr& x);
TensorExpr lgamma(const TensorExpr& x);
TensorExpr digamma(const TensorExpr& x);
TensorExpr trigamma(const TensorExpr& x);
TensorExpr polygamma2(const TensorExpr& x);
TensorExpr polygamma(const TensorExpr& x, const TensorExpr& order);
TensorExpr floor(const TensorExpr& x);
TensorExpr ceil(const TensorExpr& x);
TensorExpr trunc(const TensorExpr& x);
TensorExpr round(const TensorExpr& x);
TensorExpr isnan(const TensorExpr& x);
TensorExpr isinf(const TensorExpr& x);
TensorExpr isfinite(const TensorExpr& x);
TensorExpr min(const TensorExpr& a, const TensorExpr& b);
TensorExpr max(const TensorExpr& a, const TensorExpr& b);
TensorExpr pow(const TensorExpr& a, const TensorExpr& b);
TensorExpr atan2(const TensorExpr& a, const TensorExpr& b);
TensorExpr hypot(const TensorExpr& a, const TensorExpr& b);
TensorExpr floor_divide(const TensorExpr& a, const TensorExpr& b);
TensorExpr logaddexp(const TensorExpr& a, const TensorExpr& b);
TensorExpr logaddexp2(const TensorExpr& a, const TensorExpr& b);
TensorExpr copysign(const TensorExpr& a, const TensorExpr& b);
TensorExpr fmod(const TensorExpr& a, const TensorExpr& b);
TensorExpr remainder(const TensorExpr& a, const TensorExpr& b);
TensorExpr fmin(const TensorExpr& a, const TensorExpr& b);
TensorExpr fmax(const TensorExpr& a, const TensorExpr& b);
TensorExpr sigmoid(const TensorExpr& x);
TensorExpr logsigmoid(const TensorExpr& x);
TensorExpr clamp(const TensorExpr& x, const TensorExpr& low, const TensorExpr& high);
TensorExpr plus(const TensorExpr& a, const TensorExpr& b);
TensorExpr minus(const TensorExpr& a, const TensorExpr& b);
TensorExpr multiply(const TensorExpr& a, const TensorExpr& b);
TensorExpr select(const TensorExpr& c, const TensorExpr& a, const TensorExpr& b);

}  // namespace scalar

namespace detail {
using scalar::TensorExpr;
}

}  // namespace volta

// TensorExpr: the kind of number on which an op's formula becomes an expression of tensors.
#pragma once
#include <concepts>
#include <memory>
#include <tuple>

#include <volta/dual.h>
#include <volta/op_traits.h>
#include <volta/ops.h>
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
  const Tensor& tensor() const { return later_ ? later_->result() : tensor_; }
  double value() const { return scalar_.as<double>(); }
  Operand operand() const { return constant() ? Operand(scalar_) : Operand(tensor()); }

  // if, ?:, && and || on values would choose one branch for a whole tensor.
  template <std::same_as<bool> Truth> explicit operator Truth() const {
    static_assert(sizeof(Truth) == 0,
                  "a formula cannot branch on its values: write select(condition, a, b) for if and ?:, & and | for && "
                  "and ||");
    return false;
  }

  // Results of ops: a probe if any argument is one, a constant if all are, else what the tensor op will give.
  template <class OnTensors, class OnNumbers, class... X>
  static TensorExpr combine(OnTensors, OnNumbers on_numbers, const X&... x) {
    if ((x.probing() || ...)) {
      TensorExpr t = probe((x.mask() | ...));
      t.untouched_ = false;
      return t;
    }
    if ((x.constant() && ...)) return TensorExpr(on_numbers(x.value()...));
    TensorExpr t(0);
    t.later_ = std::make_shared<Call<OnTensors, X...>>(x...);
    return t;
  }

 private:
  struct Later {
    virtual ~Later() = default;
    virtual Tensor run() const = 0;
    const Tensor& result() {
      if (!value.defined()) value = run();
      return value;
    }
    Tensor value;
  };
  template <class OnTensors, class... X> struct Call final : Later {
    explicit Call(const X&... x) : operands(x...) {}
    Tensor run() const override {
      return std::apply([](const X&... x) { return OnTensors()(x.operand()...); }, operands);
    }
    std::tuple<X...> operands;
  };

  Tensor tensor_;
  std::shared_ptr<Later> later_;
  Scalar scalar_;
  uint32_t mask_ = 0;
  bool probing_ = false, untouched_ = false;
};

inline TensorExpr operator+(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return add(x, y); }, [](double x, double y) { return x + y; }, a, b);
}
inline TensorExpr operator-(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return sub(x, y); }, [](double x, double y) { return x - y; }, a, b);
}
inline TensorExpr operator*(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return mul(x, y); }, [](double x, double y) { return x * y; }, a, b);
}
inline TensorExpr operator/(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return div(x, y); }, [](double x, double y) { return x / y; }, a, b);
}
inline TensorExpr operator<(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return lt(x, y); }, [](double x, double y) { return x < y; }, a, b);
}
inline TensorExpr operator<=(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return le(x, y); }, [](double x, double y) { return x <= y; }, a, b);
}
inline TensorExpr operator>(const TensorExpr& a, const TensorExpr& b) { return b < a; }
inline TensorExpr operator>=(const TensorExpr& a, const TensorExpr& b) { return b <= a; }
inline TensorExpr operator==(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return eq(x, y); }, [](double x, double y) { return x == y; }, a, b);
}
inline TensorExpr operator!=(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return ne(x, y); }, [](double x, double y) { return x != y; }, a, b);
}
inline TensorExpr operator&(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return logical_and(x, y); },
                             [](double x, double y) { return x != 0 && y != 0; }, a, b);
}
inline TensorExpr operator|(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return logical_or(x, y); },
                             [](double x, double y) { return x != 0 || y != 0; }, a, b);
}

inline TensorExpr operator-(const TensorExpr& x) { return TensorExpr(0) - x; }

// A function with one name for tensors and for numbers: overloading finds the right one for each.
template <class F> TensorExpr lifted(F f, const TensorExpr& x) {
  return TensorExpr::combine([](const Operand& a) { return F()(*a.tensor); }, f, x);
}
template <class F> TensorExpr lifted(F f, const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine(f, f, a, b);
}

// Each function once more, on expressions: the tensor op of the same name, folded when constant.
inline TensorExpr neg(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::neg(*a.tensor); }, [](double a) { return -a; }, x);
}
inline TensorExpr abs(const TensorExpr& x) {
  return lifted([](auto a) { return abs(a); }, x);
}
inline TensorExpr sign(const TensorExpr& x) {
  return lifted([](auto a) { return sign(a); }, x);
}
inline TensorExpr sqrt(const TensorExpr& x) {
  return lifted([](auto a) { return sqrt(a); }, x);
}
inline TensorExpr rsqrt(const TensorExpr& x) {
  return lifted([](auto a) { return rsqrt(a); }, x);
}
inline TensorExpr reciprocal(const TensorExpr& x) { return TensorExpr(1) / x; }
inline TensorExpr square(const TensorExpr& x) { return x * x; }
inline TensorExpr exp(const TensorExpr& x) {
  return lifted([](auto a) { return exp(a); }, x);
}
inline TensorExpr exp2(const TensorExpr& x) {
  return lifted([](auto a) { return exp2(a); }, x);
}
inline TensorExpr expm1(const TensorExpr& x) {
  return lifted([](auto a) { return expm1(a); }, x);
}
inline TensorExpr log(const TensorExpr& x) {
  return lifted([](auto a) { return log(a); }, x);
}
inline TensorExpr log2(const TensorExpr& x) {
  return lifted([](auto a) { return log2(a); }, x);
}
inline TensorExpr log10(const TensorExpr& x) {
  return lifted([](auto a) { return log10(a); }, x);
}
inline TensorExpr log1p(const TensorExpr& x) {
  return lifted([](auto a) { return log1p(a); }, x);
}
inline TensorExpr sin(const TensorExpr& x) {
  return lifted([](auto a) { return sin(a); }, x);
}
inline TensorExpr cos(const TensorExpr& x) {
  return lifted([](auto a) { return cos(a); }, x);
}
inline TensorExpr tan(const TensorExpr& x) {
  return lifted([](auto a) { return tan(a); }, x);
}
inline TensorExpr asin(const TensorExpr& x) {
  return lifted([](auto a) { return asin(a); }, x);
}
inline TensorExpr acos(const TensorExpr& x) {
  return lifted([](auto a) { return acos(a); }, x);
}
inline TensorExpr atan(const TensorExpr& x) {
  return lifted([](auto a) { return atan(a); }, x);
}
inline TensorExpr sinh(const TensorExpr& x) {
  return lifted([](auto a) { return sinh(a); }, x);
}
inline TensorExpr cosh(const TensorExpr& x) {
  return lifted([](auto a) { return cosh(a); }, x);
}
inline TensorExpr tanh(const TensorExpr& x) {
  return lifted([](auto a) { return tanh(a); }, x);
}
inline TensorExpr asinh(const TensorExpr& x) {
  return lifted([](auto a) { return asinh(a); }, x);
}
inline TensorExpr acosh(const TensorExpr& x) {
  return lifted([](auto a) { return acosh(a); }, x);
}
inline TensorExpr atanh(const TensorExpr& x) {
  return lifted([](auto a) { return atanh(a); }, x);
}
inline TensorExpr erf(const TensorExpr& x) {
  return lifted([](auto a) { return erf(a); }, x);
}
inline TensorExpr erfc(const TensorExpr& x) {
  return lifted([](auto a) { return erfc(a); }, x);
}
inline TensorExpr erfinv(const TensorExpr& x) {
  return lifted([](auto a) { return erfinv(a); }, x);
}
inline TensorExpr lgamma(const TensorExpr& x) {
  return lifted([](auto a) { return lgamma(a); }, x);
}
inline TensorExpr digamma(const TensorExpr& x) {
  return lifted([](auto a) { return digamma(a); }, x);
}
inline TensorExpr trigamma(const TensorExpr& x) {
  return lifted([](auto a) { return trigamma(a); }, x);
}
inline TensorExpr polygamma2(const TensorExpr& x) {
  return lifted([](auto a) { return polygamma2(a); }, x);
}
inline TensorExpr polygamma(const TensorExpr& x, const TensorExpr& order) {
  return TensorExpr::combine(
      [](auto a, auto n) { return volta::polygamma(n.scalar.template as<int64_t>(), *a.tensor); },
      [](double a, double n) { return scalar::polygamma(a, n); }, x, order);
}
inline TensorExpr floor(const TensorExpr& x) {
  return lifted([](auto a) { return floor(a); }, x);
}
inline TensorExpr ceil(const TensorExpr& x) {
  return lifted([](auto a) { return ceil(a); }, x);
}
inline TensorExpr trunc(const TensorExpr& x) {
  return lifted([](auto a) { return trunc(a); }, x);
}
inline TensorExpr round(const TensorExpr& x) {
  return lifted([](auto a) { return round(a); }, x);
}
inline TensorExpr isnan(const TensorExpr& x) {
  return lifted([](auto a) { return isnan(a); }, x);
}
inline TensorExpr isinf(const TensorExpr& x) {
  return lifted([](auto a) { return isinf(a); }, x);
}
inline TensorExpr isfinite(const TensorExpr& x) {
  return lifted([](auto a) { return isfinite(a); }, x);
}
inline TensorExpr min(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return minimum(x, y); },
                             [](double x, double y) { return scalar::min(x, y); }, a, b);
}
inline TensorExpr max(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return maximum(x, y); },
                             [](double x, double y) { return scalar::max(x, y); }, a, b);
}
inline TensorExpr pow(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return pow(x, y); }, a, b);
}
inline TensorExpr atan2(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return atan2(x, y); }, a, b);
}
inline TensorExpr hypot(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return hypot(x, y); }, a, b);
}
inline TensorExpr floor_divide(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return floor_divide(x, y); }, a, b);
}
inline TensorExpr logaddexp(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return logaddexp(x, y); }, a, b);
}
inline TensorExpr logaddexp2(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return logaddexp2(x, y); }, a, b);
}
inline TensorExpr copysign(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return copysign(x, y); }, a, b);
}
inline TensorExpr fmod(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return fmod(x, y); }, a, b);
}
inline TensorExpr remainder(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return remainder(x, y); }, a, b);
}
inline TensorExpr fmin(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return fmin(x, y); }, a, b);
}
inline TensorExpr fmax(const TensorExpr& a, const TensorExpr& b) {
  return lifted([](auto x, auto y) { return fmax(x, y); }, a, b);
}
// Formulas with |x| that are smooth at 0 nevertheless: as ops of their own they have smooth derivatives.
inline TensorExpr sigmoid(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::sigmoid(*a.tensor); },
                             [](double a) { return 1 / (1 + scalar::exp(-a)); }, x);
}
inline TensorExpr logsigmoid(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::logsigmoid(*a.tensor); },
                             [](double a) { return scalar::min(a, 0.0) - scalar::log1p(scalar::exp(-scalar::abs(a))); },
                             x);
}
inline TensorExpr plus(const TensorExpr& a, const TensorExpr& b) { return a + b; }
inline TensorExpr minus(const TensorExpr& a, const TensorExpr& b) { return a - b; }
inline TensorExpr multiply(const TensorExpr& a, const TensorExpr& b) { return a * b; }
inline TensorExpr select(const TensorExpr& c, const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y, auto z) { return where(x, y, z); },
                             [](double x, double y, double z) { return x != 0 ? y : z; }, c, a, b);
}

}  // namespace scalar

namespace detail {
using scalar::TensorExpr;
}

}  // namespace volta

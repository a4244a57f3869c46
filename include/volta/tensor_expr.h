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

// A formula evaluated on Terms becomes ordinary ops on tensors: differentiable again, on any device. A TensorExpr may also be
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

// Each function once more, on Terms: the tensor op of the same name, folded when constant.
inline TensorExpr neg(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::neg(*a.tensor); }, [](double a) { return -a; }, x);
}
inline TensorExpr abs(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::abs(*a.tensor); }, [](double a) { return scalar::abs(a); }, x);
}
inline TensorExpr sign(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::sign(*a.tensor); }, [](double a) { return scalar::sign(a); },
                             x);
}
inline TensorExpr sqrt(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::sqrt(*a.tensor); }, [](double a) { return scalar::sqrt(a); },
                             x);
}
inline TensorExpr rsqrt(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::rsqrt(*a.tensor); }, [](double a) { return scalar::rsqrt(a); },
                             x);
}
inline TensorExpr reciprocal(const TensorExpr& x) { return TensorExpr(1) / x; }
inline TensorExpr square(const TensorExpr& x) { return x * x; }
inline TensorExpr exp(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::exp(*a.tensor); }, [](double a) { return scalar::exp(a); }, x);
}
inline TensorExpr exp2(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::exp2(*a.tensor); }, [](double a) { return scalar::exp2(a); },
                             x);
}
inline TensorExpr expm1(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::expm1(*a.tensor); }, [](double a) { return scalar::expm1(a); },
                             x);
}
inline TensorExpr log(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::log(*a.tensor); }, [](double a) { return scalar::log(a); }, x);
}
inline TensorExpr log2(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::log2(*a.tensor); }, [](double a) { return scalar::log2(a); },
                             x);
}
inline TensorExpr log10(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::log10(*a.tensor); }, [](double a) { return scalar::log10(a); },
                             x);
}
inline TensorExpr log1p(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::log1p(*a.tensor); }, [](double a) { return scalar::log1p(a); },
                             x);
}
inline TensorExpr sin(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::sin(*a.tensor); }, [](double a) { return scalar::sin(a); }, x);
}
inline TensorExpr cos(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::cos(*a.tensor); }, [](double a) { return scalar::cos(a); }, x);
}
inline TensorExpr tan(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::tan(*a.tensor); }, [](double a) { return scalar::tan(a); }, x);
}
inline TensorExpr asin(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::asin(*a.tensor); }, [](double a) { return scalar::asin(a); },
                             x);
}
inline TensorExpr acos(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::acos(*a.tensor); }, [](double a) { return scalar::acos(a); },
                             x);
}
inline TensorExpr atan(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::atan(*a.tensor); }, [](double a) { return scalar::atan(a); },
                             x);
}
inline TensorExpr sinh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::sinh(*a.tensor); }, [](double a) { return scalar::sinh(a); },
                             x);
}
inline TensorExpr cosh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::cosh(*a.tensor); }, [](double a) { return scalar::cosh(a); },
                             x);
}
inline TensorExpr tanh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::tanh(*a.tensor); }, [](double a) { return scalar::tanh(a); },
                             x);
}
inline TensorExpr asinh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::asinh(*a.tensor); }, [](double a) { return scalar::asinh(a); },
                             x);
}
inline TensorExpr acosh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::acosh(*a.tensor); }, [](double a) { return scalar::acosh(a); },
                             x);
}
inline TensorExpr atanh(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::atanh(*a.tensor); }, [](double a) { return scalar::atanh(a); },
                             x);
}
inline TensorExpr erf(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::erf(*a.tensor); }, [](double a) { return scalar::erf(a); }, x);
}
inline TensorExpr erfc(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::erfc(*a.tensor); }, [](double a) { return scalar::erfc(a); },
                             x);
}
inline TensorExpr erfinv(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::erfinv(*a.tensor); },
                             [](double a) { return scalar::erfinv(a); }, x);
}
inline TensorExpr lgamma(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::lgamma(*a.tensor); },
                             [](double a) { return scalar::lgamma(a); }, x);
}
inline TensorExpr digamma(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::digamma(*a.tensor); },
                             [](double a) { return scalar::digamma(a); }, x);
}
inline TensorExpr trigamma(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::trigamma(*a.tensor); },
                             [](double a) { return scalar::trigamma(a); }, x);
}
inline TensorExpr polygamma2(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::polygamma2(*a.tensor); },
                             [](double a) { return scalar::polygamma2(a); }, x);
}
inline TensorExpr polygamma(const TensorExpr& x, const TensorExpr& order) {
  return TensorExpr::combine(
      [](auto a, auto n) { return volta::polygamma(n.scalar.template as<int64_t>(), *a.tensor); },
      [](double a, double n) { return scalar::polygamma(a, n); }, x, order);
}
inline TensorExpr floor(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::floor(*a.tensor); }, [](double a) { return scalar::floor(a); },
                             x);
}
inline TensorExpr ceil(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::ceil(*a.tensor); }, [](double a) { return scalar::ceil(a); },
                             x);
}
inline TensorExpr trunc(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::trunc(*a.tensor); }, [](double a) { return scalar::trunc(a); },
                             x);
}
inline TensorExpr round(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::round(*a.tensor); }, [](double a) { return scalar::round(a); },
                             x);
}
inline TensorExpr isnan(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::isnan(*a.tensor); }, [](double a) { return scalar::isnan(a); },
                             x);
}
inline TensorExpr isinf(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::isinf(*a.tensor); }, [](double a) { return scalar::isinf(a); },
                             x);
}
inline TensorExpr isfinite(const TensorExpr& x) {
  return TensorExpr::combine([](auto a) { return volta::isfinite(*a.tensor); },
                             [](double a) { return scalar::isfinite(a); }, x);
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
  return TensorExpr::combine([](auto x, auto y) { return volta::pow(x, y); },
                             [](double x, double y) { return scalar::pow(x, y); }, a, b);
}
inline TensorExpr atan2(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::atan2(x, y); },
                             [](double x, double y) { return scalar::atan2(x, y); }, a, b);
}
inline TensorExpr hypot(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::hypot(x, y); },
                             [](double x, double y) { return scalar::hypot(x, y); }, a, b);
}
inline TensorExpr floor_divide(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::floor_divide(x, y); },
                             [](double x, double y) { return scalar::floor_divide(x, y); }, a, b);
}
inline TensorExpr logaddexp(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::logaddexp(x, y); },
                             [](double x, double y) { return scalar::logaddexp(x, y); }, a, b);
}
inline TensorExpr logaddexp2(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::logaddexp2(x, y); },
                             [](double x, double y) { return scalar::logaddexp2(x, y); }, a, b);
}
inline TensorExpr copysign(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::copysign(x, y); },
                             [](double x, double y) { return scalar::copysign(x, y); }, a, b);
}
inline TensorExpr fmod(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::fmod(x, y); },
                             [](double x, double y) { return scalar::fmod(x, y); }, a, b);
}
inline TensorExpr remainder(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::remainder(x, y); },
                             [](double x, double y) { return scalar::remainder(x, y); }, a, b);
}
inline TensorExpr fmin(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::fmin(x, y); },
                             [](double x, double y) { return scalar::fmin(x, y); }, a, b);
}
inline TensorExpr fmax(const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](auto x, auto y) { return volta::fmax(x, y); },
                             [](double x, double y) { return scalar::fmax(x, y); }, a, b);
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

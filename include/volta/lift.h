// Term: the kind of number on which an op's formula becomes an expression of tensors.
#pragma once
#include <concepts>
#include <memory>
#include <vector>

#include <volta/dual.h>
#include <volta/ops.h>
#include <volta/pointop.h>
#include <volta/scalar.h>
#include <volta/scalar/arithmetic.h>
#include <volta/scalar/polygamma.h>
#include <volta/tensor.h>

namespace volta {
namespace scalar {

// A formula evaluated on Terms becomes ordinary ops on tensors: differentiable again, on any device. A Term may also be
// a constant, or a probe that only remembers which arguments a result depends on. Ops run when their result is asked
// for: of a formula's values on dual numbers, those that no derivative needs are never computed.
class Term {
 public:
  template <class T>
  requires std::integral<T> || std::floating_point<T> Term(T constant) : scalar_(constant) {}
  Term(Tensor t) : tensor_(std::move(t)) {}
  static Term probe(uint32_t mask) {
    Term t(0);
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
  static Term combine(OnTensors, OnNumbers on_numbers, const X&... x) {
    if ((x.probing() || ...)) {
      Term t = probe((x.mask() | ...));
      t.untouched_ = false;
      return t;
    }
    if ((x.constant() && ...)) return Term(on_numbers(x.value()...));
    Term t(0);
    t.later_ = std::make_shared<Later>(&run<OnTensors, sizeof...(X)>, std::vector<Term>{x...});
    return t;
  }

 private:
  struct Later {
    Later(Tensor (*f)(const Term*), std::vector<Term> x) : run(f), operands(std::move(x)) {}
    const Tensor& result() {
      if (!value.defined()) value = run(operands.data());
      return value;
    }
    Tensor (*run)(const Term*);
    std::vector<Term> operands;
    Tensor value;
  };
  template <class OnTensors, size_t n> static Tensor run(const Term* x) {
    if constexpr (n == 1) return OnTensors()(x[0].operand());
    else if constexpr (n == 2) return OnTensors()(x[0].operand(), x[1].operand());
    else return OnTensors()(x[0].operand(), x[1].operand(), x[2].operand());
  }

  Tensor tensor_;
  std::shared_ptr<Later> later_;
  Scalar scalar_;
  uint32_t mask_ = 0;
  bool probing_ = false, untouched_ = false;
};

inline Term operator+(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return add(x, y); }, [](double x, double y) { return x + y; }, a, b);
}
inline Term operator-(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return sub(x, y); }, [](double x, double y) { return x - y; }, a, b);
}
inline Term operator*(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return mul(x, y); }, [](double x, double y) { return x * y; }, a, b);
}
inline Term operator/(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return div(x, y); }, [](double x, double y) { return x / y; }, a, b);
}
inline Term operator<(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return lt(x, y); }, [](double x, double y) { return x < y; }, a, b);
}
inline Term operator<=(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return le(x, y); }, [](double x, double y) { return x <= y; }, a, b);
}
inline Term operator>(const Term& a, const Term& b) { return b < a; }
inline Term operator>=(const Term& a, const Term& b) { return b <= a; }
inline Term operator==(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return eq(x, y); }, [](double x, double y) { return x == y; }, a, b);
}
inline Term operator!=(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return ne(x, y); }, [](double x, double y) { return x != y; }, a, b);
}
inline Term operator&(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return logical_and(x, y); },
                       [](double x, double y) { return x != 0 && y != 0; }, a, b);
}
inline Term operator|(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return logical_or(x, y); },
                       [](double x, double y) { return x != 0 || y != 0; }, a, b);
}

inline Term operator-(const Term& x) { return Term(0) - x; }

// Each function once more, on Terms: the tensor op of the same name, folded when constant.
inline Term neg(const Term& x) {
  return Term::combine([](auto a) { return volta::neg(*a.tensor); }, [](double a) { return -a; }, x);
}
inline Term abs(const Term& x) {
  return Term::combine([](auto a) { return volta::abs(*a.tensor); }, [](double a) { return scalar::abs(a); }, x);
}
inline Term sign(const Term& x) {
  return Term::combine([](auto a) { return volta::sign(*a.tensor); }, [](double a) { return scalar::sign(a); }, x);
}
inline Term sqrt(const Term& x) {
  return Term::combine([](auto a) { return volta::sqrt(*a.tensor); }, [](double a) { return scalar::sqrt(a); }, x);
}
inline Term rsqrt(const Term& x) {
  return Term::combine([](auto a) { return volta::rsqrt(*a.tensor); }, [](double a) { return scalar::rsqrt(a); }, x);
}
inline Term reciprocal(const Term& x) { return Term(1) / x; }
inline Term square(const Term& x) { return x * x; }
inline Term exp(const Term& x) {
  return Term::combine([](auto a) { return volta::exp(*a.tensor); }, [](double a) { return scalar::exp(a); }, x);
}
inline Term exp2(const Term& x) {
  return Term::combine([](auto a) { return volta::exp2(*a.tensor); }, [](double a) { return scalar::exp2(a); }, x);
}
inline Term expm1(const Term& x) {
  return Term::combine([](auto a) { return volta::expm1(*a.tensor); }, [](double a) { return scalar::expm1(a); }, x);
}
inline Term log(const Term& x) {
  return Term::combine([](auto a) { return volta::log(*a.tensor); }, [](double a) { return scalar::log(a); }, x);
}
inline Term log2(const Term& x) {
  return Term::combine([](auto a) { return volta::log2(*a.tensor); }, [](double a) { return scalar::log2(a); }, x);
}
inline Term log10(const Term& x) {
  return Term::combine([](auto a) { return volta::log10(*a.tensor); }, [](double a) { return scalar::log10(a); }, x);
}
inline Term log1p(const Term& x) {
  return Term::combine([](auto a) { return volta::log1p(*a.tensor); }, [](double a) { return scalar::log1p(a); }, x);
}
inline Term sin(const Term& x) {
  return Term::combine([](auto a) { return volta::sin(*a.tensor); }, [](double a) { return scalar::sin(a); }, x);
}
inline Term cos(const Term& x) {
  return Term::combine([](auto a) { return volta::cos(*a.tensor); }, [](double a) { return scalar::cos(a); }, x);
}
inline Term tan(const Term& x) {
  return Term::combine([](auto a) { return volta::tan(*a.tensor); }, [](double a) { return scalar::tan(a); }, x);
}
inline Term asin(const Term& x) {
  return Term::combine([](auto a) { return volta::asin(*a.tensor); }, [](double a) { return scalar::asin(a); }, x);
}
inline Term acos(const Term& x) {
  return Term::combine([](auto a) { return volta::acos(*a.tensor); }, [](double a) { return scalar::acos(a); }, x);
}
inline Term atan(const Term& x) {
  return Term::combine([](auto a) { return volta::atan(*a.tensor); }, [](double a) { return scalar::atan(a); }, x);
}
inline Term sinh(const Term& x) {
  return Term::combine([](auto a) { return volta::sinh(*a.tensor); }, [](double a) { return scalar::sinh(a); }, x);
}
inline Term cosh(const Term& x) {
  return Term::combine([](auto a) { return volta::cosh(*a.tensor); }, [](double a) { return scalar::cosh(a); }, x);
}
inline Term tanh(const Term& x) {
  return Term::combine([](auto a) { return volta::tanh(*a.tensor); }, [](double a) { return scalar::tanh(a); }, x);
}
inline Term asinh(const Term& x) {
  return Term::combine([](auto a) { return volta::asinh(*a.tensor); }, [](double a) { return scalar::asinh(a); }, x);
}
inline Term acosh(const Term& x) {
  return Term::combine([](auto a) { return volta::acosh(*a.tensor); }, [](double a) { return scalar::acosh(a); }, x);
}
inline Term atanh(const Term& x) {
  return Term::combine([](auto a) { return volta::atanh(*a.tensor); }, [](double a) { return scalar::atanh(a); }, x);
}
inline Term erf(const Term& x) {
  return Term::combine([](auto a) { return volta::erf(*a.tensor); }, [](double a) { return scalar::erf(a); }, x);
}
inline Term erfc(const Term& x) {
  return Term::combine([](auto a) { return volta::erfc(*a.tensor); }, [](double a) { return scalar::erfc(a); }, x);
}
inline Term erfinv(const Term& x) {
  return Term::combine([](auto a) { return volta::erfinv(*a.tensor); }, [](double a) { return scalar::erfinv(a); }, x);
}
inline Term lgamma(const Term& x) {
  return Term::combine([](auto a) { return volta::lgamma(*a.tensor); }, [](double a) { return scalar::lgamma(a); }, x);
}
inline Term digamma(const Term& x) {
  return Term::combine([](auto a) { return volta::digamma(*a.tensor); }, [](double a) { return scalar::digamma(a); },
                       x);
}
inline Term trigamma(const Term& x) {
  return Term::combine([](auto a) { return volta::trigamma(*a.tensor); }, [](double a) { return scalar::trigamma(a); },
                       x);
}
inline Term polygamma2(const Term& x) {
  return Term::combine([](auto a) { return volta::polygamma2(*a.tensor); },
                       [](double a) { return scalar::polygamma2(a); }, x);
}
inline Term polygamma(const Term& x, const Term& order) {
  return Term::combine([](auto a, auto n) { return volta::polygamma(n.scalar.template as<int64_t>(), *a.tensor); },
                       [](double a, double n) { return scalar::polygamma(a, n); }, x, order);
}
inline Term floor(const Term& x) {
  return Term::combine([](auto a) { return volta::floor(*a.tensor); }, [](double a) { return scalar::floor(a); }, x);
}
inline Term ceil(const Term& x) {
  return Term::combine([](auto a) { return volta::ceil(*a.tensor); }, [](double a) { return scalar::ceil(a); }, x);
}
inline Term trunc(const Term& x) {
  return Term::combine([](auto a) { return volta::trunc(*a.tensor); }, [](double a) { return scalar::trunc(a); }, x);
}
inline Term round(const Term& x) {
  return Term::combine([](auto a) { return volta::round(*a.tensor); }, [](double a) { return scalar::round(a); }, x);
}
inline Term isnan(const Term& x) {
  return Term::combine([](auto a) { return volta::isnan(*a.tensor); }, [](double a) { return scalar::isnan(a); }, x);
}
inline Term isinf(const Term& x) {
  return Term::combine([](auto a) { return volta::isinf(*a.tensor); }, [](double a) { return scalar::isinf(a); }, x);
}
inline Term isfinite(const Term& x) {
  return Term::combine([](auto a) { return volta::isfinite(*a.tensor); }, [](double a) { return scalar::isfinite(a); },
                       x);
}
inline Term min(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return minimum(x, y); },
                       [](double x, double y) { return scalar::min(x, y); }, a, b);
}
inline Term max(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return maximum(x, y); },
                       [](double x, double y) { return scalar::max(x, y); }, a, b);
}
inline Term pow(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::pow(x, y); },
                       [](double x, double y) { return scalar::pow(x, y); }, a, b);
}
inline Term atan2(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::atan2(x, y); },
                       [](double x, double y) { return scalar::atan2(x, y); }, a, b);
}
inline Term hypot(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::hypot(x, y); },
                       [](double x, double y) { return scalar::hypot(x, y); }, a, b);
}
inline Term floor_divide(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::floor_divide(x, y); },
                       [](double x, double y) { return scalar::floor_divide(x, y); }, a, b);
}
inline Term logaddexp(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::logaddexp(x, y); },
                       [](double x, double y) { return scalar::logaddexp(x, y); }, a, b);
}
inline Term logaddexp2(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::logaddexp2(x, y); },
                       [](double x, double y) { return scalar::logaddexp2(x, y); }, a, b);
}
inline Term copysign(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::copysign(x, y); },
                       [](double x, double y) { return scalar::copysign(x, y); }, a, b);
}
inline Term fmod(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::fmod(x, y); },
                       [](double x, double y) { return scalar::fmod(x, y); }, a, b);
}
inline Term remainder(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::remainder(x, y); },
                       [](double x, double y) { return scalar::remainder(x, y); }, a, b);
}
inline Term fmin(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::fmin(x, y); },
                       [](double x, double y) { return scalar::fmin(x, y); }, a, b);
}
inline Term fmax(const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y) { return volta::fmax(x, y); },
                       [](double x, double y) { return scalar::fmax(x, y); }, a, b);
}
// Formulas with |x| that are smooth at 0 nevertheless: as ops of their own they have smooth derivatives.
inline Term sigmoid(const Term& x) {
  return Term::combine([](auto a) { return volta::sigmoid(*a.tensor); },
                       [](double a) { return 1 / (1 + scalar::exp(-a)); }, x);
}
inline Term logsigmoid(const Term& x) {
  return Term::combine([](auto a) { return volta::logsigmoid(*a.tensor); },
                       [](double a) { return scalar::min(a, 0.0) - scalar::log1p(scalar::exp(-scalar::abs(a))); }, x);
}
inline Term plus(const Term& a, const Term& b) { return a + b; }
inline Term minus(const Term& a, const Term& b) { return a - b; }
inline Term multiply(const Term& a, const Term& b) { return a * b; }
inline Term select(const Term& c, const Term& a, const Term& b) {
  return Term::combine([](auto x, auto y, auto z) { return where(x, y, z); },
                       [](double x, double y, double z) { return x != 0 ? y : z; }, c, a, b);
}

}  // namespace scalar

namespace detail {
using scalar::Term;
}

}  // namespace volta

#include <volta/tensor_expr.h>

#include <algorithm>
#include <vector>

#include <volta/ops.h>

namespace volta::scalar {

// An op that runs when its result is first asked for.
struct TensorExpr::Call {
  OnTensors run;
  std::vector<TensorExpr> operands;
  Tensor value;

  const Tensor& result() {
    if (!value.defined()) {
      std::vector<Operand> x;
      x.reserve(operands.size());
      for (const TensorExpr& operand : operands) x.push_back(operand.operand());
      value = run(x.data());
    }
    return value;
  }
};

const Tensor& TensorExpr::tensor() const { return later_ ? later_->result() : tensor_; }

TensorExpr TensorExpr::combine(OnTensors on_tensors, OnNumbers on_numbers, std::initializer_list<TensorExpr> x) {
  TensorExpr result(0);
  if (std::ranges::any_of(x, &TensorExpr::probing)) {
    result.probing_ = true;
    for (const TensorExpr& operand : x) result.mask_ |= operand.mask();
  } else if (std::ranges::all_of(x, &TensorExpr::constant)) {
    double numbers[3];
    std::ranges::transform(x, numbers, &TensorExpr::value);
    result.scalar_ = on_numbers(numbers);
  } else {
    result.later_ = std::make_shared<Call>(Call{on_tensors, x, {}});
  }
  return result;
}

// VOLTA_UNARY(name, on_tensor, on_number): what the op gives for the tensor or the number `x`.
#define VOLTA_UNARY(name, on_tensor, on_number) \
  TensorExpr name(const TensorExpr& operand) {  \
    return TensorExpr::combine(                 \
        [](const Operand* operands) {           \
          const Tensor& x = *operands->tensor;  \
          return on_tensor;                     \
        },                                      \
        [](const double* operands) {            \
          const double x = *operands;           \
          return Scalar(on_number);             \
        },                                      \
        {operand});                             \
  }
#define VOLTA_SAME_UNARY(name) VOLTA_UNARY(name, volta::name(x), scalar::name(x))

VOLTA_UNARY(neg, volta::neg(x), -x)
VOLTA_SAME_UNARY(abs)
VOLTA_SAME_UNARY(sign)
VOLTA_SAME_UNARY(sqrt)
VOLTA_SAME_UNARY(rsqrt)
VOLTA_SAME_UNARY(exp)
VOLTA_SAME_UNARY(exp2)
VOLTA_SAME_UNARY(expm1)
VOLTA_SAME_UNARY(log)
VOLTA_SAME_UNARY(log2)
VOLTA_SAME_UNARY(log10)
VOLTA_SAME_UNARY(log1p)
VOLTA_SAME_UNARY(sin)
VOLTA_SAME_UNARY(cos)
VOLTA_SAME_UNARY(tan)
VOLTA_SAME_UNARY(asin)
VOLTA_SAME_UNARY(acos)
VOLTA_SAME_UNARY(atan)
VOLTA_SAME_UNARY(sinh)
VOLTA_SAME_UNARY(cosh)
VOLTA_SAME_UNARY(tanh)
VOLTA_SAME_UNARY(asinh)
VOLTA_SAME_UNARY(acosh)
VOLTA_SAME_UNARY(atanh)
VOLTA_SAME_UNARY(erf)
VOLTA_SAME_UNARY(erfc)
VOLTA_SAME_UNARY(erfinv)
VOLTA_SAME_UNARY(lgamma)
VOLTA_SAME_UNARY(digamma)
VOLTA_SAME_UNARY(trigamma)
VOLTA_SAME_UNARY(polygamma2)
VOLTA_SAME_UNARY(floor)
VOLTA_SAME_UNARY(ceil)
VOLTA_SAME_UNARY(trunc)
VOLTA_SAME_UNARY(round)
VOLTA_SAME_UNARY(isnan)
VOLTA_SAME_UNARY(isinf)
VOLTA_SAME_UNARY(isfinite)
// Formulas with |x| that are smooth at 0 nevertheless: as ops of their own they have smooth derivatives.
VOLTA_SAME_UNARY(sigmoid)
VOLTA_SAME_UNARY(logsigmoid)

// VOLTA_BINARY(name, op, on_numbers): likewise of `x` and `y`.
#define VOLTA_BINARY(name, op, on_numbers)                                             \
  TensorExpr name(const TensorExpr& a, const TensorExpr& b) {                          \
    return TensorExpr::combine([](const Operand* o) { return volta::op(o[0], o[1]); }, \
                               [](const double* operands) {                            \
                                 const double x = operands[0], y = operands[1];        \
                                 return Scalar(on_numbers);                            \
                               },                                                      \
                               {a, b});                                                \
  }
#define VOLTA_SAME_BINARY(name) VOLTA_BINARY(name, name, scalar::name(x, y))

VOLTA_BINARY(operator+, add, x + y)
VOLTA_BINARY(operator-, sub, x - y)
VOLTA_BINARY(operator*, mul, x* y)
VOLTA_BINARY(operator/, div, x / y)
VOLTA_BINARY(operator<, lt, x < y)
VOLTA_BINARY(operator<=, le, x <= y)
VOLTA_BINARY(operator==, eq, x == y)
VOLTA_BINARY(operator!=, ne, x != y)
VOLTA_BINARY(operator&, logical_and, x != 0 && y != 0)
VOLTA_BINARY(operator|, logical_or, x != 0 || y != 0)
VOLTA_BINARY(min, minimum, scalar::min(x, y))
VOLTA_BINARY(max, maximum, scalar::max(x, y))
VOLTA_SAME_BINARY(pow)
VOLTA_SAME_BINARY(atan2)
VOLTA_SAME_BINARY(hypot)
VOLTA_SAME_BINARY(floor_divide)
VOLTA_SAME_BINARY(logaddexp)
VOLTA_SAME_BINARY(logaddexp2)
VOLTA_SAME_BINARY(copysign)
VOLTA_SAME_BINARY(fmod)
VOLTA_SAME_BINARY(remainder)
VOLTA_SAME_BINARY(fmin)
VOLTA_SAME_BINARY(fmax)

TensorExpr operator>(const TensorExpr& a, const TensorExpr& b) { return b < a; }
TensorExpr operator>=(const TensorExpr& a, const TensorExpr& b) { return b <= a; }
TensorExpr operator-(const TensorExpr& x) { return TensorExpr(0) - x; }
TensorExpr reciprocal(const TensorExpr& x) { return TensorExpr(1) / x; }
TensorExpr square(const TensorExpr& x) { return x * x; }
TensorExpr plus(const TensorExpr& a, const TensorExpr& b) { return a + b; }
TensorExpr minus(const TensorExpr& a, const TensorExpr& b) { return a - b; }
TensorExpr multiply(const TensorExpr& a, const TensorExpr& b) { return a * b; }

TensorExpr polygamma(const TensorExpr& x, const TensorExpr& order) {
  return TensorExpr::combine([](const Operand* o) { return volta::polygamma(o[1].scalar.as<int64_t>(), *o[0].tensor); },
                             [](const double* n) { return Scalar(scalar::polygamma(n[0], n[1])); }, {x, order});
}
TensorExpr clamp(const TensorExpr& x, const TensorExpr& low, const TensorExpr& high) {
  return TensorExpr::combine([](const Operand* o) { return volta::clamp(o[0], o[1], o[2]); },
                             [](const double* n) { return Scalar(scalar::clamp(n[0], n[1], n[2])); }, {x, low, high});
}
TensorExpr select(const TensorExpr& c, const TensorExpr& a, const TensorExpr& b) {
  return TensorExpr::combine([](const Operand* o) { return where(o[0], o[1], o[2]); },
                             [](const double* n) { return Scalar(n[0] != 0 ? n[1] : n[2]); }, {c, a, b});
}

}  // namespace volta::scalar

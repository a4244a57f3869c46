// TensorExpr: every function of a formula is, on tensors, the op of its name, and the same on constants.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <volta/tensor_expr.h>
#include <volta/volta.h>

namespace volta::test {
namespace {

using scalar::TensorExpr;

const std::vector<double> numbers = {0.3, 0.8, 1.7, 2.5};  // some are out of some domains: NaN on both sides

void expect_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
  EXPECT_TRUE(allclose(got.to(f64), wanted.to(f64), {.rtol = 1e-13, .atol = 0, .equal_nan = true})) << what;
}

struct Unary {
  const char* name;
  TensorExpr (*formula)(const TensorExpr&);
  std::function<Tensor(const Tensor&)> op;
};
struct Binary {
  const char* name;
  std::function<TensorExpr(const TensorExpr&, const TensorExpr&)> formula;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
};

#define UNARY(f)                                                \
  Unary {                                                       \
#f, &scalar::f, [](const Tensor& x) { return volta::f(x); } \
  }
#define BINARY(f, g)                                                                                        \
  Binary {                                                                                                  \
#f, [](const TensorExpr& a,                                                                             \
           const TensorExpr& b) { return scalar::f(a, b); }, [](const Tensor& a,                            \
                                                                const Tensor& b) { return volta::g(a, b); } \
  }
#define OPERATOR(sign)                                                                                                 \
  Binary {                                                                                                             \
#sign, [](const TensorExpr& a, const TensorExpr& b) { return a sign b; }, [](const Tensor& a,                      \
                                                                                 const Tensor& b) { return a sign b; } \
  }

TEST(TensorExpr, OfOneOperand) {
  const Unary list[] = {
      UNARY(neg),      UNARY(abs),     UNARY(sign),       UNARY(sqrt),       UNARY(rsqrt), UNARY(exp),    UNARY(exp2),
      UNARY(expm1),    UNARY(log),     UNARY(log2),       UNARY(log10),      UNARY(log1p), UNARY(sin),    UNARY(cos),
      UNARY(tan),      UNARY(asin),    UNARY(acos),       UNARY(atan),       UNARY(sinh),  UNARY(cosh),   UNARY(tanh),
      UNARY(asinh),    UNARY(acosh),   UNARY(atanh),      UNARY(erf),        UNARY(erfc),  UNARY(erfinv), UNARY(lgamma),
      UNARY(digamma),  UNARY(floor),   UNARY(ceil),       UNARY(trunc),      UNARY(round), UNARY(isnan),  UNARY(isinf),
      UNARY(isfinite), UNARY(sigmoid), UNARY(logsigmoid), UNARY(reciprocal), UNARY(square)};
  for (const Unary& f : list)
    for (const double sign : {1.0, -1.0}) {
      const Tensor x = tensor(numbers).to(f64) * sign, wanted = f.op(x);
      expect_same(f.formula(TensorExpr(x)).tensor(), wanted, f.name);
      for (int64_t i = 0; i < x.numel(); ++i)
        expect_same(full({}, f.formula(TensorExpr(x[i].item<double>())).value(), {.dtype = f64}), wanted[i],
                    std::string(f.name) + " of a number");
    }
}

TEST(TensorExpr, OfTwoOperands) {
  const Binary list[] = {OPERATOR(+),
                         OPERATOR(-),
                         OPERATOR(*),
                         OPERATOR(/),
                         OPERATOR(<),
                         OPERATOR(<=),
                         OPERATOR(>),
                         OPERATOR(>=),
                         OPERATOR(==),
                         OPERATOR(!=),
                         BINARY(min, minimum),
                         BINARY(max, maximum),
                         BINARY(pow, pow),
                         BINARY(atan2, atan2),
                         BINARY(hypot, hypot),
                         BINARY(floor_divide, floor_divide),
                         BINARY(logaddexp, logaddexp),
                         BINARY(logaddexp2, logaddexp2),
                         BINARY(copysign, copysign),
                         BINARY(fmod, fmod),
                         BINARY(remainder, remainder),
                         BINARY(fmin, fmin),
                         BINARY(fmax, fmax),
                         BINARY(plus, add),
                         BINARY(minus, sub),
                         BINARY(multiply, mul)};
  const Tensor x = tensor(numbers).to(f64);
  for (const Binary& f : list)
    for (const double other : {-1.7, 0.3, 1.7}) {
      const Tensor y = full({4}, other, {.dtype = f64}), wanted = f.op(x, y), turned = f.op(y, x);
      expect_same(f.formula(x, y).tensor(), wanted, f.name);
      expect_same(f.formula(y, x).tensor(), turned, f.name);
      expect_same(f.formula(x, other).tensor(), wanted, std::string(f.name) + " with a number");
      expect_same(f.formula(other, x).tensor(), turned, std::string(f.name) + " of a number");
      for (int64_t i = 0; i < x.numel(); ++i)
        expect_same(full({}, f.formula(x[i].item<double>(), other).value(), {.dtype = f64}), wanted[i],
                    std::string(f.name) + " of two numbers");
    }
}

TEST(TensorExpr, OfConditions) {
  const Tensor x = tensor({0., 1., 0., 2.}).to(f64), y = tensor({0., 0., 3., 1.}).to(f64);
  EXPECT_TRUE(equal((TensorExpr(x) & TensorExpr(y)).tensor(), logical_and(x, y)));
  EXPECT_TRUE(equal((TensorExpr(x) | TensorExpr(y)).tensor(), logical_or(x, y)));
  EXPECT_TRUE(equal(select(TensorExpr(x), TensorExpr(y), TensorExpr(-x)).tensor(), where(x != 0, y, -x)));
  EXPECT_EQ(select(TensorExpr(0), TensorExpr(5), TensorExpr(7)).value(), 7);
  EXPECT_EQ(select(TensorExpr(1), TensorExpr(5), TensorExpr(7)).value(), 5);
  EXPECT_EQ((TensorExpr(1) & TensorExpr(0)).value(), 0);
  EXPECT_EQ((TensorExpr(1) | TensorExpr(0)).value(), 1);
  expect_same((-TensorExpr(y)).tensor(), -y, "-");
  expect_same(clamp(TensorExpr(x), TensorExpr(0.5), TensorExpr(y)).tensor(), clamp(x, 0.5, y), "clamp");
  EXPECT_EQ(clamp(TensorExpr(3), TensorExpr(0), TensorExpr(2)).value(), 2);
  expect_same(scalar::polygamma(TensorExpr(y + 1), TensorExpr(1)).tensor(), polygamma(1, y + 1), "polygamma");
}

// Formulas of one's own: the same function on numbers, on dual numbers for the gradient, on expressions for the second.
#define FORMULA(f_, ...)                                                             \
  struct Own_##f_ {                                                                  \
    static constexpr auto name = #f_;                                                \
    template <class T> static constexpr T f(T x) { return scalar::f_(__VA_ARGS__); } \
    static Tensor op(const Tensor& x) {                                              \
      using T [[maybe_unused]] = double;                                             \
      return volta::f_(__VA_ARGS__);                                                 \
    }                                                                                \
  };
FORMULA(sigmoid, x)
FORMULA(logsigmoid, x)
FORMULA(erfinv, x)
FORMULA(trigamma, x)
FORMULA(fmin, x, T(0.3))
FORMULA(fmax, x, T(0.3))
FORMULA(fmod, x, T(0.3))
FORMULA(remainder, x, T(0.3))
FORMULA(floor_divide, x, T(0.3))
FORMULA(copysign, x, T(-0.3))
FORMULA(logaddexp, x, T(0.3))
FORMULA(logaddexp2, x, T(0.3))
FORMULA(clamp, x, T(-0.5), T(0.3))

struct Gate {
  static constexpr auto name = "gate";
  template <class T> static constexpr T f(T x) {
    using namespace volta::scalar;
    return clamp(x, 0, 1) * select(isfinite(x), x * sigmoid(x), T(0));
  }
  static Tensor op(const Tensor& x) { return clamp(x, 0, 1) * silu(x); }
};
struct Held {
  static constexpr auto name = "held";
  static constexpr auto domain = Domain::numeric;
  template <class T> static constexpr T f(T x) { return scalar::clamp(x, T(1), T(3)); }
};

template <class Op> void check_formula() {
  for (const double sign : {1.0, -1.0}) {
    const Tensor x = (tensor({0.2, 0.45, 0.8}).to(f64) * sign).requires_grad_();
    const Tensor own = pointwise<Op>(x), y = Op::op(x);
    expect_same(own, y, Op::name);
    const Tensor first = grad(own.sum(), x, {.create_graph = true}), wanted = grad(y.sum(), x, {.create_graph = true});
    EXPECT_TRUE(allclose(first, wanted, {.rtol = 1e-12})) << Op::name << first << wanted;
    if (!first.requires_grad() || !wanted.requires_grad()) continue;
    EXPECT_TRUE(allclose(grad(first.square().sum(), x), grad(wanted.square().sum(), x), {.rtol = 1e-9})) << Op::name;
  }
}

TEST(TensorExpr, FormulasOfOnesOwn) {
  check_formula<Own_sigmoid>();
  check_formula<Own_logsigmoid>();
  check_formula<Own_erfinv>();
  check_formula<Own_trigamma>();
  check_formula<Own_fmin>();
  check_formula<Own_fmax>();
  check_formula<Own_fmod>();
  check_formula<Own_remainder>();
  check_formula<Own_floor_divide>();
  check_formula<Own_copysign>();
  check_formula<Own_logaddexp>();
  check_formula<Own_logaddexp2>();
  check_formula<Own_clamp>();
  check_formula<Gate>();
  EXPECT_TRUE(equal(pointwise<Held>(arange(5)), tensor({1, 1, 2, 3, 3})));
}

}  // namespace
}  // namespace volta::test

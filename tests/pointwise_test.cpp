// Pointwise ops beyond their samples: numbers that do not fit, neighbours of halves, derivatives of digamma.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <volta/volta.h>

#include "ops/fused.h"

namespace volta {
namespace {

template <class F> void expect_refused(F f, const std::string& text) {
  try {
    f();
    FAIL() << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::argument);
    EXPECT_EQ(std::string(e.what()), text);
  }
}

TEST(ErrorsNumbers, MustFitTheIntegersTheyMeet) {
  Tensor bytes = tensor<uint8_t>({0, 3, 200});
  const Tensor small = tensor<int8_t>({-128, 0, 127}), large = tensor<uint64_t>({1, 2, 3});
  expect_refused([&] { return bytes.clamp(-1, 5); }, "clamp: -1 does not fit u8");
  expect_refused([&] { return bytes.clamp_(0, 256); }, "clamp: 256 does not fit u8");
  expect_refused([&] { return bytes > -1; }, "gt: -1 does not fit u8");
  expect_refused([&] { return -1 == bytes; }, "eq: -1 does not fit u8");
  expect_refused([&] { return maximum(bytes, -1); }, "maximum: -1 does not fit u8");
  expect_refused([&] { return where(bytes > 0, bytes, -1); }, "where: -1 does not fit u8");
  expect_refused([&] { return bytes += -1; }, "add: -1 does not fit u8");
  expect_refused([&] { return small * 128; }, "mul: 128 does not fit i8");
  expect_refused([&] { return small <= -129; }, "le: -129 does not fit i8");
  expect_refused([&] { return large - int64_t(-1); }, "sub: -1 does not fit u64");
  expect_refused([&] { return zeros({1}, {i64}) < ~uint64_t(0); }, "lt: 18446744073709551615 does not fit i64");
  EXPECT_EQ(bytes.to_vector<int>(), (std::vector<int>{0, 3, 200}));
}

TEST(ErrorsNumbers, ThatFitKeepTheirValue) {
  const Tensor bytes = tensor<uint8_t>({0, 3, 200}), small = tensor<int8_t>({-128, 0, 127});
  EXPECT_EQ(bytes.clamp(0, 255).to_vector<int>(), (std::vector<int>{0, 3, 200}));
  EXPECT_EQ((bytes - 4).to_vector<int>(), (std::vector<int>{252, 255, 196}));  // elements wrap
  EXPECT_EQ((bytes > -1.0).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ((small >= -128).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ((tensor<uint64_t>({1}) < ~uint64_t(0)).item<bool>(), true);
  EXPECT_EQ((bytes < true).to_vector<bool>(), (std::vector<bool>{true, false, false}));
}

// Halves of one sign are ordered as their bits are.
template <class Half> int position(Half x) { return x.bits & 0x8000 ? -int(x.bits & 0x7fff) : int(x.bits); }

template <class Half> void every_half_steps_to_its_neighbour(double huge) {
  constexpr int infinite = std::is_same_v<Half, float16> ? 0x7c00 : 0x7f80;
  std::vector<Half> all;
  for (int bits = 0; bits < 0x10000; ++bits)
    if ((bits & 0x7fff) <= infinite) all.push_back(Half::from_bits(uint16_t(bits)));
  const Tensor x = tensor(all);
  for (const double toward : {-INFINITY, INFINITY}) {
    const auto y = x.nextafter(toward).to_vector<Half>();
    for (size_t i = 0; i < all.size(); ++i) {
      const int step = toward > 0 ? 1 : -1, wanted = std::clamp(position(all[i]) + step, -infinite, infinite);
      ASSERT_EQ(position(y[i]), wanted) << float(all[i]) << " toward " << toward;
    }
  }
  EXPECT_TRUE(equal(x.nextafter(x), x));
  EXPECT_TRUE(std::signbit(zeros({1}, {dtype_of<Half>()}).nextafter(-0.0).template item<float>()));
  EXPECT_TRUE(std::isnan(ones({1}, {dtype_of<Half>()}).nextafter(NAN).template item<float>()));
  EXPECT_EQ(full({1}, INFINITY, {dtype_of<Half>()}).nextafter(0.0).template item<float>(), float(huge));
  Tensor y = ones({1}, {dtype_of<Half>()});
  y.nextafter_(2.0);
  EXPECT_EQ(y.nextafter(0.0).template item<float>(), 1);
  EXPECT_EQ(y.dtype(), dtype_of<Half>());
}

// What beside a boolean is a number does not make one of it: ops of numbers refuse it, as PyTorch's do.
TEST(ErrorsBooleans, AreNoOperandsOfOpsOfNumbers) {
  Tensor b = tensor({true, false});
  const auto refused = [](const char* op, const auto& f) {
    const auto y = attempt(f);
    ASSERT_FALSE(y) << op;
    EXPECT_EQ(y.error().kind(), Error::Kind::dtype) << op;
    EXPECT_TRUE(std::string(y.error().what()).starts_with(std::string(op) + ": is not defined for booleans"))
        << y.error().what();
  };
  refused("hardtanh", [&] { return hardtanh(b); });
  refused("hardtanh", [&] { return hardtanh(b, 0, 1); });
  refused("hardtanh", [&] { return hardtanh(b, tensor({0.0}), tensor({1.0})); });
  refused("hardtanh", [&] { return nn::Hardtanh()(b); });
  refused("relu6", [&] { return relu6(b); });
  refused("threshold", [&] { return threshold(b, 1, 2); });
  refused("threshold", [&] { return threshold(b, 1.0, 2.0); });
  for (const double value : {0.0, 1.0, 3.0}) {
    refused("addcmul", [&] { return addcmul(b, b, b, value); });
    refused("addcmul_", [&] { return b.addcmul_(b, b, value); });
  }
  EXPECT_EQ(b.to_vector<bool>(), (std::vector<bool>{true, false}));
  const Tensor i = tensor({4, -5}), product = addcmul(i, b, b, 3);
  EXPECT_EQ(product.dtype(), i64);
  EXPECT_EQ(product.to_vector<int64_t>(), (std::vector<int64_t>{7, -5}));
  EXPECT_EQ(addcmul(b, i, i).to_vector<int64_t>(), (std::vector<int64_t>{17, 25}));
  EXPECT_EQ(hardtanh(i, -2, 3).to_vector<int64_t>(), (std::vector<int64_t>{3, -2}));
  EXPECT_EQ(threshold(i, 1, 2).to_vector<int64_t>(), (std::vector<int64_t>{4, 2}));
}

TEST(ValuesNextafter, OfHalves) {
  every_half_steps_to_its_neighbour<float16>(65504);
  every_half_steps_to_its_neighbour<bfloat16>(0x1.FEp127);
}

// From a library of arbitrary precision, at the f64 numbers nearest to those written.
TEST(ValuesAngles, DegreesAndRadians) {
  const Tensor degrees = tensor<double>({0, 90, -180, 360, 1}), radians = deg2rad(degrees);
  EXPECT_EQ(radians.to_vector<double>(), (std::vector<double>{0, M_PI / 2, -M_PI, 2 * M_PI, M_PI / 180}));
  EXPECT_TRUE(allclose(rad2deg(radians), degrees, {.rtol = 1e-15}));
  EXPECT_EQ(deg2rad(tensor({180})).dtype(), default_dtype());
}

TEST(ValuesXlogy, IsZeroWithTheFirstOperand) {
  Tensor a = tensor<double>({0, 0, 0, 2, 2, -1, 0}, {.requires_grad = true});
  const Tensor b = tensor<double>({0, -1, INFINITY, 0, 3, 0.5, NAN}), y = xlogy(a, b);
  const Tensor expected = tensor<double>({0, 0, 0, -INFINITY, 2 * std::log(3), -std::log(0.5)});
  EXPECT_TRUE(allclose(y.narrow(0, 0, 6), expected, {.rtol = 1e-15}));
  EXPECT_TRUE(std::isnan(y[6].item<double>()));
  const Tensor slope = tensor<double>({0, 0, INFINITY, -INFINITY, std::log(3), std::log(0.5)});
  EXPECT_TRUE(allclose(grad(y.sum(), a).narrow(0, 0, 6), slope, {.rtol = 1e-15}));
  EXPECT_EQ(xlogy(2, tensor({1, 1})).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(ValuesPolygamma, OfHigherOrders) {
  const struct {
    int64_t n;
    double x, y;
  } known[] = {
      {3, 0.5, 97.409091034002437},      {3, 1.0, 6.4939394022668291},        {3, -2.25, 1558.4550231887143},
      {4, 2.5, -0.31375599950673136},    {4, -7.875, -786397.99371225562},    {5, 0.125, 31457340.659602646},
      {7, 10.0, 0.00010051111598689363}, {10, -2.25, 15220204740659.353},     {10, 100.0, -3.8135655355681382e-15},
      {30, 3.5, -3611857616302858.1},    {100, 1.5, -1.5303349262176004e+140}};
  for (const auto& k : known) {
    const double y = polygamma(k.n, tensor<double>({k.x})).item<double>();
    EXPECT_NEAR(y / k.y, 1, 2e-14) << k.n << " at " << k.x;
    const float narrow = polygamma(k.n, tensor<float>({float(k.x)})).item<float>();
    EXPECT_FLOAT_EQ(narrow, float(y)) << k.n << " at " << k.x;
  }
  EXPECT_EQ(polygamma(3, tensor<double>({0.0})).item<double>(), INFINITY);
  EXPECT_EQ(polygamma(4, tensor<double>({-2.0})).item<double>(), -INFINITY);
  EXPECT_EQ(polygamma(3, tensor<double>({INFINITY})).item<double>(), 0);
  EXPECT_TRUE(std::isnan(polygamma(3, tensor<double>({NAN})).item<double>()));
  EXPECT_TRUE(std::isnan(polygamma(3, tensor<double>({-INFINITY})).item<double>()));
}

TEST(ValuesPolygamma, LowOrdersAreTheNamedFunctions) {
  const Tensor x = tensor({0.3, 1.5, -2.25, 40.0});
  EXPECT_TRUE(equal(polygamma(0, x), digamma(x)));
  EXPECT_TRUE(equal(polygamma(1, x), trigamma(x)));
  EXPECT_TRUE(equal(polygamma(2, x), polygamma2(x)));
  expect_refused([&] { return polygamma(-1, x); }, "polygamma: the order -1 is not between 0 and 170");
  EXPECT_THROW((void)polygamma(3, Tensor()), Error);
}

TEST(AutogradPolygamma, LgammaHasEveryDerivative) {
  Tensor x = tensor<double>({0.7, 2.5, -0.4}, {.requires_grad = true});
  Tensor y = lgamma(x);
  for (int64_t order = 0; order < 6; ++order) {
    y = grad(y.sum(), x, {.create_graph = true});
    EXPECT_TRUE(allclose(y, polygamma(order, x), {.rtol = 1e-13})) << order;
  }
}

// A formula of one's own has the derivatives of the ops it is made of, at ties and at 0 too.
struct StableSoftplus {
  static constexpr auto name = "stable_softplus";
  template <class T> static constexpr T f(T x) {
    using namespace scalar;
    return max(x, T(0)) + log1p(exp(-abs(x)));
  }
};
struct OwnMaximum {
  static constexpr auto name = "own_maximum";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return max(a, b);
  }
};
struct OwnMinimum {
  static constexpr auto name = "own_minimum";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return min(a, b);
  }
};
struct OwnPow {
  static constexpr auto name = "own_pow";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return pow(a, b);
  }
};
struct OwnAtan2 {
  static constexpr auto name = "own_atan2";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return atan2(a, b);
  }
};

TEST(PointwiseOwn, DerivativesAtTiesAndZeros) {
  const Tensor zero = tensor<double>({0.0}).requires_grad_();
  EXPECT_DOUBLE_EQ(grad(pointwise<StableSoftplus>(zero).sum(), zero).item<double>(), 0.5);
  EXPECT_TRUE(gradcheck([](const Tensor& x) { return pointwise<StableSoftplus>(x); }, zero));
  const auto expect_alike = [](auto own, auto ours, double a, double b) {
    const Tensor x = tensor<double>({a}).requires_grad_(), y = tensor<double>({b}).requires_grad_();
    const auto got = grad(own(x, y).sum(), {x, y}), wanted = grad(ours(x, y).sum(), {x, y});
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(got[i].template item<double>(), wanted[i].template item<double>()) << a << ' ' << b;
  };
  for (const double a : {0.0, 2.0, -1.0})
    for (const double b : {0.0, 2.0, -1.0}) {
      expect_alike([](auto& x, auto& y) { return pointwise<OwnMaximum>(x, y); },
                   [](auto& x, auto& y) { return maximum(x, y); }, a, b);
      expect_alike([](auto& x, auto& y) { return pointwise<OwnMinimum>(x, y); },
                   [](auto& x, auto& y) { return minimum(x, y); }, a, b);
      expect_alike([](auto& x, auto& y) { return pointwise<OwnAtan2>(x, y); },
                   [](auto& x, auto& y) { return atan2(x, y); }, a, b);
    }
  for (const auto& [a, b] : {std::pair{0.0, 2.0}, {0.0, 0.0}, {2.0, 0.0}, {3.0, -1.5}})
    expect_alike([](auto& x, auto& y) { return pointwise<OwnPow>(x, y); }, [](auto& x, auto& y) { return pow(x, y); },
                 a, b);
}

// What an operand does not move has no share in its gradient, however steep the formula is there.
struct RootTimes {
  static constexpr auto name = "root_times";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return sqrt(a) * b;
  }
};
struct QuotientTimes {
  static constexpr auto name = "quotient_times";
  template <class T> static constexpr T f(T a, T b, T c) { return a / b + c; }
};
struct Steep {
  static constexpr auto name = "steep";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return asin(a) + pow(abs(a - T(1)), b) + square(b);
  }
};
struct FlooredPower {
  static constexpr auto name = "floored_power";
  template <class T> static constexpr T f(T a, T b) {
    using namespace scalar;
    return pow(a, floor(b)) + pow(a, square(b));
  }
};

// The switch to composed forms reaches ops of users: their formulas then run as expressions of tensors, both ways.
TEST(PointwiseOwn, ComposedWhereFusedLoopsAreOff) {
  const Tensor x = tensor({-1.5, 0.25, 3.0}, {.dtype = f64}).requires_grad_(),
               y = tensor({0.5, 0.25, -2.0}, {.dtype = f64});
  const auto run = [&](bool fused, std::vector<std::string>& kernels) {
    use_fused_loops = fused;
    const Profiler p;
    const Tensor z = pointwise<StableSoftplus>(x) + pointwise<OwnMaximum>(x, y);
    const Tensor g = grad(z.square().sum(), x);
    use_fused_loops = true;
    for (const ProfileRow& r : p.rows())
      if (r.kind == "op") kernels.push_back(r.name);
    return cat({z.detach(), g});
  };
  const auto owns = [](const std::vector<std::string>& kernels) {
    return std::count_if(kernels.begin(), kernels.end(), [](const std::string& name) {
      return name.starts_with("own_maximum") || name.starts_with("stable_softplus");
    });
  };
  std::vector<std::string> fused, composed;
  EXPECT_TRUE(allclose(run(true, fused), run(false, composed), {.rtol = 1e-14, .atol = 1e-14}));
  EXPECT_EQ(owns(fused), 4);  // two kernels, and their backwards
  EXPECT_EQ(owns(composed), 0);
}

TEST(PointwiseOwn, OperandsThatStandStillHaveNoShare) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto gradient = [](const auto& op, const std::vector<double>& x, size_t by, bool create) {
    std::vector<Tensor> operands;
    for (const double value : x) operands.push_back(tensor<double>({value}));
    operands[by].requires_grad_();
    return grad(op(operands).sum(), operands[by], {.create_graph = create}).template item<double>();
  };
  for (const bool create : {false, true}) {
    const auto root = [](auto& x) { return pointwise<RootTimes>(x[0], x[1]); };
    EXPECT_EQ(gradient(root, {0, 3}, 1, create), 0);
    EXPECT_EQ(gradient(root, {0, 3}, 0, create), infinity);
    EXPECT_EQ(gradient(root, {4, infinity}, 1, create), 2);
    const auto quotient = [](auto& x) { return pointwise<QuotientTimes>(x[0], x[1], x[2]); };
    EXPECT_EQ(gradient(quotient, {0, 0, 3}, 2, create), 1);
    EXPECT_EQ(gradient(quotient, {1, 0, 3}, 0, create), infinity);
    const auto steep = [](auto& x) { return pointwise<Steep>(x[0], x[1]); };
    EXPECT_EQ(gradient(steep, {1, 0.5}, 1, create), 1);
    const auto floored = [](auto& x) { return pointwise<FlooredPower>(x[0], x[1]); };
    EXPECT_EQ(gradient(floored, {2, 0}, 1, create), 0);
  }
  // Where an operand's share is 0 at one point alone, its second derivative is not lost.
  const Tensor b = tensor<double>({0.0}).requires_grad_();
  const Tensor first = grad(pointwise<FlooredPower>(tensor<double>({2.0}), b).sum(), b, {.create_graph = true});
  EXPECT_NEAR(grad(first.sum(), b).item<double>(), 2 * std::log(2.0), 1e-15);
}

// A result stored in a narrow dtype has gradients in the dtype its operands meet in.
TEST(PointwiseInPlace, GradientsOfWiderOperands) {
  const Tensor x = full({2}, 0.3, {.dtype = f16, .requires_grad = true});
  const Tensor y = tensor<double>({1.7, 0.9}).requires_grad_(), wide = x.detach().to(f64);
  const auto expect_near = [&](const Tensor& result, const Tensor& exact) {
    const Tensor g = grad(result.sum(), y), e = grad(exact.sum(), y);
    EXPECT_TRUE(allclose(g, e, {.rtol = 1e-12})) << g << e;
  };
  for (const bool create : {false, true}) {
    Tensor divided = x * 1, powered = x * 1;
    divided.div_(y);
    EXPECT_TRUE(allclose(grad(divided.sum(), y, {.create_graph = create}), grad((wide / y).sum(), y), {.rtol = 1e-12}));
    powered.pow_(y);
    EXPECT_TRUE(
        allclose(grad(powered.sum(), y, {.create_graph = create}), grad(pow(wide, y).sum(), y), {.rtol = 1e-12}));
  }
  expect_near((x * 1).atan2_(y), atan2(wide, y));
  expect_near((x * 1).hypot_(y), hypot(wide, y));
  EXPECT_EQ(grad((x * 1).mul_(y).sum(), x).dtype(), f16);
  EXPECT_TRUE(allclose(addr(full({2, 2}, 0.1), y.detach(), y.detach(), 0.3),
                       full({2, 2}, 0.1).to(f64) * 0.3 + outer(y, y), {.rtol = 1e-15}));
}

}  // namespace
}  // namespace volta

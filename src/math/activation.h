// Pointwise activations. One struct is one op; see unary.h for how to read one.
#pragma once
#include "math/unary.h"

namespace volta::scalar {
class TensorExpr;
}

namespace volta::point {

// A formula read as an expression of tensors takes the whole op where |x| in its parts would lose derivatives at 0.
template <class T>
concept Expression = std::same_as<T, scalar::TensorExpr>;

struct Relu : Op<Numeric, "relu", "max(x, 0); the gradient at 0 is 0"> {
  template <class T> static constexpr T f(T x) { return max(x, T(0)); }
  template <class T> static constexpr T back(T g, T, T y) { return select(y <= T(0), T(0), g); }
};
struct Relu6 : Op<Numeric, "relu6", "min(max(x, 0), 6)"> {
  template <class T> static constexpr T f(T x) { return min(max(x, T(0)), T(6)); }
  template <class T> static constexpr T back(T g, T, T y) { return select((y > T(0)) & (y < T(6)), g, T(0)); }
};
struct LeakyRelu : Op<Floating, "leaky_relu", "x above 0, slope * x below", "x, negative_slope = 0.01"> {
  template <class T> static constexpr T f(T x, T slope) { return select(x > T(0), x, x * slope); }
  template <class T> static constexpr T back0(T g, T x, T slope, T) { return select(x > T(0), g, g * slope); }
  template <class T> static constexpr T back1(T g, T x, T, T) { return select(x > T(0), T(0), g * x); }
};
struct Elu : Op<Floating, "elu", "x above 0, alpha * (e^x - 1) below", "x, alpha = 1.0"> {
  template <class T> static constexpr T f(T x, T alpha) { return select(x > T(0), x, alpha * expm1(min(T(0), x))); }
  template <class T> static constexpr T back0(T g, T x, T alpha, T) {
    return select(x > T(0), g, g * alpha * exp(min(x, T(0))));
  }
  template <class T> static constexpr T back1(T g, T x, T, T) {
    return select(x > T(0), T(0), g * expm1(min(x, T(0))));
  }
};
struct Selu : Op<Floating, "selu", "scaled elu with self-normalising constants"> {
  static constexpr double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
  template <class T> static constexpr T f(T x) { return T(scale) * Elu::f(x, T(alpha)); }
  template <class T> static constexpr T back(T g, T x, T y) { return Elu::back0(g * T(scale), x, T(alpha), y); }
};
struct Celu : Op<Floating, "celu", "max(x, 0) + min(0, alpha * (e^(x / alpha) - 1))", "x, alpha = 1.0"> {
  template <class T> static constexpr T f(T x, T alpha) {
    return select(x > T(0), x, alpha * expm1(min(T(0), x) / alpha));
  }
  template <class T> static constexpr T back0(T g, T x, T alpha, T) {
    return select(x > T(0), g, g * exp(min(x, T(0)) / alpha));
  }
  template <class T> static constexpr T back1(T g, T x, T alpha, T) {
    const T z = min(x, T(0)) / alpha;
    return select(x > T(0), T(0), g * (expm1(z) - z * exp(z)));
  }
};
struct Sigmoid : Op<Floating, "sigmoid", "1 / (1 + e^-x), without overflow"> {
  template <class T> static constexpr T from(T x, T e) { return select(x > T(0), T(1), e) / (T(1) + e); }
  template <class T> static constexpr T f(T x) {
    if constexpr (Expression<T>) return sigmoid(x);
    else return from(x, exp(neg(abs(x))));
  }
  template <Real T> static constexpr T near_limit = exp_limit<T>;
  template <Real T> static constexpr T near(T x) { return from(x, exp_near(-abs(x))); }
  template <class T> static constexpr T back(T g, T, T y) { return g * y * (T(1) - y); }
};
struct Silu : Op<Floating, "silu", "x * sigmoid(x)"> {
  template <class T> static constexpr T f(T x) { return x * Sigmoid::f(x); }
  template <Real T> static constexpr T near_limit = exp_limit<T>;
  template <Real T> static constexpr T near(T x) { return x * Sigmoid::near(x); }
  template <class T> static constexpr T back(T g, T x, T) {
    const T s = Sigmoid::f(x);
    return g * s * (T(1) + x * (T(1) - s));
  }
};
struct Softplus : Op<Floating, "softplus", "log(1 + e^(beta x)) / beta, x itself above the threshold",
                     "x, beta = 1.0, threshold = 20.0"> {
  template <class T> static constexpr T f(T x, T beta, T threshold) {
    const T z = x * beta;
    return select(z > threshold, x, (max(z, T(0)) + log1p(exp(neg(abs(z))))) / beta);
  }
  template <class T> static constexpr T back0(T g, T x, T beta, T threshold, T) {
    return select(x * beta > threshold, g, g * Sigmoid::f(x * beta));
  }
  template <class T> static constexpr T back1(T g, T x, T beta, T threshold, T y) {
    return select(x * beta > threshold, T(0), g * (x * Sigmoid::f(x * beta) - y) / beta);
  }
  template <class T> static constexpr T back2(T, T, T, T, T) { return T(0); }
};
struct Mish : Op<Floating, "mish", "x * tanh(softplus(x))"> {
  template <class T> static constexpr T softplus(T x) {
    if constexpr (Expression<T>) return neg(logsigmoid(neg(x)));
    else return max(x, T(0)) + log1p(exp(neg(abs(x))));
  }
  template <class T> static constexpr T f(T x) { return x * tanh(softplus(x)); }
  template <class T> static constexpr T back(T g, T x, T) {
    const T t = tanh(softplus(x));
    return g * (t + x * (T(1) - t * t) * Sigmoid::f(x));
  }
};
struct Gelu : Op<Floating, "gelu", "x * Phi(x), exact; gelu_tanh is the approximation"> {
  template <class T> static constexpr T cdf(T x) { return T(0.5) * (T(1) + erf(x * T(0.70710678118654752440))); }
  template <class T> static constexpr T f(T x) {
    if constexpr (Real<T>) return gelu(x);
    else return x * cdf(x);
  }
  template <class T> static constexpr T slope(T x) {
    return cdf(x) + x * T(0.39894228040143267794) * exp(T(-0.5) * x * x);
  }
  template <std::same_as<float> T> static constexpr T near_limit = normal_limit;
  template <FloatOrLanes T> static constexpr T near(T x) { return gelu_near(x); }
  template <FloatOrLanes T> static constexpr T near_back(T g, T x, T) { return g * gelu_slope_near(x); }
  template <class T> static constexpr T back(T g, T x, T) {
    if constexpr (std::same_as<T, float>) return g * select(abs(x) <= normal_limit, gelu_slope_near(x), slope(x));
    else return g * slope(x);
  }
};
struct GeluTanh : Op<Floating, "gelu_tanh", "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"> {
  template <class T> static constexpr T f(T x) {
    return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
  template <class T> static constexpr T back(T g, T x, T) {
    const T k = T(0.79788456080286535588), t = tanh(k * (x + T(0.044715) * x * x * x));
    return g * T(0.5) * (T(1) + t + x * (T(1) - t * t) * k * (T(1) + T(0.134145) * x * x));
  }
};
struct Softsign : Op<Floating, "softsign", "x / (1 + |x|)"> {
  template <class T> static constexpr T f(T x) { return x / (T(1) + abs(x)); }
  template <class T> static constexpr T back(T g, T x, T) {
    const T d = T(1) + abs(x);
    return g / (d * d);
  }
};
struct Hardtanh : Op<Numeric, "hardtanh", "x clamped to [min_val, max_val]", "x, min_val = -1.0, max_val = 1.0"> {
  template <class T> static constexpr T f(T x, T low, T high) { return min(max(x, low), high); }
  template <class T> static constexpr T back0(T g, T x, T low, T high, T) {
    return select((x > low) & (x < high), g, T(0));
  }
  template <class T> static constexpr T back1(T g, T x, T low, T high, T) {
    return select((x <= low) & (low < high), g, T(0));
  }
  template <class T> static constexpr T back2(T g, T x, T low, T high, T) {
    return select((x >= high) | (low >= high), g, T(0));
  }
};
struct Hardsigmoid : Op<Floating, "hardsigmoid", "clamp(x / 6 + 1/2, 0, 1)"> {
  template <class T> static constexpr T f(T x) { return min(max(x + T(3), T(0)), T(6)) / T(6); }
  template <class T> static constexpr T back(T g, T x, T) { return select((x > T(-3)) & (x < T(3)), g / T(6), T(0)); }
};
struct Hardswish : Op<Floating, "hardswish", "x * hardsigmoid(x)"> {
  template <class T> static constexpr T f(T x) { return x * min(max(x + T(3), T(0)), T(6)) / T(6); }
  template <class T> static constexpr T back(T g, T x, T) {
    return g * select(x <= T(-3), T(0), select(x >= T(3), T(1), (x + x + T(3)) / T(6)));
  }
};
struct LogSigmoid : Op<Floating, "logsigmoid", "log(sigmoid(x)), stable"> {
  template <class T> static constexpr T f(T x) { return min(x, T(0)) - log1p(exp(neg(abs(x)))); }
  template <class T> static constexpr T back(T g, T x, T) { return g * Sigmoid::f(neg(x)); }
};
struct Threshold
    : Op<Numeric, "threshold", "x above the threshold, value elsewhere; NaN stays NaN", "x, threshold, value"> {
  template <class T> static constexpr T f(T x, T level, T value) { return select(x <= level, value, x); }
  template <class T> static constexpr T back0(T g, T x, T level, T, T) { return select(x <= level, T(0), g); }
  template <class T> static constexpr T back1(T, T, T, T, T) { return T(0); }
  template <class T> static constexpr T back2(T g, T x, T level, T, T) { return select(x <= level, g, T(0)); }
};
struct Tanhshrink : Op<Floating, "tanhshrink", "x - tanh(x)"> {
  // Near 0, where the difference would cancel, its series.
  template <class T> static constexpr T f(T x) {
    const T s = x * x;
    const T small = s * (T(17.0 / 315) - s * (T(62.0 / 2835) - s * (T(1382.0 / 155925) - s * T(21844.0 / 6081075))));
    return select(s < T(0.01), x * s * (T(1.0 / 3) - s * (T(2.0 / 15) - small)), x - tanh(x));
  }
  template <class T> static constexpr T back(T g, T x, T) {
    const T t = tanh(x);
    return g * t * t;
  }
};
struct Softshrink : Op<Floating, "softshrink", "x moved toward 0 by lambda, 0 within it", "x, lambda = 0.5"> {
  template <class T> static constexpr T f(T x, T lambda) {
    return select(x > lambda, x - lambda, select(x < neg(lambda), x + lambda, select(x == x, T(0), x)));
  }
  template <class T> static constexpr T back0(T g, T x, T lambda, T) { return select(abs(x) > lambda, g, T(0)); }
  template <class T> static constexpr T back1(T g, T x, T lambda, T) {
    return select(x > lambda, neg(g), select(x < neg(lambda), g, T(0)));
  }
};
struct Hardshrink : Op<Floating, "hardshrink", "x outside [-lambda, lambda], 0 within", "x, lambda = 0.5"> {
  template <class T> static constexpr T f(T x, T lambda) { return select(abs(x) <= lambda, T(0), x); }
  template <class T> static constexpr T back0(T g, T x, T lambda, T) { return select(abs(x) > lambda, g, T(0)); }
  template <class T> static constexpr T back1(T, T, T, T) { return T(0); }
};
struct Logit : Op<Floating, "logit", "log(x / (1 - x))"> {
  template <class T> static constexpr T f(T x) { return log(x) - log1p(neg(x)); }
  template <class T> static constexpr T back(T g, T x, T) { return g / (x * (T(1) - x)); }
};

using ActivationOps =
    List<Relu, Relu6, LeakyRelu, Elu, Selu, Celu, Sigmoid, Silu, Softplus, Mish, Gelu, GeluTanh, Softsign, Hardtanh,
         Hardsigmoid, Hardswish, LogSigmoid, Threshold, Tanhshrink, Softshrink, Hardshrink, Logit>;

}  // namespace volta::point

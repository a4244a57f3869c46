// The update rules of the optimizers, once: from this list come the CPU and CUDA kernels. A rule changes one element x of a
// parameter and its state s, given the gradient g and the constants c of the step.
#pragma once
#include <volta/op_traits.h>
#include <volta/scalar.h>
#include <volta/update_rule.h>

#include "math/inner.h"

namespace volta::update {

using scalar::abs;
using scalar::max;
using scalar::pow;
using scalar::select;
using scalar::sign;
using scalar::sqrt;

template <int Constants, int States> struct Rule { static constexpr int constants = Constants, states = States; };

struct Sgd : Rule<2, 0> {  // lr, weight decay
  static constexpr auto name = "SGD";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T*) {
    x = x - c[0] * (g + c[1] * x);
  }
};

struct Momentum
    : Rule<6, 1> {  // lr, weight decay, momentum, share of the gradient in the buffer; of gradient, of buffer
  static constexpr auto name = "SGD";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = c[2] * s[0] + c[3] * d;
    x = x - c[0] * (c[4] * d + c[5] * s[0]);
  }
};

// Weight decay in the gradient, factor of the weights, 1 - beta1, beta2, 1 - beta2.
template <class T> [[gnu::always_inline]] VOLTA_HD inline T moments(const T* c, const T& x, const T& g, T* s) {
  const T d = g + c[0] * x;
  s[0] = s[0] + c[2] * (d - s[0]);
  s[1] = c[3] * s[1] + c[4] * d * d;
  return d;
}

// Constants: moments, root of the correction of squares (5), eps, step size (7), learning rate (8), number of steps (9).
// Where only the device knows how many steps were taken, it computes 5 and 7 anew from 8 and that number.
template <int States> struct CountedRule : Rule<10, States> {
  static constexpr int count = 9;
  template <class T> VOLTA_HD static void recount(T* c, const T& taken) {
    c[5] = sqrt(T(1) - pow(c[3], taken));
    c[7] = c[8] / (T(1) - pow(T(1) - c[2], taken));
  }
};

struct Adam : CountedRule<2> {
  static constexpr auto name = "Adam";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    moments(c, x, g, s);
    x = c[1] * x - c[7] * s[0] / (sqrt(s[1]) / c[5] + c[6]);
  }
};

struct Amsgrad : CountedRule<3> {
  static constexpr auto name = "Adam";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    moments(c, x, g, s);
    s[2] = max(s[2], s[1]);
    x = c[1] * x - c[7] * s[0] / (sqrt(s[2]) / c[5] + c[6]);
  }
};

struct NAdam : Rule<9, 2> {  // moments, correction of squares, eps, factors of the gradient and of the mean
  static constexpr auto name = "NAdam";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = moments(c, x, g, s);
    x = c[1] * x - (c[7] * d + c[8] * s[0]) / (sqrt(s[1] / c[5]) + c[6]);
  }
};

struct RAdam : Rule<8, 2> {  // moments, floor and factor of the root, step
  static constexpr auto name = "RAdam";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    moments(c, x, g, s);
    x = c[1] * x - c[7] * s[0] / (c[6] * sqrt(s[1]) + c[5]);
  }
};

struct Adamax : Rule<5, 2> {  // weight decay, 1 - beta1, beta2, eps, step
  static constexpr auto name = "Adamax";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[0] * x;
    s[0] = s[0] + c[1] * (d - s[0]);
    s[1] = max(c[2] * s[1], abs(d) + c[3]);
    x = x - c[4] * s[0] / s[1];
  }
};

struct RmsProp : Rule<6, 1> {  // lr, weight decay, alpha, 1 - alpha, eps, momentum
  static constexpr auto name = "RMSprop";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = c[2] * s[0] + c[3] * d * d;
    x = x - c[0] * d / (sqrt(s[0]) + c[4]);
  }
};

struct RmsPropMomentum : Rule<6, 2> {
  static constexpr auto name = "RMSprop";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = c[2] * s[0] + c[3] * d * d;
    s[1] = c[5] * s[1] + d / (sqrt(s[0]) + c[4]);
    x = x - c[0] * s[1];
  }
};

struct RmsPropCentered : Rule<6, 3> {
  static constexpr auto name = "RMSprop";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = c[2] * s[0] + c[3] * d * d;
    s[2] = s[2] + c[3] * (d - s[2]);
    s[1] = c[5] * s[1] + d / (sqrt(s[0] - s[2] * s[2]) + c[4]);
    x = x - c[0] * s[1];
  }
};

struct Adagrad : Rule<3, 1> {  // lr, weight decay, eps
  static constexpr auto name = "Adagrad";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = s[0] + d * d;
    x = x - c[0] * d / (sqrt(s[0]) + c[2]);
  }
};

struct Adadelta : Rule<5, 2> {  // lr, weight decay, rho, 1 - rho, eps
  static constexpr auto name = "Adadelta";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T d = g + c[1] * x;
    s[0] = c[2] * s[0] + c[3] * d * d;
    const T change = sqrt(s[1] + c[4]) / sqrt(s[0] + c[4]) * d;
    s[1] = c[2] * s[1] + c[3] * change * change;
    x = x - c[0] * change;
  }
};

struct Lion : Rule<6, 1> {  // lr, factor of the weights, beta1, 1 - beta1, beta2, 1 - beta2
  static constexpr auto name = "Lion";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    x = c[1] * x - c[0] * sign(c[2] * s[0] + c[3] * g);
    s[0] = c[4] * s[0] + c[5] * g;
  }
};

struct Asgd : Rule<4, 1> {  // weight decay, factor of the weights, step, share of the new weights in the mean
  static constexpr auto name = "ASGD";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    x = c[1] * x - c[2] * (g + c[0] * x);
    s[0] = s[0] + c[3] * (x - s[0]);
  }
};

struct Rprop : Rule<4, 2> {  // factors where the sign changed and where it stayed, least and largest step
  static constexpr auto name = "Rprop";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    const T turn = g * s[0];
    const T size = s[1] * select(turn > T(0), c[1], select(turn < T(0), c[0], T(1)));
    s[1] = select(size < c[2], c[2], select(size > c[3], c[3], size));
    s[0] = select(turn < T(0), T(0), g);
    x = x - sign(s[0]) * s[1];
  }
};

struct Lamb : Rule<7, 3> {  // 1 - beta1, beta2, 1 - beta2, both corrections, eps, weight decay; s[2] is the direction
  static constexpr auto name = "LAMB";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T* s) {
    s[0] = s[0] + c[0] * (g - s[0]);
    s[1] = c[1] * s[1] + c[2] * g * g;
    s[2] = s[0] / c[3] / (sqrt(s[1] / c[4]) + c[5]) + c[6] * x;
  }
};

struct ScaledStep : Rule<2, 0> {  // factors of the weights and of the direction
  static constexpr auto name = "Muon";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T*) {
    x = c[0] * x - c[1] * g;
  }
};

struct Average : Rule<1, 0> {  // share of the new value
  static constexpr auto name = "average";
  template <class T> [[gnu::always_inline]] VOLTA_HD static void f(const T* c, T& x, const T& g, T*) {
    x = x + c[0] * (g - x);
  }
};

}  // namespace volta::update

namespace volta {

using UpdateRules =
    List<update::Sgd, update::Momentum, update::Adam, update::Amsgrad, update::NAdam, update::RAdam, update::Adamax,
         update::RmsProp, update::RmsPropMomentum, update::RmsPropCentered, update::Adagrad, update::Adadelta,
         update::Lion, update::Asgd, update::Rprop, update::Lamb, update::ScaledStep, update::Average>;

template <class Rule>
inline constexpr UpdateRule update_rule = {Rule::name, index_of<Rule>(UpdateRules{}), Rule::constants, Rule::states};

}  // namespace volta

// The optimizers whose update is a formula for one element.
#include <cmath>

#include <volta/create.h>
#include <volta/optim/algorithms.h>
#include <volta/optim/one_pass.h>
#include <volta/scalar.h>

#include "optim/adam_step.h"

namespace volta::optim {
namespace {

// In the formulas these names mean one number; on tensors argument-dependent lookup finds the op.
using scalar::abs;
template <scalar::Real T> T maximum(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
using scalar::sign;
using scalar::sqrt;

double correction(double beta, int64_t step) { return 1 - std::pow(beta, double(step)); }

}  // namespace

SGD::SGD(Params params, const Options& o)
    : Optimizer("SGD", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum},
                {"momentum_buffer"}, o.maximize),
      options_(o) {
  if (!std::isfinite(o.dampening)) throw_error("dampening must be finite, not " + std::to_string(o.dampening));
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) throw_error("nesterov needs momentum and no dampening");
  save_setting("dampening", &options_.dampening);
  save_setting("nesterov", &options_.nesterov);
}

void SGD::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  if (group.momentum == 0) {
    one_pass(p, g, std::array{group.lr, group.weight_decay}, [](const auto& c, auto& x, const auto& grad) {
      const auto& [lr, decay] = c;
      x = x - lr * (grad + decay * x);
    });
    return;
  }
  const bool first = state.slots.empty();
  const double take = first ? 1 : 1 - options_.dampening;
  const double of_gradient = options_.nesterov ? 1 : 0, of_buffer = options_.nesterov ? group.momentum : 1;
  one_pass(
      p, g, std::array{group.lr, group.weight_decay, group.momentum, take, of_gradient, of_buffer},
      [](const auto& c, auto& x, const auto& grad, auto& buffer) {
        const auto& [lr, decay, keep, add, now, smooth] = c;
        const auto d = grad + decay * x;
        buffer = keep * buffer + add * d;
        x = x - lr * (now * d + smooth * buffer);
      },
      state.at(0, p));
}

Adam::Adam(std::string name, Params params, const Options& o, bool decoupled)
    : Optimizer(std::move(name), std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, o.maximize),
      options_(o),
      decoupled_(decoupled) {
  save_setting("amsgrad", &options_.amsgrad);
}

void Adam::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const double decay = group.weight_decay;
  adam_step(p, g, state,
            {0, group.lr, decoupled_ ? 0 : decay, decoupled_ ? 1 - group.lr * decay : 1, group.eps, group.betas,
             options_.amsgrad});
}

void adam_step(const Tensor& p, const Tensor& g, State& state, const AdamStep& s) {
  const auto [b1, b2] = s.betas;
  const std::array constants{s.into_gradient, s.shrink,
                             1 - b1,          b2,
                             1 - b2,          std::sqrt(correction(b2, state.step)),
                             s.eps,           s.lr / correction(b1, state.step)};
  state.at(s.slot + s.amsgrad + 1, p);  // the last slot first: making one may move the others
  const auto slot = [&](size_t i) -> Tensor& { return state.at(s.slot + i, p); };
  if (s.amsgrad) {
    one_pass(
        p, g, constants,
        [](const auto& c, auto& x, const auto& grad, auto& m, auto& v, auto& most) {
          const auto& [decay, keep, mix, beta2, add, root, eps, step] = c;
          const auto d = grad + decay * x;
          m = m + mix * (d - m);
          v = beta2 * v + add * d * d;
          most = maximum(most, v);
          x = keep * x - step * m / (sqrt(most) / root + eps);
        },
        slot(0), slot(1), slot(2));
    return;
  }
  one_pass(
      p, g, constants,
      [](const auto& c, auto& x, const auto& grad, auto& m, auto& v) {
        const auto& [decay, keep, mix, beta2, add, root, eps, step] = c;
        const auto d = grad + decay * x;
        m = m + mix * (d - m);
        v = beta2 * v + add * d * d;
        x = keep * x - step * m / (sqrt(v) / root + eps);
      },
      slot(0), slot(1));
}

Adamax::Adamax(Params params, const Options& o)
    : Optimizer("Adamax", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_inf"}, o.maximize) {}

void Adamax::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  state.at(1, p);
  one_pass(
      p, g, std::array{group.weight_decay, 1 - b1, b2, group.eps, group.lr / correction(b1, state.step)},
      [](const auto& c, auto& x, const auto& grad, auto& m, auto& largest) {
        const auto& [decay, mix, beta2, eps, step] = c;
        const auto d = grad + decay * x;
        m = m + mix * (d - m);
        largest = maximum(beta2 * largest, abs(d) + eps);
        x = x - step * m / largest;
      },
      state.at(0, p), state.at(1, p));
}

NAdam::NAdam(Params params, const Options& o)
    : Optimizer("NAdam", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq", "mu_product"}, o.maximize),
      options_(o) {
  require_number("momentum_decay", o.momentum_decay);
  save_setting("momentum_decay", &options_.momentum_decay);
  save_setting("decoupled_weight_decay", &options_.decoupled_weight_decay);
}

void NAdam::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  const auto mu_at = [&, beta = b1](int64_t step) {
    return beta * (1 - 0.5 * std::pow(0.96, double(step) * options_.momentum_decay));
  };
  const double mu = mu_at(state.step), mu_next = mu_at(state.step + 1);
  state.at(1, p);
  if (state.slots.size() < 3) state.slots.push_back(tensor<double>(1));
  const double product = state.slots[2].item<double>() * mu;
  state.slots[2] = tensor<double>(product);
  const bool decoupled = options_.decoupled_weight_decay;
  one_pass(
      p, g,
      std::array{decoupled ? 0 : group.weight_decay, decoupled ? 1 - group.lr * group.weight_decay : 1, 1 - b1, b2,
                 1 - b2, correction(b2, state.step), group.eps, group.lr * (1 - mu) / (1 - product),
                 group.lr * mu_next / (1 - product * mu_next)},
      [](const auto& c, auto& x, const auto& grad, auto& m, auto& v) {
        const auto& [decay, keep, mix, beta2, add, correct, eps, of_gradient, of_mean] = c;
        const auto d = grad + decay * x;
        m = m + mix * (d - m);
        v = beta2 * v + add * d * d;
        x = keep * x - (of_gradient * d + of_mean * m) / (sqrt(v / correct) + eps);
      },
      state.at(0, p), state.at(1, p));
}

RAdam::RAdam(Params params, const Options& o)
    : Optimizer("RAdam", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq"}, o.maximize),
      options_(o) {
  save_setting("decoupled_weight_decay", &options_.decoupled_weight_decay);
}

void RAdam::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  const double c1 = correction(b1, state.step), c2 = correction(b2, state.step);
  // The variance of the adaptive rate is finite, and then rectified, once the average is long enough.
  const double longest = 2 / (1 - b2) - 1, length = longest - 2 * double(state.step) * (1 - c2) / c2;
  const bool adaptive = length > 5;
  const double rectifier =
      adaptive ? std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) : 1;
  const bool decoupled = options_.decoupled_weight_decay;
  state.at(1, p);
  one_pass(
      p, g,
      std::array{decoupled ? 0 : group.weight_decay, decoupled ? 1 - group.lr * group.weight_decay : 1, 1 - b1, b2,
                 1 - b2, adaptive ? group.eps : 1., adaptive ? 1. : 0.,
                 group.lr / c1 * rectifier * (adaptive ? std::sqrt(c2) : 1)},
      [](const auto& c, auto& x, const auto& grad, auto& m, auto& v) {
        const auto& [decay, keep, mix, beta2, add, floor, weigh, step] = c;
        const auto d = grad + decay * x;
        m = m + mix * (d - m);
        v = beta2 * v + add * d * d;
        x = keep * x - step * m / (weigh * sqrt(v) + floor);
      },
      state.at(0, p), state.at(1, p));
}

RMSprop::RMSprop(Params params, const Options& o)
    : Optimizer("RMSprop", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum, .eps = o.eps},
                {"step", "square_avg", "momentum_buffer", "grad_avg"}, o.maximize),
      options_(o) {
  if (!(o.alpha >= 0 && o.alpha < 1)) throw_error("alpha must be in [0, 1), not " + std::to_string(o.alpha));
  save_setting("alpha", &options_.alpha);
  save_setting("centered", &options_.centered);
}

void RMSprop::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const std::array constants{group.lr,           group.weight_decay, options_.alpha,
                             1 - options_.alpha, group.eps,          group.momentum};
  if (options_.centered) {
    state.at(2, p);
    one_pass(
        p, g, constants,
        [](const auto& c, auto& x, const auto& grad, auto& square, auto& buffer, auto& mean) {
          const auto& [lr, decay, keep, add, eps, momentum] = c;
          const auto d = grad + decay * x;
          square = keep * square + add * d * d;
          mean = mean + add * (d - mean);
          buffer = momentum * buffer + d / (sqrt(square - mean * mean) + eps);
          x = x - lr * buffer;
        },
        state.at(0, p), state.at(1, p), state.at(2, p));
  } else if (group.momentum > 0) {
    state.at(1, p);
    one_pass(
        p, g, constants,
        [](const auto& c, auto& x, const auto& grad, auto& square, auto& buffer) {
          const auto& [lr, decay, keep, add, eps, momentum] = c;
          const auto d = grad + decay * x;
          square = keep * square + add * d * d;
          buffer = momentum * buffer + d / (sqrt(square) + eps);
          x = x - lr * buffer;
        },
        state.at(0, p), state.at(1, p));
  } else {
    one_pass(
        p, g, constants,
        [](const auto& c, auto& x, const auto& grad, auto& square) {
          const auto d = grad + c[1] * x;
          square = c[2] * square + c[3] * d * d;
          x = x - c[0] * d / (sqrt(square) + c[4]);
        },
        state.at(0, p));
  }
}

Adagrad::Adagrad(Params params, const Options& o)
    : Optimizer("Adagrad", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps},
                {"step", "sum"}, o.maximize),
      options_(o) {
  require_number("lr_decay", o.lr_decay);
  require_number("initial_accumulator_value", o.initial_accumulator_value);
  save_setting("lr_decay", &options_.lr_decay);
  save_setting("initial_accumulator_value", &options_.initial_accumulator_value);
}

void Adagrad::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const double lr = group.lr / (1 + double(state.step - 1) * options_.lr_decay);
  one_pass(
      p, g, std::array{lr, group.weight_decay, group.eps},
      [](const auto& c, auto& x, const auto& grad, auto& sum) {
        const auto& [step, decay, eps] = c;
        const auto d = grad + decay * x;
        sum = sum + d * d;
        x = x - step * d / (sqrt(sum) + eps);
      },
      state.at(0, p, options_.initial_accumulator_value));
}

Adadelta::Adadelta(Params params, const Options& o)
    : Optimizer("Adadelta", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps},
                {"step", "square_avg", "acc_delta"}, o.maximize),
      options_(o) {
  if (!(o.rho >= 0 && o.rho <= 1)) throw_error("rho must be in [0, 1], not " + std::to_string(o.rho));
  save_setting("rho", &options_.rho);
}

void Adadelta::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  state.at(1, p);
  one_pass(
      p, g, std::array{group.lr, group.weight_decay, options_.rho, 1 - options_.rho, group.eps},
      [](const auto& c, auto& x, const auto& grad, auto& square, auto& moved) {
        const auto& [lr, decay, keep, add, eps] = c;
        const auto d = grad + decay * x;
        square = keep * square + add * d * d;
        const auto change = sqrt(moved + eps) / sqrt(square + eps) * d;
        moved = keep * moved + add * change * change;
        x = x - lr * change;
      },
      state.at(0, p), state.at(1, p));
}

Lion::Lion(Params params, const Options& o)
    : Optimizer("Lion", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .betas = o.betas}, {"exp_avg"},
                o.maximize) {}

void Lion::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  one_pass(
      p, g,
      std::array{group.lr, 1 - group.lr * group.weight_decay, group.betas.first, 1 - group.betas.first,
                 group.betas.second, 1 - group.betas.second},
      [](const auto& c, auto& x, const auto& grad, auto& m) {
        const auto& [lr, keep, b1, a1, b2, a2] = c;
        x = keep * x - lr * sign(b1 * m + a1 * grad);
        m = b2 * m + a2 * grad;
      },
      state.at(0, p));
}

}  // namespace volta::optim

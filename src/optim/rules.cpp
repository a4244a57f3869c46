// The optimizers whose update is a formula for one element (src/math/update.h).
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/optim/algorithms.h>

#include "optim/update.h"

namespace volta::optim {
namespace {}  // namespace

SGD::SGD(Params params, const Options& o)
    : Optimizer("SGD", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum},
                {"momentum_buffer"}, o.maximize, o.master_weights),
      options_(o) {
  if (!std::isfinite(o.dampening)) throw_error("dampening must be finite, not " + std::to_string(o.dampening));
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) throw_error("nesterov needs momentum and no dampening");
  save_setting("dampening", &options_.dampening);
  save_setting("nesterov", &options_.nesterov);
}

void SGD::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  if (group.momentum == 0) return queue(update_rule<update::Sgd>, {group.lr, group.weight_decay}, p, g);
  const bool first = state.slots.empty();
  const double take = first ? 1 : 1 - options_.dampening;
  const double of_gradient = options_.nesterov ? 1 : 0, of_buffer = options_.nesterov ? group.momentum : 1;
  queue(update_rule<update::Momentum>, {group.lr, group.weight_decay, group.momentum, take, of_gradient, of_buffer}, p,
        g, {state.at(0, p)});
}

Adam::Adam(std::string name, Params params, const Options& o, bool decoupled)
    : Optimizer(std::move(name), std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, o.maximize, o.master_weights),
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

void Optimizer::adam_step(const Tensor& p, const Tensor& g, State& state, const AdamStep& s) {
  const auto [b1, b2] = s.betas;
  const auto slot = [&](size_t i) { return state.at(s.slot + i, p); };
  const UpdateConstants constants{s.into_gradient,
                                  s.shrink,
                                  1 - b1,
                                  b2,
                                  1 - b2,
                                  std::sqrt(bias_correction(b2, state.step)),
                                  s.eps,
                                  s.lr / bias_correction(b1, state.step),
                                  s.lr,
                                  double(state.step)};
  if (s.amsgrad) queue(update_rule<update::Amsgrad>, constants, p, g, {slot(0), slot(1), slot(2)});
  else queue(update_rule<update::Adam>, constants, p, g, {slot(0), slot(1)});
  if (skipped_.defined()) queued_->count(skipped_, state.skipped_before);
}

Adamax::Adamax(Params params, const Options& o)
    : Optimizer("Adamax", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_inf"}, o.maximize, o.master_weights) {}

void Adamax::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  queue(update_rule<update::Adamax>,
        {group.weight_decay, 1 - b1, b2, group.eps, group.lr / bias_correction(b1, state.step)}, p, g,
        {state.at(0, p), state.at(1, p)});
}

NAdam::NAdam(Params params, const Options& o)
    : Optimizer("NAdam", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq", "mu_product"}, o.maximize, o.master_weights),
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
  if (state.slots.size() < 3) state.slots.push_back(tensor<double>(1, {.device = Device()}));
  const double product = state.slots[2].item<double>() * mu;
  state.slots[2] = tensor<double>(product, {.device = Device()});
  const bool decoupled = options_.decoupled_weight_decay;
  queue(update_rule<update::NAdam>,
        {decoupled ? 0 : group.weight_decay, decoupled ? 1 - group.lr * group.weight_decay : 1, 1 - b1, b2, 1 - b2,
         bias_correction(b2, state.step), group.eps, group.lr * (1 - mu) / (1 - product),
         group.lr * mu_next / (1 - product * mu_next)},
        p, g, {state.at(0, p), state.at(1, p)});
}

RAdam::RAdam(Params params, const Options& o)
    : Optimizer("RAdam", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq"}, o.maximize, o.master_weights),
      options_(o) {
  save_setting("decoupled_weight_decay", &options_.decoupled_weight_decay);
}

void RAdam::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  const double c1 = bias_correction(b1, state.step), c2 = bias_correction(b2, state.step);
  // The variance of the adaptive rate is finite, and then rectified, once the average is long enough.
  const double longest = 2 / (1 - b2) - 1, length = longest - 2 * double(state.step) * (1 - c2) / c2;
  const bool adaptive = length > 5;
  const double rectifier =
      adaptive ? std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) : 1;
  const bool decoupled = options_.decoupled_weight_decay;
  queue(update_rule<update::RAdam>,
        {decoupled ? 0 : group.weight_decay, decoupled ? 1 - group.lr * group.weight_decay : 1, 1 - b1, b2, 1 - b2,
         adaptive ? group.eps : 1., adaptive ? 1. : 0., group.lr / c1 * rectifier * (adaptive ? std::sqrt(c2) : 1)},
        p, g, {state.at(0, p), state.at(1, p)});
}

RMSprop::RMSprop(Params params, const Options& o)
    : Optimizer("RMSprop", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum, .eps = o.eps},
                {"step", "square_avg", "momentum_buffer", "grad_avg"}, o.maximize, o.master_weights),
      options_(o) {
  if (!(o.alpha >= 0 && o.alpha < 1)) throw_error("alpha must be in [0, 1), not " + std::to_string(o.alpha));
  save_setting("alpha", &options_.alpha);
  save_setting("centered", &options_.centered);
}

void RMSprop::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const UpdateConstants constants{group.lr,           group.weight_decay, options_.alpha,
                                  1 - options_.alpha, group.eps,          group.momentum};
  const auto slot = [&](size_t i) { return state.at(i, p); };
  if (options_.centered) queue(update_rule<update::RmsPropCentered>, constants, p, g, {slot(0), slot(1), slot(2)});
  else if (group.momentum > 0) queue(update_rule<update::RmsPropMomentum>, constants, p, g, {slot(0), slot(1)});
  else queue(update_rule<update::RmsProp>, constants, p, g, {slot(0)});
}

Adagrad::Adagrad(Params params, const Options& o)
    : Optimizer("Adagrad", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps},
                {"step", "sum"}, o.maximize, o.master_weights),
      options_(o) {
  require_number("lr_decay", o.lr_decay);
  require_number("initial_accumulator_value", o.initial_accumulator_value);
  save_setting("lr_decay", &options_.lr_decay);
  save_setting("initial_accumulator_value", &options_.initial_accumulator_value);
}

void Adagrad::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const double lr = group.lr / (1 + double(state.step - 1) * options_.lr_decay);
  queue(update_rule<update::Adagrad>, {lr, group.weight_decay, group.eps}, p, g,
        {state.at(0, p, options_.initial_accumulator_value)});
}

Adadelta::Adadelta(Params params, const Options& o)
    : Optimizer("Adadelta", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps},
                {"step", "square_avg", "acc_delta"}, o.maximize, o.master_weights),
      options_(o) {
  if (!(o.rho >= 0 && o.rho <= 1)) throw_error("rho must be in [0, 1], not " + std::to_string(o.rho));
  save_setting("rho", &options_.rho);
}

void Adadelta::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  queue(update_rule<update::Adadelta>, {group.lr, group.weight_decay, options_.rho, 1 - options_.rho, group.eps}, p, g,
        {state.at(0, p), state.at(1, p)});
}

Lion::Lion(Params params, const Options& o)
    : Optimizer("Lion", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .betas = o.betas}, {"exp_avg"},
                o.maximize, o.master_weights) {}

void Lion::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  queue(update_rule<update::Lion>, {group.lr, 1 - group.lr * group.weight_decay, b1, 1 - b1, b2, 1 - b2}, p, g,
        {state.at(0, p)});
}

}  // namespace volta::optim

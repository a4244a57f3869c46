// ASGD, Rprop and Adafactor.
#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/optim/algorithms.h>

#include "optim/update.h"

namespace volta::optim {
namespace {

Tensor on_host(double value) { return tensor<double>(value, {.device = Device()}); }
double spacing(DType t) { return t == f64 ? 0x1p-52 : t == f32 ? 0x1p-23 : t == f16 ? 0x1p-10 : 0x1p-7; }

}  // namespace

ASGD::ASGD(Params params, const Options& o)
    : Optimizer("ASGD", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay}, {"step", "ax", "eta", "mu"},
                o.maximize, o.master_weights),
      options_(o) {
  require_number("lambd", o.lambd), require_number("alpha", o.alpha), require_number("t0", o.t0);
  save_setting("lambd", &options_.lambd);
  save_setting("alpha", &options_.alpha);
  save_setting("t0", &options_.t0);
}

void ASGD::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  state.at(0, p);
  if (state.slots.size() < 3) state.slots = {state.slots[0], on_host(group.lr), on_host(1)};
  const double eta = state.slots[1].item<double>(), mu = state.slots[2].item<double>();
  queue(update_rule<update::Asgd>, {group.weight_decay, 1 - options_.lambd * eta, eta, mu}, p, g, {state.slots[0]});
  const double t = double(state.step);
  state.slots[1] = on_host(group.lr / std::pow(1 + options_.lambd * group.lr * t, options_.alpha));
  state.slots[2] = on_host(1 / std::max(1., t - options_.t0));
}

Rprop::Rprop(Params params, const Options& o)
    : Optimizer("Rprop", std::move(params), {.lr = o.lr}, {"step", "prev", "step_size"}, o.maximize, o.master_weights),
      options_(o) {
  const auto [minus, plus] = o.etas;
  if (!(minus > 0 && minus < 1 && plus > 1 && std::isfinite(plus))) throw_error("etas must be in (0, 1) and above 1");
  const auto [least, most] = o.step_sizes;
  require_number("step_sizes", least), require_number("step_sizes", most);
  if (least > most) throw_error("the first of step_sizes is above the second");
  save_setting("etas", &options_.etas);
  save_setting("step_sizes", &options_.step_sizes);
}

void Rprop::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [minus, plus] = options_.etas;
  const auto [least, most] = options_.step_sizes;
  queue(update_rule<update::Rprop>, {minus, plus, least, most}, p, g, {state.at(0, p), state.at(1, p, group.lr)});
}

Adafactor::Adafactor(Params params, const Options& o)
    : Optimizer("Adafactor", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay},
                {"step", "row_var", "col_var", "variance"}, o.maximize, o.master_weights),
      options_(o) {
  if (!(o.beta2_decay <= 0) || !std::isfinite(o.beta2_decay)) throw_error("beta2_decay must be finite and at most 0");
  if (o.eps.first) require_number("eps", *o.eps.first);
  require_number("eps", o.eps.second);
  if (!(o.d >= 1) || !std::isfinite(o.d)) throw_error("d must be finite and at least 1");
  save_setting("beta2_decay", &options_.beta2_decay);
  save_setting("d", &options_.d);
}

Shape Adafactor::slot_shape(size_t slot, const Tensor& param) const {
  Shape shape = param.shape();
  if (param.dim() > 1 && slot < 2) shape[int(param.dim()) - 1 - int(slot)] = 1;
  return shape;
}

void Adafactor::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  if (p.numel() == 0) return;
  const DType compute = traits(p.dtype()).compute;
  const Options& o = options_;
  const double least = o.eps.first.value_or(spacing(p.dtype())), step = double(state.step);
  const double share = std::pow(step, o.beta2_decay), rho = std::min(group.lr, 1 / std::sqrt(step));
  const Tensor x = p.detach().to(compute), gradient = g.detach().to(compute);
  const double rms = norm(x).item<double>() / std::sqrt(double(p.numel())), alpha = std::max(o.eps.second, rms) * rho;
  const auto moved = [&](size_t slot, const Tensor& value) {
    state.slots.resize(3);
    Tensor& held = state.slots[slot];
    if (!held.defined() || held.shape() != value.shape())
      held = zeros(value.shape(), {.dtype = compute, .device = p.device()});
    held = held.to(p.device()).to(compute);
    held.copy_(lerp(held, value, share));
    return held;
  };
  Tensor variance;
  if (p.dim() > 1) {
    const Tensor rows = moved(0, square(norm(gradient, 2, -1, true)) / double(p.size(-1)));
    const Tensor columns = moved(1, square(norm(gradient, 2, -2, true)) / double(p.size(-2)));
    variance = matmul(rows, columns) / clamp_min(mean(rows, -2, true), least);
  } else {
    variance = moved(2, square(gradient));
  }
  const Tensor change = rsqrt(clamp_min(variance, least * least)) * gradient;
  const double large = norm(change).item<double>() / (std::sqrt(double(p.numel())) * o.d);
  const double keep = 1 - group.lr * group.weight_decay;
  p.detach().copy_(x * keep - change * (alpha / std::max(1., large)));
}

}  // namespace volta::optim

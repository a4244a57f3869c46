// The optimizers that look at a parameter as a whole: Muon and LAMB.
#include <cmath>

#include <volta/create.h>
#include <volta/ops.h>
#include <volta/optim/algorithms.h>

#include "optim/update.h"

namespace volta::optim {
namespace {

// Near U V^T of x = U S V^T: x is pushed through a polynomial that moves singular values of (0, 1] towards 1.
Tensor orthogonalized(const Tensor& x, const MuonOptions& o) {
  const auto [a, b, c] = o.ns_coefficients;
  const bool tall = x.size(0) > x.size(1);
  Tensor y = tall ? x.t() : x;
  y = y / clamp_min(norm(y), o.eps);
  for (int i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(y, y.t());
    y = addmm(y, addmm(gram, gram, gram, b, c), y, a);
  }
  return tall ? y.t() : y;
}

}  // namespace

Muon::Muon(Params params, const Options& o)
    : Optimizer("Muon", std::move(params),
                {.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum, .eps = o.eps, .betas = o.betas},
                {"step", "momentum_buffer", "exp_avg", "exp_avg_sq"}, o.maximize, o.master_weights),
      options_(o) {
  if (o.match_rms_adamw) options_.adjust_lr_fn = AdjustLR::match_rms_adamw;
  options_.adjust_lr_fn.of("Muon", "adjust_lr_fn");
  for (const double c : o.ns_coefficients)
    if (!std::isfinite(c)) throw_error("ns_coefficients must be finite, not " + std::to_string(c));
  if (o.ns_steps < 1 || o.ns_steps >= 100) throw_error("ns_steps must be in [1, 100)");
  require_number("adamw_lr", o.adamw_lr), require_number("adamw_eps", o.adamw_eps);
  save_setting("nesterov", &options_.nesterov);
  save_setting("adamw_lr", &options_.adamw_lr);
}

void Muon::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  if (p.dim() < 2 || group.adamw) {
    const double lr = options_.lr == 0 ? 0 : group.lr * options_.adamw_lr / options_.lr;
    adam_step(p, g, state, {1, lr, 0, 1 - lr * group.weight_decay, options_.adamw_eps, group.betas});
    return;
  }
  Tensor& buffer = state.at(0, p);
  const Tensor gradient = g.to(buffer.dtype());
  buffer.copy_(lerp(buffer, gradient, 1 - group.momentum));
  const Tensor step = options_.nesterov ? lerp(gradient, buffer, group.momentum) : buffer;
  const Tensor matrix = step.reshape({p.size(0), -1});
  const double rows = double(matrix.size(0)), columns = double(matrix.size(1));
  const double size = options_.adjust_lr_fn == AdjustLR::match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns))
                                                                         : std::sqrt(std::max(1., rows / columns));
  queue(update_rule<update::ScaledStep>, {1 - group.lr * group.weight_decay, group.lr * size}, p,
        orthogonalized(matrix, options_).reshape(p.shape()).to(p.dtype()));
}

LAMB::LAMB(Params params, const Options& o)
    : Optimizer("LAMB", std::move(params), {.lr = o.lr, .weight_decay = o.weight_decay, .eps = o.eps, .betas = o.betas},
                {"step", "exp_avg", "exp_avg_sq"}, o.maximize, o.master_weights) {}

void LAMB::update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) {
  const auto [b1, b2] = group.betas;
  const Tensor direction = empty_like(state.at(0, p));
  UpdateBatch batch;
  batch.add(update_rule<update::Lamb>,
            {1 - b1, b2, 1 - b2, bias_correction(b1, state.step), bias_correction(b2, state.step), group.eps,
             group.weight_decay},
            p, g, {state.at(0, p), state.at(1, p), direction});
  batch.run();
  const Tensor size = norm(p.detach().to(direction.dtype())), length = norm(direction);
  const Tensor trust = where((size > 0) & (length > 0), size / length, 1);
  p.detach().sub_((group.lr * trust * direction).to(p.dtype()));
}

}  // namespace volta::optim

// GradScaler: all it decides it decides with tensors, so that a device need not be waited for.
#include <volta/optim/grad_scaler.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>
#include <volta/optim/optimizer.h>

#include "core/check.h"
#include "core/recording.h"

namespace volta {
namespace {

constexpr const char* who = "GradScaler";

template <class... Text> void check(bool fine, const Text&... text) {
  require(fine, ErrorKind::argument, who, text...);
}

void check_growth(double factor) { check(std::isfinite(factor) && factor > 1, "The growth factor must be > 1.0."); }
void check_backoff(double factor) { check(factor > 0 && factor < 1, "The backoff factor must be < 1.0."); }
void check_interval(int64_t steps) { check(steps >= 1, "growth_interval must be at least 1, not ", steps); }
void check_scale(double scale) { check(std::isfinite(scale) && scale > 0, "the scale must be positive, not ", scale); }

std::vector<Tensor> gradients(const optim::Optimizer& optimizer) {
  std::vector<Tensor> found;
  for (const optim::ParamGroup& group : optimizer.param_groups())
    for (const Tensor& p : group.params)
      if (const auto g = p.grad()) {
        check(g->dtype() != f16, "Attempting to unscale FP16 gradients.");
        found.push_back(g->detach());
      }
  return found;
}

// The two joined; where only one is defined, that one.
Tensor either(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : logical_or(a, b); }

}  // namespace

GradScaler::GradScaler(const Options& options) : options_(options), next_scale_(options.init_scale) {
  if (!options.enabled) return;
  check_scale(options.init_scale);
  check_growth(options.growth_factor);
  check_backoff(options.backoff_factor);
  check_interval(options.growth_interval);
}

void GradScaler::require_scale(const char* call) const {
  check(scale_.defined(), "Attempted ", call,
        " but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
        "iteration.");
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!options_.enabled) return loss.checked(who);
  if (!scale_.defined()) {
    Recording::refuse(who, "this is its first loss; run the step once before");
    scale_ = full({}, next_scale_, {.dtype = f32, .device = loss.checked(who).device()});
    growth_tracker_ = full({}, next_tracker_, {.dtype = i32, .device = loss.device()});
  }
  return loss * scale_.to(loss.checked(who).device());
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses) {
  std::vector<Tensor> scaled;
  for (const Tensor& loss : losses) scaled.push_back(scale(loss));
  return scaled;
}

// The largest magnitude of each gradient, NaN above all, tells in one pass over it whether all are finite.
void GradScaler::look_at(const optim::Optimizer& optimizer, Progress& progress) {
  const NoGrad off;
  const Tensor inverse = reciprocal(scale_.to(f64)).to(f32);
  std::vector<Tensor> largest;
  for (Tensor& g : gradients(optimizer)) {
    if (g.numel() > 0) largest.push_back(norm(g, std::numeric_limits<double>::infinity()).to(f64).to(scale_.device()));
    g.mul_(inverse.to(g.device()).to(g.dtype() == f64 ? f64 : f32));
    progress.stage = Stage::unscaled;
  }
  check(progress.stage == Stage::unscaled, "No inf checks were recorded for this optimizer.");
  const Tensor found =
      largest.empty() ? full({}, false, {.device = scale_.device()}) : logical_not(isfinite(stack(largest)).all());
  progress.earlier = either(progress.earlier, progress.found_inf);
  progress.found_inf = found;
}

// No other optimizer waits for the same update.
bool GradScaler::is_alone(const Progress& progress) const {
  return std::none_of(progress_.begin(), progress_.end(), [&](const auto& other) {
    return &other.second != &progress && other.second.found_inf.defined();
  });
}

// If the recording of a step fails, its calls did not happen.
void GradScaler::note_undo() {
  if (Recording* const recording = Recording::current())
    recording->undo.emplace_back([this, progress = progress_, alone = updates_itself_] {
      progress_ = progress;
      updates_itself_ = alone;
    });
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  require_scale("unscale_");
  note_undo();
  Progress& progress = progress_[&optimizer];
  check(progress.stage != Stage::unscaled,
        "unscale_() has already been called on this optimizer since the last update().");
  if (progress.stage == Stage::stepped) {
    check(is_alone(progress), "unscale_() is being called after step().");
    Recording::refuse(who, "update() is no part of it");
    updates_itself_ = true;
  }
  progress.stage = Stage::ready;
  look_at(optimizer, progress);
}

void GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) return optimizer.step();
  require_scale("step");
  note_undo();
  Progress& progress = progress_[&optimizer];
  if (progress.stage == Stage::stepped) {
    check(is_alone(progress), "step() has already been called since the last update().");
    Recording::refuse(who, "update() is no part of it");
    updates_itself_ = true;
    progress.stage = Stage::ready;
  }
  if (progress.stage == Stage::ready) look_at(optimizer, progress);
  optimizer.step_unless(progress.found_inf);
  progress.stage = Stage::stepped;
  if (updates_itself_ && is_alone(progress)) update();
}

void GradScaler::update() {
  if (!options_.enabled) return;
  require_scale("update");
  note_undo();
  const NoGrad off;
  Tensor any;
  for (const auto& [optimizer, progress] : progress_) any = either(any, either(progress.earlier, progress.found_inf));
  check(any.defined(), "No inf checks were recorded prior to update.");
  adapt(any);
  progress_.clear();
}

void GradScaler::adapt(const Tensor& found_inf) {
  const Tensor grown = growth_tracker_ + 1, due = grown >= int64_t(options_.growth_interval);
  const Tensor larger = scale_ * options_.growth_factor, smaller = scale_ * options_.backoff_factor;
  const Tensor kept = where(due & isfinite(larger), larger, scale_);
  scale_.copy_(where(found_inf, smaller, kept));
  growth_tracker_.copy_(where(found_inf | due, 0, grown));
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) return;
  require_scale("update");
  check_scale(new_scale);
  const NoGrad off;
  scale_.fill_(new_scale);
  progress_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item<double>() : next_scale_;
}

void GradScaler::set_growth_factor(double factor) {
  check_growth(factor);
  options_.growth_factor = factor;
}
void GradScaler::set_backoff_factor(double factor) {
  check_backoff(factor);
  options_.backoff_factor = factor;
}
void GradScaler::set_growth_interval(Int interval) {
  check_interval(interval);
  options_.growth_interval = interval;
}

std::map<std::string, double> GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {{"scale", get_scale()},
          {"growth_factor", options_.growth_factor},
          {"backoff_factor", options_.backoff_factor},
          {"growth_interval", double(options_.growth_interval)},
          {"_growth_tracker", growth_tracker_.defined() ? growth_tracker_.item<double>() : double(next_tracker_)}};
}

void GradScaler::load_state_dict(const std::map<std::string, double>& saved) {
  if (!options_.enabled) return;
  check(!saved.empty(),
        "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.");
  for (const char* key : {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"})
    check(saved.contains(key), "the saved state lacks ", key);
  const double scale = saved.at("scale"), interval = saved.at("growth_interval"), tracker = saved.at("_growth_tracker");
  check_scale(scale);
  check_growth(saved.at("growth_factor"));
  check_backoff(saved.at("backoff_factor"));
  check(interval >= 1 && interval < 0x1p31 && tracker >= 0 && tracker < 0x1p31, "the saved growth interval is ",
        interval, ", the growth tracker ", tracker);
  options_.growth_factor = saved.at("growth_factor");
  options_.backoff_factor = saved.at("backoff_factor");
  options_.growth_interval = int64_t(interval);
  next_scale_ = scale;
  next_tracker_ = int64_t(tracker);
  if (!scale_.defined()) return;
  const NoGrad off;
  scale_.fill_(scale);
  growth_tracker_.fill_(next_tracker_);
}

}  // namespace volta

// Clipping of gradients, and averages of weights.
#include <volta/optim/average.h>

#include <cmath>
#include <limits>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "core/recording.h"
#include "optim/update.h"

namespace volta {
namespace {

std::vector<Tensor> gradients(const std::vector<Tensor>& params, const char* op) {
  std::vector<Tensor> all;
  for (const Tensor& p : params)
    if (const auto g = p.checked(op).grad()) all.push_back(g->detach());
  return all;
}

}  // namespace

Tensor nn::clip_grad_norm_(const std::vector<Tensor>& params, double max_norm, const ClipNormOptions& o) {
  const char* op = "clip_grad_norm_";
  if (!(max_norm >= 0)) throw Error(Error::Kind::argument, op, "max_norm must be at least 0");
  if (!(o.norm_type > 0)) throw Error(Error::Kind::argument, op, "norm_type must be above 0");
  const NoGrad off;
  std::vector<Tensor> all = gradients(params, op), norms;
  if (all.empty()) return zeros({});
  for (const Tensor& g : all) norms.push_back(norm(g.to(traits(g.dtype()).compute), o.norm_type).to(all[0].device()));
  const Tensor total = norm(stack(norms), o.norm_type);
  if (o.error_if_nonfinite && !isfinite(total).item<bool>())
    throw Error(Error::Kind::argument, op, "the norm of the gradients is " + std::to_string(total.item<double>()));
  const Tensor scale = clamp_max(max_norm / (total + 1e-6), 1);
  for (Tensor& g : all) g.mul_(scale.to(g.device()).to(g.dtype()));
  return total;
}

void nn::clip_grad_value_(const std::vector<Tensor>& params, double limit) {
  if (!(limit >= 0)) throw Error(Error::Kind::argument, "clip_grad_value_", "the limit must be at least 0");
  const NoGrad off;
  for (Tensor& g : gradients(params, "clip_grad_value_")) g.clamp_(-limit, limit);
}

namespace optim {
namespace {
void require_shapes(const std::vector<Tensor>& given, const std::vector<Tensor>& averages, const char* op) {
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].checked(op).shape() != averages[i].shape())
      throw Error(Error::Kind::shape, op,
                  "tensor " + std::to_string(i) + " has shape " + given[i].shape().str() + ", its average " +
                      averages[i].shape().str());
}
}  // namespace

Average::Average(std::vector<Tensor> params, std::optional<double> decay) : params_(std::move(params)), decay_(decay) {
  if (params_.empty()) throw Error(Error::Kind::argument, "average", "no parameters to average");
  if (decay && !(*decay >= 0 && *decay <= 1))
    throw Error(Error::Kind::argument, "EMA", "decay must be in [0, 1], not " + std::to_string(*decay));
  const NoGrad off;
  for (const Tensor& p : params_) averages_.push_back(p.checked("average").detach().clone());
}

Average::Average(const Average& other) : params_(other.params_), decay_(other.decay_), updates_(other.updates_) {
  const NoGrad off;
  for (const Tensor& average : other.averages_) averages_.push_back(average.clone());
}
Average& Average::operator=(Average other) noexcept {
  params_ = std::move(other.params_), averages_ = std::move(other.averages_);
  decay_ = other.decay_, updates_ = other.updates_;
  return *this;
}

void Average::update() {
  const NoGrad off;
  if (!decay_) Recording::refuse("average", "the weight of the newest depends on how many there were");
  const double weight = updates_ == 0 ? 1 : decay_ ? 1 - *decay_ : 1 / double(updates_ + 1);
  UpdateBatch batch;
  for (size_t i = 0; i < params_.size(); ++i) {
    // The averages follow a model that was moved, and keep digits that they have more.
    averages_[i] = averages_[i].to(params_[i].device()).to(promote(averages_[i].dtype(), params_[i].dtype()));
    if (averages_[i].shape() != params_[i].shape()) averages_[i] = params_[i].detach().clone();  // it was assigned
    else if (!is_floating(params_[i].dtype()) || updates_ == 0) averages_[i].copy_(params_[i].detach());
    else
      batch.add(update_rule<update::Average>, {weight}, averages_[i], params_[i].detach().to(averages_[i].dtype()), {});
  }
  batch.run();
  ++updates_;
}

void Average::copy_to(const std::vector<Tensor>& params) const {
  if (params.size() != averages_.size())
    throw Error(Error::Kind::argument, "copy_to",
                std::to_string(params.size()) + " tensors for " + std::to_string(averages_.size()) + " averages");
  require_shapes(params, averages_, "copy_to");
  const NoGrad off;
  for (size_t i = 0; i < params.size(); ++i) params[i].detach().copy_(averages_[i]);
}

void Average::load(const std::vector<Tensor>& averages, int64_t updates) {
  if (averages.size() != averages_.size())
    throw Error(Error::Kind::argument, "load",
                std::to_string(averages.size()) + " tensors for " + std::to_string(averages_.size()) + " averages");
  require_shapes(averages, averages_, "load");
  if (updates < 0) throw Error(Error::Kind::argument, "load", std::to_string(updates) + " updates");
  const NoGrad off;
  for (size_t i = 0; i < averages.size(); ++i) averages_[i].copy_(averages[i].detach());
  updates_ = updates;
}

Average::Swap::Swap(const Average& average) : average_(average) {
  const NoGrad off;
  for (const Tensor& p : average.params_) kept_.push_back(p.detach().clone());
  average.copy_to(average.params_);
}

Average::Swap::~Swap() {
  const NoGrad off;
  for (size_t i = 0; i < kept_.size(); ++i) average_.params_[i].detach().copy_(kept_[i]);
}

}  // namespace optim
}  // namespace volta

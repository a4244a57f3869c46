// The training loop behind fit, and evaluate.
#include <volta/train/fit.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <new>

#include <volta/autocast.h>
#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/nn/model.h>
#include <volta/ops.h>
#include <volta/optim/average.h>

#include "backend/backend.h"
#include "core/check.h"
#include "train/interrupt.h"
#include "train/text.h"

namespace volta {
namespace {

constexpr double undefined_value = std::numeric_limits<double>::quiet_NaN();

// While it lives every layer is in eval mode; then each is as it was.
class EvalMode final : private nn::Visitor {
 public:
  explicit EvalMode(const ModelRef& model) {
    model.walk(*this);
    eval(model);
  }
  ~EvalMode() {
    for (const auto& [layer, training] : modes_) layer->training = training;
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  void enter(const nn::Module& m) override {
    if (m.layer) modes_.emplace_back(m.layer, m.layer->training);
  }
  std::vector<std::pair<nn::Layer*, bool>> modes_;
};

int64_t samples_of(const Tensor& x) { return x.dim() > 0 ? x.size(0) : 1; }

Tensor moved(const Tensor& x, const std::optional<Device>& device) { return device ? x.to(*device) : x; }

Tensor loss_of(const LossFunction& loss, const Tensor& prediction, const Tensor& target, const char* op) {
  Tensor value = loss ? loss(prediction, target) : cross_entropy(prediction, target);
  require(value.checked(op).numel() == 1, ErrorKind::shape, op, "the loss is one number, got shape ", value,
          "; use a reduction such as mean");
  return value;
}

void check_autocast(const std::optional<DType>& dtype, const char* op) {
  require(!dtype || is_half(*dtype), ErrorKind::dtype, op, "autocast is to bf16 or f16, not ", dtype.value_or(f32));
}

struct Forward {
  Tensor prediction, loss;
};
Forward forward(const ModelRef& model, const Tensor& x, const Tensor& y, const LossFunction& loss,
                const std::optional<DType>& autocast, const char* op) {
  std::optional<Autocast> guard;  // without one, that of the caller counts
  if (autocast) guard.emplace(*autocast);
  const Tensor prediction = model(x);
  return {prediction, loss_of(loss, prediction, y, op)};
}

Tensor plus_weighted(const Tensor& total, const Tensor& loss, int64_t samples) {
  const NoGrad off;
  const Tensor part = loss.detach().to(f64).reshape({}) * double(samples);
  return total.defined() ? total + part : part;
}

void require_callable(const ModelRef& model, const char* op) {
  require(model.callable(), ErrorKind::argument, op,
          "the model has no call operator or forward that takes a tensor and gives one");
}

bool all_finite(const std::vector<Tensor>& gradients) {
  if (gradients.empty()) return true;
  const NoGrad off;
  std::vector<Tensor> peaks;
  for (const Tensor& g : gradients)
    if (g.numel() > 0) peaks.push_back(isfinite(g).all());
  return peaks.empty() || stack(peaks).all().item<bool>();
}

Dict<double> measured(const ModelRef& model, const Batches& data, const EvaluateOptions& options, const char* op) {
  const EvalMode mode(model);
  const NoGrad off;
  std::vector<metrics::AnyMetric> list = options.metrics;
  for (metrics::AnyMetric& m : list) m.reset();
  Tensor total;
  int64_t samples = 0;
  data.each([&](const Tensor& given, const Tensor& target) {
    const Tensor x = moved(given.checked(op), options.device), y = moved(target.checked(op), options.device);
    const auto [prediction, loss] = forward(model, x, y, options.loss, options.autocast, op);
    total = plus_weighted(total, loss, samples_of(x));
    for (metrics::AnyMetric& m : list) m.update(prediction, y);
    samples += samples_of(x);
    return true;
  });
  require(total.defined(), ErrorKind::argument, op, "the data gave no batch");
  Dict<double> result = {{"loss", total.item<double>() / double(samples)}};
  for (const metrics::AnyMetric& m : list) result.add(m.name(), m.compute());
  return result;
}

}  // namespace

double FitState::loss() const {
  if (!total_.defined()) return undefined_value;
  if (read_at_ != batch) loss_ = total_.item<double>() / double(samples);
  read_at_ = batch;
  return loss_;
}

Dict<double> FitState::metrics() const {
  Dict<double> values;
  for (const metrics::AnyMetric& m : metrics_) values.add(m.name(), m.compute());
  return values;
}

void Batches::each(const Use& use) const {
  require_function(each_, "Batches");
  require_function(use, "Batches");
  each_(use);
}

void Schedule::step(double loss) const {
  require_function(step_, "Schedule");
  step_(loss);
}

namespace detail {

class Trainer {
 public:
  Trainer(const ModelRef& model, const Batches& data, optim::Optimizer& optimizer, const FitOptions& options)
      : o_(options), data_(data), state_(model, optimizer), interrupt_(options.catch_interrupt) {
    check();
    for (const optim::ParamGroup& g : optimizer.param_groups())
      params_.insert(params_.end(), g.params.begin(), g.params.end());
    if (options.autocast == f16) scaler_ = &own_scaler_;
    if (options.scaler) scaler_ = options.scaler;
    state_.metrics_ = options.metrics;
    state_.epochs = options.epochs;
    state_.step = options.start_step;
  }

  History run() {
    if (o_.device) to(state_.model, *o_.device);
    train(state_.model);
    tell(&Callback::begin);
    for (state_.epoch = o_.start_epoch; state_.epoch < state_.epochs && !state_.stop && !interrupted(); ++state_.epoch)
      epoch();
    state_.history.interrupted = interrupted();
    state_.history.stopped = state_.stop && !interrupted();
    tell(&Callback::end);
    return std::move(state_.history);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t check_every = 50;  // batches, where reading the loss waits for a device

  void check() const {
    const char* op = "fit";
    require_callable(state_.model, op);
    require(bool(data_), ErrorKind::argument, op, "there is no data");
    check_autocast(o_.autocast, op);
    require(o_.epochs >= 0 && o_.start_epoch >= 0 && o_.start_step >= 0, ErrorKind::argument, op,
            "epochs, start_epoch and start_step are not negative, got ", o_.epochs, ", ", o_.start_epoch, ", ",
            o_.start_step);
    require(o_.accumulate >= 1, ErrorKind::argument, op, "accumulate is at least 1, got ", o_.accumulate);
    require(!o_.max_grad_norm || *o_.max_grad_norm > 0, ErrorKind::argument, op, "max_grad_norm is above 0");
    require(!o_.clip_value || *o_.clip_value > 0, ErrorKind::argument, op, "clip_value is above 0");
    for (const CallbackPtr& c : o_.callbacks) require(bool(c), ErrorKind::argument, op, "a callback is empty");
    o_.non_finite.of(op, "non_finite");
    require(o_.schedule_every.of(op, "schedule_every") == ScheduleEvery::epoch || !o_.scheduler.measures(),
            ErrorKind::argument, op, "ReduceLROnPlateau is stepped every epoch, not every step");
    for (size_t i = 0; i < o_.metrics.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        require(o_.metrics[i].name() != o_.metrics[j].name(), ErrorKind::argument, op, "two metrics are named '",
                o_.metrics[i].name(), "'");
  }

  bool interrupted() const { return interrupt_.asked(); }
  void tell(void (Callback::*moment)(FitState&)) {
    for (const CallbackPtr& c : o_.callbacks) (*c.*moment)(state_);
  }

  void epoch() {
    const Clock::time_point start = Clock::now();
    state_.batch = state_.samples = skipped_ = 0;
    state_.batches = data_.size();
    state_.total_ = Tensor();
    state_.read_at_ = -1;
    cut_ = false;
    for (metrics::AnyMetric& m : state_.metrics_) m.reset();
    tell(&Callback::epoch_begin);
    data_.each([&](const Tensor& x, const Tensor& y) { return batch(x, y); });
    // Data that has come to its end has gone on to the next epoch: this one is ended too, its open group first.
    if (cut_ && interrupted()) return drop();
    // Training that was saved after the last batch of an epoch goes on with the end of that epoch.
    const bool resumed = o_.start_step > 0 && state_.epoch == o_.start_epoch;
    require(state_.batch > 0 || resumed, ErrorKind::argument, "fit", "the data gave no batch in epoch ", state_.epoch,
            state_.epoch > o_.start_epoch ? ": it must be possible to iterate it again" : "");
    if (in_group_ > 0) step();
    if (state_.samples > 0) require_finite(state_.loss());
    record(std::chrono::duration<double>(Clock::now() - start).count());
    tell(&Callback::epoch_end);
  }

  // Whether to go on with the epoch.
  bool batch(const Tensor& given, const Tensor& target) {
    const Tensor x = moved(given.checked("fit"), o_.device), y = moved(target.checked("fit"), o_.device);
    if (in_group_ == 0) state_.optimizer.zero_grad();
    const auto [prediction, loss] = forward(state_.model, x, y, o_.loss, o_.autocast, "fit");
    ++state_.batch;
    ++in_group_;
    if (accepted(loss)) {
      contribute(loss, samples_of(x));
      const NoGrad off;
      for (metrics::AnyMetric& m : state_.metrics_) m.update(prediction.detach(), y);
    }
    if (in_group_ < o_.accumulate) return true;
    step();
    cut_ = state_.stop || interrupted();
    return !cut_;
  }

  bool accepted(const Tensor& loss) {
    const NonFinite policy = o_.non_finite;
    if (policy == NonFinite::ignore) return true;
    const bool waits = !backend(loss.device()).knows_indices();
    if (policy == NonFinite::error) {
      if (!waits) require_finite(loss.item<double>());
      else if (state_.batch % check_every == 0 && state_.total_.defined()) require_finite(state_.total_.item<double>());
      return true;
    }
    const bool finite = std::isfinite(loss.item<double>());
    skipped_ += !finite;
    return finite;
  }

  void require_finite(double loss) const {
    require(o_.non_finite != NonFinite::error || std::isfinite(loss), ErrorKind::argument, "fit", "the loss is ",
            short_text(loss), " at batch ", state_.batch, " of epoch ", state_.epoch, ", step ", state_.step,
            ": lower the learning rate, set .max_grad_norm, or leave such batches out with .non_finite = \"skip\"");
  }

  // Gradients of a group are sums weighted by sizes relative to its first batch; step() divides them by the whole.
  void contribute(const Tensor& loss, int64_t samples) {
    if (group_samples_ == 0) first_samples_ = samples;
    const Tensor part = samples == first_samples_ ? loss : loss * (double(samples) / double(first_samples_));
    (scaler_ ? scaler_->scale(part) : part).backward();
    group_samples_ += samples;
    state_.total_ = plus_weighted(state_.total_, loss, samples);
    state_.samples += samples;
  }

  std::vector<Tensor> gradients() const {
    std::vector<Tensor> list;
    for (const Tensor& p : params_)
      if (p.grad()) list.push_back(*p.grad());
    return list;
  }

  void step() {
    const int64_t batches = std::exchange(in_group_, 0), samples = std::exchange(group_samples_, 0);
    if (samples == 0) return;  // every batch of the group was left out
    if (scaler_) scaler_->unscale_(state_.optimizer);
    if (samples != first_samples_) {
      const NoGrad off;
      for (Tensor g : gradients()) g.mul_(double(first_samples_) / double(samples));
    }
    if (o_.non_finite == NonFinite::skip && !all_finite(gradients())) {
      skipped_ += batches;
      if (scaler_) scaled_step();  // which it leaves out
      return;
    }
    if (o_.clip_value) nn::clip_grad_value_(params_, *o_.clip_value);
    if (o_.max_grad_norm) nn::clip_grad_norm_(params_, *o_.max_grad_norm);
    if (scaler_) scaled_step();
    else state_.optimizer.step();
    ++state_.step;
    if (o_.scheduler && o_.schedule_every == ScheduleEvery::step) o_.scheduler.step(undefined_value);
    tell(&Callback::step_end);
  }

  void scaled_step() {
    scaler_->step(state_.optimizer);
    scaler_->update();
  }

  void drop() {
    in_group_ = group_samples_ = 0;
    state_.optimizer.zero_grad();
  }

  void record(double seconds) {
    EpochRecord record{.epoch = state_.epoch, .step = state_.step, .skipped = skipped_};
    record.values.add("loss", state_.loss());
    for (const auto& [name, value] : state_.metrics()) record.values.add(name, value);
    double measure = state_.loss();
    if (o_.validation) {
      const Dict<double> found =
          measured(state_.model, o_.validation, {o_.loss, o_.metrics, o_.device, o_.autocast}, "fit (validation)");
      for (const auto& [name, value] : found) record.values.add("val_" + name, value);
      measure = found.at("loss");
    }
    record.values.add("lr", state_.optimizer.lr());
    record.values.add("seconds", seconds);
    // An epoch that a callback cut short goes on when training is resumed, and ends then.
    const bool whole = !cut_ || state_.batches == state_.batch;
    const bool unmeasured = state_.batch == 0 && !o_.validation && o_.scheduler.measures();
    if (whole && !unmeasured && o_.scheduler && o_.schedule_every == ScheduleEvery::epoch) o_.scheduler.step(measure);
    state_.history.epochs.push_back(std::move(record));
  }

  const FitOptions& o_;
  const Batches& data_;
  FitState state_;
  Interrupt interrupt_;
  std::vector<Tensor> params_;
  GradScaler own_scaler_, *scaler_ = nullptr;
  int64_t in_group_ = 0, group_samples_ = 0, first_samples_ = 0, skipped_ = 0;
  bool cut_ = false;  // this epoch, before its last batch or after
};

}  // namespace detail

History fit(const ModelRef& model, const Batches& data, optim::Optimizer& optimizer, const FitOptions& options) {
  try {
    detail::Trainer trainer(model, data, optimizer, options);
    return trainer.run();
  } catch (const std::bad_alloc&) {
    optimizer.zero_grad();
    throw_error(ErrorKind::memory, "fit", "out of memory");
  } catch (...) {
    optimizer.zero_grad();  // what a step that was not finished has accumulated
    throw;
  }
}

Dict<double> evaluate(const ModelRef& model, const Batches& data, const EvaluateOptions& options) {
  require_callable(model, "evaluate");
  require(bool(data), ErrorKind::argument, "evaluate", "there is no data");
  check_autocast(options.autocast, "evaluate");
  if (options.device) to(model, *options.device);
  return measured(model, data, options, "evaluate");
}

}  // namespace volta

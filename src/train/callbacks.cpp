// Callbacks that steer the training: early stopping, checkpoints, functions of the user's.
#include <volta/train/callbacks.h>

#include <cmath>

#include "core/check.h"

namespace volta::callbacks {
namespace {

class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options) : o_(options), mode_(options.mode.of(op, "mode")) {
    require(o_.patience >= 0, ErrorKind::argument, op, "patience is not negative, got ", o_.patience);
    require(o_.min_delta >= 0, ErrorKind::argument, op, "min_delta is not negative, got ",
            std::to_string(o_.min_delta));
  }

  void begin(FitState&) override {
    best_.reset();
    since_ = 0;
    kept_ = {};
  }

  void epoch_end(FitState& state) override {
    const Dict<double>& values = state.history.epochs.back().values;
    if (!values.contains(o_.monitor)) refuse(values);
    // Resuming an epoch that was saved behind its last batch sees only its end: that says nothing about the training.
    if (state.batch == 0 && !o_.monitor.starts_with("val_")) return;
    const double now = values.at(o_.monitor);
    if (better(now)) {
      best_ = now;
      since_ = 0;
      if (o_.restore_best) keep(state);
    } else if (++since_ >= o_.patience) {
      state.stop = true;
    }
  }

  void end(FitState& state) override {
    if (o_.restore_best && !kept_.empty()) load_state_dict(state.model, kept_);
  }

 private:
  static constexpr const char* op = "early_stopping";

  bool better(double now) const {
    if (std::isnan(now)) return false;
    if (!best_) return true;
    return mode_ == Mode::min ? now < *best_ - o_.min_delta : now > *best_ + o_.min_delta;
  }

  void keep(const FitState& state) {
    StateDict copy;
    for (const auto& [name, value] : state_dict(state.model)) copy.add(name, value.clone());
    kept_ = std::move(copy);
  }

  [[noreturn]] void refuse(const Dict<double>& values) const {
    std::string known;
    for (const std::string& name : values.names()) known += (known.empty() ? "" : ", ") + name;
    throw_error(ErrorKind::argument, op, "there is no '", o_.monitor, "' to monitor, but ", known,
                o_.monitor.starts_with("val_") ? "; values of validation need .validation" : "");
  }

  EarlyStoppingOptions o_;
  Mode mode_;
  std::optional<double> best_;
  int64_t since_ = 0;
  StateDict kept_;
};

class Lambda final : public Callback {
 public:
  explicit Lambda(Functions functions) : f_(std::move(functions)) {}
  void begin(FitState& s) override { call(f_.begin, s); }
  void epoch_begin(FitState& s) override { call(f_.epoch_begin, s); }
  void step_end(FitState& s) override { call(f_.step_end, s); }
  void epoch_end(FitState& s) override { call(f_.epoch_end, s); }
  void end(FitState& s) override { call(f_.end, s); }

 private:
  static void call(const Functions::Function& f, FitState& state) {
    if (f) f(state);
  }
  Functions f_;
};

class Checkpoint final : public Callback {
 public:
  Checkpoint(std::function<void(FitState&)> save, const CheckpointOptions& options)
      : save_(std::move(save)), every_(options.every), unit_(options.unit.of("checkpoint", "unit")) {
    require_function(save_, "checkpoint");
    require(every_ >= 1, ErrorKind::argument, "checkpoint", "every is at least 1, got ", every_);
  }
  void begin(FitState& state) override { saved_ = state.step; }
  void step_end(FitState& state) override {
    if (unit_ == Unit::step && state.step % every_ == 0) save(state);
  }
  void epoch_end(FitState& state) override {
    if (unit_ == Unit::epoch && (state.epoch + 1) % every_ == 0) save(state);
  }
  void end(FitState& state) override {
    if (saved_ != state.step) save(state);
  }

 private:
  void save(FitState& state) {
    save_(state);
    saved_ = state.step;
  }
  std::function<void(FitState&)> save_;
  int64_t every_;
  Unit unit_;
  int64_t saved_ = 0;  // the step after which it last happened
};

}  // namespace

CallbackPtr early_stopping(const EarlyStoppingOptions& options) { return std::make_shared<EarlyStopping>(options); }
CallbackPtr lambda(Functions functions) { return std::make_shared<Lambda>(std::move(functions)); }
CallbackPtr checkpoint(std::function<void(FitState&)> save, const CheckpointOptions& options) {
  return std::make_shared<Checkpoint>(std::move(save), options);
}

}  // namespace volta::callbacks

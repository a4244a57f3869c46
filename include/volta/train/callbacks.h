// Callbacks: what happens beside the training that fit does. One's own derives from Callback:
//
//   struct Bell : Callback {
//     void epoch_end(FitState& state) override { std::cout << '\a' << state.loss(); }
//   };
//   fit(model, batches, optimizer, {.callbacks = {std::make_shared<Bell>(), callbacks::progress()}});
#pragma once
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <volta/nn/model.h>
#include <volta/optim/optimizer.h>
#include <volta/train/history.h>
#include <volta/train/metrics.h>

namespace volta {

namespace detail {
class Trainer;
}

// Where fit is. Reading loss() or metrics() waits for the device; they are read once per batch, however often asked for.
class FitState {
 public:
  FitState(const ModelRef& m, optim::Optimizer& o) : model(m), optimizer(o) {}

  int64_t epoch = 0, epochs = 0;        // the epoch counts from 0
  int64_t step = 0;                     // steps of the optimizer since the beginning of training
  int64_t batch = 0;                    // batches seen in this epoch
  std::optional<int64_t> batches = {};  // in an epoch, where the data knows
  int64_t samples = 0;                  // seen in this epoch
  bool stop = false;                    // set it to end the training after this step or epoch
  ModelRef model;
  optim::Optimizer& optimizer;
  History history = {};  // in epoch_end, its last record is this epoch's

  double loss() const;           // mean over the epoch so far
  Dict<double> metrics() const;  // of the epoch so far

 private:
  friend class detail::Trainer;
  Tensor total_;  // sum of losses times samples, f64
  std::vector<metrics::AnyMetric> metrics_;
  mutable int64_t read_at_ = -1;  // the batch at which loss() was read
  mutable double loss_ = 0;
};

class Callback {
 public:
  virtual ~Callback() = default;
  virtual void begin(FitState&) {}
  virtual void epoch_begin(FitState&) {}  // the model is in training mode
  virtual void step_end(FitState&) {}     // after each step of the optimizer; gradients are still there
  virtual void epoch_end(FitState&) {}    // after validation
  virtual void end(FitState&) {}          // also when interrupted or stopped, not after an exception
};
using CallbackPtr = std::shared_ptr<Callback>;

namespace callbacks {

struct ProgressOptions {
  std::FILE* out = nullptr;           // nullptr: standard output
  std::optional<bool> terminal = {};  // whether to update one line in place; as `out` is, if not given
  double interval = 0.1;              // seconds between updates
};
// A line with bar, rate, time left, loss and metrics; without a terminal a plain line per epoch. Colour only on a
// terminal, unless NO_COLOR is set.
CallbackPtr progress(const ProgressOptions& options = {});

enum class Mode { min, max };
constexpr std::array<std::string_view, 2> choice_names(Mode) { return {"min", "max"}; }
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  Int patience = 3;  // epochs without an improvement by more than min_delta
  double min_delta = 0;
  Choice<Mode> mode = Mode::min;
  bool restore_best = false;  // at the end the model has the parameters and buffers of its best epoch
};
CallbackPtr early_stopping(const EarlyStoppingOptions& options = {});  // early_stopping({.monitor = "loss"})

struct FileOptions {
  bool append = false;  // go on with a file that is there, as when training is resumed
};
CallbackPtr csv(const std::string& path, const FileOptions& options = {});         // a row per epoch: csv("run.csv")
CallbackPtr json_lines(const std::string& path, const FileOptions& options = {});  // an object per epoch and line

struct LRLoggerOptions {
  Int every = 1;  // steps
  bool append = false;
};
CallbackPtr lr_logger(const std::string& path, const LRLoggerOptions& options = {});  // step,lr0,lr1,… per group

struct TensorBoardOptions {
  Int every = 0;            // steps between points of the loss and the rate; 0: epochs alone
  bool histograms = false;  // of parameters and gradients, per epoch
};
// Event files for TensorBoard: tensorboard("runs/first").
CallbackPtr tensorboard(const std::string& folder, const TensorBoardOptions& options = {});

struct Functions {
  using Function = std::function<void(FitState&)>;
  Function begin = {}, epoch_begin = {}, step_end = {}, epoch_end = {}, end = {};
};
CallbackPtr lambda(Functions functions);  // lambda({.epoch_end = [](FitState& s) { … }})

enum class Unit { epoch, step };
constexpr std::array<std::string_view, 2> choice_names(Unit) { return {"epoch", "step"}; }
struct CheckpointOptions {
  Int every = 1;
  Choice<Unit> unit = Unit::epoch;
};
// Calls `save` every so many epochs or steps, and at the end where something is not saved yet:
//   checkpoint([&](FitState& s) { write(model, s.step); }, {.every = 500, .unit = "step"})
CallbackPtr checkpoint(std::function<void(FitState&)> save, const CheckpointOptions& options = {});

}  // namespace callbacks
}  // namespace volta

// GradScaler: keeps the gradients of f16 within its range by scaling the loss.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <volta/nn/parameter.h>
#include <volta/tensor.h>

namespace volta {

namespace optim {
class Optimizer;
}

struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  Int growth_interval = 2000;  // steps without an overflow before the scale grows
  bool enabled = true;         // without it losses are not scaled and step() is the optimizer's
};

// Multiplies losses, divides gradients, leaves out steps whose gradients overflowed, and adapts its factor. The factor and
// what was found lie on the loss's device; nothing waits for it but get_scale() and state_dict().
//   GradScaler scaler;
//   scaler.scale(cross_entropy(model(x), labels)).backward();
//   scaler.step(opt);
//   scaler.update();
// A program with one optimizer may leave out update(): from the second step on, step() does it.
class GradScaler {
 public:
  using Options = GradScalerOptions;
  explicit GradScaler(const Options& options = {});

  [[nodiscard]] Tensor scale(const Tensor& loss);  // scaler.scale(loss).backward()
  [[nodiscard]] std::vector<Tensor> scale(const std::vector<Tensor>& losses);
  void unscale_(
      optim::Optimizer& optimizer);  // divides the gradients now, to clip them before step(): scaler.unscale_(opt)
  void step(optim::Optimizer& optimizer);  // divides them unless unscale_ did; no step if one is infinite or NaN
  void update();                           // once after the steps of an iteration: scaler.update()
  void update(double new_scale);           // or a scale of one's own

  double get_scale() const;  // 1 where it is not enabled
  double get_growth_factor() const { return options_.growth_factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  int64_t get_growth_interval() const { return options_.growth_interval; }
  void set_growth_factor(double factor);
  void set_backoff_factor(double factor);
  void set_growth_interval(Int interval);
  bool is_enabled() const { return options_.enabled; }
  std::map<std::string, double> state_dict() const;  // PyTorch's names; empty where it is not enabled
  void load_state_dict(const std::map<std::string, double>& saved);

 private:
  enum class Stage { ready, unscaled, stepped };
  struct Progress {  // of an optimizer since the last update
    Stage stage = Stage::ready;
    Tensor found_inf;  // 0-d, boolean: of the gradients as they are; undefined before they were looked at
    Tensor earlier;    // of steps before, where update() was left out
  };
  void require_scale(const char* call) const;
  bool is_alone(const Progress& progress) const;
  void look_at(const optim::Optimizer& optimizer, Progress& progress);
  void adapt(const Tensor& found_inf);
  void note_undo();

  Options options_;
  // Undefined until the first loss; then written in place, as replays of a captured step do.
  nn::Buffer scale_, growth_tracker_;
  double next_scale_;  // what they begin with
  int64_t next_tracker_ = 0;
  bool updates_itself_ = false;
  std::map<const optim::Optimizer*, Progress> progress_;
};

}  // namespace volta

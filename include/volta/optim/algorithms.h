// The optimizers, with PyTorch's names, options, defaults and arithmetic. With master_weights a half parameter has a copy in
// f32, which takes the steps and is rounded into the parameter after each: small steps add up instead of being lost.
#pragma once
#include <array>

#include <volta/optim/optimizer.h>

namespace volta::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false, master_weights = false;
};
// Stochastic gradient descent: optim::SGD opt(parameters(model), {.lr = 0.1, .momentum = 0.9});
class SGD : public Optimizer {
 public:
  using Options = SGDOptions;
  SGD(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return options_.dampening == 0; }
  Options options_;
};

struct AdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false, master_weights = false;
};
// Adaptive moments, weight decay as part of the gradient: optim::Adam opt(parameters(model), {.lr = 1e-3});
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  Adam(Params params, const Options& options = {}) : Adam("Adam", std::move(params), options, false) {}

 protected:
  Adam(std::string name, Params params, const Options& options, bool decoupled);
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return true; }

 private:
  Options options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false, master_weights = false;
};
// Adam with the decay applied to the weights: optim::AdamW opt(parameters(model), {.weight_decay = 0.1});
class AdamW : public Adam {
 public:
  using Options = AdamWOptions;
  AdamW(Params params, const Options& o = {})
      : Adam("AdamW", std::move(params),
             {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize, o.master_weights}, true) {}
};

struct AdamaxOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool maximize = false, master_weights = false;
};
// Adam by the infinity norm: optim::Adamax opt(parameters(model));
class Adamax : public Optimizer {
 public:
  using Options = AdamaxOptions;
  Adamax(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
};

struct NAdamOptions {
  double lr = 2e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false, master_weights = false;
};
// Adam with Nesterov momentum: optim::NAdam opt(parameters(model));
class NAdam : public Optimizer {
 public:
  using Options = NAdamOptions;
  NAdam(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Shape slot_shape(size_t slot, const Tensor& param) const override { return slot == 2 ? Shape() : param.shape(); }
  Options options_;
};

struct RAdamOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false, master_weights = false;
};
// Adam that warms itself up: optim::RAdam opt(parameters(model));
class RAdam : public Optimizer {
 public:
  using Options = RAdamOptions;
  RAdam(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Options options_;
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false, master_weights = false;
};
// Steps divided by a running root mean square: optim::RMSprop opt(parameters(model), {.lr = 1e-3});
class RMSprop : public Optimizer {
 public:
  using Options = RMSpropOptions;
  RMSprop(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return true; }
  Options options_;
};

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false, master_weights = false;
};
// Steps divided by the root of all squares so far: optim::Adagrad opt(parameters(model));
class Adagrad : public Optimizer {
 public:
  using Options = AdagradOptions;
  Adagrad(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return options_.lr_decay == 0; }
  Options options_;
};

struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false, master_weights = false;
};
// Steps in the units of the parameters: optim::Adadelta opt(parameters(model));
class Adadelta : public Optimizer {
 public:
  using Options = AdadeltaOptions;
  Adadelta(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return true; }
  Options options_;
};

struct LionOptions {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false, master_weights = false;
};
// Steps of one size, by the sign of the momentum: optim::Lion opt(parameters(model), {.lr = 1e-4});
class Lion : public Optimizer {
 public:
  using Options = LionOptions;
  Lion(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  bool skips_on_device() const override { return true; }
};

struct LAMBOptions {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-6, weight_decay = 0.01;
  bool maximize = false, master_weights = false;
};
// AdamW steps scaled to the norm of each parameter, for large batches: optim::LAMB opt(parameters(model));
class LAMB : public Optimizer {
 public:
  using Options = LAMBOptions;
  LAMB(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
};

// How a step of Muon is scaled: by the form of the matrix, or to be as large as AdamW's, so that its lr can be used.
enum class AdjustLR { original, match_rms_adamw };
constexpr std::array<std::string_view, 2> choice_names(AdjustLR) { return {"original", "match_rms_adamw"}; }
struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  double eps = 1e-7;
  int ns_steps = 5;
  Choice<AdjustLR> adjust_lr_fn = AdjustLR::original;
  bool match_rms_adamw = false;  // the same as adjust_lr_fn = "match_rms_adamw"
  // AdamW takes over for vectors, numbers and groups with .adamw = true; its lr follows the schedule in proportion.
  double adamw_lr = 3e-4;
  Betas betas = {0.9, 0.999};
  double adamw_eps = 1e-8;
  bool maximize = false, master_weights = false;
};
// Momentum made orthogonal by Newton-Schulz iterations, for the matrices of hidden layers (filters count as matrices):
// optim::Muon opt({{.params = parameters(blocks)}, {.params = parameters(embedding), .adamw = true}}, {.lr = 0.02});
class Muon : public Optimizer {
 public:
  using Options = MuonOptions;
  Muon(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Options options_;
};

struct ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false, master_weights = false;
};
// Averaged stochastic gradient descent; the averages are the state "ax": optim::ASGD opt(parameters(model));
class ASGD : public Optimizer {
 public:
  using Options = ASGDOptions;
  ASGD(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Shape slot_shape(size_t slot, const Tensor& param) const override { return slot > 0 ? Shape() : param.shape(); }
  Options options_;
};

struct RpropOptions {
  double lr = 1e-2;
  std::pair<double, double> etas = {0.5, 1.2};        // factors of a step after the sign changed, and did not
  std::pair<double, double> step_sizes = {1e-6, 50};  // the least and the largest step
  bool maximize = false, master_weights = false;
};
// Steps by the sign of the gradient, of a size for each element, for whole batches: optim::Rprop opt(parameters(model));
class Rprop : public Optimizer {
 public:
  using Options = RpropOptions;
  Rprop(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Options options_;
};

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8;
  std::pair<std::optional<double>, double> eps = {{}, 1e-3};  // of the squares (the dtype's own), and of the parameter
  double d = 1, weight_decay = 0;                             // d: the largest root mean square of a step
  bool maximize = false, master_weights = false;
};
// Second moments by rows and columns, in little memory: optim::Adafactor opt(parameters(model));
class Adafactor : public Optimizer {
 public:
  using Options = AdafactorOptions;
  Adafactor(Params params, const Options& options = {});

 private:
  void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) override;
  Shape slot_shape(size_t slot, const Tensor& param) const override;
  Options options_;
};

// strong_wolfe: search along the line for a step that meets the strong Wolfe conditions.
enum class LineSearch { none, strong_wolfe };
constexpr std::array<std::string_view, 2> choice_names(LineSearch) { return {"none", "strong_wolfe"}; }
struct LBFGSOptions {
  double lr = 1;
  int max_iter = 20;
  // Evaluations of the loss. A given number also ends a line search, after one try at least; 0 stands for
  // max_iter * 5 / 4, which is checked between searches only.
  int max_eval = 0;
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int history_size = 100;
  Choice<LineSearch> line_search_fn = LineSearch::none;
  bool strong_wolfe = false;  // the same as line_search_fn = "strong_wolfe"
};
// Quasi-Newton steps of a deterministic loss: optim::LBFGS opt(params, {.strong_wolfe = true}); opt.step(closure);
class LBFGS : public Optimizer {
 public:
  using Options = LBFGSOptions;
  LBFGS(Params params, const Options& options = {});
  void step() override;  // an error: it needs the closure
  Tensor step(const Closure& closure) override;

 private:
  struct Point {  // a place on the search line: how far, the loss there, its gradient, the slope along the line
    double t = 0, loss = 0;
    Tensor gradient;
    double slope = 0;
  };
  using Evaluate = std::function<Point(double t)>;
  void update(const Tensor&, const Tensor&, State&, const ParamGroup&) override {}
  std::map<std::string, Tensor> shared_state() const override;
  void check_shared_state(const std::map<std::string, Tensor>& saved) const override;
  void load_shared_state(const std::map<std::string, Tensor>& saved) override;
  int64_t numel() const;  // of all parameters
  void forget();          // the history
  void follow(const Tensor& gradient);
  Tensor gather_gradient() const;
  void move(double by, const Tensor& direction) const;
  Tensor next_direction(const Tensor& gradient);
  Point search(const Evaluate& at, Point start, double t, int evaluations) const;  // at most so many

  Options options_;
  int64_t iterations_ = 0, evaluations_ = 0;
  double t_ = 0;
  Tensor direction_, previous_gradient_;
  std::vector<Tensor> steps_, changes_;  // differences of positions and of gradients
  double scale_ = 1;                     // of the initial inverse Hessian
};

}  // namespace volta::optim

// Learning-rate schedules, with PyTorch's names and numbers. Each is a function of the step alone, so that combining,
// saving and resuming them is exact. Where somebody else has changed a rate (another schedule of the same optimizer, a
// hand), a step goes on from that rate, as PyTorch's does.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <volta/optim/optimizer.h>

namespace volta::optim {

using SchedulerState = std::map<std::string, double>;

// One's own schedule says the rate of a group at a step, given its rate without a schedule:
//   struct HalfwayLR : optim::Scheduler {
//     HalfwayLR(optim::Optimizer& o) : Scheduler(o) { begin(); }
//     double rate(double base, int64_t step, size_t) const override { return step < 100 ? base : base / 2; }
//   };
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual double rate(double base, int64_t step, size_t group) const = 0;
  // The rate of a step where lr is in use before it, which this schedule has not set: by default lr changes by the
  // factor by which the schedule's own rate does. Step 0 is the schedule's beginning.
  virtual double onward(double lr, double base, int64_t step, size_t group) const;
  void step();  // opt.step(); scheduler.step();
  int64_t last_epoch() const { return step_; }
  std::vector<double> get_last_lr() const;  // scheduler.get_last_lr()[0]: the rates in use, by group
  SchedulerState state_dict() const;        // other.load_state_dict(scheduler.state_dict())
  void load_state_dict(const SchedulerState& saved);

 protected:
  explicit Scheduler(Optimizer& optimizer);
  void begin() { move(0); }  // for constructors: sets the first rate
  // The momentum (the first of Adam's betas) that goes with a step, where a schedule has one.
  virtual std::optional<double> momentum(int64_t, size_t) const { return {}; }
  Optimizer& optimizer() const { return *optimizer_; }
  // Told the step before its rates are asked for, by step() alone: its own, or that of a SequentialLR or WarmupLR which
  // holds it. Step 0 is told by a SequentialLR, where the schedule takes over from another.
  virtual void advance(int64_t) {}
  virtual void save(SchedulerState&) const {}  // what a schedule keeps beside the step
  virtual void load(const SchedulerState&) {}
  void require(bool holds, const char* op, const std::string& message) const;
  void require_momentum(const char* op) const;

 private:
  friend class AnyScheduler;
  std::vector<double> bases() const;
  void move(int64_t step);
  std::vector<double> own_rates(const std::vector<double>& base, int64_t step) const;
  void set(int64_t step, std::vector<double> base, std::vector<double> own, const std::vector<double>& lr);
  Optimizer* optimizer_;
  std::vector<double> base_, own_;  // by group: without a schedule; by this one alone, at this step
  int64_t step_ = 0;
};

// A list of schedulers of different types holds these.
class AnyScheduler {
 public:
  template <std::derived_from<Scheduler> S> AnyScheduler(S scheduler)
      : inner_(std::make_shared<S>(std::move(scheduler))) {}
  explicit AnyScheduler(std::shared_ptr<Scheduler> scheduler);  // an Error where it points to none
  double rate(double base, int64_t step, size_t group) const { return held().rate(base, step, group); }
  double onward(double lr, double base, int64_t step, size_t group) const {
    return held().onward(lr, base, step, group);
  }
  void step() const { held().step(); }
  int64_t last_epoch() const { return held().last_epoch(); }
  std::vector<double> get_last_lr() const { return held().get_last_lr(); }
  SchedulerState state_dict() const { return held().state_dict(); }
  void load_state_dict(const SchedulerState& saved) const { held().load_state_dict(saved); }
  // For a schedule that holds others: what it passes on to them beside rate and onward.
  std::optional<double> momentum(int64_t step, size_t group) const { return held().momentum(step, group); }
  void advance(int64_t step) const { held().advance(step); }
  void save(SchedulerState& state, const std::string& prefix) const;  // under keys that begin with the prefix
  void load(const SchedulerState& saved, const std::string& prefix) const;

 private:
  Scheduler& held() const;  // an Error where it was moved from
  std::shared_ptr<Scheduler> inner_;
};

struct StepLROptions {
  Int step_size = 1;
  double gamma = 0.1;
};
class StepLR : public Scheduler {  // optim::StepLR s(opt, {.step_size = 30, .gamma = 0.1});
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;

 private:
  StepLROptions o_;
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones = {};
  double gamma = 0.1;
};
class MultiStepLR : public Scheduler {  // optim::MultiStepLR s(opt, {.milestones = {30, 80}});
 public:
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;

 private:
  MultiStepLROptions o_;
};

struct ConstantLROptions {
  double factor = 1. / 3;
  Int total_iters = 5;
};
class ConstantLR : public Scheduler {  // optim::ConstantLR s(opt, {.factor = 0.5, .total_iters = 4});
 public:
  ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {});
  double rate(double base, int64_t step, size_t group) const override;

 private:
  ConstantLROptions o_;
};

struct ExponentialLROptions {
  double gamma = 0.9;
};
class ExponentialLR : public Scheduler {  // optim::ExponentialLR s(opt, {.gamma = 0.95});
 public:
  ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;

 private:
  ExponentialLROptions o_;
};

struct PolynomialLROptions {
  Int total_iters = 5;
  double power = 1;
};
class PolynomialLR : public Scheduler {  // optim::PolynomialLR s(opt, {.total_iters = 100, .power = 2});
 public:
  PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {});
  double rate(double base, int64_t step, size_t group) const override;

 private:
  PolynomialLROptions o_;
};

struct LinearLROptions {
  double start_factor = 1. / 3, end_factor = 1;
  Int total_iters = 5;
};
class LinearLR : public Scheduler {  // optim::LinearLR s(opt, {.start_factor = 0.1, .total_iters = 10});
 public:
  LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});
  double rate(double base, int64_t step, size_t group) const override;

 private:
  LinearLROptions o_;
};

struct CosineAnnealingLROptions {
  Int t_max = 1;
  double eta_min = 0;
};
class CosineAnnealingLR : public Scheduler {  // optim::CosineAnnealingLR s(opt, {.t_max = 100});
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 private:
  CosineAnnealingLROptions o_;
};

struct CosineAnnealingWarmRestartsOptions {
  Int t_0 = 1, t_mult = 1;
  double eta_min = 0;
};
class CosineAnnealingWarmRestarts : public Scheduler {  // optim::CosineAnnealingWarmRestarts s(opt, {.t_0 = 10});
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 private:
  CosineAnnealingWarmRestartsOptions o_;
};

enum class Anneal { cos, linear };
constexpr std::array<std::string_view, 2> choice_names(Anneal) { return {"cos", "linear"}; }
struct OneCycleLROptions {
  Numbers max_lr = 0;                // of all groups, or one for each
  std::vector<double> max_lrs = {};  // the same as a list
  Int total_steps = 0, epochs = 0, steps_per_epoch = 0;
  double pct_start = 0.3;
  Choice<Anneal> anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
class OneCycleLR : public Scheduler {  // optim::OneCycleLR s(opt, {.max_lr = 0.1, .total_steps = 1000});
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  std::optional<double> momentum(int64_t step, size_t group) const override;

 private:
  double along(int64_t step, double start, double middle, double end) const;
  OneCycleLROptions o_;
};

enum class CycleScale { cycle, iterations };
constexpr std::array<std::string_view, 2> choice_names(CycleScale) { return {"cycle", "iterations"}; }
enum class Cycle { triangular, triangular2, exp_range };
constexpr std::array<std::string_view, 3> choice_names(Cycle) { return {"triangular", "triangular2", "exp_range"}; }
struct CyclicLROptions {
  Numbers base_lr = 0, max_lr = 0;  // of all groups, or one for each
  Int step_size_up = 2000;
  std::optional<Int> step_size_down = {};
  Choice<Cycle> mode = Cycle::triangular;
  double gamma = 1;
  std::function<double(double)> scale_fn = {};        // instead of mode
  Choice<CycleScale> scale_mode = CycleScale::cycle;  // scale_fn is given the cycle's number, or the step's
  bool cycle_momentum = true;
  double base_momentum = 0.8, max_momentum = 0.9;
};
class CyclicLR : public Scheduler {  // optim::CyclicLR s(opt, {.base_lr = 1e-3, .max_lr = 0.1});
 public:
  CyclicLR(Optimizer& optimizer, const CyclicLROptions& options);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  std::optional<double> momentum(int64_t step, size_t group) const override;

 private:
  double height(int64_t step) const;
  CyclicLROptions o_;
};

struct SWALROptions {
  Numbers swa_lr = 0.05;  // of all groups, or one for each
  Int anneal_epochs = 10;
  Choice<Anneal> anneal_strategy = Anneal::cos;
};
// From the rates in use at its first step to constant ones, while optim::SWA averages: optim::SWALR s(opt, {.swa_lr = 0.05});
class SWALR : public Scheduler {
 public:
  SWALR(Optimizer& optimizer, const SWALROptions& options);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  void advance(int64_t step) override;
  void save(SchedulerState& state) const override;
  void load(const SchedulerState& saved) override;

 private:
  double share(int64_t step) const;
  SWALROptions o_;
  std::vector<double> from_;
};

class LambdaLR : public Scheduler {  // optim::LambdaLR s(opt, [](int64_t t) { return 1 / std::sqrt(t + 1.0); });
 public:
  using Factor = std::function<double(int64_t)>;
  LambdaLR(Optimizer& optimizer, Factor factor) : LambdaLR(optimizer, std::vector<Factor>{std::move(factor)}) {}
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);  // one for each group
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 private:
  std::vector<Factor> factors_;
};

struct WarmupLROptions {
  Int steps = 1000;
  double start_factor = 0;
};
// From a fraction of the rate up to it in a line, then as another schedule says:
// optim::WarmupLR s(opt, {.steps = 500}, optim::CosineAnnealingLR(opt, {.t_max = 10000}));
class WarmupLR : public Scheduler {
 public:
  WarmupLR(Optimizer& optimizer, const WarmupLROptions& options = {}, std::optional<AnyScheduler> then = {});
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  std::optional<double> momentum(int64_t step, size_t group) const override;
  void advance(int64_t step) override;
  void save(SchedulerState& state) const override;
  void load(const SchedulerState& saved) override;

 private:
  WarmupLROptions o_;
  std::optional<AnyScheduler> then_;
};

// One schedule after another, each beginning anew at its milestone:
// optim::SequentialLR s(opt, {optim::LinearLR(opt), optim::ExponentialLR(opt, {.gamma = 0.9})}, {5});
class SequentialLR : public Scheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<AnyScheduler> schedulers, std::vector<int64_t> milestones);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  std::optional<double> momentum(int64_t step, size_t group) const override;
  void advance(int64_t step) override;
  void save(SchedulerState& state) const override;
  void load(const SchedulerState& saved) override;

 private:
  std::pair<size_t, int64_t> place(int64_t step) const;  // whose step it is, and which of its own
  std::vector<AnyScheduler> schedulers_;
  std::vector<int64_t> milestones_;
};

// Schedules multiplied: optim::ChainedScheduler s(opt, {optim::ConstantLR(opt), optim::ExponentialLR(opt, {.gamma = 0.9})});
class ChainedScheduler : public Scheduler {
 public:
  ChainedScheduler(Optimizer& optimizer, std::vector<AnyScheduler> schedulers);
  double rate(double base, int64_t step, size_t group) const override;
  double onward(double lr, double base, int64_t step, size_t group) const override;

 protected:
  std::optional<double> momentum(int64_t step, size_t group) const override;
  void save(SchedulerState& state) const override;
  void load(const SchedulerState& saved) override;

 private:
  std::vector<AnyScheduler> schedulers_;
};

enum class Plateau { min, max };
constexpr std::array<std::string_view, 2> choice_names(Plateau) { return {"min", "max"}; }
enum class Threshold { relative, absolute };
constexpr std::array<std::string_view, 2> choice_names(Threshold) { return {"rel", "abs"}; }
struct ReduceLROnPlateauOptions {
  Choice<Plateau> mode = Plateau::min;
  double factor = 0.1;
  Int patience = 10;
  double threshold = 1e-4;
  Choice<Threshold> threshold_mode = Threshold::relative;
  Int cooldown = 0;
  Numbers min_lr = 0;  // of all groups, or one for each
  double eps = 1e-8;
};
// Lowers the rates when a measure stops improving: optim::ReduceLROnPlateau s(opt, {.patience = 5}); s.step(loss);
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metric);
  std::vector<double> get_last_lr() const;
  SchedulerState state_dict() const;
  void load_state_dict(const SchedulerState& saved);

 private:
  bool better(double metric) const;
  Optimizer* optimizer_;
  ReduceLROnPlateauOptions o_;
  double best_;
  int64_t bad_ = 0, cooling_ = 0, epoch_ = 0;
};

}  // namespace volta::optim

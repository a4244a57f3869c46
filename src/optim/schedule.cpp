// The learning-rate schedules.
#include <volta/optim/algorithms.h>
#include <volta/optim/schedule.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/recording.h"

namespace volta::optim {
namespace {

double cosine_between(double start, double end, double share) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * share));
}

double read(const SchedulerState& saved, const std::string& key) {
  const auto found = saved.find(key);
  if (found == saved.end()) throw Error(Error::Kind::argument, "load_state_dict", "the scheduler's state lacks " + key);
  return found->second;
}

void require_that(bool holds, const char* op, const std::string& message) {
  if (!holds) throw Error(Error::Kind::argument, op, message);
}
double read_finite(const SchedulerState& saved, const std::string& key) {
  const double value = read(saved, key);
  require_that(std::isfinite(value), "load_state_dict", key + " is " + std::to_string(value));
  return value;
}
void require_number(double value, const char* op, const std::string& what) {
  require_that(std::isfinite(value) && value >= 0, op,
               what + " must be finite and at least 0, not " + std::to_string(value));
}
void require_share(double value, const char* op, const std::string& what) {
  require_that(value >= 0 && value <= 1, op, what + " must be in [0, 1], not " + std::to_string(value));
}
// One number for each group, each of them finite and at least 0.
void require_numbers(const Numbers& given, const Optimizer& optimizer, const char* op, const std::string& what) {
  require_that(given.size() == 1 || given.size() == optimizer.param_groups().size(), op,
               what + " needs one number, or one for each group");
  for (const double value : given.list()) require_number(value, op, what);
}

// The value for a group: of a list of one for all groups, or of one for each, which has none for a group added later.
template <class T> const T& at(const std::vector<T>& list, size_t group, const char* op, const char* what) {
  if (list.size() == 1) return list[0];
  require_that(group < list.size(), op, std::string(what) + " has no value for group " + std::to_string(group));
  return list[group];
}

std::vector<double> rates(const Optimizer& optimizer) {
  std::vector<double> all;
  for (const ParamGroup& group : optimizer.param_groups()) all.push_back(group.lr);
  return all;
}

// Numbers that an optimizer does not use are 0, but 0 may also be what one that uses them was given.
template <class... Types> bool is_one_of(const Optimizer& optimizer) {
  return (dynamic_cast<const Types*>(&optimizer) || ...);
}
bool has_momentum(const Optimizer& optimizer, const ParamGroup& group) {
  return group.momentum > 0 || is_one_of<SGD, RMSprop, Muon>(optimizer);
}
bool has_betas(const Optimizer& optimizer, const ParamGroup& group) {
  return group.betas != Betas{0, 0} || is_one_of<Adam, Adamax, NAdam, RAdam, Lion, LAMB, Muon>(optimizer);
}

void save_all(const std::vector<AnyScheduler>& all, SchedulerState& state) {
  for (size_t i = 0; i < all.size(); ++i) all[i].save(state, "schedulers." + std::to_string(i) + ".");
}
void load_all(const std::vector<AnyScheduler>& all, const SchedulerState& saved) {
  for (size_t i = 0; i < all.size(); ++i) all[i].load(saved, "schedulers." + std::to_string(i) + ".");
}

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer) : optimizer_(&optimizer) { own_ = base_ = bases(); }

// Includes the groups that were added since.
std::vector<double> Scheduler::bases() const {
  const auto& groups = optimizer_->param_groups();
  require_that(groups.size() >= base_.size(), "scheduler", "the optimizer has fewer groups than at the start");
  std::vector<double> all = base_;
  for (size_t i = all.size(); i < groups.size(); ++i) all.push_back(groups[i].initial_lr.value_or(groups[i].lr));
  return all;
}

std::vector<double> Scheduler::own_rates(const std::vector<double>& base, int64_t step) const {
  std::vector<double> own;
  for (size_t i = 0; i < base.size(); ++i) own.push_back(rate(base[i], step, i));
  return own;
}

double Scheduler::onward(double lr, double base, int64_t step, size_t group) const {
  const double before = step == 0 ? base : rate(base, step - 1, group), now = rate(base, step, group);
  if (before == 0) return now == 0 ? lr : now;
  return lr * (now / before);
}

// From rates of its own the schedule goes to rates of its own, which gathers no rounding errors.
void Scheduler::move(int64_t step) {
  const auto& groups = optimizer_->param_groups();
  std::vector<double> base = bases(), own = own_rates(base, step), lr = own;
  for (size_t i = 0; i < lr.size(); ++i) {
    if (i < own_.size() && groups[i].lr == own_[i]) continue;
    lr[i] = onward(groups[i].lr, base[i], step, i);
    if (std::abs(lr[i] - own[i]) <= 1e-12 * std::abs(own[i])) lr[i] = own[i];
  }
  set(step, std::move(base), std::move(own), lr);
}

// All that can fail comes first.
void Scheduler::set(int64_t step, std::vector<double> base, std::vector<double> own, const std::vector<double>& lr) {
  auto& groups = optimizer_->param_groups();
  std::vector<std::optional<double>> moment(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    moment[i] = momentum(step, i);
    require_that(std::isfinite(lr[i]) && std::isfinite(moment[i].value_or(0)), "scheduler",
                 "the rate of step " + std::to_string(step) + " would be " + std::to_string(lr[i]));
  }
  step_ = step;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].initial_lr) groups[i].initial_lr = base[i];
    groups[i].lr = lr[i];
    if (!moment[i]) continue;
    const bool betas = has_betas(*optimizer_, groups[i]);  // Muon has both
    if (!betas || has_momentum(*optimizer_, groups[i])) groups[i].momentum = *moment[i];
    if (betas) groups[i].betas.first = *moment[i];
  }
  base_ = std::move(base);
  own_ = std::move(own);
}

void Scheduler::step() {
  if (Recording* const recording = Recording::current()) recording->host_work.emplace_back([this] { step(); });
  advance(step_ + 1);
  move(step_ + 1);
}

std::vector<double> Scheduler::get_last_lr() const { return rates(*optimizer_); }

// A rate is saved only where it is not the schedule's own.
SchedulerState Scheduler::state_dict() const {
  SchedulerState state{{"last_epoch", double(step_)}};
  const auto& groups = optimizer_->param_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string number = std::to_string(i);
    state["base_lrs." + number] = i < base_.size() ? base_[i] : groups[i].initial_lr.value_or(groups[i].lr);
    if (i >= own_.size() || groups[i].lr != own_[i]) state["last_lrs." + number] = groups[i].lr;
  }
  save(state);
  return state;
}

void Scheduler::load_state_dict(const SchedulerState& saved) {
  const double step = read(saved, "last_epoch");
  require_that(step >= 0 && step <= 0x1p53, "load_state_dict", "last_epoch is " + std::to_string(step));
  std::vector<double> base = bases();
  for (size_t i = 0; i < base.size(); ++i) base[i] = read_finite(saved, "base_lrs." + std::to_string(i));
  SchedulerState before;
  save(before);
  try {
    load(saved);
    std::vector<double> own = own_rates(base, int64_t(step)), lr = own;
    for (size_t i = 0; i < lr.size(); ++i)
      if (const auto found = saved.find("last_lrs." + std::to_string(i)); found != saved.end()) lr[i] = found->second;
    set(int64_t(step), std::move(base), std::move(own), lr);
  } catch (...) {
    load(before);
    throw;
  }
}

void Scheduler::require(bool holds, const char* op, const std::string& message) const {
  if (!holds) throw Error(Error::Kind::argument, op, message);
}

void Scheduler::require_momentum(const char* op) const {
  for (const ParamGroup& g : optimizer().param_groups())
    require(has_momentum(optimizer(), g) || has_betas(optimizer(), g), op,
            optimizer().name() + " has no momentum to cycle; set cycle_momentum = false");
}

AnyScheduler::AnyScheduler(std::shared_ptr<Scheduler> scheduler) : inner_(std::move(scheduler)) {
  require_that(inner_ != nullptr, "AnyScheduler", "the pointer to the scheduler is null");
}
Scheduler& AnyScheduler::held() const {
  require_that(inner_ != nullptr, "AnyScheduler", "it holds no scheduler: it was moved from");
  return *inner_;
}

void AnyScheduler::save(SchedulerState& state, const std::string& prefix) const {
  SchedulerState own;
  held().save(own);
  for (const auto& [key, value] : own) state[prefix + key] = value;
}

void AnyScheduler::load(const SchedulerState& saved, const std::string& prefix) const {
  SchedulerState own;
  for (const auto& [key, value] : saved)
    if (key.starts_with(prefix)) own[key.substr(prefix.size())] = value;
  held().load(own);
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.step_size > 0, "StepLR", "step_size must be above 0");
  require_number(o.gamma, "StepLR", "gamma");
  begin();
}
double StepLR::rate(double base, int64_t step, size_t) const {
  const int64_t falls = step / o_.step_size;
  return base * std::pow(o_.gamma, double(falls));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& o) : Scheduler(optimizer), o_(o) {
  require_number(o.gamma, "MultiStepLR", "gamma");
  for (const int64_t at : o.milestones) require(at >= 0, "MultiStepLR", "milestones must not be negative");
  std::sort(o_.milestones.begin(), o_.milestones.end());
  begin();
}
double MultiStepLR::rate(double base, int64_t step, size_t) const {
  const auto passed = std::upper_bound(o_.milestones.begin(), o_.milestones.end(), step) - o_.milestones.begin();
  return base * std::pow(o_.gamma, double(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.factor >= 0 && o.factor <= 1, "ConstantLR", "factor must be in [0, 1]");
  require(o.total_iters >= 0, "ConstantLR", "total_iters must be at least 0");
  begin();
}
double ConstantLR::rate(double base, int64_t step, size_t) const {
  return step < o_.total_iters ? base * o_.factor : base;
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, const ExponentialLROptions& o) : Scheduler(optimizer), o_(o) {
  require_number(o.gamma, "ExponentialLR", "gamma");
  begin();
}
double ExponentialLR::rate(double base, int64_t step, size_t) const { return base * std::pow(o_.gamma, double(step)); }

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.total_iters > 0, "PolynomialLR", "total_iters must be above 0");
  require_number(o.power, "PolynomialLR", "power");
  begin();
}
double PolynomialLR::rate(double base, int64_t step, size_t) const {
  return base * std::pow(1 - double(std::min<int64_t>(step, o_.total_iters)) / double(o_.total_iters), o_.power);
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.total_iters > 0, "LinearLR", "total_iters must be above 0");
  require(o.start_factor > 0 && o.start_factor <= 1, "LinearLR", "start_factor must be in (0, 1]");
  require(o.end_factor >= 0 && o.end_factor <= 1, "LinearLR", "end_factor must be in [0, 1]");
  begin();
}
double LinearLR::rate(double base, int64_t step, size_t) const {
  const double share = double(std::min<int64_t>(step, o_.total_iters)) / double(o_.total_iters);
  return base * (o_.start_factor + (o_.end_factor - o_.start_factor) * share);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& o)
    : Scheduler(optimizer), o_(o) {
  require(o.t_max > 0, "CosineAnnealingLR", "t_max must be above 0");
  require_number(o.eta_min, "CosineAnnealingLR", "eta_min");
  begin();
}
double CosineAnnealingLR::rate(double base, int64_t step, size_t) const {
  return cosine_between(base, o_.eta_min, double(step) / double(o_.t_max));
}
double CosineAnnealingLR::onward(double lr, double base, int64_t step, size_t) const {
  if (step == 0) return lr;
  const auto risen = [&](int64_t at) { return 1 + std::cos(std::numbers::pi * double(at) / double(o_.t_max)); };
  const bool from_lowest = (step - 1) % o_.t_max == 0 && (step - 1) / o_.t_max % 2 == 1;
  if (from_lowest) return lr + (base - o_.eta_min) * (2 - risen(1)) / 2;
  return risen(step) / risen(step - 1) * (lr - o_.eta_min) + o_.eta_min;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer,
                                                         const CosineAnnealingWarmRestartsOptions& o)
    : Scheduler(optimizer), o_(o) {
  require(o.t_0 > 0, "CosineAnnealingWarmRestarts", "t_0 must be above 0");
  require(o.t_mult > 0, "CosineAnnealingWarmRestarts", "t_mult must be above 0");
  require_number(o.eta_min, "CosineAnnealingWarmRestarts", "eta_min");
  begin();
}
double CosineAnnealingWarmRestarts::rate(double base, int64_t step, size_t) const {
  int64_t length = o_.t_0;
  if (o_.t_mult == 1) step %= length;
  else
    while (step >= length) {
      step -= length;
      if (__builtin_mul_overflow(length, int64_t(o_.t_mult), &length)) length = std::numeric_limits<int64_t>::max();
    }
  return cosine_between(base, o_.eta_min, double(step) / double(length));
}
double CosineAnnealingWarmRestarts::onward(double, double base, int64_t step, size_t group) const {
  return rate(base, step, group);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.epochs >= 0 && o.steps_per_epoch >= 0, "OneCycleLR", "epochs and steps_per_epoch must not be negative");
  int64_t steps = o.total_steps;
  const bool fits = steps || !__builtin_mul_overflow(int64_t(o.epochs), int64_t(o.steps_per_epoch), &steps);
  o_.total_steps = steps;
  require(fits && o_.total_steps > 0, "OneCycleLR", "give total_steps, or epochs and steps_per_epoch");
  require(o.pct_start >= 0 && o.pct_start <= 1, "OneCycleLR", "pct_start must be in [0, 1]");
  o.anneal_strategy.of("OneCycleLR", "anneal_strategy");
  for (const auto& [value, what] : {std::pair(o.base_momentum, "base_momentum"), {o.max_momentum, "max_momentum"}})
    require_share(value, "OneCycleLR", what);
  for (const auto& [value, what] : {std::pair(o.div_factor, "div_factor"), {o.final_div_factor, "final_div_factor"}})
    require(std::isfinite(value) && value > 0, "OneCycleLR", std::string(what) + " must be finite and above 0");
  if (o_.max_lrs.empty()) o_.max_lrs = o.max_lr.list();
  require(o_.max_lrs.size() == 1 || o_.max_lrs.size() == optimizer.param_groups().size(), "OneCycleLR",
          "max_lr needs one rate for each group");
  for (double lr : o_.max_lrs) require(std::isfinite(lr) && lr > 0, "OneCycleLR", "max_lr must be above 0");
  if (o.cycle_momentum) require_momentum("OneCycleLR");
  begin();
}

// The value on the way start, middle, (start,) end, whose corners lie where pct_start says.
double OneCycleLR::along(int64_t step, double start, double middle, double end) const {
  require(step <= o_.total_steps, "OneCycleLR",
          "step " + std::to_string(step) + " of a schedule of " + std::to_string(o_.total_steps));
  const double total = double(o_.total_steps), top = o_.pct_start * total - 1;
  struct Corner {
    double at, value;
  };
  const Corner two[] = {{0, start}, {top, middle}, {total - 1, end}};
  const Corner three[] = {{0, start}, {top, middle}, {2 * top, start}, {total - 1, end}};
  const Corner* next = (o_.three_phase ? three : two) + 1;
  while (double(step) > next->at && next->at < total - 1) ++next;
  const Corner& last = next[-1];
  const double share = (double(step) - last.at) / (next->at - last.at);
  if (o_.anneal_strategy == Anneal::cos) return cosine_between(last.value, next->value, share);
  return last.value + (next->value - last.value) * share;
}
double OneCycleLR::rate(double, int64_t step, size_t group) const {
  const double most = at(o_.max_lrs, group, "OneCycleLR", "max_lr"), first = most / o_.div_factor;
  return along(step, first, most, first / o_.final_div_factor);
}
double OneCycleLR::onward(double, double base, int64_t step, size_t group) const { return rate(base, step, group); }
std::optional<double> OneCycleLR::momentum(int64_t step, size_t) const {
  if (!o_.cycle_momentum) return {};
  return along(step, o_.max_momentum, o_.base_momentum, o_.max_momentum);
}

CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicLROptions& o) : Scheduler(optimizer), o_(o) {
  require(o.step_size_up > 0 && o.step_size_down.value_or(1) > 0, "CyclicLR", "step sizes must be above 0");
  o.mode.of("CyclicLR", "mode");
  o.scale_mode.of("CyclicLR", "scale_mode");
  require_number(o.gamma, "CyclicLR", "gamma");
  require_numbers(o.base_lr, optimizer, "CyclicLR", "base_lr"),
      require_numbers(o.max_lr, optimizer, "CyclicLR", "max_lr");
  require_share(o.base_momentum, "CyclicLR", "base_momentum"),
      require_share(o.max_momentum, "CyclicLR", "max_momentum");
  if (o.cycle_momentum) require_momentum("CyclicLR");
  begin();
}

// How high the triangle stands at a step, scaled as the mode says.
double CyclicLR::height(int64_t step) const {
  const double up = double(o_.step_size_up), down = double(o_.step_size_down.value_or(o_.step_size_up));
  const double total = up + down, cycle = std::floor(1 + double(step) / total);
  const double x = 1 + double(step) / total - cycle, turn = up / total;
  const double triangle = x <= turn ? x / turn : (x - 1) / (turn - 1);
  if (o_.scale_fn)
    return triangle *
           o_.scale_fn(o_.scale_mode.of("CyclicLR", "scale_mode") == CycleScale::cycle ? cycle : double(step));
  if (o_.mode == Cycle::triangular2) return triangle / std::pow(2, cycle - 1);
  return o_.mode == Cycle::exp_range ? triangle * std::pow(o_.gamma, double(step)) : triangle;
}
double CyclicLR::rate(double, int64_t step, size_t group) const {
  const double low = at(o_.base_lr.list(), group, "CyclicLR", "base_lr");
  return low + (at(o_.max_lr.list(), group, "CyclicLR", "max_lr") - low) * height(step);
}
double CyclicLR::onward(double, double base, int64_t step, size_t group) const { return rate(base, step, group); }
std::optional<double> CyclicLR::momentum(int64_t step, size_t) const {
  if (!o_.cycle_momentum) return {};
  return o_.max_momentum - (o_.max_momentum - o_.base_momentum) * height(step);
}

SWALR::SWALR(Optimizer& optimizer, const SWALROptions& o) : Scheduler(optimizer), o_(o), from_(rates(optimizer)) {
  o.anneal_strategy.of("SWALR", "anneal_strategy");
  require_numbers(o.swa_lr, optimizer, "SWALR", "swa_lr");
  require(o.anneal_epochs >= 0, "SWALR", "anneal_epochs must not be negative");
  begin();
}
// The rates that another schedule has left when this one takes over.
void SWALR::advance(int64_t step) {
  if (step <= 1) from_ = get_last_lr();
}
double SWALR::share(int64_t step) const {
  const double t = std::min(1., double(step) / double(std::max<int64_t>(1, o_.anneal_epochs)));
  return o_.anneal_strategy == Anneal::cos ? (1 - std::cos(std::numbers::pi * t)) / 2 : t;
}
double SWALR::rate(double base, int64_t step, size_t group) const {
  if (o_.anneal_epochs == 0) step = std::max<int64_t>(1, step);
  const double from = group < from_.size() ? from_[group] : base;  // a group may have been added since
  return at(o_.swa_lr.list(), group, "SWALR", "swa_lr") * share(step) + from * (1 - share(step));
}
double SWALR::onward(double lr, double, int64_t step, size_t group) const {
  if (o_.anneal_epochs == 0) step = std::max<int64_t>(1, step);
  const double before = share(std::max<int64_t>(0, step - 1)), to = at(o_.swa_lr.list(), group, "SWALR", "swa_lr");
  const double from = before == 1 ? to : (lr - before * to) / (1 - before);
  return to * share(step) + from * (1 - share(step));
}
void SWALR::save(SchedulerState& state) const {
  const auto& groups = optimizer().param_groups();
  for (size_t i = 0; i < groups.size(); ++i)
    state["from_lrs." + std::to_string(i)] = i < from_.size() ? from_[i] : groups[i].initial_lr.value_or(groups[i].lr);
}
void SWALR::load(const SchedulerState& saved) {
  std::vector<double> from;
  for (size_t i = 0; i < optimizer().param_groups().size(); ++i)
    from.push_back(read_finite(saved, "from_lrs." + std::to_string(i)));
  from_ = std::move(from);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : Scheduler(optimizer), factors_(std::move(factors)) {
  const size_t groups = optimizer.param_groups().size();
  require(factors_.size() == 1 || factors_.size() == groups, "LambdaLR", "needs one function, or one for each group");
  for (const Factor& factor : factors_) require(bool(factor), "LambdaLR", "a function is empty");
  begin();
}
double LambdaLR::rate(double base, int64_t step, size_t group) const {
  return base * at(factors_, group, "LambdaLR", "factor")(step);
}
double LambdaLR::onward(double, double base, int64_t step, size_t group) const { return rate(base, step, group); }

WarmupLR::WarmupLR(Optimizer& optimizer, const WarmupLROptions& o, std::optional<AnyScheduler> then)
    : Scheduler(optimizer), o_(o), then_(std::move(then)) {
  require(o.steps > 0, "WarmupLR", "steps must be above 0");
  require(o.start_factor >= 0 && o.start_factor <= 1, "WarmupLR", "start_factor must be in [0, 1]");
  begin();
}
double WarmupLR::rate(double base, int64_t step, size_t group) const {
  if (step < o_.steps) return base * (o_.start_factor + (1 - o_.start_factor) * double(step) / double(o_.steps));
  return then_ ? then_->rate(base, step - o_.steps, group) : base;
}
double WarmupLR::onward(double lr, double base, int64_t step, size_t group) const {
  if (then_ && step == 0) return rate(base, step, group);  // what the other's beginning did to lr is not meant yet
  if (then_ && step > o_.steps) return then_->onward(lr, base, step - o_.steps, group);
  return Scheduler::onward(lr, base, step, group);
}
std::optional<double> WarmupLR::momentum(int64_t step, size_t group) const {
  if (!then_ || step < o_.steps) return {};
  return then_->momentum(step - o_.steps, group);
}
// At its step 0 the other has the full rate, which no step before has set.
void WarmupLR::advance(int64_t step) {
  if (then_ && step > o_.steps) then_->advance(step - o_.steps);
}
void WarmupLR::save(SchedulerState& state) const {
  if (then_) then_->save(state, "then.");
}
void WarmupLR::load(const SchedulerState& saved) {
  if (then_) then_->load(saved, "then.");
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<AnyScheduler> schedulers, std::vector<int64_t> milestones)
    : Scheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  require(!schedulers_.empty() && milestones_.size() + 1 == schedulers_.size(), "SequentialLR",
          "needs one milestone between any two schedulers");
  for (const int64_t at : milestones_) require(at >= 0, "SequentialLR", "milestones must not be negative");
  require(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialLR", "milestones must ascend");
  begin();
}
std::pair<size_t, int64_t> SequentialLR::place(int64_t step) const {
  require(!schedulers_.empty(), "SequentialLR", "the schedule was moved from");
  const auto i = size_t(std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin());
  return {i, i == 0 ? step : step - milestones_[i - 1]};
}
double SequentialLR::rate(double base, int64_t step, size_t group) const {
  const auto [i, own] = place(step);
  return schedulers_[i].rate(base, own, group);
}
double SequentialLR::onward(double lr, double base, int64_t step, size_t group) const {
  const auto [i, own] = place(step);
  return own == 0 ? rate(base, step, group) : schedulers_[i].onward(lr, base, own, group);
}
std::optional<double> SequentialLR::momentum(int64_t step, size_t group) const {
  const auto [i, own] = place(step);
  return schedulers_[i].momentum(own, group);
}
void SequentialLR::advance(int64_t step) {
  const auto [i, own] = place(step);
  schedulers_[i].advance(own);
}
void SequentialLR::save(SchedulerState& state) const { save_all(schedulers_, state); }
void SequentialLR::load(const SchedulerState& saved) { load_all(schedulers_, saved); }

ChainedScheduler::ChainedScheduler(Optimizer& optimizer, std::vector<AnyScheduler> schedulers)
    : Scheduler(optimizer), schedulers_(std::move(schedulers)) {
  require(!schedulers_.empty(), "ChainedScheduler", "needs a scheduler");
  begin();
}
double ChainedScheduler::rate(double base, int64_t step, size_t group) const {
  require(!schedulers_.empty(), "ChainedScheduler", "the schedule was moved from");
  double result = base;
  for (const AnyScheduler& s : schedulers_) result *= base == 0 ? 1 : s.rate(base, step, group) / base;
  return result;
}
// Each has changed the rate at its own beginning.
double ChainedScheduler::onward(double lr, double base, int64_t step, size_t group) const {
  if (step > 0)
    for (const AnyScheduler& s : schedulers_) lr = s.onward(lr, base, step, group);
  return lr;
}
std::optional<double> ChainedScheduler::momentum(int64_t step, size_t group) const {
  std::optional<double> last;
  for (const AnyScheduler& s : schedulers_)
    if (const auto one = s.momentum(step, group)) last = one;
  return last;
}
// Their advance is not called: the rate in use is the product, which is none of theirs to go on from.
void ChainedScheduler::save(SchedulerState& state) const { save_all(schedulers_, state); }
void ChainedScheduler::load(const SchedulerState& saved) { load_all(schedulers_, saved); }

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& o)
    : optimizer_(&optimizer),
      o_(o),
      best_((o.mode.of("ReduceLROnPlateau", "mode") == Plateau::min ? 1 : -1) *
            std::numeric_limits<double>::infinity()) {
  if (!(o.factor > 0 && o.factor < 1))
    throw Error(Error::Kind::argument, "ReduceLROnPlateau", "factor must be in (0, 1)");
  o.threshold_mode.of("ReduceLROnPlateau", "threshold_mode");
  require_that(o.patience >= 0 && o.cooldown >= 0, "ReduceLROnPlateau", "patience and cooldown must not be negative");
  require_number(o.threshold, "ReduceLROnPlateau", "threshold"), require_number(o.eps, "ReduceLROnPlateau", "eps");
  require_numbers(o.min_lr, optimizer, "ReduceLROnPlateau", "min_lr");
}

bool ReduceLROnPlateau::better(double metric) const {
  const bool lower = o_.mode == Plateau::min;
  if (std::isinf(best_)) return lower ? metric < best_ : metric > best_;
  const double margin = o_.threshold_mode == Threshold::relative ? o_.threshold * best_ : o_.threshold;
  return lower ? metric < best_ - margin : metric > best_ + margin;
}

void ReduceLROnPlateau::step(double metric) {
  Recording::refuse("ReduceLROnPlateau", "the host needs the metric");
  auto& groups = optimizer_->param_groups();
  require_that(o_.min_lr.size() == 1 || o_.min_lr.size() == groups.size(), "ReduceLROnPlateau",
               "the optimizer has another number of groups than at the start");
  ++epoch_;
  if (better(metric)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_ = 0;
  }
  if (bad_ <= o_.patience) return;
  for (size_t i = 0; i < groups.size(); ++i) {
    ParamGroup& group = groups[i];
    const double lower = std::max(group.lr * o_.factor, o_.min_lr[i]);
    if (group.lr - lower > o_.eps) group.lr = lower;
  }
  cooling_ = o_.cooldown;
  bad_ = 0;
}

std::vector<double> ReduceLROnPlateau::get_last_lr() const { return rates(*optimizer_); }

SchedulerState ReduceLROnPlateau::state_dict() const {
  return {{"best", best_},
          {"num_bad_epochs", double(bad_)},
          {"cooldown_counter", double(cooling_)},
          {"last_epoch", double(epoch_)}};
}

void ReduceLROnPlateau::load_state_dict(const SchedulerState& saved) {
  const double best = read(saved, "best"), bad = read(saved, "num_bad_epochs");
  const double cooling = read(saved, "cooldown_counter"), epoch = read(saved, "last_epoch");
  for (const double count : {bad, cooling, epoch})
    require_that(count >= 0 && count <= 0x1p53, "load_state_dict", "a count of " + std::to_string(count));
  best_ = best;
  bad_ = int64_t(bad);
  cooling_ = int64_t(cooling);
  epoch_ = int64_t(epoch);
}

}  // namespace volta::optim

// Optimizer: checking and resolving groups, the loop over parameters, saving and restoring.
#include <volta/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <volta/autograd.h>
#include <volta/create.h>
#include <volta/ops.h>

#include "backend/backend.h"
#include "core/check.h"
#include "core/impl.h"
#include "core/recording.h"
#include "graph/record.h"
#include "optim/update.h"

namespace volta::optim {
namespace {
constexpr const char* master_key = "master_param";

State state_of(const Tensor& p) {
  State state;
  state.shape = p.shape();
  state.parameter = p.impl_pointer();
  return state;
}

}  // namespace

Tensor& State::at(size_t slot, const Tensor& param, double value) {
  // f(state.at(0, p), state.at(1, p)) holds a reference while the next slot is made: it must not move.
  constexpr size_t usual = 16;
  volta::require(slot < usual, ErrorKind::argument, "State::at", "slot ", slot, " of at most ", usual);
  slots.reserve(usual);
  if (slots.size() <= slot) slots.resize(slot + 1);
  Tensor& held = slots[slot];
  const DType dtype = traits(param.dtype()).compute;
  // A parameter that was moved to another dtype or device takes its state along.
  if (!held.defined() || held.shape() != param.shape())
    held = full(param.shape(), value, {.dtype = dtype, .device = param.device()});
  else if (held.dtype() != dtype || held.device() != param.device()) held = held.to(param.device()).to(dtype);
  return held;
}

Params::Params(std::vector<Tensor> tensors) { groups.push_back({.params = std::move(tensors)}); }
Params::Params(std::vector<Group> list) : groups(std::move(list)) {}
Params::Params(std::initializer_list<Tensor> tensors) : Params(std::vector<Tensor>(tensors)) {}
Params::Params(std::initializer_list<Group> list) : groups(list) {}

Optimizer::Optimizer(std::string name, Params params, ParamGroup defaults, std::vector<std::string> slots,
                     bool maximize, bool master_weights)
    : name_(std::move(name)),
      defaults_(std::move(defaults)),
      slot_names_(std::move(slots)),
      maximize_(maximize),
      master_weights_(master_weights),
      queued_(new UpdateBatch) {
  counts_ = std::erase(slot_names_, "step") > 0;
  save_setting("maximize", &maximize_);
  if (master_weights_) save_setting("master_weights", &master_weights_);
  check(defaults_);
  if (params.groups.empty()) throw_error("no parameters to optimize");
  for (Group& group : params.groups) add_param_group(std::move(group));
}

Optimizer::~Optimizer() = default;

void Optimizer::queue(const volta::detail::UpdateRule& rule, UpdateConstants constants, const Tensor& p,
                      const Tensor& g, std::initializer_list<Tensor> states) {
  queued_->add(rule, constants, p, g, states);
}

void Optimizer::throw_error(const std::string& message) const { throw Error(Error::Kind::argument, name_, message); }

void Optimizer::require_number(const char* name, double value) const {
  if (!std::isfinite(value) || value < 0)
    throw_error(std::string(name) + " must be finite and at least 0, not " + std::to_string(value));
}

void Optimizer::check(const ParamGroup& g) const {
  const auto require = [this](bool holds, const char* what, double value) {
    if (!holds) throw_error(std::string(what) + ", not " + std::to_string(value));
  };
  require(std::isfinite(g.lr) && g.lr >= 0, "lr must be a finite number of at least 0", g.lr);
  require(std::isfinite(g.weight_decay) && g.weight_decay >= 0, "weight_decay must be at least 0", g.weight_decay);
  require(std::isfinite(g.momentum) && g.momentum >= 0, "momentum must be at least 0", g.momentum);
  require(std::isfinite(g.eps) && g.eps >= 0, "eps must be at least 0", g.eps);
  require(g.betas.first >= 0 && g.betas.first < 1, "the first of betas must be in [0, 1)", g.betas.first);
  require(g.betas.second >= 0 && g.betas.second < 1, "the second of betas must be in [0, 1)", g.betas.second);
}

ParamGroup Optimizer::resolve(Group group) const {
  ParamGroup g = defaults_;
  g.params = std::move(group.params);
  g.lr = group.lr.value_or(g.lr);
  g.weight_decay = group.weight_decay.value_or(g.weight_decay);
  g.momentum = group.momentum.value_or(g.momentum);
  g.eps = group.eps.value_or(g.eps);
  if (group.betas) g.betas = *group.betas;
  g.adamw = group.adamw;
  return g;
}

// States stand beside the groups: a list of groups that was changed by hand would give parameters each other's.
void Optimizer::check_groups() const {
  bool same = groups_.size() == states_.size();
  for (size_t i = 0; same && i < groups_.size(); ++i) {
    const std::vector<Tensor>& params = groups_[i].params;
    same = params.size() == states_[i].size();
    for (size_t j = 0; same && j < params.size(); ++j) same = params[j].impl_pointer() == states_[i][j].parameter;
  }
  if (!same)
    throw_error(
        "the parameters of its groups are not those it was made with: add some by add_param_group, take some "
        "away by making the optimizer anew");
}

void Optimizer::add_param_group(Group group) {
  check_groups();
  ParamGroup g = resolve(std::move(group));
  check(g);
  if (g.params.empty()) throw_error("no parameters to optimize in group " + std::to_string(groups_.size()));
  std::set<const TensorImpl*> seen;
  for (const ParamGroup& other : groups_)
    for (const Tensor& p : other.params) seen.insert(p.impl_pointer());
  for (size_t i = 0; i < g.params.size(); ++i) {
    const Tensor& p = g.params[i];
    const std::string which = "parameter " + std::to_string(i) + " of group " + std::to_string(groups_.size());
    if (!p.defined()) throw_error(which + " is undefined");
    if (!is_floating(p.dtype()))
      throw_error(which + " is of " + std::string(volta::name(p.dtype())) + ", not floating");
    if (!p.is_leaf()) throw_error(which + " is a computed tensor; only leaves can be optimized");
    if (layout(p).overlaps_itself())
      throw_error(which + " of shape " + p.shape().str() + " has elements that share memory; clone() it first");
    if (!seen.insert(p.impl_pointer()).second) throw_error(which + " appears twice");
  }
  std::vector<State> states;
  for (const Tensor& p : g.params) states.push_back(state_of(p));
  groups_.push_back(std::move(g));
  states_.push_back(std::move(states));
}

// A parameter that only the optimizer knows will never have a gradient: its model is gone, or was assigned another.
void Optimizer::check_used(const Tensor& p, size_t group, size_t number) const {
  if (p.impl().refs.load(std::memory_order_acquire) == 1 && p.requires_grad())
    throw_error("parameter " + std::to_string(number) + " of group " + std::to_string(group) +
                " belongs to no model any more: it was destroyed or replaced; make the optimizer anew");
}

struct Optimizer::RecordedStep {
  Recording* recording;
  std::vector<std::pair<size_t, size_t>> parameters;  // by group and number: those that had a gradient
  UpdateBatch::Slots slots;
};

void Optimizer::step() {
  const NoGrad off;
  const AutocastScope exact({});
  queued_->clear();  // of a step that was cut short by an error
  check_groups();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const ParamGroup& group = groups_[i];
    for (size_t j = 0; j < group.params.size(); ++j) {
      check_used(group.params[j], i, j);
      State& state = states_[i][j];
      if (state.shape != group.params[j].shape()) state = state_of(group.params[j]);  // it was assigned
      if (state.step == 0 && group.params[j].grad())
        Recording::refuse(name_.c_str(), "a parameter has its first gradient; run the step once before");
    }
  }
  if (!skips_on_device()) Recording::refuse(name_.c_str(), "its step computes with numbers of the host");
  Recording* const recording = Recording::current();
  RecordedStep recorded{recording, {}, {}};
  Tensor before;  // how many steps were left out before this one
  for (size_t i = 0; i < groups_.size(); ++i) {
    const ParamGroup& group = groups_[i];
    for (size_t j = 0; j < group.params.size(); ++j) {
      const std::optional<Tensor> g = group.params[j].grad();
      if (!g) continue;
      if (recording) recorded.parameters.emplace_back(i, j);
      State& state = states_[i][j];
      if (state.step == 0 && skipped_.defined()) {
        if (!before.defined()) before = skipped_.clone();
        state.skipped_before = before;
      }
      ++state.step;
      const Tensor p = master_of(group.params[j], state), along = maximize_ ? -*g : *g;
      update(p, along.to(p.dtype()), state, group);
    }
  }
  if (recording)
    recording->undo.emplace_back([this, counted = recorded.parameters] {
      for (const auto& [i, j] : counted) --states_[i][j].step;
    });
  recorded.slots = queued_->run(skip_);
  if (master_weights_) write_masters();
  if (recording) recording->host_work.emplace_back([this, recorded] { renew(recorded); });
}

// What the host does of a step when a device replays it: counts, and chooses the constants.
void Optimizer::renew(const RecordedStep& step) {
  const NoGrad off;
  queued_->clear();
  for (const auto& [i, j] : step.parameters) {
    State& state = states_.at(i).at(j);
    const Tensor& p = groups_[i].params.at(j);
    const bool master = state.master.defined();
    if (master && state.master_since != p.version())
      throw_error("a parameter with a copy in f32 was written since the last step; capture the step anew");
    ++state.step;
    update(master ? state.master : p, master ? state.master : p, state, groups_[i]);  // the gradient is not read
    if (!master) continue;
    bump_version(p);
    state.master_since = p.version();
  }
  queued_->renew(*step.recording, step.slots);
}

void Optimizer::step_unless(const Tensor& skip) {
  volta::require(skip.checked("step_unless").dim() == 0 && skip.dtype() == boolean, ErrorKind::shape, "step_unless",
                 "needs a 0-d tensor of booleans, got ", skip.dtype(), " of shape ", skip);
  // What runs at once can be asked at once; where work is queued, asking would wait for it.
  if (!backend(skip.device()).records() || !skips_on_device()) {
    if (!skip.item<bool>()) step();
    return;
  }
  const NoGrad off;
  if (!skipped_.defined()) {
    Recording::refuse(name_.c_str(), "it may leave a step out for the first time; run the step once before");
    skipped_ = zeros({}, {.dtype = f64, .device = skip.device()});
  }
  skip_ = skip;
  try {
    step();
  } catch (...) {
    skip_ = {};
    throw;
  }
  skip_ = {};
  skipped_.add_(skip.to(f64).to(skipped_.device()));  // in place: replays count there
}

// What takes the step: the parameter, or its copy in f32. Elements of the parameter that someone else wrote since the last
// step are taken over; where nothing but rounding tells the two apart, the copy has the better value.
Tensor Optimizer::master_of(const Tensor& p, State& state) const {
  if (!master_weights_ || !is_half(p.dtype())) return p;
  Tensor& master = state.master;
  if (!master.defined() || master.shape() != p.shape() || master.device() != p.device()) master = p.detach().to(f32);
  else if (state.master_since != p.version()) master = where(master.to(p.dtype()) == p, master, p.detach().to(f32));
  state.master_since = p.version();
  return master;
}

void Optimizer::write_masters() {
  for (size_t i = 0; i < groups_.size(); ++i)
    for (size_t j = 0; j < states_[i].size(); ++j) {
      const Tensor& p = groups_[i].params[j];
      State& state = states_[i][j];
      if (!state.master.defined() || !is_half(p.dtype()) || !p.grad()) continue;
      p.detach().copy_(state.master);
      state.master_since = p.version();
    }
}

int64_t Optimizer::count_of(const State& state) const {
  if (state.step == 0 || !skipped_.defined()) return state.step;
  const Tensor since = state.skipped_before.defined() ? skipped_ - state.skipped_before : skipped_;
  return state.step - since.item<int64_t>();
}

Tensor Optimizer::step(const Closure& closure) {
  if (!closure) throw_error("step was given an empty function");
  const Tensor loss = [&] {
    const EnableGrad on;
    return closure();
  }();
  step();
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const ParamGroup& group : groups_)
    for (const Tensor& p : group.params) {
      if (set_to_none) p.zero_grad();
      else if (const auto g = p.grad()) g->detach().zero_();
    }
}

double Optimizer::lr() const {
  if (groups_.empty()) throw_error("there are no groups of parameters left");
  return groups_[0].lr;
}

void Optimizer::set_lr(double lr) {
  ParamGroup probe = defaults_;
  probe.lr = lr;
  check(probe);
  for (ParamGroup& group : groups_) group.lr = lr;
}

std::map<std::string, Tensor> Optimizer::save(const State& state) const {
  std::map<std::string, Tensor> saved;
  if (counts_) saved["step"] = tensor<float>(count_of(state), {.device = Device()});
  if (state.master.defined()) saved[master_key] = state.master.clone();
  for (size_t i = 0; i < state.slots.size(); ++i)
    if (state.slots[i].defined()) saved[slot_names_[i]] = state.slots[i].clone();
  return saved;
}

std::map<std::string, std::vector<double>> Optimizer::settings(const ParamGroup& g) const {
  std::map<std::string, std::vector<double>> saved{{"lr", {g.lr}}, {"weight_decay", {g.weight_decay}}};
  if (defaults_.betas != Betas{0, 0}) saved["betas"] = {g.betas.first, g.betas.second};
  if (defaults_.eps != 0) saved["eps"] = {g.eps};
  saved["momentum"] = {g.momentum};
  if (g.initial_lr) saved["initial_lr"] = {*g.initial_lr};
  for (const auto& [key, value] : switches_) saved[key] = {double(*value)};
  for (const auto& [key, value] : numbers_) saved[key] = {*value};
  for (const auto& [key, value] : pairs_) saved[key] = {value->first, value->second};
  return saved;
}

StateDict Optimizer::state_dict() const {
  const NoGrad off;
  check_groups();
  StateDict dict;
  int64_t number = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    StateDict::GroupState& group = dict.param_groups.emplace_back();
    group.options = settings(groups_[i]);
    for (const State& state : states_[i]) {
      if (count_of(state) > 0) dict.state[number] = save(state);
      group.params.push_back(number++);
    }
  }
  if (auto shared = shared_state(); !shared.empty()) dict.state[0] = std::move(shared);
  return dict;
}

namespace {

using Settings = std::map<std::string, std::vector<double>>;

void read_setting(const Settings& saved, const std::string& key, auto& value) {
  if (const auto found = saved.find(key); found != saved.end()) value = found->second[0];
}
void read_settings(ParamGroup& group, const Settings& saved) {
  read_setting(saved, "lr", group.lr);
  read_setting(saved, "weight_decay", group.weight_decay);
  read_setting(saved, "momentum", group.momentum);
  read_setting(saved, "eps", group.eps);
  read_setting(saved, "initial_lr", group.initial_lr);
  if (const auto betas = saved.find("betas"); betas != saved.end()) group.betas = {betas->second[0], betas->second[1]};
}

}  // namespace

void Optimizer::check(const StateDict& saved) const {
  if (saved.param_groups.size() != groups_.size())
    throw_error("the saved state has " + std::to_string(saved.param_groups.size()) + " groups, this optimizer has " +
                std::to_string(groups_.size()));
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto& [options, numbers] = saved.param_groups[i];
    const auto& params = groups_[i].params;
    if (numbers.size() != params.size())
      throw_error("group " + std::to_string(i) + " of the saved state has " + std::to_string(numbers.size()) +
                  " parameters, here it has " + std::to_string(params.size()));
    for (const auto& [key, values] : options) {
      const bool pair = key == "betas" ||
                        std::any_of(pairs_.begin(), pairs_.end(), [&name = key](auto& p) { return p.first == name; });
      if (values.size() != (pair ? 2u : 1u)) throw_error("option " + key + " has the wrong number of values");
      for (const double value : values)
        if (!std::isfinite(value)) throw_error("option " + key + " is " + std::to_string(value));
    }
    ParamGroup probe = groups_[i];
    read_settings(probe, options);
    check(probe);
    for (size_t j = 0; j < params.size(); ++j) {
      const auto found = saved.state.find(numbers[j]);
      if (found == saved.state.end()) continue;
      if (const auto step = found->second.find("step"); step != found->second.end()) {
        const bool one = step->second.defined() && step->second.numel() == 1;
        const double count = one ? step->second.item<double>() : -1;
        if (!(count >= 0 && count <= 0x1p53)) throw_error("the saved step of parameter " + std::to_string(numbers[j]));
      }
      if (const auto master = found->second.find(master_key); master != found->second.end())
        if (!master->second.defined() || master->second.shape() != params[j].shape())
          throw_error("the saved master weights of parameter " + std::to_string(numbers[j]) +
                      " do not have its shape " + params[j].shape().str());
      for (const auto& [key, value] : found->second) {
        const auto slot = std::find(slot_names_.begin(), slot_names_.end(), key);
        if (slot == slot_names_.end() || (value.defined() && value.dim() == 0)) continue;
        const Shape wanted = slot_shape(size_t(slot - slot_names_.begin()), params[j]);
        if (!value.defined() || value.shape() != wanted)
          throw_error("saved " + key + " of parameter " + std::to_string(numbers[j]) + " has shape " +
                      (value.defined() ? value.shape().str() : "none") + ", the parameter's is " + wanted.str());
      }
    }
  }
}

void Optimizer::restore(State& state, const Tensor& param, const std::map<std::string, Tensor>& saved) const {
  state = state_of(param);
  state.step = 1;
  if (const auto step = saved.find("step"); step != saved.end()) state.step = int64_t(step->second.item<double>());
  if (const auto master = saved.find(master_key); master != saved.end() && master_weights_ && is_half(param.dtype()))
    state.master = master->second.detach().to(param.device()).to(f32).contiguous().clone();
  state.master_since = param.version() - 1;  // whether weights or state are loaded first, they are compared
  for (size_t i = 0; i < slot_names_.size(); ++i) {
    const auto found = saved.find(slot_names_[i]);
    if (found == saved.end()) continue;
    if (state.slots.size() <= i) state.slots.resize(i + 1);
    const DType dtype =
        found->second.dim() == 0 && param.dim() > 0 ? found->second.dtype() : traits(param.dtype()).compute;
    state.slots[i] = found->second.detach().to(param.device()).to(dtype).contiguous().clone();
  }
}

void Optimizer::restore(ParamGroup& group, const std::map<std::string, std::vector<double>>& saved) {
  read_settings(group, saved);
  for (auto& [key, value] : numbers_) read_setting(saved, key, *value);
  for (auto& [key, value] : pairs_)
    if (const auto found = saved.find(key); found != saved.end()) *value = {found->second[0], found->second[1]};
  for (auto& [key, value] : switches_) read_setting(saved, key, *value);
}

void Optimizer::load_state_dict(const StateDict& saved) {
  const NoGrad off;
  check_groups();
  check(saved);
  const auto first = saved.state.find(0);
  const std::map<std::string, Tensor> shared =
      first == saved.state.end() ? std::map<std::string, Tensor>() : first->second;
  check_shared_state(shared);
  skipped_ = {};
  for (size_t i = 0; i < groups_.size(); ++i) {
    restore(groups_[i], saved.param_groups[i].options);
    for (size_t j = 0; j < states_[i].size(); ++j) {
      const auto found = saved.state.find(saved.param_groups[i].params[j]);
      if (found == saved.state.end()) states_[i][j] = state_of(groups_[i].params[j]);
      else restore(states_[i][j], groups_[i].params[j], found->second);
    }
  }
  load_shared_state(shared);
}

}  // namespace volta::optim

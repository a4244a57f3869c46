// {'state': {0: {'step': …, 'exp_avg': …}}, 'param_groups': [{'lr': …, 'params': [0, 1]}]} and back.
#include <volta/io/torch_optimizer.h>

#include <algorithm>
#include <cmath>

#include <volta/create.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/check.h"

namespace volta {
namespace {

using Kind = TorchValue::Kind;
using Settings = std::vector<TorchValue::Entry>;

bool is_number(const TorchValue& v) { return v.is(Kind::integer) || v.is(Kind::real) || v.is(Kind::truth); }

// Settings that are pairs here; other tuples (Muon's coefficients, Adafactor's eps) belong to the optimizer's options.
bool is_pair(const std::string& key) { return key == "betas" || key == "etas" || key == "step_sizes"; }

optim::StateDict::GroupState group_from(const TorchValue& value, const char* op) {
  optim::StateDict::GroupState group;
  for (const auto& [key, setting] : value.entries()) {
    const std::string& name = key.as_string();
    if (name == "params") {
      for (const TorchValue& number : setting.items()) group.params.push_back(number.as_integer());
    } else if (is_number(setting)) {
      group.options[name] = {setting.as_number()};
    } else if (setting.is(Kind::tensor)) {
      require(setting.as_tensor().numel() == 1, ErrorKind::shape, op, "setting '", name, "' is a tensor of shape ",
              setting.as_tensor());
      group.options[name] = {setting.as_tensor().item<double>()};
    } else if (is_pair(name)) {
      for (const TorchValue& number : setting.items()) group.options[name].push_back(number.as_number());
    }
  }
  return group;
}

std::map<std::string, Tensor> state_from(const TorchValue& value, const char* op) {
  std::map<std::string, Tensor> state;
  for (const auto& [key, item] : value.entries()) {
    const std::string& name = key.as_string();
    if (item.is(Kind::tensor)) state[name] = item.as_tensor();
    else if (item.is(Kind::real)) state[name] = tensor<double>(item.as_number(), {.device = Device()});
    else if (is_number(item)) state[name] = tensor<int64_t>(int64_t(item.as_number()), {.device = Device()});
    else if (name == "old_dirs" || name == "old_stps") {  // of LBFGS
      std::vector<Tensor> list;
      for (const TorchValue& x : item.items()) list.push_back(x.as_tensor());
      if (!list.empty()) state[name] = stack(list);
    } else {
      // What can be computed again (LBFGS' ro and al), or has not been set.
      require(item.is(Kind::none) || item.is(Kind::list), ErrorKind::argument, op, "state '", name, "' is a ",
              volta::name(item.kind()));
    }
  }
  return state;
}

// The settings of a group of PyTorch's optimizers, in its order, with its defaults for what is not saved here.
Settings settings_of(const std::string& optimizer, const char* op) {
  const TorchValue none, off = false, on = true, zero = 0;
  if (optimizer == "SGD")
    return {{"lr", none},      {"momentum", zero}, {"dampening", zero},     {"weight_decay", zero}, {"nesterov", off},
            {"maximize", off}, {"foreach", none},  {"differentiable", off}, {"fused", none}};
  if (optimizer == "Adam" || optimizer == "AdamW")
    return {{"lr", none},
            {"betas", none},
            {"eps", none},
            {"weight_decay", zero},
            {"amsgrad", off},
            {"maximize", off},
            {"foreach", none},
            {"capturable", off},
            {"differentiable", off},
            {"fused", none},
            {"decoupled_weight_decay", optimizer == "AdamW"}};
  if (optimizer == "Adamax")
    return {{"lr", none},      {"betas", none},   {"eps", none},           {"weight_decay", zero},
            {"foreach", none}, {"maximize", off}, {"differentiable", off}, {"capturable", off}};
  if (optimizer == "NAdam")
    return {{"lr", none},           {"betas", none},          {"eps", none},
            {"weight_decay", zero}, {"momentum_decay", none}, {"decoupled_weight_decay", off},
            {"maximize", off},      {"foreach", none},        {"capturable", off},
            {"differentiable", off}};
  if (optimizer == "RAdam")
    return {{"lr", none},           {"betas", none},   {"eps", none},       {"weight_decay", zero},
            {"maximize", off},      {"foreach", none}, {"capturable", off}, {"decoupled_weight_decay", off},
            {"differentiable", off}};
  if (optimizer == "RMSprop")
    return {{"lr", none},           {"momentum", zero},  {"alpha", none},   {"eps", none},     {"centered", off},
            {"weight_decay", zero}, {"capturable", off}, {"foreach", none}, {"maximize", off}, {"differentiable", off}};
  if (optimizer == "Adagrad")
    return {{"lr", none},
            {"lr_decay", zero},
            {"eps", none},
            {"weight_decay", zero},
            {"initial_accumulator_value", zero},
            {"foreach", none},
            {"maximize", off},
            {"differentiable", off},
            {"fused", none}};
  if (optimizer == "Adadelta")
    return {{"lr", none},      {"rho", none},       {"eps", none},     {"weight_decay", zero},
            {"maximize", off}, {"capturable", off}, {"foreach", none}, {"differentiable", off}};
  if (optimizer == "ASGD")
    return {{"lr", none},      {"lambd", none},   {"alpha", none},         {"t0", none},       {"weight_decay", zero},
            {"foreach", none}, {"maximize", off}, {"differentiable", off}, {"capturable", off}};
  if (optimizer == "Rprop")
    return {{"lr", none},      {"etas", none},          {"step_sizes", none}, {"foreach", none},
            {"maximize", off}, {"differentiable", off}, {"capturable", off}};
  if (optimizer == "Adafactor")
    return {{"lr", none},     {"beta2_decay", none},  {"eps", TorchValue::tuple({none, 1e-3})},
            {"d", none},      {"weight_decay", zero}, {"foreach", none},
            {"maximize", off}};
  if (optimizer == "Muon")
    return {{"lr", none},
            {"weight_decay", zero},
            {"momentum", zero},
            {"nesterov", on},
            {"ns_coefficients", TorchValue::tuple({3.4445, -4.7750, 2.0315})},
            {"eps", none},
            {"ns_steps", 5},
            {"adjust_lr_fn", none}};
  if (optimizer == "LBFGS")
    return {{"lr", none},
            {"max_iter", 20},
            {"max_eval", 25},
            {"tolerance_grad", none},
            {"tolerance_change", none},
            {"history_size", 100},
            {"line_search_fn", none},
            {"maximize", off}};
  throw_error(ErrorKind::argument, op, "PyTorch has no optimizer '", optimizer, "'");
}

TorchValue group_to(const optim::StateDict::GroupState& group, Settings settings) {
  if (group.options.contains("initial_lr")) settings.emplace_back("initial_lr", TorchValue());
  for (auto& [key, value] : settings) {
    const auto found = group.options.find(key.as_string());
    if (found == group.options.end()) continue;
    const std::vector<double>& numbers = found->second;
    const bool whole = numbers.size() == 1 && std::abs(numbers[0]) < 0x1p53 && numbers[0] == std::trunc(numbers[0]);
    if (numbers.size() == 1 && value.is(Kind::truth)) value = numbers[0] != 0;
    else if (whole && value.is(Kind::integer))
      value = int64_t(numbers[0]);  // counts, which Python does not take as floats
    else if (numbers.size() == 1) value = numbers[0];
    else value = TorchValue::tuple({numbers.begin(), numbers.end()});
  }
  std::vector<TorchValue> params(group.params.begin(), group.params.end());
  settings.emplace_back("params", TorchValue::list(std::move(params)));
  return TorchValue::dict(std::move(settings));
}

TorchValue list_of_rows(const Tensor& x) {
  std::vector<TorchValue> rows;
  for (const Tensor& row : unbind(x)) rows.emplace_back(row);
  return TorchValue::list(std::move(rows));
}

// LBFGS keeps plain numbers and lists, and with each pair of differences the inverse of their product.
TorchValue lbfgs_state_to(const std::map<std::string, Tensor>& state) {
  std::vector<TorchValue::Entry> entries;
  for (const auto& [key, x] : state) {
    if (key == "n_iter" || key == "func_evals") entries.emplace_back(key, x.item<int64_t>());
    else if (key == "t") entries.emplace_back(key, x.item<double>());
    else if (key == "old_dirs" || key == "old_stps") entries.emplace_back(key, list_of_rows(x));
    else if (key == "H_diag") entries.emplace_back(key, x.to(state.at("d").dtype()));
    else entries.emplace_back(key, x);
  }
  if (state.contains("old_dirs"))
    entries.emplace_back("ro", list_of_rows(1 / (state.at("old_dirs") * state.at("old_stps")).sum(1)));
  else
    for (const char* key : {"old_dirs", "old_stps", "ro"}) entries.emplace_back(key, TorchValue::list({}));
  return TorchValue::dict(std::move(entries));
}

TorchValue state_to(const std::map<std::string, Tensor>& state, const std::string& optimizer) {
  if (optimizer == "LBFGS") return lbfgs_state_to(state);
  std::vector<TorchValue::Entry> entries;
  for (const auto& [key, x] : state)
    if (key != "step" || optimizer != "Muon") entries.emplace_back(key, x);
  return TorchValue::dict(std::move(entries));
}

}  // namespace

optim::StateDict optimizer_state_from_torch(const TorchValue& value) {
  const char* const op = "optimizer_state_from_torch";
  const NoGrad off;
  return blamed_on(op, [&] {
    optim::StateDict state;
    for (const auto& [number, slots] : value.at("state").entries())
      state.state[number.as_integer()] = state_from(slots, op);
    for (const TorchValue& group : value.at("param_groups").items())
      state.param_groups.push_back(group_from(group, op));
    return state;
  });
}

TorchValue optimizer_state_to_torch(const optim::StateDict& state, const std::string& optimizer) {
  const NoGrad off;
  const Settings settings = settings_of(optimizer, "optimizer_state_to_torch");
  std::vector<TorchValue::Entry> states;
  for (const auto& [number, slots] : state.state)
    if (!slots.empty()) states.emplace_back(number, state_to(slots, optimizer));
  std::vector<TorchValue> groups;
  for (const auto& group : state.param_groups) groups.push_back(group_to(group, settings));
  return TorchValue::dict(
      {{"state", TorchValue::dict(std::move(states))}, {"param_groups", TorchValue::list(std::move(groups))}});
}

}  // namespace volta

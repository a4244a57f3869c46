// Update rules over many tensors: the device's own loop, or the formula as an expression of tensors where it has none.
#include "optim/update.h"

#include <algorithm>

#include <volta/create.h>
#include <volta/optim/fused_update.h>
#include <volta/tensor_expr.h>

#include "core/impl.h"
#include "core/recording.h"
#include "core/watch.h"
#include "ops/fused.h"

namespace volta::optim {
namespace {

using scalar::TensorExpr;

// The formula of a rule on whole tensors. Returns x.
Tensor expression(const UpdateRule& rule, std::vector<TensorExpr> c, const Tensor& x, const Tensor& g, Tensor* states) {
  std::vector<TensorExpr> s(states, states + rule.states);
  TensorExpr value(x);
  for_each(UpdateRules{}, [&]<class Rule>(int index) {
    if (index == rule.index) Rule::f(c.data(), value, TensorExpr(g), s.data());
  });
  for (int k = 0; k < rule.states; ++k) states[k] = s[size_t(k)].tensor();
  return value.tensor();
}

// The constants, with those that depend on the steps taken as tensors.
void recount(const UpdateRule& rule, std::vector<TensorExpr>& c, const Tensor& skipped, DType compute) {
  for_each(UpdateRules{}, [&]<class Rule>(int index) {
    if constexpr (requires { Rule::count; })
      if (index == rule.index) Rule::recount(c.data(), c[Rule::count] - TensorExpr(skipped));
  });
  for (TensorExpr& x : c)
    if (!x.constant()) x = TensorExpr(x.tensor().to(compute));
}

UpdateTensor described(const UpdateRule& rule, const Tensor& x, const Tensor& g, const Tensor* states) {
  UpdateTensor t{x.numel(), address(x), address(g), {}};
  for (int k = 0; k < rule.states; ++k) t.state[k] = address(states[k]);
  return t;
}

}  // namespace

void UpdateBatch::add(const UpdateRule& rule, std::initializer_list<double> constants, const Tensor& p, const Tensor& g,
                      std::initializer_list<Tensor> states) {
  Step& step = steps_.emplace_back();
  step.rule = &rule;
  step.parameter = p;
  if (!p.is_contiguous()) step.copy = p.contiguous();
  step.g = g.contiguous();
  std::copy(constants.begin(), constants.end(), step.constants.begin());
  std::copy(states.begin(), states.end(), step.states.begin());
}

bool UpdateBatch::Step::alike(const Step& other) const {
  return rule == other.rule && x().dtype() == other.x().dtype() && x().device() == other.x().device() &&
         skipped.impl_pointer() == other.skipped.impl_pointer() &&
         skipped_before.impl_pointer() == other.skipped_before.impl_pointer() && has_constants_of(other);
}

bool UpdateBatch::Step::has_constants_of(const Step& other) const {
  return std::equal(constants.begin(), constants.begin() + rule->constants, other.constants.begin());
}

void UpdateBatch::Step::composed(const Tensor& skip) const {
  Tensor value = x().detach();
  const DType compute = traits(value.dtype()).compute;
  std::vector<TensorExpr> c(constants.begin(), constants.begin() + rule->constants);
  if (skipped.defined()) {
    const Tensor since = skipped_before.defined() ? skipped - skipped_before : skipped;
    recount(*rule, c, since.to(value.device()), compute);
  }
  auto next = states;
  Tensor stepped = expression(*rule, std::move(c), value.to(compute), g.to(compute), next.data());
  const Tensor keep = skip.defined() ? skip.to(value.device()) : skip;
  const auto chosen = [&](const Tensor& before, const Tensor& after) {
    return keep.defined() ? where(keep, before, after) : after;
  };
  value.copy_(chosen(value, stepped));
  for (size_t k = 0; k < size_t(rule->states); ++k) states[k].detach().copy_(chosen(states[k], next[k]));
}

void UpdateBatch::Step::finish() const {
  if (copy.defined()) parameter.detach().copy_(copy);
  else bump_version(parameter);
  for (size_t k = 0; k < size_t(rule->states); ++k) bump_version(states[k]);
}

UpdateBatch::Slots UpdateBatch::run(const Tensor& skip) {
  Recording* const recording = Recording::current();
  Slots slots;
  for (size_t begin = 0, end; begin < steps_.size(); begin = end) {
    const Step& first = steps_[begin];
    for (end = begin + 1; end < steps_.size() && steps_[end].alike(first);) ++end;
    UpdateCall call{first.rule, first.x().dtype(), {}, {}};
    std::copy(first.constants.begin(), first.constants.end(), call.constants);
    const auto held = [&](const Tensor& x) {
      if (!x.defined()) return x;
      reads(x);
      return x.to(first.x().device());
    };
    const Tensor keep = held(skip), skipped = held(first.skipped), before = held(first.skipped_before);
    if (keep.defined()) call.skip = static_cast<const uint8_t*>(address(keep));
    if (skipped.defined()) call.skipped = static_cast<const double*>(address(skipped));
    if (before.defined()) call.skipped_before = static_cast<const double*>(address(before));
    if (offered(first.x().device(), call)) {
      tensors_.clear();
      for (size_t i = begin; i < end; ++i)
        tensors_.push_back(described(*first.rule, steps_[i].x(), steps_[i].g, steps_[i].states.data()));
      call.tensors = tensors_;
      if (recording) {
        call.slot = int(recording->constants.size());
        recording->constants.push_back(first.constants);
        slots.push_back({end, call.slot});
      }
      backend(first.x().device()).update(call);
    } else {
      Recording::refuse(first.rule->name, "its constants are part of many kernels");
      for (size_t i = begin; i < end; ++i) steps_[i].composed(skip);
    }
    for (size_t i = begin; i < end; ++i) steps_[i].finish();
  }
  clear();
  return slots;
}

void UpdateBatch::renew(Recording& recording, const Slots& slots) {
  size_t i = 0;
  for (const Slot& slot : slots) {
    const Step& first = steps_.at(i);
    for (; i < slot.end; ++i) {
      const Step& step = steps_.at(i);
      require(step.rule == first.rule && step.has_constants_of(first), ErrorKind::device, "capture", first.rule->name,
              " has several settings where it had one when the step was recorded; capture the step anew");
      bump_version(step.parameter);
      for (size_t k = 0; k < size_t(step.rule->states); ++k) bump_version(step.states[k]);
    }
    recording.constants[size_t(slot.number)] = first.constants;
  }
  clear();
}

bool detail::run_rule(const UpdateRule& rule, const double* constants, const Tensor& p, const Tensor& g,
                      std::initializer_list<Tensor> states) {
  Recording::refuse(rule.name, "the host chooses its constants");
  bool plain = p.is_contiguous() && g.dtype() == p.dtype() && g.shape() == p.shape();
  for (const Tensor& s : states)
    plain = plain && s.is_contiguous() && s.dtype() == traits(p.dtype()).compute && s.shape() == p.shape();
  UpdateCall call{&rule, p.dtype(), {}, {}};
  if (!plain || !offered(p.device(), call)) return false;
  std::copy(constants, constants + rule.constants, call.constants);
  const Tensor gradient = g.contiguous();
  const UpdateTensor one = described(rule, p, gradient, states.begin());
  call.tensors = {&one, 1};
  backend(p.device()).update(call);
  bump_version(p);
  for (const Tensor& s : states) bump_version(s);
  return true;
}

}  // namespace volta::optim

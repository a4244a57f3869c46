// Optimizer: parameters in groups, what an update remembers of each, and how both are saved and restored.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <volta/tensor.h>

namespace volta::detail {
struct UpdateRule;
}
namespace volta::optim {

using Betas = std::pair<double, double>;

// Parameters that share settings; what is not said here comes from the optimizer's options:
// optim::AdamW opt({{.params = parameters(body), .lr = 1e-4}, {.params = parameters(head)}}, {.lr = 1e-3});
struct Group {
  std::vector<Tensor> params = {};
  std::optional<double> lr = {}, weight_decay = {}, momentum = {}, eps = {};
  std::optional<Betas> betas = {};
  bool adamw = false;  // Muon only: update these by AdamW, as suits embeddings and output heads
};

// A resolved group, all plain numbers: opt.param_groups()[0].lr = 1e-4. Those an optimizer does not use are 0.
struct ParamGroup {
  std::vector<Tensor> params = {};
  double lr = 0, weight_decay = 0, momentum = 0, eps = 0;
  Betas betas = {0, 0};
  bool adamw = false;
  std::optional<double> initial_lr = {};  // what schedulers multiply; set by the first of them
};

// Tensors or groups: Adam(parameters(model)), Adam({w, b}), Adam({{.params = {w}, .lr = 0.1}, {.params = {b}}}).
class Params {
 public:
  Params(std::vector<Tensor> tensors);
  Params(std::vector<Group> list);
  Params(std::initializer_list<Tensor> tensors);
  Params(std::initializer_list<Group> list);
  std::vector<Group> groups;
};

// What an update remembers of one parameter: how often it ran, and tensors named by the optimizer.
struct State {
  int64_t step = 0;
  std::vector<Tensor> slots = {};
  Shape shape = {};            // of the parameter: one that was assigned another shape starts anew
  const void* parameter = {};  // whose it is
  Tensor master = {};          // the parameter in f32, where the optimizer keeps one
  uint32_t master_since = 0;   // the version of the parameter that the master was last written to
  Tensor skipped_before = {};  // how many steps a device had skipped when this parameter joined
  // The slot, on first use filled with `value`; of the parameter's shape, in f32 where the parameter is a half.
  Tensor& at(size_t slot, const Tensor& param, double value = 0);
};

// PyTorch's form: tensors by the parameter's number and name, settings by group (a number is a list of one).
struct StateDict {
  struct GroupState {
    std::map<std::string, std::vector<double>> options = {};
    std::vector<int64_t> params = {};
  };
  std::map<int64_t, std::map<std::string, Tensor>> state = {};
  std::vector<GroupState> param_groups = {};
};

// One's own optimizer derives from it and says how one parameter changes:
//   struct SignSGD : optim::Optimizer {
//     SignSGD(optim::Params p, double lr) : Optimizer("SignSGD", std::move(p), {.lr = lr}) {}
//     void update(const Tensor& p, const Tensor& g, optim::State&, const optim::ParamGroup& group) override {
//       p.detach().sub_(group.lr * g.sign());
//     }
//   };
class Optimizer {
 public:
  using Closure = std::function<Tensor()>;  // zeroes the gradients, computes the loss, calls backward, returns it

  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual void step();                          // loss.backward(); opt.step();
  virtual Tensor step(const Closure& closure);  // opt.step([&] { opt.zero_grad(); … return loss; })
  // step(), unless the 0-d boolean tensor holds: then nothing changes, nor do the counts. The common optimizers leave that
  // to the tensor's device, without waiting for it; the others read it.
  void step_unless(const Tensor& skip);
  void zero_grad(bool set_to_none = true);       // opt.zero_grad(): forget the gradients; with false, fill them with 0
  double lr() const;                             // opt.lr(): of the first group
  void set_lr(double lr);                        // opt.set_lr(1e-4): of all groups
  void add_param_group(Group group);             // opt.add_param_group({.params = parameters(head), .lr = 1e-3})
  StateDict state_dict() const;                  // other.load_state_dict(opt.state_dict())
  void load_state_dict(const StateDict& saved);  // checks everything before it changes anything
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }
  const std::string& name() const { return name_; }

 protected:
  // Names the slots of the state as they are saved; "step" among them saves the count too.
  Optimizer(std::string name, Params params, ParamGroup defaults, std::vector<std::string> slots = {},
            bool maximize = false, bool master_weights = false);
  virtual void update(const Tensor& p, const Tensor& g, State& state, const ParamGroup& group) = 0;
  // Puts a step of a built-in rule in the queue of this step(), which ends by running those alike in one call.
  using UpdateConstants = std::initializer_list<double>;
  void queue(const volta::detail::UpdateRule& rule, UpdateConstants constants, const Tensor& p, const Tensor& g,
             std::initializer_list<Tensor> states = {});
  struct AdamStep {
    size_t slot;  // of the state: the mean is there, the mean of squares behind it, their maximum behind that
    double lr;
    double into_gradient;  // weight decay as part of the gradient
    double shrink;         // factor of the weights
    double eps;
    Betas betas;
    bool amsgrad = false;
  };
  void adam_step(const Tensor& p, const Tensor& g, State& state, const AdamStep& step);  // Muon takes it too
  void check_groups() const;  // throws if the parameters in groups_ are not those of states_
  void check_used(const Tensor& p, size_t group, size_t number) const;  // throws if nobody else holds it

  // Settings of the whole optimizer that are saved with each group.
  void save_setting(std::string name, bool* value) { switches_.emplace_back(std::move(name), value); }
  void save_setting(std::string name, std::pair<double, double>* value) { pairs_.emplace_back(std::move(name), value); }
  void save_setting(std::string name, double* value) { numbers_.emplace_back(std::move(name), value); }
  [[noreturn]] void throw_error(const std::string& message) const;
  void require_number(const char* name, double value) const;  // throws unless it is finite and at least 0

  // Whether steps are queued alone, with constants that depend on the count in adam_step alone: a device can skip those.
  virtual bool skips_on_device() const { return false; }
  // What a saved slot of a parameter is to look like, unless it is a single number.
  virtual Shape slot_shape(size_t, const Tensor& param) const { return param.shape(); }
  // Tensors kept for the whole optimizer rather than for a parameter (L-BFGS), saved as state of parameter 0.
  virtual std::map<std::string, Tensor> shared_state() const { return {}; }
  virtual void check_shared_state(const std::map<std::string, Tensor>&) const {}  // before anything is changed
  virtual void load_shared_state(const std::map<std::string, Tensor>&) {}

  std::vector<ParamGroup> groups_;
  std::vector<std::vector<State>> states_;  // by group and parameter

 private:
  void check(const ParamGroup& group) const;
  void check(const StateDict& saved) const;
  ParamGroup resolve(Group group) const;
  Tensor master_of(const Tensor& p, State& state) const;
  void write_masters();
  struct RecordedStep;
  void renew(const RecordedStep& step);
  int64_t count_of(const State& state) const;  // steps taken; reads, if a device skipped some
  std::map<std::string, Tensor> save(const State& state) const;
  void restore(State& state, const Tensor& param, const std::map<std::string, Tensor>& saved) const;
  std::map<std::string, std::vector<double>> settings(const ParamGroup& group) const;
  void restore(ParamGroup& group, const std::map<std::string, std::vector<double>>& saved);

  std::string name_;
  ParamGroup defaults_;
  std::vector<std::string> slot_names_;
  bool counts_ = false;  // "step" is saved
  bool maximize_ = false, master_weights_ = false;
  Tensor skip_, skipped_;  // of this step; how many so far, if a device decides
  std::unique_ptr<class UpdateBatch> queued_;
  std::vector<std::pair<std::string, bool*>> switches_;
  std::vector<std::pair<std::string, double*>> numbers_;
  std::vector<std::pair<std::string, std::pair<double, double>*>> pairs_;
};

}  // namespace volta::optim
